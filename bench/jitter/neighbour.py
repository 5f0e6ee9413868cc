"""A process beside the world, until its stdin ends: ``neighbour.py core`` or ``neighbour.py health PORT``."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from typing import NoReturn

from hudsim.bench.jitter.compute import compute

__all__: list[str] = []


def _hammer(port: int) -> NoReturn:
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(request)
            while sock.recv(4096):
                pass


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    if sys.argv[1] == "core":
        compute()
    _hammer(int(sys.argv[2]))
