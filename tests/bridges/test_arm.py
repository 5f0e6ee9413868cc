"""The bundled arm, driven without a server: reset, step, look."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from hudsim.bridges.arm import ArmBridge
from hudsim.bridges.arm.goals import GOALS, Scene
from hudsim.bridges.arm.physics import BatchPhysics, LoopPhysics, Physics
from hudsim.bridges.arm.world import HALF, HOME, NAMES, VELOCITY_LIMITS, World
from hudsim.bridges.rendering import gl_available
from hudsim.errors import SimDiverged, UnknownName, UsageError
from hudsim.testing import BridgeConformance

TASKS = ["reach", "lift", "push"]
ON = np.array([True])

needs_gl = pytest.mark.skipif(not gl_available(), reason="no OpenGL here")
needs_batch = pytest.mark.skipif(
    importlib.util.find_spec("mujoco.batch") is None, reason="this MuJoCo has no mujoco.batch"
)


def arm(task: str = "lift", **options: Any) -> ArmBridge:
    return ArmBridge(task, **{"cameras": False, **options})


def actions(seed: int, ticks: int, like: NDArray[Any]) -> NDArray[np.float32]:
    """A smooth wander of all joints about ``like`` [8], [ticks, 8]."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(0.0, 0.02, (ticks, 8)), axis=0)
    walk[:, 7] = np.abs(walk[:, 7])
    return (like + walk).astype(np.float32)


def start(bridge: ArmBridge, seed: int, slot: int = 0, **task_args: Any) -> NDArray[np.float32]:
    """Reset one slot; its first state [8]."""
    bridge.reset([slot], [seed], **task_args)
    state: NDArray[np.float32] = bridge.get_observation().data["observation/state"][slot]
    return state


@needs_gl
class TestTheArmConforms(BridgeConformance):
    def make_bridge(self, *, num_envs: int = 1, **options: Any) -> ArmBridge:
        return ArmBridge("push", width=64, height=48, num_envs=num_envs, **options)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("privileged", [False, True])
@pytest.mark.parametrize("action", ["joint_pos", "ee_delta"])
def test_what_it_shows_and_takes_is_what_its_contract_says(task: str, privileged: bool, action: str) -> None:
    bridge = arm(task, privileged=privileged, action=action, num_envs=2)
    checks = bridge.contract.compile()
    bridge.reset([0, 1], [3, 4])
    observation = bridge.get_observation()
    assert list(observation.data) == list(bridge.contract.observations)
    for slot in range(2):
        checks.observation({name: array[slot] for name, array in observation.data.items()})
    _, example = bridge.contract.example(seed=1)
    command, _ = checks.action(example)
    bridge.step(np.stack([command, command]), np.array([True, True]))
    for slot in range(2):
        checks.observation({name: array[slot] for name, array in bridge.get_observation().data.items()})


@needs_gl
def test_images_have_the_size_that_was_asked_for() -> None:
    bridge = ArmBridge("lift", width=96, height=64)
    bridge.reset([0], [0])
    data = bridge.get_observation().data
    for camera in ("scene", "wrist"):
        (image,) = data[f"observation/{camera}"]
        assert image.shape == (64, 96, 3)
        assert image.dtype == np.uint8
        assert image.std() > 10  # something is to be seen
        assert bridge.contract.features[f"observation/{camera}"].shape == (64, 96, 3)
    bridge.close()


def test_the_objects_are_hidden_unless_asked_for() -> None:
    shown, hidden = arm("push", privileged=True).contract, arm("push").contract
    assert set(hidden.observations) == {"observation/state", "observation/velocity"}
    extra = set(shown.observations) - set(hidden.observations)
    assert {"observation/object_pos", "observation/object_quat", "observation/target_pos"} < extra
    assert all(shown.features[name].privileged for name in extra)
    assert not any(feature.privileged for feature in hidden.features.values())
    bridge = arm("push")
    bridge.reset([0], [0])
    assert set(bridge.get_observation().data) == set(hidden.observations)


