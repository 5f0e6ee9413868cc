"""``dial``: a TCP connection to a daemon that is not hudsim's, and words for why there is none."""

from __future__ import annotations

import asyncio
import os
import socket

from hudsim.errors import ConnectError
from hudsim.net.address import Address

__all__ = ["dial", "words"]


async def dial(host: str, port: int, *, timeout_s: float) -> socket.socket:
    """A connected, non-blocking socket. Raises :class:`~hudsim.errors.ConnectError`, which names host:port."""
    where = Address(host, port).netloc
    loop = asyncio.get_running_loop()
    failure: OSError | UnicodeError | None = None
    try:
        async with asyncio.timeout(timeout_s):
            for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                sock = socket.socket(family, kind, protocol)
                try:
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    await loop.sock_connect(sock, address)
                except OSError as error:
                    sock.close()
                    failure = error
                except BaseException:
                    sock.close()
                    raise
                else:
                    return sock
    except TimeoutError:
        raise ConnectError(f"{where} did not answer within {timeout_s:g} s; is it running?") from None
    except (OSError, UnicodeError) as error:
        failure = error
    assert failure is not None
    raise ConnectError(f"{where}: {words(failure)}; is it running?")


def words(error: OSError | UnicodeError) -> str:
    """What the system says of a host or port, in lower case."""
    if isinstance(error, socket.gaierror | UnicodeError):
        return "no such host"
    return os.strerror(error.errno).lower() if error.errno else str(error)
