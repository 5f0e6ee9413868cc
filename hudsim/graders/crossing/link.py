"""``Link``: whole messages over a stream of bytes, with a deadline on each wait."""

from __future__ import annotations

import os
import socket
import struct
import time

from hudsim.graders.crossing.errors import CannotCross, SolutionGone

__all__ = ["MOST_BYTES", "Link"]

MOST_BYTES = 1 << 26
"""In one message."""

_HEAD = struct.Struct(">I")


class Link:
    """One end of a connected stream socket.

    timeout_s
        How long one wait may last. None: for ever, as the solution waits for the next test.
    """

    def __init__(self, sock: socket.socket, *, timeout_s: float | None = None) -> None:
        sock.set_inheritable(False)
        self._sock = sock
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self.gone: SolutionGone | None = None

    def send(self, message: bytes) -> None:
        """Raises :class:`CannotCross` if it is too large, :class:`SolutionGone`."""
        if len(message) > MOST_BYTES:
            raise CannotCross("large", f"got a message of {len(message)} bytes, expected at most {MOST_BYTES}")
        self._ready()
        try:
            self._sock.settimeout(self._timeout_s)
            self._sock.sendall(_HEAD.pack(len(message)) + message)
        except TimeoutError:
            raise self.lost("hung", f"the other side read nothing for {self._timeout_s} s") from None
        except OSError as error:
            raise self.lost("died", f"the other side is gone: {error}") from None

    def receive(self) -> bytes:
        """Raises :class:`SolutionGone`."""
        self._ready()
        until = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        data = self._some(1 << 16, until)
        while len(data) < _HEAD.size:
            data += self._some(1 << 16, until)
        (size,) = _HEAD.unpack_from(data)
        left = _HEAD.size + size - len(data)
        if size > MOST_BYTES or left < 0:  # each side waits for the other: nothing can follow
            raise self.lost("garbled", "got more bytes than a message has")
        parts = [data[_HEAD.size :]]
        while left:
            parts.append(self._some(min(left, 1 << 20), until))
            left -= len(parts[-1])
        return b"".join(parts)

    def lost(self, kind: str, message: str) -> SolutionGone:
        """Nothing more can be said here; the error to raise."""
        self.gone = SolutionGone(kind, message)
        self._sock.close()
        return self.gone

    def close(self) -> None:
        """Idempotent."""
        self._sock.close()

    def _ready(self) -> None:
        if self.gone is not None:
            raise SolutionGone(self.gone.kind, str(self.gone))
        if os.getpid() != self._pid:
            raise CannotCross("thread", "got a call from a forked process, expected the one that was connected")

    def _some(self, most: int, until: float | None) -> bytes:
        try:
            if until is not None:
                self._sock.settimeout(max(until - time.monotonic(), 1e-3))
            data = self._sock.recv(most)
        except TimeoutError:
            raise self.lost("hung", f"no answer within {self._timeout_s} s") from None
        except OSError as error:
            raise self.lost("died", f"the other side is gone: {error}") from None
        if not data:
            raise self.lost("died", "the other side has ended")
        return data
