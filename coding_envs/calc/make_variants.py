"""Make ``variants.json``: ``python -m hudsim.coding_envs.calc.make_variants``, after calc or its hidden tests change.

Every mutant meets the hidden tests in a process of its own; of those that fail some of them and come to an end, 256 are
chosen to train on and 64 to measure with.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import resource
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from hudsim.coding_envs.calc.mutants import Mutant, mutants
from hudsim.coding_envs.calc.variant import HELD_OUT, HIDDEN, PROJECT, TRAINING, source

_CPU_S = 2
"""Of one mutant: what takes longer hangs. All tests of calc together take a fifth of a second."""
_NOBODYS = ("TypeError", "NameError", "AttributeError", "UnboundLocalError", "RecursionError")
"""Errors that show the mistake to whoever runs the function once."""


@dataclass(frozen=True)
class Found:
    """A mutant, and the hidden tests that it fails, in order."""

    mutant: Mutant
    failing: list[str]

    def row(self, said: str) -> list[str | int]:
        """As ``variants.json`` has it; ``said`` by pytest of the first of the tests."""
        mutant = self.mutant
        return [mutant.function, mutant.kind, mutant.line, mutant.wrong, len(self.failing), self.failing[0], said]


def main() -> None:
    """Write the table, and say what it holds."""
    code = {file.name: compile(file.read_bytes(), file.name, "exec") for file in sorted(HIDDEN.glob("test_*.py"))}
    every = list(mutants(source()))
    found = []
    for mutant in every:
        failing = _in_child(functools.partial(_failing, mutant, code))
        if failing:
            found.append(Found(mutant, failing))
    print(f"{len(every)} mutants, {len(found)} of use")
    held_out = {one.mutant.line for one in found if _number(f"line {one.mutant.line}") % 4 == 0}
    chosen = [
        *_chosen([one for one in found if one.mutant.line not in held_out], len(TRAINING)),
        *_chosen([one for one in found if one.mutant.line in held_out], len(HELD_OUT)),
    ]
    rows = [one.row(said) for one, said in zip(chosen, _said(chosen), strict=True)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    Path(__file__).with_name("variants.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(chosen)} kept: {dict(Counter(one.mutant.kind for one in chosen).most_common())}")


def _chosen(found: Iterable[Found], count: int) -> Iterator[Found]:
    """``count`` of them: every function in turn, each time by the kind of mistake that is rarest so far."""
    by_function: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        by_function[one.mutant.function].append(one)
    kinds: Counter[str] = Counter()
    turns = sorted(by_function, key=_number)
    while count > 0:
        for function in [name for name in turns if by_function[name]][:count]:
            left = by_function[function]
            one = min(left, key=lambda one: (kinds[one.mutant.kind], _number(one.mutant.wrong)))
            left.remove(one)
            kinds[one.mutant.kind] += 1
            count -= 1
            yield one


def _number(words: str) -> int:
    """As good as drawn by lot, and always the same."""
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big")


# Running ----------------------------------------------------------------------------------------------------------


def _in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` returns, plain JSON, done in a process of its own. None: it did not come to an end."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
                silent = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silent, 1)
                os.dup2(silent, 2)
                os.write(out.fileno(), json.dumps(work()).encode())
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        return json.loads(out.read()) if status == 0 else None


def _failing(mutant: Mutant, code: dict[str, CodeType]) -> list[str]:
    """The tests that it fails; none of a mutant that nobody would write."""
    calc = sys.modules["calc"] = ModuleType("calc")
    exec(compile(mutant.applied(source()), "calc.py", "exec"), vars(calc))  # noqa: S102 - it is ours
    failing: list[str] = []
    for file, module in code.items():
        names: dict[str, Any] = {}
        exec(module, names)  # noqa: S102 - so are the tests
        for name, test in names.items():
            if name.startswith("test_"):
                try:
                    test()
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - that is what is counted
                    if not failing and type(error).__name__ in _NOBODYS:
                        return []
                    failing.append(f"{file}::{name}")
    return failing


def _said(chosen: list[Found]) -> list[str]:
    """The first line of what pytest says of the first test that each of them fails."""
    asked = _Asked(chosen)
    sys.modules.pop("calc", None)
    sys.path.insert(0, str(PROJECT))
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-c", os.devnull, str(HIDDEN)], plugins=[asked])
    return asked.said


class _Asked:
    """A plugin that runs those tests and no others, each in a child in which calc is the mutant."""

    def __init__(self, chosen: list[Found]) -> None:
        self.said: list[str] = []
        self._chosen = chosen
        self._heard: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {f"{item.path.name}::{item.name}": item for item in session.items}
        for one in self._chosen:
            said = _in_child(functools.partial(self._run, items[one.failing[0]], one.mutant))
            self.said.append(said[0])
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._heard.append(str(report.longrepr.reprcrash.message).splitlines()[0])

    def _run(self, item: pytest.Item, mutant: Mutant) -> list[str]:
        exec(compile(mutant.applied(source()), "calc.py", "exec"), vars(sys.modules["calc"]))  # noqa: S102 - it is ours
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return self._heard


if __name__ == "__main__":
    main()
