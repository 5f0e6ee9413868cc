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

from hudsim.coding.process import Process
from hudsim.coding.pump import Sink, Source
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.sftp import open_files
from hudsim.errors import SandboxError

if TYPE_CHECKING:
    from asyncssh.misc import TermModes, TermSize

__all__ = ["NO_SANDBOX", "SshSession", "Target"]

log = logging.getLogger(__name__)

NO_SANDBOX = "SANDBOX@hudsim"
"""The exit signal of what could not be carried out for want of a sandbox; its message says why."""

_DRAIN_S = 0.2
"""How long others may hold a command's output open after it has ended, before it counts as all."""
_HANGUP_S = 1.0
"""From the hangup of a command whose client is gone to its being killed."""
_ENVIRONMENT = ("LANG", "LANGUAGE", "LC_", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR")
"""What of a client's environment is taken over: names that begin with these."""
_END_OF_FILE = b"\x04"
_COMMAND_NOT_RUN = 255


class Target(Protocol):
    """What a client key opens: a workspace."""

    async def sandbox(self) -> Sandbox:
        """Started. Raises :class:`~hudsim.errors.SandboxError`."""

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
        self._sources: list[Source] = []
        self._held: set[str] = set()
        self._gone = False

    # What the client asks for -------------------------------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
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
            sandbox = await self._target.sandbox()
            if self._files:
                await self._serve_files(sandbox)
            else:
                await self._serve_command(sandbox)
        except SandboxError as error:
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
        if process is not None and not process.ended:
            # As a terminal's hangup: what was told to outlive it, does, unless it is the command itself.
            _signal(process, signal.SIGHUP)
            asyncio.get_running_loop().call_later(_HANGUP_S, _signal, process, signal.SIGKILL)
        self._over(self)

    async def _serve_files(self, sandbox: Sandbox) -> None:
        with await open_files(sandbox, str(self._channel.get_extra_info("client_version", ""))) as sock:
            source = self._source(os.dup(sock.fileno()), self._channel.write)
            self._sink.open(os.dup(sock.fileno()), lambda _: sock.shutdown(socket.SHUT_WR))
            await source.ended()
        self._channel.exit(0)

    async def _serve_command(self, sandbox: Sandbox) -> None:
        limits = sandbox.plan.limits
        words = [self._target.shell, "-l"] if self._command is None else [self._target.shell, "-c", self._command]
        process = self._process = await self._spawn(sandbox, words)
        self._resize()
        for number in self._early:
            process.signal(number)
        try:
            async with asyncio.timeout(None if self._command is None else limits.wall_s):
                end = await process.wait()
        except TimeoutError:
            process.signal(signal.SIGKILL)
            end = await process.wait()
        await asyncio.gather(*(source.drained(_DRAIN_S) for source in self._sources))
        if end.code >= 0:
            self._channel.exit(end.code)
        else:
            self._channel.exit_with_signal(_NAMES.get(-end.code, "KILL"))

    async def _spawn(self, sandbox: Sandbox, words: list[str]) -> Process:
        env = {**self._target.environment, **self._wanted()}
        if self._terminal is not None:
            process = await sandbox.spawn(words, env=env, cwd=self._target.cwd, terminal=self._terminal)
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
            return await sandbox.spawn(words, fds=theirs, env=env, cwd=self._target.cwd)
        finally:
            for fd in theirs:
                os.close(fd)

    def _wanted(self) -> dict[str, str]:
        asked = self._channel.get_environment_bytes()
        env = {os.fsdecode(name): os.fsdecode(value) for name, value in asked.items()}
        kept = {name: value for name, value in env.items() if name.startswith(_ENVIRONMENT) and "\0" not in value}
        terminal = self._channel.get_terminal_type()
        return {**kept, "TERM": terminal} if terminal else kept


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
