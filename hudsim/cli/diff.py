"""``hudsim diff``: where two runs part, by the fingerprints that they kept."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

from hudsim.cli.options import AsJson
from hudsim.cli.output import emit_json, tell
from hudsim.errors import UsageError

__all__ = ["Parting", "diff", "first_difference"]

_Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `hudsim run --out` made, or its run.json.")]


@dataclass(frozen=True, slots=True)
class Parting:
    """What became of one seed in two runs.

    tick
        The first observation that differs, 0 for the reset's. None: none does, or the ticks were not kept.
    features
        What differs there: features, ``reward``, ``action`` (the one sent for that observation).
    words
        The difference in words; empty where there is none.
    """

    seed: int
    tick: int | None = None
    features: tuple[str, ...] = ()
    words: str = ""


def diff(run_a: _Run, run_b: _Run, *, as_json: AsJson = False) -> None:
    """Say where two runs differ.

    Seed by seed: the same, or the first tick and the features that differ there.

    Exit code 0 if they are, 1 if not.
    """
    a, b = _Kept.load(run_a), _Kept.load(run_b)
    partings = _compare(a, b)
    same = not any(parting.words for parting in partings)
    if as_json:
        emit_json({"same": same, "seeds": [asdict(parting) for parting in partings]})
    else:
        for key in ("world", "policy", "mode"):
            if a.document[key] != b.document[key]:
                tell(f"{key}: {a.document[key]} and {b.document[key]}")
        for parting in partings:
            tell(f"seed {parting.seed}: {parting.words or 'the same'}")
    raise typer.Exit(0 if same else 1)


def first_difference(a: list[dict[str, str]], b: list[dict[str, str]]) -> tuple[int, tuple[str, ...]] | None:
    """The first tick at which two lists of fingerprints differ, and the features that do. None: nowhere.

    A tick that only one of them has differs in all of its features.
    """
    for tick, (left, right) in enumerate(zip_longest(a, b, fillvalue=dict[str, str]())):
        if left != right:
            return tick, tuple(name for name in {**left, **right} if left.get(name) != right.get(name))
    return None


@dataclass(frozen=True, slots=True)
class _Kept:
    """A run as it was kept: its document and where its files are."""

    document: dict[str, Any]
    folder: Path

    @classmethod
    def load(cls, path: Path) -> _Kept:
        file = path / "run.json" if path.is_dir() else path
        try:
            document = json.loads(file.read_text())
        except FileNotFoundError:
            missing = f"there is no {file}" if path.is_dir() else "there is no such file or folder"
            raise UsageError(f"no run in {path}: {missing}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{file} is not a run's: {error}") from None
        if not isinstance(document, dict) or not {"world", "policy", "mode", "episodes"} <= document.keys():
            raise UsageError(f"{file} is not a run's: expected world, policy, mode, episodes")
        if document["mode"] == "realtime":
            raise UsageError(f"{file} was a realtime run: no two are the same, and it kept no fingerprints")
        return cls(document, file.parent)

    def episodes(self) -> dict[int, tuple[int, dict[str, Any]]]:
        """By seed: the episode's number and its part of the document."""
        return {episode["seed"]: (index, episode) for index, episode in enumerate(self.document["episodes"])}

    def ticks(self, index: int) -> list[dict[str, str]] | None:
        """The fingerprints of episode ``index``; None if they were not kept."""
        file = self.folder / f"episode-{index:03d}.ticks.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else None


def _compare(a: _Kept, b: _Kept) -> list[Parting]:
    left, right = a.episodes(), b.episodes()
    partings = []
    for seed in sorted({*left, *right}):
        if seed not in left or seed not in right:
            partings.append(Parting(seed, words=f"only in {a.folder if seed in left else b.folder}"))
            continue
        (i, one), (j, other) = left[seed], right[seed]
        ticks, others = a.ticks(i), b.ticks(j)
        parting = _parting(seed, one, other, ticks, others)
        if parting.words and None in (ticks, others):
            without = [str(run.folder) for run, kept in ((a, ticks), (b, others)) if kept is None]
            parting = replace(parting, words=f"{parting.words}; no ticks in {' and '.join(without)} to say where")
        partings.append(parting)
    return partings


def _parting(
    seed: int,
    one: dict[str, Any],
    other: dict[str, Any],
    ticks: list[dict[str, str]] | None,
    others: list[dict[str, str]] | None,
) -> Parting:
    if ticks is not None and others is not None and (found := first_difference(ticks, others)) is not None:
        tick, features = found
        if tick in (len(ticks), len(others)):
            return Parting(seed, tick, features, f"tick {tick}: only one goes on; {_ends(one, other)}")
        words = f"tick {tick}: {', '.join(features)}"
        if one["hash"] == other["hash"]:
            words += " (images alone; the state is the same to the end)"
        return Parting(seed, tick, features, words)
    for name in ("hash", "image_hash", "end"):
        if one[name] != other[name]:
            return Parting(seed, words=_ends(one, other) if name == "end" else f"{name} differs")
    return Parting(seed)


def _ends(one: dict[str, Any], other: dict[str, Any]) -> str:
    return " and ".join(f"{episode['end']} after {episode['ticks']} ticks" for episode in (one, other))
