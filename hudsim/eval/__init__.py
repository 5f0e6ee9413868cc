"""Evaluation: tasks in groups, each run graded and kept."""

from __future__ import annotations

from hudsim.environment.task import Task
from hudsim.eval.job import Job
from hudsim.eval.limits import Limits
from hudsim.eval.local_runtime import LocalRuntime
from hudsim.eval.passes import PassAt
from hudsim.eval.protocols import Agent, Provider
from hudsim.eval.rollout import rollout
from hudsim.eval.run import Run
from hudsim.eval.runtime import Runtime
from hudsim.eval.shared import Shared
from hudsim.eval.spread import Spread
from hudsim.eval.store import Store
from hudsim.eval.subprocess_runtime import SubprocessRuntime
from hudsim.eval.taskset import Taskset
from hudsim.eval.trace import Step, Tokens, Trace
from hudsim.graders import Verdict

__all__ = [
    "Agent",
    "Job",
    "Limits",
    "LocalRuntime",
    "PassAt",
    "Provider",
    "Run",
    "Runtime",
    "Shared",
    "Spread",
    "Step",
    "Store",
    "SubprocessRuntime",
    "Task",
    "Taskset",
    "Tokens",
    "Trace",
    "Verdict",
    "rollout",
]
