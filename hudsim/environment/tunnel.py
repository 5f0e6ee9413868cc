"""``tunnel``: the server's end of ``/tunnel/<capability>``: a link carries one TCP connection to a daemon."""

from __future__ import annotations

import logging

from hudsim.errors import ConnectError
from hudsim.net import UNREACHABLE, Link, dial, splice

__all__ = ["tunnel"]

log = logging.getLogger(__name__)


async def tunnel(link: Link, host: str, port: int, *, connect_timeout_s: float = 10.0) -> None:
    """Connect to ``host:port`` and carry its bytes until both ends have finished; see :func:`hudsim.net.splice`.

    A daemon that cannot be reached closes the link with 4502 and a reason that names it: the link's other end
    raises :class:`~hudsim.errors.ConnectError`. Raises that too, or what ended the link.
    """
    try:
        sock = await link.while_open(dial(host, port, timeout_s=connect_timeout_s))
    except ConnectError as error:
        await link.close(UNREACHABLE, error.message)
        raise
    try:
        await splice(link, sock)
    except OSError as error:
        log.debug("the daemon at %s:%d: %s", host, port, error)
