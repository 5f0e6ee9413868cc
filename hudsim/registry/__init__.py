"""The registry: what the names that people type stand for, imported only when it is asked for."""

from __future__ import annotations

from hudsim.registry.agent_choice import agent
from hudsim.registry.entry import Entry
from hudsim.registry.names import FORMS, agents, environments, policies, worlds
from hudsim.registry.policy_choice import Policy, policy
from hudsim.registry.source import Source, taskset
from hudsim.registry.world_spec import is_url, world

__all__ = [
    "FORMS",
    "Entry",
    "Policy",
    "Source",
    "agent",
    "agents",
    "environments",
    "is_url",
    "policies",
    "policy",
    "taskset",
    "world",
    "worlds",
]
