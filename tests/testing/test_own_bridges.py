"""The project's own worlds through the kit that users have for theirs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from hudsim.bridges import testcard
from hudsim.bridges.arm import ArmBridge
from hudsim.bridges.gl import gl_problem
from hudsim.bridges.gym_env import GymBridge
from hudsim.bridges.pendulum import PendulumBridge
from hudsim.robot.bridge import Array, RobotBridge
from hudsim.testing import BridgeConformance

# What one bridge leaves in OpenGL and its memory is one worker's.
pytestmark = pytest.mark.xdist_group("own-bridges")

needs_gl = pytest.mark.skipif(gl_problem() is not None, reason="no OpenGL here")


class TestTestCard(BridgeConformance):
    def make_bridge(self) -> RobotBridge:
        return testcard.TestCardBridge(width=64, height=48, max_ticks=30)

    def recognise(self, image: Array) -> str:
        return testcard.recognise(image)


class TestTestCardVector(BridgeConformance):
    def make_bridge(self, num_envs: int = 1) -> RobotBridge:
        return testcard.TestCardVectorBridge(num_envs=num_envs, width=64, height=48, max_ticks=30)

    def recognise(self, image: Array) -> str:
        return testcard.recognise(image)


class TestPendulum(BridgeConformance):
    def make_bridge(self) -> RobotBridge:
        return PendulumBridge(cameras=False)


@needs_gl
class TestPendulumWithItsCamera(BridgeConformance):
    def make_bridge(self) -> RobotBridge:
        return PendulumBridge(width=64, height=48)


class TestCartPole(BridgeConformance):
    def make_bridge(self) -> RobotBridge:
        return GymBridge("CartPole-v1")


class TestHalfCheetah(BridgeConformance):
    def make_bridge(self) -> RobotBridge:
        return GymBridge("HalfCheetah-v5", max_ticks=50)


class ArmConformance(BridgeConformance):
    options: ClassVar[dict[str, Any]] = {}

    def make_bridge(self, num_envs: int = 1) -> RobotBridge:
        return ArmBridge(num_envs=num_envs, max_ticks=40, **self.options)


class TestArmReach(ArmConformance):
    options: ClassVar[dict[str, Any]] = {"task": "reach", "cameras": False}


class TestArmLift(ArmConformance):
    options: ClassVar[dict[str, Any]] = {"task": "lift", "cameras": False, "privileged": True}


class TestArmPushByDeltas(ArmConformance):
    options: ClassVar[dict[str, Any]] = {"task": "push", "cameras": False, "action": "ee_delta"}


@needs_gl
class TestArmWithCameras(ArmConformance):
    options: ClassVar[dict[str, Any]] = {"task": "lift", "width": 64, "height": 48}
