"""One agent, called with many runs at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from hudsim.bridge import Episode
from hudsim.bridges.arm import ArmBridge
from hudsim.capability import Capability
from hudsim.contract import Contract
from hudsim.errors import ContractError, LinkLost, PolicyFailed, SimFailed, UnknownName, UsageError
from hudsim.policies.scripted import Scripted
from hudsim.robot.adapter import Adapter
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import ChunkStrategy, OpenLoop, TemporalEnsemble
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.model import Model
from hudsim.robot.spec import Serving, WorldSpec
from tests.asyncrun import on_loop
from tests.robot.worlds import Card, Cards, inline, spawned, spec


@dataclass
class Run:
    """What an agent needs of a run, without an environment behind it."""

    capabilities: dict[str, Capability]
    bindings: dict[str, dict[str, Any]] = field(default_factory=dict)
    agent_config: dict[str, Any] | None = None
    prompt_text: str = ""
    end: Literal["done", "max_steps", "timeout", "error", "lost"] | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def task(self) -> Any:
        return SimpleNamespace(agent_config=self.agent_config)

    @property
    def trace(self) -> Any:
        return SimpleNamespace(now_s=lambda: 1.5)

    async def reach(self, name: str) -> Capability:
        return self.capabilities[name]

    def note(
        self,
        source: str,
        *,
        content: str | None = None,
        data: dict[str, Any] | None = None,
        error: str | None = None,
        started_s: float | None = None,
    ) -> None:
        assert started_s == 1.5
        self.notes.append({"source": source, "content": content, "data": data or {}, "error": error})

    @property
    def noted(self) -> dict[str, Any]:
        """The data of the only step."""
        (step,) = self.notes
        assert step["source"] == "robot"
        data: dict[str, Any] = step["data"]
        return data


async def begun(world: RobotEndpoint, *, seed: int = 0, **more: Any) -> tuple[Run, Episode]:
    """A run whose robot is ``world``, with an episode of it."""
    episode = await world.reset(seed=seed)
    return Run({"robot": world.capability()}, {"robot": {"token": episode.token}}, **more), episode


class Says(Model):
    """The action of world ``w`` is (tick + 1) * 10 + its number of actions, learnt when it is bound."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.weights = np.ones(1000)
        self.prompts: list[str] = []
        self.threads: set[int] = set()
        self._seconds, self._actions = seconds, 0

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        (self._actions,) = contract.action.shape or ()

    def infer(self, batch: Any) -> Array:
        time.sleep(self._seconds)
        self.prompts.extend(batch["prompt"])
        self.threads.add(threading.get_ident())
        tick = batch["observation/state"][:, :1, None] + np.arange(1, 4)[:, None]
        return np.repeat(tick * 10 + self._actions, self._actions, axis=2).astype(np.float32)


