"""The bundled table-top world: a 7-joint arm with a parallel gripper, and three tasks."""

from __future__ import annotations

from hudsim.bridges.arm.bridge import ArmBridge

__all__ = ["ArmBridge"]
