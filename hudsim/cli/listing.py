"""``hudsim list``: what has a name, and what may stand in a name's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudsim.cli.options import AsJson
from hudsim.cli.output import columns, emit_json, stdout
from hudsim.cli.words import plain

if TYPE_CHECKING:
    from hudsim.registry import Entry
    from hudsim.registry.names import Kind

__all__ = ["list_"]

_TITLES: dict[Kind, tuple[str, str]] = {
    "world": ("worlds", "hudsim run WORLD"),
    "policy": ("policies", "hudsim run … --policy POLICY"),
    "environment": ("environments", "hudsim eval ENVIRONMENT"),
    "agent": ("agents", "hudsim eval … AGENT; every policy is one"),
}


def list_(*, as_json: AsJson = False) -> None:
    """List the worlds, policies, environments and agents."""
    from hudsim import registry

    policies = registry.policies()
    agents = {name: entry for name, entry in registry.agents().items() if name not in policies}
    named: dict[Kind, dict[str, Entry]] = {
        "world": registry.worlds(),
        "policy": policies,
        "environment": registry.environments(),
        "agent": agents,
    }
    if as_json:
        document = {
            _TITLES[kind][0]: [{"name": e.name, "about": e.about, "target": e.target} for e in entries.values()]
            for kind, entries in named.items()
        }
        emit_json(document)
        return
    from rich.padding import Padding

    console = stdout()
    forms = registry.FORMS
    wide = max(len(name) for kind in named for name in (*named[kind], *forms[kind]))
    for kind, entries in named.items():
        title, use = _TITLES[kind]
        console.print(f"[bold]{title}[/]  [dim]{use}[/]")
        table = columns(_name="left", _about="left")
        for name, about in [(entry.name, entry.about) for entry in entries.values()] + list(forms[kind].items()):
            table.add_row(f"[cyan]{plain(name.ljust(wide))}[/]", plain(about))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
