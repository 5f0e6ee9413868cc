"""Tries, from inside a sandbox, what must not be possible there; prints ``[[what, holds, how], …]`` as JSON.

``python -I -S probe.py ORDER``, with nothing but the standard library. ORDER is JSON: ``targets`` (sockets of the
host's), ``hidden`` (its paths), ``pid`` (of a process there), ``limits``.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[str, bool, str]


def _network(targets: dict[str, Any]) -> Row:
    reached = []
    tries: list[tuple[str, int, int, Any]] = [
        ("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", targets["tcp"])),
        ("TCP out", socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 9)),
        ("UDP out", socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
        ("IPv6 out", socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 9)),
    ]
    if "tcp6" in targets:
        tries.append(("TCP over IPv6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", targets["tcp6"])))
    if "abstract" in targets:
        tries.append(("abstract socket", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{targets['abstract']}"))
    for name, family, kind, address in tries:
        with contextlib.suppress(OSError), socket.socket(family, kind) as sock:
            sock.settimeout(1.0)
            sock.connect(address)
            if kind == socket.SOCK_DGRAM:
                sock.send(b"?")
            reached.append(name)
    faces = sorted(name for _, name in socket.if_nameindex())
    return "network", not reached and faces == ["lo"], f"reached: {', '.join(reached)}" if reached else "own namespace"


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


def _processes(pid: int) -> Row:
    count = sum(name.isdecimal() for name in os.listdir("/proc"))
    return "processes hidden", count < 10, f"own pid namespace, {count} processes seen"


def _rights() -> Row:
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    sets = {key: int(lines[key], 16) for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")}
    held = [f"{key} {value:x}" for key, value in sets.items() if value]
    if lines.get("NoNewPrivs") != "1":
        held.append("NoNewPrivs 0")
    if os.geteuid() == 0:
        held.append("uid 0")
    return "capabilities", not held, ", ".join(held) or "none, and none to be had"


def _launcher() -> Row:
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


def _file_size() -> Row:
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


def _rows(order: dict[str, Any]) -> Iterator[Row]:
    yield _files(order["hidden"])
    yield _network(order["targets"])
    yield _processes(order["pid"])
    yield _rights()
    yield _launcher()
    yield _open_files(order["limits"]["open_files"])
    yield _file_size()
    yield _tmp(order["limits"]["tmp_bytes"])
    yield _forks(order["limits"]["processes"])


if __name__ == "__main__":
    print(json.dumps(list(_rows(json.loads(sys.argv[1])))))  # noqa: T201
