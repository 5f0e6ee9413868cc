from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium import spaces

from hudsim.bridges.gym_env import GymBridge
from hudsim.bridges.gym_make import control_rate_of, make_env, mujoco_parts
from hudsim.bridges.rendering import gl_available, gl_problem, is_software
from hudsim.errors import ContractError, SimDiverged, UnknownName, UsageError
from hudsim.testing import BridgeConformance

needs_gl = pytest.mark.skipif(not gl_available(), reason=str(gl_problem()))


def _edged(shape: tuple[int, ...], value: int) -> Any:
    image = np.full(shape, value, np.uint8)
    image[0] = 255
    return image


class Reusing(gym.Env[Any, Any]):
    """Shows how often it was stepped, in one buffer that it writes over; ends at step 3 and is a success at step 2."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12.5}  # noqa: RUF012  as Gymnasium has it

    def __init__(self, action_space: spaces.Space[Any] | None = None, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Dict(
            {
                "image": spaces.Box(0, 255, (16, 24, 3), np.uint8),
                "state": spaces.Dict({"count": spaces.Box(-np.inf, np.inf, (2,), np.float32)}),
            }
        )
        self.action_space = spaces.Discrete(3, start=-1) if action_space is None else action_space
        self.render_mode = render_mode
        self._shown = {"image": np.zeros((16, 24, 3), np.uint8), "state": {"count": np.zeros(2, np.float32)}}
        self.taken: list[Any] = []
        self.count = 0

    def _look(self) -> Any:
        self._shown["image"][:] = _edged((16, 24, 3), self.count)  # type: ignore[index]
        self._shown["state"]["count"][0] = self.count  # type: ignore[index]
        return self._shown

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        self._shown["state"]["count"][1] = self.np_random.random() + (options or {}).get("add", 0)  # type: ignore[index]
        return self._look(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.count += 1
        return self._look(), 0.5, self.count == 3, False, {"is_success": self.count == 2}

    def render(self) -> Any:
        return _edged((20, 30, 3), self.count)


def make(**made_with: Any) -> gym.Env[Any, Any]:
    return Reusing(**made_with)


def _play(bridge: GymBridge, ticks: int = 5) -> dict[str, Any]:
    checks = bridge.contract.compile()
    bridge.reset(seed=3)
    shown = bridge.get_observation()
    for tick in range(ticks):
        checks.observation({name: array[0] for name, array in shown.data.items()})
        action, _ = checks.action(bridge.contract.example(tick)[1])
        bridge.step(action[np.newaxis])
        shown = bridge.get_observation()
        assert shown.terminated is not None
        if shown.terminated[0]:
            break
    return checks.observation({name: array[0] for name, array in shown.data.items()})


@pytest.mark.parametrize(
    ("env", "rate"),
    [("HalfCheetah-v5", 20), ("Ant-v5", 20), ("Pusher-v5", 20), ("InvertedPendulum-v5", 25), ("CartPole-v1", 50)],
)
def test_gymnasiums_own_run_at_their_own_rate(env: str, rate: float) -> None:
    bridge = GymBridge(env)
    assert bridge.contract.control_rate == rate
    assert bridge.contract.robot_type == env
    _play(bridge)
    bridge.close()


def test_a_board_game_of_discrete_states_runs() -> None:
    bridge = GymBridge("FrozenLake-v1", make_args={"is_slippery": False})
    assert _play(bridge)["observation/state"].dtype == np.int64
    assert bridge.contract.control_rate == 4
    bridge.close()


def test_terminated_truncated_reward_and_success_stay_apart() -> None:
    bridge = GymBridge(Reusing(), max_ticks=4)
    bridge.reset(seed=0)
    assert bridge.get_observation().success is None
    seen = []
    for _ in range(4):
        bridge.step(np.array([1]))
        shown = bridge.get_observation()
        flags = (shown.terminated, shown.truncated, shown.success, shown.reward)
        seen.append(tuple(None if flag is None else flag[0].item() for flag in flags))
    assert seen == [
        (False, False, False, 0.5),
        (False, False, True, 0.5),
        (True, False, False, 0.5),
        (False, True, False, 0.5),
    ]


def test_a_time_limit_is_no_termination() -> None:
    bridge = GymBridge("CartPole-v1", make_args={"max_episode_steps": 2})
    bridge.reset(seed=0)
    bridge.step(np.array([0]))
    bridge.step(np.array([1]))
    shown = bridge.get_observation()
    assert shown.terminated is not None
    assert shown.truncated is not None
    assert (bool(shown.terminated[0]), bool(shown.truncated[0])) == (False, True)
    bridge.close()


def test_what_was_shown_is_not_written_over() -> None:
    bridge = GymBridge(Reusing())
    bridge.reset(seed=0)
    kept = []
    for _ in range(3):
        bridge.step(np.array([0]))
        kept.append(bridge.get_observation().data)
    bridge.reset(seed=1)
    assert [int(data["observation/image"][0, 1, 0, 0]) for data in kept] == [1, 2, 3]
    assert [int(data["observation/state/count"][0, 0]) for data in kept] == [1, 2, 3]


def test_seed_and_options_make_the_start_whatever_was_played_before() -> None:
    bridge = GymBridge(Reusing())
    starts = []
    for seed, options in ((5, None), (6, None), (None, None), (5, None), (None, None), (5, {"add": 10})):
        bridge.reset(seed=seed, options=options)
        starts.append(float(bridge.get_observation().data["observation/state/count"][0, 1]))
        bridge.step(np.array([0]))
    assert starts[0] == starts[3] != starts[1]
    assert starts[2] == starts[4]
    assert starts[5] == pytest.approx(starts[0] + 10)


@pytest.mark.parametrize(
    ("space", "sent"),
    [
        (spaces.Discrete(3, start=-1), np.array(-1)),
        (spaces.Discrete(1 << 40), np.array((1 << 40) - 1)),
        (spaces.MultiDiscrete([2, 5], start=[3, -2]), np.array([4, 2])),
        (spaces.MultiBinary(3), np.array([1, 0, 1])),
        (spaces.Box(-1, 1, (2, 2), np.float64), np.array([[0.1, 0.2], [0.3, 0.4]])),
        (spaces.Box(0, 9, (2,), np.int32), np.array([0, 9])),
    ],
)
def test_an_action_arrives_as_its_space_contains_it(space: spaces.Space[Any], sent: Any) -> None:
    env = Reusing(space)
    bridge = GymBridge(env)
    checks = bridge.contract.compile()
    action, clipped = checks.action(sent)
    assert clipped is None
    bridge.reset(seed=0)
    bridge.step(action[np.newaxis])
    assert space.contains(env.taken[0])
    assert np.array_equal(env.taken[0], sent)


def test_an_action_that_is_not_whole_is_refused() -> None:
    checks = GymBridge(Reusing()).contract.compile()
    with pytest.raises(ContractError, match="action"):
        checks.action(np.array(0.9999), lenient=True)
    with pytest.raises(ContractError, match="action"):
        checks.action(np.array(2))


@pytest.mark.parametrize(
    "observation",
    [
        spaces.Text(5),
        spaces.Dict({"said": spaces.Text(5), "state": spaces.Box(0, 1, (2,))}),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Box(0, 255, (3, 64, 48), np.uint8),
        spaces.Dict({"reward": spaces.Box(0, 1, (2,))}),
    ],
)
def test_what_cannot_be_carried_is_refused_by_name(observation: spaces.Space[Any]) -> None:
    env = Reusing()
    env.observation_space = observation
    with pytest.raises(ContractError, match="observation/"):
        GymBridge(env)


def test_a_file_and_a_module_give_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import gymnasium as gym\nimport numpy as np\nfrom pathlib import Path\n\n"
        "class Lamp(gym.Env):\n"
        "    observation_space = gym.spaces.Dict({'eye': gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)})\n"
        "    action_space = gym.spaces.Discrete(2)\n"
        "    def __init__(self, level=0):\n        self.level = level\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        return {'eye': np.full((16, 16, 3), self.level, np.uint8)}, {}\n"
        "    def step(self, action):\n        return {**self.reset()[0]}, 0.0, False, False, {}\n\n"
        "def bright():\n    return Lamp(level=200)\n"
    )
    (tmp_path / "lamps.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    for env, args, level in (
        (f"{tmp_path}/lamps.py:bright", {}, 200),
        ("lamps:Lamp", {"level": 7}, 7),
    ):
        bridge = GymBridge(env, make_args=args)
        bridge.reset(seed=0)
        assert bridge.contract.features["observation/eye"].type == "rgb"
        assert bridge.contract.control_rate == 50
        assert bridge.get_observation().data["observation/eye"].max() == level
    with pytest.raises(UnknownName, match=r"no factory in lamps 'brigth'; did you mean 'bright'.*: Lamp, bright$"):
        GymBridge("lamps:brigth")


@pytest.mark.parametrize(
    ("env", "options", "says"),
    [
        ("HalfCheeta-v5", {}, "HalfCheetah"),
        ("no_such_module_here:make", {}, "No module named"),
        ("no/such/file.py:make", {}, "no file"),
        ("CartPole-v1", {"make_args": {"wings": 2}}, "wings"),
        ("builtins:dict", {}, "expected a gymnasium.Env"),
        ("CartPole-v1", {"width": 64}, "no camera is asked for"),
        ("CartPole-v1", {"camera": "top"}, "only Gymnasium's MuJoCo"),
    ],
)
def test_what_cannot_be_made_is_a_usage_error(env: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        GymBridge(env, **options)


def test_a_camera_is_what_render_draws_at_the_size_asked_for() -> None:
    bridge = GymBridge(Reusing(render_mode="rgb_array"), camera=True)
    assert _play(bridge, 2)["observation/camera"].tolist() == _edged((20, 30, 3), 2).tolist()
    small = GymBridge(Reusing(render_mode="rgb_array"), camera=True, width=10, height=8)
    assert small.contract.features["observation/camera"].shape == (8, 10, 3)
    assert _play(small, 2)["observation/camera"].shape == (8, 10, 3)
    with pytest.raises(UsageError, match="render_mode None"):
        GymBridge(Reusing(), camera=True)


@needs_gl
def test_a_mujoco_environment_without_a_gpu_is_drawn_without_shadows() -> None:
    bridge = GymBridge("HalfCheetah-v5", camera="track", width=96, height=64)
    assert _play(bridge, 2)["observation/camera"].std() > 10
    models, _ = mujoco_parts(bridge._world.env)
    assert len(models) == 1
    assert (models[0].vis.quality.shadowsize == 0) == is_software()
    bridge.close()
    with pytest.raises(UnknownName, match="did you mean 'track'"):
        GymBridge("HalfCheetah-v5", camera="trak")


class Nested(gym.Env[Any, Any]):
    """A MuJoCo environment of another make: its simulation is deep inside, its frames come from mujoco's renderer."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  as Gymnasium has it
    render_mode = "rgb_array"
    dt = 0.08
    observation_space = spaces.Box(-np.inf, np.inf, (1,))
    action_space = spaces.Box(-1, 1, (1,))

    class Holder:
        def __init__(self) -> None:
            body = '<body><joint name="j" type="slide"/><geom size="1"/></body>'
            text = f"<mujoco><worldbody><light/>{body}</worldbody></mujoco>"
            self.model = mujoco.MjModel.from_xml_string(text)
            self.data = mujoco.MjData(self.model)

    def __init__(self) -> None:
        self._sim = self.Holder()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        mujoco.mj_resetData(self._sim.model, self._sim.data)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self._sim.data.qvel[:] = 1e13 * action
        mujoco.mj_step(self._sim.model, self._sim.data)
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def render(self) -> Any:
        return np.full((16, 16, 3), self._sim.model.vis.quality.shadowsize == 0, np.uint8)


