"""``SSHClient``: an agent's end of a workspace's shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import stat
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import asyncssh

from hudsim.capability import Capability
from hudsim.coding.captured import Captured
from hudsim.coding.login import Login
from hudsim.coding.process import Completed
from hudsim.errors import ConnectError, LinkLost, SandboxError, UsageError

__all__ = ["Entry", "SSHClient"]

_OUTPUT = 8 << 20
_KILLED_S = 2.0
_PIECE = 1 << 16
_NOTED = 4096
"""Bytes of each stream that a run's trace keeps of a command."""
_CIPHERS = ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"]
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Kind = Literal["file", "folder", "link", "other"]


class Recorder(Protocol):
    """Where commands are recorded."""

    def note(self, source: str, *, content: str | None = None, data: dict[str, Any] | None = None) -> Any:
        """Add a step."""


class Live(Recorder, Protocol):
    """What is needed of a live run."""

    bindings: dict[str, dict[str, Any]]

    async def reach(self, name: str) -> Capability:
        """The capability called, or the only one speaking, ``name``; it can be dialled from here."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a folder holds.

    name
        A name that is no UTF-8 has surrogates in place of its odd bytes, as ``os.fsdecode`` gives them.
    size
        In bytes. ``mode``: its permissions. ``mtime``: seconds since 1970.
    """

    name: str
    kind: Kind
    size: int
    mode: int
    mtime: int


