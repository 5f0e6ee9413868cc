"""``hudsim sandbox``: the sandboxes of this machine: whose there are, what dead owners left, and what isolates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hudsim.cli.options import AsJson
from hudsim.cli.output import columns, emit_json, say, stdout
from hudsim.cli.words import duration, plain

if TYPE_CHECKING:
    from hudsim.coding.card import Card

__all__ = ["commands"]

commands = typer.Typer(
    help="The sandboxes of this machine: those that live, what dead ones left, what isolates them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MARKS = {True: "[green]yes[/]", False: "[red]no[/]", None: "[dim]–[/]"}


@commands.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the processes of this user that have sandboxes, and the folders they are in."""
    from hudsim.coding.sweep import live

    found = [owned for owned in live() if owned.rooms]
    if as_json:
        fields = ("pid", "command", "age_s", "rooms")
        emit_json(
            {"owners": [{f: getattr(owned, f) for f in fields} | {"folder": str(owned.folder)} for owned in found]}
        )
        return
    if not found:
        say("no sandbox lives here")
        return
    table = columns(pid="right", sandboxes="right", since="right", command="left")
    for owned in found:
        table.add_row(str(owned.pid), str(len(owned.rooms)), duration(owned.age_s), plain(owned.command))
    stdout().print(table)


@commands.command()
def clean(*, as_json: AsJson = False) -> None:
    """Remove what dead owners left: processes, folders, control groups. What lives is not touched."""
    from hudsim.coding.sweep import clean as sweep

    removed = sweep()
    if as_json:
        emit_json({"removed": removed})
        return
    for what in removed:
        typer.echo(what)
    say(f"removed {len(removed)}" if removed else "nothing was left behind")


@commands.command()
def check(*, as_json: AsJson = False) -> None:
    """Try out what isolates a sandbox here, for this user: the card that every workspace shows its agents.

    Exit code 1 if a sandbox cannot be made, or something leaks.
    """
    from hudsim import loop

    card = loop.run(_card())
    if as_json:
        emit_json(card.params())
        return
    table = columns(what="left", holds="left", how="left")
    for row in card.rows:
        table.add_row(plain(row.what), _MARKS[row.holds], plain(row.how))
    stdout().print(table)


async def _card() -> Card:
    from hudsim.coding.card import probe

    return await probe()
