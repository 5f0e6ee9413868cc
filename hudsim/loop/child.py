"""``Child`` and ``Parent``: the two ends of a process that another one starts, tells what to do, and takes along."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TextIO

from hudsim.errors import HudsimError, from_wire
from hudsim.loop.run import LIVING
from hudsim.loop.worker import Worker
from hudsim.spawn import end_with

__all__ = ["SPAWNED", "Child", "Parent"]

log = logging.getLogger(__name__)

SPAWNED = "HUDSIMSPAWNED"
"""Set in the environment of a process that a :class:`Child` starts, until that has read its order."""

_STOP_S = 1.8
_TELL_S = 5.0
_WORDS_S = 0.5  # a process that left the child's group may hold its stderr open


class Child:
    """A process that this one starts, once, and that ends with this one. Its own end of it is a :class:`Parent`.

    It runs in a session of its own; what it prints goes to stderr (its stdout) and to the log (its stderr).
    ``name`` is its kind, in messages, and ``failed`` the error when it dies or does not come up; a subclass may
    tell more finely in :meth:`verdict` and :meth:`late`. ``failure`` is why it died, once it has without being
    asked; None before. Start, use and stop it on one event loop.
    """

    def __init__(self, command: Sequence[str], *, name: str, failed: type[HudsimError]) -> None:
        self.failure: HudsimError | None = None
        self._command = list(command)
        self._name, self._failed = name, failed
        self._gone = asyncio.Event()
        self._stopping = False
        self._said: deque[str] = deque(maxlen=20)
        self._popen: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id, also when it is gone. None: it was never started."""
        return self._popen.pid if self._popen is not None else None

    @property
    def last_words(self) -> str:
        """How a message about it ends: with the last lines of its stderr. Empty if it said nothing."""
        return f"; its last words: {' | '.join(list(self._said)[-3:])}" if self._said else ""

    async def start(self, order: dict[str, Any], *, pass_fds: Sequence[int] = (), timeout_s: float) -> dict[str, Any]:
        """Start it with ``order`` (plain JSON) and wait for what it announces. It inherits ``pass_fds``.

        Raises the error that it announces instead, what :meth:`verdict` says if it dies first, or what :meth:`late`
        says after ``timeout_s`` seconds; ``failed`` if there is no such program. :meth:`stop` it then too.
        """
        read_fd, write_fd = os.pipe()
        try:
            try:
                await self._spawn((write_fd, *pass_fds))
            finally:
                os.close(write_fd)
            self._send({**order, "parent": os.getpid(), "announce_fd": write_fd})
            async with asyncio.timeout(timeout_s):
                line = await _read_line(read_fd)
        except TimeoutError:
            raise self.late(timeout_s) from None
        finally:
            os.close(read_fd)
        if not line.endswith(b"\n"):
            raise await self.unlinked()
        said: dict[str, Any] = json.loads(line)
        if (error := said.get("error")) is not None:
            raise from_wire(error["name"], error["message"], error["data"])
        return said

    def verdict(self, code: int) -> HudsimError:
        """Why it ended, unasked, with exit code ``code``; negative: by the signal of that number."""
        names = {number.value: number.name for number in signal.Signals}
        how = f"by {names.get(-code, f'signal {-code}')}" if code < 0 else f"with exit code {code}"
        return self._failed(f"the {self._name} process died {how}{self.last_words}")

    def late(self, timeout_s: float) -> HudsimError:
        """What it is that it announced nothing within ``timeout_s``."""
        return self._failed(f"the {self._name} process did not come up within {timeout_s:g} s{self.last_words}")

    async def died(self) -> HudsimError:
        """Until it has died; why."""
        await self._gone.wait()
        return self.failure or self._failed(f"the {self._name} process was stopped")

    async def unlinked(self) -> HudsimError:
        """Why the link to it ended. The kernel tells of its death a moment later, if that is why."""
        try:
            async with asyncio.timeout(_TELL_S):
                return await self.died()
        except TimeoutError:
            return self._failed(f"the link to the {self._name} process broke, though the process lives")

    def kill(self) -> None:
        """End it at once, as something that went wrong: :meth:`died` tells of it. Only after :meth:`start`."""
        assert self._popen is not None
        self._popen.kill()

    async def stop(self) -> None:
        """End it, SIGTERM and then SIGKILL, and wait until it is gone. Idempotent."""
        self._stopping = True
        popen = self._popen
        if popen is None:
            return
        assert popen.stdin is not None
        popen.stdin.close()
        popen.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._gone.wait()
        except TimeoutError:
            popen.kill()
            await self._gone.wait()
        finally:
            if popen.returncode is None:  # cancelled on the way: nothing is left behind
                popen.kill()

    async def _spawn(self, fds: Sequence[int]) -> None:
        made = _spawner.submit(self._make, asyncio.get_running_loop(), fds)
        try:
            await asyncio.wrap_future(made)
        except OSError as error:
            raise self._failed(
                f"the {self._name} process cannot be started: {self._command[0]}: {error.strerror}"
            ) from None
        except asyncio.CancelledError:
            if not made.cancel():  # it is being made: in a few milliseconds it can be stopped
                concurrent.futures.wait([made])
            raise

    def _make(self, loop: asyncio.AbstractEventLoop, fds: Sequence[int]) -> None:
        """On the spawner's thread."""
        self._popen = popen = subprocess.Popen(
            self._command,
            env={**os.environ, SPAWNED: "1"},
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno() if _has_fileno(sys.stderr) else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=fds,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the parent alone, which ends its children in order
        )
        LIVING.add(popen.pid)
        listening = self._thread("words", self._listen, popen)
        self._thread("watch", self._wait, popen, listening, loop)

    def _thread(self, task: str, target: Callable[..., None], *args: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, name=f"hudsim-{self._name}-{task}", daemon=True)
        thread.start()
        return thread

    def _send(self, order: dict[str, Any]) -> None:
        """Its stdin is a pipe of its own size, and it may be long in reading that, or never do: a thread writes."""
        assert self._popen is not None
        assert self._popen.stdin is not None
        self._thread("order", _write, os.dup(self._popen.stdin.fileno()), json.dumps(order).encode() + b"\n")

    def _listen(self, popen: subprocess.Popen[str]) -> None:
        assert popen.stderr is not None
        with popen.stderr as lines:
            for line in lines:
                self._said.append(line.rstrip())
                log.info("%s: %s", self._name, line.rstrip())

    def _wait(self, popen: subprocess.Popen[str], listening: threading.Thread, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for its death; then what it has forked dies too, or that would hold its port and its connections."""
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):  # a signal that came too late has reaped it
                os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)  # its group keeps its number until then
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(popen.pid, signal.SIGKILL)
        LIVING.discard(popen.pid)  # before it is reaped, after which its number may be another's
        code = popen.wait()
        listening.join(_WORDS_S)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(self._died, code)

    def _died(self, code: int) -> None:
        if not self._stopping:
            self.failure = self.verdict(code)
        self._gone.set()


@dataclass(frozen=True)
class Parent:
    """The process that started this one: what it ordered, and where it waits to hear. A :class:`Child`'s other end."""

    order: dict[str, Any]
    _hears: TextIO
    _lifeline: TextIO | None

    @classmethod
    def read(cls, death: signal.Signals = signal.SIGKILL) -> Self:
        """The process that a :class:`Child` lives in. The kernel (Linux) sends this one ``death`` when that one ends.

        With SIGTERM this process can clean up; :meth:`when_gone` has to see to it that it ends.
        """
        os.environ.pop(SPAWNED, None)  # it is not our children's
        order = json.loads(sys.stdin.readline())
        end_with(order["parent"], death)
        # Kept apart: a program may replace sys.stdin.
        return cls(order, os.fdopen(order["announce_fd"], "w"), sys.stdin)

    @classmethod
    def shell(cls) -> Self:
        """Nobody who orders: the program was started by hand. What it announces goes to stdout."""
        return cls({}, sys.stdout, None)

    @property
    def is_shell(self) -> bool:
        """Whether there is nobody who orders."""
        return self._lifeline is None

    def announce(self, message: dict[str, Any]) -> None:
        """This process is up: ``message`` (plain JSON, no key ``error``) is what :meth:`Child.start` returns."""
        with contextlib.suppress(OSError):
            print(json.dumps(message), file=self._hears, flush=True)

    def announce_failure(self, error: Exception, *, otherwise: type[HudsimError]) -> None:
        """It will not come up: :meth:`Child.start` raises ``error``, or ``otherwise`` if that is none of hudsim's."""
        name = error.name if isinstance(error, HudsimError) else otherwise.name
        message = error.message if isinstance(error, HudsimError) else f"{type(error).__name__}: {error}"
        data = {key: str(value) for key, value in getattr(error, "data", {}).items()}
        self.announce({"error": {"name": name, "message": message, "data": data}})

    def when_gone(self, then: Callable[[], object]) -> None:
        """Call ``then``, on a thread of its own, when the parent stops this process or has ended. The shell never does.

        The kernel may have killed this process before that; where it does not, only this tells.
        """
        if self._lifeline is not None:
            watch = threading.Thread(target=_at_end, args=(self._lifeline, then), name="hudsim-lifeline", daemon=True)
            watch.start()


def _at_end(lifeline: TextIO, then: Callable[[], object]) -> None:
    while lifeline.readline():
        pass
    then()


def _write(fd: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as pipe:
        pipe.write(data)


async def _read_line(fd: int) -> bytes:
    """What comes out of ``fd`` up to a newline, or to its end."""
    loop, line = asyncio.get_running_loop(), bytearray()
    whole = loop.create_future()

    def read() -> None:
        piece = os.read(fd, 1 << 16)
        line.extend(piece)
        if (not piece or piece.endswith(b"\n")) and not whole.done():
            whole.set_result(None)

    loop.add_reader(fd, read)  # not a pipe transport: uvloop's closes the descriptor twice, and threads open others
    try:
        await whole
    finally:
        loop.remove_reader(fd)
    return bytes(line)


def _has_fileno(stream: Any) -> bool:
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


_spawner = Worker("spawner")
"""Starts all children, and lasts: the kernel ends a child when the *thread* that started it ends."""
