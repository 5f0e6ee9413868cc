"""``Card``: what isolates a workspace here, probed rather than assumed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hudsim.coding.box import Box
from hudsim.coding.bubblewrap import INSIDE
from hudsim.coding.cgroups import Controllers
from hudsim.coding.limits import Limits
from hudsim.coding.pasta import Network, Pasta, own_addresses
from hudsim.errors import SandboxError

__all__ = ["Card", "Row", "probe"]

MIB = 1 << 20
_PROBE_S = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that should hold.

    holds
        None: it is not tried, or not promised.
    how
        By which mechanism, or what was found.
    """

    what: str
    holds: bool | None
    how: str


@dataclass(frozen=True, slots=True)
class Card:
    """``isolation``: ``bubblewrap`` or ``none``."""

    isolation: str
    rows: tuple[Row, ...]

    @property
    def broken(self) -> list[Row]:
        """What was tried and does not hold."""
        return [row for row in self.rows if row.holds is False]

    def params(self) -> dict[str, Any]:
        """As plain JSON, for a capability."""
        return {"isolation": self.isolation, "rows": [asdict(row) for row in self.rows]}

    def with_network(self, row: Row) -> Card:
        """The same, but for the network."""
        return replace(self, rows=tuple(row if old.what == "network" else old for old in self.rows))


UNISOLATED = Card(
    "none",
    tuple(
        Row(what, False, "isolation='none': commands run as this process's user, beside it")
        for what in (
            "files",
            "network",
            "processes hidden",
            "capabilities",
            "keyrings",
            "limit memory",
            "limit processes",
        )
    )
    + (Row("limit workspace", True, "watchdog"),),
)

_lock: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
_known: dict[Network, Card] = {}


async def probe(*, isolation: str = "bubblewrap", network: Network = False) -> Card:
    """What holds on this machine, for this user. Tried once a process, in a small sandbox (about 0.3 s).

    Raises :class:`~hudsim.errors.SandboxError` if there can be no sandbox, or something leaks.
    """
    if isolation == "none":
        return UNISOLATED
    loop = asyncio.get_running_loop()
    async with _lock.setdefault(loop, asyncio.Lock()):
        if False not in _known:
            _known[False] = await _probed()
        if network not in _known:
            _known[network] = _known[False].with_network(await _probed_network(network))
    _lock.pop(loop, None)
    card = _known[network]
    if card.broken:
        listed = "; ".join(f"{row.what}: {row.how}" for row in card.broken)
        raise SandboxError(f"this machine does not isolate: {listed}")
    return card


# Small enough to be run into within a moment.
_LIMITS = Limits(
    memory_bytes=96 * MIB,
    processes=24,
    open_files=64,
    file_bytes=1 * MIB,
    tmp_bytes=1 * MIB,
    cpu_s=5,
    wall_s=20,
)


async def _probed() -> Card:
    with _listening() as tries:
        async with Box(limits=_LIMITS, guest_path="/workspace", kind="probe") as box:
            order = {
                "files": [str(Path.home()), str(Path.cwd()), str(box.folder), "/etc/shadow", "/var/run", "/home"],
                "network": {"tries": [*tries, *_OUT], "alone": True},
                "processes": None,
                "rights": None,
                "keys": None,
                "launcher": None,
                "open_files": _LIMITS.open_files,
                "file_size": None,
                "tmp": _LIMITS.tmp_bytes,
                "forks": _LIMITS.processes,
            }
            rows = await _tried(box, order)
            eater = await box.run(["python3", "-I", "-S", "-c", _EATER], timeout_s=_PROBE_S)
            evidence = box.evidence()
            is_seen = _sees((await box.sandbox()).pid)
    grouped = f"cgroup v{Controllers.found().version}" if Controllers.found().version else "rlimit and watchdog"
    uncounted = "" if Controllers.found().version else ", but for the kernel's own (sockets, pipes)"
    memory = Row("limit memory", eater.code != 0, f"{grouped}{uncounted}" if eater.code else "256 MiB were had of 96")
    rows = [Row(r.what, r.holds, grouped if r.what == "limit processes" and r.holds else r.how) for r in rows]
    attributed = "; ".join(sorted({e.partition(":")[0] for e in evidence})) or "none: not attributable"
    rows += [
        memory,
        Row("limit workspace", True, "watchdog" if is_seen else "watchdog, which may not see deleted files"),
        Row("limit terminals", is_seen or None, "watchdog" if is_seen else "they may not be counted"),
        Row("limit cpu", True, "rlimit, of each process"),
        Row("evidence", None, attributed),
    ]
    return Card("bubblewrap", tuple(rows))


async def _probed_network(network: Network) -> Row:
    """One that is not none: whether this host's own services are reached."""
    if network == "host":
        return Row("network", None, "the host's: asked for")
    with _listening(own_addresses()) as tries:
        async with Box(limits=_LIMITS, guest_path="/workspace", network=network, kind="probe") as box:
            (row,) = await _tried(box, {"network": {"tries": tries, "alone": False}})
    how = f"{row.how}, {Pasta.needed().version}; tried: {', '.join(name for name, *_ in tries)}"
    return Row(row.what, row.holds, how if row.holds else row.how)


async def _tried(box: Box, order: Mapping[str, object]) -> list[Row]:
    done = await box.run(["python3", "-I", "-S", f"{INSIDE}/probe.py", json.dumps(order)], timeout_s=_PROBE_S)
    try:
        return [Row(what, holds, how) for what, holds, how in json.loads(done.stdout)]
    except ValueError:
        said = done.stderr.decode(errors="replace")[-500:]
        raise SandboxError(f"the probe of the sandbox failed: {said or done}") from None


def _sees(first: int | None) -> bool:
    """Whether this user may look at what is open in a sandbox: for root, a right of its own; else, since Linux 5.14."""
    try:
        return any(Path(f"/proc/{first}/fdinfo").iterdir())
    except OSError:
        return False


_EATER = "b = []\nfor _ in range(256): b.append(bytearray(b'x') * (1 << 20))"


Try = tuple[str, int, int, Any]
"""A name; a socket's family and kind; an address."""

_OUT: list[Try] = [
    ("TCP out", socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 9)),
    ("UDP out", socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
    ("IPv6 out", socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 9)),
]


@contextlib.contextmanager
def _listening(addresses: Sequence[str] = ("127.0.0.1", "::1")) -> Iterator[list[Try]]:
    """What no sandbox must reach: sockets of ours, at these addresses."""
    with contextlib.ExitStack() as stack:
        tries: list[Try] = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with contextlib.suppress(OSError):  # no such family here, or a link's own address
                server = stack.enter_context(socket.create_server((address, 0), family=family))
                tries.append((address, family, socket.SOCK_STREAM, (address, server.getsockname()[1])))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        name = f"\0hudsim-probe-{os.getpid()}-{id(abstract)}"
        abstract.bind(name)
        abstract.listen()
        yield [*tries, ("abstract socket", socket.AF_UNIX, socket.SOCK_STREAM, name)]
