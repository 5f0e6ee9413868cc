"""``ArmBridge``: the table-top arm as a world of any number of slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.arm.deltas import DeltaControl
from hudsim.bridges.arm.goals import Scene, find_goal, find_ranges
from hudsim.bridges.arm.physics import make_physics
from hudsim.bridges.arm.spaces import ACTIONS, contract_document
from hudsim.bridges.arm.starts import Starter
from hudsim.bridges.arm.world import CAMERAS, HALF, HOME, NAMES, VELOCITY_LIMITS, World, arm_mjcf, substeps
from hudsim.bridges.rendering import Cameras, apply_profile, gl_problem
from hudsim.contract import Contract
from hudsim.errors import SimDiverged, UnknownName, UsageError
from hudsim.robot.bridge import Array, Observation, VectorRobotBridge

__all__ = ["ArmBridge"]

_HELD = 0.2  # s that success must last to end the episode
_DIVERGED = 1e6  # m, rad and their rates: no arm is there


class ArmBridge(VectorRobotBridge):
    """A 7-joint arm with a parallel gripper at a table; 500 Hz physics.

    task
        ``reach`` (tip to within 2 cm of the marker), ``lift`` (cube 10 cm up, held), ``push`` (cube to within
        3 cm of the disc). An episode terminates when success has held for 0.2 s.
    action
        ``joint_pos``: targets of the seven joints [rad] and the gripper's opening [m]. ``ee_delta``: what to add to
        the tip's commanded pose this tick [m, rad, along the base's axes], and the opening. Both follow at the arm's
        own velocity limits at most.
    width, height, cameras
        Size of the images; whether there are any.
    privileged
        Adds what a real robot would not have: poses of cube and target, the commands being followed.
    num_envs
        Slots; each is the same bit for bit whatever the others do.
    control_rate
        Hz; a divisor of the physics' 500.
    max_ticks
        When an episode is cut off. None: the task's own (4, 8 and 12 s).

    ``reset`` takes ``difficulty``: ``easy``, ``medium`` or ``hard``, how far starts vary.
    An episode's record has its parts in ``info``: how far each step of the task ever was, 0 … 1 (lift: ``reached``,
    ``grasped``, ``lifted``, ``held``; see each goal's ``parts``), all 1 once success has held.
    Raises :class:`~hudsim.errors.UsageError` for what cannot be, also for cameras without OpenGL.
    """

    contract: Contract

    def __init__(
        self,
        task: str = "lift",
        action: str = "joint_pos",
        width: int = 224,
        height: int = 224,
        cameras: bool = True,
        privileged: bool = False,
        num_envs: int = 1,
        control_rate: float = 50.0,
        max_ticks: int | None = None,
    ) -> None:
        self._goal = find_goal(task)
        if action not in ACTIONS:
            raise UnknownName("action", action, ACTIONS)
        if num_envs < 1:
            raise UsageError(f"num_envs {num_envs}; at least 1")
        if cameras and (problem := gl_problem()) is not None:
            raise UsageError(problem)
        self._world = World.load(task)
        self._limits = self._world.limits
        self._substeps = substeps(control_rate)
        self._deltas = DeltaControl() if action == "ee_delta" else None
        self._starter = Starter(self._world, self._goal)
        self._physics = make_physics(self._world.model, num_envs)
        self._privileged = privileged
        self._step_limits = VELOCITY_LIMITS / control_rate
        self._held_ticks = max(1, round(_HELD * control_rate))
        self._max_ticks = max_ticks if max_ticks is not None else round(self._goal.seconds * control_rate)
        self._size = (width, height) if cameras else None
        self._cameras: Cameras | None = None
        self._rate = control_rate
        self.num_envs = num_envs
        self.contract = Contract.load(
            contract_document(
                self._world, action=action, control_rate=control_rate, size=self._size, privileged=privileged
            )
        )
        self._make_books(num_envs)

    def _make_books(self, n: int) -> None:
        """What is kept of each slot's episode."""
        self._targets = np.zeros((n, 3))
        self._command_velocity = np.zeros((n, 8))
        self._ticks = np.zeros(n, np.int64)
        self._held = np.zeros(n, np.int64)
        self._progress = np.zeros(n)
        self._reward = np.zeros(n)
        self._success = np.zeros(n, np.bool_)
        self._first = [self._scene(slot) for slot in range(n)]
        self._parts: list[dict[str, float]] = [{} for _ in range(n)]
        self._changed = np.ones(n, np.bool_)  # since its cameras were rendered

    def reset(  # type: ignore[override]
        self, slots: Sequence[int], seeds: Sequence[int | None], *, difficulty: str = "medium"
    ) -> list[str]:
        ranges = find_ranges(difficulty)
        for slot, seed in zip(slots, seeds, strict=True):
            state = self._starter.draw(seed, ranges)
            self._targets[slot] = state.target
            self._physics.reset(slot, state.qpos, state.ctrl, state.target)
            self._command_velocity[slot] = 0.0
            self._ticks[slot] = self._held[slot] = 0
            self._reward[slot] = 0.0
            self._first[slot] = scene = self._scene(slot)
            self._parts[slot] = {**self._goal.parts(scene, scene), "held": 0.0}
            self._progress[slot] = self._goal.progress(scene)
            self._success[slot] = self._goal.success(scene)
            self._changed[slot] = True
        return [self._goal.prompt] * len(slots)

    def step(self, action: Array, active: NDArray[np.bool_]) -> None:  # type: ignore[override]
        """One tick. Raises :class:`~hudsim.errors.SimDiverged`, ``data["slots"]`` saying which; the others are fine."""
        slots = [int(slot) for slot in np.flatnonzero(active)]
        for slot in slots:
            self._command(slot, np.asarray(action[slot], np.float64))
        self._physics.step(slots, self._substeps)
        diverged = [slot for slot in slots if not self._account(slot)]
        if diverged:
            raise SimDiverged(
                f"the arm's physics left the finite numbers in slot {', '.join(map(str, diverged))} "
                f"at tick {int(self._ticks[diverged[0]])}",
                slots=diverged,
            )

    def _command(self, slot: int, action: NDArray[np.float64]) -> None:
        """Set a slot's controls: the action's targets, as far as the arm's velocity limits let them move in a tick."""
        ctrl = self._physics.ctrl[slot]
        if self._deltas is None:
            wanted = action
        else:
            wanted = np.append(self._deltas.target(ctrl[:7], action[:6]), action[6])
        way = np.clip(wanted, *self._limits) - ctrl
        move = np.clip(way, -self._step_limits, self._step_limits)
        ctrl += move
        self._command_velocity[slot] = move * self._rate

    def _account(self, slot: int) -> bool:
        """Bring a slot's books up to date after a tick. False: its physics has diverged."""
        self._ticks[slot] += 1
        state = np.concatenate([self._physics.qpos[slot], self._physics.qvel[slot]])
        if not np.all(np.abs(state) < _DIVERGED):
            return False
        self._changed[slot] = True
        scene = self._scene(slot)
        success = self._goal.success(scene)
        progress = self._goal.progress(scene)
        self._held[slot] = self._held[slot] + 1 if success else 0
        finished = self._held[slot] == self._held_ticks
        self._reward[slot] = (progress - self._progress[slot]) / 2 + (0.5 if finished else 0.0)
        self._progress[slot], self._success[slot] = progress, success
        self._note_parts(slot, scene)
        return True

    def _note_parts(self, slot: int, scene: Scene) -> None:
        """Keep the best that each part of the task ever was; with the last tick of the hold all are done."""
        parts, held = self._parts[slot], int(self._held[slot]) / self._held_ticks
        now = {**self._goal.parts(self._first[slot], scene), "held": held}
        for name, value in now.items():
            parts[name] = 1.0 if held >= 1.0 else max(parts.get(name, 0.0), value)

    def _scene(self, slot: int) -> Scene:
        """In plain floats and one slot at a time: vector arithmetic may round differently with the slots' number."""
        physics, world = self._physics, self._world
        target = self._targets[slot].tolist()
        return Scene(
            tip=physics.site_xpos[slot, world.tip].tolist(),
            object=target if world.object is None else physics.qpos[slot, world.object][:3].tolist(),
            target=target,
            touch=physics.touch[slot].tolist(),
        )

    def get_observation(self) -> Observation:
        data: dict[str, Array] = {}
        if self._size is not None:
            data |= self._render(self._size)
        data["observation/state"] = self._joint_vectors(self._physics.qpos)
        data["observation/velocity"] = self._joint_vectors(self._physics.qvel)
        if self._privileged:
            data |= self._privileged_data()
        terminated = self._held >= self._held_ticks
        return Observation(
            data,
            terminated=terminated,
            truncated=(self._ticks >= self._max_ticks) & ~terminated,
            reward=self._reward.copy(),
            success=self._success.copy(),
        )

    def _joint_vectors(self, source: NDArray[np.float64]) -> Array:
        """Seven joints and the opening, float32 [N, 8], from qpos or qvel (the arm comes first in both)."""
        opening = source[:, self._world.fingers].sum(axis=1, keepdims=True)
        return np.concatenate([source[:, self._world.joints], opening], axis=1).astype(np.float32)

    def _privileged_data(self) -> dict[str, Array]:
        data = {
            "observation/command": self._physics.ctrl.astype(np.float32),
            "observation/command_velocity": self._command_velocity.astype(np.float32),
        }
        if self._world.object is not None:
            pose = self._physics.qpos[:, self._world.object].astype(np.float32)
            data["observation/object_pos"], data["observation/object_quat"] = pose[:, :3], pose[:, 3:]
        if self._world.target:
            data["observation/target_pos"] = self._targets.astype(np.float32)
        return data

    def _render(self, size: tuple[int, int]) -> dict[str, Any]:
        """The images of all slots, N of [H, W, 3] a camera; only those that changed are drawn anew.

        One that did not change has not been stepped, so that nobody is shown it.
        """
        width, height = size
        if self._cameras is None:
            apply_profile(self._world.model)
            self._cameras = Cameras(self._world.model, CAMERAS, width, height)
        features = {name: f"observation/{name}" for name in CAMERAS}
        images = {feature: [self.out(feature, slot) for slot in range(self.num_envs)] for feature in features.values()}
        for slot in map(int, np.flatnonzero(self._changed)):
            data = self._physics.data(slot)
            for name, feature in features.items():
                self._cameras.render(data, name, images[feature][slot])
        self._changed[:] = False
        return images

    def results(self, slot: int) -> dict[str, Any]:
        return dict(self._parts[slot])

    def capability_params(self) -> dict[str, Any]:
        """What a planner needs to know of the arm: its MJCF alone, joint names, rest posture, velocity limits."""
        return {
            "task": self._goal.name,
            "arm": {
                "mjcf": arm_mjcf(),
                "tip": "tip",
                "joints": NAMES,
                "home": HOME.tolist(),
                "velocity_limits": VELOCITY_LIMITS.tolist(),
                "object_half_size": HALF,
            },
        }

    def close(self) -> None:
        if self._cameras is not None:
            self._cameras.close()
            self._cameras = None
