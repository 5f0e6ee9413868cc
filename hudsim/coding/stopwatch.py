"""``Stopwatch``: how long sandboxes have had for their work, on a machine that they share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hudsim.coding.cgroups import ran_ns
from hudsim.coding.processes import Processes, spent_ns

__all__ = ["Stopwatch", "Times", "Watched", "times_of"]


@dataclass(frozen=True, slots=True)
class Times:
    """
    ran_ns
        How long all ran, the dead included [ns].
    stood_ns
        By thread that lives: how long it could have run but for want of a processor [ns].
    """

    ran_ns: int
    stood_ns: Mapping[str, int]


class Watched(Protocol):
    """As :class:`~hudsim.coding.sandbox.Sandbox`: its first process as the host counts (None: not up); its groups."""

    @property
    def pid(self) -> int | None: ...
    @property
    def cgroups(self) -> Sequence[Path]: ...


class Stopwatch:
    """Time in which processes ran, or slept; not that in which they stood in line for a processor.

    So what takes its time alone does so beside a hundred others, and what hangs is known as soon, asleep or busy. Who
    starts hundreds of processes, which stand in line behind each other, gains nothing: some of them run meanwhile, and
    what ran counts also when it has ended.

    read
        Their times now: see :func:`times_of`.
    clock
        In seconds, as :func:`time.monotonic`.
    """

    def __init__(self, read: Callable[[], Times], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._times: Times | None = None
        with contextlib.suppress(OSError):  # for want of a descriptor; until there is one, the clock's time is theirs
            self._times = read()
        self._began_s = self._at_s = clock()
        self._had_s = self._ran_s = 0.0

    @property
    def wall_s(self) -> float:
        """Since it was made."""
        return self._clock() - self._began_s

    @property
    def ran_s(self) -> float:
        """How long they have run until the last look, on all processors together."""
        return self._ran_s

    def look(self) -> float:
        """How long they have had [s]. To be asked a few times a second: who ended meanwhile is not known to have stood.

        What ``read`` raises is raised, and nothing is lost: the next look is at the time since the last one.
        """
        times, now_s = self._read(), self._clock()
        passed_s, self._at_s = now_s - self._at_s, now_s
        before, self._times = self._times or times, times
        stood_s = sum(max(0, stood - before.stood_ns.get(name, 0)) for name, stood in times.stood_ns.items()) / 1e9
        ran_s = max(0, times.ran_ns - before.ran_ns) / 1e9
        self._ran_s += ran_s
        self._had_s += max(passed_s - stood_s, min(passed_s, ran_s))
        return self._had_s


def times_of(sandboxes: Iterable[Watched]) -> Times:
    """Of sandboxes, those that are not up left out; none that stood if the kernel does not say.

    What ran is as their groups count it, or else, without who died unawaited, as their processes do.
    """
    ran, stood = 0, dict[str, int]()
    for sandbox in sandboxes:
        first = sandbox.pid
        if first is not None:
            pids = [first, *Processes.below(first)[0]]
            counted = ran_ns(sandbox.cgroups)
            ran += spent_ns(pids) if counted is None else counted
            for pid in pids:
                with contextlib.suppress(*_GONE):
                    for task in Path(f"/proc/{pid}/task").iterdir():
                        stood[task.name] = int((task / "schedstat").read_text().split()[1])
    return Times(ran, stood)


_GONE = (FileNotFoundError, ProcessLookupError, PermissionError, IndexError, ValueError)
"""And not that this process has no descriptor left, which is no news of them."""
