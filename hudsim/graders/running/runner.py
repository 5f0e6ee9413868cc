"""``runner``: runs pytest over the hidden tests, and tells each result over a socket that no test knows of.

``python -I -S runner.py`` with the socket as descriptor 0. One line of JSON comes in, the order; lines of JSON go out,
each with the order's ``token``:

``ready``: nothing of the solution's has run so far; ``collected``: ``ids``, ``errors`` [[id, message]];
``report``: ``id, when, outcome, xfail, seconds, message``; ``end``: ``status``, pytest's exit code, and ``reasons``
{id: why a test cannot work with the solution in another process}.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["main"]

_LONGEST = 2000  # characters of a message
_MOST_ORDER = 1 << 24


def main() -> None:
    """Never returns."""
    control, crossing = _away(0), _away(1)
    os.dup2(2, 1)
    order = json.loads(_line(control))
    sys.dont_write_bytecode = True
    sys.path[:0] = [*order["path"]]
    tell = _teller(control, order.pop("token"))
    try:
        _run(order, crossing, tell)
    except BaseException:  # noqa: BLE001 - there is nobody else to say it
        traceback.print_exc()
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
        data = memoryview(dumps({"token": token, **message}).encode() + b"\n")
        while data:
            data = data[write(fd, data) :]

    return tell


def _run(order: dict[str, Any], crossing: int, tell: Callable[..., None]) -> None:
    import pytest

    plugins: list[Any] = [Reporter(tell)]
    reasons: dict[str, str] = {}
    if order["way"] == "separate":
        from hudsim.graders.crossing.plugin import Plugin
        from hudsim.graders.crossing.tests_side import attach

        across = attach(socket.socket(fileno=crossing), order["modules"], opaque=order["comparable"], timeout_s=None)
        plugin = Plugin(across)
        plugins, reasons = [plugin, *plugins], plugin.reasons
    else:
        from hudsim.graders.running import rewriting, solution, strict

        _warm()
        strict.setup(folders=[*order["path"], order["tests"], sys.base_prefix], comparable=order["comparable"])
        strict.patch_unittest()
        rewriting.install()
        solution.install(order["modules"], order["roots"])
    tell(event="ready")
    words = [
        *(f"{order['tests']}/{file}" for file in order["files"]), "--rootdir", order["tests"],
        "--confcutdir", order["tests"], "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider",
        "-p", "no:faulthandler", *order["options"], "--maxfail=0",
    ]  # fmt: skip
    tell(event="end", status=int(pytest.main(words, plugins=plugins)), reasons=reasons)


def _warm() -> None:
    """Classes of the standard library that a solution may use are made before it is."""
    for name in ("collections.abc", "dataclasses", "datetime", "decimal", "enum", "fractions", "ipaddress", "pathlib",
                 "statistics", "uuid"):  # fmt: skip
        importlib.import_module(name)


class Reporter:
    """The plugin that tells."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._errors: list[tuple[str, str]] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._errors.append((report.nodeid, _message(report)))

    def pytest_collection_finish(self, session: Any) -> None:
        self._tell(event="collected", ids=[item.nodeid for item in session.items], errors=self._errors)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._tell(
            event="report",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            seconds=float(report.duration),
            message="" if report.passed else _message(report),
        )


def _message(report: Any) -> str:
    long = report.longrepr
    crash = getattr(long, "reprcrash", None)
    text = crash.message if crash is not None else long[2] if isinstance(long, tuple) else str(long)
    return str(text)[:_LONGEST].encode("utf-8", "replace").decode()


if __name__ == "__main__":
    main()
