"""``Store``: the runs of a folder, in an SQLite database: what is in it survives whatever happens to the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from hudsim.eval.batch import Batch
from hudsim.eval.database import Database
from hudsim.eval.joblock import JobLock
from hudsim.eval.jobrow import JobRow, JobSummary, KeptJob
from hudsim.eval.lookup import Lookup, read_trace
from hudsim.eval.patience import Patience
from hudsim.eval.run import Run
from hudsim.eval.schema import reading
from hudsim.eval.trace import Trace
from hudsim.given import given_a, given_path
from hudsim.loop.worker import Worker

__all__ = ["Store"]

T = TypeVar("T")


class Store:
    """``folder/hudsim.db``. Making one touches nothing; reading makes neither folder nor file.

    Many processes, and many stores of one process, may use a folder at once. A store writes in the order in which it
    was asked, on a thread of its own, and reads on another: neither waits for the other, and no event loop for them.

    Everything raises :class:`~hudsim.errors.StoreError`, in words, if it cannot be kept or read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = given_path(folder, "runs").absolute()  # wherever the process goes from here
        self.path = self.folder / "hudsim.db"
        self._database = Database(self.path)
        self._locks: dict[str, JobLock] = {}
        self._writer, self._reader = Worker("store"), Worker("store-reads")

    # Writing ------------------------------------------------------------------------------------------------------

    async def create(self, job: JobRow) -> None:
        """Keep a new job."""
        await self._write(self._database.create, job)

    async def add(self, job_id: str, number: int, batch: Batch) -> None:
        """Keep what the ``number``-th call asks of a job, before any run of it is."""
        await self._write(self._database.add, job_id, number, batch)

    async def finish(
        self, batch: int, position: int, run: Run, patience: Patience | None = None
    ) -> list[dict[str, Any]]:
        """Keep a run that is over, with its trace, at its position in its batch.

        patience
            How long to wait while another process has the database locked. None: minutes, with a warning.

        When this returns it is on the disk. A run that stands there without a verdict that counts is replaced, and
        listed in the ``attempts``, which are returned; one that counts is not: :class:`~hudsim.errors.StoreError`.
        """
        return await self._write(self._database.finish, batch, position, run, patience=patience)

    async def invalidate(self, run_ids: Sequence[str], because: str) -> list[Run]:
        """Take runs back, all or none: they count no more, and ``because`` is kept with what they had come to.

        Raises :class:`~hudsim.errors.UsageError` for one that does not count anyway.
        """
        rows = await self._write(self._database.invalidate, run_ids, because)
        return [self._leave_trace(Run.from_row(row)) for row in rows]

    # Reading ------------------------------------------------------------------------------------------------------

    async def jobs(self) -> list[JobSummary]:
        """All jobs, newest first."""
        return await self._read(Lookup.jobs)

    async def load(self, job: str) -> KeptJob:
        """All of a job; the trace of each run is read when it is first asked for. The job is named as
        :class:`~hudsim.eval.lookup.Lookup` says.

        A run that cannot be read is left out, with a warning. Raises :class:`~hudsim.errors.UnknownName`.
        """
        name = given_a(str, job, "job", "the id of one, or last")
        kept = await self._read(lambda lookup: lookup.load(name))
        for run in kept.runs:
            self._leave_trace(run)
        return kept

    async def find_run(self, run: str) -> Run:
        """A run and its trace. Raises :class:`~hudsim.errors.UnknownName`."""
        name = given_a(str, run, "run", "the id of one, as in last-7")
        return await self._read(lambda lookup: lookup.run(name))

    async def trace(self, run: str) -> Trace:
        """The trace of a run. Raises :class:`~hudsim.errors.UnknownName`."""
        return (await self.find_run(run)).trace

    # One process a job ----------------------------------------------------------------------------------------------

    async def hold(self, job_id: str) -> None:
        """Keep everybody else from working on a job, until :meth:`release`, :meth:`close` or the process's end.

        Raises :class:`~hudsim.errors.StoreError`, with the process that holds it.
        """
        await self._act(self._take, job_id)

    async def release(self, job_id: str) -> None:
        """Let others work on the job. Idempotent."""
        lock = self._locks.pop(job_id, None)
        if lock is not None:
            await self._act(lock.release)

    async def close(self) -> None:
        """Release what is held, close the file, end the threads. Idempotent."""
        for job_id in list(self._locks):
            await self.release(job_id)
        await self._act(self._database.close)
        self._writer.stop()
        self._reader.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _leave_trace(self, run: Run) -> Run:
        """``run``, its trace on the disk until it is asked for."""
        run.trace_from(partial(read_trace, self.path, run.id, run.started_at))
        return run

    def _take(self, job_id: str) -> None:
        self._locks[job_id] = JobLock(self.folder / f"{job_id}.lock", job_id)

    async def _write(self, work: Callable[..., T], *args: Any, patience: Patience | None = None) -> T:
        patience = patience or Patience()
        try:
            return await self._act(work, patience, *args)
        except asyncio.CancelledError:
            patience.hurry()  # what is done next on that thread is not to wait for it
            raise

    async def _act(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.wrap_future(self._writer.submit(work, *args))

    async def _read(self, ask: Callable[[Lookup], T]) -> T:
        def answer() -> T:
            with reading(self.path) as connection:
                return ask(Lookup(connection))

        return await asyncio.wrap_future(self._reader.submit(answer))
