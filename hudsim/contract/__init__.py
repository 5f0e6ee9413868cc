"""What a world shows, what it takes and how often: the one document that both sides wire themselves from."""

from __future__ import annotations

from hudsim.contract.action import ActionCheck
from hudsim.contract.check import Checks
from hudsim.contract.document import RESERVED_NAMES, SCHEMA, Contract, Success, Timing
from hudsim.contract.feature import Feature, Limits
from hudsim.contract.names import Binding

__all__ = [
    "RESERVED_NAMES",
    "SCHEMA",
    "ActionCheck",
    "Binding",
    "Checks",
    "Contract",
    "Feature",
    "Limits",
    "Success",
    "Timing",
]
