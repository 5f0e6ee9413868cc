"""``hudsim bench``: the benchmarks, each with options of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

__all__ = ["bench"]

_BENCHES = ("latency", "harness", "sandbox")


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="BENCH", help="latency, harness or sandbox")] = None,
) -> None:
    """Measure where the time goes.

    latency: action to next observation over the socket, beside a bare echo of the same size.

    harness: what a graded run costs beside the same work bare, and where its time goes.

    sandbox: what a workspace costs from start to end, one and hundreds at once, and what they leave behind.

    `hudsim bench BENCH --help` tells more.
    """
    from hudsim.errors import UnknownName

    if name is None or name in ("-h", "--help"):
        typer.echo(context.get_help())
        return
    if name not in _BENCHES:
        raise UnknownName("bench", name, _BENCHES)
    raise typer.Exit(import_module(f"hudsim.bench.{name}").main(context.args))
