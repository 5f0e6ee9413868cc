from __future__ import annotations

import pytest
from rich.text import Text

from hudsim.cli.words import about_when, arguments, counts, duration, marks, number, when


def shown(markup: str) -> str:
    return Text.from_markup(markup).plain


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "0 ms"), (0.0421, "42 ms"), (0.1, "0.1 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"),
     (60, "1 min 0 s"), (3599.6, "1 h 0 min"), (90061, "25 h 1 min")],
)  # fmt: skip
def test_a_duration_is_said_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_full_bar_and_an_empty_one_are_for_whole_rewards_alone() -> None:
    members = [("failed", -1.0), ("failed", 0.0), ("partial", 0.001), ("partial", 0.999), ("passed", 1.0),
               ("passed", 1.5)]  # fmt: skip
    assert shown(marks(members)) == "▁▁▂▇██"


def test_what_has_no_reward_is_marked_apart_from_what_did_not_run() -> None:
    assert shown(marks([("infra_error", None), ("missing", None), ("tampered", 0.0)])) == "×·▁"


def test_a_large_group_takes_several_lines() -> None:
    assert [len(line) for line in shown(marks([("passed", 1.0)] * 40)).split("\n")] == [16, 16, 8]


def test_verdicts_are_counted_in_one_order() -> None:
    assert (
        shown(counts({"infra_error": 1, "failed": 2, "partial": 0, "passed": 3})) == "passed 3, failed 2, infra_error 1"
    )


def test_no_reward_is_no_zero() -> None:
    assert (number(None), number(0.0), number(2 / 3)) == ("–", "0.000", "0.667")


def test_a_stamp_is_said_in_the_time_of_this_place() -> None:
    assert when("2001-02-03T12:00:00+00:00").startswith("2001-02-0")
    assert about_when("2001-02-03T12:00:00+00:00").startswith("2001-02-0")


def test_arguments_are_json() -> None:
    assert arguments({"word": "é[1]", "x": 0.1 + 0.2, "none": None}) == 'word="é[1]", x=0.3, none=null'
