"""``Sandbox``: one bubblewrap, its launcher, and the commands that run in it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from hudsim.coding.bubblewrap import Plan
from hudsim.coding.cgroups import join
from hudsim.coding.output import Output
from hudsim.coding.pasta import Pasta, cut
from hudsim.coding.process import Completed, Exit, Process
from hudsim.coding.scope import Scope
from hudsim.coding.spawner import Said, ended, spawn
from hudsim.coding.uids import Uid
from hudsim.coding.wire import Frame, HostWire
from hudsim.errors import SandboxBroken, SandboxError, WorkspaceError

__all__ = ["Before", "Sandbox"]

_UP_S = 30.0
_STOP_S = 5.0
_KILLED_S = 10.0
"""How long what was killed may take to be gone, before everything in the sandbox goes."""
_DRAIN_S = 0.2
"""How long what a command has printed may be on its way after it has ended, while a child holds the pipe."""

Before = Callable[[], Awaitable[None]]
"""What a start waits for last."""


class Sandbox(Scope):
    """Started by its first command, or by :meth:`start`; when it stops, everything in it dies.

    ::

        async with Sandbox(Plan(binds=[Bind(root, "/workspace", writable=True)], …)) as sandbox:
            done = await sandbox.run(["python", "-c", "print(6 * 7)"])

    Commands see one file system, one process table, and the network that the plan gives; what one leaves running, the
    next can use. As root the sandbox is that of a user id of its own, to whom the writable binds must belong (``uid``
    says who).

    Raises :class:`~hudsim.errors.SandboxError` where it cannot be made: there is no sandbox without isolation;
    :class:`~hudsim.errors.SandboxBroken` where it was up once, and is not any more, or starts nothing more.
    """

    def __init__(self, plan: Plan, *, uid: Uid | None = None, cgroups: Sequence[Path] = ()) -> None:
        self.plan = plan
        self.uid = uid
        self.cgroups = cgroups
        self._popen: subprocess.Popen[bytes] | None = None
        self._connection: subprocess.Popen[bytes] | None = None
        self._wire: HostWire | None = None
        self._processes: dict[int, Process] = {}
        self._asked: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)
        self._up: asyncio.Future[dict[str, Any]] | None = None
        self._first: int | None = None
        self._starting = asyncio.Lock()
        self._was_up = self._stopped = False

    # Its life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Bring it up. Idempotent. Raises :class:`~hudsim.errors.SandboxError` with what bubblewrap said."""
        async with self._starting:
            if self._stopped:
                raise self._gone()
            if self._is_up():
                return
            await self._end()
            self._up = asyncio.get_running_loop().create_future()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            with theirs, Said() as said, Said() as info:
                try:
                    await self._bring_up(ours, theirs, said, info)
                except (TimeoutError, SandboxError, OSError) as error:
                    await self._end()
                    kind = SandboxBroken if self._was_up else SandboxError
                    raise kind(f"the sandbox did not come up: {said.read().strip() or error}") from None
                except BaseException:
                    await self._end()
                    raise
                finally:
                    if self._wire is None:
                        ours.close()

    @property
    def pid(self) -> int | None:
        """Of its first process, as the host counts. None: it is not up."""
        return self._first

    async def stop(self) -> None:
        """End it and everything in it, and wait until that is gone. Idempotent."""
        self._stopped = True
        async with self._starting:
            await self._end()

    async def end_all(self) -> None:
        """Kill everything that runs in it; it goes on, empty. What then still runs after a while, ends with it."""
        wire = self._wire
        if wire is None:
            return
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            async with asyncio.timeout(_KILLED_S):
                self.tell({"op": "end", "id": number})
                await answer
            return
        except (TimeoutError, SandboxBroken):
            pass
        finally:
            del self._asked[number]
        await self._end_with(wire)

    async def kill(self, process: Process) -> Exit:
        """Kill a command and its children, and wait until it has ended. As :meth:`end_all` of what does not end."""
        wire = self._wire
        process.signal(signal.SIGKILL)
        try:
            async with asyncio.timeout(_KILLED_S):
                return await process.wait()
        except TimeoutError:
            await self._end_with(wire)
            return Exit(-signal.SIGKILL)

    async def _end_with(self, wire: HostWire | None) -> None:
        """End all of it, unless what ``wire`` led to is another's end already."""
        async with self._starting:
            if self._wire is wire:
                await self._end()

    def _rlimits(self) -> dict[str, int]:
        """What groups do not see to, each process is limited in by itself."""
        return self.plan.limits.rlimits(grouped=bool(self.cgroups), isolated=self.plan.isolated)

    # Commands -----------------------------------------------------------------------------------------------------

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        terminal: tuple[int, int] | None = None,
        before: Before | None = None,
    ) -> Process:
        """Start a command, on the three descriptors ``fds`` or with a ``terminal`` of (rows, columns).

        ``before`` is waited for last of all: what it finds still holds when the command starts, and what it raises is
        raised. Who runs there may hold up a start for ever, so that it wants a time limit, as the command does.

        Raises :class:`~hudsim.errors.WorkspaceError` if there is no such command, or folder ``cwd``.
        """
        await self.start()
        if before is not None:
            await before()
        return await self._started(self._launched(argv, fds, env=env, cwd=cwd, terminal=terminal))

    async def files(self, theirs: socket.socket, *, before: Before | None = None) -> Process:
        """Have the file operations that come over ``theirs`` done inside, by a process of their own.

        ``before``, and the time that it takes, as for :meth:`spawn`.
        """
        await self.start()
        if before is not None:
            await before()
        limits = {name: value for name, value in self._rlimits().items() if name != "CPU"}
        message = {"op": "files", "cwd": self.plan.cwd, "limits": limits}
        return await self._started(self._new_process(message, [theirs.fileno()]))

    async def run(
        self,
        argv: Sequence[str] | str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        """Run a command (text: in a shell) to its end. ``timeout_s`` None: the limit ``wall_s``; its start counts.

        It returns when the command ends, whoever holds its pipes. Whoever stops waiting kills it.
        """
        words = ["/bin/sh", "-c", argv] if isinstance(argv, str) else list(argv)
        allowed_s = self.plan.limits.wall_s if timeout_s is None else timeout_s
        most = self.plan.limits.output_bytes
        await self.start()
        began_s = time.monotonic()
        with Output(most) as out, Output(most) as err, _given(stdin) as given:
            process = self._launched(words, [given.fileno(), out.writer, err.writer], env=env, cwd=cwd)
            out.listen()
            err.listen()
            timed_out = False
            try:
                async with asyncio.timeout(allowed_s):
                    end = await process.wait()
            except TimeoutError:
                timed_out = True
                end = await self.kill(process)
            except asyncio.CancelledError:
                process.give_up()
                raise
            await asyncio.gather(out.drained(_DRAIN_S), err.drained(_DRAIN_S))
            took_s = time.monotonic() - began_s
            return Completed(
                end.code, bytes(out.kept), bytes(err.kept), out.count, err.count, timed_out, took_s, end.cpu_s
            )

    def _launched(
        self,
        argv: Sequence[str],
        fds: Sequence[int],
        *,
        env: Mapping[str, str] | None,
        cwd: str | None,
        terminal: tuple[int, int] | None = None,
    ) -> Process:
        """A command on its way."""
        message = {
            "op": "exec",
            "argv": list(argv),
            "env": {**self.plan.environment, **(env or {})},
            "cwd": cwd or self.plan.cwd,
            "limits": self._rlimits(),
            "pty": terminal,
        }
        return self._new_process(message, fds)

    def _new_process(self, message: dict[str, Any], fds: Sequence[int]) -> Process:
        number = next(self._numbers)
        process = Process(self, number)
        self.tell({**message, "id": number}, fds)
        self._processes[number] = process
        return process

    async def _started(self, process: Process) -> Process:
        try:
            await asyncio.shield(process.started)
        except BaseException:
            process.give_up()
            raise
        return process

    # The launcher -------------------------------------------------------------------------------------------------

    def tell(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send the launcher a frame. Raises :class:`~hudsim.errors.SandboxBroken` if it is gone."""
        if self._wire is None:
            raise self._gone()
        try:
            self._wire.send({**message, "fds": len(fds)}, fds=fds)
        except ConnectionResetError:
            raise self._gone() from None

    def _gone(self) -> SandboxError:
        return SandboxError("the sandbox was stopped") if self._stopped else SandboxBroken("the sandbox is gone")

    def _receive(self, frame: Frame) -> None:
        message, _, fds = frame
        event, number = message["event"], message.get("id", 0)
        if event == "up":
            if self._up is not None and not self._up.done():
                self._up.set_result(message)
        elif (answer := self._asked.get(number)) is not None:
            if not answer.done():
                answer.set_result(None)
        elif (process := self._processes.get(number)) is not None:
            self._news(process, number, message, fds)
            return
        for fd in fds:
            os.close(fd)

    def _news(self, process: Process, number: int, message: dict[str, Any], fds: list[int]) -> None:
        if message["event"] == "started":
            process.begin(fds[0] if fds else None)
            return
        del self._processes[number]
        if message["event"] == "failed":
            process.settle(SandboxBroken(f"the sandbox starts nothing more: {message['message']}"))
        elif message["event"] == "refused":
            process.settle(WorkspaceError(message["message"]))
        else:
            code = os.waitstatus_to_exitcode(message["status"])
            process.settle(Exit(code, float(message["seconds"]), int(message["rss"]) * 1024))

    def _lost(self) -> None:
        """The launcher is gone, and with it all that ran."""
        error = self._gone()
        if self._up is not None and not self._up.done():
            self._up.set_exception(error)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(error)
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.settle(error)

    async def _bring_up(self, ours: socket.socket, theirs: socket.socket, said: Said, info: Said) -> None:
        plan, uid = self.plan, None if self.uid is None else self.uid.number
        with contextlib.ExitStack() as stack:
            data = {path: stack.enter_context(_given(text)).fileno() for path, text in plan.files.items()}
            passed = [theirs.fileno(), info.writer, *data.values()]
            command = plan.command(theirs.fileno(), info.writer, data=data, uid=uid, cgroups=self.cgroups)
            self._popen = await spawn(command, passed, said, cwd=None if plan.isolated else plan.cwd)
        theirs.close()  # else its end would not be seen
        self._wire = HostWire(ours, self._receive, self._lost)
        assert self._up is not None
        async with asyncio.timeout(_UP_S):
            up = await self._up
        self._was_up = True
        if plan.isolated:
            _refuse_unless_isolated(up)
            self._first = int(json.loads(info.read())["child-pid"])
            if uid is None:  # else it has joined them on its way in
                join(self.cgroups, [self._popen.pid, self._first])
            if plan.network is True:
                self._connection = await (await asyncio.to_thread(Pasta.needed)).connect(self._first, uid=uid)

    def _is_up(self) -> bool:
        """With its network: to mend that beside what runs would leave it open for a moment."""
        is_connected = self._connection is None or self._connection.poll() is None
        return self._wire is not None and self._wire.is_open and is_connected

    async def _end(self) -> None:
        wire, self._wire = self._wire, None
        popen, self._popen = self._popen, None
        connection, self._connection = self._connection, None
        first, self._first = self._first, None
        if wire is not None:
            wire.close()
            self._lost()
        if connection is not None:
            await cut(connection)
        if popen is not None:
            await ended(popen, first if self.plan.isolated and first else None, within_s=_STOP_S)


def _refuse_unless_isolated(up: Mapping[str, Any]) -> None:
    """What the launcher has found of itself: the first process there, without a single right."""
    status = up["status"]
    rights = [key for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb") if int(status[key], 16)]
    if up["pid"] != 1 or rights or status["NoNewPrivs"] != "1":
        raise SandboxError(f"it is not isolated: got pid {up['pid']} and {status}, expected pid 1 and no capability")


@contextlib.contextmanager
def _given(data: bytes) -> Iterator[IO[bytes]]:
    """A file with ``data`` to read from: a pipe would have to be fed."""
    with _unnamed() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file


def _unnamed() -> IO[bytes]:
    """In memory, or where that is not to be had (another system, a filter of system calls) on the disk."""
    try:
        return os.fdopen(os.memfd_create("stdin", os.MFD_CLOEXEC), "rb+")
    except (AttributeError, OSError):
        return tempfile.TemporaryFile()
