from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim import registry
from hudsim.bridges.pendulum import PendulumBridge
from hudsim.contract import Contract
from hudsim.errors import ContractError, UnknownName, UsageError
from hudsim.policies.mpc import Mpc, knots_to_plan
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.run import RunOptions, RunReport, run_episodes
from hudsim.testing import ModelConformance
from tests.asyncrun import within


def _bound(bridge: PendulumBridge, **options: Any) -> Mpc:
    model = Mpc(threads=1, **{"samples": 64, **options})
    model.bind(bridge.contract, bridge.capability_params())
    return model


def _batch(bridge: PendulumBridge, **more: Any) -> dict[str, Any]:
    return {**bridge.get_observation().data, "prompt": [""], **more}


def _ticks_up(seed: int, ticks: int, *, least: int, most: int) -> int:
    """How long the pole stays up if each plan takes ``least`` to ``most`` ticks, as a realtime loop would run it.

    The expected delay is the longest seen so far; while a plan is made, the one before it goes on being executed.
    """
    bridge = PendulumBridge(cameras=False, privileged=True, max_ticks=ticks)
    model, rng = _bound(bridge), np.random.default_rng(seed)
    bridge.reset(seed=seed)
    plan: list[Any] = []
    coming: tuple[int, int, Any] | None = None
    expected = 0
    for tick in range(ticks):
        shown = bridge.get_observation()
        if shown.terminated is not None and shown.terminated[0]:
            return tick
        if coming is None:
            delay = int(rng.integers(least, most + 1)) if tick else 0
            more = {"unexecuted_chunk": np.array([plan])} if plan else {}
            chunk = model.infer(_batch(bridge, delay=expected, **more))[0]
            coming, expected = (tick + delay, tick, chunk), max(expected, delay)
        if coming[0] == tick:
            plan, coming = list(coming[2][tick - coming[1] :]), None
        bridge.step(plan.pop(0)[np.newaxis] if plan else np.zeros((1, 1), np.float32))
    success = bridge.get_observation().success
    assert success is not None
    return ticks if success[0] else 0


@pytest.mark.parametrize(("seed", "least", "most"), [(0, 0, 1), (3, 2, 5), (4, 5, 5)])
def test_the_pole_stays_up_although_each_plan_comes_ticks_late(seed: int, least: int, most: int) -> None:
    assert _ticks_up(seed, 250, least=least, most=most) == 250


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("least", "most"), [(2, 2), (2, 5), (5, 5)])
def test_it_stays_up_a_thousand_ticks_on_ten_of_ten_seeds(least: int, most: int) -> None:
    assert [_ticks_up(seed, 1000, least=least, most=most) for seed in range(10)] == [1000] * 10


def test_what_will_be_executed_meanwhile_stands_first_and_unchanged() -> None:
    bridge = PendulumBridge(cameras=False, privileged=True)
    bridge.reset(seed=0)
    model = _bound(bridge, horizon=10)
    ahead = np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 6, 1)
    chunk = model.infer(_batch(bridge, unexecuted_chunk=ahead, delay=4))
    assert chunk.shape == (1, 14, 1)
    assert chunk.dtype == np.float32
    assert np.array_equal(chunk[0, :4], ahead[0, :4])
    longer = model.infer(_batch(bridge, unexecuted_chunk=ahead, delay=8))
    assert longer[0, :8, 0].tolist() == [*ahead[0, :, 0].tolist(), 0, 0]  # a starved motor is at zero


def test_a_plan_is_a_function_of_its_batch() -> None:
    bridge = PendulumBridge(cameras=False, privileged=True)
    bridge.reset(seed=0)
    model, other = _bound(bridge), _bound(bridge, seed=1)
    first = model.infer(_batch(bridge))
    assert np.array_equal(first, model.infer(_batch(bridge)))
    assert not np.array_equal(first, other.infer(_batch(bridge)))
    physics = np.repeat(bridge.get_observation().data["observation/physics"], 2, axis=0)
    assert np.array_equal(model.infer({"observation/physics": physics})[1], first[0])


