"""``etc_files``: the few files of ``/etc`` that a sandbox has of its own, in which it is known who it is."""

from __future__ import annotations

from pathlib import Path

__all__ = ["SHELL", "etc_files"]

SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"


def etc_files(uid: int, user: str, home: str, *, nameserver: str | None = None) -> dict[str, bytes]:
    """By path. ``uid`` is the number of ``user``, as the sandbox sees it."""
    root = uid != 0
    passwd = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" * root + f"{user}:x:{uid}:{uid}:{user}:{home}:{SHELL}\n"
    files = {
        "/etc/passwd": passwd,
        "/etc/group": "root:x:0:\n" * root + f"{user}:x:{uid}:\n",
        "/etc/hosts": "127.0.0.1 localhost workspace\n::1 localhost\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    if nameserver is not None:
        files["/etc/resolv.conf"] = f"nameserver {nameserver}\n"
    return {path: text.encode() for path, text in files.items()}
