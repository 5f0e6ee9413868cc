"""The environment ``calc`` with the variants to measure with: none of them breaks a line that training has broken."""

from __future__ import annotations

from hudsim.coding_envs.calc.tasks import env, fixes
from hudsim.coding_envs.calc.variant import HELD_OUT
from hudsim.eval import Taskset

__all__ = ["env", "tasks"]

tasks = Taskset("calc-held-out", fixes(HELD_OUT))
