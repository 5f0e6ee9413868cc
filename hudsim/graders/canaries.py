"""``Canaries``: tests that are not to pass, mixed in among the hidden ones where a solution could reach the verdict."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hudsim.graders.report import Report

__all__ = ["Canaries", "Canary"]


@dataclass(frozen=True)
class Canary:
    """One: its id, and what each report of its call must be and say."""

    id: str
    outcome: str
    says: str
    times: int = 1


@dataclass
class Canaries:
    """Add to each file, then judge by what was reported. ``rng`` draws names, places and values."""

    rng: random.Random = field(default_factory=random.SystemRandom)
    placed: list[Canary] = field(default_factory=list)

    def add(self, file: str, source: str) -> tuple[str, str]:
        """The file that they are in and its text: ``file`` itself, or one beside it where all tests bear a mark.

        Each holds, after what makes it fail, the body of a test of the file: by the names in it they are like.
        """
        tree = ast.parse(source)
        lines, places = source.splitlines(), _between(tree)
        if any(word in source for word in _OF_ALL):
            folder = file.rpartition("/")[0]
            file, lines, places = f"{folder}/{self._name(tree)}.py".lstrip("/"), [], []
        bodies = _bodies(tree) or ["pass"]
        texts = []
        for kind in _KINDS:
            name = self._name(tree)
            outcome, says, times, decorator, head = kind(self.rng)
            self.placed.append(Canary(f"{file}::{name}", outcome, says, times))
            argument = "n" if decorator else ""
            text = f"{decorator}def {name}({argument}):\n" + textwrap.indent(
                f"{head}\n{self.rng.choice(bodies)}", "    "
            )
            texts.append((self.rng.choice([*places, len(lines)]), text))
        for at, text in sorted(texts, key=lambda one: -one[0]):
            lines[at:at] = ["", *text.splitlines(), ""]
        return file, "\n".join(lines) + "\n"

    def wrong(self, reports: Sequence[Report]) -> list[str]:
        """What each that was reported should have been and was not, a line each; [] all are as they should be."""
        out = []
        for canary in self.placed:
            calls = [report for report in reports if report.when == "call" and report.stem == canary.id]
            right = [one for one in calls if one.outcome == canary.outcome and canary.says in one.message]
            if len(calls) > canary.times or len(calls) != len(right) or any(one.xfail for one in right):
                said = ", ".join(sorted({one.outcome for one in calls}))
                out.append(f"a test made to be {canary.outcome} was reported as {said}, or for another reason")
        return out

    def missing(self, reports: Sequence[Report]) -> list[str]:
        """The files in which not all were reported."""
        called = [report.stem for report in reports if report.when == "call"]
        few = [canary.id for canary in self.placed if called.count(canary.id) < canary.times]
        return sorted({id.partition("::")[0] for id in few})  # noqa: A001 - pytest's word

    def ids(self) -> set[str]:
        """Theirs, without parameters."""
        return {canary.id for canary in self.placed}

    def _name(self, tree: ast.Module) -> str:
        """Made of the words of the file's own names."""
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        words = sorted({word for name in found for word in re.split(r"[_\W]+", name) if len(word) > 2} - {"test"})
        some = self.rng.sample(words, min(len(words), 2)) or ["case"]
        return "_".join(["test", *some, _word(self.rng)])


_OF_ALL = ("pytestmark", "__test__", "allow_module_level")


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(7))


def _between(tree: ast.Module) -> list[int]:
    """The lines before which a function can stand: where a top-level test or class begins."""
    return [
        min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]


def _bodies(tree: ast.Module) -> list[str]:
    """Of the file's tests, those that any function could have."""
    return [
        "\n".join(ast.unparse(statement) for statement in node.body)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test")
        and not any(isinstance(part, _OF_SOME) for part in ast.walk(node))
    ]


_OF_SOME = (ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal, ast.Global)

Made = tuple[str, str, int, str, str]
"""Outcome, what its message says, how often it is run, its decorator, and its first statements."""


def _must_fail(rng: random.Random) -> Made:
    says, n = _word(rng), rng.randrange(10_000)
    return "failed", says, 1, "", f"assert {n} == {n + 1 + rng.randrange(9)}, {says!r}"


def _must_fail_often(rng: random.Random) -> Made:
    says, values = _word(rng), rng.sample(range(1000), rng.randrange(2, 5))
    mark = f"@__import__('pytest').mark.parametrize('n', {values})\n"
    return "failed", says, len(values), mark, f"assert n in [{max(values) + 1}], {says!r}"


def _must_be_untrue(rng: random.Random) -> Made:
    says = _word(rng)
    return "failed", says, 1, "", f"result = [{rng.randrange(9)}]\nassert not result, {says!r}"


def _must_lie(rng: random.Random) -> Made:
    says, kind = _word(rng), _word(rng).title()
    made = f"{kind} = type({kind!r}, (), {{'__eq__': lambda self, other: True}})"
    return "failed", says, 1, "", f"{made}\nassert {kind}() == {rng.randrange(99)}, {says!r}"


def _must_not_raise(rng: random.Random) -> Made:
    error = rng.choice(["ValueError", "KeyError", "TypeError", "ZeroDivisionError"])
    head = f"import pytest\nwith pytest.raises({error}):\n    int({rng.randrange(99)})"
    return "failed", "DID NOT RAISE", 1, "", head


def _must_raise(rng: random.Random) -> Made:
    says, error = _word(rng), rng.choice(["RuntimeError", "LookupError", "ArithmeticError"])
    return "failed", says, 1, "", f"raise {error}({says!r})"


def _must_skip(rng: random.Random) -> Made:
    says = _word(rng)
    return "skipped", says, 1, "", f"import pytest\npytest.skip({says!r})"


_KINDS: tuple[Callable[[random.Random], Made], ...] = (
    _must_fail, _must_fail_often, _must_be_untrue, _must_lie, _must_not_raise, _must_raise, _must_skip,
)  # fmt: skip