def test_the_limits_are_those_of_the_real_arm() -> None:
    action = arm().contract.action
    assert action.names == NAMES
    assert action.limits is not None
    assert action.limits.max == [2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973, 0.08]
    assert action.limits.min == [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973, 0.0]
    model = World.load("lift").model
    assert model.actuator_forcerange[:7, 1].tolist() == [87, 87, 87, 87, 12, 12, 12]


@pytest.mark.parametrize("task", TASKS)
def test_a_start_is_a_function_of_the_seed_alone(task: str) -> None:
    fresh, used = arm(task, privileged=True), arm(task, privileged=True, num_envs=3)
    first = start(used, 5, slot=1)
    for command in actions(0, 20, first):
        used.step(np.tile(command, (3, 1)), np.array([True, True, True]))
    fresh.reset([0], [9])
    used.reset([2], [9])
    there, here = fresh.get_observation().data, used.get_observation().data
    for name, array in there.items():
        assert array[0].tobytes() == here[name][2].tobytes(), name
    fresh.reset([0], [10])
    assert fresh.get_observation().data["observation/state"][0].tobytes() != here["observation/state"][2].tobytes()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_no_start_penetrates_or_moves(task: str, difficulty: str) -> None:
    bridge = arm(task)
    for seed in range(20):
        start(bridge, seed, difficulty=difficulty)
        data = bridge._physics.data(0)
        mujoco.mj_forward(bridge._world.model, data)
        assert all(data.contact.dist[i] > -0.001 for i in range(data.ncon))
        assert np.abs(bridge._physics.qvel[0]).max() == 0.0
        assert not bridge.get_observation().success[0]  # type: ignore[index]


def test_a_harder_start_lies_further_out() -> None:
    bridge = arm("lift", privileged=True)

    def spread(difficulty: str) -> float:
        places = []
        for seed in range(30):
            bridge.reset([0], [seed], difficulty=difficulty)
            places.append(bridge.get_observation().data["observation/object_pos"][0, :2].copy())
        return float(np.std(places, axis=0).min())

    assert spread("easy") < spread("medium") < spread("hard")


@needs_gl
def test_a_slot_is_the_same_whatever_the_others_do() -> None:
    alone, crowd = (ArmBridge("lift", width=64, height=64, privileged=True, num_envs=n) for n in (1, 4))
    crowd.reset([0, 1, 3], [70, 71, 73])
    first = start(alone, 42)
    crowd.reset([2], [42])
    others = np.random.default_rng(0)
    for tick, command in enumerate(actions(1, 40, first)):
        active = others.random(4) < 0.5
        active[2] = True
        batch = others.uniform(-3, 3, (4, 8)).astype(np.float32)
        batch[2] = command
        if tick % 15 == 7:
            crowd.reset([3], [tick])
        crowd.step(batch, active)
        alone.step(command[np.newaxis], ON)
        one, many = alone.get_observation(), crowd.get_observation()
        for name, array in one.data.items():
            assert array[0].tobytes() == many.data[name][2].tobytes(), (tick, name)
        assert one.reward is not None
        assert many.reward is not None
        assert one.reward[0] == many.reward[2]
    alone.close()
    crowd.close()


@needs_gl
def test_idle_slots_keep_their_picture() -> None:
    bridge = ArmBridge("lift", width=64, height=64, num_envs=2)
    bridge.reset([0, 1], [1, 2])
    before = np.stack(bridge.get_observation().data["observation/scene"])
    for command in actions(3, 15, HOME.tolist() + [0.08]):
        bridge.step(np.tile(command, (2, 1)), np.array([True, False]))
    after = bridge.get_observation().data["observation/scene"]
    assert (after[0] != before[0]).any()
    assert (after[1] == before[1]).all()
    bridge.close()


