"""Many episodes at once: each slot is its own, whatever the others do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hudsim.bridges.testcard import read_card
from hudsim.errors import ContractError, SimDiverged, SimFailed
from hudsim.robot.bridge import Array, RobotBridge
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.wire.session import Heard
from tests.asyncrun import on_loop
from tests.robot.playing import play
from tests.robot.worlds import Card, Cards, inline, spawned

TICKS = 12
BAD_AT = 5


def wave(slot: int) -> Callable[[Heard], Array]:
    return lambda heard: np.array([np.sin(slot + heard.index), heard.index], np.float32)


async def play_all(world: RobotEndpoint, bad: Array | None = None) -> tuple[list[list[Heard]], Exception | None]:
    """Four slots played side by side; slot 2 sends ``bad`` at one tick. Their observations, and slot 2's error."""
    episodes = [await world.reset(seed=10 + slot) for slot in range(4)]
    assert [episode.slot for episode in episodes] == [0, 1, 2, 3]
    capability = world.capability()
    robots = [await RobotClient.connect(capability, token=episode.token) for episode in episodes]

    async def one(slot: int) -> list[Heard]:
        steps = wave(slot)
        if bad is None or slot != 2:
            return await play(robots[slot], TICKS, steps)
        return await play(robots[slot], TICKS, lambda heard: bad if heard.index == BAD_AT else steps(heard))

    seen = await asyncio.gather(*(one(slot) for slot in range(4)), return_exceptions=True)
    for robot in robots:
        await robot.close()
    errors = [error for error in seen if isinstance(error, BaseException)]
    assert all(isinstance(error, Exception) for error in errors)
    good = [heard for heard in seen if isinstance(heard, list)]
    assert len(good) == (4 if not errors else 3), errors
    return good, errors[0] if errors and isinstance(errors[0], Exception) else None


def fingerprint(seen: list[Heard]) -> list[tuple[int, bytes, float]]:
    return [(h.index, b"".join(a.tobytes() for a in h.data.values()), h.reward) for h in seen]


BAD: dict[str, Array] = {
    "NaN": np.array([np.nan, 0], np.float32),
    "infinity": np.array([0, np.inf], np.float32),
    "1e300": np.array([1e300, 0], np.float64),
    "wrong width": np.zeros(3, np.float32),
    "wrong dtype": np.zeros(2, np.uint8) > 0,
    "a chunk": np.zeros((4, 2), np.float32),
}


@pytest.mark.parametrize("kind", [Card, Cards])
def test_a_bad_action_ends_its_own_slot_alone_and_the_others_are_bit_identical(kind: type[RobotBridge]) -> None:
    @on_loop
    async def main() -> None:
        async with inline(kind, num_envs=4) as world:
            control, _ = await play_all(world)
        wanted = [fingerprint(seen) for slot, seen in enumerate(control) if slot != 2]
        for name, bad in BAD.items():
            async with inline(kind, num_envs=4) as world:
                seen, error = await play_all(world, bad)
                assert isinstance(error, ContractError), (name, error)
                assert error.data["feature"] == "action"
                assert [fingerprint(one) for one in seen] == wanted, name

    main()


@on_loop
async def test_every_slots_pixels_are_its_own_in_one_process() -> None:
    async with inline(Cards, num_envs=4) as world:
        seen, _ = await play_all(world)
    for slot, observations in enumerate(seen):
        assert [read_card(h.data["observation/camera0"]) for h in observations] == [(slot, t) for t in range(TICKS + 1)]


@on_loop
async def test_every_slots_pixels_are_its_own_in_processes() -> None:
    worlds = [spawned(slot=slot + 1) for slot in range(2)] + [spawned(Cards, num_envs=2, first_slot=5)]
    try:
        await asyncio.gather(*(world.start() for world in worlds))
        robots = []
        for world, slots in zip(worlds, ([1], [2], [5, 6]), strict=True):
            for slot in slots:
                episode = await world.reset(seed=slot)
                robots.append((slot, await RobotClient.connect(world.capability(), token=episode.token)))
        seen = await asyncio.gather(*(play(robot, TICKS) for _, robot in robots))
        for (slot, robot), observations in zip(robots, seen, strict=True):
            assert {read_card(h.data["observation/camera0"])[0] for h in observations} == {slot}
            assert {Card.read(h.data["observation/camera0"]).seed for h in observations} == {slot}
            await robot.close()
    finally:
        await asyncio.gather(*(world.stop() for world in worlds))


