"""``hudsim list``: the worlds and policies that have names, and what may stand in a name's place."""

from __future__ import annotations

from hudsim.cli.options import AsJson
from hudsim.cli.output import columns, emit_json, stdout

__all__ = ["list_"]


def list_(*, as_json: AsJson = False) -> None:
    """List the worlds and policies."""
    from hudsim.registry import FORMS, policies, worlds

    named = {"world": worlds(), "policy": policies()}
    titles = {"world": "worlds", "policy": "policies"}
    if as_json:
        document = {
            titles[kind]: [{"name": e.name, "about": e.about, "target": e.target} for e in entries.values()]
            for kind, entries in named.items()
        }
        emit_json(document)
        return
    from rich.padding import Padding

    console = stdout()
    wide = max(len(name) for kind in named for name in (*named[kind], *FORMS[kind]))
    for kind, entries in named.items():
        console.print(titles[kind], style="bold")
        table = columns(_name="left", _about="left")
        for name, about in [(entry.name, entry.about) for entry in entries.values()] + list(FORMS[kind].items()):
            table.add_row(f"[cyan]{name.ljust(wide)}[/]", about)
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
