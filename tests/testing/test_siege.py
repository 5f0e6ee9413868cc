from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hudsim.environment.task import Task
from hudsim.eval import Run
from hudsim.graders import EvaluationResult, SubScore, Verdict
from hudsim.testing import ATTACKS
from hudsim.testing.siege import Hold, Siege, Trial


def graded(**told: Any) -> Sequence[SubScore]:
    leaf = SubScore(name="PytestGrader", value=0.0, info={"_parameters": {"tests": "hidden", **told}})
    return [SubScore(name="all", value=0.0, children=[SubScore(name="other", value=0.0), leaf])]


def run_of(reward: float, **options: Any) -> Run:
    run = Run(Task(env="e", id="t"), job_id="j", run_id="j-0")
    run.grade = EvaluationResult(reward=reward, **options)
    run.verdict, run.end = run.grade.outcome, "done"
    return run


def attack(name: str) -> Any:
    return next(attack for attack in ATTACKS if attack.name == name)


def test_what_the_grader_was_told_is_found_wherever_it_stands_in_the_grade() -> None:
    hold = Hold.of(graded(modules=["calc"], process={"test_a.py": "same", "*": "separate"}))
    assert hold == Hold("calc", (".", "src"), frozenset({"same", "separate"}))
    assert hold.places == ["calc.py", "calc/__init__.py", "src/calc.py", "src/calc/__init__.py"]
    deep = Hold.of(graded(modules=["a.b"], paths=["lib"]))
    assert deep is not None
    assert deep.places == ["lib/a/b.py", "lib/a/b/__init__.py"]
    assert deep.ways == {"separate"}


def test_a_grade_without_hidden_tests_has_none() -> None:
    assert Hold.of(None) is None
    assert Hold.of([SubScore(name="words", value=1.0, info={"_parameters": {"answer": "x"}})]) is None


def test_there_is_a_trial_of_each_solution_that_an_attack_can_have_and_slow_ones_come_last() -> None:
    async def oracle(run: Run) -> None: ...

    hold = Hold("calc", (".",), frozenset({"separate"}))
    trials = Siege(ATTACKS, hold, oracle).trials
    assert [trial.which for trial in trials].count("wrong") == len(ATTACKS)
    assert [trial.which for trial in trials].count("right") == sum(bool(attack.right) for attack in ATTACKS)
    assert [trial.attack.slow for trial in trials] == sorted(trial.attack.slow for trial in trials)
    assert {trial.which for trial in Siege(ATTACKS, hold, None).trials} == {"wrong"}


@pytest.mark.parametrize(
    ("name", "which", "way", "run", "severity"),
    [
        ("exit-at-import", "wrong", "separate", run_of(0.0), "ok"),
        ("exit-at-import", "wrong", "separate", run_of(0.0, verdict=Verdict.tampered), "ok"),
        ("exit-at-import", "wrong", "separate", run_of(0.5), "error"),
        ("exit-at-import", "wrong", "separate", run_of(0.0, verdict=Verdict.grade_timeout), "error"),
        ("hang-at-import", "wrong", "separate", run_of(0.0, verdict=Verdict.grade_timeout), "ok"),
        ("exit-at-import", "wrong", "separate", run_of(0.0, isError=True), "error"),
        ("broken-junk", "right", "separate", run_of(1.0), "ok"),
        ("broken-junk", "right", "separate", run_of(0.9), "error"),
        ("read-the-caller", "wrong", "same", run_of(1.0), "warning"),
        ("read-the-caller", "wrong", "same", run_of(0.0), "ok"),
        ("read-the-caller", "wrong", "separate", run_of(1.0), "error"),
    ],
)
def test_what_comes_of_a_trial(name: str, which: Any, way: str, run: Run, severity: str) -> None:
    finding = Trial(attack(name), which).finding(run, Hold("calc", (".",), frozenset({way})))
    assert finding.severity == severity, finding
    assert finding.what == f"{name}, {which} solution"


def test_a_trial_that_could_not_be_made_is_an_error_with_its_reason() -> None:
    run = run_of(0.0)
    run.end, run.error = "error", "no module calc in the workspace"
    finding = Trial(attack("exit-at-import"), "wrong").finding(run, Hold("calc", (".",), frozenset({"separate"})))
    assert finding.severity == "error"
    assert "no module calc in the workspace" in finding.got


def test_a_solution_that_says_which_tests_there_are_is_named_with_what_to_expect() -> None:
    def run(*names: str) -> Run:
        leaves = [SubScore(name=name, value=1.0) for name in names]
        (outer,) = graded(modules=["calc"])
        assert outer.children
        other, inner = outer.children
        inner = inner.model_copy(update={"children": leaves, "value": 1.0})
        return run_of(1.0, subscores=[outer.model_copy(update={"children": [other, inner], "value": 1.0})])

    all_of_them = run("t.py::test_n[1]", "t.py::test_n[2]")
    assert all_of_them.grade is not None
    hold = Hold.of(all_of_them.grade.subscores)
    assert hold is not None
    trial = Trial(attack("fewer-cases"), "right")
    assert trial.finding(all_of_them, hold).severity == "ok"
    finding = trial.finding(run("t.py::test_n[1]"), hold)
    assert (finding.severity, finding.got) == ("error", "1 of 2 hidden tests are gone")
    assert "expected=('t.py::test_n[1]', 't.py::test_n[2]',)" in finding.expected
