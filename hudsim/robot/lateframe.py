"""``LateFrame``: an observation whose images are encoded off the simulator's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from hudsim.robot.bridge import Array
from hudsim.robot.cameras import Cameras
from hudsim.robot.hashchain import digest
from hudsim.wire.session import Frame

__all__ = ["LateFrame"]

Packed = deque[tuple[int, int]]
"""Of each frame that was packed: how long that took, ns, and its bytes."""


class LateFrame:
    """Holds a copy of ``data`` until :meth:`pack` makes the bytes of it, if it is sent at all.

    write
        Makes the frame of an observation's data; looks at ``meta`` only then.
    hashed
        ``meta`` tells the digests of the images as they were, for who records the episode at the other end.
    packed
        Where the account goes; it is another thread's.
    """

    def __init__(
        self,
        data: Mapping[str, Array],
        meta: dict[str, Any],
        write: Callable[[Mapping[str, Any]], Frame],
        *,
        cameras: Cameras,
        hashed: bool,
        now: Callable[[], int],
        packed: Packed,
    ) -> None:
        self._data = {name: array.copy() for name, array in data.items()}  # the next step writes to them
        self._meta, self._write = meta, write
        self._cameras, self._hashed = cameras, hashed
        self._now, self._packed = now, packed

    def pack(self) -> bytes:
        """The frame, its images encoded; milliseconds. Raises :class:`~hudsim.errors.WireError`."""
        began_ns = self._now()
        data = self._cameras.encode(self._data)
        if self._hashed:
            self._meta["digests"] = {name: digest(image) for name, image in self._cameras.images(self._data).items()}
        self._meta["t_send_ns"] = sent_ns = self._now()
        frame = self._write(data).data()
        self._packed.append((sent_ns - began_ns, len(frame)))
        return frame