@needs_batch
@pytest.mark.parametrize("task", TASKS)
def test_the_batch_and_the_loop_give_the_same_numbers(task: str) -> None:
    world = World.load(task)
    physics: list[Physics] = [BatchPhysics(world.model, 3), LoopPhysics(world.model, 3)]
    rng = np.random.default_rng(7)
    at_rest = world.model.qpos0.copy()
    at_rest[world.joints] = [0.0, 0.3, 0.0, -2.05, 0.0, 2.36, 0.785]  # low, so that things touch
    for slot in range(3):
        for each in physics:
            each.reset(slot, at_rest, np.append(at_rest[world.joints], 0.08), np.array([0.5, 0.1, 0.2]))
    for _ in range(60):
        slots = [slot for slot in range(3) if rng.random() < 0.7]
        ctrl = rng.normal(0.0, 0.03, (3, 8))
        for each in physics:
            each.ctrl[:] += ctrl
            each.step(slots, 10)
        for name in ("qpos", "qvel", "ctrl", "site_xpos", "touch"):
            batch, loop = (getattr(each, name) for each in physics)
            assert batch.tobytes() == loop.tobytes(), name


def test_what_is_observed_is_current() -> None:
    bridge = arm("lift")
    for command in actions(5, 10, start(bridge, 0)):
        bridge.step(command[np.newaxis], ON)
    tip = bridge._physics.site_xpos[0, bridge._world.tip].copy()
    data = bridge._physics.data(0)
    mujoco.mj_kinematics(bridge._world.model, data)
    assert tip.tobytes() == data.site_xpos[bridge._world.tip].tobytes()


def test_a_wild_command_moves_no_faster_than_the_arm_can() -> None:
    bridge = arm("reach", privileged=True)
    start(bridge, 0)
    wild = np.array([[2.8, 1.7, -2.8, -0.1, 2.8, 3.7, -2.8, 0.0]], np.float32)
    commands = [bridge.get_observation().data["observation/command"][0]]
    for _ in range(30):
        bridge.step(wild, ON)
        commands.append(bridge.get_observation().data["observation/command"][0])
    moved = np.abs(np.diff(np.array(commands), axis=0))
    assert (moved <= VELOCITY_LIMITS / 50 + 1e-6).all()
    assert moved.max() > 0.04


@pytest.mark.parametrize("axis", range(6))
def test_a_delta_moves_the_tip_as_commanded(axis: int) -> None:
    bridge = arm("reach", action="ee_delta")
    start(bridge, 0, difficulty="easy")
    site = bridge._world.tip

    def pose() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        data = bridge._physics.data(0)
        return data.site_xpos[site].copy(), data.site_xmat[site].reshape(3, 3).copy()

    position, rotation = pose()
    delta = np.zeros((1, 7), np.float32)
    delta[0, axis], delta[0, 6] = 0.005, 0.08
    for _ in range(20):
        bridge.step(delta, ON)
    delta[0, axis] = 0.0
    for _ in range(40):  # the arm catches up
        bridge.step(delta, ON)
    now, turned = pose()
    wanted = np.zeros(6)
    wanted[axis] = 0.1
    vector, quaternion = np.zeros(3), np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, (turned @ rotation.T).ravel())
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    assert np.allclose(np.concatenate([now - position, vector]), wanted, atol=2e-3)


def test_a_zero_delta_holds_still() -> None:
    bridge = arm("reach", action="ee_delta", privileged=True)
    start(bridge, 0)
    before = bridge.get_observation().data["observation/command"].copy()
    for _ in range(50):
        bridge.step(np.array([[0, 0, 0, 0, 0, 0, 0.08]], np.float32), ON)
    assert bridge.get_observation().data["observation/command"].tobytes() == before.tobytes()


def test_a_starved_tick_repeats_targets_and_stops_deltas() -> None:
    assert arm().contract.action.hold == ["repeat"] * 8
    assert arm(action="ee_delta").contract.action.hold == [*["zero"] * 6, "repeat"]


def test_the_time_limit_truncates_and_does_not_terminate() -> None:
    bridge = arm("lift", max_ticks=5)
    first = start(bridge, 0)
    for tick in range(1, 6):
        bridge.step(first[np.newaxis], ON)
        observation = bridge.get_observation()
        assert observation.truncated is not None
        assert observation.terminated is not None
        assert observation.truncated[0] == (tick == 5)
        assert not observation.terminated[0]


