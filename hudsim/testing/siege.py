"""``Siege``: the shipped cheats tried on a task of an environment, as its agents."""

from __future__ import annotations

import asyncio
import io
import posixpath
import shlex
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hudsim.errors import AgentError
from hudsim.eval.run import Run
from hudsim.graders import SubScore, Verdict
from hudsim.testing.attacks import NOT_STOPPED, Attack
from hudsim.testing.finding import Finding

if TYPE_CHECKING:
    from hudsim.coding.client import SSHClient
    from hudsim.eval.protocols import Agent

__all__ = ["Hold", "Siege", "Trial"]

_UNPACK = r"""
cat > /tmp/siege.tar
tar --list --quoting-style=literal --file /tmp/siege.tar | while IFS= read -r path; do
    case $path in
        */) test -d "$path" || rm -f -- "${path%/}" ;;
        *) test -d "$path" && ! test -L "$path" && rm -rf -- "$path" ;;
    esac
done
tar --extract --file /tmp/siege.tar && rm /tmp/siege.tar
"""
"""Puts what is in a tar in the place of what bears its names; what else a folder holds stays."""

_UNPACK_S = 60.0
_FORGIVEN = (Verdict.passed, Verdict.partial, Verdict.failed, Verdict.tampered)


@dataclass(frozen=True, slots=True)
class Hold:
    """What a ``PytestGrader`` of a task was told about the solution.

    module, roots
        The first of the solution's modules, and the folders where it is looked for.
    ways
        In which the tests are run: ``separate``, ``same``.
    tests
        The ids of those that it found, or was told to expect.
    """

    module: str
    roots: tuple[str, ...]
    ways: frozenset[str]
    tests: frozenset[str] = frozenset()

    @classmethod
    def of(cls, subscores: Sequence[SubScore] | None) -> Hold | None:
        """From a grade. None: no ``PytestGrader`` is in it."""
        for node in _nodes(subscores):
            told = (node.info or {}).get("_parameters")
            if isinstance(told, Mapping) and told.get("modules") and "tests" in told:
                roots = tuple(told.get("paths") or (".", "src"))
                tests = frozenset(leaf.name for leaf in node.children or ())
                return cls(str(told["modules"][0]), roots, _ways(told), tests)
        return None

    @property
    def places(self) -> list[str]:
        """Where the module may lie, in the order in which it is looked for."""
        inner = self.module.replace(".", "/")
        return [posixpath.normpath(f"{root}/{inner}{end}") for root in self.roots for end in (".py", "/__init__.py")]


@dataclass(frozen=True, slots=True)
class Trial:
    """An attack beside a ``wrong`` solution (what the task begins with) or a ``right`` one (its reference's)."""

    attack: Attack
    which: Literal["wrong", "right"]

    def finding(self, run: Run, hold: Hold) -> Finding:
        """What came of it. A wrong solution may be paid nothing, a right one must be worth 1, and whoever says which
        tests there are, it is not the solution. ``hold`` is that of the reference, where there is one.
        """
        what = f"{self.attack.name}, {self.which} solution"
        allowed = self._allowed(hold)
        got = f"{run.verdict}, reward {'none' if run.reward is None else format(run.reward, 'g')}"
        if run.error is not None:
            got += f": {run.error}"
        if not run.valid or run.end != "done":
            return Finding(what, got, " or ".join(sorted(allowed)))
        if NOT_STOPPED in allowed:
            paid = self.which == "wrong" and (run.reward or 0.0) > 0
            words = "0; the tests share a process with the solution, which cannot stop it"
            return Finding(what, got, words, "warning") if paid else Finding(what, got, severity="ok")
        if self.which == "wrong":
            is_well = (run.reward or 0.0) <= 0 and run.verdict in {*_FORGIVEN, *allowed}
            return Finding(what, got, severity="ok") if is_well else Finding(what, got, "reward 0")
        if self.attack.kind == "cases" and (gone := hold.tests - _tests(run)):
            words = f"all, whatever the solution holds: expected=({', '.join(map(repr, sorted(hold.tests)))},)"
            return Finding(what, f"{len(gone)} of {len(hold.tests)} hidden tests are gone", words)
        is_well = run.verdict is Verdict.passed or allowed != {Verdict.passed}
        return Finding(what, got, severity="ok") if is_well else Finding(what, got, "passed, as without it")

    def _allowed(self, hold: Hold) -> set[str]:
        verdicts = getattr(self.attack, self.which)
        return {verdict for way in hold.ways for verdict in verdicts[way]}


class Siege:
    """An agent: in run *n* of a group it makes trial *n*.

    For a right solution it first has ``oracle`` do the work. Then it reads the solution's module over SSH and plants
    the attack around it, as any agent could.
    """

    name: ClassVar[str] = "siege"
    needs_reference: ClassVar[bool] = True

    def __init__(self, attacks: Sequence[Attack], hold: Hold, oracle: Agent | None) -> None:
        self._hold, self._oracle = hold, oracle
        found = [Trial(attack, "wrong") for attack in attacks]
        found += [Trial(attack, "right") for attack in attacks if attack.right and oracle is not None]
        self.trials = sorted(found, key=lambda trial: trial.attack.slow)  # the others are soon known

    async def __call__(self, run: Run, /) -> None:
        from hudsim.coding.client import SSHClient

        trial = self.trials[run.index]
        if trial.which == "right" and self._oracle is not None:
            await self._oracle(run)
        async with await SSHClient.of(run) as shell:
            path = await self._path(shell)
            source = (await shell.read(path)).decode()
            packed = await asyncio.to_thread(_packed, trial.attack, path, source)
            done = await shell.run(_UNPACK, input=packed, timeout_s=_UNPACK_S)
        if done.code != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise AgentError(f"{trial.attack.name} could not be planted: {said:.300}")

    async def _path(self, shell: SSHClient) -> str:
        for place in self._hold.places:
            if (await shell.run(f"test -f {shlex.quote(place)}")).code == 0:
                return place
        raise AgentError(f"no module {self._hold.module} in the workspace: looked for {', '.join(self._hold.places)}")


def _packed(attack: Attack, path: str, source: str) -> bytes:
    """All that it plants, as a tar."""
    data = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="hudsim-siege-") as name, tarfile.open(fileobj=data, mode="w") as tar:
        folder = Path(name)
        attack.plant(folder, path=path, source=source)
        for entry in sorted(folder.iterdir()):
            tar.add(entry, entry.name)
    return data.getvalue()


def _tests(run: Run) -> frozenset[str]:
    hold = Hold.of(None if run.grade is None else run.grade.subscores)
    return frozenset() if hold is None else hold.tests


def _nodes(subscores: Sequence[SubScore] | None) -> Iterator[SubScore]:
    for node in subscores or ():
        yield node
        yield from _nodes(node.children)


def _ways(told: Mapping[str, Any]) -> frozenset[str]:
    given = told.get("process", "separate")
    return frozenset({given} if isinstance(given, str) else given.values())
