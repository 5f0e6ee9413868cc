"""``Cameras``: the named cameras of a MuJoCo model as pixel arrays, and what makes them cheap without a GPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hudsim.bridges.gl import (
    gl_available,
    gl_backend,
    gl_problem,
    gl_renderer,
    is_software,
    make_current,
    top_row_first,
)
from hudsim.errors import UnknownName, UsageError

if TYPE_CHECKING:
    import mujoco

__all__ = [
    "FREE_CAMERA",
    "Cameras",
    "Profile",
    "apply_profile",
    "camera_names",
    "gl_available",
    "gl_backend",
    "gl_problem",
    "gl_renderer",
    "is_software",
]

Profile = Literal["auto", "fast", "full"]

FREE_CAMERA = "free"
"""A view that every model has: MuJoCo's own free camera, unless the model gives that name to one of its own."""


def apply_profile(model: mujoco.MjModel, profile: Profile = "auto") -> bool:
    """Make ``model`` cheap to draw on a CPU; whether it was done. Call it before the first frame.

    Shadows, multisampling and reflections go; physics is untouched. ``auto`` does so only where there is no GPU
    (HalfCheetah 480²: 32 ms a frame with them, 2.5 ms without), ``fast`` always, ``full`` never.
    Raises :class:`~hudsim.errors.UsageError` for ``auto`` where there is no OpenGL at all.
    """
    if profile == "full" or (profile == "auto" and not is_software()):
        return False
    model.vis.quality.shadowsize = 0
    model.vis.quality.offsamples = 0
    model.light_castshadow[:] = 0
    model.mat_reflectance[:] = 0
    return True


def camera_names(model: mujoco.MjModel) -> list[str]:
    """The model's cameras by name, in its own order. Cameras without a name are left out."""
    return [name for i in range(model.ncam) if (name := model.camera(i).name)]


class Cameras:
    """Renders some cameras of one model, all at one size. Use it on the thread that made it.

    model
        Set up with :func:`apply_profile` before, if at all.
    names
        Cameras of the model, or :data:`FREE_CAMERA`.
    width, height
        Of the images, in pixels; not bound by the model's offscreen buffer.
    max_geoms
        How many geoms are drawn at most, decorations included.

    Raises :class:`~hudsim.errors.UnknownName` for a camera that is not there, :class:`~hudsim.errors.UsageError`
    where there is no OpenGL.
    """

    def __init__(
        self, model: mujoco.MjModel, names: Sequence[str], width: int, height: int, *, max_geoms: int = 10_000
    ) -> None:
        if width < 1 or height < 1:
            raise UsageError(f"an image of {width}x{height} pixels; width and height are at least 1")
        make_current()
        import mujoco

        self._model = model
        self._views = {name: _view(model, name) for name in names}
        self._thread = threading.get_ident()
        self._option = mujoco.MjvOption()
        self._scene = mujoco.MjvScene(model, max_geoms)
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._pixels: NDArray[np.uint8] = np.empty((height, width, 3), np.uint8)
        self._context: Any = _context(model, width, height)
        self._upright = top_row_first()

    @property
    def names(self) -> list[str]:
        """The cameras, in the order asked for."""
        return list(self._views)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, 3)."""
        height, width, channels = self._pixels.shape
        return height, width, channels

    def render(self, data: mujoco.MjData, name: str, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """What camera ``name`` sees in ``data``: uint8 [H, W, 3], RGB, the first row the top one.

        ``out`` takes the pixels if given (that shape, any strides) and is returned; else a new array is.
        ``data`` must be current (``mj_forward`` or a step before). Raises
        :class:`~hudsim.errors.UnknownName` for a camera that was not asked for.
        """
        import mujoco

        if self._context is None or threading.get_ident() != self._thread:
            raise UsageError("these cameras are closed" if self._context is None else "rendered on another thread")
        if name not in self._views:
            raise UnknownName("camera", name, self._views)
        make_current()
        # Drawing contexts share the thread's OpenGL context, so the buffer drawn to may be another's.
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._model, data, self._option, None, self._views[name], every, self._scene)
        mujoco.mjr_render(self._rect, self._scene, self._context)
        return self._read(np.empty(self.shape, np.uint8) if out is None else out)

    def _read(self, out: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What was drawn, straight into ``out`` if the driver and ``out`` allow it."""
        import mujoco

        fits = out.shape == self.shape and out.dtype == np.uint8 and out.flags.c_contiguous
        if fits and self._upright is not None:
            self._upright(True)
            try:
                mujoco.mjr_readPixels(out, None, self._rect, self._context)
            finally:
                self._upright(False)
        else:
            mujoco.mjr_readPixels(self._pixels, None, self._rect, self._context)
            np.copyto(out, self._pixels[::-1], casting="no")  # OpenGL's first row is the bottom
        return out

    def close(self) -> None:
        """Free the buffers. Twice is fine."""
        if self._context is not None:
            make_current()
            self._context.free()
            self._context = None


def _view(model: mujoco.MjModel, name: str) -> mujoco.MjvCamera:
    import mujoco

    there = camera_names(model)
    view = mujoco.MjvCamera()
    if name in there:
        view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        view.fixedcamid = model.camera(name).id
    elif name == FREE_CAMERA:
        mujoco.mjv_defaultFreeCamera(model, view)
    else:
        raise UnknownName("camera", name, [*there, FREE_CAMERA])
    return view


def _context(model: mujoco.MjModel, width: int, height: int) -> Any:
    """MuJoCo's drawing context with an offscreen buffer of exactly this size; the model is left as it was."""
    import mujoco

    size = model.vis.global_
    before = size.offwidth, size.offheight
    size.offwidth, size.offheight = width, height
    try:
        return mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
    finally:
        size.offwidth, size.offheight = before
