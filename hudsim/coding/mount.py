"""``Mount``: what a workspace's sandbox sees of the host beside the workspace itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hudsim.coding.bubblewrap import Bind
from hudsim.errors import UsageError

__all__ = ["Mount"]

_KINDS = ("ro", "rw")


@dataclass(frozen=True, slots=True)
class Mount:
    """``Mount("ro", "/data/set", "/data")``.

    kind
        ``ro``: to be read only. ``rw``: every run of the workspace writes to that one folder.
    src, dst
        The host's file or folder, and its absolute path in the sandbox. As root, a workspace's user is none that
        the host knows: what it is to read must be readable by everybody, its parents need not be.
    optional
        Left out if the host has no ``src``.
    """

    kind: Literal["ro", "rw"]
    src: str
    dst: str
    optional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UsageError(f"mount {self.dst}: got the kind {self.kind!r}, expected one of {', '.join(_KINDS)}")
        if not PurePosixPath(self.dst).is_absolute():
            raise UsageError(f"mount: got dst {self.dst!r}, expected an absolute path in the sandbox")

    def bind(self) -> Bind | None:
        """None: it is optional and not there. Raises :class:`~hudsim.errors.UsageError` if it must be there."""
        source = Path(self.src).resolve()
        if source.exists():
            return Bind(source, self.dst, writable=self.kind == "rw")
        if self.optional:
            return None
        raise UsageError(f"mount {self.dst}: there is no {source} on this host")
