"""What happens to one side of a relay when the other is killed, cut or stopped."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from hudsim.errors import HudsimError, LinkLost
from hudsim.net import Address, Link, Server, connect
from hudsim.robot.client import RobotClient
from hudsim.testing import FaultyLink
from tests.asyncrun import on_loop
from tests.environment.daemons import until
from tests.environment.relayed import SOON_S, before, until_ended
from tests.robot.playing import play
from tests.robot.worlds import inline

MIB = 1 << 20

WORLD = """
import asyncio
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import WorldSpec
async def main():
    spec = WorldSpec("hudsim.bridges.testcard:TestCardBridge", {})
    async with RobotEndpoint.inline(spec, autostart=True) as world:
        print(world.capability().url, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@on_loop
async def test_a_killed_world_is_lost_to_the_agent_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", WORLD], stdout=subprocess.PIPE, text=True) as world:  # noqa: ASYNC220
        assert world.stdout is not None
        try:
            served = (await asyncio.to_thread(world.stdout.readline)).strip()
            async with before(served) as (url, _), await RobotClient.connect(url) as robot:
                await play(robot, 2)
                waiting = asyncio.create_task(robot.get_observation())
                await asyncio.sleep(0.05)
                world.kill()
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(LinkLost, match="gone without a goodbye"):
                        await waiting
        finally:
            world.kill()


AGENT = """
import asyncio, sys
from hudsim.robot.client import RobotClient
async def main():
    robot = await RobotClient.connect(sys.argv[1], token=sys.argv[2])
    await robot.get_observation()
    print("playing", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@on_loop
async def test_a_killed_agent_is_lost_to_the_world() -> None:
    async with inline() as world, before(world.capability().url) as (url, _):
        episode = await world.reset()
        command = [sys.executable, "-c", AGENT, url, episode.token]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:  # noqa: ASYNC220
            assert agent.stdout is not None
            assert await asyncio.to_thread(agent.stdout.readline) == "playing\n"
            agent.kill()
        await until_ended(world, 'hudsim_episodes_total{end="aborted(policy_lost)"}')
        assert (await world.result(episode.token))["end"] == "aborted(policy_lost)"


@on_loop
@pytest.mark.parametrize("side", ["agent", "world"])
async def test_a_link_that_is_cut_on_either_side_cuts_the_other(side: str) -> None:
    async with inline() as world:
        episode = await world.reset()
        address = Address.parse(world.capability().url)
        async with FaultyLink(address.host, address.port) as far, before(far.through(address.url)) as (url, _):
            here = Address.parse(url)
            async with FaultyLink(here.host, here.port) as near:
                robot = await RobotClient.connect(near.through(url), token=episode.token)
                await play(robot, 1)
                (near if side == "agent" else far).cut()
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(LinkLost):
                        await robot.get_observation()
                await until_ended(world, 'hudsim_episodes_total{end="aborted(policy_lost)"}')
                await robot.close()


@on_loop
@pytest.mark.parametrize("stalled", [False, True])
async def test_stopping_the_server_ends_its_relays_and_leaves_no_task(stalled: bool) -> None:
    lost: list[HudsimError] = []

    async def world(link: Link) -> None:
        try:
            if stalled:
                await link.ended()
            else:
                await link.receive()
        except LinkLost as error:
            lost.append(error)

    worlds = Server({"/robot/robot": world}, bearer=None, max_queue=1)
    async with before((await worlds.start()).at("/robot/robot").url) as (url, server):
        link = await connect(url)
        filling = asyncio.create_task(_fill(link if stalled else None))
        await asyncio.sleep(0.3)
        async with asyncio.timeout(SOON_S):
            await server.stop()
            with pytest.raises(LinkLost):
                await link.receive()
            with pytest.raises(LinkLost):
                await filling
        if not stalled:
            await until(lambda: bool(lost))
            assert lost[0].data["close_code"] == 1001
    await until(lambda: len(asyncio.all_tasks()) <= 2)
    await worlds.stop()
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def _fill(link: Link | None) -> None:
    while link is not None:
        await link.send(bytes(MIB))
    raise LinkLost("nothing to fill")
