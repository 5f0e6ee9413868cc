"""hudsim: run a policy against a world, on time, and say what happened."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudsim.bridge import Bridge, Episode
    from hudsim.capability import Capability
    from hudsim.contract import Contract, Feature
    from hudsim.environment import Answer, Environment, load_environment
    from hudsim.eval import (
        Agent,
        Job,
        LocalRuntime,
        Run,
        Runtime,
        Shared,
        SubprocessRuntime,
        Task,
        Taskset,
        Trace,
    )
    from hudsim.graders import EvaluationResult, SubScore, combine
    from hudsim.robot.adapter import Adapter
    from hudsim.robot.agent import RobotAgent
    from hudsim.robot.batched import BatchedModel
    from hudsim.robot.bridge import Observation, RobotBridge, VectorRobotBridge
    from hudsim.robot.client import RobotClient
    from hudsim.robot.endpoint import RobotEndpoint
    from hudsim.robot.model import Model
    from hudsim.robot.process import serve_bridge

__all__ = [
    "Adapter",
    "Agent",
    "Answer",
    "BatchedModel",
    "Bridge",
    "Capability",
    "Contract",
    "Environment",
    "Episode",
    "EvaluationResult",
    "Feature",
    "Job",
    "LocalRuntime",
    "Model",
    "Observation",
    "RobotAgent",
    "RobotBridge",
    "RobotClient",
    "RobotEndpoint",
    "Run",
    "Runtime",
    "Shared",
    "SubScore",
    "SubprocessRuntime",
    "Task",
    "Taskset",
    "Trace",
    "VectorRobotBridge",
    "__version__",
    "combine",
    "load_environment",
    "serve_bridge",
]

__version__: str

# Name -> the module that defines it, imported at first use: `import hudsim` must stay quick and bring no simulator.
_HOMES = {
    "Adapter": "hudsim.robot.adapter",
    "Agent": "hudsim.eval",
    "Answer": "hudsim.environment",
    "BatchedModel": "hudsim.robot.batched",
    "Bridge": "hudsim.bridge",
    "Capability": "hudsim.capability",
    "Contract": "hudsim.contract",
    "Environment": "hudsim.environment",
    "Episode": "hudsim.bridge",
    "EvaluationResult": "hudsim.graders",
    "Feature": "hudsim.contract",
    "Job": "hudsim.eval",
    "LocalRuntime": "hudsim.eval",
    "Model": "hudsim.robot.model",
    "Observation": "hudsim.robot.bridge",
    "RobotAgent": "hudsim.robot.agent",
    "RobotBridge": "hudsim.robot.bridge",
    "RobotClient": "hudsim.robot.client",
    "RobotEndpoint": "hudsim.robot.endpoint",
    "Run": "hudsim.eval",
    "Runtime": "hudsim.eval",
    "Shared": "hudsim.eval",
    "SubScore": "hudsim.graders",
    "SubprocessRuntime": "hudsim.eval",
    "Task": "hudsim.eval",
    "Taskset": "hudsim.eval",
    "Trace": "hudsim.eval",
    "VectorRobotBridge": "hudsim.robot.bridge",
    "combine": "hudsim.graders",
    "load_environment": "hudsim.environment",
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