@pytest.mark.parametrize("kind", [Card, Cards])
@pytest.mark.parametrize(("faults", "expected"), [({"nan_at": 3}, SimDiverged), ({"nan_reward_at": 3}, SimDiverged)])
def test_a_slot_that_diverges_leaves_the_others_alone(
    kind: type[RobotBridge], faults: dict[str, Any], expected: type[Exception]
) -> None:
    @on_loop
    async def main() -> None:
        only = {} if kind is Card else {"slot": 2}
        async with inline(kind, num_envs=4, faults={**faults, **only}) as world:
            if kind is Card:  # then every world has the fault: it is enough that each ends for itself
                episode = await world.reset()
                async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
                    with pytest.raises(expected):
                        await play(robot, TICKS)
                return
            seen, error = await play_all(world)
            assert isinstance(error, expected)
            assert [len(one) for one in seen] == [TICKS + 1] * 3

    main()


class OneDiverges(Cards):
    """Says which slots left the finite numbers, as a vector simulator can."""

    def step(self, action: Array, active: Array) -> None:  # type: ignore[override]
        super().step(action, active)
        bad = [slot for slot in np.flatnonzero(active).tolist() if slot == 1 and self._ticks[slot] == 4]
        if bad:
            raise SimDiverged(f"slot {bad} left the finite numbers", slots=bad)


@on_loop
async def test_a_vector_bridge_may_say_which_of_its_slots_diverged() -> None:
    async with RobotEndpoint.inline(OneDiverges(num_envs=3), num_envs=3) as world:
        episodes = [await world.reset(seed=slot) for slot in range(3)]
        robots = [await RobotClient.connect(world.capability(), token=episode.token) for episode in episodes]
        seen = await asyncio.gather(*(play(robot, 8) for robot in robots), return_exceptions=True)
        assert isinstance(seen[1], SimDiverged)
        assert [len(seen[slot]) for slot in (0, 2) if isinstance(seen[slot], list)] == [9, 9]  # type: ignore[arg-type]
        records = [await world.result(episode.token) for episode in episodes]
        assert [record["end"] for record in records][1] == "aborted(sim_diverged)"
        assert records[1]["score"] == 0.0
        assert not records[1]["is_error"], "the policy can bring that about"
        for robot in robots:
            await robot.close()


@on_loop
async def test_one_bridge_that_raises_takes_its_own_slot_with_it() -> None:
    async with inline(num_envs=3, faults={"raise_at": 4}) as world:
        one, two = await world.reset(seed=1), await world.reset(seed=2)
        async with (
            await RobotClient.connect(world.capability(), token=one.token) as first,
            await RobotClient.connect(world.capability(), token=two.token) as second,
        ):
            with pytest.raises(SimFailed, match=r"RuntimeError: the test card raises at tick 4.*testcard\.py"):
                await play(first, 10)
            assert len(await play(second, 3)) == 4
        record = await world.result(one.token)
        assert (record["end"], record["is_error"], record["score"]) == ("aborted(sim_failed)", True, None)


@on_loop
async def test_a_silent_agent_holds_up_nobody_else() -> None:
    async with inline(Cards, num_envs=2) as world:
        silent, busy = await world.reset(seed=1), await world.reset(seed=2)
        async with (
            await RobotClient.connect(world.capability(), token=silent.token),
            await RobotClient.connect(world.capability(), token=busy.token) as robot,
        ):
            assert len(await play(robot, 20)) == 21


@on_loop
async def test_the_start_is_a_function_of_the_seed_alone() -> None:
    starts = set()
    for num_envs, before in ((1, 0), (4, 0), (4, 3)):
        async with inline(Cards, num_envs=num_envs, first_slot=-before) as world:
            for seed in range(before):
                await world.reset(seed=seed)
            episode = await world.reset(seed=77)
            async with await RobotClient.connect(world.capability(), token=episode.token) as robot:
                starts.add(fingerprint([await robot.get_observation()])[0])
    assert len(starts) == 1