def test_a_divergence_inside_any_mujoco_environment_is_seen() -> None:
    bridge = GymBridge(Nested())
    assert bridge.contract.control_rate == 12.5
    bridge.reset(seed=0)
    bridge.step(np.zeros((1, 1), np.float32))
    with pytest.raises(SimDiverged, match="at tick 2"):
        bridge.step(np.ones((1, 1), np.float32))


@needs_gl
def test_a_mujoco_environment_of_another_make_gets_the_fast_profile_too() -> None:
    bridge = GymBridge(Nested(), camera=True)
    bridge.reset(seed=0)
    assert bool(bridge.get_observation().data["observation/camera"].all()) == is_software()


def test_the_rate_comes_from_dt_then_from_the_frames_then_is_fifty() -> None:
    assert control_rate_of(make_env(Nested(), {}, rgb=False)) == 12.5
    assert control_rate_of(Reusing()) == 12.5
    plain = Reusing()
    plain.metadata = {}
    assert control_rate_of(plain) == 50
    assert GymBridge(plain, control_rate=33.3).contract.control_rate == 33.3


def test_another_rate_than_its_dt_is_refused_with_the_environments_own() -> None:
    assert GymBridge(Nested(), control_rate=12.5).contract.control_rate == 12.5
    with pytest.raises(UsageError, match=r"got 50 Hz, but a step of Nested is 0\.08 s, its own rate 12\.5 Hz"):
        GymBridge(Nested(), control_rate=50)


class TestConformance(BridgeConformance):
    def make_bridge(self, **options: Any) -> GymBridge:
        return GymBridge(Reusing(render_mode="rgb_array"), camera=True, **options)


@needs_gl
class TestMujocoConformance(BridgeConformance):
    def make_bridge(self, **options: Any) -> GymBridge:
        return GymBridge("HalfCheetah-v5", camera=True, width=64, height=64, max_ticks=6, **options)
