from __future__ import annotations

import pytest

from tally.cli import report
from tally.entries import EntryError, parse_text


def cents(text):
    return [entry.cents for entry in parse_text(text)]


def test_blank_lines_are_left_out():
    assert cents("\n2024-01-05 food 1\n\n   \n2024-01-06 food 2\n") == [100, 200]


def test_comments_are_left_out():
    assert cents("# January\n2024-01-05 food 1\n  # the rest is lost\n") == [100]


def test_a_text_of_comments_alone_has_no_entries():
    assert cents("# nothing yet\n") == []


def test_an_error_says_which_line():
    with pytest.raises(EntryError, match="^line 2: 'x' is no amount$"):
        parse_text("2024-01-05 food 1\n2024-01-06 food x\n")


def test_lines_left_out_are_counted():
    with pytest.raises(EntryError, match=r"^line 4: .*no day, category and amount"):
        parse_text("# January\n\n2024-01-05 food 1\nfood 2\n")


def test_the_error_knows_its_number():
    with pytest.raises(EntryError) as caught:
        parse_text("# January\n2024-13-01 food 2\n")
    assert caught.value.number == 2


def test_a_report_says_which_line():
    with pytest.raises(ValueError, match="^line 3: "):
        report("# January\n\n2024-01-05 food lots\n")
