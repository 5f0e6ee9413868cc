"""``Server``: one port, WebSocket handlers by path, plain ``GET`` for health and metrics, one bearer token."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server as WsServer
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from hudsim.errors import HudsimError, UsageError
from hudsim.net.address import Address, new_token
from hudsim.net.dial import words
from hudsim.net.link import CLOSE_TIMEOUT_S, Link, tune
from hudsim.net.opening import ServerOpening

__all__ = ["Handler", "Server", "Text"]

log = logging.getLogger(__name__)

_LAST_S = 0.5

Handler = Callable[[Link], Awaitable[None]]
Text = Callable[[], tuple[str, str]]
"""What a plain ``GET`` answers: (content type, body)."""


class Server:
    """WebSocket handlers by exact path on one port.

    routes
        ``{"/robot/robot": handler}``: each connection is a task that runs ``handler(link)``; the link is closed
        when it returns. A path that is not there is a 404 whose body lists those that are.
    pages
        ``{"/healthz": text}``: answers to plain ``GET``.
    bearer
        The token that admits; None or "" lets everybody in (it must be asked for). Compared in constant time.
        :meth:`admit` makes others, for a single path.
    max_frame_bytes
        A larger frame closes its connection with 1009.
    max_queue
        So many frames of a connection may wait to be received before no more is read from its socket.
    """

    def __init__(
        self,
        routes: Mapping[str, Handler],
        *,
        bearer: str | None,
        pages: Mapping[str, Text] | None = None,
        max_frame_bytes: int = 64 << 20,
        max_queue: int = 64,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.routes = dict(routes)
        self.pages = dict(pages or {})
        self.bearer = bearer
        self.max_frame_bytes = max_frame_bytes
        self._max_queue = max_queue
        self._tls = tls
        self._passes: dict[str, dict[str, set[Link]]] = {}
        self._handling: set[asyncio.Task[None]] = set()
        self._server: WsServer | None = None
        self._address: Address | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Bind and serve; port 0 picks a free one. Raises :class:`~hudsim.errors.UsageError` if it cannot bind."""
        if self._address is not None:
            return self._address
        try:
            self._server = await serve(
                self._handle,
                host,
                port,
                process_request=self._process_request,
                compression=None,
                ping_interval=None,
                close_timeout=CLOSE_TIMEOUT_S,
                server_header="hudsim",
                create_connection=ServerOpening,
                ssl=self._tls,
                logger=logging.getLogger("hudsim.net.websockets"),
            )
        except (OSError, UnicodeError) as error:
            hint = "; port 0 picks a free one" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
            raise UsageError(f"cannot listen on {host}:{port}: {words(error)}{hint}") from None
        bound = next(iter(self._server.sockets)).getsockname()
        self._address = Address(bound[0], bound[1], "/", self.bearer, self._tls is not None)
        return self._address

    @property
    def address(self) -> Address:
        """Where it listens. Only after :meth:`start`."""
        if self._address is None:
            raise UsageError("the server has no address before start()")
        return self._address

    def admit(self, path: str) -> str:
        """A new token that opens ``path`` and nothing else, until :meth:`dismiss`."""
        token = new_token()
        self._passes.setdefault(path, {})[token] = set()
        return token

    def dismiss(self, path: str, token: str) -> None:
        """The end of a token that :meth:`admit` made; the links that came in with it are cut. Idempotent."""
        passes = self._passes.get(path, {})
        for link in passes.pop(token, ()):
            link.abort()
        if not passes:
            self._passes.pop(path, None)

    async def stop(self) -> None:
        """Close every connection (1001) and the port. Idempotent; ends within the closing timeout and a second."""
        server, self._server, self._address = self._server, None, None
        if server is None:
            return
        server.close()
        closing = asyncio.ensure_future(server.wait_closed())
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT_S + 0.1)
        if not closing.done():
            for task in self._handling:
                task.cancel()
            await asyncio.wait({closing}, timeout=_LAST_S)
        if not closing.done():
            closing.cancel()
            log.warning("some connections did not close in time")

    async def _handle(self, ws: ServerConnection) -> None:
        remote = ws.remote_address or ("?", 0)
        local = str(remote[0]).startswith(("127.", "::1"))
        assert isinstance(ws, ServerOpening)
        assert ws.request is not None
        try:
            stream = ws.stream(
                max_bytes=self.max_frame_bytes, max_queue=self._max_queue, close_timeout_s=CLOSE_TIMEOUT_S
            )
        except EOFError:
            return
        tune(stream.transport, local=local)
        link = Link(stream, f"{remote[0]}:{remote[1]}")
        url, given = urlsplit(ws.request.path), _given(ws.request)
        if not self._lets_in(url.path, given):
            link.abort()  # its pass has ended during the handshake
            return
        links = self._passes.get(url.path, {}).get(given, set())
        task = asyncio.current_task()
        assert task is not None
        links.add(link)
        self._handling.add(task)
        try:
            await self.routes[url.path](link)
        except HudsimError as error:
            log.debug("%s: %s", link.peer, error)
        finally:
            links.discard(link)
            await link.close()
            self._handling.discard(task)

    def _process_request(self, ws: ServerConnection, request: Request) -> Response | None:
        try:
            url = urlsplit(request.path)
        except ValueError:
            return _problem(HTTPStatus.BAD_REQUEST, f"got the path {request.path[:80]!r}, expected /name")
        if refusal := self._refuse(request, url.path):
            return refusal
        if url.path in self.pages:
            kind, body = self.pages[url.path]()
            return _response(HTTPStatus.OK, body, kind)
        if url.path not in self.routes:
            there = ", ".join(sorted([*self.routes, *self.pages]))
            return _problem(HTTPStatus.NOT_FOUND, f"nothing is served at {url.path[:80]}. There are: {there}")
        if "websocket" not in _header(request, "Upgrade").lower():
            return _problem(HTTPStatus.UPGRADE_REQUIRED, f"{url.path} is a WebSocket")
        return None

    def _refuse(self, request: Request, path: str) -> Response | None:
        origin = _header(request, "Origin")
        if origin and origin.partition("://")[2] != _header(request, "Host"):
            return _problem(HTTPStatus.FORBIDDEN, f"a page from {origin[:80]} may not connect here")
        if path == "/healthz" or self._lets_in(path, _given(request)):
            return None
        return _problem(HTTPStatus.UNAUTHORIZED, "bearer token missing or wrong")

    def _lets_in(self, path: str, given: str) -> bool:
        if not self.bearer:
            return True
        tokens = [self.bearer, *self._passes.get(path, ())]
        return sum(hmac.compare_digest(given.encode(), token.encode()) for token in tokens) > 0  # always all of them


def _given(request: Request) -> str:
    """The token that came in the header, or in the URL."""
    scheme, _, given = _header(request, "Authorization").partition(" ")
    given = given.strip() if scheme.lower() == "bearer" else ""
    return given or parse_qs(urlsplit(request.path).query).get("bearer", [""])[0]


def _header(request: Request, name: str) -> str:
    """A header's value; one that is sent twice is none that can be relied on, but no error of ours either."""
    return ", ".join(request.headers.get_all(name))


def _problem(status: HTTPStatus, message: str) -> Response:
    return _response(status, json.dumps({"error": message}), "application/json")


def _response(status: HTTPStatus, body: str, kind: str) -> Response:
    data = body.encode()
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close"})
    return Response(status.value, status.phrase, headers, data)
