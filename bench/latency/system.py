"""``System``: one of those that take turns, and what was measured of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hudsim.bench.latency.payload import PAYLOADS
from hudsim.bench.shared.asked import Asked
from hudsim.bench.shared.progress import progress
from hudsim.bench.shared.series import quantiles
from hudsim.errors import UsageError

__all__ = ["FLOOR", "OWN", "PEERS", "Row", "System", "measure"]

_SYSTEMS = Path(__file__).parent / "systems"
_TRIPS, _BUDGET_S = 50, 0.1  # of a turn

FLOOR = "websockets"
"""The system whose median the others' ratio is to."""

OWN = {
    "tcp": "tcp_floor.py",
    FLOOR: "websockets_floor.py",
    "hudsim, socket": "hudsim_socket.py",
    "hudsim, shm": "hudsim_shm.py",
}
"""Name → file of those that run under this interpreter."""

PEERS = {"openpi-client": "openpi_peer.py", "hud": "hud_peer.py"}
"""Name → file of those that need an interpreter of their own."""

_INSTALLED = {"openpi-client": "openpi-client typing_extensions", "hud": "'hud[robot]'"}


@dataclass(frozen=True)
class System:
    """``python``: the interpreter that it runs under."""

    name: str
    file: str
    python: str

    def start(self) -> Asked:
        """Its process, which opens it when it is asked."""
        return Asked(self.name, [self.python, str(_SYSTEMS / "play.py"), str(_SYSTEMS / self.file)])

    def check(self, said: dict[str, Any]) -> None:
        """Raise :class:`~hudsim.errors.UsageError` if its process ``said`` that a module is missing."""
        if (missing := said.get("missing")) is None:
            return
        wanted = _INSTALLED.get(self.name, "'hudsim[bench]'")
        raise UsageError(
            f"{self.name}: {self.python} has no module {missing}; to install it: {self.python} -m pip install {wanted}"
        )


@dataclass
class Row:
    """One system on one payload. ``turns_ns``: the round trips of each turn; the sums are of all turns.

    client_ns, server_ns
        CPU time of the agent's process and of those that it started.
    socket_bytes
        Through TCP, both ways. What crosses the socket is copied into the kernel and out of it.
    memory_bytes
        Through shared memory: written once, read in place.
    """

    system: str
    payload: str
    versions: dict[str, str]
    turns_ns: list[list[int]] = field(default_factory=list)
    client_ns: int = 0
    server_ns: int = 0
    socket_bytes: int = 0

    def add(self, turn: dict[str, Any]) -> None:
        """What :mod:`~hudsim.bench.latency.systems.play` answered."""
        self.turns_ns.append(turn["ns"])
        self.client_ns += turn["client_ns"]
        self.server_ns += turn["server_ns"]
        self.socket_bytes += turn["socket_bytes"]

    @property
    def judged(self) -> bool:
        """Whether it is hudsim's own, neither floor nor peer."""
        return self.system.startswith("hudsim")

    @property
    def memory_bytes(self) -> int:
        """A tick's. That they came this way, the system has made sure of."""
        return PAYLOADS[self.payload].image_bytes if self.system.endswith("shm") else 0

    def to_json(self) -> dict[str, Any]:
        trips = [ns / 1e3 for turn in self.turns_ns for ns in turn]
        return {
            "system": self.system,
            "payload": self.payload,
            "versions": self.versions,
            "trips": len(trips),
            "us": quantiles(trips),
            "client_cpu_us": round(self.client_ns / 1e3 / len(trips), 1),
            "server_cpu_us": round(self.server_ns / 1e3 / len(trips), 1),
            "socket_bytes": round(self.socket_bytes / len(trips)),
            "memory_bytes": self.memory_bytes,
        }


def measure(payload: str, systems: Sequence[System], turns: int, content: str) -> list[Row]:
    """Each system's turns, in an order that is drawn anew for each round.

    Raises :class:`~hudsim.errors.UsageError` for a peer that its interpreter does not have.
    """
    progress(f"{payload}: {turns} turns of each of {len(systems)} systems")
    rng = random.Random(0)  # noqa: S311 - nobody is to guess it
    with TemporaryDirectory(prefix="hudsim-bench-") as folder, ExitStack() as stack:
        opening = PAYLOADS[payload].write(Path(folder) / "arrays.npz", content)
        playing = []
        for system in systems:
            asked = stack.enter_context(system.start())
            system.check(said := asked.ask({"payload": opening}))
            playing.append((asked, Row(system.name, payload, {"python": said["python"], **said["versions"]})))
        for _ in range(turns):
            for asked, row in rng.sample(playing, len(playing)):
                row.add(asked.ask({"trips": _TRIPS, "budget_s": _BUDGET_S}))
    return [row for _, row in playing]
