"""``connect``: dial a hudsim server within a budget, with a typed error for each way in which it can fail."""

from __future__ import annotations

import asyncio
import json
import ssl
from http import HTTPStatus
from typing import Any

from websockets.asyncio.client import connect as ws_connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus

from hudsim.errors import BearerError, ConnectError, HudsimError, NoSuchCapability, OriginError
from hudsim.net.address import Address
from hudsim.net.link import CLOSE_TIMEOUT_S, Link, tune
from hudsim.net.opening import ClientOpening

__all__ = ["DIAL_TIMEOUT_S", "connect"]

DIAL_TIMEOUT_S = 10.0
_LOOPBACK = ("127.", "::1", "localhost")


async def connect(
    address: Address | str,
    *,
    timeout_s: float = DIAL_TIMEOUT_S,
    max_frame_bytes: int = 64 << 20,
    max_queue: int | None = None,
    tls: ssl.SSLContext | None = None,
) -> Link:
    """A connection to ``address``. No compression, no keepalive pings: silence is only slow.

    ``max_queue``: so many frames may wait to be received before no more is read from the socket, and the peer feels
    it. None: any number, so that a newer one is always at hand.

    Raises :class:`~hudsim.errors.ConnectError` (refused, or nothing said within ``timeout_s``),
    :class:`~hudsim.errors.BearerError`, :class:`~hudsim.errors.OriginError`,
    :class:`~hudsim.errors.NoSuchCapability`; each names host:port.
    """
    where = Address.parse(address) if isinstance(address, str) else address
    headers = {"Authorization": f"Bearer {where.bearer}"} if where.bearer else {}
    options: dict[str, Any] = {"ssl": tls} if tls and where.tls else {}
    try:
        async with asyncio.timeout(timeout_s):
            ws = await ws_connect(
                str(where),
                additional_headers=headers,
                compression=None,
                ping_interval=None,
                open_timeout=None,
                close_timeout=CLOSE_TIMEOUT_S,
                proxy=None,
                create_connection=ClientOpening,
                **options,
            )
            assert isinstance(ws, ClientOpening)
            stream = ws.stream(max_bytes=max_frame_bytes, max_queue=max_queue, close_timeout_s=CLOSE_TIMEOUT_S)
    except TimeoutError:
        raise ConnectError(f"{where.netloc} did not answer within {timeout_s:g} s; is it a hudsim server?") from None
    except InvalidStatus as refused:
        raise _refusal(where, refused.response.status_code, bytes(refused.response.body or b"")) from None
    except (InvalidHandshake, InvalidMessage, EOFError) as bad:
        if isinstance(bad, EOFError) or isinstance(bad.__cause__, EOFError):
            raise ConnectError(f"{where.netloc} hung up before it had answered; has it died?") from None
        raise ConnectError(f"{where.netloc} answered, but not as a WebSocket server does: {bad}") from None
    except UnicodeError:
        raise ConnectError(f"{where.netloc[:80]}: that is no host name") from None
    except OSError as error:
        raise ConnectError(f"{where.netloc}: {_reason(error)}; is the server running?") from None
    tune(stream.transport, local=where.host.startswith(_LOOPBACK))
    return Link(stream, where.netloc)


def _refusal(where: Address, status: int, body: bytes) -> HudsimError:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        document = {}
    said = str(document.get("error", "")) if isinstance(document, dict) else ""
    if status == HTTPStatus.UNAUTHORIZED:
        got = "a wrong bearer token" if where.bearer else "no bearer token"
        return BearerError(f"{where.netloc}: got {got}, expected the one in the URL that the server printed")
    if status == HTTPStatus.FORBIDDEN:
        return OriginError(f"{where.netloc}: {said or 'this origin is not allowed'}")
    if status == HTTPStatus.NOT_FOUND:
        return NoSuchCapability(f"{where.netloc}: {said or f'nothing is served at {where.path}'}")
    return ConnectError(f"{where.netloc}: got HTTP {status}, expected a WebSocket. {said}".rstrip())


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
