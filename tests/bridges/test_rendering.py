from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import mujoco
import numpy as np
import pytest

from hudsim.bridges.rendering import Cameras, apply_profile, camera_names, gl_available, gl_problem, is_software
from hudsim.errors import UnknownName, UsageError

_SCENE = """<mujoco>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    <light pos="0 0 3" dir="0 0 -1"/>
    <camera name="top" pos="0 0 2"/>
    <camera name="side" pos="0 -2 0.2" xyaxes="1 0 0 0 0 1"/>
    <geom type="plane" size="1 1 0.1" rgba="0.1 0.1 0.1 1"/>
    <geom type="box" size="0.1 0.1 0.1" pos="0.3 0.4 0.1" rgba="0.9 0 0 1"/>
  </worldbody>
</mujoco>"""

needs_gl = pytest.mark.skipif(not gl_available(), reason=str(gl_problem()))


@pytest.fixture
def scene() -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(_SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def _red(image: Any) -> tuple[float, float]:
    """Row and column of the red box's middle."""
    rows, columns = np.nonzero((image[..., 0] > 150) & (image[..., 1] < 50))
    return float(rows.mean()), float(columns.mean())


@needs_gl
def test_the_first_row_is_the_top_and_red_comes_first(scene: tuple[Any, Any]) -> None:
    cameras = Cameras(scene[0], ["top"], 224, 200)
    image = cameras.render(scene[1], "top")
    cameras.close()
    assert image.shape == (200, 224, 3)
    assert image.dtype == np.uint8
    row, column = _red(image)
    assert row < 80
    assert column > 130


@needs_gl
def test_cameras_of_two_sizes_do_not_disturb_each_other(scene: tuple[Any, Any]) -> None:
    small, large = Cameras(scene[0], ["top", "side"], 64, 48), Cameras(scene[0], ["side", "free"], 900, 700)
    alone = small.render(scene[1], "top")
    assert large.render(scene[1], "free").shape == (700, 900, 3)
    assert np.array_equal(small.render(scene[1], "top"), alone)
    large.close()
    assert np.array_equal(small.render(scene[1], "top"), alone)
    small.close()


@needs_gl
def test_a_frame_goes_where_it_is_asked_to(scene: tuple[Any, Any]) -> None:
    cameras = Cameras(scene[0], ["top"], 32, 32)
    batch = np.zeros((2, 32, 32, 3), np.uint8)
    assert cameras.render(scene[1], "top", batch[1]).base is batch
    assert not batch[0].any()
    assert batch[1].any()
    assert not np.shares_memory(cameras.render(scene[1], "top"), cameras.render(scene[1], "top"))
    with pytest.raises(TypeError):
        cameras.render(scene[1], "top", np.zeros((32, 32, 3), np.float32))
    cameras.close()


@needs_gl
def test_the_model_keeps_its_buffer_size(scene: tuple[Any, Any]) -> None:
    before = scene[0].vis.global_.offwidth, scene[0].vis.global_.offheight
    Cameras(scene[0], ["top"], 2000, 1000).close()
    assert (scene[0].vis.global_.offwidth, scene[0].vis.global_.offheight) == before


@needs_gl
def test_a_camera_that_is_not_there_is_named_with_those_that_are(scene: tuple[Any, Any]) -> None:
    with pytest.raises(UnknownName, match=r"no camera 'tpo'; did you mean 'top'\? There are: free, side, top"):
        Cameras(scene[0], ["tpo"], 32, 32)
    cameras = Cameras(scene[0], ["top"], 32, 32)
    with pytest.raises(UnknownName, match="There are: top"):
        cameras.render(scene[1], "side")
    cameras.close()
    cameras.close()
    with pytest.raises(UsageError, match="closed"):
        cameras.render(scene[1], "top")


@needs_gl
def test_the_fast_profile_changes_the_looks_and_nothing_else(scene: tuple[Any, Any]) -> None:
    model = scene[0]
    assert not apply_profile(model, "full")
    assert model.vis.quality.shadowsize > 0
    assert apply_profile(model, "auto") == is_software()
    assert apply_profile(model, "fast")
    assert model.vis.quality.shadowsize == model.vis.quality.offsamples == 0
    assert not model.light_castshadow.any()
    assert camera_names(model) == ["top", "side"]


_ASKS = """
import mujoco
from hudsim.bridges.rendering import Cameras, gl_available
assert not gl_available()
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><camera name="c"/><geom size="1"/></worldbody></mujoco>')
try:
    Cameras(model, ["c"], 32, 32)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="EGL is Linux's")
@pytest.mark.parametrize("backend", ["", "egl"])
def test_without_opengl_the_error_says_what_to_install_and_how_to_go_on_without(backend: str) -> None:
    without = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    without |= {"MUJOCO_GL": backend, "__EGL_VENDOR_LIBRARY_DIRS": "/nonexistent"}
    command = [sys.executable, "-c", _ASKS]
    done = subprocess.run(command, env=without, capture_output=True, text=True, timeout=50, check=False)
    if not done.stdout and "AssertionError" in done.stderr:
        pytest.skip("another backend than EGL works here")
    assert done.stdout.startswith("UsageError no OpenGL to render with (MUJOCO_GL=egl: ")
    assert done.stdout.count("\n") == 1
    assert "apt-get install libegl1" in done.stdout
    assert "--no-cameras" in done.stdout
