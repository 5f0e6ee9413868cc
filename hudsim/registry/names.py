"""The names there are: hudsim's own, those of installed packages, and the forms that may stand in a name's place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from hudsim.errors import UnknownName, UsageError
from hudsim.registry.entry import Entry

__all__ = ["FORMS", "Kind", "find", "policies", "worlds"]

Kind = Literal["world", "policy", "adapter"]

_ARM = "hudsim.bridges.arm.bridge:ArmBridge"
_GROUPS = {"world": "hudsim.worlds", "policy": "hudsim.policies"}

_WORLDS = [
    Entry("arm-reach", _ARM, "a 7-joint arm: bring its tip to a marker in the air", {"task": "reach"}),
    Entry("arm-lift", _ARM, "a 7-joint arm: pick up a cube and hold it 10 cm above the table", {"task": "lift"}),
    Entry("arm-push", _ARM, "a 7-joint arm: push a cube onto a disc", {"task": "push"}),
    Entry("pendulum", "hudsim.bridges.pendulum:PendulumBridge", "keep a pole upright on a cart for 1000 ticks"),
    Entry(
        "test-card",
        "hudsim.bridges.testcard:TestCardVectorBridge",
        "frames that say which slot and tick they are of, for 500 ticks; no simulator",
        defaults={"max_ticks": 500},
    ),
]
_POLICIES = [
    Entry("hold", "hudsim.policies.hold:Hold", "stay where the robot is; do nothing elsewhere"),
    Entry("random", "hudsim.policies.random_actions:RandomActions", "uniform within the action's limits"),
    Entry("scripted", "hudsim.policies.scripted:Scripted", "an expert for the three arm tasks"),
    Entry(
        "mpc",
        "hudsim.policies.mpc:Mpc",
        "predictive sampling, for a MuJoCo world that names a cost: pendulum",
        chunks=("rtc", 1),  # it plans on from what is still to be executed, without a pause
    ),
]

FORMS = {
    "world": {
        "gym:ID": "any Gymnasium environment: gym:HalfCheetah-v5, gym:module:factory, gym:file.py:factory",
        "mjcf:FILE.xml": "any MJCF file, for 1000 ticks: its actuators are the action, its named cameras the images",
        "module:attr": "a RobotBridge of your own, or what makes one; file.py:attr too",
        "ws://…": "a server that runs already: the url that `hudsim serve` printed",
    },
    "policy": {"module:attr": "a Model of your own, or what makes one or a RobotAgent; file.py:attr too"},
    "adapter": {"module:attr": "an Adapter of your own, or what makes one; file.py:attr too"},
}
"""What may stand in a name's place, and one line about each."""


def worlds() -> dict[str, Entry]:
    """The worlds that have names: hudsim's, then those of installed packages (entry points ``hudsim.worlds``)."""
    return _named(_WORLDS, "world")


def policies() -> dict[str, Entry]:
    """The policies that have names: hudsim's, then those of installed packages (entry points ``hudsim.policies``)."""
    return _named(_POLICIES, "policy")


def _named(own: Iterable[Entry], kind: Kind) -> dict[str, Entry]:
    named = {entry.name: entry for entry in own}
    for point in entry_points(group=_GROUPS[kind]):
        named.setdefault(point.name, Entry(point.name, point.value, f"from {_package(point)}"))
    return named


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.module


def find(name: str, kind: Kind, given: Entry | None, named: Mapping[str, Entry]) -> Entry:
    """The entry of ``name``, else the one ``given``. Raises :class:`~hudsim.errors.UnknownName` if that is None."""
    if name in named:
        return named[name]
    scheme, colon, _ = name.partition("://")
    if colon:
        takes = ", expected ws:// or wss://, the url that `hudsim serve` printed" if kind == "world" else ""
        raise UsageError(f"{kind} {name.partition('?')[0]}: got the scheme {scheme}://{takes}")
    if name.endswith(".py"):
        what = "factory" if name.startswith("gym:") else "Class"
        raise UsageError(f"{kind} {name} is a file; expected what in it is meant, as in {name}:{what}")
    if given is None:
        raise UnknownName(kind, name, [*named, *FORMS[kind]])
    return given
