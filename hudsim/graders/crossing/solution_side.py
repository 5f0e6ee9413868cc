"""``serve``: where the solution runs, and answers what the tests ask of it."""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import os
import signal
import socket
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from hudsim.graders.crossing.describe import public_names
from hudsim.graders.crossing.link import Link
from hudsim.graders.crossing.names import SAFE, safe_name, standard
from hudsim.graders.crossing.operations import OPERATIONS
from hudsim.graders.crossing.peer import Peer
from hudsim.graders.crossing.permits import Given

__all__ = ["serve"]

_MOST_TEXT = 1 << 20
_MOST_WARNINGS = 1000


class SolutionSide:
    """For :class:`Peer`. The tests may do anything here."""

    lends = False

    def __init__(self) -> None:
        self._streams = {"stdout": Printed(), "stderr": Printed()}
        self._warned: list[tuple[str, Any]] = []

    def name(self, value: Any) -> tuple[str, str] | None:
        return safe_name(value)

    def named(self, module: str, name: str) -> Any:
        return SAFE.get((module, name)) or standard(module, name)

    def forbids(self, value: Any) -> str | None:
        return None

    def remake(self, value: Any) -> None:
        return None

    def make(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return function(*args, **options)

    def public(self, value: Any, name: str) -> Any:
        return getattr(value, name)

    def raw(self, kind: type, name: str) -> bool:
        return True

    def trusts(self, description: dict[str, Any]) -> bool:
        return True

    def module(self, name: str, package: bool) -> types.ModuleType:
        raise LookupError("a module of the tests is never lent")

    def permits(self, what: str, operands: tuple[Any, ...], given: Given) -> str | None:
        return None

    def said(self) -> tuple[tuple[str, Any], ...]:
        warned, self._warned = self._warned, []
        printed = ((way, text) for way, stream in self._streams.items() if (text := stream.take()))
        return (*printed, *warned)

    def show(self, said: tuple[tuple[str, Any], ...]) -> None:
        """What the tests print stays where they are."""

    def listen(self) -> None:
        """What is printed and warned of from now on goes to the tests."""
        sys.stdout, sys.stderr = self._streams["stdout"], self._streams["stderr"]
        warnings.simplefilter("always")
        warnings.showwarning = self._warn

    def _warn(self, message: Any, category: type, filename: str, lineno: int, *_: Any, **__: Any) -> None:
        if len(self._warned) < _MOST_WARNINGS:
            self._warned.append(("warning", (str(message), category, filename, lineno)))


class Printed(io.TextIOBase):
    """What the solution prints, until the tests' side is told. Beyond ``_MOST_TEXT`` characters it is dropped."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self.buffer = _Bytes(self)

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        room = _MOST_TEXT - self._size
        if room > 0:
            self._parts.append(text[:room])
            self._size += min(len(text), room)
        return len(text)

    def take(self) -> str:
        """What was written since."""
        if not self._parts:
            return ""
        text = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        return text

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


class _Bytes(io.RawIOBase):
    def __init__(self, stream: Printed) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class Asked(io.TextIOBase):
    """The standard input of the solution: that of the tests."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> str:
        return str(self._peer.ask("read", "all", -1 if size is None else size))

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return str(self._peer.ask("read", "line", size))


def _module(name: str, fresh: bool) -> types.ModuleType:
    if fresh:
        sys.modules.pop(name, None)
    return importlib.import_module(name)


def _vars(module: types.ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not (name.startswith("__") and name.endswith("__"))}


def _property(parts: tuple[Any, Any, Any]) -> property:
    return property(*parts)


def _subclass(name: str, bases: tuple[type, ...], parts: tuple[Any, ...], options: dict[str, Any]) -> type:
    ways: dict[str, Any] = {
        "staticmethod": staticmethod,
        "classmethod": classmethod,
        "property": lambda parts: property(*parts),
    }
    namespace = {word: ways[way](value) if way in ways else value for word, way, value in parts}
    return types.new_class(name, bases, options, lambda made: made.update(namespace))


def _run(args: tuple[str, ...], text: str, timeout_s: float) -> tuple[int, str, str]:
    command = [sys.executable, "-c", _PROGRAM, *args]
    environment = {**os.environ, "HUDSIM_PATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(text, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return process.returncode, out[:_MOST_TEXT], err[:_MOST_TEXT]


_PROGRAM = """
import os, runpy, sys
sys.path[:] = os.environ.pop("HUDSIM_PATH").split(os.pathsep)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def serve(sock: socket.socket) -> None:
    """Answer on this connected stream socket until the tests' side closes it."""
    side = SolutionSide()
    operations: dict[str, Callable[..., Any]] = {
        **OPERATIONS,
        "module": _module,
        "reload": importlib.reload,
        "names": public_names,
        "vars": _vars,
        "run": _run,
        "subclass": _subclass,
    }
    peer = Peer(Link(sock), side, operations)
    side.listen()
    sys.stdin = Asked(peer)
    builtins.input = functools.partial(_input, peer)
    peer.serve()


def _input(peer: Peer, prompt: object = "", /) -> str:
    return str(peer.ask("input", str(prompt)))
