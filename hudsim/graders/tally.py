"""``tally``: what was expected and what was reported, as one leaf a test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from hudsim.graders.report import Account, Report
from hudsim.graders.results import SubScore

__all__ = ["tally", "wanted_ids"]

_LONGEST = 1000


def wanted_ids(expected: Iterable[str] | None, collected: Iterable[str], stems: Iterable[str]) -> list[str]:
    """The tests that must pass: those ``expected``; else all that were ``collected``.

    Of each of ``stems`` (what can be read in the files) at least one is wanted, whether it was collected or not.
    """
    if expected is not None:
        return list(expected)
    out = list(dict.fromkeys(collected))
    seen = {one.partition("[")[0] for one in out}
    return out + [stem for stem in stems if stem not in seen]


def tally(wanted: Sequence[str], accounts: Sequence[Account]) -> list[SubScore]:
    """A leaf for each of ``wanted``, and one for each file that could not be collected.

    It is 1 if it was reported passed exactly once: set up, called and torn down, and not as one that may fail.
    ``info``: ``outcome``, ``seconds``, the ``message`` of what did not pass, and ``crossing``: why it cannot work with
    the solution in another process.
    """
    of: dict[str, list[Report]] = defaultdict(list)
    for account in accounts:
        for report in account.reports:
            of[report.id].append(report)
    errors = {id: why for account in accounts for id, why in account.errors}  # noqa: A001 - pytest's word
    leaves = [_leaf(one, of.get(one, []), errors) for one in wanted]
    files = [id for id in errors if not any(one == id or one.startswith(f"{id}::") for one in wanted)]  # noqa: A001
    leaves += [_scored(id, "error", 0.0, errors[id]) for id in files]  # noqa: A001
    reasons = {id: why for account in accounts for id, why in account.reasons.items()}  # noqa: A001
    for leaf in leaves:
        why = reasons.get(leaf.name) or reasons.get(leaf.name.partition("::")[0])
        if why is not None and not leaf.value and leaf.info is not None:
            leaf.info["crossing"] = why[:_LONGEST]
    return leaves


def _leaf(id: str, reports: Sequence[Report], errors: dict[str, str]) -> SubScore:  # noqa: A002 - pytest's word
    if not reports:
        why = next((why for file, why in errors.items() if id == file or id.startswith(f"{file}::")), "")
        return _scored(id, "error" if why else "missing", 0.0, why or "it was not reported")
    seconds = sum(report.seconds for report in reports)
    for report in reports:
        if report.xfail:
            return _scored(id, "xpassed" if report.outcome == "passed" else "xfailed", seconds, report.message)
        if report.outcome != "passed":
            outcome = "error" if report.outcome == "failed" and report.when != "call" else report.outcome
            return _scored(id, outcome, seconds, report.message)
    if [report.when for report in reports] != ["setup", "call", "teardown"]:
        phases = ", ".join(report.when for report in reports)
        return _scored(id, "duplicate" if len(reports) > 3 else "missing", seconds, f"it was reported as {phases}")
    return _scored(id, "passed", seconds, "")


def _scored(id: str, outcome: str, seconds: float, message: str) -> SubScore:  # noqa: A002
    info = {"outcome": outcome, "seconds": round(seconds, 4)}
    if message:
        info["message"] = message[:_LONGEST]
    return SubScore(name=id, value=float(outcome == "passed"), info=info)
