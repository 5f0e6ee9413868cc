"""``Pasta``: the program that connects a sandbox's own network to what this host reaches (Debian's ``passt``)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Literal, Self

from hudsim.coding.place import Place, inside_python
from hudsim.coding.spawner import Said, ended, spawn
from hudsim.errors import SandboxError, UsageError

__all__ = ["NAMESERVER", "Network", "Pasta", "cut", "own_addresses"]

Network = bool | Literal["host"]

NAMESERVER = "198.18.0.53"
"""Whom a sandbox asks for names. It is no host's (RFC 2544): pasta hands the question to this host's own nameserver."""

_CLOUDS = (
    "169.254.0.0/16",  # all of them, over IPv4, and
    "168.63.129.16",  # Azure
    "100.100.100.200",  # Alibaba
    "192.0.0.192",  # Oracle, of old
    "fd00:ec2::/32",  # Amazon
    "fd20:ce::254",  # Google
    "fd00:c1::a9fe:a9fe",  # Oracle
    "fd00:100::100:200",  # Alibaba
    "fd00:42::42",  # Scaleway
    "fd00:a9fe:a9fe::1",  # Akamai
    "fe80::a9fe:a9fe",  # OpenStack
)
"""Where clouds tell a machine its credentials."""
_LOOPBACK = ("127.0.0.0/9", "127.128.0.0/9", "::1")
"""In two halves, so that it stands beside the sandbox's own."""
_VERSION_S = 5.0
_UP_S = 20.0
_STOP_S = 5.0
_LOOK_S = 0.05
_INSIDE = "inside "


@dataclass(frozen=True, slots=True)
class Pasta:
    """``path``: the program. ``version``: what it says of itself."""

    path: str
    version: str

    @classmethod
    @functools.cache
    def found(cls) -> Self | None:
        """This host's. None: it has none. Raises :class:`~hudsim.errors.SandboxError` for one that does not answer.

        It is asked once, which may take seconds.
        """
        path = shutil.which("pasta")
        if path is None:
            return None
        asked = [path, "--version"]
        try:
            said = subprocess.run(
                asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_VERSION_S
            ).stdout
        except (subprocess.TimeoutExpired, OSError, ValueError) as error:
            raise SandboxError(f"network=True: pasta does not say which it is: {error}") from None
        return cls(path, said.partition("\n")[0].strip() or "pasta")

    @classmethod
    def needed(cls) -> Self:
        """As :meth:`found`. Raises :class:`~hudsim.errors.UsageError` without one, with what to do."""
        found = cls.found()
        if found is None:
            raise UsageError(
                "network=True, a network of its own, wants pasta, which is not installed (apt-get install passt); "
                "network='host' shares the host's, with all that listens there, and False has none"
            )
        return found

    async def connect(self, first: int, *, uid: int | None) -> subprocess.Popen[bytes]:
        """Give a sandbox a network: its interface, routes out, and a nameserver at ``NAMESERVER``.

        first
            Its first process, as this host counts.
        uid
            The user of its commands. None: this process's own.

        It lasts until it is :func:`cut`, or this process ends. Raises :class:`~hudsim.errors.SandboxError` with what
        was said if there is no way out.
        """
        with Said() as said:
            popen = await spawn(self._command(first, uid), [], said, cwd=None)
            try:
                async with asyncio.timeout(_UP_S):
                    await _up(popen, said)
            except TimeoutError:
                await cut(popen)
                raise SandboxError(f"network=True: nothing within {_UP_S:.0f} s but {said.read()!r}") from None
            except BaseException:
                await cut(popen)
                raise
            finally:
                await asyncio.to_thread(_reap, said.read())
        return popen

    def _command(self, first: int, uid: int | None) -> list[str]:
        place = Place.mine()
        kept = [*_LOOPBACK, *_CLOUDS, *own_addresses()]
        own = [str(first), str(-1 if uid is None else uid), str(os.getpid()), str(len(kept)), *kept]
        words = [f"{place.folder}/pasta", "--foreground", "--quiet", "--no-netns-quit", "--config-net"]
        # No service of this host is to be reached: pasta maps none, what is sent to an address of this host stays
        # inside, and a newer one, on another interface, is not reached from the interface of the default route.
        words += ["--no-map-gw", "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"]
        words += ["--dns-forward", NAMESERVER, *_ways_out()]
        return [*inside_python(place.inside, "connect", "main()"), *own, self.path, *words]


async def _up(popen: subprocess.Popen[bytes], said: Said) -> None:
    while "up" not in said.text.splitlines():
        if popen.poll() is not None:
            lines = [line for line in said.read().splitlines() if not line.startswith(_INSIDE)]
            raise SandboxError(f"network=True: {' '.join(lines).strip() or 'pasta has ended'}")
        await said.more(_LOOK_S)


def _reap(said: str) -> None:
    """Wait for the helper, an orphan, if it became this process's, which is then the first of a container."""
    for line in said.splitlines():
        if line.startswith(_INSIDE):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(line.removeprefix(_INSIDE)), 0)


async def cut(connection: subprocess.Popen[bytes]) -> None:
    """End a sandbox's network."""
    own = _children(connection.pid)
    await ended(connection, connection.pid, within_s=_STOP_S)
    for child in own:  # orphans now, as the helper
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG)  # noqa: ASYNC222 - it does not wait


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def own_addresses() -> list[str]:
    """All that this host has, of each family; in text."""
    found, last = set(), ""
    for line in Path("/proc/net/fib_trie").read_text().splitlines():
        if "|--" in line:
            last = line.split()[-1]
        elif line.endswith("/32 host LOCAL"):
            found.add(last)
    with contextlib.suppress(FileNotFoundError):
        found |= {str(IPv6Address(int(line[:32], 16))) for line in Path("/proc/net/if_inet6").read_text().splitlines()}
    return sorted(found)


def _ways_out() -> list[str]:
    """Options: by which of the host's interfaces. Raises :class:`~hudsim.errors.SandboxError` if it has no way out."""
    faces = {"4": _default_route(4), "6": _default_route(6)}
    there = {version: face for version, face in faces.items() if face is not None}
    if not there:
        raise SandboxError("network=True: this host has no default route, so there is nothing to be connected to")
    only = [] if len(there) == 2 else [f"--ipv{next(iter(there))}-only"]
    return [*only, *(word for version, face in there.items() for word in (f"--outbound-if{version}", face))]


def _default_route(version: Literal[4, 6]) -> str | None:
    """The interface of the best one; None: there is none."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in Path("/proc/net", "route" if version == 4 else "ipv6_route").read_text().splitlines():
            words = line.split()
            if version == 4 and words[1] == words[7] == "0" * 8:
                found.append((int(words[6]), words[0]))
            elif version == 6 and words[:2] == ["0" * 32, "00"] and words[-1] != "lo":
                found.append((int(words[5], 16), words[-1]))
    return min(found)[1] if found else None
