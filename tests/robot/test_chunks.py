"""Which of a policy's actions are executed, by each strategy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudsim.errors import UnknownName, UsageError
from hudsim.robot.bridge import Array
from hudsim.robot.chunks import (
    ChunkStrategy,
    Interpolated,
    OpenLoop,
    RealTimeChunking,
    RecedingHorizon,
    TemporalEnsemble,
    make_chunks,
)


def ramp(index: int, length: int) -> Array:
    """The chunk of the policy a[t] = t inferred from observation ``index``."""
    return np.arange(index + 1, index + 1 + length, dtype=np.float64).reshape(-1, 1)


def lockstep(chunks: ChunkStrategy, length: int, ticks: int) -> tuple[list[float], list[int]]:
    """What is executed tick by tick, and the observations that were inferred from."""
    executed, inferred = [], []
    for tick in range(ticks):
        if chunks.due(tick):
            inferred.append(tick)
            chunks.add(ramp(tick, length), tick, tick)
        executed.append(float(chunks.action(tick + 1)[0]))
    return executed, inferred


STRATEGIES: list[Any] = [
    OpenLoop,
    RecedingHorizon,
    lambda: RecedingHorizon(1),
    lambda: RecedingHorizon(3),
    TemporalEnsemble,
    RealTimeChunking,
]


@pytest.mark.parametrize("make", STRATEGIES)
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_a_ramp_comes_out_as_a_ramp(make: Any, length: int) -> None:
    executed, _ = lockstep(make(), length, 30)
    np.testing.assert_allclose(executed, np.arange(1, 31), rtol=1e-12)


def test_open_loop_infers_once_a_chunk_and_executes_all_of_it() -> None:
    assert lockstep(OpenLoop(), 5, 15)[1] == [0, 5, 10]
    assert lockstep(OpenLoop(3), 5, 9)[1] == [0, 3, 6]
    assert lockstep(OpenLoop(9), 5, 10)[1] == [0, 5]


def test_a_receding_horizon_infers_every_h_ticks() -> None:
    assert lockstep(RecedingHorizon(2), 8, 8)[1] == [0, 2, 4, 6]
    assert lockstep(RecedingHorizon(), 8, 12)[1] == [0, 4, 8]
    assert lockstep(RecedingHorizon(), 1, 3)[1] == [0, 1, 2]
    assert lockstep(RecedingHorizon(7), 3, 7)[1] == [0, 3, 6]


def test_a_temporal_ensemble_is_the_weighted_mean_by_definition() -> None:
    m, length = 0.3, 4
    ensemble, rng = TemporalEnsemble(m), np.random.default_rng(0)
    chunks = {tick: rng.standard_normal((length, 2)) for tick in range(9)}
    for tick in range(9):
        assert ensemble.due(tick)
        ensemble.add(chunks[tick], tick, tick)
        reach = [chunks[first][tick - first] for first in range(max(0, tick - length + 1), tick + 1)]
        weights = np.exp(-m * np.arange(len(reach)))
        wanted = sum(w * row for w, row in zip(weights, reach, strict=True)) / weights.sum()
        np.testing.assert_allclose(ensemble.action(tick + 1), wanted, rtol=1e-12)


def test_averaging_and_interpolation_need_numbers_that_have_a_mean() -> None:
    with pytest.raises(UsageError, match="int64"):
        TemporalEnsemble().add(np.zeros((2, 1), np.int64), 0, 0)
    with pytest.raises(UsageError, match="int64"):
        Interpolated(OpenLoop(), policy_rate_hz=10, control_rate_hz=50).add(np.zeros((2, 1), np.int64), 0, 0)


def test_real_time_chunking_tells_the_model_what_will_be_executed_meanwhile() -> None:
    chunks = RealTimeChunking(2)
    assert chunks.context(0) == {"delay": 0}
    chunks.add(ramp(0, 6), 0, 0)
    chunks.add(ramp(2, 6), 2, 5)
    context = chunks.context(5)
    assert context["delay"] == 3, "the longest of the last inferences"
    assert context["unexecuted_chunk"][0, :, 0].tolist() == [6.0, 7.0, 8.0]


def test_a_late_chunk_begins_at_the_tick_it_arrives_at() -> None:
    chunks = RecedingHorizon(2)
    chunks.add(ramp(0, 8), 0, 0)
    chunks.add(ramp(2, 8) + 100, 2, 5)
    assert chunks.action(6)[0] == 106
    assert chunks.rest(5)[:, 0].tolist() == [106, 107, 108, 109, 110]
    assert chunks.seam == 101


@given(
    ratio=st.sampled_from([(10.0, 50.0), (20.0, 50.0), (50.0, 50.0), (12.5, 50.0), (30.0, 50.0), (100.0, 50.0)]),
    length=st.integers(1, 8),
)
def test_interpolation_gives_a_slow_ramp_at_the_control_rate(ratio: tuple[float, float], length: int) -> None:
    policy_hz, control_hz = ratio
    chunks = Interpolated(OpenLoop(), policy_rate_hz=policy_hz, control_rate_hz=control_hz)
    slope = control_hz / policy_hz
    chunks.add(slope * ramp(0, length), 0, 0)
    assert chunks.last_tick == max(1, math.floor(length * slope + 1e-9)), "at least one action out of any chunk"
    for tick in range(1, chunks.last_tick + 1):
        # Before the first row there is nothing to interpolate from: the first row is held.
        wanted = min(max(float(tick), slope), slope * length)
        np.testing.assert_allclose(chunks.action(tick), [wanted], rtol=1e-9)


def test_interpolation_goes_on_from_what_was_executed_last() -> None:
    chunks = Interpolated(OpenLoop(), policy_rate_hz=10, control_rate_hz=50)
    for start in (0, 10, 20):
        chunks.add(5 * ramp(start // 5, 2), start, start)
    steps = [float(chunks.action(tick)[0]) for tick in range(21, 31)]
    np.testing.assert_allclose(steps, range(21, 31))


@pytest.mark.parametrize("make", STRATEGIES)
def test_a_reset_forgets_everything(make: Any) -> None:
    chunks = make()
    lockstep(chunks, 4, 6)
    chunks.reset()
    assert chunks.due(0)
    assert chunks.last_tick == 0
    assert np.isnan(chunks.seam)
    assert lockstep(chunks, 4, 6)[0] == lockstep(make(), 4, 6)[0]


def test_strategies_go_by_name() -> None:
    assert isinstance(make_chunks("ensemble"), TemporalEnsemble)
    assert isinstance(make_chunks("rtc", 4), RealTimeChunking)
    with pytest.raises(UnknownName, match="did you mean 'receding'"):
        make_chunks("recedin")
    with pytest.raises(UsageError, match="at least 1"):
        make_chunks("receding", 0)
