"""``SshServer``: the SSH listener of this process, where a client's key says which workspace it opens."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import asyncssh

from hudsim.coding.keys import new_host_key
from hudsim.coding.sshsession import SshSession, Target

__all__ = ["SshServer"]

_LOGIN_S = 20.0
_FORGET_S = 5.0
_MOST_SESSIONS = _MOST_IDLE = 32
"""Of one workspace at once, and its connections without any: each takes descriptors of this process."""
_MOST_STRANGERS, _MOST_COMING = 32, 4
"""Connections that have not shown a key yet, and how many more for each workspace whose agents may be on their way."""
_CIPHERS = ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr"]


class SshServer:
    """Shells, commands and SFTP for every workspace that is registered, and nothing else: no password, no forwarding.

    ::

        server = await SshServer.shared()
        server.register(key.public, workspace)
        ...
        await server.forget(key.public)
        await server.release()

    port
        Where it listens.
    host_pubkey
        What its clients must find there, as in ``authorized_keys``. Made for this listener, and never written down.
    """

    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], SshServer]]] = WeakKeyDictionary()

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._address = host, port
        self._host_key = new_host_key()
        self.host_pubkey = self._host_key.export_public_key().decode().strip()
        self.port = 0
        self._targets: dict[bytes, Target] = {}
        self._doors: dict[_Door, None] = {}  # the oldest first
        self._listener: asyncssh.SSHAcceptor | None = None
        self._opening = asyncio.Lock()
        self._users = 0

    @classmethod
    async def shared(cls, host: str = "127.0.0.1", port: int = 0) -> SshServer:
        """The one of this event loop at ``host`` and ``port`` (0: any that is free), listening.

        As :meth:`start`.
        """
        here = cls._all.setdefault(asyncio.get_running_loop(), {})
        server = here.get((host, port))
        if server is None:
            server = here[host, port] = cls(host, port)
        await server.start()
        return server

    async def start(self) -> None:
        """Listen. Each call wants its own :meth:`release`. Raises :class:`OSError` where it cannot."""
        self._users += 1
        try:
            async with self._opening:
                await self._listen()
        except BaseException:
            self._users -= 1
            raise

    async def release(self) -> None:
        """The last of its users closes the port and every connection."""
        self._users -= 1
        async with self._opening:
            if self._users or self._listener is None:
                return
            listener, self._listener = self._listener, None
            listener.close()
            await listener.wait_closed()
            await self._hang_up(list(self._doors))

    def register(self, public: str, target: Target) -> None:
        """From now on whoever has the private half of ``public`` opens ``target``."""
        self._targets[_identity(public)] = target

    async def forget(self, public: str) -> None:
        """From now on nobody does; those who had are cut off. Idempotent."""
        target = self._targets.pop(_identity(public), None)
        if target is not None:
            await self.hang_up(target)

    async def hang_up(self, target: Target) -> None:
        """Cut off those who are at ``target``, and wait until nothing of theirs is left here. Idempotent."""
        await self._hang_up([door for door in self._doors if door.target is target])

    def find(self, identity: bytes) -> Target | None:
        """What a key opens."""
        return self._targets.get(identity)

    def admits(self, target: Target) -> bool:
        """Whether ``target`` may have one more session."""
        return sum(len(door.sessions) for door in self._doors if door.target is target) < _MOST_SESSIONS

    def opened(self, door: _Door) -> None:
        """Somebody is there; of too many who have not shown a key, the oldest go."""
        self._doors[door] = None
        self._bound(
            [door for door in self._doors if not door.entered], _MOST_STRANGERS + _MOST_COMING * len(self._targets)
        )

    def entered(self, door: _Door) -> None:
        """Somebody's key opened something; of too many connections to that which do nothing, the oldest go."""
        idle = [other for other in self._doors if other.entered and other.target is door.target and not other.sessions]
        self._bound(idle, _MOST_IDLE)

    def closed(self, door: _Door) -> None:
        self._doors.pop(door, None)

    def _bound(self, doors: list[_Door], most: int) -> None:
        for door in doors[: max(0, len(doors) - most)]:
            self.closed(door)
            door.hang_up()

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncssh.create_server(
                lambda: _Door(self),
                *self._address,
                server_host_keys=[self._host_key],
                server_version="hudsim",
                encoding=None,
                line_editor=False,
                login_timeout=_LOGIN_S,
                encryption_algs=_CIPHERS,
                compression_algs=None,
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_host=None,
            )
            self.port = self._listener.get_port()

    async def _hang_up(self, doors: list[_Door]) -> None:
        sessions = [session for door in doors for session in door.sessions]
        for door in doors:
            door.hang_up()
        async with asyncio.timeout(_FORGET_S):
            await asyncio.gather(*(session.ended() for session in sessions))


class _Door(asyncssh.SSHServer):
    """One connection. What is not allowed here is not: asyncssh refuses what its server does not override."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self.target: Target | None = None
        self.entered = False
        self.sessions: set[SshSession] = set()
        self._full = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        # asyncssh itself goes on filling a transport that its peer does not empty.
        for name, call in (("pause_writing", self._hold), ("resume_writing", self._let_go)):
            setattr(conn, name, call)
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether it opens something. A connection is for one workspace: a second one's key is not looked at."""
        target = self._server.find(key.public_data)
        if target is None or self.target not in (None, target):
            return False
        self.target = target
        return True

    def auth_completed(self) -> None:
        self.entered = True
        self._server.entered(self)

    def session_requested(self) -> Any:
        target = self.target
        if target is None or not self._server.admits(target):
            return False
        session = SshSession(target, self.sessions.discard)
        if self._full:
            session.hold("connection")
        self.sessions.add(session)
        return session

    def hang_up(self) -> None:
        self._connection.abort()

    def _hold(self) -> None:
        self._full = True
        for session in self.sessions:
            session.hold("connection")

    def _let_go(self) -> None:
        self._full = False
        for session in list(self.sessions):
            session.let_go("connection")


def _identity(public: str) -> bytes:
    return asyncssh.import_public_key(public).public_data
