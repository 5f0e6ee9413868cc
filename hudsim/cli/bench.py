"""``hudsim bench``: the benchmarks, each with options of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

__all__ = ["bench"]

_BENCHES = ("latency", "jitter", "scale", "inference", "batching", "harness", "sandbox", "compare")


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="BENCH", help=", ".join(_BENCHES))] = None,
) -> None:
    """Measure where the time goes.

    latency: action to next observation, over socket and shared memory, beside bare floors and its peers.

    jitter: how late ticks are and how many are missed, by rate and by what else the machine does.

    scale: how many worlds are served on time, and steps a second in lockstep.

    inference: chunk strategies against the time that an inference takes.

    batching: actions a second of agents that share a model, batched and one by one.

    harness: what a graded run costs beside the same work bare, and where its time goes.

    sandbox: what a workspace costs from start to end, one and hundreds at once, and what they leave behind.

    compare: two documents of one of them: what became slower, and how surely.

    `hudsim bench BENCH --help` tells more.
    """
    from hudsim.errors import UnknownName

    if name is None or name in ("-h", "--help"):
        typer.echo(context.get_help())
        return
    if name not in _BENCHES:
        raise UnknownName("bench", name, _BENCHES)
    raise typer.Exit(import_module(f"hudsim.bench.{name}").main(context.args))
