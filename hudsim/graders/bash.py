"""``BashGrader``: a shell command's exit code as the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hudsim.errors import SandboxBroken, UsageError, WorkspaceError
from hudsim.graders.grader import Grader
from hudsim.graders.ground import ground
from hudsim.graders.results import SubScore
from hudsim.graders.verdict import Verdict

__all__ = ["BashGrader"]

_KEPT = 4000  # characters of each stream


class BashGrader(Grader):
    """1.0 if ``command`` exits with 0, else 0.0; it runs in the agent's own sandbox, alone, and never on the host.

    ::

        yield await combine(BashGrader.grade(0.2, workspace=ws, command="test -s report.md"))

    The shell is closed, and all that runs there is ended first: what the agent left, and what a grader before it did.
    An exit code is as much to be trusted then as what the command runs: one that runs the agent's files (a test suite,
    a program of its own) can be bought by them. Use :class:`~hudsim.graders.PytestGrader` for those.
    """

    name = "BashGrader"
    default_timeout: ClassVar[float] = 600.0

    @classmethod
    async def compute_score(
        cls,
        *,
        workspace: Any,
        command: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a part of the grade: it is a verdict, not an error
        keep_running: bool = False,
    ) -> SubScore:
        """``cwd`` None: the workspace. ``timeout`` in seconds; None: ``default_timeout``.

        ``keep_running`` is for a server that the agent has started: what it left running goes on. All of that has the
        command's own rights then: it can read its words before it answers, stop it, and rewrite its exit code, so that
        a 1.0 says no more than that the agent wanted one.

        ``info``: ``exit_code`` (None: it did not come to its end; killed for its time, the verdict is
        ``grade_timeout``), ``stdout`` and ``stderr``, their ends. A limit that it is known to have run into is
        ``resource_limit``. A ``cwd`` that is not there, or not to be entered, is a 0.
        """
        if not command.strip():
            raise UsageError(f"command: got {command!r}, expected a shell command")
        place = ground(workspace)
        before = place.evidence()
        try:
            await place.seal()
            done = await place.run(
                ["/bin/bash", "-c", command],
                cwd=cwd,
                env=env,
                timeout_s=cls.default_timeout if timeout is None else timeout,
                keep_running=keep_running,
            )
        except WorkspaceError as error:
            return SubScore(name=cls.name, value=0.0, info={"exit_code": None, "stdout": "", "stderr": error.message})
        except SandboxBroken as error:
            if not (limits := place.evidence()):
                raise
            why = {"verdict": Verdict.resource_limit.value, "why": [*limits, error.message]}
            return SubScore(name=cls.name, value=0.0, info={"exit_code": None, **why})
        info: dict[str, Any] = {
            "exit_code": None if done.timed_out else done.code,
            "stdout": done.stdout.decode(errors="replace")[-_KEPT:],
            "stderr": done.stderr.decode(errors="replace")[-_KEPT:],
            "timed_out": done.timed_out,
            "seconds": round(done.seconds, 4),
        }
        passed = done.code == 0 and not done.timed_out
        new = [line for line in place.evidence() if line not in before]
        if not passed and new:
            info |= {"verdict": Verdict.resource_limit.value, "why": new}
        elif done.timed_out:
            info["verdict"] = Verdict.grade_timeout.value
        return SubScore(name=cls.name, value=float(passed), info=info)
