"""``Limits``: what one sandbox may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hudsim.errors import UsageError

__all__ = ["Limits"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Each a whole number above 0; None: none of our own.

    wall_s, cpu_s
        Of one command: how long it may take, and how long compute [s].
    memory_bytes, processes, terminals
        Of all that runs in the sandbox together.
    open_files, file_bytes
        Of one process: descriptors, and the size of a file that it writes.
    workspace_bytes, workspace_files
        Of the workspace's files together: what they take on the disk, and how many files and folders there are.
    tmp_bytes
        Of ``/tmp``, ``/var/tmp`` and ``/dev/shm`` each.
    output_bytes
        Kept of what a command prints, of each of its two streams; what is over is counted and dropped.
    """

    wall_s: int | None = 600
    cpu_s: int | None = 600
    memory_bytes: int | None = 2048 * MIB
    processes: int | None = 256
    terminals: int | None = 64
    open_files: int | None = 1024
    file_bytes: int | None = 512 * MIB
    workspace_bytes: int | None = 1024 * MIB
    workspace_files: int | None = 200_000
    tmp_bytes: int = 256 * MIB
    output_bytes: int = 8 * MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is not None and (type(value) is not int or value < 1):
                raise UsageError(f"limit {field.name}: got {value!r}, expected a whole number from 1, or None")

    def rlimits(self, *, grouped: bool, isolated: bool = True) -> dict[str, int]:
        """What the launcher sets on each command: names of ``RLIMIT_*``.

        grouped
            Control groups see to memory and processes.
        isolated
            Its processes are counted apart from the user's others: in a user namespace of their own.
        """
        limits = {"NOFILE": self.open_files, "FSIZE": self.file_bytes, "CPU": self.cpu_s}
        if not grouped:
            limits["DATA"] = self.memory_bytes
            limits["NPROC"] = self.processes if isolated else None
        return {"CORE": 0, **{name: value for name, value in limits.items() if value is not None}}
