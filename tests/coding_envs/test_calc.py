from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, ModuleType

import pytest

from hudsim.agents import Answer, Noop, Oracle
from hudsim.coding_envs.calc import held_out, train
from hudsim.coding_envs.calc.mutants import mutants
from hudsim.coding_envs.calc.tasks import fix_calc, fixes, tasks
from hudsim.coding_envs.calc.variant import HELD_OUT, HIDDEN, PROJECT, TRAINING, source, variant_of, variants
from hudsim.errors import UsageError
from hudsim.eval import Taskset
from tests.asyncrun import on_loop, within

CODE = {file.name: compile(file.read_text(), file.name, "exec") for file in HIDDEN.glob("test_*.py")}


def module(text: str) -> ModuleType:
    calc = ModuleType("calc")
    exec(compile(text, "calc.py", "exec"), vars(calc))
    return calc


def functions_of(calc: ModuleType, code: CodeType, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    monkeypatch.setitem(sys.modules, "calc", calc)
    found: dict[str, Callable[[], None]] = {}
    exec(code, found)
    return {name: test for name, test in found.items() if name.startswith("test_")}


def test_calc_passes_all_its_tests() -> None:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
    for what in (PROJECT / "tests", HIDDEN):
        done = subprocess.run(
            [*command, f"--rootdir={PROJECT}", str(what)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert done.returncode == 0, done.stdout


def test_there_are_enough_variants_and_no_two_are_the_same() -> None:
    assert (len(TRAINING), len(HELD_OUT), len(variants())) == (256, 64, 320)
    assert len({variant.text for variant in variants()}) == 320


def test_no_line_that_is_broken_to_measure_with_is_broken_in_training() -> None:
    trained = {variant_of(number).mutant.line for number in TRAINING}
    assert not trained & {variant_of(number).mutant.line for number in HELD_OUT}


def test_mistakes_are_of_many_kinds_in_many_functions() -> None:
    for numbers, kinds, functions in ((range(16), 8, 14), (TRAINING, 10, 30), (HELD_OUT, 8, 15)):
        found = [variant_of(number).mutant for number in numbers]
        by_kind = Counter(mutant.kind for mutant in found)
        assert len(by_kind) >= kinds, by_kind
        assert len({mutant.function for mutant in found}) >= functions
        assert max(by_kind.values()) <= max(len(found) // 4, 4)


def test_each_variant_is_mended_by_one_line() -> None:
    right = source().splitlines()
    for variant in variants():
        lines = variant.text.splitlines()
        assert len(lines) == len(right)
        different = [n for n, (a, b) in enumerate(zip(lines, right, strict=True), 1) if a != b]
        assert different == [variant.mutant.line]


def test_each_variant_fails_the_test_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for variant in variants():
        file, name = variant.test.split("::")
        test = functions_of(module(variant.text), CODE[file], monkeypatch)[name]
        with pytest.raises((Exception, pytest.fail.Exception)):
            test()
        assert variant.failing >= 1


def test_each_variant_is_one_that_the_mutations_make() -> None:
    made = set(mutants(source()))
    assert {variant.mutant for variant in variants()} <= made


def test_a_mutation_changes_one_expression_and_leaves_docstrings_and_errors_alone() -> None:
    text = 'def f(a, b):\n    """1 + 1"""\n    if a < 1:\n        raise ValueError(1 + 1)\n    return a - b\n'
    assert {mutant.wrong.strip() for mutant in mutants(text)} == {
        "if not a < 1:", "if a <= 1:", "if a > 1:", "if b < 1:", "if a < 2:", "if a < 0:",
        "return a + b", "return b - a", "return a", "return b - b", "return a - a",
    }  # fmt: skip


def test_a_report_shows_the_test_and_not_the_line() -> None:
    for variant in variants():
        assert variant.test.split("::")[1] in variant.report
        assert f"E       {variant.said.splitlines()[0]}" in variant.report
        assert variant.mutant.wrong.strip() not in variant.report
        assert "0x" not in variant.report


def test_a_variant_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="got variant 320, expected 0 to 319"):
        variant_of(320)


def test_tasks_say_what_is_broken_in_their_columns() -> None:
    assert [task.slug for task in tasks][:2] == ["calc-000", "calc-001"]
    assert (len(tasks), len(train.tasks), len(held_out.tasks)) == (16, 256, 64)
    assert set(tasks["calc-003"].columns or {}) == {"function", "kind", "failing"}


# Graded ---------------------------------------------------------------------------------------------------------------


@on_loop
async def test_nothing_is_worth_nothing_and_the_right_line_everything() -> None:
    three = Taskset("three", fixes([0, 7, 300]))
    noop, oracle = await three.run(Noop(), runs=None), await three.run(Oracle(), runs=None)
    assert [(run.reward, run.verdict, run.error) for run in noop.runs] == [(0.0, "failed", None)] * 3
    assert [(run.reward, run.verdict, run.error) for run in oracle.runs] == [(1.0, "passed", None)] * 3
    assert oracle.runs[0].grade is not None
    (tree,) = oracle.runs[0].grade.subscores or []
    names = [name for code in CODE.values() for name in code.co_names if name.startswith("test_")]
    assert len(tree.children or []) == len(names) == 130


@on_loop
async def test_the_prompt_is_what_a_user_would_write() -> None:
    (run,) = (await fix_calc(0).run(Answer("I have mended it."), runs=None)).runs
    assert run.reward == 0.0
    assert variant_of(0).report in run.prompt_text


@pytest.mark.slow
@pytest.mark.timeout(1900)
def test_every_variant_scores_0_untouched_and_1_mended() -> None:
    async def both() -> None:
        every = Taskset("every", fixes(range(320)))
        noop = await every.run(Noop(), runs=None, max_concurrent=4)
        assert [(run.slug, run.verdict) for run in noop.runs if run.verdict != "failed"] == []
        oracle = await every.run(Oracle(), runs=None, max_concurrent=4)
        assert [(run.slug, run.verdict) for run in oracle.runs if run.verdict != "passed"] == []

    within(1800, both())
