"""``Card``: what isolates a workspace here, probed rather than assumed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hudsim.coding.box import Box
from hudsim.coding.bubblewrap import INSIDE
from hudsim.coding.cgroups import Controllers
from hudsim.coding.limits import Limits
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

    def with_network(self, network: object) -> Card:
        """The same for a workspace that was given a network."""
        if not network or self.isolation == "none":
            return self
        shared = Row("network", None, "the host's: asked for")
        return Card(self.isolation, tuple(shared if row.what == "network" else row for row in self.rows))


UNISOLATED = Card(
    "none",
    tuple(
        Row(what, False, "isolation='none': commands run as this process's user, beside it")
        for what in ("files", "network", "processes hidden", "capabilities", "limit memory", "limit processes")
    )
    + (Row("limit workspace", True, "watchdog"),),
)

_lock: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
_known: Card | None = None


async def probe(*, isolation: str = "bubblewrap") -> Card:
    """What holds on this machine, for this user. Tried once a process, in a small sandbox (about 0.3 s).

    Raises :class:`~hudsim.errors.SandboxError` if there can be no sandbox, or something leaks.
    """
    global _known  # noqa: PLW0603 - found out once
    if isolation == "none":
        return UNISOLATED
    loop = asyncio.get_running_loop()
    async with _lock.setdefault(loop, asyncio.Lock()):
        if _known is None:
            _known = await _probed()
    _lock.pop(loop, None)
    if _known.broken:
        listed = "; ".join(f"{row.what}: {row.how}" for row in _known.broken)
        raise SandboxError(f"this machine does not isolate: {listed}")
    return _known


async def _probed() -> Card:
    # Small enough to be run into within a moment.
    limits = Limits(
        memory_bytes=96 * MIB,
        processes=24,
        open_files=64,
        file_bytes=1 * MIB,
        tmp_bytes=1 * MIB,
        cpu_s=5,
        wall_s=20,
    )
    with _listening() as targets:
        async with Box(limits=limits, guest_path="/workspace", kind="probe") as box:
            order = {
                "targets": targets,
                "hidden": [str(Path.home()), str(Path.cwd()), str(box.folder), "/etc/shadow", "/var/run", "/home"],
                "pid": os.getpid(),
                "limits": {
                    "open_files": limits.open_files,
                    "processes": limits.processes,
                    "tmp_bytes": limits.tmp_bytes,
                },
            }
            done = await box.run(["python3", "-I", "-S", f"{INSIDE}/probe.py", json.dumps(order)], timeout_s=_PROBE_S)
            try:
                found = json.loads(done.stdout)
            except ValueError:
                said = done.stderr.decode(errors="replace")[-500:]
                raise SandboxError(f"the probe of the sandbox failed: {said or done}") from None
            eater = await box.run(["python3", "-I", "-S", "-c", _EATER], timeout_s=_PROBE_S)
            evidence = box.evidence()
    grouped = f"cgroup v{Controllers.found().version}" if Controllers.found().version else "rlimit and watchdog"
    memory = Row("limit memory", eater.code != 0, grouped if eater.code else "256 MiB were had of 96")
    rows = [Row(what, holds, how) for what, holds, how in found]
    rows = [Row(r.what, r.holds, grouped if r.what == "limit processes" and r.holds else r.how) for r in rows]
    attributed = Row(
        "evidence", None, "; ".join(sorted({e.partition(":")[0] for e in evidence})) or "none: not attributable"
    )
    rows += [
        memory,
        Row("limit workspace", True, "watchdog"),
        Row("limit cpu", True, "rlimit, of each process"),
        attributed,
    ]
    return Card("bubblewrap", tuple(rows))


_EATER = "b = []\nfor _ in range(256): b.append(bytearray(b'x') * (1 << 20))"


@contextlib.contextmanager
def _listening() -> Iterator[dict[str, Any]]:
    """What a sandbox without a network must not reach: sockets of ours."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        targets: dict[str, Any] = {"tcp": tcp.getsockname()[1]}
        with contextlib.suppress(OSError):
            tcp6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
            targets["tcp6"] = tcp6.getsockname()[1]
        if sys.platform == "linux":
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            name = f"hudsim-probe-{os.getpid()}-{tcp.getsockname()[1]}"
            abstract.bind(f"\0{name}")
            abstract.listen()
            targets["abstract"] = name
        yield targets
