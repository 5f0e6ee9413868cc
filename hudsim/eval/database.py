"""``Database``: the writing end of the run store; every call blocks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from hudsim.errors import HudsimError, StoreError
from hudsim.eval.attempts import attempts_after, taken_back
from hudsim.eval.batch import Batch
from hudsim.eval.jobrow import JobRow
from hudsim.eval.patience import Patience
from hudsim.eval.run import Run
from hudsim.eval.runrow import read_run, row_or_what_is_left
from hudsim.eval.schema import open_writer
from hudsim.eval.trace import Trace

__all__ = ["Database"]

T = TypeVar("T")


class Database:
    """One connection, for one thread. The file is opened, and made, by the first thing that is written.

    ``patience``: how long to wait while another process has it locked. What cannot be kept raises
    :class:`~hudsim.errors.StoreError`, and nothing of it is kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def create(self, patience: Patience, job: JobRow) -> None:
        values = (job.id, job.name, job.group, job.created_at)
        self._commit(patience, f"job {job.id}", lambda db: db.execute("INSERT INTO jobs VALUES (?, ?, ?, ?)", values))

    def add(self, patience: Patience, job: str, number: int, batch: Batch) -> None:
        document = batch.to_json()
        values = (job, number, batch.group, batch.expected, json.dumps(batch.config), json.dumps(document["tasks"]))
        self._commit(
            patience,
            f"batch {number} of job {job}",
            lambda db: db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", values),
        )

    def finish(self, patience: Patience, batch: int, position: int, run: Run) -> list[dict[str, Any]]:
        """Keep a run and its trace together; its attempts, with what it took the place of.

        Raises :class:`~hudsim.errors.StoreError` if a run that counts stands there.
        """
        row, trace = run.to_row(), _words(run.trace)
        place = (run.id, run.job_id, batch, position, run.slug, run.index)

        def keep(db: sqlite3.Connection) -> list[dict[str, Any]]:
            there = db.execute("SELECT row FROM runs WHERE id = ?", (run.id,)).fetchone()
            attempts = attempts_after(None if there is None else row_or_what_is_left(run.id, there[0]), run.attempts)
            values = (
                *place,
                row["verdict"],
                row["reward"],
                run.end,
                run.seconds,
                json.dumps(row | {"attempts": attempts}),
            )
            db.execute("DELETE FROM traces WHERE run = ?", (run.id,))
            db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            db.execute("INSERT INTO traces VALUES (?, ?)", (run.id, trace))
            return attempts

        return self._commit(patience, f"run {run.id}", keep)

    def invalidate(self, patience: Patience, run_ids: Sequence[str], because: str) -> list[dict[str, Any]]:
        """Take runs back, all or none; their rows as they are then."""

        def take(db: sqlite3.Connection) -> list[dict[str, Any]]:
            rows = []
            for run_id in run_ids:
                (there,) = db.execute("SELECT row FROM runs WHERE id = ?", (run_id,)).fetchone()
                row = taken_back(read_run(run_id, there).to_row(), because)
                values = (row["verdict"], row["reward"], json.dumps(row), run_id)
                db.execute("UPDATE runs SET verdict = ?, reward = ?, row = ? WHERE id = ?", values)
                rows.append(row)
            return rows

        return self._commit(patience, f"that {', '.join(run_ids)} count no more", take)

    def close(self) -> None:
        """Close the file. Idempotent; what is written afterwards opens it again."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):  # what was committed is safe already
                connection.close()

    def _commit(self, patience: Patience, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        db = self._opened(patience)
        try:
            return patience.have(self._path, lambda: _transaction(db, work))
        except HudsimError:
            raise
        except (sqlite3.Error, OverflowError, TypeError, ValueError) as error:
            reason = f"{what} was not kept in {self._path}: {error}"
            raise StoreError(f"{reason}; all that was kept before is still there") from None

    def _opened(self, patience: Patience) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_writer(self._path, patience)
            self._file = _inode(self._path)
        elif _inode(self._path) != self._file:  # SQLite would go on writing where nobody can find it
            raise StoreError(f"nothing can be kept in {self._path}: it was moved or deleted meanwhile")
        return self._connection


def _transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    db.execute("BEGIN IMMEDIATE")
    try:
        done = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(sqlite3.Error):  # a full disk may have rolled it back by itself
                db.execute("ROLLBACK")
        raise
    return done


def _words(trace: Trace) -> str:
    """As JSON. An answer that cannot be said in JSON is kept as it prints: no run is lost for it."""
    document = trace.to_json()
    try:
        return json.dumps(document)
    except (TypeError, ValueError, RecursionError):
        extra = {str(key): repr(value) for key, value in trace.extra.items()}
        return json.dumps({**document, "content": repr(trace.content), "extra": extra})


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
