"""``BashGrader``: a shell command's exit code as the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hudsim.errors import UsageError
from hudsim.graders.grader import Grader
from hudsim.graders.ground import ground, turn
from hudsim.graders.results import SubScore
from hudsim.graders.verdict import Verdict

__all__ = ["BashGrader"]

_KEPT = 4000  # characters of each stream


class BashGrader(Grader):
    """1.0 if ``command`` exits with 0, else 0.0; it runs in the agent's own sandbox, never on the host.

    ::

        yield await combine(BashGrader.grade(0.2, workspace=ws, command="test -s report.md"))

    An exit code is as much to be trusted as what the command runs: one that runs the agent's files (a test suite, a
    program of its own) can be bought by them. Use :class:`~hudsim.graders.PytestGrader` for those.
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
    ) -> SubScore:
        """``cwd`` None: the workspace. ``timeout`` in seconds; None: ``default_timeout``.

        ``info``: ``exit_code`` (None: it was killed for its time, and the verdict is ``grade_timeout``), ``stdout``
        and ``stderr``, their ends. A limit that it is known to have run into is ``resource_limit``.
        """
        if not command.strip():
            raise UsageError(f"command: got {command!r}, expected a shell command")
        place = ground(workspace)
        before = place.evidence()
        async with turn(place):
            done = await place.run(
                ["/bin/bash", "-c", command],
                cwd=cwd,
                env=env,
                timeout_s=cls.default_timeout if timeout is None else timeout,
            )
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
