"""``SshSession``: one shell, command or SFTP channel of an SSH connection, carried out in a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import asyncssh

from hudsim.coding.process import Exit, Process
from hudsim.coding.pump import Sink, Source
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.sftp import Packets, open_files
from hudsim.errors import SandboxBroken, SandboxError, UsageError, WorkspaceError

if TYPE_CHECKING:
    from asyncssh.misc import TermModes, TermSize

__all__ = ["NO_SANDBOX", "SshSession", "Target"]

log = logging.getLogger(__name__)

NO_SANDBOX = "SANDBOX@hudsim"
"""The exit signal of what could not be carried out, above all for want of a sandbox; its message says why."""

_DRAIN_S = 0.2
"""How long others may hold a command's output open after it has ended, before it counts as all."""
_HANGUP_S = 1.0
"""From the hangup of a command whose client is gone to its being killed."""
_ENVIRONMENT = (b"LANG", b"LANGUAGE", b"LC_", b"TZ", b"TERM", b"COLORTERM", b"NO_COLOR", b"FORCE_COLOR")
"""What of a client's environment is taken over: names that begin with these."""
_MOST_ENVIRONMENT = 1 << 16
"""Bytes of that."""
_END_OF_FILE = b"\x04"


class Target(Protocol):
    """What a client key opens: a workspace."""

    async def sandbox(self) -> Sandbox:
        """Started. Raises :class:`~hudsim.errors.SandboxError`."""

    async def admitted(self) -> None:
        """Return when something may be started in it, which holds until whoever asked lets others run.

        Raises :class:`~hudsim.errors.SandboxError` if nothing may any more.
        """

    @property
    def sealed(self) -> bool:
        """Whether the agent may start nothing in it any more."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Of every command, beside the sandbox's own."""

    @property
    def cwd(self) -> str:
        """Where commands begin, as the sandbox sees it."""

    @property
    def shell(self) -> str:
        """The shell's path in the sandbox."""


