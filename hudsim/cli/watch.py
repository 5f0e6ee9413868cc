"""``Watch``: how far a job is, on stderr: drawn on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hudsim.cli.output import columns, errors, say
from hudsim.cli.words import counts, duration, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from hudsim.eval import Run

__all__ = ["Watch"]

_EVERY_S = 5.0
_DRAWN_HZ = 4
_SHOWN = 8  # runs that are named while they run
_BAR = 30


class Watch:
    """Told of runs that begin and end, on an event loop.

    title
        What runs.
    expected
        How many runs the job shall have; ``before`` are those of them that had ended already.
    """

    def __init__(self, title: str, expected: int, before: Iterable[Run] = ()) -> None:
        self._title, self._expected = title, expected
        self._before = [str(run.verdict) for run in before]
        self._ended: Counter[str] = Counter()
        self._running: dict[str, tuple[Run, float]] = {}
        self._began_s = self._said_s = time.monotonic()
        self._later: asyncio.TimerHandle | None = None
        self._live: Live | None = None
        console = errors()
        if console.is_terminal:
            from rich.live import Live

            self._live = Live(get_renderable=self.drawn, console=console, refresh_per_second=_DRAWN_HZ, transient=True)

    def __call__(self, event: str, run: Run) -> None:
        """``started`` or ``finished``."""
        if event == "started":
            self._running[run.id] = (run, time.monotonic())
        else:
            self._running.pop(run.id, None)
            self._ended[str(run.verdict)] += 1
        if self._live is None and self._later is None:
            wait_s = max(0.0, self._said_s + _EVERY_S - time.monotonic())
            self._later = asyncio.get_running_loop().call_later(wait_s, self._say)

    def _say(self) -> None:
        self._later, self._said_s = None, time.monotonic()
        say(" · ".join(filter(None, [self._progress(), self._verdicts(), *self._speed()])))

    def _progress(self) -> str:
        return f"{len(self._before) + self._ended.total()} of {self._expected} done"

    def _verdicts(self) -> str:
        return _uncoloured(counts(Counter(self._before) + self._ended))

    def _speed(self) -> list[str]:
        """How many are running, how fast it goes, how long it will take; as far as it is known."""
        said = [f"{len(self._running)} running"] if self._running else []
        ended, took_s = self._ended.total(), time.monotonic() - self._began_s
        if ended and took_s > 0:
            left = self._expected - len(self._before) - ended
            said.append(_rate(ended / took_s))
            if left > 0:
                said.append(f"{duration(left * took_s / ended)} left")
        return said

    def drawn(self) -> RenderableType:
        """What a terminal shows now: how far it is, and what runs."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done = len(self._before) + self._ended.total()
        head = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(self._expected, 1), completed=done, width=_BAR)
        head.add_row(f"[bold]{plain(self._title)}[/]", bar, f"{done} of {self._expected}")
        said = [counts(Counter(self._before) + self._ended), *self._speed()]
        rows: list[Any] = [head, " · ".join(filter(None, said)) or "the environment comes up …"]
        if self._running:
            rows.append(self._table())
        return Group(*rows)

    def _table(self) -> Any:
        table = columns(_name="left", _seconds="right", _waits="left")
        now_s = time.monotonic()
        running = list(self._running.values())
        for run, began_s in running[:_SHOWN]:
            waits = "" if run.waits_for is None else f"[yellow]waits for a slot of {plain(run.waits_for)}[/]"
            table.add_row(f"  [cyan]{plain(f'{run.slug}[{run.index}]')}[/]", duration(now_s - began_s), waits)
        if len(running) > _SHOWN:
            table.add_row(f"  [dim]and {len(running) - _SHOWN} more[/]", "")
        return table

    def __enter__(self) -> Self:
        self._began_s = self._said_s = time.monotonic()
        if self._live is not None:
            self._live.start()
            _follow_stderr()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
        if self._live is None and kind is None:
            self._say()

    def stop(self) -> None:
        """Draw no more, and say nothing more by itself. Idempotent."""
        if self._live is not None:
            self._live.stop()
            _follow_stderr()
        if self._later is not None:
            self._later.cancel()


def _follow_stderr() -> None:
    """Have the log go where stderr goes now: while something is drawn, above it."""
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler:
            handler.setStream(sys.stderr)


def _rate(hz: float) -> str:
    return f"{hz:.1f} a second" if hz >= 1 else f"{hz * 60:.1f} a minute"


def _uncoloured(words: str) -> str:
    from rich.text import Text

    return Text.from_markup(words).plain
