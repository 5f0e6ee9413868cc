"""``Trial``: hidden tests run once, in one way, in sandboxes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hudsim.coding.bubblewrap import Bind
from hudsim.coding.output import Output
from hudsim.coding.process import Process
from hudsim.errors import SandboxBroken, SandboxError, UsageError
from hudsim.graders.canaries import Canaries
from hudsim.graders.ground import Fresh, Ground
from hudsim.graders.report import Account, Stray
from hudsim.graders.suite import Suite, Way
from hudsim.graders.time_limit import time_limit

__all__ = ["Outcome", "Setting", "run_same", "run_separate"]

_ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
TESTS, SOLUTION, SITE, CODE = "/tests", "/workspace", "/run/grader/site", "/run/grader/code"
_HERE = Path(__file__).parent
_NEEDED = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
_LONGEST_LINE = 1 << 20  # more than two texts of runner.LONGEST, each character of which may take 12 bytes
_KEPT = 1 << 16
_UP_S = 60.0
_PATIENCE_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all trials of one grade share.

    folder
        The grade's own on the host.
    roots
        Where in the solution's folder its modules are looked for.
    """

    workspace: Ground
    suite: Suite
    folder: Path
    modules: tuple[str, ...]
    roots: tuple[str, ...]
    packages: tuple[str, ...]
    comparable: tuple[str, ...]
    options: tuple[str, ...]
    timeout_s: float
    """From when a trial's sandboxes and its test runner are up, without what they stand in line for a processor."""


@dataclass
class Outcome:
    """
    tampered, limits
        The evidence for either, a line each.
    hung
        The time was up.
    whole
        Nothing is missing that must be there whatever the solution is: without, there is no pass.
    code
        The test runner's exit code, or minus the signal that ended it. None: not known.
    said
        The end of what it printed.
    """

    account: Account
    tampered: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    hung: bool = False
    whole: bool = False
    code: int | None = None
    said: str = ""


async def run_same(setting: Setting, solution: Path) -> Outcome:
    """Tests and solution in one process, with canaries, and a parent that trusts neither: this one."""
    canaries = Canaries()
    files = setting.suite.of("same")
    changed, canary_files = {}, []
    for file in files:
        to, text = canaries.add(file, (setting.suite.folder / file).read_text("utf-8"))
        changed[to] = text
        canary_files.append(to)
    tests = _tests(setting, "same", changed)
    run = list(dict.fromkeys([*files, *canary_files]))
    account = Account(secrets.token_hex(16))
    outcome = Outcome(account)
    async with setting.workspace.new_sandbox(_binds(setting, tests), root=solution, guest_path=SOLUTION) as box:
        await asyncio.to_thread(box.own, solution)
        try:
            await _supervise([box], outcome, _order(setting, "same", run, account.token), setting.timeout_s)
        finally:
            outcome.limits = box.evidence()
    outcome.tampered += canaries.wrong(account.reports)
    broken = {id.partition("::")[0] for id, _ in account.errors}  # noqa: A001 - pytest's word
    missing = [file for file in canaries.missing(account.reports) if file not in broken]
    if missing and account.collected and account.status in (0, 1):
        outcome.tampered.append(
            f"pytest came to its end, and tests made to fail were not reported: {', '.join(missing)}"
        )
    outcome.whole = account.ended and not missing
    ids = canaries.ids()
    account.ids = [one for one in account.ids if one.partition("[")[0] not in ids]
    account.reports = [report for report in account.reports if report.stem not in ids]
    return outcome


async def run_separate(setting: Setting, solution: Path) -> Outcome:
    """Tests in one sandbox, which never runs the solution, and the solution in another that they call."""
    account = Account(secrets.token_hex(16))
    outcome = Outcome(account)
    order = _order(setting, "separate", setting.suite.of("separate"), account.token)
    new = setting.workspace.new_sandbox
    async with (
        new(_binds(setting, _tests(setting, "separate", {})), cwd=TESTS) as box,
        new(_binds(setting, None), root=solution, guest_path=SOLUTION) as other,
    ):
        await asyncio.to_thread(other.own, solution)
        await asyncio.gather(box.sandbox(), other.sandbox())
        theirs, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            async with _served(other, its, order) as server:
                its.close()
                await _supervise([box, other], outcome, order, setting.timeout_s, crossing=theirs)
                if not outcome.hung:
                    await _ended(server, other)
        finally:
            theirs.close()
            its.close()
            outcome.limits = [*box.evidence(), *other.evidence()]
    if outcome.tampered:  # only the trusted side can write there
        raise SandboxError(f"the test runner is not to be understood: {outcome.tampered[0]}")
    if not (account.ended or outcome.hung or outcome.limits or _by_itself(outcome.code)):
        raise SandboxError(f"the test runner was ended before its end: {outcome.said.strip() or 'it said nothing'}")
    outcome.whole = account.ended
    return outcome


@contextlib.asynccontextmanager
async def _served(box: Fresh, its: socket.socket, order: dict[str, Any]) -> AsyncIterator[Process]:
    """The solution, to be called over ``its``; what it prints goes nowhere."""
    given = json.dumps({key: order[key] for key in ("path", "modules", "roots")})
    null = os.open(os.devnull, os.O_RDWR)
    try:
        words = [*_words("running/server.py"), given]
        yield await (await box.sandbox()).spawn(words, fds=[its.fileno(), null, null], env=_ENVIRONMENT)
    finally:
        os.close(null)


