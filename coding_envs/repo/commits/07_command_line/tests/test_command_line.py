from __future__ import annotations

from datetime import date

import pytest

from tally.cli import main, report

TEXT = "2024-01-05 food 12.50\n2024-02-06 food 7.50\n"


def test_a_report_is_a_table():
    assert report(TEXT) == "food   20.00\ntotal  20.00"


def test_a_report_of_some_days():
    assert report(TEXT, first=date(2024, 2, 1)).endswith("total  7.50")
    assert report(TEXT, last=date(2024, 2, 1)).endswith("total  12.50")


def test_a_report_of_what_are_no_entries_is_refused():
    with pytest.raises(ValueError, match="no amount"):
        report("2024-01-05 food lots")


def test_the_exit_code_says_whether_it_went_well(tmp_path):
    file = tmp_path / "entries.txt"
    file.write_text(TEXT)
    assert main([str(file), "--from", "2024-02-01"]) == 0
    file.write_text("nonsense")
    assert main([str(file)]) == 2
