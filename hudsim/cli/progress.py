"""``Progress``: how far a run is, on stderr while it is a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hudsim.cli.output import errors

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from hudsim.robot.run import EpisodeReport, RunOptions

__all__ = ["Progress"]

_REFRESH_S = 0.2  # drawing takes milliseconds of this process, which the policy may want


class Progress:
    """Told of ticks and episodes; draws them if stderr is a terminal, else only counts."""

    def __init__(self, options: RunOptions) -> None:
        self.done = 0
        self._options = options
        self._good = 0
        self._drawn_s = 0.0
        self._bar: Bar | None = None
        console = errors()
        if console.is_terminal:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
            )

            many = [BarColumn(bar_width=24), MofNCompleteColumn()] if options.episodes > 1 else []
            self._bar = Progress(
                SpinnerColumn(),
                *many,
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=console,
                transient=True,
                refresh_per_second=1 / _REFRESH_S,
            )
            self._task = self._bar.add_task("the world comes up …", total=options.episodes)

    def on_tick(self, episode: int, tick: int) -> None:
        """``tick`` ticks of the episode number ``episode`` (from 0) are done."""
        if self._bar is None or time.monotonic() - self._drawn_s < _REFRESH_S:
            return
        self._drawn_s = time.monotonic()
        self._bar.update(self._task, description=f"seed {self._options.seed + episode} · tick {tick}{self._score()}")

    def on_episode(self, report: EpisodeReport) -> None:
        """An episode is over."""
        self.done += 1
        self._good += report.record["success"] is True
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)

    def _score(self) -> str:
        return f" · {self._good} of {self.done} succeeded" if self._good else ""

    def interrupted(self) -> str:
        """What to say when the run is broken off."""
        kept = f"; kept in {self._options.out}" if self._options.out is not None else ""
        return f"interrupted: {self.done} of {self._options.episodes} episodes ran{kept}"

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
