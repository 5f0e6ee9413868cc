"""One model for many agents: what shares a call, what each gets of it, and who fails in a call that does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from hudsim.contract import Contract
from hudsim.errors import PolicyFailed, UsageError
from hudsim.policies.random_actions import RandomActions
from hudsim.robot.adapter import Adapter
from hudsim.robot.agent import RobotAgent
from hudsim.robot.batched import BatchedModel
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import OpenLoop, RealTimeChunking
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.model import Model
from hudsim.testing import ModelConformance
from tests.asyncrun import on_loop
from tests.robot.test_agent_runs import Says, begun, played
from tests.robot.worlds import Card, Cards


class Doubles(Model):
    """A chunk of two ticks: x and 2 x. A call waits while the gate is shut; a negative x is more than it can take."""

    def __init__(self) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()
        self.calls: list[dict[str, Any]] = []
        self.threads: set[int] = set()

    def infer(self, batch: Mapping[str, Any]) -> Array:
        self.calls.append(dict(batch))
        self.threads.add(threading.get_ident())
        self.entered.set()
        assert self.gate.wait(20)
        if (batch["x"] < 0).any():
            raise ArithmeticError("a root of a negative number")
        return np.stack([batch["x"], 2 * batch["x"]], axis=1)

    @property
    def sizes(self) -> list[int]:
        return [len(call["x"]) for call in self.calls]


def row(value: float, **more: Any) -> dict[str, Any]:
    return {"x": np.array([[value]], np.float32), "prompt": [f"go to {value:g}"], **more}


@asynccontextmanager
async def gathered(
    doubles: Doubles, model: BatchedModel, batches: list[Any]
) -> AsyncIterator[list[asyncio.Task[Array]]]:
    """A question for each of ``batches``, by a fork each, asked while another call runs; inside, all still wait."""
    doubles.gate.clear()
    doubles.entered.clear()
    first = asyncio.ensure_future(model.fork().ainfer(row(0)))
    assert await asyncio.to_thread(doubles.entered.wait, 20)
    asked = [asyncio.ensure_future(model.fork().ainfer(batch)) for batch in batches]
    await asyncio.sleep(0)
    yield asked
    doubles.gate.set()
    await first
    await asyncio.wait(asked)


@on_loop
async def test_rows_of_many_agents_go_in_one_call_and_each_has_its_own_back() -> None:
    doubles = Doubles()
    model = BatchedModel(doubles)
    async with gathered(doubles, model, [row(n) for n in range(1, 6)]) as asked:
        pass
    assert doubles.sizes == [1, 5]
    assert doubles.calls[1]["prompt"] == [f"go to {n}" for n in range(1, 6)]
    for n, task in enumerate(asked, 1):
        np.testing.assert_array_equal(task.result(), [[[n], [2 * n]]])
    assert len(doubles.threads) == 1
    assert doubles.threads != {threading.get_ident()}


class SameArray(Model):
    """Answers in one array that it keeps, as a graph on a GPU does."""

    def __init__(self) -> None:
        self._out = np.zeros((1, 2, 1), np.float32)

    def infer(self, batch: Mapping[str, Any]) -> Array:
        self._out[:] = batch["x"][:, None]
        return self._out


@pytest.mark.parametrize("made", [SameArray, lambda: BatchedModel(SameArray())])
@on_loop
async def test_an_answer_is_the_askers_own_whatever_the_model_does_with_its_array(made: Callable[[], Model]) -> None:
    model = made()
    answers = [await model.fork().ainfer(row(n)) for n in range(3)]
    assert [answer.ravel().tolist() for answer in answers] == [[n, n] for n in range(3)]


@on_loop
async def test_no_call_has_more_rows_than_it_may() -> None:
    doubles = Doubles()
    async with gathered(doubles, BatchedModel(doubles, max_batch=2), [row(n) for n in range(5)]):
        pass
    assert doubles.sizes == [1, 2, 2, 1]


@on_loop
async def test_batches_of_other_features_shapes_or_plain_values_go_apart() -> None:
    doubles = Doubles()
    rest = np.zeros((1, 3, 1), np.float32)
    batches = [
        row(1),
        row(2, delay=2, unexecuted_chunk=rest),
        row(3, delay=2, unexecuted_chunk=rest),
        row(4, delay=3, unexecuted_chunk=rest),
        row(5, delay=2, unexecuted_chunk=rest[:, :2]),
        row(6, delay=0),
        {**row(7), "x": np.full((1, 1), 7.0)},
        row(8),
    ]
    async with gathered(doubles, BatchedModel(doubles), batches) as asked:
        pass
    assert [float(task.result()[0, 0, 0]) for task in asked] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [call["x"][:, 0].tolist() for call in doubles.calls[1:]] == [[1, 8], [2, 3], [4], [5], [6], [7]]
    assert doubles.calls[2]["delay"] == 2
    assert doubles.calls[2]["unexecuted_chunk"].shape == (2, 3, 1)


@on_loop
async def test_a_batch_may_hold_mappings_and_several_rows() -> None:
    doubles = Doubles()
    inner = {"camera": np.zeros((2, 4, 4, 3), np.uint8), "names": ("a", "b")}
    two = {"x": np.array([[1.0], [2.0]], np.float32), "prompt": ["p", "q"], "images": inner}
    one = {**row(3), "images": {"camera": np.ones((1, 4, 4, 3), np.uint8), "names": ["c"]}}
    async with gathered(doubles, BatchedModel(doubles), [two, one]) as asked:
        pass
    assert doubles.sizes == [1, 3]
    assert asked[0].result()[:, 0, 0].tolist() == [1, 2]
    assert asked[1].result()[:, 0, 0].tolist() == [3]
    assert doubles.calls[1]["images"]["camera"].shape == (3, 4, 4, 3)
    assert doubles.calls[1]["images"]["names"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.zeros((1, 2)), "a batch of ndarray: only mappings"),
        (row(1, camera=object()), r"camera: got a object; expected an array \[N, …\], a list of N or a plain value"),
        (row(1, images={"left": {1}}), "images/left: got a set"),
        (row(1, y=np.zeros((2, 3))), "got x: 1, prompt: 1, y: 2; expected a number from 1"),
        ({"x": np.zeros((0, 3))}, "got x: 0"),
        ({"delay": 1}, "got none"),
    ],
)
@on_loop
async def test_a_batch_whose_rows_cannot_share_a_call_is_refused(batch: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        await BatchedModel(Doubles()).ainfer(batch)


@on_loop
async def test_an_agent_that_is_cancelled_is_in_no_call() -> None:
    doubles = Doubles()
    async with gathered(doubles, BatchedModel(doubles), [row(1), row(2), row(3)]) as asked:
        asked[1].cancel()
        await asyncio.sleep(0)
    assert [call["x"][:, 0].tolist() for call in doubles.calls[1:]] == [[1, 3]]
    assert asked[1].cancelled()
    assert asked[2].result()[0, 0, 0] == 3


@on_loop
async def test_an_agent_that_is_cancelled_during_its_call_takes_nothing_from_the_others() -> None:
    doubles = Doubles()
    model = BatchedModel(doubles)
    async with gathered(doubles, model, [row(1)]) as asked:
        pass
    doubles.gate.clear()
    doubles.entered.clear()
    one = asyncio.ensure_future(model.fork().ainfer(row(1)))
    assert await asyncio.to_thread(doubles.entered.wait, 20)
    other = asyncio.ensure_future(model.fork().ainfer(row(2)))
    one.cancel()
    await asyncio.wait({one})
    doubles.gate.set()
    assert (await other)[0, 0, 0] == 2
    assert one.cancelled()
    assert asked[0].result()[0, 0, 0] == 1


@on_loop
async def test_one_row_that_the_model_cannot_take_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    doubles = Doubles()
    async with gathered(doubles, BatchedModel(doubles), [row(1), row(-2), row(3)]) as asked:
        pass
    assert doubles.sizes == [1, 3, 1, 1, 1], "each is tried again, once"
    assert [task.result()[0, 0, 0] for task in (asked[0], asked[2])] == [1, 3]
    with pytest.raises(ArithmeticError, match="a root of a negative number"):
        asked[1].result()
    assert "a call of 3 rows raised ArithmeticError; each agent's are tried alone" in caplog.text


class OneRow(Doubles):
    """Answers as if there were one row."""

    def infer(self, batch: Mapping[str, Any]) -> Array:
        return super().infer(batch)[:1]


class Listed(Doubles):
    def infer(self, batch: Mapping[str, Any]) -> Any:
        return super().infer(batch).tolist()


@pytest.mark.parametrize(
    ("doubles", "got"), [(OneRow(), r"float32\[1, 2, 1\] for a batch of 2 rows"), (Listed(), "a list for a batch of 2")]
)
@on_loop
async def test_a_model_that_gives_no_row_for_each_fails_all_of_the_call(doubles: Doubles, got: str) -> None:
    model = BatchedModel(doubles)
    if isinstance(doubles, Listed):
        with pytest.raises(PolicyFailed, match="got a list for a batch of 1 rows"):
            await model.ainfer(row(0))
        return
    async with gathered(doubles, model, [row(1), row(2)]) as asked:
        pass
    assert doubles.sizes == [1, 2], "it is not one row's fault"
    for task in asked:
        with pytest.raises(PolicyFailed, match=rf"infer: got {got}, expected an array \[2, T, …\]"):
            task.result()


@on_loop
async def test_closing_ends_all_that_wait_also_for_the_call_under_way() -> None:
    doubles = Doubles()
    model = BatchedModel(doubles)
    doubles.gate.clear()
    asked = [asyncio.ensure_future(model.fork().ainfer(row(1)))]
    assert await asyncio.to_thread(doubles.entered.wait, 20)
    asked.append(asyncio.ensure_future(model.fork().ainfer(row(2))))
    await asyncio.sleep(0)
    model.close()
    model.close()
    for task in asked:
        with pytest.raises(PolicyFailed, match="the batched model has been closed"):
            await task
    with pytest.raises(PolicyFailed, match="closed"):
        await model.fork().ainfer(row(3))
    doubles.gate.set()


def test_threads_ask_as_loops_do() -> None:
    doubles = Doubles()
    model = BatchedModel(doubles)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: model.fork().infer(row(n)), range(50)))
    assert [float(answer[0, 1, 0]) for answer in answers] == [2.0 * n for n in range(50)]
    assert sum(doubles.sizes) == 50
    assert len(doubles.threads) == 1


class Remembers(Model):
    def fork(self) -> Self:
        return super().fork()

    def infer(self, batch: Any) -> Array:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (RandomActions(), {}, "RandomActions has a fork of its own, .* cannot share a call"),
        (Remembers(), {}, "Remembers has a fork of its own"),
        (BatchedModel(Doubles()), {}, "BatchedModel has a fork of its own"),
        (Doubles, {}, "model: got the class Doubles, expected a hudsim Model"),
        (Doubles(), {"max_batch": 0}, "max_batch: got 0, expected a whole number, at least 1"),
        (Doubles(), {"max_wait_s": -0.1}, "max_wait_s: got -0.1, expected seconds from 0, or None"),
        (Doubles(), {"max_wait_s": float("nan")}, "max_wait_s: got nan"),
    ],
)
def test_what_cannot_be_batched_is_refused(model: Any, options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BatchedModel(model, **options)


class Bound(Doubles):
    """Learns the world."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[Mapping[str, Any]] = []

    def bind(self, contract: Contract, params: Mapping[str, Any]) -> None:
        self.bound.append(params)


