"""What there is to work on, and who does, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudsim.cli.output import columns, stdout
from hudsim.cli.words import arguments, duration, plain

__all__ = ["Listed", "print_listed", "print_sessions"]


@dataclass(frozen=True, slots=True)
class Listed:
    """An environment's ``templates``, and the rows of the ``tasks`` that are made of them. None: it is not known."""

    environment: str
    templates: list[dict[str, Any]]
    tasks: list[dict[str, Any]] | None

    def to_json(self) -> dict[str, Any]:
        return {"environment": self.environment, "templates": self.templates, "tasks": self.tasks}


def print_listed(listed: Listed) -> None:
    """Each template with its arguments, then the tasks by the slugs that ``--task`` takes."""
    console = stdout()
    console.print(f"[bold]{plain(listed.environment)}[/]")
    for template in listed.templates:
        _print_template(console, template)
    if listed.tasks is None:
        return
    console.print(f"\n{_count(listed.tasks)}")
    table = columns(_slug="left", _template="left", _args="left")
    for task in listed.tasks:
        table.add_row(f"  [cyan]{plain(task['slug'])}[/]", plain(task["id"]), f"[dim]{plain(_args(task))}[/]")
    if listed.tasks:
        console.print(table)


def print_sessions(sessions: list[dict[str, Any]]) -> None:
    """A line a session: its task and for how long, who has it, what it waits for."""
    if not sessions:
        stdout().print("no sessions")
        return
    table = columns(session="left", task="left", **{"for": "right"}, state="left", peer="left")
    for told in sessions:
        task = told["task"] or {"id": "", "args": {}, "seconds": None, "waits_for": None}
        ends_in_s = told["ends_in_s"]
        waits = f"waits for a slot of {task['waits_for']}" if task["waits_for"] else told["state"]
        table.add_row(
            f"[cyan]{plain(told['session'])}[/]",
            plain(f"{task['id']}({arguments(task['args'])})" if told["task"] else ""),
            "" if task["seconds"] is None else duration(task["seconds"]),
            plain(waits),
            "connected" if told["connected"] else f"[yellow]gone, ends in {duration(ends_in_s)}[/]",
        )
    stdout().print(table)


def _print_template(console: Any, template: dict[str, Any]) -> None:
    about = template["description"].partition("\n")[0]
    console.print(f"  [cyan]{plain(template['id'])}[/]  {plain(about)}")
    table = columns(_name="left", _kind="left", _default="left")
    required = template["args"].get("required", [])
    for key, schema in template["args"].get("properties", {}).items():
        default = "required" if key in required else f"default {schema.get('default')!r}"
        table.add_row(f"    {plain(key)}", plain(_kind(schema)), f"[dim]{plain(default)}[/]")
    if table.row_count:
        console.print(table)
    if not template["reference"]:
        console.print("    [dim]no reference: `oracle` cannot solve it[/]")


def _count(tasks: list[dict[str, Any]]) -> str:
    if not tasks:
        return "no tasks"
    return f"{len(tasks)} task{'s' if len(tasks) != 1 else ''}  [dim]hudsim eval … --task SLUG,… runs some[/]"


def _args(task: dict[str, Any]) -> str:
    return arguments(task["args"])


def _kind(schema: dict[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    return str(schema.get("type", "any"))