async def _supervise(
    boxes: Sequence[Fresh],
    outcome: Outcome,
    order: dict[str, Any],
    timeout_s: float,
    crossing: socket.socket | None = None,
) -> None:
    """Until the tests have ended, or the time of ``boxes`` is up; the runner is in the first of them."""
    box, account = boxes[0], outcome.account
    try:
        async with _runner(box, order, crossing) as (process, reader, said):
            if crossing is not None:
                crossing.close()
            try:
                async with asyncio.timeout(_UP_S):
                    await _listen(reader, account, to="ready")
                async with time_limit(timeout_s, boxes):
                    await _listen(reader, account, to="ended")
                    outcome.code = await _ended(process, box)
            except TimeoutError:
                outcome.hung = account.ready
            except Stray as stray:
                outcome.tampered.append(f"somebody wrote to the results' channel: {stray}")
            outcome.said = said()
            if not account.ready and not box.evidence():
                raise SandboxError(f"the test runner did not start: {outcome.said.strip() or 'it said nothing'}")
    except SandboxBroken:
        if not any(one.evidence() for one in boxes):
            raise


async def _ended(process: Process, box: Fresh) -> int | None:
    """The process is over: how, None if that cannot be known.

    A sandbox that is gone without having met a limit was ended by somebody else.
    """
    for _ in range(2):
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return (await process.wait()).code
        except TimeoutError:
            process.signal(9)  # of no effect on one that is dead, and of which that has not been said yet
        except SandboxError:
            if not box.evidence():
                raise
            break
    return None


def _by_itself(code: int | None) -> bool:
    """Whether a runner that did not come to its end was brought to that by what it was given, and by nobody else."""
    return code is not None and -code not in _FROM_OUTSIDE


_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}


async def _listen(reader: asyncio.StreamReader, account: Account, *, to: Literal["ready", "ended"]) -> None:
    """Until the runner has come so far, or its channel is closed."""
    while not getattr(account, to):
        try:
            line = await reader.readuntil(b"\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return
        except asyncio.LimitOverrunError:
            raise Stray("a line that does not end") from None
        account.add(line)


@contextlib.asynccontextmanager
async def _runner(
    box: Fresh, order: dict[str, Any], crossing: socket.socket | None = None
) -> AsyncIterator[tuple[Process, asyncio.StreamReader, Any]]:
    """The runner, its order given."""
    sandbox = await box.sandbox()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    reader, writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_LINE)
    try:
        with Output(_KEPT) as said, theirs, open(os.devnull, "rb") as null:  # noqa: ASYNC230, PTH123
            other = null.fileno() if crossing is None else crossing.fileno()
            process = await sandbox.spawn(
                _words("running/runner.py"), fds=[theirs.fileno(), other, said.writer], env=_ENVIRONMENT
            )
            said.listen()
            theirs.close()
            try:
                writer.write(json.dumps(order).encode() + b"\n")
                yield process, reader, lambda: bytes(said.kept).decode(errors="replace")[-2000:]
            finally:
                process.signal(9)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _words(script: str) -> list[str]:
    return [os.path.realpath(sys.executable), "-I", "-S", f"{CODE}/hudsim/graders/{script}"]


def _order(setting: Setting, way: Way, files: Sequence[str], token: str) -> dict[str, Any]:
    roots = [f"{SOLUTION}/{root}".removesuffix("/.") for root in setting.roots]
    return {
        "token": token, "way": way, "tests": TESTS, "files": list(files), "path": [CODE, SITE], "roots": roots,
        "modules": setting.modules, "comparable": setting.comparable, "options": list(setting.options),
        "known": [*setting.packages, *setting.suite.imports(setting.packages)],
    }  # fmt: skip


def _tests(setting: Setting, way: Way, changed: dict[str, str]) -> Path:
    """A copy of the tests for one sandbox."""
    folder = setting.folder / f"tests-{way}"
    setting.suite.copy(folder, changed)
    return folder


def _binds(setting: Setting, tests: Path | None) -> list[Bind]:
    found = [] if tests is None else [Bind(tests, TESTS)]
    found += [Bind(_HERE / name, f"{CODE}/hudsim/graders/{name}") for name in ("running", "crossing")]
    names = (*(_NEEDED if tests is not None else ()), *setting.packages)
    return found + [Bind(path, f"{SITE}/{path.name}") for name in names for path in _package(name)]


def _package(name: str) -> list[Path]:
    """What is to be seen of an installed package. Raises :class:`~hudsim.errors.UsageError` if there is none."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        hint = "; pip install pytest" if name in _NEEDED else ""
        raise UsageError(f"package {name}: none of that name is installed beside hudsim{hint}")
    origin = Path(spec.origin)
    path = origin.parent if spec.submodule_search_locations else origin
    libraries = path.parent / f"{name}.libs"
    return [path, *([libraries] if libraries.is_dir() else [])]


async def copied(solution: Path, to: Path) -> Path:
    """One more copy, for a sandbox of its own. Raises :class:`OSError`."""
    await asyncio.to_thread(_copy_tree, solution, to)
    return to


def _copy_tree(folder: Path, to: Path) -> None:
    """As :func:`shutil.copytree`, but for its errors: the first one is the one, and says which it is."""
    for where, _, files in os.walk(folder):
        there = to / Path(where).relative_to(folder)
        there.mkdir(mode=0o755)
        for file in files:
            shutil.copy2(Path(where, file), there / file)
