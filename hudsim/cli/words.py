"""How commands say times, counts and rewards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hudsim.cli.output import printable

__all__ = ["about_when", "arguments", "counts", "duration", "marks", "number", "plain", "styled", "when"]

_STYLES = {"passed": "green", "partial": "yellow", "failed": "", "missing": "dim"}  # all others are alarming
_FIRST = ("passed", "partial", "failed")
_BARS = "▁▂▃▄▅▆▇█"
_NO_REWARD = {"missing": "·"}  # all other verdicts without one are a cross
_IN_A_LINE = 16


def plain(words: Any) -> str:
    """Words of others, so that a bracket in them is not taken for a colour, nor anything obeyed by a terminal."""
    from rich.markup import escape

    return escape(printable(str(words)))


def styled(verdict: str, words: str | None = None) -> str:
    """A verdict's name (or ``words`` instead) in its colour."""
    style = _STYLES.get(verdict, "red")
    shown = plain(verdict if words is None else words)
    return f"[{style}]{shown}[/]" if style else shown


def number(value: float | None) -> str:
    """A reward with three digits after the point; ``–`` for None."""
    return "–" if value is None else f"{value:.3f}"


def counts(verdicts: Mapping[str, int]) -> str:
    """``passed 3, failed 1``, coloured; what does not occur is left out."""
    names = [*_FIRST, *(name for name in verdicts if name not in _FIRST)]
    return ", ".join(styled(name, f"{name} {verdicts[name]}") for name in names if verdicts.get(name))


def marks(members: Iterable[tuple[str, float | None]]) -> str:
    """A group at a glance: for each (verdict, reward) a bar from ▁ (0 and less) to █ (1 and more).

    Without a reward it is ``×``, and ``·`` for one that has not run. Sixteen in a line.
    """
    shown = [styled(verdict, _mark(verdict, reward)) for verdict, reward in members]
    return "\n".join("".join(shown[at : at + _IN_A_LINE]) for at in range(0, len(shown), _IN_A_LINE))


def _mark(verdict: str, reward: float | None) -> str:
    if reward is None:
        return _NO_REWARD.get(verdict, "×")
    inner = _BARS[1:-1]  # neither end is shown for a reward that only comes near it
    if reward <= 0 or reward >= 1:
        return _BARS[0 if reward <= 0 else -1]
    return inner[min(int(reward * len(inner)), len(inner) - 1)]


def duration(seconds: float) -> str:
    """``40 ms``, ``0.4 s``, ``45 s``, ``2 min 5 s``, ``1 h 12 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds >= 0.0995 else f"{max(seconds, 0.0) * 1000:.0f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, of_hour = divmod(minutes, 60)
    if hours:
        return f"{hours} h {of_hour} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def when(stamp: str) -> str:
    """A wall clock's ISO 8601 stamp in the time of this place: ``2026-02-03 14:05:06``."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def about_when(stamp: str) -> str:
    """The same to the minute; the year only if it is another than now: ``02-03 14:05``."""
    then = datetime.fromisoformat(stamp).astimezone()
    return then.strftime("%m-%d %H:%M" if then.year == datetime.now(UTC).astimezone().year else "%Y-%m-%d %H:%M")


def arguments(args: Mapping[str, Any]) -> str:
    """``difficulty="easy", seed=0``; numbers with six digits."""
    return ", ".join(f"{key}={_value(value)}" for key, value in args.items())


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
