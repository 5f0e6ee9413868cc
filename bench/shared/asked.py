"""``Asked``: a process that answers each line of JSON on its stdin with one on its stdout."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from hudsim.errors import HudsimError

__all__ = ["Asked"]

_CLOSE_S = 10.0


class Asked:
    """Started at once, told to end by the end of its stdin. ``name`` is what it is called in messages.

    Raises :class:`~hudsim.errors.HudsimError` for one that ends or does not answer in time; what it complained of is
    on stderr.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)

    def tell(self, request: dict[str, Any]) -> None:
        """Send a request whose answer is for :meth:`hear`."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise HudsimError(f"{self.name}: its process has ended") from None

    def hear(self, *, within_s: float = 120.0) -> dict[str, Any]:
        """The answer."""
        assert self._process.stdout is not None
        limit = threading.Timer(within_s, self._process.kill)
        limit.daemon = True  # an interrupt may come before it can be cancelled
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            raise HudsimError(f"{self.name}: its process ended, or did not answer within {within_s:g} s")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, request: dict[str, Any], *, within_s: float = 120.0) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.tell(request)
        return self.hear(within_s=within_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        if error is not None or not self._ends():
            # What was interrupted need not end well. What it started in sessions of their own ends with it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()

    def _ends(self) -> bool:
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            return False
        return True
