"""The way into a sandbox from root: ``main()`` of ``python -I -S -c``, with nothing but the standard library.

In a mount namespace of its own it puts what the sandbox is made of where an unprivileged user may read it (a home of
mode 0700 would hide it), joins the control groups, becomes that user for good, and turns into bubblewrap. Nothing of
it is seen elsewhere, and nothing has to be cleaned up.

Its arguments: user id; stage; the number of control groups, and them; the number of binds, and of each its source and
its name under the stage; then the command.
"""

from __future__ import annotations

import ctypes
import os
import sys

_CLONE_NEWNS = 0x00020000
_MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 4, 0x1000, 0x4000, 1 << 18
MS_NOSUID = 2
libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Of a call of the C library's. Raises :class:`OSError`."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def mount(source: str | None, target: str, flags: int, kind: str | None = None, data: str | None = None) -> None:
    """The system call of that name. Raises :class:`OSError`."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), target)


def hide_mounts() -> None:
    """What this process mounts from now on is seen by it and its children alone, and goes with them."""
    checked(libc.unshare(_CLONE_NEWNS), "unshare")
    mount(None, "/", _MS_REC | _MS_PRIVATE)


def become(uid: int) -> None:
    """That user, with a group of the same number, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _bind(source: int, target: str) -> None:
    """``source`` is a descriptor: what it names is what was looked at, whoever swaps the path."""
    # os.path, not pathlib, whose import takes 5 ms.
    is_folder = os.path.isdir(f"/proc/self/fd/{source}")
    os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
    if not is_folder:
        os.close(os.open(target, os.O_CREAT, 0o644))
    mount(f"/proc/self/fd/{source}", target, _MS_BIND | _MS_REC)
    os.close(source)


def main() -> None:
    """Replaces this process."""
    words = iter(sys.argv[1:])
    uid, stage = int(next(words)), next(words)
    groups = [next(words) for _ in range(int(next(words)))]
    binds = [(next(words), next(words)) for _ in range(int(next(words)))]
    command = list(words)
    for group in groups:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")
    hide_mounts()
    sources = [(os.open(source, os.O_PATH), name) for source, name in binds]  # before the stage hides any
    mount("tmpfs", stage, MS_NOSUID | _MS_NODEV, "tmpfs", "mode=0755,size=1m")
    for source, name in sources:
        _bind(source, f"{stage}/{name}")
    become(uid)
    os.execv(command[0], command)
