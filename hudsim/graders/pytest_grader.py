"""``PytestGrader``: hidden tests as the score, run where the solution cannot reach the verdict."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from hudsim.coding.freeze import is_no_room
from hudsim.coding.place import Place
from hudsim.coding.tree import measure, remove_tree
from hudsim.errors import SandboxError, UsageError
from hudsim.graders.combine import combine
from hudsim.graders.grader import Grader
from hudsim.graders.ground import Copy, Ground, ground
from hudsim.graders.report import Account
from hudsim.graders.results import EvaluationResult, SubScore
from hudsim.graders.suite import Suite, Way, expected_ids
from hudsim.graders.tally import tally, wanted_ids
from hudsim.graders.trial import Outcome, Setting, copied, run_same, run_separate
from hudsim.graders.trust import trust_card
from hudsim.graders.verdict import Verdict

__all__ = ["PytestGrader"]

_MOST_SKIPPED = 20
_MUCH = 64 << 20
"""Bytes: a workspace that holds them answers for a disk that is full when it is to be graded."""


class PytestGrader(Grader):
    """1.0 if every hidden test passes, with one child a test.

    ::

        yield await combine(PytestGrader.grade(workspace=ws, tests=HERE / "hidden", modules=("calc",)))

    The agent's processes are killed, and its files copied into a fresh sandbox, in which they can change neither the
    tests nor the configuration nor the verdict. Nothing else of what the agent wrote has any effect: pytest sees none
    of its ``conftest.py``, ``pytest.ini``, plugins, ``.pth`` files and tests.

    ``process`` says how each test file is run, as one word, or by pattern (the first that matches; else
    ``separate``):

    ``separate``
        The tests run in one sandbox, where they lie, and the solution in another; ``import calc`` gives a proxy, and
        plain data crosses.
    ``same``
        Tests and solution share a process, in the solution's folder. Comparisons are strict, and tests that must fail
        are mixed in: one that does not makes the grade ``tampered``. That makes cheating dear, not impossible; see
        :data:`~hudsim.graders.trust.TRUST`.

    In ``info``: ``outcomes`` (how many tests of each), ``verdict`` and ``why`` where there is evidence for
    ``tampered``, ``resource_limit`` or ``grade_timeout``, ``trust`` (what was stopped and what cannot be), ``skipped``
    (files of the agent's that were not copied, and why), ``seconds``.

    Raises :class:`~hudsim.errors.UsageError` for what cannot be a grade, :class:`~hudsim.errors.SandboxError` if a
    sandbox cannot be made, or was ended by somebody else than the solution: the run is an error then, and no 0. So is
    it where the host's disk is full, unless much of that is the workspace's: that is ``resource_limit``.
    """

    name = "PytestGrader"
    default_timeout: ClassVar[float] = 120.0

    @classmethod
    async def evaluate(cls, **kwargs: Any) -> EvaluationResult:
        """The grade of this grader alone."""
        return await combine(cls.grade(**kwargs))

    @classmethod
    async def compute_score(
        cls,
        *,
        workspace: Any,
        tests: Path | str,
        modules: Sequence[str],
        process: Way | Mapping[str, Way] = "separate",
        files: Sequence[str] = ("**/*.py",),
        paths: Sequence[str] = (".", "src"),
        expected: Sequence[str] | Path | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a part of the grade: it is a verdict, not an error
        score: Literal["all", "share"] = "all",
        packages: Sequence[str] = (),
        comparable: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> SubScore:
        """Run the hidden tests.

        tests
            A folder on the host (its own ``conftest.py`` and ``pytest.ini`` count), or one file.
        modules
            The names of the solution's modules that the tests import, looked for below its ``paths``.
        files
            Patterns of the agent's files that are the solution.
        expected
            The ids (``test_calc.py::test_add[1-2]``) that must pass, or a file of them: a JSON list, or one a line.
            None: all that pytest collects. That is as good unless the solution says which tests there are, as in
            ``parametrize("x", calc.CASES)``; give the ids that the reference solution passes then.
        timeout
            In seconds, of all files that are run in one way; None: ``default_timeout``. A solution that takes longer
            is a valid 0.
        score
            ``all``: 1.0 if each test passes, else 0.0; ``share``: which part of them does.
        packages
            Top-level names of installed packages (``numpy``) that tests and solution may import.
        comparable
            Classes of the solution (``calc.Version``) whose own ``==``, order, truth and ``in`` the tests may believe.
        options
            Further words for pytest.
        """
        if not modules:
            raise UsageError("modules: got none, expected the names of the solution's modules, as ('calc',)")
        if score not in ("all", "share"):
            raise UsageError(f"score: got {score!r}, expected all or share")
        place, suite = ground(workspace), Suite.read(tests, process)
        wanted = expected_ids(expected, suite)
        loop = asyncio.get_running_loop()
        began = loop.time()
        info: dict[str, Any] = {"skipped": []}
        try:
            async with _frozen(place, files) as copy, _folder() as folder:
                info["skipped"] = [f"{path}: {why}" for path, why in copy.skipped[:_MOST_SKIPPED]]
                roots = tuple(path for path in paths if (copy.folder / path).is_dir()) or (".",)
                setting = Setting(
                    workspace=place, suite=suite, folder=folder, modules=tuple(modules), roots=roots,
                    packages=tuple(packages), comparable=tuple(comparable), options=tuple(options),
                    timeout_s=cls.default_timeout if timeout is None else timeout,
                )  # fmt: skip
                outcomes = await _outcomes(setting, copy)
        except OSError as error:
            if not is_no_room(error):
                raise
            outcome = await asyncio.to_thread(_without_room, place, error)
            outcomes = dict.fromkeys(suite.ways.values(), outcome)
        leaves = _leaves(suite, wanted, outcomes)
        info |= {"seconds": round(loop.time() - began, 3), "trust": trust_card(suite.ways.values())}
        return _score(cls.name, leaves, outcomes, info, score)


async def _outcomes(setting: Setting, copy: Copy) -> dict[Way, Outcome]:
    out: dict[Way, Outcome] = {}
    if setting.suite.of("separate"):
        both = bool(setting.suite.of("same"))
        solution = await copied(copy.folder, setting.folder / "solution") if both else copy.folder
        out["separate"] = await run_separate(setting, solution)
        if both:  # what the solution wrote there must not be in the way of what comes
            await asyncio.to_thread(remove_tree, solution)
    if setting.suite.of("same"):
        out["same"] = await run_same(setting, copy.folder)
    return out


def _without_room(place: Ground, error: OSError) -> Outcome:
    """The host's disk is full: the agent's doing if so much of it is its own, else nobody's that is graded here."""
    root: Path = place.room.root
    is_there = root.stat().st_dev == Place.mine().folder.stat().st_dev
    taken = measure(root)[0] if is_there else 0
    if taken < _MUCH:
        raise SandboxError(f"no room left on this host's disk to grade on: {error}") from None
    return Outcome(Account(""), limits=[f"disk: {taken:,} bytes of the workspace left no room to grade it ({error})"])


def _leaves(suite: Suite, expected: list[str] | None, outcomes: Mapping[Way, Outcome]) -> list[SubScore]:
    collected = [one for outcome in outcomes.values() for one in outcome.account.ids]
    seen = {one.partition("::")[0] for one in collected}
    # Of a file that this side has collected, that is what there is; one that gave no test has been left out.
    files = [*suite.of("same"), *(file for file in suite.of("separate") if file not in seen)]
    stems = [stem for file in files for stem in suite.stems(file)]
    leaves = tally(wanted_ids(expected, collected, stems), [outcome.account for outcome in outcomes.values()])
    if not leaves:
        raise UsageError(f"tests: {suite.folder} holds no test that pytest collects: no test is no grade")
    return leaves


def _score(
    name: str, leaves: list[SubScore], outcomes: Mapping[Way, Outcome], info: dict[str, Any], score: str
) -> SubScore:
    passed, whole = sum(leaf.value for leaf in leaves), all(outcome.whole for outcome in outcomes.values())
    if not whole:
        passed = min(passed, len(leaves) - 1)
    value = passed / len(leaves) if score == "share" else float(passed == len(leaves))
    info["outcomes"] = _counts(leaves)
    tampered = [line for outcome in outcomes.values() for line in outcome.tampered]
    limits = [line for outcome in outcomes.values() for line in outcome.limits]
    verdict, why = None, list[str]()
    if tampered:
        verdict, why = Verdict.tampered, tampered
    elif value < 1 and limits:
        verdict, why = Verdict.resource_limit, limits
    elif any(outcome.hung for outcome in outcomes.values()):
        verdict, why = Verdict.grade_timeout, ["the tests did not come to their end in time"]
    if verdict is not None:
        value = 0.0
        info |= {"verdict": verdict.value, "why": why}
    said = next((outcome.said for outcome in outcomes.values() if not outcome.account.ended and outcome.said), None)
    if said is not None:
        info["said"] = said
    return SubScore(name=name, value=value, children=leaves, info=info)


def _counts(leaves: Sequence[SubScore]) -> dict[str, int]:
    outcomes = [str((leaf.info or {}).get("outcome")) for leaf in leaves]
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


@contextlib.asynccontextmanager
async def _frozen(place: Ground, files: Sequence[str]) -> AsyncIterator[Copy]:
    copy = await place.freeze(tuple(files))
    try:
        yield copy
    finally:
        await asyncio.to_thread(copy.close)


@contextlib.asynccontextmanager
async def _folder() -> AsyncIterator[Path]:
    """The grade's own on the host; what a dead process leaves is swept with the rest of its."""
    folder = Place.mine().room("grade")
    try:
        yield folder
    finally:
        await asyncio.to_thread(remove_tree, folder)
