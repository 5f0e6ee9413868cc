from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from hudsim.loop import Histogram

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def of(samples: list[int]) -> Histogram:
    histogram = Histogram()
    for sample in samples:
        histogram.record(sample)
    return histogram


@given(SAMPLES, st.floats(0, 1))
def test_a_quantile_is_within_one_percent_of_the_sample_it_stands_for(samples: list[int], q: float) -> None:
    exact = sorted(samples)[math.floor(q * (len(samples) - 1))]
    assert abs(of(samples).quantile(q) - exact) <= 0.01 * exact


@given(SAMPLES, SAMPLES)
def test_merging_is_recording_all(one: list[int], two: list[int]) -> None:
    merged = of(one)
    merged.merge(of(two))
    assert merged.to_json() == of(one + two).to_json()
    assert merged.max == max(one + two)
    assert merged.count == len(one) + len(two)


@given(SAMPLES)
def test_json_carries_it_whole(samples: list[int]) -> None:
    histogram = of(samples)
    back = Histogram.from_json(json.loads(json.dumps(histogram.to_json())))
    assert back.to_json() == histogram.to_json()
    assert back.summary_us() == histogram.summary_us()


def test_without_samples_there_is_no_summary() -> None:
    assert Histogram().summary_us() is None
    assert math.isnan(Histogram().quantile(0.5))


def test_a_negative_duration_counts_as_none() -> None:
    assert of([-5]).quantile(1.0) == 0