class SSHClient:
    """Commands and files in a workspace.

    ::

        async with await SSHClient.of(run) as shell:
            done = await shell.run("pytest -q")
            await shell.write("calc.py", source)

    Commands are a shell's, in the workspace; paths are relative to it, or absolute in the sandbox. What a path cannot
    do (there is no such file, it is no regular file, …) raises :class:`~hudsim.errors.UsageError`; a connection that
    ends, :class:`~hudsim.errors.LinkLost`; a sandbox that cannot be made or is gone,
    :class:`~hudsim.errors.SandboxError`.
    """

    def __init__(self, connection: asyncssh.SSHClientConnection, where: str, recorder: Recorder | None) -> None:
        self._connection = connection
        self._where = where
        self._recorder = recorder
        self._sftp: asyncssh.SFTPClient | None = None
        self._opening = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
        capability: Capability,
        binding: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = 30.0,
        recorder: Recorder | None = None,
    ) -> Self:
        """To the shell of ``capability``, as ``binding`` says: its ``client_key``, and ``user`` if it names one.

        recorder
            Is told of each command: a run, in whose trace it is then.

        Raises :class:`~hudsim.errors.ConnectError` if nobody answers there, if the host key is not the capability's,
        or if the key is not admitted; :class:`~hudsim.errors.UsageError` for a capability that is no shell.
        """
        login = Login.of(capability, binding)
        where = f"{capability.name} at {login.host}:{login.port}"
        try:
            async with asyncio.timeout(timeout_s):
                connection = await asyncssh.connect(
                    login.host,
                    login.port,
                    username=login.user,
                    client_keys=[asyncssh.import_private_key(login.client_key)],
                    known_hosts=([asyncssh.import_public_key(login.host_pubkey)], [], []),
                    config=None,
                    agent_path=None,
                    gss_host=None,
                    preferred_auth="publickey",
                    encryption_algs=_CIPHERS,
                    compression_algs=None,
                )
        except TimeoutError:
            raise ConnectError(f"{where} did not answer within {timeout_s:g} s") from None
        except asyncssh.KeyImportError as error:
            raise UsageError(f"{where}: got a key that cannot be read: {error}") from None
        except asyncssh.HostKeyNotVerifiable:
            raise ConnectError(
                f"{where} has another host key than its environment says; it is not that server"
            ) from None
        except asyncssh.PermissionDenied:
            raise ConnectError(f"{where} does not admit this key; is its run over?") from None
        except (OSError, asyncssh.Error) as error:
            raise ConnectError(f"{where}: {_reason(error)}") from None
        return cls(connection, where, recorder)

    @classmethod
    async def of(cls, run: Live, name: str = "ssh") -> Self:
        """To the shell of a live run, which records each command in its trace.

        ``name`` is the capability's name; it is needed only where there are several. Raises as :meth:`connect`, and
        :class:`~hudsim.errors.UnknownName`.
        """
        capability = await run.reach(name)
        return await cls.connect(capability, run.bindings.get(capability.name), recorder=run)

    async def close(self) -> None:
        """Hang up, which ends what still runs. Idempotent."""
        if self._sftp is not None:
            self._sftp.exit()
        self._connection.close()
        try:
            async with asyncio.timeout(_KILLED_S):
                await self._connection.wait_closed()
        except TimeoutError:
            self._connection.abort()

    # Commands -----------------------------------------------------------------------------------------------------

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        input: bytes = b"",  # noqa: A002 - as subprocess.run has it
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_bytes: int = _OUTPUT,
    ) -> Completed:
        """Run a command to its end: a line for the shell, or its words.

        timeout_s
            After so long it is killed, and ``timed_out``. None: the workspace's own limit.
        output_bytes
            Kept of each of its two streams; what is over is counted and dropped.

        It returns when the command ends, whoever holds its output. Whoever stops waiting for it ends it.
        """
        line = _line(command, cwd, env)
        began_s = time.monotonic()
        with self._errors():
            session = Captured(output_bytes)
            channel, _ = await self._connection.create_session(lambda: session, command=line, encoding=None)
        try:
            session.feed(input)
            ended, _ = await asyncio.wait({session.over}, timeout=timeout_s)
            if not ended:
                _kill(channel)
                await asyncio.wait({session.over}, timeout=_KILLED_S)  # for what it had printed
        finally:
            _kill(channel)
            channel.abort()
        done = session.completed(self._where, timed_out=not ended, seconds=time.monotonic() - began_s)
        self._note(command if isinstance(command, str) else shlex.join(command), done)
        return done

    async def create_process(
        self, command: str | Sequence[str] | None = None, *, pty: tuple[int, int] | None = None
    ) -> asyncssh.SSHClientProcess[bytes]:
        """A command that goes on, with ``stdin``, ``stdout`` and ``stderr`` to talk with; None: a login shell.

        ``pty`` gives it a terminal of (rows, columns). Bytes both ways. See asyncssh's ``SSHClientProcess``.
        """
        terminal = {} if pty is None else {"term_type": "xterm-256color", "term_size": (pty[1], pty[0])}
        line = None if command is None else _line(command, None, None)
        with self._errors():
            return await self._connection.create_process(line, encoding=None, **terminal)

    # Files --------------------------------------------------------------------------------------------------------

    async def read(self, path: str) -> bytes:
        """A whole file."""
        async with self._files(path) as (sftp, name), sftp.open(name, "rb") as file:
            pieces: list[Any] = [await file.read()]
            while not pieces[0] and (piece := await file.read(_PIECE)):  # the kernel's own files say they are empty
                pieces.append(piece)
            return b"".join(pieces)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Make a file of ``data``, in place of the one there is; missing folders are made.

        mode
            Its permissions. None: as they were, or 0644.
        """
        async with self._files(path) as (sftp, name):
            try:
                opened = await sftp.open(name, "wb")
            except asyncssh.SFTPNoSuchFile:
                await sftp.makedirs(os.path.dirname(name), exist_ok=True)  # noqa: PTH120 - bytes
                opened = await sftp.open(name, "wb")
            async with opened as file:
                await file.write(data)
            if mode is not None:
                await sftp.chmod(name, mode)

    async def list(self, path: str = ".") -> list[Entry]:
        """What is in a folder, by name."""
        async with self._files(path) as (sftp, name):
            entries = [_entry(found) async for found in sftp.scandir(name)]
        return sorted((entry for entry in entries if entry.name not in (".", "..")), key=lambda entry: entry.name)

    # ----------------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _files(self, path: str) -> AsyncIterator[tuple[asyncssh.SFTPClient, bytes]]:
        if "\0" in path or not path:
            raise UsageError(f"got the path {path!r}, expected one that is not empty and without null characters")
        with self._errors(path):
            async with self._opening:
                if self._sftp is None:
                    self._sftp = await self._connection.start_sftp_client(path_encoding=None)
            yield self._sftp, os.fsencode(path)

    @contextlib.contextmanager
    def _errors(self, path: str | None = None) -> Any:
        """What asyncssh raises, as what we raise."""
        try:
            yield
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as error:
            self._sftp = None
            kind = LinkLost if self._connection.is_closed() else SandboxError
            raise kind(f"{self._where}: its file server is gone: {_reason(error)}") from None
        except asyncssh.SFTPError as error:
            raise UsageError(f"{path}: {error.reason.lower()} ({self._where})") from None
        except asyncssh.ChannelOpenError as error:
            kind = LinkLost if self._connection.is_closed() else SandboxError
            raise kind(f"{self._where}: {_reason(error)}") from None
        except (OSError, asyncssh.Error) as error:
            raise LinkLost(f"{self._where}: {_reason(error)}") from None

    def _note(self, command: str, done: Completed) -> None:
        if self._recorder is not None:
            data = {"command": command, "code": done.code, "seconds": round(done.seconds, 6)}
            data |= {name: _shown(getattr(done, name)) for name in ("stdout", "stderr") if getattr(done, name)}
            if done.timed_out:
                data["timed_out"] = True
            self._recorder.note("tool", content=command, data=data)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()


def _kill(channel: asyncssh.SSHClientChannel[bytes]) -> None:
    """Nothing happens once it is over."""
    with contextlib.suppress(OSError):
        channel.kill()


def _line(command: str | Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> str:
    """One line for the shell: where, with which variables, what."""
    line = command if isinstance(command, str) else shlex.join(command)
    if not line.strip():
        raise UsageError(f"got the command {command!r}, expected one that is not empty")
    before = "" if cwd is None else f"cd -- {shlex.quote(cwd)} || exit\n"
    for name, value in (env or {}).items():
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"got the variable {name!r}, expected letters, digits and underscores")
        before += f"export {name}={shlex.quote(value)}\n"
    whole = before + line
    try:
        if b"\0" in whole.encode():
            raise UsageError("a command with a null character cannot be run")
    except UnicodeEncodeError:
        raise UsageError("a command over ssh is UTF-8; for other bytes, write a script and run that") from None
    return whole


def _entry(found: asyncssh.SFTPName) -> Entry:
    attributes = found.attrs
    mode = attributes.permissions or 0
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(mode), "other")
    assert isinstance(found.filename, bytes)
    return Entry(
        os.fsdecode(found.filename), kind, attributes.size or 0, stat.S_IMODE(mode), int(attributes.mtime or 0)
    )


def _shown(data: bytes) -> str:
    return data[:_NOTED].decode(errors="replace")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return (str(error) or type(error).__name__).lower()