@pytest.mark.parametrize(("kind", "sizes"), [(Bound, [1, 2, 1]), (Doubles, [1, 3])])
@on_loop
async def test_agents_in_equal_worlds_share_calls_and_in_any_if_the_model_learns_none(
    kind: type[Doubles], sizes: list[int]
) -> None:
    doubles = kind()
    model = BatchedModel(doubles)
    forks = [model.fork() for _ in range(3)]
    for fork, task in zip(forks, ("lift", "push", "lift"), strict=True):
        fork.bind(Card().contract, {"task": task})
    doubles.gate.clear()
    first = asyncio.ensure_future(model.ainfer(row(0)))
    assert await asyncio.to_thread(doubles.entered.wait, 20)
    asked = [asyncio.ensure_future(fork.ainfer(row(n))) for n, fork in enumerate(forks)]
    await asyncio.sleep(0)
    doubles.gate.set()
    assert [float((await task)[0, 0, 0]) for task in asked] == [0, 1, 2]
    await first
    assert doubles.sizes == sizes
    if isinstance(doubles, Bound):
        assert doubles.bound == [{"task": "lift"}, {"task": "push"}], "one for each world"


@on_loop
async def test_what_a_model_needs_to_see_it_needs_batched() -> None:
    class Sees(Doubles):
        needs_privileged = True

    assert BatchedModel(Sees()).needs_privileged
    assert BatchedModel(Sees()).fork().needs_privileged
    assert RobotAgent(BatchedModel(Sees())).adapter.privileged
    assert not BatchedModel(Doubles()).needs_privileged


