"""``open_files``: an SFTP client's way to the file server inside a sandbox."""

from __future__ import annotations

import socket

from hudsim.coding.process import Process
from hudsim.coding.sandbox import Before, Sandbox

__all__ = ["Packets", "open_files"]

_SWAPPED = ("OpenSSH", "paramiko")
"""Clients that send SYMLINK's two paths in the other order than the standard says."""
_HEAD = 4


async def open_files(
    sandbox: Sandbox, client_version: str, *, before: Before | None = None
) -> tuple[socket.socket, Process]:
    """A socket on which SFTP (version 3) is spoken with a process inside ``sandbox``, which ends with it.

    Every operation is the shell's own: its user, its view of the files, its limits. The host looks at no byte of it but
    the packets' lengths. ``client_version`` is what the client said it is; ``before`` as for :meth:`Sandbox.spawn`.
    Raises as that.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with theirs:
            server = await sandbox.files(theirs, before=before)
        ours.sendall(b"o" if any(name in client_version for name in _SWAPPED) else b"s")
    except BaseException:
        ours.close()
        raise
    return ours, server


class Packets:
    """Counts the packets of one direction: of requests and replies there are as many when none is left to answer.

    count
        Those that are whole.
    """

    def __init__(self) -> None:
        self.count = 0
        self._left = 0  # bytes of the one that has begun
        self._head = bytearray()

    def add(self, data: bytes) -> None:
        """What went by next."""
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = _HEAD - len(self._head)
                self._head += data[at : at + step]
                if len(self._head) < _HEAD:
                    return
                self._left = int.from_bytes(self._head, "big")
                self._head.clear()
            at += step
            if not self._left:
                self.count += 1
