"""``TrackingServer``: which files of a workspace have changed, told over TCP as lines of JSON (``filetracking/1``)."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
from typing import Any, Self

from hudsim.coding.changes import Changes

__all__ = ["TrackingServer"]

_LINE = 1 << 16
_FIRST_S = 10.0
_EVERY_S = 0.5
_SHUT_S = 2.0
_MOST_STRANGERS, _MOST_COMING = 32, 4
"""Connections that have not shown a token yet, and how many more for each room whose clients may be on their way."""
_MOST = 16
"""Connections of one room."""


class TrackingServer:
    """A client's first line is ``{"token": …}``; each further line asks, and is answered with one line.

    ``{"method": "changes"}``
        ``{"changes": [{"path", "change", "size", "mtime_ns", "seen_s", "diff"}], "left_out": n}``: since the agent was
        handed the workspace. ``change``: ``added``, ``modified``, ``removed``. ``diff``: unified; None for what is no
        text or is large. ``seen_s``: how long after the hand-over it was first seen so.
    ``{"method": "watch"}``
        The same lines again and again, whenever something has changed, until the client goes.

    An answer with ``error`` says what was wrong with a question.
    """

    def __init__(self) -> None:
        self.port = 0
        self._tracked: dict[str, tuple[str, Changes]] = {}  # room -> (token, changes)
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[Any], str | None] = {}  # the oldest first; its room, None before it is known

    @classmethod
    async def start(cls, host: str) -> Self:
        """Listen at a free port of ``host``."""
        server = cls()
        server._server = await asyncio.start_server(server._serve, host, 0, limit=_LINE)
        server.port = server._server.sockets[0].getsockname()[1]
        return server

    async def stop(self) -> None:
        """Close the port and every connection. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for task in self._serving:
                task.cancel()
            if self._serving:
                await asyncio.wait(self._serving, timeout=_SHUT_S)
            await server.wait_closed()

    def track(self, room: str, changes: Changes) -> str:
        """Answer for the room's ``changes`` from now on, unless it is done already; the token that asks for it."""
        return self._tracked.setdefault(room, (secrets.token_urlsafe(16), changes))[0]

    def forget(self, room: str) -> None:
        """Its token is worth nothing any more."""
        self._tracked.pop(room, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._admit(task, None, _MOST_STRANGERS + _MOST_COMING * len(self._tracked))
        try:
            with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                await self._answer(task, reader, writer)
        finally:
            self._serving.pop(task, None)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _admit(self, task: asyncio.Task[Any], room: str | None, most: int) -> None:
        """It is served for ``room``; of more than ``most`` that are, the oldest goes."""
        self._serving[task] = room
        others = [task for task, its in self._serving.items() if its == room]
        for oldest in others[: max(0, len(others) - most)]:
            del self._serving[oldest]
            oldest.cancel()

    async def _answer(
        self, task: asyncio.Task[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        async with asyncio.timeout(_FIRST_S):
            first = _parsed(await reader.readline())
        room = self._of(first.get("token"))
        if room is None:
            await _say(writer, {"error": "no such token"})
            return
        self._admit(task, room, _MOST)
        while line := await reader.readline():
            method = _parsed(line).get("method")
            if method == "changes":
                await _say(writer, await self._changes(room))
            elif method == "watch":
                await self._watch(room, reader, writer)
                return
            else:
                await _say(writer, {"error": f"got the method {method!r}, expected changes or watch"})

    async def _watch(self, room: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = asyncio.ensure_future(reader.read(1))
        try:
            said = None
            while not gone.done() and room in self._tracked:
                now = await self._changes(room)
                if now != said:
                    await _say(writer, now)
                    said = now
                await asyncio.wait({gone}, timeout=_EVERY_S)
        finally:
            gone.cancel()

    async def _changes(self, room: str) -> dict[str, Any]:
        if room not in self._tracked:
            return {"error": "the run is over"}
        return await asyncio.to_thread(self._tracked[room][1].now)

    def _of(self, token: object) -> str | None:
        if isinstance(token, str):
            for room, (right, _) in self._tracked.items():
                if hmac.compare_digest(token.encode(), right.encode()):
                    return room
        return None


def _parsed(line: bytes) -> dict[str, Any]:
    parsed = json.loads(line)
    return parsed if isinstance(parsed, dict) else {}


async def _say(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()
