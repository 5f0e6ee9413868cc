"""Coding: workspaces that nothing in them can leave, and sandboxes to grade in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudsim.coding.box import Box
    from hudsim.coding.bubblewrap import Bind, Plan
    from hudsim.coding.client import SSHClient
    from hudsim.coding.freeze import Frozen
    from hudsim.coding.limits import Limits
    from hudsim.coding.mount import Mount
    from hudsim.coding.process import Completed, Exit, Process
    from hudsim.coding.sandbox import Sandbox
    from hudsim.coding.workspace import Workspace

__all__ = [
    "Bind",
    "Box",
    "Completed",
    "Exit",
    "Frozen",
    "Limits",
    "Mount",
    "Plan",
    "Process",
    "SSHClient",
    "Sandbox",
    "Workspace",
]

_FILES = {"Bind": "bubblewrap", "Completed": "process", "Exit": "process", "Frozen": "freeze", "Plan": "bubblewrap"}
_FILES |= {"SSHClient": "client"}


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name):
        """Imported at first use: who cleans up after a dead process must be quick, and asyncssh takes 0.2 s."""
        if name not in __all__:
            raise AttributeError(f"module 'hudsim.coding' has no attribute {name!r}")
        value = getattr(import_module(f"hudsim.coding.{_FILES.get(name, name.lower())}"), name)
        globals()[name] = value
        return value
