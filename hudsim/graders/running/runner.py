"""``runner``: runs pytest over the hidden tests, and tells each result over a socket that no test knows of.

``python -I -S runner.py`` with the socket as descriptor 0. One line of JSON comes in, the order; lines of JSON go out,
each with the order's ``token``:

``ready``: nothing of the solution's has run so far; ``test``: ``id``, of one that was collected; ``broken``: ``id,
message``, of a file that could not be; ``collected``: that was all; ``report``: ``id, when, outcome, xfail, seconds,
message``; ``reason``: ``id, why`` a test cannot work with the solution in another process; ``end``: ``status``,
pytest's exit code.

One fact a line, and no text longer than :data:`LONGEST`: how long a line is, and how many there are, is never the
solution's to say.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["LONGEST", "MOST_TESTS", "main"]

LONGEST = 4000
"""Characters of an id; of more, the first ones are told."""

MOST_TESTS = 20_000
"""Of more, none is run."""

_MOST_NAMED = 1 << 22  # characters of all their ids
_LONGEST_MESSAGE = 2000
_MOST_ORDER = 1 << 24
_INTERNAL_ERROR = 3  # pytest's own word for it


def main() -> None:
    """Never returns."""
    control, crossing = _away(0), _away(1)
    os.dup2(2, 1)
    order = json.loads(_line(control))
    sys.dont_write_bytecode = True
    sys.path[:0] = [*order["path"]]
    tell = _teller(control, order.pop("token"))
    try:
        plugins, reasons = _ready(order, crossing, tell)
        _run(order, plugins, reasons, tell)
    finally:
        sys.stderr.flush()
        os._exit(0)  # whatever the solution left running, or registered


def _away(fd: int) -> int:
    """Descriptor ``fd`` under another number, and nothing in its place."""
    to = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)
    return to


def _line(fd: int) -> bytes:
    out = bytearray()
    while not out.endswith(b"\n") and len(out) < _MOST_ORDER:
        piece = os.read(fd, 1 << 16)
        if not piece:
            break
        out += piece
    return bytes(out)


def _teller(fd: int, token: str) -> Callable[..., None]:
    write, dumps = os.write, json.dumps

    def tell(**message: Any) -> None:
        said = {key: _brief(value) if isinstance(value, str) else value for key, value in message.items()}
        data = memoryview(dumps({"token": token, **said}).encode() + b"\n")
        while data:
            data = data[write(fd, data) :]

    return tell


def _brief(text: str) -> str:
    return text[:LONGEST].encode("utf-8", "replace").decode()


def _ready(order: dict[str, Any], crossing: int, tell: Callable[..., None]) -> tuple[list[Any], dict[str, str]]:
    """The plugins, and where the reasons will be. Nothing of the solution's has run."""
    try:
        plugins: list[Any] = [Reporter(tell)]
        reasons: dict[str, str] = {}
        if order["way"] == "separate":
            from hudsim.graders.crossing.plugin import Plugin
            from hudsim.graders.crossing.tests_side import attach
            from hudsim.graders.running import rewriting

            across = attach(
                socket.socket(fileno=crossing), order["modules"], opaque=order["comparable"], timeout_s=None
            )
            plugin = Plugin(across)
            plugins, reasons = [plugin, *plugins], plugin.reasons
            rewriting.install(order["tests"], order["modules"], strictly=False)
        else:
            from hudsim.graders.running import rewriting, solution, strict

            _warm(order["known"])
            strict.setup(comparable=order["comparable"])
            strict.patch_unittest()
            rewriting.install(order["tests"], order["modules"], strictly=True)
            solution.install(order["modules"], order["roots"])
        from hudsim.graders.running import arrays

        arrays.install()
    except BaseException:
        traceback.print_exc()
        raise
    tell(event="ready")
    return plugins, reasons


def _run(order: dict[str, Any], plugins: list[Any], reasons: dict[str, str], tell: Callable[..., None]) -> None:
    """Always to its ``end``: pytest asks the solution's objects for their text also where it handles no errors."""
    import pytest

    words = [
        *(f"{order['tests']}/{file}" for file in order["files"]), "--rootdir", order["tests"],
        "--confcutdir", order["tests"], "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider",
        "-p", "no:faulthandler", *order["options"], "--maxfail=0",
    ]  # fmt: skip
    try:
        status = int(pytest.main(words, plugins=plugins))
    except BaseException as error:  # noqa: BLE001 - a traceback would ask them too
        status = _INTERNAL_ERROR
        sys.stderr.write(f"pytest was left by {_brief(type(error).__name__)}\n")
    for one, why in reasons.items():
        tell(event="reason", id=one, why=why[:_LONGEST_MESSAGE])
    tell(event="end", status=status)


def _warm(names: list[str]) -> None:
    """What the tests, pytest and a solution may use is imported before the solution is: no later class is known."""
    from _pytest.config import default_plugins

    for name in (*_KNOWN, *(f"_pytest.{name}" for name in default_plugins), *names):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


_KNOWN = (
    "array", "asyncio", "calendar", "collections.abc", "concurrent.futures", "configparser", "contextlib", "csv",
    "dataclasses", "datetime", "decimal", "difflib", "email.message", "enum", "fractions", "graphlib", "heapq", "http",
    "http.cookies", "io", "ipaddress", "json", "logging", "numbers", "pathlib", "queue", "random", "re", "shlex",
    "sqlite3", "statistics", "string", "struct", "tempfile", "threading", "time", "typing", "unittest.mock",
    "urllib.parse", "uuid", "xml.etree.ElementTree", "zoneinfo",
)  # fmt: skip


class Reporter:
    """The plugin that tells: of each test its three phases, with what its subtests came to in that of its call."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._errors: list[tuple[str, str]] = []
        self._subtests: dict[str, Any] = {}  # by id: the first report of one that did not pass
        self._left = 3 * MOST_TESTS

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._errors.append((report.nodeid, _message(report)))

    def pytest_collection_finish(self, session: Any) -> None:
        named = sum(len(item.nodeid[:LONGEST]) for item in session.items)
        if len(session.items) > MOST_TESTS or named > _MOST_NAMED:
            files = dict.fromkeys(item.nodeid.partition("::")[0] for item in session.items)
            why = (
                f"got {len(session.items)} tests with {named} characters of ids in one run, expected at most "
                f"{MOST_TESTS} with {_MOST_NAMED}"
            )
            self._errors += [(file, why) for file in files]
            session.items[:] = []
        for item in session.items:
            self._tell(event="test", id=item.nodeid)
        for one, why in self._errors[:MOST_TESTS]:
            self._tell(event="broken", id=one, message=why)
        self._tell(event="collected")

    def pytest_runtest_logreport(self, report: Any) -> None:
        import pytest

        subtest: Any = getattr(pytest, "SubtestReport", ())  # older ones have none
        if isinstance(report, subtest):
            if not report.passed or hasattr(report, "wasxfail"):
                self._subtests.setdefault(report.nodeid, report)
            return
        at = self._subtests.pop(report.nodeid, report) if report.when == "call" else report
        self._left -= 1
        if self._left < 0:
            return
        self._tell(
            event="report",
            id=report.nodeid,
            when=report.when,
            outcome=at.outcome,
            xfail=hasattr(at, "wasxfail"),
            seconds=float(report.duration),
            message="" if at.passed else _message(at),
        )


def _message(report: Any) -> str:
    long = report.longrepr
    crash = getattr(long, "reprcrash", None)
    text = str(crash.message if crash is not None else long[2] if isinstance(long, tuple) else long)
    return text[:_LONGEST_MESSAGE]


if __name__ == "__main__":
    main()
