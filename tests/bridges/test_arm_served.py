"""The arm through a server: the same seeds give the same fingerprints, alone and beside three others."""

from __future__ import annotations

import asyncio

from hudsim.policies.scripted import Scripted
from hudsim.robot.agent import RobotAgent
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.recorder import Recorder
from hudsim.robot.spec import WorldSpec
from tests.asyncrun import on_loop

ARM = WorldSpec(
    "hudsim.bridges.arm:ArmBridge", {"task": "lift", "privileged": True, "cameras": True, "width": 32, "height": 32}
)


async def fingerprint(world: RobotEndpoint, seed: int) -> tuple[str, str | None]:
    episode = await world.reset(seed=seed)
    async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
        agent = RobotAgent(Scripted())
        agent.bind(robot.contract, robot.params)
        recorder = Recorder(robot.contract, hashes=True, video=None)
        await agent.play(robot, max_steps=60, on_step=recorder.step)
        prints = await recorder.finish(None)
    await world.result(episode.token)
    assert prints is not None
    return prints


@on_loop
async def test_a_seed_has_one_fingerprint_alone_and_beside_three_others() -> None:
    async with RobotEndpoint.spawn(ARM, mode="lockstep") as alone:
        expected = [await fingerprint(alone, seed) for seed in range(4)]
        assert await fingerprint(alone, 0) == expected[0]
    assert len(set(expected)) == 4
    async with RobotEndpoint.spawn(ARM, mode="lockstep", num_envs=4) as together:
        assert await asyncio.gather(*(fingerprint(together, seed) for seed in range(4))) == expected
