"""``Evaluation``: a real ``hudsim eval`` in processes of its own, and what is to be seen of it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hudsim.eval.patience import BUSY_S, Patience
from tests.cli.command import HUDSIM, LIMIT_S
from tests.eval.kill_env import TASKS

__all__ = ["AT_ONCE", "GROUP", "KINDS", "RUNS", "Driver", "Evaluation", "Process", "Row", "evaluation", "until"]

GROUP = 8
AT_ONCE = 4
RUNS = TASKS * GROUP
KINDS = ("driver", "environment", "sim")

_ENV = Path(__file__).with_name("kill_env.py")
_MODULES = {"hudsim.environment.process": "environment", "hudsim.robot.process": "sim"}
_MARK = "MARK_OF_A_TEST"


class Row(NamedTuple):
    """All that the database has of a run: its columns, the trace as it was written."""

    columns: tuple[Any, ...]
    trace: str

    @property
    def run(self) -> dict[str, Any]:
        """The run itself."""
        found: dict[str, Any] = json.loads(self.columns[-1])
        return found

    @property
    def valid(self) -> bool:
        return self.run["reward"] is not None

    @property
    def nonce(self) -> str | None:
        """What the template wrote down as it graded this run."""
        nonce: str | None = (self.run["grade"] or {}).get("info", {}).get("nonce")
        return nonce


class Process(NamedTuple):
    """One of an evaluation's own. ``kind``: one of :data:`KINDS`."""

    pid: int
    parent: int
    kind: str


@dataclass(frozen=True)
class Driver:
    """A ``hudsim`` that runs, whose words go to two files: no pipe is held open by what it leaves behind."""

    popen: subprocess.Popen[bytes]
    out: Path
    err: Path

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end: its exit code, what is on its stdout and stderr."""
        return self.popen.wait(LIMIT_S), self.out.read_text(), self.err.read_text()


@dataclass(frozen=True)
class Evaluation:
    """``hudsim eval`` of 64 short episodes, kept in ``folder``, in environments of ``slots`` slots each.

    Its processes, and theirs, have ``mark`` in their environment, and so are found also when their parents are gone.
    """

    folder: Path
    mark: str
    slots: int
    ticks: int

    @property
    def words(self) -> list[str]:
        """What is typed behind ``hudsim``."""
        return [
            "eval", str(_ENV), f"{_ENV}:player", "--group", str(GROUP), "--max-concurrent", str(AT_ONCE),
            "--runtime", "subprocess", "--runs", str(self.folder / "runs"), "--set", f"graded={self._graded}",
            "--set", f"slots={self.slots}", "--set", f"ticks={self.ticks}", "--json",
        ]  # fmt: skip

    def start(self, words: list[str] | None = None) -> Driver:
        """``hudsim`` with ``words``. None: it begins a job."""
        said = self.folder / secrets.token_hex(4)
        out, err = said.with_suffix(".out"), said.with_suffix(".err")
        environment = {**os.environ, _MARK: self.mark}
        with out.open("wb") as out_file, err.open("wb") as err_file:
            popen = subprocess.Popen(
                [*HUDSIM, *(words or self.words)], stdout=out_file, stderr=err_file, env=environment, cwd=self.folder
            )
        return Driver(popen, out, err)

    def resumed(self, job: str) -> list[str]:
        """What is typed to go on with a job."""
        return [*self.words, "--resume", job]

    # What is to be seen -------------------------------------------------------------------------------------------

    def jobs(self) -> list[str]:
        """The ids of the jobs in the database."""
        return [job for (job,) in self._ask("SELECT id FROM jobs ORDER BY rowid")]

    def rows(self) -> dict[str, Row]:
        """What is committed at this moment, by the runs' ids."""
        found = self._ask("SELECT runs.*, trace FROM runs JOIN traces ON run = id ORDER BY batch, position")
        return {values[0]: Row(values[:-1], values[-1]) for values in found}

    def graded(self) -> list[tuple[str, str]]:
        """The run and the nonce of each grading so far, in order."""
        if not self._graded.exists():
            return []
        return [(run, nonce) for run, nonce in (line.split() for line in self._graded.read_text().splitlines())]

    def processes(self, *kinds: str) -> list[Process]:
        """Those of these kinds (none: all) that live, wherever in the tree of processes; a zombie does not."""
        found = [process for process in map(self._process, Path("/proc").glob("[0-9]*")) if process is not None]
        return [process for process in found if process.kind in (kinds or KINDS)]

    @property
    def _graded(self) -> Path:
        return self.folder / "graded"

    def _ask(self, question: str) -> list[Any]:
        """From a connection that cannot change anything, nor tidy up at its end what a killed driver left."""
        file = self.folder / "runs" / "hudsim.db"

        def answer() -> list[Any]:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as db:
                laid_out = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'traces'").fetchone()
                return db.execute(question).fetchall() if laid_out else []

        return Patience(BUSY_S).have(file, answer) if file.exists() else []

    def _process(self, entry: Path) -> Process | None:
        try:
            if f"{_MARK}={self.mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                return None
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return None  # gone meanwhile, or another user's
        return Process(int(entry.name), parent, next((_MODULES[word] for word in words if word in _MODULES), "driver"))


@contextmanager
def evaluation(folder: Path, *, slots: int = 2, ticks: int = 20) -> Iterator[Evaluation]:
    """An evaluation, nothing of which is left running."""
    made = Evaluation(folder, secrets.token_hex(8), slots, ticks)
    try:
        yield made
    finally:
        for process in made.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def until(fact: Callable[[], object], *, limit_s: float = LIMIT_S, every_s: float = 0.005) -> float:
    """Wait for a fact; how many seconds that took."""
    began = time.monotonic()
    while not fact():
        assert time.monotonic() - began < limit_s, f"not within {limit_s:g} s"
        time.sleep(every_s)
    return time.monotonic() - began
