"""``Lookup``: the reading end of the run store; every call blocks."""

from __future__ import annotations

import difflib
import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hudsim.errors import StoreError, UnknownName, UsageError
from hudsim.eval.batch import Batch
from hudsim.eval.jobrow import JobRow, JobSummary, KeptJob
from hudsim.eval.run import Run
from hudsim.eval.runrow import read_run
from hudsim.eval.schema import reading
from hudsim.eval.trace import Trace

__all__ = ["Lookup", "read_trace"]

log = logging.getLogger(__name__)

_JOB = "SELECT id, name, group_size, created_at FROM jobs"
_NEWEST_FIRST = "ORDER BY rowid DESC"  # as they were begun: clocks are stepped
_LISTED = 8  # names in an error; of more the nearest


class Lookup:
    """Answers from one connection, which sees one moment.

    A job is named by its id, by a beginning of it that no other shares, or ``last``: the newest. A run by its id, or
    by a job so named, a dash and its number: ``last-7``. What is not there, or is several, raises
    :class:`~hudsim.errors.UnknownName` with what comes near.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def jobs(self) -> list[JobSummary]:
        """All jobs, newest first."""
        verdicts: dict[str, Counter[str]] = {}
        for job, verdict, count in self._db.execute("SELECT job, verdict, count(*) FROM runs GROUP BY job, verdict"):
            verdicts.setdefault(job, Counter())[verdict] = count
        rewards = dict(self._db.execute("SELECT job, avg(reward) FROM runs GROUP BY job").fetchall())
        planned = "SELECT job, sum(expected), config, min(batch) FROM batches GROUP BY job"  # the config of that batch
        plans = {job: (expected, _config(config)) for job, expected, config, _ in self._db.execute(planned)}
        found = []
        for row in self._db.execute(f"{_JOB} {_NEWEST_FIRST}"):
            job = JobRow(*row)
            expected, config = plans.get(job.id, (0, {}))
            counts = verdicts.get(job.id, Counter())
            if counts.total() < expected:
                counts["missing"] = expected - counts.total()
            found.append(JobSummary(job, config, expected, counts, rewards.get(job.id)))
        return found

    def job(self, name: str) -> JobRow:
        """The job called ``name``."""
        jobs = [JobRow(*row) for row in self._db.execute(f"{_JOB} {_NEWEST_FIRST}")]
        if name == "last" and jobs:
            return jobs[0]
        found = [job for job in jobs if name and job.id.startswith(name)]
        found = [job for job in found if job.id == name] or found
        if len(found) == 1:
            return found[0]
        kind = "job, but several that begin with" if found else "job"
        raise UnknownName(kind, name, _near(name, [job.id for job in found or jobs]))

    def load(self, name: str) -> KeptJob:
        """All of the job called ``name`` but its traces, and but what cannot be read: that is logged.

        Raises :class:`~hudsim.errors.StoreError` if what the job is cannot be read.
        """
        job = self.job(name)
        batches = "SELECT batch, group_size, config, tasks FROM batches WHERE job = ? ORDER BY batch"
        planned = [_batch(job.id, *row) for row in self._db.execute(batches, (job.id,))]
        return KeptJob(job, planned, list(self._runs(job.id, [batch.expected for batch in planned])))

    def _runs(self, job: str, sizes: list[int]) -> Iterator[Run]:
        """Those that can be read, and stand where they should."""
        firsts = [sum(sizes[:n]) for n in range(len(sizes))]
        rows = "SELECT id, batch, position, row FROM runs WHERE job = ? ORDER BY batch, position"
        for run_id, batch, position, row in self._db.execute(rows, (job,)):
            if batch >= len(firsts) or run_id != f"{job}-{firsts[batch] + position}":
                log.warning("run %s stands in another's place; it counts as missing", run_id)
                continue
            try:
                yield read_run(run_id, row)
            except StoreError as error:
                log.warning("%s; it counts as missing", error.message)

    def run(self, name: str) -> Run:
        """The run called ``name``, with its trace."""
        beginning, dash, number = name.rpartition("-")
        job = self.job(beginning if dash else name)
        found = self._db.execute(
            "SELECT id, row, trace FROM runs LEFT JOIN traces ON run = id WHERE id = ?", (f"{job.id}-{number}",)
        ).fetchone()
        if dash and found is not None:
            return read_run(*found)
        ids = self._db.execute("SELECT id FROM runs WHERE job = ? ORDER BY batch, position", (job.id,))
        raise UnknownName("run", name, _near(f"{job.id}-{number}", [run for (run,) in ids]))


def read_trace(path: Path, run_id: str, started_at: str) -> Trace:
    """The trace of the run that was begun at ``started_at``, from the database at ``path``.

    Raises :class:`~hudsim.errors.StoreError` if it cannot be read, or another was made in its place meanwhile.
    """
    with reading(path) as connection:
        run = Lookup(connection).run(run_id)
    if run.started_at != started_at:
        raise StoreError(f"run {run_id} was made again at {run.started_at}; the trace of that at {started_at} is gone")
    return run.trace


def _config(words: str) -> dict[str, Any]:
    """Empty, if it cannot be read: a listing is one of many jobs."""
    try:
        config = json.loads(words)
    except (TypeError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def _batch(job: str, number: int, group: Any, config: str, tasks: str) -> Batch:
    try:
        return Batch.from_json({"group": group, "config": json.loads(config), "tasks": json.loads(tasks)})
    except (TypeError, ValueError, RecursionError, UsageError) as error:
        raise StoreError(f"batch {number} of job {job} was kept, and cannot be read: {error}") from None


def _near(name: str, there_are: Sequence[str]) -> list[str]:
    near = difflib.get_close_matches(name, there_are, n=_LISTED, cutoff=0.0)
    more = len(there_are) - len(near)
    return [*near, f"… {more} more"] if more else near
