from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from hudsim.bridges.testcard import TestCardBridge
from hudsim.errors import UnknownName, UsageError
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.spec import Serving, WorldSpec
from hudsim.target import load_target
from tests.asyncrun import on_loop
from tests.robot.playing import joined, play
from tests.robot.worlds import Card, HudPair

USERS = """
from hudsim.bridges.testcard import TestCardBridge
from helper import SIZE

def small(**options):
    return TestCardBridge(width=SIZE, height=SIZE, cameras=1, **options)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("SIZE = 24\n")
    path = tmp_path / "my_world.py"
    path.write_text(USERS)
    return path


def test_an_instance_says_how_to_make_another() -> None:
    spec = WorldSpec.of(TestCardBridge(width=32, height=24, cameras=1))
    assert spec == WorldSpec("hudsim.bridges.testcard:TestCardBridge", {"width": 32, "height": 24, "cameras": 1})
    json.dumps(spec.args)
    twin = spec.factory()()
    assert twin.contract == TestCardBridge(width=32, height=24, cameras=1).contract


def test_what_cannot_be_said_in_json_is_for_inline() -> None:
    class Local(HudPair):
        def __init__(self, start: object = None) -> None:
            pass

    with pytest.raises(UsageError, match="inline"):
        WorldSpec.of(Local())
    with pytest.raises(UsageError, match="inline"):
        WorldSpec.of(Card, {"faults": np.zeros(3)})


def test_a_target_that_is_not_there_says_what_is() -> None:
    with pytest.raises(UnknownName, match="did you mean 'TestCardBridge'"):
        load_target("hudsim.bridges.testcard:TestCardBrige")
    with pytest.raises(UsageError, match="no module 'nowhere'"):
        load_target("nowhere.at.all:X")
    with pytest.raises(UsageError, match="no file"):
        load_target("/nowhere/at/all.py:X")
    with pytest.raises(UsageError, match="expected module:attr"):
        load_target("just-a-name")


def test_what_is_no_bridge_is_called_that() -> None:
    with pytest.raises(UsageError, match="got a str"):
        WorldSpec("hudsim.robot.spec:__doc__").factory()


@on_loop
async def test_a_file_of_the_users_is_served_from_anywhere_with_what_it_imports_beside_it(script: Path) -> None:
    async with RobotEndpoint.spawn(f"{script}:small") as world, joined(world) as (robot, _):
        seen = await play(robot, 2)
        assert seen[-1].data["observation/camera0"].shape == (24, 24, 3)


@on_loop
async def test_the_class_or_an_instance_is_enough() -> None:
    for world in (
        RobotEndpoint(TestCardBridge, width=24, height=24),
        RobotEndpoint(TestCardBridge(width=24, height=24)),
    ):
        async with world, joined(world) as (robot, _):
            assert (await play(robot, 1))[-1].data["observation/camera0"].shape == (24, 24, 3)


def test_serving_is_plain_json_and_adjusts_the_contract() -> None:
    serving = Serving(mode="realtime", rate_hz=25.0, watchdog_s=2.0)
    assert Serving(**json.loads(json.dumps(serving.to_json()))) == serving
    contract = serving.adjust(Card().contract)
    assert (contract.timing.mode, contract.control_rate) == ("realtime", 25.0)
    assert contract.timing.warmup_s == Card().contract.timing.warmup_s


@pytest.mark.parametrize(
    ("text", "words"), [("1 +", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("import nope_x", "nope_x")]
)
def test_a_file_that_cannot_be_imported_is_the_callers_mistake(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / f"bad_{len(words)}.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=words):
        load_target(f"{file}:Thing")


def test_one_world_on_two_event_loops_is_refused() -> None:
    async def go(world: RobotEndpoint) -> None:
        await world.start()

    async def end(world: RobotEndpoint) -> None:
        await world.stop()

    world = RobotEndpoint.spawn("hudsim.bridges.testcard:TestCardBridge")
    with asyncio.Runner() as runner:
        runner.run(go(world))
        with asyncio.Runner() as other, pytest.raises(UsageError, match="another event loop"):
            other.run(go(world))
        runner.run(end(world))
