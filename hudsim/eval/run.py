"""``Run``: one task in an agent's hands, and afterwards what came of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from hudsim.capability import Capability
from hudsim.environment.task import Task
from hudsim.errors import TaskError, UnknownName
from hudsim.eval.trace import Step, Trace
from hudsim.given import given_text
from hudsim.graders import EvaluationResult, Verdict

if TYPE_CHECKING:
    from hudsim.eval.access import Access

__all__ = ["End", "Run"]

End = Literal["done", "max_steps", "timeout", "error", "lost"]
"""How the agent ended: it returned; it, or the world, had its ``max_steps``; its time was up; it raised; what it
worked on was lost. The first four are its own doing and are graded."""


class Run:
    """What an agent is called with: ``await agent(run)``. In a job, the record of that.

    An agent is given a copy. Of what it does to it the record takes over the answer, the steps, and ``end`` if that
    is ``max_steps``.

    While it is live
        ``prompt``, ``capabilities`` and ``bindings`` say what to do and where; ``record`` adds to ``trace``;
        ``trace.content`` is the answer that will be graded. ``waits_for`` is what its start waits for, in words.
    id, job_id, slug, index, group_id
        ``index`` counts within the group, from 0. ``group_id`` names the group through all of the job's batches.
    end
        How the agent ended. None: it never began.
    verdict
        Of the grade; see :class:`~hudsim.graders.Verdict`. None: the run is not over.
    grade
        What the template said. None: it was not graded.
    error
        What went wrong, in words: the agent's, the environment's, the grader's. None: nothing.
    seconds
        From asking for the environment to the grade. ``started_at``: the wall clock then, ISO 8601 in UTC.
    attempts
        What became of earlier tries of this run which were nobody's verdict: ``[{"verdict", "error", …}]``.
    """

    def __init__(self, task: Task, *, job_id: str, run_id: str, index: int = 0, group: str | None = None) -> None:
        self.task = task
        self.id, self.job_id, self.index = run_id, job_id, index
        self._group = task.slug if group is None else group
        self.prompt: Any = None
        self.bindings: dict[str, dict[str, Any]] = {}
        self.capabilities: dict[str, Capability] = {}
        self._trace: Trace | Callable[[], Trace] = Trace()
        self.end: End | None = None
        self.verdict: Verdict | None = None
        self.grade: EvaluationResult | None = None
        self.error: str | None = None
        self.seconds = 0.0
        self.started_at = ""
        self.attempts: list[dict[str, Any]] = []
        self.waits_for: str | None = None
        self._access: Access | None = None

    # What it is ---------------------------------------------------------------------------------------------------

    @property
    def slug(self) -> str:
        return self.task.slug

    @property
    def task_id(self) -> str:
        """The template's id."""
        return self.task.id

    @property
    def group_id(self) -> str:
        return f"{self.job_id}/{self._group}"

    @property
    def trace_id(self) -> str:
        return self.id

    @property
    def trace(self) -> Trace:
        """What was done in it. Of a run that was kept it is read when it is first asked for, which takes milliseconds.

        Raises :class:`~hudsim.errors.StoreError` if it cannot be read then.
        """
        if callable(self._trace):
            self._trace = self._trace()
        return self._trace

    @trace.setter
    def trace(self, trace: Trace) -> None:
        self._trace = trace

    def trace_from(self, read: Callable[[], Trace]) -> None:
        """Have ``read`` called for the trace, once it is asked for."""
        self._trace = read

    @property
    def valid(self) -> bool:
        """Whether it has a verdict that counts: one about the agent, not about the harness."""
        return self.verdict is not None and self.verdict.valid

    @property
    def reward(self) -> float | None:
        """The reward. None: there is no valid one."""
        if not self.valid:
            return None
        return self.grade.reward if self.grade is not None else 0.0

    # For the agent ------------------------------------------------------------------------------------------------

    @property
    def prompt_text(self) -> str:
        """The prompt as plain text: of a list of messages their contents, one below the other."""
        return _words(self.prompt)

    @property
    def same_host(self) -> bool:
        """Whether the environment's own ports can be dialled from here."""
        return self._live().same_host

    def _live(self) -> Access:
        if self._access is None:
            raise TaskError(f"run {self.id} is not live: it has no connection")
        return self._access

    def handed(self, access: Access) -> Self:
        """A copy of it for an agent: what is done to that does not reach this one, which is the record."""
        theirs = type(self)(
            self.task.model_copy(deep=True), job_id=self.job_id, run_id=self.id, index=self.index, group=self._group
        )
        theirs.prompt, theirs.bindings = copy.deepcopy(self.prompt), copy.deepcopy(self.bindings)
        theirs.capabilities = dict(self.capabilities)
        theirs.started_at = self.started_at
        theirs.trace = self.trace.copy()
        theirs.attach(access)
        return theirs

    def attach(self, access: Access) -> None:
        """Make it live, for as long as ``access`` is given."""
        self._access = access

    def capability(self, name: str) -> Capability:
        """The capability called ``name``, or the only one that speaks the protocol ``name`` (``ssh``, ``hudsim/1``).

        Raises :class:`~hudsim.errors.UnknownName`, which lists those there are.
        """
        given_text(name, "capability", "the name of one")
        if name in self.capabilities:
            return self.capabilities[name]
        speaking = [c for c in self.capabilities.values() if name in (c.protocol, c.protocol.partition("/")[0])]
        if len(speaking) == 1:
            return speaking[0]
        there_are = [f"{c.name} ({c.protocol})" for c in self.capabilities.values()]
        raise UnknownName("capability", name, there_are)

    async def reach(self, name: str) -> Capability:
        """As :meth:`capability`, with a URL that can be dialled from here: through a tunnel if it must be."""
        return await self._live().reach(self.capability(name))

    async def reference(self) -> Any:
        """What the task's author would answer or do; for ``oracle``.

        Raises :class:`~hudsim.errors.TaskError` unless the environment is served so that it reveals references.
        """
        return await self._live().reference()

    def record(self, step: Step) -> Step:
        """Add a step to the trace."""
        return self.trace.record(step)

    def note(
        self,
        source: str,
        *,
        content: str | None = None,
        data: dict[str, Any] | None = None,
        error: str | None = None,
        started_s: float | None = None,
    ) -> Step:
        """Add a step made of these; see :class:`~hudsim.eval.trace.Step`."""
        return self.record(Step(source, content=content, data=data or {}, error=error, started_s=started_s))

    # As a row -----------------------------------------------------------------------------------------------------

    def to_row(self) -> dict[str, Any]:
        """All but the trace, as plain JSON; :meth:`from_row` reads it back."""
        return {
            "id": self.id,
            "job": self.job_id,
            "task": self.task.to_row(),
            "index": self.index,
            "group": self._group,
            "prompt": self.prompt,
            "end": self.end,
            "verdict": self.verdict,
            "reward": self.reward,
            "grade": None if self.grade is None else self.grade.to_frame(),
            "error": self.error,
            "seconds": self.seconds,
            "started_at": self.started_at,
            "attempts": self.attempts,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], trace: Mapping[str, Any] | None = None) -> Self:
        """From :meth:`to_row`. ``trace`` None: an empty one."""
        run = cls(
            Task.model_validate(row["task"]),
            job_id=row["job"],
            run_id=row["id"],
            index=row["index"],
            group=row.get("group"),
        )
        run.prompt, run.end, run.error = row["prompt"], row["end"], row["error"]
        run.verdict = None if row["verdict"] is None else Verdict(row["verdict"])
        run.grade = None if row["grade"] is None else EvaluationResult.from_frame(row["grade"])
        run.seconds, run.started_at, run.attempts = row["seconds"], row["started_at"], list(row["attempts"])
        if trace is not None:
            run.trace = Trace.from_json(trace)
        return run

    def __repr__(self) -> str:
        came = "live" if self.verdict is None else f"{self.verdict} {self.reward}"
        return f"<Run {self.id} {self.slug}[{self.index}] {came}>"


def _words(prompt: Any) -> str:
    if prompt is None:
        return ""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        return "\n\n".join(filter(None, map(_words, prompt)))
    if isinstance(prompt, dict):
        content = prompt.get("content", prompt.get("text"))
        return _words(content) if content is not None else json.dumps(prompt)
    return str(prompt)
