from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from hudsim.bridges.mjcf import MjcfBridge, whole_substeps
from hudsim.bridges.rendering import gl_available, gl_problem
from hudsim.errors import SimDiverged, UnknownName, UsageError
from hudsim.testing import BridgeConformance

needs_gl = pytest.mark.skipif(not gl_available(), reason=str(gl_problem()))

_WORLD = """<mujoco model="gantry">
  <option timestep="0.002"/>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="front" pos="0 -2 1" xyaxes="1 0 0 0 0.5 1"/>
    <geom type="plane" size="2 2 0.1"/>
    <body pos="0 0 1">
      <joint name="lift" type="slide" axis="0 0 1" range="-0.3 0.3"/>
      <geom size="0.1" mass="1"/>
      <site name="tip" pos="0 0 0.2"/>
      <body pos="0.3 0 0">
        <joint name="turn" axis="0 1 0" damping="0.1"/>
        <geom size="0.05" mass="0.2"/>
      </body>
    </body>
    <body name="ball" pos="0.5 0.5 0.5"><freejoint name="loose"/><geom size="0.05"/></body>
  </worldbody>
  <actuator>
    <position name="lift" joint="lift" kp="500" kv="40" ctrlrange="-0.3 0.3"/>
    <motor name="turn" joint="turn" ctrllimited="false"/>
    <velocity name="spin" joint="turn" kv="0.1" ctrlrange="-1 1"/>
    <intvelocity name="creep" joint="turn" kp="1" actrange="-1 1" ctrlrange="-1 1"/>
  </actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/><jointpos name="turned" joint="turn"/></sensor>
  <keyframe><key name="high" qpos="0.2 0 0.5 0.5 0.5 1 0 0 0" ctrl="0.2 0 0 0"/></keyframe>
</mujoco>"""