def test_divergence_is_an_error_that_names_the_slot_and_spares_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bridge, control = (arm("lift", num_envs=2) for _ in range(2))
    for each in (bridge, control):
        each.reset([0, 1], [0, 1])
    commands = np.tile(np.append(HOME, 0.08), (2, 1)).astype(np.float32)
    broken = bridge._physics.qpos[1].copy()
    broken[0] = 1e15
    bridge._physics.reset(1, broken, bridge._physics.ctrl[1].copy(), None)
    with pytest.raises(SimDiverged, match="slot 1 at tick 1") as caught:
        bridge.step(commands, np.array([True, True]))
    assert caught.value.data["slots"] == [1]
    control.step(commands, np.array([True, True]))
    for name, array in control.get_observation().data.items():
        assert array[0].tobytes() == bridge.get_observation().data[name][0].tobytes()
    bridge.reset([1], [1])
    bridge.step(commands, np.array([False, True]))
    assert np.isfinite(bridge.get_observation().data["observation/state"]).all()
    assert list(tmp_path.iterdir()) == []


def scene(**places: Any) -> Scene:
    far = {"tip": [0.4, 0.0, 0.4], "object": [0.5, 0.0, HALF], "target": [0.6, 0.2, 0.0], "touch": [0.0, 0.0]}
    return Scene(**{**far, **places})


@pytest.mark.parametrize(
    ("task", "places", "success"),
    [
        ("reach", {"tip": [0.6, 0.2, 0.019]}, True),
        ("reach", {"tip": [0.6, 0.2, 0.021]}, False),
        ("lift", {"object": [0.5, 0.0, HALF + 0.101], "touch": [1.0, 1.0]}, True),
        ("lift", {"object": [0.5, 0.0, HALF + 0.099], "touch": [1.0, 1.0]}, False),
        ("lift", {"object": [0.5, 0.0, HALF + 0.101], "touch": [1.0, 0.0]}, False),  # thrown, not held
        ("push", {"object": [0.6, 0.229, HALF]}, True),
        ("push", {"object": [0.6, 0.231, HALF]}, False),
        ("push", {"object": [0.6, 0.2, HALF + 0.05]}, False),  # carried, not pushed
    ],
)
def test_success_is_where_the_task_says(task: str, places: dict[str, Any], success: bool) -> None:
    assert GOALS[task].success(scene(**places)) is success
    assert 0.0 <= GOALS[task].progress(scene(**places)) <= 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "lfit"}, "did you mean 'lift'"),
        ({"action": "joint_vel"}, "joint_pos"),
        ({"control_rate": 30.0}, "29.4118 or 31.25"),
        ({"control_rate": 0.0}, "500 Hz"),
        ({"num_envs": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_words(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ArmBridge(**{"cameras": False, **options})


def test_unknown_difficulty_and_negative_seed_are_refused() -> None:
    bridge = arm()
    with pytest.raises(UnknownName, match="did you mean 'hard'"):
        bridge.reset([0], [0], difficulty="hrad")
    with pytest.raises(UsageError, match="seed -1"):
        bridge.reset([0], [-1])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("action", ["joint_pos", "ee_delta"])
def test_no_legal_command_breaks_the_physics(task: str, action: str) -> None:
    bridge = arm(task, action=action)
    start(bridge, 0)
    limits = bridge.contract.action.limits
    assert limits is not None
    low, high = np.array(limits.min, np.float64), np.array(limits.max, np.float64)
    rng = np.random.default_rng(1)
    command = low.astype(np.float32)
    for tick in range(200):
        if tick % 25 == 0:  # slams into the table, folds up, turns about
            command = np.where(rng.random(len(low)) < 0.5, low, high).astype(np.float32)
        bridge.step(command[np.newaxis], ON)
        assert np.abs(bridge._physics.qvel).max() < 1e3
        assert np.isfinite(bridge.get_observation().reward).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [25.0, 50.0, 100.0])
def test_another_control_rate_keeps_the_physics(rate: float) -> None:
    bridge = arm("reach", control_rate=rate)
    first = start(bridge, 0)
    for _ in range(int(rate)):
        bridge.step(first[np.newaxis], ON)
    assert bridge.contract.control_rate == rate
    assert bridge._physics.data(0).time == pytest.approx(1.0)