class Remembers(Adapter):
    """Adds to each action how many it has seen in this episode."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: list[int] = []

    def reset(self) -> None:
        self.memory.clear()

    def adapt_action(self, action: Array, data: Any) -> Array:
        self.memory.append(1)
        return action + np.float32(len(self.memory) / 100)


def played(bridge: Any, slot: int = 0) -> list[float]:
    """The first number of each action that a test card executed."""
    rows = bridge.executed[slot] if isinstance(bridge, Cards) else bridge.executed
    return [round(float(np.ravel(action)[0]), 2) for action in rows]


@on_loop
async def test_one_agent_plays_many_runs_of_different_worlds_at_once_and_mixes_nothing_up() -> None:
    cards = Cards(num_envs=6, max_ticks=20)
    wide = Card(state=9, max_ticks=20)
    model = Says(seconds=0.001)
    agent = RobotAgent(model, Remembers(), OpenLoop(2))
    async with RobotEndpoint.inline(cards) as six, RobotEndpoint.inline(wide) as one:
        runs = [await begun(six, seed=seed) for seed in range(6)] + [await begun(one)]
        await asyncio.gather(*(agent(run) for run, _ in runs))
        for slot in range(6):
            assert played(cards, slot) == [round(t * 10 + 2 + t / 100, 2) for t in range(1, 21)]
        assert played(wide) == [round(t * 10 + 6 + t / 100, 2) for t in range(1, 21)]
        for run, episode in runs:
            assert (run.noted["episode"], run.noted["ticks"], run.end) == (episode.token, 20, None)
    assert len(model.threads) == 1, "the forks share the model's thread"
    assert model._actions == 0, "the agent itself stays unbound"


def test_a_fork_shares_the_weights_and_nothing_that_an_episode_or_a_world_leaves() -> None:
    model = Says()
    agent = RobotAgent(model, Remembers(), TemporalEnsemble())
    one, two = agent.fork(), agent.fork()
    contract = Card().contract
    for fork in (one, two):
        fork.bind(contract, {})
    assert isinstance(one.model, Says)
    assert isinstance(two.model, Says)
    assert one.model.weights is two.model.weights is model.weights
    assert one.model is not two.model
    assert one.adapter is not two.adapter
    assert one.chunks is not two.chunks
    assert isinstance(two.chunks, TemporalEnsemble)
    one.chunks.add(np.ones((3, 2), np.float32), 0, 0)
    assert two.chunks.last_tick == 0


class Locked(Adapter):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


@on_loop
async def test_an_adapter_that_cannot_be_copied_says_what_to_do() -> None:
    async with inline() as world:
        run, _ = await begun(world)
        with pytest.raises(UsageError, match=r"Locked cannot be copied for another episode: .*override fork\(\)"):
            await RobotAgent(Says(), Locked())(run)


@on_loop
async def test_the_trace_tells_what_came_of_the_episode() -> None:
    async with inline(max_ticks=8, faults={"success_at": [3]}) as world:
        run, episode = await begun(world)
        await RobotAgent(Says())(run)
        record = await world.result(episode.token)
    noted = run.noted
    assert run.notes[0]["content"] == "8 ticks, reward 8, truncated"
    assert {key: noted[key] for key in ("robot", "end", "ticks", "reward", "success", "terminated", "truncated")} == {
        "robot": "robot",
        "end": record["end"],
        "ticks": 8,
        "reward": 8.0,
        "success": True,
        "terminated": False,
        "truncated": True,
    }
    assert noted["seam"] == 10.0
    assert noted["cadence"]["ticks"] == 8
    for stage in ("step", "encode", "wire", "infer"):
        assert noted["cadence"]["stages_us"][stage]["p50"] > 0


@on_loop
async def test_the_policy_is_told_the_runs_prompt_and_without_one_the_worlds() -> None:
    async with inline(max_ticks=3) as world:
        for given, told in (("do as the task says", "do as the task says"), ("", "read the card")):
            model = Says()
            run, episode = await begun(world, prompt_text=given)
            await RobotAgent(model)(run)
            assert set(model.prompts) == {told}
            await world.result(episode.token)


@on_loop
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
async def test_a_limit_ends_the_run_as_such_and_the_tasks_own_goes_first(mode: str) -> None:
    agent = RobotAgent(Says(), max_steps=6)
    async with inline(mode=mode) as world:
        for asked, limit in ((None, 6), ({"max_steps": 4}, 4), ({"timeout_seconds": 9}, 6)):
            run, episode = await begun(world, agent_config=asked)
            await agent(run)
            record = await world.result(episode.token)
            assert (run.end, run.noted["end"], record["end"]) == ("max_steps", "max_steps", "max_steps")
            assert limit <= record["ticks"] <= limit + 5


@on_loop
@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "many"])
async def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match=r"max_steps: got .*, expected a whole number from 1"):
        RobotAgent(Says(), max_steps=limit)
    run = Run({"robot": Capability("robot", "hudsim/1", "ws://127.0.0.1:1")}, agent_config={"max_steps": limit})
    with pytest.raises(UsageError, match="agent_config: max_steps: got"):
        await RobotAgent(Says())(run)


@on_loop
async def test_it_plays_the_robot_that_has_an_episode_for_the_run() -> None:
    async with inline(max_ticks=2) as world:
        episode = await world.reset(seed=0)
        served, here = world.capability(), {"token": episode.token}
        others = {"left": served, "right": served, "shell": Capability("shell", "ssh/2", "ssh://127.0.0.1:1")}
        run = Run(others, {"right": here, "shell": {"token": "x"}})
        await RobotAgent(Says())(run)
        assert run.noted["robot"] == "right"
        await world.result(episode.token)

        with pytest.raises(UsageError, match=r"2 robots: left, right; name .* robot="):
            await RobotAgent(Says())(Run(others))
        with pytest.raises(UnknownName, match="no robot 'wright'; did you mean 'right'"):
            await RobotAgent(Says(), robot="wright")(Run(others))
        with pytest.raises(UsageError, match=r"no robot to be played; its environment serves: shell \(ssh/2\)"):
            await RobotAgent(Says())(Run({"shell": others["shell"]}))

        await world.reset(seed=0)  # the only robot, and the only episode that waits: no token is needed
        only = Run({"robot": served})
        await RobotAgent(Says())(only)
        assert only.noted["ticks"] == 2


class FailsIn(Says):
    """Raises in its method ``where``."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        super().bind(contract, params)
        if self._where == "bind":
            raise KeyError("no such joint")

    def infer(self, batch: Any) -> Array:
        if self._where == "infer":
            raise KeyError("no such joint")
        return super().infer(batch)


class Gap(ChunkStrategy):
    """Never has an action: a strategy with a fault of its own."""

    def due(self, tick: int) -> bool:
        return False


