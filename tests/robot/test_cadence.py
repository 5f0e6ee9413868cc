from __future__ import annotations

import json

from hudsim.robot.cadence import STAGES, Cadence


def episode(start_ns: int, ticks: int) -> Cadence:
    cadence = Cadence(50.0)
    for tick in range(ticks):
        cadence.tick(start_ns + tick * 20_000_000)
    return cadence


def test_the_rate_is_ticks_over_time() -> None:
    assert episode(0, 101).rate_achieved_hz == 50.0
    assert episode(0, 1).rate_achieved_hz is None


def test_the_time_between_two_episodes_does_not_count() -> None:
    both = episode(0, 11)
    both.merge(episode(10**12, 11))
    assert both.rate_achieved_hz == 50.0
    assert both.ticks == 22


def test_json_carries_it_whole() -> None:
    cadence = episode(0, 5)
    cadence.missed, cadence.starved, cadence.stale, cadence.skipped = 1, 2, 3, 4
    cadence.late.record(1234)
    cadence.age_ticks.record(2)
    for number, stage in enumerate(STAGES):
        cadence.stages[stage].record(1000 * (number + 1))
    back = Cadence.from_json(json.loads(json.dumps(cadence.to_json())))
    assert back.summary() == cadence.summary()
    assert back.to_json() == cadence.to_json()


def test_what_was_not_measured_is_null() -> None:
    summary = Cadence().summary()
    assert summary["rate_asked_hz"] is None
    assert summary["late_us"] is None
    assert summary["stages_us"] == dict.fromkeys(STAGES)
