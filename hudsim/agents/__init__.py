"""Agents without a model: the floor, the ceiling and the guess that graded tasks are held against."""

from __future__ import annotations

from hudsim.agents.answer import Answer
from hudsim.agents.noop import Noop
from hudsim.agents.oracle import Oracle
from hudsim.agents.script import Script

__all__ = ["Answer", "Noop", "Oracle", "Script"]
