"""``ATTACKS``: how solutions have tried to pass tests that they do not pass, for tasks of one's own."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files as resources
from pathlib import Path
from typing import Literal

from hudsim.errors import HudsimError
from hudsim.graders import EvaluationResult, Verdict
from hudsim.testing.finding import Finding

__all__ = ["ATTACKS", "Attack", "Plant", "run_attacks"]

NOT_STOPPED = "not stopped"
Way = Literal["separate", "same"]
Plant = Callable[[Path], None]
"""Writes a solution and what is planted beside it into a folder on the host."""


@dataclass(frozen=True)
class Attack:
    """One cheat, or the mess that an honest solution may leave.

    name, kind, what
        ``kind`` is one of shadow, exit, skip, lie, patch, plugin, config, tests, cases, print, write, hang, greed,
        junk, peek.
    files, links, fifos, folders, bulk
        What is planted. ``$MODULE`` is the module's name (a package's: its folder's), ``$SOURCE`` the solution's text.
    wrong, right
        By the way in which the tests are run: the verdicts that may come of it with a wrong and with a right solution.
        ``("not stopped",)``: anything may. An empty ``right``: no solution that does this is right.
    slow
        It takes as long as the grade may, or until a limit is met.
    """

    name: str
    kind: str
    what: str
    wrong: Mapping[str, Sequence[str]]
    right: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    fifos: Sequence[str] = ()
    folders: Sequence[str] = ()
    bulk: Mapping[str, int] = field(default_factory=dict)
    slow: bool = False

    def plant(self, folder: Path, *, path: str, source: str) -> None:
        """Write it into ``folder``, with ``source`` as the solution's file ``path``: ``calc.py``, ``src/calc.py``,
        ``calc/__init__.py``.
        """
        place = Path(path)
        module = (place.parent if place.name == "__init__.py" else place).stem or place.stem

        def at(name: str) -> Path:
            name = name.replace("$MODULE", module)
            target = folder / (place if name == f"{module}.py" else name)
            target.parent.mkdir(parents=True, exist_ok=True)
            return target

        _write(folder / place, source)
        for name, text in self.files.items():
            _write(at(name), text.replace("$MODULE", module).replace("$SOURCE", source))
        for name, to in self.links.items():
            at(name).symlink_to(to.replace("$MODULE", module))
        for name in self.fifos:
            os.mkfifo(at(name))
        for name in self.folders:
            at(name).mkdir()
        for name, count in self.bulk.items():
            first = at(name)
            for n in range(count):
                first.with_name(f"{first.name}{n}.py").touch()


class Attacks(Sequence[Attack]):
    """All there are, read when they are first looked at."""

    @cached_property
    def _all(self) -> list[Attack]:
        data = tomllib.loads((resources("hudsim.testing") / "cheats" / "attacks.toml").read_text("utf-8"))
        return [_attack(entry) for entry in data["attack"]]

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)


ATTACKS: Sequence[Attack] = Attacks()
"""In ``hudsim/testing/cheats/attacks.toml``."""


async def run_attacks(
    grade: Callable[[Plant], Awaitable[EvaluationResult]],
    *,
    path: str,
    wrong: str,
    right: str | None = None,
    way: Way = "separate",
    attacks: Iterable[Attack] = ATTACKS,
) -> list[Finding]:
    """Try each of ``attacks`` on a grader: a finding each with a wrong solution, and a right one if there can be one.

    ::

        async def grade(plant):
            async with Workspace() as workspace:
                plant(workspace.root)
                workspace.own()
                return await PytestGrader.evaluate(workspace=workspace, tests=HIDDEN, modules=("calc",), timeout=10)

        findings = await run_attacks(grade, path="calc.py", wrong=BUGGY, right=FIXED)

    path
        Of the solution's file in its folder. ``wrong`` and ``right`` are its text; None: right ones are not tried.
    way
        In which the grader runs its tests.

    What is not stopped in this way is a ``warning`` that says so, an error of the grader an ``error``.
    """
    out = []
    for attack in attacks:
        out.append(await _tried(grade, attack, path, wrong, attack.wrong[way], "wrong"))
        if right is not None and attack.right:
            out.append(await _tried(grade, attack, path, right, attack.right[way], "right"))
    return out


async def _tried(
    grade: Callable[[Plant], Awaitable[EvaluationResult]],
    attack: Attack,
    path: str,
    source: str,
    expected: Sequence[str],
    which: str,
) -> Finding:
    what = f"{attack.name}, {which} solution"
    try:
        result = await grade(lambda folder: attack.plant(folder, path=path, source=source))
    except HudsimError as error:
        return Finding(what, f"{type(error).__name__}: {error.message}", " or ".join(expected))
    got = f"{result.outcome}, reward {result.reward:g}"
    if expected == [NOT_STOPPED]:
        return Finding(what, got, "anything: a process that it shares with the tests cannot stop it", "warning")
    allowed = {Verdict(one) for one in expected}
    paid = result.reward > 0 and which == "wrong"
    if result.outcome in allowed and not paid:
        return Finding(what, got, severity="ok")
    return Finding(what, got, " or ".join(expected))


def _attack(entry: dict[str, object]) -> Attack:
    given = dict(entry)
    for key in ("wrong", "right"):
        ways = given.get(key, {})
        assert isinstance(ways, dict)
        given[key] = {way: str(verdicts).split("|") for way, verdicts in ways.items()}
    return Attack(**given)  # type: ignore[arg-type]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
