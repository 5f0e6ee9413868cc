"""The names there are: hudsim's own, those of installed packages, and the forms that may stand in a name's place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from hudsim.errors import UnknownName, UsageError
from hudsim.registry.entry import Entry

__all__ = ["FORMS", "Kind", "agents", "environments", "find", "policies", "served_policy", "worlds"]

Kind = Literal["world", "policy", "adapter", "environment", "agent"]

_ARM = "hudsim.bridges.arm.bridge:ArmBridge"
_ARM_TASKS = "hudsim.bridges.arm.tasks"
_GROUPS: dict[Kind, str] = {
    "world": "hudsim.worlds",
    "policy": "hudsim.policies",
    "environment": "hudsim.environments",
    "agent": "hudsim.agents",
}

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
_OPENPI = "openpi:"
_CALC = "hudsim.coding_envs.calc"
_ENVIRONMENTS = [
    Entry("arm-reach", f"{_ARM_TASKS}:reach_tasks", "the arm brings its tip to a marker, from easy to hard"),
    Entry("arm-lift", f"{_ARM_TASKS}:lift_tasks", "the arm picks up a cube, from easy to hard"),
    Entry("arm-push", f"{_ARM_TASKS}:push_tasks", "the arm pushes a cube onto a disc, from easy to hard"),
    Entry("calc", f"{_CALC}.tasks:tasks", "mend the one wrong expression in a module of 40 functions; 16 of them"),
    Entry("calc-train", f"{_CALC}.train:tasks", "calc, the 256 to train on"),
    Entry("calc-held-out", f"{_CALC}.held_out:tasks", "calc, 64 more, to measure with"),
    Entry("repo", "hudsim.coding_envs.repo.tasks:tasks", "change a small repository as an issue asks; partial credit"),
    Entry("letters", "hudsim.coding_envs.letters.tasks:tasks", "how often a letter stands in a word; text alone"),
]
_AGENTS = [
    Entry("noop", "hudsim.agents:Noop", "do nothing and answer nothing: what nothing is worth"),
    Entry("oracle", "hudsim.registry.agent_choice:oracle", "carry out each task's reference: must be worth 1"),
]

FORMS: dict[Kind, dict[str, str]] = {
    "world": {
        "gym:ID": "any Gymnasium environment: gym:HalfCheetah-v5, gym:module:factory, gym:file.py:factory",
        "mjcf:FILE.xml": "any MJCF file, for 1000 ticks: its actuators are the action, its named cameras the images",
        "module:attr": "a RobotBridge of your own, or what makes one; file.py:attr too",
        "ws://…": "a server that runs already: the url that `hudsim serve` printed",
    },
    "policy": {
        "openpi:ws://…": "what an openpi policy server answers, its actions [T, D]: openpi:ws://HOST:PORT",
        "module:attr": "a Model of your own, or what makes one or a RobotAgent; file.py:attr too",
    },
    "adapter": {"module:attr": "an Adapter of your own, or what makes one; file.py:attr too"},
    "environment": {
        "FILE.py": "tasks of your own, and the environments they run in; a folder of such files too",
        "FILE.jsonl": "rows of tasks, their environments declared in a .py file beside it; FILE.json too",
        "module:attr": "a Taskset of your own; file.py:attr too",
    },
    "agent": {
        "answer:TEXT": "answer TEXT to everything: what a guess is worth",
        "script:FILE": "run the file's lines in the workspace's shell, and answer with what the last one printed",
        "module:attr": "an agent of your own, or what makes one or a Model; file.py:attr too",
    },
}
"""What may stand in a name's place, and one line about each."""

_URLS: dict[Kind, str] = {
    "world": ", expected ws:// or wss://, the url that `hudsim serve` printed",
    "policy": ", expected a policy; an openpi policy server is openpi:ws://HOST:PORT",
    "environment": ", expected tasks; the url of a server that runs them goes with --runtime",
}


def worlds() -> dict[str, Entry]:
    """The worlds that have names: hudsim's, then those of installed packages (entry points ``hudsim.worlds``)."""
    return _named(_WORLDS, "world")


def policies() -> dict[str, Entry]:
    """The policies that have names: hudsim's, then those of installed packages (entry points ``hudsim.policies``)."""
    return _named(_POLICIES, "policy")


def environments() -> dict[str, Entry]:
    """The environments that have names and tasks: hudsim's, then those of installed packages (entry points
    ``hudsim.environments``).
    """
    return _named(_ENVIRONMENTS, "environment")


def agents() -> dict[str, Entry]:
    """The agents that have names: hudsim's, every policy's, then those of installed packages (entry points
    ``hudsim.agents``).
    """
    return _named([*_AGENTS, *policies().values()], "agent")


def served_policy(name: str) -> Entry | None:
    """The policy that a server runs, for ``openpi:ws://HOST:PORT``. None: the name is of another form.

    Raises :class:`~hudsim.errors.UsageError` for a URL with a token: a name is kept with the runs.
    """
    if not name.startswith(_OPENPI):
        return None
    url, token, _ = name.removeprefix(_OPENPI).partition("?")
    if token:
        raise UsageError(
            f"policy {_OPENPI}{url}: got a URL with ?…, which would be kept with the runs; expected one without; in "
            "Python hudsim.policies.openpi_server.OpenpiServer takes it"
        )
    return Entry(name, "hudsim.policies.openpi_server:OpenpiServer", "", {"url": url})


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
        raise UsageError(f"{kind} {name.partition('?')[0]}: got the scheme {scheme}://{_URLS.get(kind, '')}")
    if name.endswith(".py"):
        what = "factory" if name.startswith("gym:") else "Class"
        raise UsageError(f"{kind} {name} is a file; expected what in it is meant, as in {name}:{what}")
    if given is None:
        raise UnknownName(kind, name, [*named, *FORMS[kind]])
    return given
