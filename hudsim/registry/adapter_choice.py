"""From an adapter's name to the adapter."""

from __future__ import annotations

from hudsim.errors import UsageError
from hudsim.registry.arguments import Arguments, make
from hudsim.registry.entry import Entry
from hudsim.registry.names import find
from hudsim.robot.adapter import Adapter

__all__ = ["make_adapter"]


def make_adapter(name: str, *, privileged: bool) -> Adapter:
    """The adapter that ``module:attr`` or ``file.py:attr`` is the class of, or makes.

    privileged
        The policy reads privileged features; said to an adapter that has the argument.

    Raises :class:`~hudsim.errors.UsageError` for what is not there or makes no adapter.
    """
    entry = find(name, "adapter", Entry(name, name, "") if ":" in name else None, {})
    maker = entry.load()
    args = {"privileged": True} if privileged and "privileged" in Arguments.of(maker).names else {}
    made = make(f"adapter {name}", maker, args)
    if not isinstance(made, Adapter):
        raise UsageError(f"adapter {name} is a {type(made).__name__}; expected a hudsim Adapter")
    return made
