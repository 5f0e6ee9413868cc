from __future__ import annotations

import pytest

from hudsim.testing import FakeClock


def test_time_passes_only_when_it_is_told_to() -> None:
    clock = FakeClock()
    assert (clock.now_ns(), clock.now_ns()) == (0, 0)
    clock.advance(0.02)
    assert clock.now_ns() == 20_000_000


def test_sleeping_jumps_to_the_deadline_and_never_back() -> None:
    clock = FakeClock(oversleep_ns=5)
    clock.sleep_until(100)
    assert clock.now_ns() == 105
    clock.sleep_until(50)
    assert clock.now_ns() == 105


def test_it_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="never goes back"):
        FakeClock().advance(-1)
