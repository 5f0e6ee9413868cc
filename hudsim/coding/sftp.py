"""``open_files``: an SFTP client's way to the file server inside a sandbox."""

from __future__ import annotations

import socket

from hudsim.coding.sandbox import Sandbox

__all__ = ["open_files"]

_SWAPPED = ("OpenSSH", "paramiko")
"""Clients that send SYMLINK's two paths in the other order than the standard says."""


async def open_files(sandbox: Sandbox, client_version: str) -> socket.socket:
    """A socket on which SFTP (version 3) is spoken with a process inside ``sandbox``, which ends with it.

    Every operation is the shell's own: its user, its view of the files, its limits. The host looks at no byte of it.
    ``client_version`` is what the client said it is. Raises :class:`~hudsim.errors.SandboxError`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with theirs:
            await sandbox.files(theirs)
        ours.sendall(b"o" if any(name in client_version for name in _SWAPPED) else b"s")
    except BaseException:
        ours.close()
        raise
    return ours
