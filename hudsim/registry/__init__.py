"""The registry: what the names that people type stand for. It imports a world or policy only when one is asked for."""

from __future__ import annotations

from hudsim.registry.entry import Entry
from hudsim.registry.names import FORMS, policies, worlds
from hudsim.registry.policy_choice import Policy, policy
from hudsim.registry.world_spec import is_url, world

__all__ = ["FORMS", "Entry", "Policy", "is_url", "policies", "policy", "world", "worlds"]
