"""``Job``: the runs of one evaluation, kept as they finish, and what they come to."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hudsim.environment.task import Task
from hudsim.errors import UsageError
from hudsim.eval.attempts import attempts_after, taken_back
from hudsim.eval.batch import Batch, check_group
from hudsim.eval.jobrow import JobRow, KeptJob
from hudsim.eval.passes import PassAt, pass_at
from hudsim.eval.patience import Patience
from hudsim.eval.run import Run
from hudsim.eval.spread import Spread, spread_of
from hudsim.eval.store import Store
from hudsim.given import given_text
from hudsim.graders import Verdict

__all__ = ["Job"]

log = logging.getLogger(__name__)


class Job:
    """What :meth:`hudsim.eval.Taskset.run` returns, and adds to if it is given one.

    Each such call is a batch: so many runs of each of its tasks, the task's group. Made by :meth:`start`,
    :meth:`resume` or :meth:`load`. One process at a time works on a job, until :meth:`close`.

    id, name, created_at
        ``created_at``: the wall clock at its start, ISO 8601 in UTC.
    group
        Runs a task, where a call does not say.
    """

    def __init__(self, kept: KeptJob, *, store: Store | None, closed: bool = False) -> None:
        row = kept.job
        self.id, self.name, self.group, self.created_at = row.id, row.name, row.group, row.created_at
        self._store, self._closed = store, closed
        self._batches = kept.batches
        self._ends = list(accumulate(batch.expected for batch in kept.batches))  # of batches, in numbers of runs
        self._runs = {_number(run): run for run in kept.runs}  # counted through the job: by batch, task, index
        self._planned = 0  # batches, since it was started or resumed
        self._planning = asyncio.Lock()

    # Its life -----------------------------------------------------------------------------------------------------

    @classmethod
    async def start(cls, name: str, *, group: int = 1, runs: str | Path | None = Path("runs")) -> Self:
        """Begin a job for any number of calls of :meth:`hudsim.eval.Taskset.run`.

        runs
            The folder whose database keeps it. None: it is kept in memory alone.

        Raises :class:`~hudsim.errors.StoreError` if nothing can be kept there.
        """
        given_text(name, "job", "a name")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = JobRow(secrets.token_hex(4), name, check_group(group), now)
        store = None if runs is None else Store(runs)
        if store is not None:
            try:
                await store.hold(row.id)
                await store.create(row)
            except BaseException:
                await store.close()
                raise
        return cls(KeptJob(row, [], []), store=store)

    @classmethod
    async def resume(cls, job_id: str, *, runs: str | Path = Path("runs")) -> Self:
        """Go on with a job that was broken off: the same calls in the same order make only what is missing.

        job_id
            Its id, the beginning of it, or ``last``.

        The trace of a run that was kept is read when it is first asked for. A run that cannot be read is missing.
        Raises :class:`~hudsim.errors.UnknownName`; :class:`~hudsim.errors.StoreError` if another process works on it.
        """
        store = Store(runs)
        try:
            found = await store.load(job_id)
            await store.hold(found.job.id)
            return cls(await store.load(found.job.id), store=store)  # with what its last holder kept meanwhile
        except BaseException:
            await store.close()
            raise

    @classmethod
    async def load(cls, job_id: str, *, runs: str | Path = Path("runs")) -> Self:
        """A job to look at, as far as it has come; it is closed. Raises as :meth:`resume`, but holds nothing."""
        async with Store(runs) as store:
            return cls(await store.load(job_id), store=None, closed=True)

    async def plan(self, tasks: Sequence[Task], group: int, config: Mapping[str, Any]) -> list[Run]:
        """The runs that the next call has to make, in order: ``group`` of each task; of a resumed job, what is missing.

        config
            What makes runs comparable, plain JSON: agent, settings, limits.

        Raises :class:`~hudsim.errors.UsageError` which names every difference if the resumed job's call was another.
        """
        batch = Batch.of(tasks, group=group, config=config)
        async with self._planning:
            self._check_open()
            number = self._planned
            if number < len(self._batches):
                if differences := batch.differences(self._batches[number]):
                    raise UsageError(f"job {self.id} cannot go on with another plan: {'; '.join(differences)}")
            else:
                if self._store is not None:
                    await self._store.add(self.id, number, batch)
                self._batches.append(batch)
                self._ends.append(self.expected + batch.expected)
            self._planned += 1
        here = {task.slug: task for task in tasks}
        names = {task.slug: name for batch, task, name in self._names() if batch == number}
        return [
            Run(here[task.slug], job_id=self.id, run_id=f"{self.id}-{n}", index=index, group=names[task.slug])
            for n, (task, index) in enumerate(self._batches[number].places(), self._first(number))
            if n not in self._runs or not self._runs[n].valid
        ]

    async def finish(self, run: Run) -> None:
        """Keep a run that is over, and put it into its place. When this returns, or is cancelled, it is kept; but while
        another process has the database locked, one that is cancelled is given up soon.

        Raises :class:`~hudsim.errors.StoreError` if it cannot be kept, or a run that counts has its place.
        """
        self._check_open()
        number, batch = self._place(run)
        if run.verdict is None or (run.valid and not math.isfinite(run.reward or 0.0)):
            raise UsageError(f"run {run.id}: got verdict {run.verdict}, reward {run.reward}, expected those of a run")
        patience = Patience()
        await _to_its_end(self._keep(run, number, batch, patience), patience)

    async def _keep(self, run: Run, number: int, batch: int, patience: Patience) -> None:
        if self._store is not None:
            run.attempts = await self._store.finish(batch, number - self._first(batch), run, patience)
        else:
            before = self._runs.get(number)
            run.attempts = attempts_after(None if before is None else before.to_row(), run.attempts)
        self._runs[number] = run

    async def invalidate(self, runs: Sequence[Run], *, because: str) -> list[Run]:
        """Take ``runs`` back, all or none: for whoever knows that they say nothing about the agent.

        They are ``cancelled`` then, and made again by a resume. What each had come to, and ``because``, is the last of
        its ``attempts``.

        Raises :class:`~hudsim.errors.UsageError` for a run that does not count anyway, or is not of this job.
        """
        self._check_open()
        given_text(because, "because", "why they say nothing about the agent")
        numbers = [self._place(run)[0] for run in runs]
        for number, run in zip(numbers, runs, strict=True):
            if number not in self._runs:
                raise UsageError(f"run {run.id} is not over")
        if self._store is not None:
            taken = await self._store.invalidate([run.id for run in runs], because)
        else:
            taken = [Run.from_row(taken_back(self._runs[n].to_row(), because)) for n in numbers]
            for number, run in zip(numbers, taken, strict=True):
                run.trace = self._runs[number].trace
        self._runs.update(zip(numbers, taken, strict=True))
        return taken

    async def close(self) -> None:
        """Let others work on it. What was kept stays. Idempotent."""
        self._closed = True
        if self._store is not None:
            await self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # What it came to ----------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[Run]:
        """Those that are over, task by task and each group whole, in whatever order they finished."""
        return [run for _, _, runs in self._groups() for run in runs]

    @property
    def results(self) -> dict[str, list[Run]]:
        """The same by slug."""
        results: dict[str, list[Run]] = {}
        for run in self.runs:
            results.setdefault(run.slug, []).append(run)
        return results

    @property
    def config(self) -> dict[str, Any]:
        """Of its first batch; empty if nothing is planned yet."""
        return self._batches[0].config if self._batches else {}

    @property
    def expected(self) -> int:
        """How many runs it should have, by what is planned so far."""
        return self._ends[-1] if self._ends else 0

    @property
    def ran(self) -> int:
        """How many runs have a verdict that counts."""
        return sum(run.valid for run in self._runs.values())

    @property
    def complete(self) -> bool:
        """Whether every run has a verdict that counts."""
        return self.ran == self.expected

    @property
    def errors(self) -> list[Run]:
        """Runs that do not count: their verdict is about the harness. :meth:`resume` makes them again."""
        return [run for run in self.runs if not run.valid]

    @property
    def verdicts(self) -> Counter[str]:
        """How often each verdict occurs; ``missing`` is what has not run."""
        occur = Counter(run.verdict for run in self._runs.values())
        counts = Counter({verdict.value: occur[verdict] for verdict in Verdict if occur[verdict]})
        if len(self._runs) < self.expected:
            counts["missing"] = self.expected - len(self._runs)
        return counts

    @property
    def reward(self) -> float | None:
        """Mean over the runs that count. None: there is none."""
        rewards = self._rewards()
        return math.fsum(rewards) / len(rewards) if rewards else None

    @property
    def mean_over_all(self) -> float | None:
        """The same, but what does not count and what is missing is a 0. None: nothing is planned yet."""
        return math.fsum(self._rewards()) / self.expected if self.expected else None

    def spread(self) -> dict[str, Spread]:
        """Whether the rewards of each group differ. A group is named by its slug; where an earlier batch had that
        slug, by ``slug#batch``, counted from 0.
        """
        return {name: spread_of(runs, group) for name, group, runs in self._groups()}

    def pass_at(self, k: int) -> PassAt:
        """The chance that of ``k`` runs of a task one passes; see :func:`~hudsim.eval.passes.pass_at`.

        Raises :class:`~hudsim.errors.UsageError` for a ``k`` below 1, and if no task has ``k`` runs that count.
        """
        results: dict[str, list[Run]] = {task.slug: [] for batch in self._batches for task in batch.tasks}
        return pass_at(results | self.results, k)

    def to_json(self) -> dict[str, Any]:
        """All but prompts and traces, plain JSON."""
        return {
            "job": self.id,
            "reward": self.reward,
            "mean_over_all": self.mean_over_all,
            "verdicts": dict(self.verdicts),
            "spread": {name: spread.to_json() for name, spread in self.spread().items()},
            "runs": [_told(run) for run in self.runs],
        }

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.name!r} {self.ran} of {self.expected} count>"

    # ----------------------------------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[tuple[str, int, list[Run]]]:
        """In order: each group's name, its size, and those of its runs that are over."""
        first = 0
        for number, _, name in self._names():
            size = self._batches[number].group
            yield name, size, [self._runs[n] for n in range(first, first + size) if n in self._runs]
            first += size

    def _names(self) -> Iterator[tuple[int, Task, str]]:
        """In order: each group's batch, its task, its name."""
        names = set[str]()
        for number, batch in enumerate(self._batches):
            for task in batch.tasks:
                name = task.slug
                while name in names:
                    name = f"{name}#{number}"
                names.add(name)
                yield number, task, name

    def _rewards(self) -> list[float]:
        return [run.reward for run in self._runs.values() if run.reward is not None]

    def _first(self, batch: int) -> int:
        """The number of a batch's first run."""
        return self._ends[batch] - self._batches[batch].expected

    def _place(self, run: Run) -> tuple[int, int]:
        """The number of a run, and of its batch."""
        number = run.id.removeprefix(f"{self.id}-")
        if not number.isdecimal() or int(number) >= self.expected:
            raise UsageError(f"run {run.id} was not planned by job {self.id}")
        return int(number), bisect_right(self._ends, int(number))

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"job {self.id} is closed; Job.resume({self.id!r}) goes on with it")


def _number(run: Run) -> int:
    return int(run.id.rpartition("-")[2])


def _told(run: Run) -> dict[str, Any]:
    frame = run.grade.to_frame() if run.grade is not None else {}
    told = {
        "run": run.id,
        "task": run.slug,
        "group": run.group_id,
        "index": run.index,
        "verdict": run.verdict,
        "reward": run.reward,
        "end": run.end,
        "seconds": run.seconds,
        "subscores": frame.get("subscores"),
    }
    return told if run.error is None else told | {"error": run.error}


async def _to_its_end(work: Coroutine[Any, Any, None], patience: Patience) -> None:
    """Do ``work``, also if whoever waits for it is cancelled meanwhile: that goes on when it is done, soon."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        patience.hurry()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("%s", error)  # it is the cancellation that counts now
        raise
