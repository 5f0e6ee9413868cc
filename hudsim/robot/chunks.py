"""Chunk strategies: which actions are executed out of the chunks that a policy infers.

All count ticks as the wire does: tick n executes action n and yields observation n, so a chunk inferred from
observation i begins with the action for tick i + 1. None knows a clock.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Self

import numpy as np

from hudsim.errors import UnknownName, UsageError
from hudsim.robot.bridge import Array

__all__ = [
    "ChunkStrategy",
    "Interpolated",
    "OpenLoop",
    "RealTimeChunking",
    "RecedingHorizon",
    "TemporalEnsemble",
    "make_chunks",
]


class ChunkStrategy(ABC):
    """A plan of actions over ticks, renewed by each chunk.

    seam
        The largest step (in the action's own units, over its dimensions) from the last action of an old chunk
        to the first of the one that took its place; nan before there was one.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the last episode."""
        self.seam = float("nan")
        self._plan: Array | None = None
        self._obs_index = -1

    def fork(self) -> Self:
        """The same strategy for one more episode at the same time: a deep copy."""
        return copy.deepcopy(self)

    @abstractmethod
    def due(self, tick: int) -> bool:
        """Whether to infer from observation ``tick`` now."""

    def context(self, tick: int) -> dict[str, Any]:
        """What the model is told beside observation ``tick``: nothing, unless it is to fit its chunk to the plan."""
        return {}

    def add(self, chunk: Array, obs_index: int, tick: int) -> None:
        """Take a chunk [T, *action shape] inferred from ``obs_index``, while ``tick`` is the newest observation."""
        before, after = self.at(tick), None
        self._plan, self._obs_index = self._joined(chunk, obs_index), obs_index
        after = self.at(tick + 1)
        if before is not None and after is not None:
            step = float(np.max(np.abs(np.subtract(after, before, dtype=np.float64)), initial=0.0))
            self.seam = step if np.isnan(self.seam) else max(self.seam, step)

    def action(self, tick: int) -> Array:
        """The action for ``tick``. Raises :class:`LookupError` if the plan does not reach it."""
        action = self.at(tick)
        if action is None:
            raise LookupError(f"no action for tick {tick}: the plan reaches {self.last_tick}")
        return action

    def rest(self, tick: int) -> Array:
        """The plan after ``tick``, [T', *action shape]; T' may be 0."""
        assert self._plan is not None
        rest: Array = self._plan[max(0, tick - self._obs_index) :]
        return rest

    @property
    def last_tick(self) -> int:
        """The last tick that the plan has an action for; 0 without a plan."""
        return 0 if self._plan is None else self._obs_index + len(self._plan)

    def _joined(self, chunk: Array, obs_index: int) -> Array:
        """The new plan from ``obs_index`` + 1 on."""
        return chunk

    def at(self, tick: int) -> Array | None:
        """The action for ``tick``; None if the plan has none."""
        row = tick - 1 - self._obs_index
        if self._plan is None or not 0 <= row < len(self._plan):
            return None
        action: Array = self._plan[row]
        return action


class OpenLoop(ChunkStrategy):
    """Execute a chunk to its end (or its first ``length`` actions), then infer the next.

    In realtime the world starves while that inference runs.
    """

    def __init__(self, length: int | None = None) -> None:
        self._length = _positive("length", length)
        super().__init__()

    def due(self, tick: int) -> bool:
        return tick >= self.last_tick

    def _joined(self, chunk: Array, obs_index: int) -> Array:
        return chunk[: self._length]


class RecedingHorizon(ChunkStrategy):
    """Infer anew once ``horizon`` ticks have passed since the last chunk's observation; the newest chunk wins.

    ``horizon`` None: half of the chunk. What is left of the old chunk covers the time of the inference.
    """

    def __init__(self, horizon: int | None = None) -> None:
        self._horizon = _positive("horizon", horizon)
        super().__init__()

    def due(self, tick: int) -> bool:
        if self._plan is None or tick >= self.last_tick:
            return True
        return tick - self._obs_index >= (self._horizon or max(1, len(self._plan) // 2))


class TemporalEnsemble(ChunkStrategy):
    """Infer at every tick; execute the weighted mean of all chunks' actions for it.

    The weight of the k-th oldest of them is exp(-m k), k = 0 for the oldest (Zhao et al. 2023, *Learning
    Fine-Grained Bimanual Manipulation with Low-Cost Hardware*, §IV-A). m > 0 favours the old.
    """

    def __init__(self, m: float = 0.01) -> None:
        self._m = m
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._chunks: deque[tuple[int, Array]] = deque()

    def due(self, tick: int) -> bool:
        return self._plan is None or tick > self._obs_index

    def _joined(self, chunk: Array, obs_index: int) -> Array:
        if not np.issubdtype(chunk.dtype, np.floating):
            raise UsageError(f"temporal ensembling averages actions, and {chunk.dtype} ones have no mean")
        self._chunks.append((obs_index, chunk))
        while self._chunks[0][0] + len(self._chunks[0][1]) <= obs_index:
            self._chunks.popleft()
        total = np.zeros(chunk.shape, dtype=np.float64)
        weights = np.zeros((len(chunk),) + (1,) * (chunk.ndim - 1))
        ranks = np.zeros(len(chunk), dtype=np.int64)  # how many older chunks reach each tick
        for first, older in self._chunks:
            rows = older[obs_index - first :][: len(chunk)]
            weight = np.exp(-self._m * ranks[: len(rows)]).reshape((len(rows),) + (1,) * (chunk.ndim - 1))
            total[: len(rows)] += weight * rows
            weights[: len(rows)] += weight
            ranks[: len(rows)] += 1
        joined: Array = (total / weights).astype(chunk.dtype)
        return joined


class RealTimeChunking(RecedingHorizon):
    """A receding horizon whose model is told what will be executed meanwhile, so that its chunk fits on.

    The model's batch gets ``delay`` (ticks expected to pass before the chunk takes effect: the longest of the
    last ``memory`` inferences) and ``unexecuted_chunk`` [1, T', *action shape]; its first ``delay`` actions should
    be those (Black et al. 2025, *Real-Time Execution of Action Chunking Flow Policies*).
    """

    def __init__(self, horizon: int | None = None, *, memory: int = 10) -> None:
        self._memory = memory
        super().__init__(horizon)

    def reset(self) -> None:
        super().reset()
        self._delays: deque[int] = deque(maxlen=self._memory)

    def context(self, tick: int) -> dict[str, Any]:
        context: dict[str, Any] = {"delay": max(self._delays, default=0)}
        if self._plan is not None and len(rest := self.rest(tick)):
            context["unexecuted_chunk"] = rest[np.newaxis]
        return context

    def add(self, chunk: Array, obs_index: int, tick: int) -> None:
        super().add(chunk, obs_index, tick)
        self._delays.append(tick - obs_index)


class Interpolated(ChunkStrategy):
    """For a policy whose chunk runs at ``policy_rate_hz`` in a world at ``control_rate_hz``.

    Row k of the policy's chunk is reached (k + 1) / policy_rate_hz after the observation; the ticks between are
    interpolated linearly, from the action executed last.
    """

    def __init__(self, inner: ChunkStrategy, *, policy_rate_hz: float, control_rate_hz: float) -> None:
        self._inner = inner
        self._ratio = control_rate_hz / policy_rate_hz
        super().__init__()

    def reset(self) -> None:
        self._inner.reset()
        super().reset()

    def due(self, tick: int) -> bool:
        return self._inner.due(tick)

    def context(self, tick: int) -> dict[str, Any]:
        return self._inner.context(tick)

    def add(self, chunk: Array, obs_index: int, tick: int) -> None:
        if not np.issubdtype(chunk.dtype, np.floating):
            raise UsageError(f"interpolation needs float actions, got {chunk.dtype}")
        start = self._inner.at(obs_index)
        rows = np.concatenate([(chunk[0] if start is None else start)[np.newaxis], chunk])
        ticks = max(1, int(len(chunk) * self._ratio + 1e-9))
        position = np.minimum(np.arange(1, ticks + 1) / self._ratio, len(chunk))
        below = np.minimum(position.astype(np.int64), len(chunk) - 1)
        share = (position - below).reshape((-1,) + (1,) * (chunk.ndim - 1))
        fine = rows[below] * (1 - share) + rows[below + 1] * share
        self._inner.add(fine.astype(chunk.dtype), obs_index, tick)
        self.seam = self._inner.seam

    def action(self, tick: int) -> Array:
        return self._inner.action(tick)

    def rest(self, tick: int) -> Array:
        return self._inner.rest(tick)

    @property
    def last_tick(self) -> int:
        return self._inner.last_tick


def make_chunks(name: str, length: int | None = None) -> ChunkStrategy:
    """The strategy called ``name``; ``length`` is its chunk length or horizon in ticks (None: its own)."""
    if name == "ensemble":
        if length is not None:
            raise UsageError("ensemble infers at every tick and executes all chunks' actions; it takes no length")
        return TemporalEnsemble()
    strategies = {"open-loop": OpenLoop, "receding": RecedingHorizon, "rtc": RealTimeChunking}
    if name not in strategies:
        raise UnknownName("chunk strategy", name, [*strategies, "ensemble"])
    return strategies[name](length)


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise UsageError(f"{name}: got {value}, expected at least 1")
    return value
