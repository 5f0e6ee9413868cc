"""hudsim: run a policy against a world, on time, and say what happened."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudsim.bridge import Bridge, Capability, Episode
    from hudsim.contract import Contract, Feature
    from hudsim.robot.adapter import Adapter
    from hudsim.robot.agent import RobotAgent
    from hudsim.robot.bridge import Observation, RobotBridge, VectorRobotBridge
    from hudsim.robot.client import RobotClient
    from hudsim.robot.endpoint import RobotEndpoint
    from hudsim.robot.model import Model
    from hudsim.robot.process import serve_bridge

__all__ = [
    "Adapter",
    "Bridge",
    "Capability",
    "Contract",
    "Episode",
    "Feature",
    "Model",
    "Observation",
    "RobotAgent",
    "RobotBridge",
    "RobotClient",
    "RobotEndpoint",
    "VectorRobotBridge",
    "__version__",
    "serve_bridge",
]

__version__: str

# Name -> the module that defines it, imported at first use: `import hudsim` must stay quick and bring no simulator.
_HOMES = {
    "Adapter": "hudsim.robot.adapter",
    "Bridge": "hudsim.bridge",
    "Capability": "hudsim.bridge",
    "Contract": "hudsim.contract",
    "Episode": "hudsim.bridge",
    "Feature": "hudsim.contract",
    "Model": "hudsim.robot.model",
    "Observation": "hudsim.robot.bridge",
    "RobotAgent": "hudsim.robot.agent",
    "RobotBridge": "hudsim.robot.bridge",
    "RobotClient": "hudsim.robot.client",
    "RobotEndpoint": "hudsim.robot.endpoint",
    "VectorRobotBridge": "hudsim.robot.bridge",
    "serve_bridge": "hudsim.robot.process",
}


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version  # as slow to import as all the rest here

            value = version("hudsim")
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'hudsim' has no attribute {name!r}")
        globals()[name] = value  # the next look-up is a plain one
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
