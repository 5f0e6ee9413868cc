"""Environments: what is there to work on, the tasks to be done there, and the control channel to both."""

from __future__ import annotations

from hudsim.capability import Capability
from hudsim.environment.answer import Answer
from hudsim.environment.attached import Attached
from hudsim.environment.client import ControlClient
from hudsim.environment.environment import Environment
from hudsim.environment.forwarder import Forwarder
from hudsim.environment.load import load_environment
from hudsim.environment.server import EnvironmentServer, serve
from hudsim.environment.task import Task
from hudsim.environment.template import Template

__all__ = [
    "Answer",
    "Attached",
    "Capability",
    "ControlClient",
    "Environment",
    "EnvironmentServer",
    "Forwarder",
    "Task",
    "Template",
    "load_environment",
    "serve",
]
