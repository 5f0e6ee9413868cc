"""``Captured``: the client's end of one command, its output kept up to a limit and counted beyond it."""

from __future__ import annotations

import asyncio
import contextlib
import signal as signals

import asyncssh

from hudsim.coding.process import Completed
from hudsim.coding.sshsession import NO_SANDBOX
from hudsim.errors import HudsimError, LinkLost, SandboxError

__all__ = ["Captured"]


class Captured(asyncssh.SSHClientSession[bytes]):
    """``most``: bytes kept of each stream. ``over`` is done when the command's channel is."""

    def __init__(self, most: int) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most
        self._kept: dict[int | None, bytearray] = {None: bytearray(), asyncssh.EXTENDED_DATA_STDERR: bytearray()}
        self._counts = dict.fromkeys(self._kept, 0)
        self._code: int | None = None
        self._problem: HudsimError = LinkLost("the connection ended before the command")

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def feed(self, data: bytes) -> None:
        """All that it gets to read."""
        with contextlib.suppress(OSError):  # it is over already
            self._channel.write(data)
            self._channel.write_eof()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        kept = self._kept[datatype]
        self._counts[datatype] += len(data)
        kept += data[: max(0, self._most - len(kept))]

    def exit_status_received(self, status: int) -> None:
        self._code = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        if signal == NO_SANDBOX:
            self._problem = SandboxError(msg)
        else:
            self._code = -getattr(signals, f"SIG{signal}", signals.SIGKILL)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def completed(self, where: str, *, timed_out: bool, seconds: float) -> Completed:
        """What it came to. Raises what kept it from ending by itself, in ``where``'s name."""
        if self._code is None and not timed_out:
            raise type(self._problem)(f"{where}: {self._problem.message}")
        code = -signals.SIGKILL if timed_out or self._code is None else self._code
        out, err = (bytes(kept) for kept in self._kept.values())
        out_bytes, err_bytes = self._counts.values()
        return Completed(code, out, err, out_bytes, err_bytes, timed_out, seconds)
