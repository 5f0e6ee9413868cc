"""The environment ``calc`` with all variants to train on."""

from __future__ import annotations

from hudsim.coding_envs.calc.tasks import env, fixes
from hudsim.coding_envs.calc.variant import TRAINING
from hudsim.eval import Taskset

__all__ = ["env", "tasks"]

tasks = Taskset("calc-train", fixes(TRAINING))
