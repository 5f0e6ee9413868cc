"""Tries, from inside a sandbox, what must not be possible there; prints ``[[what, holds, how], …]`` as JSON.

``python -I -S probe.py ORDER``, with nothing but the standard library. ORDER is JSON: what each of ``TRIES`` wants to
know of the host, by its name.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any

Row = tuple[str, bool | None, str]

_TRY_S = 0.5


def _network(targets: dict[str, Any]) -> Row:
    """``tries``: [name, family, kind, address] each; ``alone``: there is to be no interface but loopback."""
    faces = [name for _, name in socket.if_nameindex() if name != "lo"]
    reached = [
        name
        for name, family, kind, address in targets["tries"]
        if any(_reaches(family, kind, address, face) for face in ("", *faces))
    ]
    if targets["alone"]:
        reached += [f"interface {face}" for face in faces]
    return "network", not reached, f"reached: {', '.join(reached)}" if reached else "own namespace"


def _reaches(family: int, kind: int, address: Any, face: str) -> bool:
    """Whether it can be sent to. ``face``: only by that interface, which passes by what others would have kept in."""
    with contextlib.suppress(OSError), socket.socket(family, kind) as sock:
        sock.settimeout(_TRY_S)
        if face and family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, face.encode())
        sock.connect(tuple(address) if isinstance(address, list) else address)
        if kind == socket.SOCK_DGRAM:
            sock.send(b"?")
        return True
    return False


def _files(hidden: list[str]) -> Row:
    seen = [path for path in hidden if _has_entries(path)]
    written = []
    for folder in ("/", "/usr", "/etc", "/dev", "/run/hudsim", "/proc/sys/kernel", sys.base_prefix):
        path = f"{folder}/hudsim-probe"
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            written.append(folder)
    problems = [f"seen: {path}" for path in seen] + [f"written: {path}" for path in written]
    return "files", not problems, "; ".join(problems) or "own mount namespace, read-only system"


def _has_entries(path: str) -> bool:
    """A folder on the way to the interpreter is there, with that way alone in it."""
    if not os.path.isdir(path):
        return os.path.exists(path)
    with contextlib.suppress(OSError):
        on_the_way = {sys.base_prefix, "/workspace", "/tmp"}  # noqa: S108
        entries = [os.path.join(path, name) for name in os.listdir(path)]
        return any(
            not any(f"{way}/".startswith(f"{entry}/") or entry.startswith(f"{way}/") for way in on_the_way)
            for entry in entries
        )
    return False


def _processes(_: None) -> Row:
    count = sum(name.isdecimal() for name in os.listdir("/proc"))
    return "processes hidden", count < 10, f"own pid namespace, {count} processes seen"


def _rights(_: None) -> Row:
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    sets = {key: int(lines[key], 16) for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")}
    held = [f"{key} {value:x}" for key, value in sets.items() if value]
    if lines.get("NoNewPrivs") != "1":
        held.append("NoNewPrivs 0")
    if os.geteuid() == 0:
        held.append("uid 0")
    return "capabilities", not held, ", ".join(held) or "none, and none to be had"


def _keys(_: None) -> Row:
    sys.path.insert(0, os.path.dirname(__file__))
    from refused import calls  # type: ignore[import-not-found]

    if not calls():
        return "keyrings", None, f"not closed: system calls of {os.uname().machine} are not known"
    libc = ctypes.CDLL(None, use_errno=True)
    answered = []
    for name, number in calls().items():
        ctypes.set_errno(0)
        libc.syscall(number, 0, 0, 0, 0, 0)
        if ctypes.get_errno() != errno.ENOSYS:
            answered.append(name)
    return "keyrings", not answered, f"answered: {', '.join(answered)}" if answered else "system calls refused"


def _launcher(_: None) -> Row:
    opened = []
    for name in ("environ", "mem", "fd"):
        with contextlib.suppress(OSError):
            os.listdir("/proc/1/fd") if name == "fd" else os.close(os.open(f"/proc/1/{name}", os.O_RDONLY))
            opened.append(name)
    return "launcher", not opened, f"opened: {', '.join(opened)}" if opened else "not dumpable"


def _open_files(most: int) -> Row:
    fds: list[int] = []
    try:
        while len(fds) <= most:
            fds.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for fd in fds:
        os.close(fd)
    return "limit open files", len(fds) < most, "rlimit"


def _file_size(_: None) -> Row:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return "limit file size", limit != resource.RLIM_INFINITY, "rlimit"


def _tmp(most: int) -> Row:
    """Each of the folders that are memory ends."""
    endless = []
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108
        about = os.statvfs(folder)
        if about.f_blocks * about.f_frsize > most:
            endless.append(folder)
    return "limit tmp", not endless, f"without a size: {', '.join(endless)}" if endless else "sized tmpfs"


def _forks(most: int) -> Row:
    pids: list[int] = []
    reader, writer = os.pipe()
    try:
        while len(pids) <= most:
            pid = os.fork()
            if pid == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            pids.append(pid)
    except OSError:
        pass
    os.close(writer)
    os.close(reader)
    for pid in pids:
        os.waitpid(pid, 0)
    return "limit processes", len(pids) <= most, f"{len(pids)} were started of {most}"


TRIES: dict[str, Callable[[Any], Row]] = {
    "files": _files,
    "network": _network,
    "processes": _processes,
    "rights": _rights,
    "keys": _keys,
    "launcher": _launcher,
    "open_files": _open_files,
    "file_size": _file_size,
    "tmp": _tmp,
    "forks": _forks,
}

if __name__ == "__main__":
    print(json.dumps([TRIES[name](known) for name, known in json.loads(sys.argv[1]).items()]))  # noqa: T201