class SshSession(asyncssh.SSHServerSession[bytes]):
    """Output flows no faster than the client takes it, and input no faster than the command does, so that neither
    gathers here. A command's exit ends the session, whoever else holds its output; a client that goes away ends the
    command.
    """

    def __init__(self, target: Target, over: Callable[[SshSession], None]) -> None:
        self._target = target
        self._over = over
        self._work: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._early: list[int] = []  # signals that came before it was there
        self._terminal: tuple[int, int] | None = None  # rows, columns
        self._command: str | None = None
        self._files = False
        self._requests = Packets()  # of the files
        self._variables = _Variables()
        self._sources: list[Source] = []
        self._held: set[str] = set()
        self._gone = False

    # What the client asks for -------------------------------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        vars(chan)["_env"] = self._variables  # asyncssh keeps whatever comes, however much, and asks nobody
        self._sink = Sink(self._hold_client)

    def pty_requested(self, term_type: str, term_size: TermSize, term_modes: TermModes) -> bool:
        self._terminal = _size(term_size[0], term_size[1])
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        self._files = subsystem == "sftp"
        return self._files

    def session_started(self) -> None:
        self._work = asyncio.create_task(self._serve(), name="hudsim-ssh-session")

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._files:
            self._requests.add(data)
        self._sink.give(data)

    def eof_received(self) -> bool:
        if self._terminal is not None:
            self._sink.give(_END_OF_FILE)
        self._sink.end()
        return True  # the other direction stays open

    def signal_received(self, signal: str) -> None:
        number = _SIGNALS.get(signal)
        if number is None:
            return
        if self._process is None:
            self._early = [*self._early[-7:], number]
        else:
            _signal(self._process, number)

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        if self._terminal is not None:
            self._terminal = _size(width, height)
            self._resize()

    # Flow ---------------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        self.hold("channel")

    def resume_writing(self) -> None:
        self.let_go("channel")

    def hold(self, who: str) -> None:
        """Read none of the output until ``who`` lets go."""
        self._held.add(who)
        for source in self._sources:
            source.pause()

    def let_go(self, who: str) -> None:
        self._held.discard(who)
        if not self._held:
            for source in self._sources:
                source.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        if self._work is None:
            self._end()
        else:
            self._work.cancel()

    async def ended(self) -> None:
        """Until nothing of it is left here."""
        if self._work is not None:
            await asyncio.wait({self._work})

    def _hold_client(self, full: bool) -> None:
        if not self._gone:
            self._channel.pause_reading() if full else self._channel.resume_reading()

    def _source(self, fd: int, write: Callable[[bytes], None]) -> Source:
        def deliver(data: bytes) -> None:
            if not self._gone and not self._channel.is_closing():
                write(data)

        source = Source(fd, deliver)
        self._sources.append(source)
        if self._held:
            source.pause()
        return source

    # The work -----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            self._variables.check()
            sandbox = await self._target.sandbox()
            if self._files:
                await self._serve_files(sandbox)
            else:
                await self._serve_command(sandbox)
        except (SandboxError, UsageError, WorkspaceError) as error:
            self._refuse(str(error))
        except Exception:
            log.exception("an SSH session")
            self._refuse("internal error")
        finally:
            self._end()

    def _resize(self) -> None:
        if self._process is not None and self._terminal is not None:
            with contextlib.suppress(SandboxError):  # gone, and everything in it
                self._process.resize(*self._terminal)

    def _refuse(self, why: str) -> None:
        if not self._gone:
            if not self._files:
                self._channel.write_stderr(f"hudsim: {why}\n".encode(errors="replace"))
            self._channel.exit_with_signal(NO_SANDBOX, msg=why)

    def _end(self) -> None:
        self._sink.close()
        for source in self._sources:
            source.close()
        process = self._process
        if process is not None and not process.ended and not self._target.sealed:  # else its grade ends what it should
            if not self._files:
                # As a terminal's hangup: what was told to outlive it, does, unless it is the command itself.
                _signal(process, signal.SIGHUP)
            asyncio.get_running_loop().call_later(_HANGUP_S, _signal, process, signal.SIGKILL)
        self._over(self)

    async def _serve_files(self, sandbox: Sandbox) -> None:
        limit_s = sandbox.plan.limits.wall_s
        version = str(self._channel.get_extra_info("client_version", ""))
        replies = Packets()

        def reply(data: bytes) -> None:
            replies.add(data)
            self._channel.write(data)

        try:
            async with asyncio.timeout(limit_s):
                sock, self._process = await open_files(sandbox, version, before=self._target.admitted)
            with sock:
                source = self._source(os.dup(sock.fileno()), reply)
                self._sink.open(os.dup(sock.fileno()), lambda _: sock.shutdown(socket.SHUT_WR))
                await self._answered(source, replies, limit_s)
        except TimeoutError:
            if self._process is not None:
                await self._process.kill()
            raise SandboxBroken(f"a file operation took longer than {limit_s} s") from None
        self._channel.exit(0)

    async def _answered(self, source: Source, replies: Packets, limit_s: float | None) -> None:
        """Until the file server has ended. Raises :class:`TimeoutError` when it answers no more: a look each
        ``limit_s`` finds the same request as the last one, and a client that takes its replies.
        """
        before = -1
        while True:
            try:
                async with asyncio.timeout(limit_s):
                    return await source.ended()
            except TimeoutError:
                is_waited_for = replies.count < self._requests.count and not self._held
                if is_waited_for and replies.count == before:
                    raise
                before = replies.count if is_waited_for else -1

    async def _serve_command(self, sandbox: Sandbox) -> None:
        words = [self._target.shell, "-l"] if self._command is None else [self._target.shell, "-c", self._command]
        try:
            async with asyncio.timeout(sandbox.plan.limits.wall_s) as time:
                process = self._process = await self._spawn(sandbox, words)
                if self._command is None:
                    time.reschedule(None)
                self._resize()
                for number in self._early:
                    process.signal(number)
                end = await process.wait()
        except TimeoutError:
            end = Exit(-signal.SIGKILL) if self._process is None else await self._process.kill()
        await asyncio.gather(*(source.drained(_DRAIN_S) for source in self._sources))
        if end.code >= 0:
            self._channel.exit(end.code)
        else:
            self._channel.exit_with_signal(_NAMES.get(-end.code, "KILL"))

    async def _spawn(self, sandbox: Sandbox, words: list[str]) -> Process:
        env = {**self._target.environment, **self._wanted()}
        if self._terminal is not None:
            process = await sandbox.spawn(
                words, env=env, cwd=self._target.cwd, terminal=self._terminal, before=self._target.admitted
            )
            terminal = process.terminal
            assert terminal is not None
            self._source(terminal, self._channel.write)
            self._sink.open(os.dup(terminal), lambda _: None)
            return process
        theirs: list[int] = []
        try:
            given, stdin = _pipe(sandbox)
            theirs.append(given)
            self._sink.open(stdin)
            for write in (self._channel.write, self._channel.write_stderr):
                output, taken = _pipe(sandbox)
                theirs.append(taken)
                self._source(output, write)
            return await sandbox.spawn(words, fds=theirs, env=env, cwd=self._target.cwd, before=self._target.admitted)
        finally:
            for fd in theirs:
                os.close(fd)

    def _wanted(self) -> dict[str, str]:
        kept = {os.fsdecode(name): os.fsdecode(value) for name, value in self._variables.items()}
        terminal = self._channel.get_terminal_type()
        return {**kept, "TERM": terminal} if terminal else kept


class _Variables(dict[bytes, bytes]):
    """What a client would have in its command's environment: what is taken over of it, up to a limit."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name.startswith(_ENVIRONMENT) and b"\0" not in name + value:
            self._size += len(name) + len(value)
            if self._size <= _MOST_ENVIRONMENT:
                super().__setitem__(name, value)

    def check(self) -> None:
        """Raises :class:`~hudsim.errors.UsageError` where that was not all."""
        if self._size > _MOST_ENVIRONMENT:
            got = f"got {self._size:,} bytes of environment variables"
            raise UsageError(f"{got}, expected {_MOST_ENVIRONMENT:,} at most")


def _signal(process: Process, number: int) -> None:
    with contextlib.suppress(SandboxError):  # gone, and everything in it
        process.signal(number)


def _pipe(sandbox: Sandbox) -> tuple[int, int]:
    """Its two ends. It belongs to the sandbox's user, who may then open ``/dev/stderr``."""
    ends = os.pipe2(os.O_CLOEXEC)
    if sandbox.uid is not None:
        os.fchown(ends[0], sandbox.uid.number, sandbox.uid.number)
    return ends


def _size(columns: int, rows: int) -> tuple[int, int]:
    """(rows, columns), as a terminal can have them. A client that does not know says 0."""
    return min(rows, 0xFFFF) or 24, min(columns, 0xFFFF) or 80


_SIGNALS = {
    name: signal.Signals[f"SIG{name}"]
    for name in ("ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2")
}
_NAMES: dict[int, str] = {number: name for name, number in _SIGNALS.items()}
