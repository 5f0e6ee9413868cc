from __future__ import annotations

import subprocess
import sys

from hudsim.graders.trust import TRUST, trust_card, trust_table
from hudsim.testing import ATTACKS


def test_the_card_names_what_is_stopped_and_what_is_not_in_the_ways_that_were_used() -> None:
    apart, same = trust_card(["separate"]), trust_card(["same"])
    assert set(apart["not_stopped"]) < set(same["not_stopped"])
    assert trust_card(["separate", "same"]) == same
    for card in (apart, same):
        assert sorted([*card["stopped"], *card["not_stopped"]]) == sorted(row.what for row in TRUST)


def test_the_table_has_a_line_for_each_row() -> None:
    lines = trust_table().splitlines()
    assert len(lines) == len(TRUST) + 2
    assert all(line.count("|") == 4 for line in lines)


def test_what_no_attack_is_stopped_at_is_on_the_card() -> None:
    weak = [attack for attack in ATTACKS if list(attack.wrong["same"]) == ["not stopped"]]
    assert {attack.kind for attack in weak} == {"lie", "patch", "peek"}
    rows = [row for row in TRUST if row.same == "not stopped"]
    assert len([row for row in rows if row.separate == "no effect"]) == len([one for one in weak if one.kind == "peek"])
    assert len([row for row in rows if row.separate.startswith("0")]) >= 3  # of differences, of sets, of spies


def test_grading_by_text_alone_starts_no_sandbox_code() -> None:
    code = "import sys, hudsim.graders; print([name for name in sys.modules if name.startswith('hudsim.coding')])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.strip() == "[]"