@on_loop
@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (
            RobotAgent(FailsIn("bind")),
            r"the policy raised KeyError: 'no such joint' \(.*test_agent_runs\.py:\d+ in bind\)",
        ),
        (RobotAgent(FailsIn("infer")), r"the policy raised KeyError: .*test_agent_runs\.py:\d+ in infer\)"),
        (RobotAgent(Says(), chunks=Gap()), r"the policy raised LookupError: no action for tick 1.*in action\)"),
    ],
)
async def test_a_policy_that_raises_has_failed_wherever_it_raises(agent: RobotAgent, words: str) -> None:
    async with inline() as world:
        run, episode = await begun(world)
        with pytest.raises(PolicyFailed, match=words):
            await agent(run)
        record = await world.result(episode.token)
    assert (record["end"], record["is_error"], record["score"]) == ("aborted(policy_failed)", False, 0.0)
    assert run.noted["error"] == "policy_failed"
    assert "Traceback" in run.noted["traceback"]


class Demands(Adapter):
    def adapt_chunk(self, chunk: Array, data: Any) -> Array:
        raise ContractError("action", got="what it got", expected="something else")


@on_loop
async def test_what_the_policy_refuses_in_typed_words_is_its_own_doing_too() -> None:
    async with inline() as world:
        run, episode = await begun(world)
        with pytest.raises(ContractError, match="something else"):
            await RobotAgent(Says(), Demands())(run)
        record = await world.result(episode.token)
    assert (record["end"], record["is_error"]) == ("aborted(policy_failed)", False)


@on_loop
async def test_a_world_that_fails_is_its_own_typed_error_and_spares_the_other_runs() -> None:
    agent = RobotAgent(Says())
    async with (
        inline(faults={"raise_at": 3}) as bad,
        inline(max_ticks=30) as good,
    ):
        (broken, _), (whole, _) = await begun(bad), await begun(good)
        results = await asyncio.gather(agent(broken), agent(whole), return_exceptions=True)
    assert isinstance(results[0], SimFailed)
    assert broken.noted["error"] == "sim_failed"
    assert "raises at tick 3" in broken.notes[0]["error"]
    assert (results[1], whole.noted["ticks"]) == (None, 30)


@on_loop
async def test_a_world_that_is_killed_is_a_link_lost_and_nobody_waits() -> None:
    async with spawned(step_s=0.01) as world:
        run, _ = await begun(world)
        playing = asyncio.create_task(RobotAgent(Says())(run))
        await asyncio.sleep(0.3)
        process = world._world._process._popen  # type: ignore[attr-defined]
        os.kill(process.pid, signal.SIGKILL)
        async with asyncio.timeout(5.0):
            with pytest.raises(LinkLost):
                await playing
    assert run.noted["error"] == "link_lost"


@on_loop
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
async def test_a_run_whose_time_is_up_leaves_a_record_that_can_be_graded(mode: str) -> None:
    async with inline(mode=mode, step_s=0.001) as world:
        run, episode = await begun(world)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.4):
                await RobotAgent(Says())(run)
        record = await world.result(episode.token)
    assert (record["end"], record["is_error"]) == ("max_steps", False)
    assert record["ticks"] > 0


@on_loop
async def test_an_inference_that_hangs_does_not_hold_up_the_cancelling() -> None:
    async with inline() as world:
        run, episode = await begun(world)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await RobotAgent(Says(seconds=15.0))(run)
        assert time.monotonic() - began < 5.0
        assert (await world.result(episode.token))["end"] == "max_steps"


@on_loop
async def test_one_expert_does_two_tasks_at_once() -> None:
    agent = RobotAgent(Scripted())
    kinds = [
        WorldSpec("hudsim.bridges.arm:ArmBridge", {"task": task, "cameras": False, "privileged": True})
        for task in ("reach", "lift")
    ]
    async with RobotEndpoint.inline(kinds[0]) as reach, RobotEndpoint.inline(kinds[1]) as lift:
        (one, _), (two, _) = await begun(reach, seed=1), await begun(lift, seed=1)
        await asyncio.gather(agent(one), agent(two))
    assert [run.noted["success"] for run in (one, two)] == [True, True]


def test_an_endpoint_says_how_many_episodes_it_can_hold() -> None:
    assert RobotEndpoint(Card).slots == 1
    assert RobotEndpoint(Card, serving=Serving(num_envs=3)).slots == 3
    assert RobotEndpoint(ArmBridge, num_envs=4, cameras=False).slots == 4
    assert RobotEndpoint.inline(Cards(num_envs=5)).slots == 5
    assert RobotEndpoint.inline(spec(Cards, num_envs=5)).slots == 5
    assert RobotEndpoint.spawn(spec(Card), num_envs=2).slots == 2
    assert RobotEndpoint.spawn(["python", "world.py"], num_envs=2).slots == 2
    assert RobotEndpoint.remote("ws://127.0.0.1:1").slots is None