_THROWN = """<mujoco><option timestep="0.02"/>
<worldbody><body><joint name="a" type="slide"/><geom size="0.1" mass="0.001"/></body></worldbody>
<actuator><motor name="a" joint="a" gear="1e12"/></actuator></mujoco>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gantry.xml"
    path.write_text(_WORLD)
    return path


def _first(bridge: MjcfBridge, name: str) -> Any:
    return bridge.get_observation().data[name][0]


def test_actuators_are_the_action_with_their_names_limits_and_holds(file: Path) -> None:
    bridge = MjcfBridge(file, cameras=False)
    action = bridge.contract.action
    assert bridge.contract.robot_type == "gantry"
    assert list(action.names or ()) == ["lift", "turn", "spin", "creep"]
    assert action.limits is not None
    assert list(action.limits.min) == [-0.3, None, -1, -1]
    assert list(action.limits.max) == [0.3, None, 1, 1]
    assert list(action.hold or ()) == ["repeat", "zero", "zero", "zero"]
    assert action.out_of_range == "clip"


def test_scalar_joints_and_sensors_are_the_state_and_a_loose_body_is_privileged(file: Path) -> None:
    bridge = MjcfBridge(file, cameras=False, privileged=True)
    features = bridge.contract.observations
    assert list(features["observation/state"].names or ()) == ["lift", "turn", "lift.vel", "turn.vel"]
    assert list(features["observation/state"].unit or ()) == ["m", "rad", "m/s", "rad/s"]
    assert list(features["observation/sensors"].names or ()) == ["tip.0", "tip.1", "tip.2", "turned"]
    assert features["observation/physics"].privileged
    assert "observation/physics" not in MjcfBridge(file, cameras=False).contract.observations
    bridge.reset(seed=0)
    shown = bridge.get_observation().data
    checked = bridge.contract.compile().observation({name: array[0] for name, array in shown.items()})
    assert checked["observation/physics"].dtype == np.float64
    assert len(checked["observation/physics"]) == mujoco.mj_stateSize(bridge.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)


def test_a_tick_is_the_control_period_and_what_is_shown_is_current(file: Path) -> None:
    bridge = MjcfBridge(file, control_rate=50, cameras=False)
    bridge.reset()
    for _ in range(100):
        bridge.step(np.array([[0.1, 0, 0, 0]], np.float32))
    assert bridge.data.time == pytest.approx(2.0)
    lift = _first(bridge, "observation/state")[0]
    assert lift == pytest.approx(0.1, abs=0.05)
    assert _first(bridge, "observation/sensors")[2] == pytest.approx(1.2 + lift, abs=1e-6)


def test_a_rate_that_is_no_whole_number_of_timesteps_names_the_nearest() -> None:
    assert whole_substeps(50, 0.002) == 10
    assert whole_substeps(500, 0.002) == 1
    assert whole_substeps(62.5, 0.002) == 8
    with pytest.raises(UsageError, match=r"60 Hz is 8.333 timesteps of 0.002 s; .*: 62.5 or 55.5556 Hz"):
        whole_substeps(60, 0.002)
    with pytest.raises(UsageError, match=r": 500 Hz"):
        whole_substeps(1000, 0.002)
    with pytest.raises(UsageError, match="more than 0"):
        whole_substeps(0, 0.002)


def test_the_start_is_the_same_whatever_was_played_before(file: Path) -> None:
    bridge = MjcfBridge(file, cameras=False, keyframe="high", privileged=True)
    bridge.reset(seed=1)
    fresh = _first(bridge, "observation/physics").copy()
    assert fresh[1] == 0.2
    for _ in range(20):
        bridge.step(np.ones((1, 4), np.float32))
    bridge.reset(seed=1)
    assert np.array_equal(_first(bridge, "observation/physics"), fresh)
    with pytest.raises(UnknownName, match="no keyframe 'hihg'; did you mean 'high'"):
        MjcfBridge(file, cameras=False, keyframe="hihg")


def test_a_time_limit_is_truncation(file: Path) -> None:
    bridge = MjcfBridge(file, cameras=False, max_ticks=2)
    bridge.reset()
    ends = []
    for _ in range(2):
        bridge.step(np.zeros((1, 4), np.float32))
        shown = bridge.get_observation()
        assert shown.truncated is not None
        assert shown.terminated is not None
        ends.append((bool(shown.terminated[0]), bool(shown.truncated[0])))
    assert ends == [(False, False), (False, True)]


def test_a_divergence_is_seen_and_leaves_no_log_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "thrown.xml"
    file.write_text(_THROWN)
    bridge = MjcfBridge(file, cameras=False)
    bridge.reset()
    with pytest.raises(SimDiverged, match=r"diverged at tick 1 \(0\.020 s\)"):
        bridge.step(np.ones((1, 1), np.float32))
    assert [path.name for path in tmp_path.iterdir()] == ["thrown.xml"]
    bridge.reset()
    bridge.step(np.zeros((1, 1), np.float32))


def test_planners_get_the_model_as_written_unless_it_needs_other_files(file: Path, tmp_path: Path) -> None:
    assert MjcfBridge(file, cameras=False).capability_params() == {"model": _WORLD}
    part = tmp_path / "part.xml"
    part.write_text(_WORLD)
    whole = tmp_path / "whole.xml"
    whole.write_text('<mujoco><include file="part.xml"/></mujoco>')
    merged = MjcfBridge(whole, cameras=False).capability_params()["model"]
    assert mujoco.MjModel.from_xml_string(merged).nu == 4
    (tmp_path / "tetra.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n")
    meshed = tmp_path / "meshed.xml"
    meshed.write_text(
        _WORLD.replace("<worldbody>", '<asset><mesh name="t" file="tetra.obj"/></asset><worldbody>').replace(
            '<geom size="0.1" mass="1"/>', '<geom type="mesh" mesh="t" mass="1"/>'
        )
    )
    assert MjcfBridge(meshed, cameras=False).capability_params() == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<mujoco><worldbody><geom/></worldbody></mujoco>", "size"),
        ("<mujoco", "XML"),
        ('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', "no actuator"),
    ],
)
def test_a_file_that_is_no_world_is_refused_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "broken.xml"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"broken\.xml: .*{says}"):
        MjcfBridge(file)
    with pytest.raises(UsageError, match=r"no MJCF file '.*missing\.xml'"):
        MjcfBridge(tmp_path / "missing.xml")


@needs_gl
def test_named_cameras_are_images_and_do_not_change_the_physics(file: Path) -> None:
    seeing = MjcfBridge(file, width=64, height=48, privileged=True)
    blind = MjcfBridge(file, cameras=False, privileged=True)
    assert seeing.contract.observations["observation/front"].shape == (48, 64, 3)
    for bridge in (seeing, blind):
        bridge.reset(seed=3)
        for _ in range(10):
            bridge.step(np.full((1, 4), 0.1, np.float32))
            bridge.get_observation()
    assert np.array_equal(_first(seeing, "observation/physics"), _first(blind, "observation/physics"))
    assert _first(seeing, "observation/front").std() > 1
    seeing.close()
    free = MjcfBridge(file, cameras=["free"], width=64, height=48)
    free.reset()
    assert _first(free, "observation/free").std() > 1
    free.close()


def test_a_camera_may_not_take_the_name_of_the_state(tmp_path: Path) -> None:
    if not gl_available():
        pytest.skip(str(gl_problem()))
    file = tmp_path / "named.xml"
    file.write_text(_WORLD.replace('name="front"', 'name="state"'))
    with pytest.raises(UsageError, match="a camera called 'state'"):
        MjcfBridge(file)


class TestConformance(BridgeConformance):
    random = False

    @pytest.fixture(autouse=True)
    def _file(self, file: Path) -> None:
        self.file = file

    def make_bridge(self, **options: Any) -> MjcfBridge:
        return MjcfBridge(self.file, cameras=gl_available(), width=64, height=48, max_ticks=10, **options)
