from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import SandboxError
from hudsim.graders import EvaluationResult
from hudsim.graders.trust import TRUST
from hudsim.testing import ATTACKS, Attack, run_attacks
from hudsim.testing.attacks import Plant
from tests.asyncrun import within
from tests.graders.grading import RIGHT, WRONG, graded, outcomes

WAYS = ("separate", "same")
QUICK = {
    "shadow-modules", "exit-in-a-call", "skip-in-a-call", "all-yes", "results-that-are-equal-to-everything",
    "patch-reports", "entry-point", "conftest", "tests-as-links", "printed-verdict", "broken-junk", "read-the-caller",
    "stands-for-everything", "text-that-ends-it", "name-of-millions", "names-of-the-test-file",
}  # fmt: skip


def tried(attack: Attack, way: str) -> list[tuple[str, EvaluationResult]]:
    """What came of it with a wrong and, where there is one, a right solution."""
    out: list[tuple[str, EvaluationResult]] = []

    async def one(which: str, source: str) -> None:
        def plant(folder: Path) -> None:
            attack.plant(folder, path="calc.py", source=source)

        timeout = 3 if attack.slow else 40
        out.append((which, await graded(plant, process=way, timeout=timeout)))

    async def both() -> None:
        await asyncio.gather(one("wrong", WRONG), *([one("right", RIGHT)] if attack.right else []))

    within(55.0, both())
    return out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "attack",
    [pytest.param(one, marks=[] if one.name in QUICK else [pytest.mark.slow], id=one.name) for one in ATTACKS],
)
def test_a_cheat_buys_nothing_and_costs_an_honest_solution_nothing(attack: Attack, way: str) -> None:
    for which, result in tried(attack, way):
        expected: Any = getattr(attack, which)[way]
        if expected == ["not stopped"]:
            assert way == "same"
            continue
        assert result.outcome.value in expected, (which, outcomes(result), result.to_frame())
        assert result.reward == float(result.outcome == "passed")
        assert not (which == "wrong" and result.reward)


ASKED_FOR = {
    "close-to-everything": "assert calc.mean([1, 2]) == pytest.approx(1.5)",
    "float-close-to-everything": "assert pytest.approx(1.5) == calc.mean([1, 2])",
    "set-of-any-elements": "assert calc.divisors(7) == {1, 7}",
    "mapping-of-any-keys": "assert 'a' in calc.count('ab')\n    assert calc.count('ab').keys() == {'a', 'b'}",
    "through-an-object-of-the-test": "assert calc.total(iter([1, 2])) == 3",
    "class-of-a-file-of-the-test": "with open('/dev/null') as file:\n        assert calc.lines(file) == 9\n"
                                   "    assert calc.total(2, 3) == 5",
    "enum-with-operators-for-members": "assert calc.add(1, 2) == 3",
    "number-that-hides-its-arithmetic": "assert abs(calc.half(1) - 0.5) < 1e-9\n"
                                        "    assert calc.half(2) == pytest.approx(1)",
    "fraction-of-objects": "assert abs(calc.add(1, 2) - 3) < 1e-9",
    "fraction-taken-apart": "from fractions import Fraction\n"
                            "    assert abs(Fraction(1, 3) - calc.third()) < Fraction(1, 1000)",
    "difference-with-attributes": "import datetime as dt\n"
                                  "    assert (calc.later(1) - dt.date(2024, 1, 1)).days == 0\n"
                                  "    assert (calc.half(1) - 0.5) ** 2 < 1e-9",
    "set-that-makes-its-differences": "assert not calc.divisors(7) ^ {1, 7}",
    "set-of-what-it-is-compared-with": "import unittest\n"
                                       "    unittest.TestCase().assertSetEqual(calc.divisors(7), {1, 7})",
    "spy-that-says-yes": "from unittest import mock\n    spy = mock.Mock()\n    calc.notify(spy)\n"
                         "    spy.send.assert_called_once_with(3)",
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED_FOR)
def test_a_cheat_at_what_it_is_made_for_buys_nothing(name: str) -> None:
    (attack,) = (one for one in ATTACKS if one.name == name)
    ways = [way for way in WAYS if list(attack.wrong[way]) != ["not stopped"]]
    hidden = f"import pytest\nimport calc\ndef test_it():\n    {ASKED_FOR[name]}\n"

    def plant(folder: Path) -> None:
        attack.plant(folder, path="calc.py", source=WRONG)

    async def both() -> None:
        for result in await asyncio.gather(*(graded(plant, hidden=hidden, process=way) for way in ways)):
            assert (result.reward, result.outcome.value) == (0.0, "failed"), outcomes(result)

    within(55.0, both())


def test_ten_lines_that_read_their_caller_defeat_a_shared_process_as_the_card_says() -> None:
    (attack,) = (one for one in ATTACKS if one.name == "read-the-caller")
    ((_, result),) = tried(attack, "same")
    assert result.reward == 1.0
    (row,) = (row for row in TRUST if row.what.startswith("reads the test that calls it"))
    assert (row.separate, row.same) == ("no effect", "not stopped")


def test_every_attack_says_what_comes_of_it_in_both_ways() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for attack in ATTACKS:
        assert set(attack.wrong) == set(WAYS), attack.name
        assert set(attack.right) in (set(), set(WAYS)), attack.name
        assert "passed" not in attack.wrong["separate"], attack.name
        assert attack.wrong["separate"] != ["not stopped"], attack.name


def test_an_attack_is_planted_at_the_solutions_own_place(tmp_path: Path) -> None:
    (attack,) = (one for one in ATTACKS if one.name == "exit-at-import")
    attack.plant(tmp_path, path="src/sums.py", source="x = 1")
    assert (tmp_path / "src" / "sums.py").read_text().startswith("x = 1\nimport os")
    assert [path.name for path in tmp_path.iterdir()] == ["src"]


def test_a_solution_that_is_a_package_is_called_as_its_folder(tmp_path: Path) -> None:
    (attack,) = (one for one in ATTACKS if one.name == "exit-at-import")
    attack.plant(tmp_path, path="src/sums/__init__.py", source="x = 1")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "src" / "sums" / "__init__.py"]
    assert (tmp_path / "src" / "sums" / "__init__.py").read_text().startswith("x = 1\nimport os")
    (attack,) = (one for one in ATTACKS if "test_$MODULE.py" in one.files)
    attack.plant(tmp_path, path="src/sums/__init__.py", source="x = 1")
    assert (tmp_path / "test_sums.py").exists()
    assert not list(tmp_path.rglob("test___init__*"))


def test_the_attacks_run_on_a_grader_of_ones_own() -> None:
    """One that pays for everything is found out; one that fails is an error."""
    attacks = [one for one in ATTACKS if one.name in {"exit-at-import", "read-the-caller", "broken-junk"}]

    async def generous(plant: Plant) -> EvaluationResult:
        return EvaluationResult(reward=1.0)

    async def broken(plant: Plant) -> EvaluationResult:
        raise SandboxError("none here")

    async def main() -> None:
        found = await run_attacks(generous, path="calc.py", wrong=WRONG, right=RIGHT, way="same", attacks=attacks)
        assert {one.what: one.severity for one in found} == {
            "exit-at-import, wrong solution": "error",
            "broken-junk, wrong solution": "error",
            "broken-junk, right solution": "ok",
            "read-the-caller, wrong solution": "warning",
        }
        found = await run_attacks(broken, path="calc.py", wrong=WRONG, attacks=attacks)
        assert [(one.severity, one.got) for one in found] == [("error", "SandboxError: none here")] * 3

    within(10.0, main())
