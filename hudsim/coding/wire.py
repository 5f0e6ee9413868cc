"""``HostWire``: the host's end of a launcher's socket: frames with descriptors, on the event loop."""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

from hudsim.errors import UsageError

__all__ = ["Frame", "HostWire"]

_HEAD = struct.Struct(">II")
_MOST = 1 << 24

Frame = tuple[dict[str, Any], bytes, list[int]]
"""A message, bytes, and descriptors, which are the receiver's to close."""


class HostWire:
    """``receive`` is called with each frame, ``lost`` once when the other end is gone. Nothing here blocks the loop."""

    def __init__(self, sock: socket.socket, receive: Callable[[Frame], None], lost: Callable[[], None]) -> None:
        self._sock = sock
        self._receive, self._lost = receive, lost
        self._loop = asyncio.get_running_loop()
        self._bytes = bytearray()
        self._fds: list[int] = []
        self._waiting: list[tuple[memoryview, Sequence[int]]] = []
        self._open = True
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._read)

    @property
    def is_open(self) -> bool:
        """Whether the other end is there, as far as is known."""
        return self._open

    def send(self, message: dict[str, Any], payload: bytes = b"", fds: Sequence[int] = ()) -> None:
        """One frame; ``fds`` are duplicated, so the caller may close its own at once.

        Raises :class:`~hudsim.errors.UsageError` for one that the other end would not take.
        """
        if not self._open:
            raise ConnectionResetError("the sandbox is gone")
        words = json.dumps(message).encode()
        if (size := 4 + len(words) + len(payload)) > _MOST:
            what = "a command with its variables" if message.get("op") == "exec" else "a message"
            raise UsageError(f"got {what} of {size:,} bytes, expected {_MOST:,} at most")
        frame = _HEAD.pack(size, len(words)) + words + payload
        with contextlib.ExitStack() as until_all:  # there may be no descriptor left for one of them
            copies = []
            for fd in fds:
                copies.append(os.dup(fd))
                until_all.callback(os.close, copies[-1])
            until_all.pop_all()
        self._waiting.append((memoryview(frame), copies))
        if len(self._waiting) == 1:
            self._write()

    def close(self) -> None:
        """Hang up, which ends the sandbox. Idempotent; ``lost`` is not called."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            for fd in [*self._fds, *(fd for _, fds in self._waiting for fd in fds)]:
                os.close(fd)
            self._fds.clear()
            self._waiting.clear()

    def _write(self) -> None:
        while self._waiting:
            data, fds = self._waiting[0]
            try:
                if fds:
                    sent = self._sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
                else:
                    sent = self._sock.send(data)
            except BlockingIOError:
                self._loop.add_writer(self._sock.fileno(), self._write)
                return
            except OSError:
                self._gone()
                return
            for fd in fds:
                os.close(fd)
            if sent < len(data):
                self._waiting[0] = (data[sent:], [])
            else:
                self._waiting.pop(0)
        self._loop.remove_writer(self._sock.fileno())

    def _read(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(1 << 18, socket.CMSG_SPACE(64), socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for _, _, words in ancillary:
            self._fds.extend(array.array("i", words[: len(words) - len(words) % 4]))
        if not data:
            self._gone()
            return
        self._bytes += data
        while self._open and (frame := self._whole()) is not None:
            self._receive(frame)

    def _whole(self) -> Frame | None:
        if len(self._bytes) < _HEAD.size:
            return None
        rest, words = _HEAD.unpack_from(self._bytes)
        if rest > _MOST or words + 4 > rest:
            self._gone()
            return None
        end = 4 + rest
        if len(self._bytes) < end:
            return None
        message = json.loads(bytes(self._bytes[_HEAD.size : _HEAD.size + words]))
        payload = bytes(self._bytes[_HEAD.size + words : end])
        del self._bytes[:end]
        count = int(message.get("fds", 0))
        fds, self._fds = self._fds[:count], self._fds[count:]
        return message, payload, fds

    def _gone(self) -> None:
        if self._open:
            self.close()
            self._lost()
