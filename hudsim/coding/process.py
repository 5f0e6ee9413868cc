"""``Process``: one command in a sandbox, as the host sees it."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudsim.coding.sandbox import Sandbox

__all__ = ["Completed", "Exit", "Process"]


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended.

    code
        Its exit code; minus the signal that killed it.
    cpu_s, rss_bytes
        What the kernel counted of it and of those of its children that it waited for.
    """

    code: int
    cpu_s: float = 0.0
    rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that is over, and what it printed.

    stdout, stderr
        Bytes as they came, up to the limit; ``stdout_bytes`` and ``stderr_bytes`` count them all.
    timed_out
        It was killed because its time was up; ``code`` is -9 then.
    seconds
        How long it took.
    """

    code: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    timed_out: bool = False
    seconds: float = 0.0
    cpu_s: float = 0.0

    @property
    def truncated(self) -> bool:
        """Whether some of what it printed was dropped."""
        return self.stdout_bytes > len(self.stdout) or self.stderr_bytes > len(self.stderr)

    @property
    def text(self) -> str:
        """What it printed on stdout, as text; what is no UTF-8 becomes U+FFFD."""
        return self.stdout.decode(errors="replace")


class Process:
    """Made by :meth:`hudsim.coding.Sandbox.spawn`.

    terminal
        The descriptor of its terminal, the caller's to close. None: it has none.
    """

    def __init__(self, sandbox: Sandbox, number: int) -> None:
        self._sandbox, self._number = sandbox, number
        self.terminal: int | None = None
        self._given_up = False
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def wait(self) -> Exit:
        """Until it has ended, also if a child of it lives on."""
        return await asyncio.shield(self._exit)

    @property
    def ended(self) -> bool:
        return self._exit.done()

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to its process group. Nothing happens once it has ended."""
        if not self._exit.done():
            self._sandbox.tell({"op": "signal", "id": self._number, "number": int(number)})

    async def kill(self) -> Exit:
        """As :meth:`hudsim.coding.Sandbox.kill`."""
        return await self._sandbox.kill(self)

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal another size."""
        if not self._exit.done():
            self._sandbox.tell({"op": "resize", "id": self._number, "pty": [rows, columns]})

    def begin(self, terminal: int | None) -> None:
        """The sandbox has started it."""
        self.terminal = terminal
        if not self.started.done():
            self.started.set_result(None)
        if self._given_up:
            self.give_up()

    def give_up(self) -> None:
        """Nobody waits for its start any more: kill it, and close its terminal, now or when it comes."""
        self._given_up = True
        self.signal(signal.SIGKILL)
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def settle(self, outcome: Exit | Exception) -> None:
        """The sandbox has news of its end."""
        if isinstance(outcome, Exit):
            if not self._exit.done():
                self._exit.set_result(outcome)
            return
        for future in (self.started, self._exit):
            if not future.done():
                future.set_exception(outcome)
                future.exception()  # nobody may be waiting for both