class Tallies(Adapter):
    """Counts the observations that were adapted, all forks' together."""

    tally: ClassVar[list[int]] = []

    def adapt_observation(self, data: Mapping[str, Array], prompt: str) -> Any:
        self.tally.append(1)
        return super().adapt_observation(data, prompt)


class Counts(Says):
    """Notes how many rows each call had, and which features. The first waits until seven agents have asked."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def infer(self, batch: Any) -> Array:
        deadline = time.monotonic() + 20
        while len(Tallies.tally) < 7 and time.monotonic() < deadline:
            time.sleep(0.001)
        self.sizes.append(len(batch["prompt"]))
        return super().infer(batch)


@on_loop
async def test_agents_in_real_worlds_share_calls_and_mix_nothing_up() -> None:
    Tallies.tally.clear()
    cards, wide, model = Cards(num_envs=6, max_ticks=20), Card(state=9, max_ticks=20), Counts()
    agent = RobotAgent(BatchedModel(model), Tallies(), OpenLoop(2))
    async with RobotEndpoint.inline(cards) as six, RobotEndpoint.inline(wide) as one:
        runs = [await begun(six, seed=seed) for seed in range(6)] + [await begun(one)]
        await asyncio.gather(*(agent(run) for run, _ in runs))
    for slot in range(6):
        assert played(cards, slot) == [tick * 10 + 2 for tick in range(1, 21)]
    assert played(wide) == [tick * 10 + 6 for tick in range(1, 21)]
    assert sum(model.sizes) == 70, "ten chunks each"
    assert max(model.sizes) >= 2, "while the first call waits, those who are not in it gather"
    assert len(model.threads) == 1


class FailsAt(Says):
    """Raises at tick 4 of the second world (the test card shows its slot)."""

    def infer(self, batch: Any) -> Array:
        if ((batch["observation/state"][:, 0] == 4) & (np.array(batch["prompt"]) == "poison")).any():
            raise ValueError("no such pose")
        return super().infer(batch)


@on_loop
async def test_a_run_whose_rows_the_model_cannot_take_fails_and_the_others_go_on() -> None:
    cards = Cards(num_envs=4, max_ticks=12)
    agent = RobotAgent(BatchedModel(FailsAt(seconds=0.002)), chunks=OpenLoop(2))
    async with RobotEndpoint.inline(cards) as world:
        runs = [(await begun(world, seed=n, prompt_text="poison" if n == 1 else "well"))[0] for n in range(4)]
        ends = await asyncio.gather(*(agent(run) for run in runs), return_exceptions=True)
    assert [type(end) for end in ends] == [type(None), PolicyFailed, type(None), type(None)]
    error = ends[1]
    assert isinstance(error, PolicyFailed)
    assert "ValueError: no such pose" in error.message
    assert "in infer" in error.data["traceback"]
    for slot in (0, 2, 3):
        assert len(played(cards, slot)) == 12


class Still(Model):
    """Zeros for 16 ticks; notes the features of each call."""

    def __init__(self) -> None:
        self.keys: list[set[str]] = []

    def infer(self, batch: Any) -> Array:
        self.keys.append(set(batch))
        return np.zeros((len(batch["prompt"]), 16, 2), np.float32)


@on_loop
async def test_in_realtime_each_agents_rows_carry_its_own_plan_which_is_absent_at_first() -> None:
    model = Still()
    agent = RobotAgent(BatchedModel(model), chunks=RealTimeChunking(2))
    async with RobotEndpoint.inline(Cards(num_envs=3, max_ticks=30, timing={"mode": "realtime"})) as world:
        runs = [await begun(world, seed=seed) for seed in range(3)]
        await asyncio.gather(*(agent(run) for run, _ in runs))
    for run, _ in runs:
        assert run.noted["ticks"] == 30
    assert all("delay" in keys for keys in model.keys)
    assert {"unexecuted_chunk" in keys for keys in model.keys} == {True, False}


class TestBatched(ModelConformance):
    """As any model; ``Says`` has a number of its own world in each action."""

    def make_model(self) -> Model:
        return BatchedModel(Says())

    def make_contract(self) -> Contract:
        return Contract.load(
            {
                "schema": "hudsim/1",
                "features": {
                    "observation/state": {"role": "observation", "dtype": "float32", "shape": [3]},
                    "action": {"role": "action", "dtype": "float32", "shape": [2]},
                },
            }
        )