def test_plans_keep_the_limits_and_better_the_one_in_hand() -> None:
    bridge = PendulumBridge(cameras=False, privileged=True)
    bridge.reset(seed=1)
    wild = _bound(bridge, noise=3.0, knots=25)
    assert np.abs(wild.infer(_batch(bridge, unexecuted_chunk=np.full((1, 25, 1), 2.9)))).max() <= 3.0
    model = _bound(bridge)
    state = bridge.get_observation().data["observation/physics"][0]
    chunk = model.infer(_batch(bridge))[0].astype(np.float64)
    costs = model._price(state, np.stack([np.zeros_like(chunk), chunk]))
    assert costs[1] < costs[0]


def test_a_future_that_diverges_costs_infinitely_much() -> None:
    bridge = PendulumBridge(cameras=False, privileged=True)
    bridge.reset(seed=0)
    model = _bound(bridge, cost=lambda model, states, actions: np.zeros(len(states)))
    state = bridge.get_observation().data["observation/physics"][0]
    plans = np.zeros((2, 25, 1))
    assert model._price(state, plans).tolist() == [0.0, 0.0]
    assert model._price(np.concatenate([state[:-1], [1e12]]), plans).tolist() == [np.inf, np.inf]


def test_knots_are_joined_by_straight_lines() -> None:
    plan = knots_to_plan(np.array([[[0.0], [2.0], [0.0]]]), 5)
    assert plan[0, :, 0].tolist() == [0.0, 1.0, 2.0, 1.0, 0.0]


def test_a_world_that_it_cannot_plan_for_is_refused_with_what_is_missing() -> None:
    seen, params = PendulumBridge(cameras=False, privileged=True).contract, PendulumBridge(cameras=False)
    offered = params.capability_params()
    with pytest.raises(UsageError, match="needs the world's MJCF"):
        Mpc().bind(seen, {})
    with pytest.raises(UsageError, match=r"observation/physics.*there are: observation/state"):
        Mpc().bind(params.contract, offered)
    with pytest.raises(UsageError, match="names none; give one with cost="):
        Mpc().bind(seen, {"model": offered["model"]})
    with pytest.raises(UnknownName, match=r"no cost 'inverted'.*inverted_pendulum"):
        Mpc(cost="inverted").bind(seen, offered)
    two = offered["model"].replace("</actuator>", '<motor name="more" joint="pole"/></actuator>')
    with pytest.raises(ContractError, match="2 actuators"):
        Mpc().bind(seen, {**offered, "model": two})
    with pytest.raises(UsageError, match="samples 1"):
        Mpc(samples=1)


class TestConformance(ModelConformance):
    params = PendulumBridge(cameras=False).capability_params()

    def make_model(self) -> Mpc:
        return Mpc(threads=1, samples=64)

    def make_contract(self) -> Contract:
        return PendulumBridge(cameras=False, privileged=True).contract


async def _report(seed: int) -> RunReport:
    world = registry.world("pendulum", {"max_ticks": 400}, privileged=True, cameras=False)
    agent = registry.policy("mpc").agent()
    async with RobotEndpoint.spawn(world, mode="realtime") as endpoint:
        return await run_episodes(endpoint, agent, RunOptions(seed=seed), world="pendulum", policy="mpc")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_plans_that_take_several_ticks_keep_the_pendulum_up_in_realtime() -> None:
    reports: list[RunReport] = []

    async def play() -> None:
        reports.append(await _report(seed=3))

    for _ in range(3):  # other work on the machine may spoil one run
        within(40.0, play())
        if reports[-1].success_rate == 1.0:
            break
    report = reports[-1]
    assert report.episodes[0].record["end"] == "truncated"
    assert report.cadence.stages["infer"].quantile(0.5) > 20e6, "more than a tick of 20 ms"
    assert report.cadence.age_ticks.max >= 2
