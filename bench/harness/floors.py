"""``Floors``: what a run of `letters` does, bare: an agent's call, a WebSocket's four calls, a commit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from hudsim.agents.noop import Noop
from hudsim.bench.shared.tell import tell
from hudsim.eval import Run
from hudsim.eval.schema import open_writer

__all__ = ["Floors", "serve_floor"]

T = TypeVar("T")
Timed = Callable[[str, Callable[..., Awaitable[T]]], Callable[..., Awaitable[T]]]

_CALLS = ("hello", "start", "grade", "bye")
_CALL, _REPLY = 115, 147  # characters: the means of the four's in a run of letters


def _plain(stage: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    return work


@dataclass
class Floors:
    """``run`` does all three; each can be had alone. ``timed`` (a :meth:`Watch.timed`) sees their stages.

    sample
        A finished run: the agent is called with its task, and a commit has as many bytes.
    ports
        Of the bare server, by where it is: ``local`` (in this process) and ``subprocess``.
    """

    sample: Run
    ports: dict[str, int]
    _db: sqlite3.Connection
    _row: str

    @classmethod
    async def start(cls, stack: AsyncExitStack, sample: Run, folder: Path) -> Self:
        """Bring the servers up, and a database in ``folder``; they last as long as ``stack``."""
        ports = {"local": await _server(stack), "subprocess": await stack.enter_async_context(_server_process())}
        row = json.dumps([sample.to_row(), sample.trace.to_json()])
        return cls(sample, ports, stack.enter_context(_database(folder)), row)

    async def run(self, timed: Timed[Any] = _plain) -> None:
        await timed("agent", self.agent)()
        await self.session("local", timed)
        await timed("commit", self.commit)()

    async def agent(self) -> None:
        await Noop()(Run(self.sample.task, job_id="floor", run_id="floor-0"))

    async def session(self, place: str, timed: Timed[Any] = _plain) -> None:
        """A connection of its own, four calls, and its end."""
        ws = await timed("connect", _dial)(self.ports[place])
        try:
            for method in _CALLS:
                await timed(method, _call)(ws)
        finally:
            await timed("hang up", ws.close)()

    async def commit(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("INSERT INTO runs (row) VALUES (?)", (self._row,))
        self._db.execute("COMMIT")


async def serve_floor() -> None:
    """The bare server as a process: its port on stdout, until stdin ends."""
    async with AsyncExitStack() as stack:
        tell(str(await _server(stack)), sys.stdout)
        await asyncio.to_thread(sys.stdin.read)


async def _server(stack: AsyncExitStack) -> int:
    """Answers each call with as many bytes as hudsim's server does; the port."""
    reply = _words(_REPLY)

    async def answer(ws: ServerConnection) -> None:
        async for call in ws:
            json.loads(call)
            await ws.send(reply)

    serving = serve(answer, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1)
    server = await stack.enter_async_context(serving)
    return int(next(iter(server.sockets)).getsockname()[1])


@asynccontextmanager
async def _server_process() -> AsyncIterator[int]:
    command = (sys.executable, "-m", "hudsim.bench.harness", "--floor")
    pipe = asyncio.subprocess.PIPE  # its stdin ends with this process, however that ends
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        with contextlib.suppress(ProcessLookupError):  # it may still be at its imports, and has nothing to clean up
            process.kill()
        await process.wait()


@contextmanager
def _database(folder: Path) -> Iterator[sqlite3.Connection]:
    """As durable as the store's own."""
    with closing(open_writer(folder / "store.db")) as store:
        pragmas = {name: store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
    with closing(sqlite3.connect(folder / "floor.db", isolation_level=None)) as db:
        for name, value in pragmas.items():
            db.execute(f"PRAGMA {name} = {value}")
        db.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, row TEXT NOT NULL)")
        yield db


async def _dial(port: int) -> ClientConnection:
    return await connect(f"ws://127.0.0.1:{port}", compression=None, ping_interval=None, close_timeout=1, proxy=None)


async def _call(ws: ClientConnection) -> None:
    await ws.send(_words(_CALL))
    json.loads(await ws.recv())


def _words(length: int) -> str:
    """A JSON-RPC message of so many characters."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "words", "params": ""}
    return json.dumps({**message, "params": "x" * (length - len(json.dumps(message)))})
