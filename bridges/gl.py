"""OpenGL without a window: which backend, whether it works, whether it is a GPU, one context a thread."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from hudsim.errors import UsageError

__all__ = ["gl_available", "gl_backend", "gl_problem", "gl_renderer", "is_software", "make_current", "top_row_first"]

_GL_RENDERER, _PACK_INVERT = 0x1F01, 0x8758
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software")
_OSMESA = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
_REMEDY = "on Debian and Ubuntu: apt-get install libegl1 libgl1 libgl1-mesa-dri; or go on without cameras: --no-cameras"


def gl_backend() -> str:
    """The OpenGL backend of this process: ``egl``, ``osmesa``, ``glfw`` or ``cgl``.

    What ``MUJOCO_GL`` says. Where it says nothing, the first that can work (EGL with a driver, OSMesa, GLFW with a
    display); it is then written to ``MUJOCO_GL``, so that whatever else renders in this process and its children
    takes the same one. Call it before mujoco is imported: ``mujoco.Renderer`` is bound at that moment.
    """
    asked = os.environ.get("MUJOCO_GL", "").strip().lower()
    if asked not in ("", "enable", "enabled", "on", "true", "1"):
        return asked
    chosen = _first_that_can_work()
    if chosen is None:  # the one that installing a few packages mends; mujoco's import would fail if it were told so
        return "egl"
    os.environ["MUJOCO_GL"] = chosen
    return chosen


def _first_that_can_work() -> str | None:
    if sys.platform == "darwin":
        return "cgl"
    if sys.platform == "win32":
        return "glfw"
    if _egl_has_devices():
        return "egl"
    if any(_load(name) for name in _OSMESA):
        return "osmesa"
    return "glfw" if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") else None


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _egl_has_devices() -> bool:
    """Whether EGL lists a device. Asked by ctypes, for PyOpenGL is bound for good to the first platform it tries."""
    egl = _load("libEGL.so.1")
    if egl is None:
        return False
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return False
    prototype = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    count = ctypes.c_int(0)
    return bool(prototype(address)(0, None, ctypes.byref(count))) and count.value > 0


class _Thread(threading.local):
    context: Any = None


_thread = _Thread()


def _open_context() -> Any:
    backend = gl_backend()
    if backend in ("egl", "osmesa", "glfw", "cgl"):
        return importlib.import_module(f"mujoco.{backend}").GLContext(64, 64)
    if backend in ("glx", "wgl"):
        return importlib.import_module("mujoco.glfw").GLContext(64, 64)
    raise UsageError(f"MUJOCO_GL is {backend!r}, expected egl, osmesa or glfw (unset: the first that works)")


def make_current() -> None:
    """Make this thread's one OpenGL context the current one, opening it the first time (4 µs afterwards).

    Raises :class:`~hudsim.errors.UsageError` where there is no OpenGL: what was tried and what to install.
    """
    problem = gl_problem()
    if problem is not None:
        raise UsageError(problem)
    if _thread.context is None:
        _thread.context = _open_context()
    _thread.context.make_current()


@functools.cache
def gl_problem() -> str | None:
    """Why there is no OpenGL here, and what to do about it, in one line. None: it works. Asked once a process."""
    try:
        with warnings.catch_warnings(action="ignore"):  # GLFW says "no display" by a warning
            _thread.context = _open_context()
            _thread.context.make_current()
        if _renderer_string() is not None:
            return None
        reason = "no display" if gl_backend() == "glfw" else "no context"
    except UsageError as error:
        return error.message
    except Exception as error:  # noqa: BLE001  each backend fails with a class of its own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0].rstrip(".")
    return f"no OpenGL to render with (MUJOCO_GL={gl_backend()}: {reason}); {_REMEDY}"


@functools.cache
def top_row_first() -> Callable[[bool], None] | None:
    """What has this thread's context read images from their top row on, or (False) as OpenGL does, from the bottom.

    None: the driver cannot (Mesa can: ``GL_MESA_pack_invert``); images are to be turned over then. Set it back after
    each read: what else renders in this process shares the context.
    """
    make_current()
    from OpenGL import GL

    names = {GL.glGetStringi(GL.GL_EXTENSIONS, i) for i in range(int(GL.glGetIntegerv(GL.GL_NUM_EXTENSIONS)))}
    if b"GL_MESA_pack_invert" not in names:
        return None
    store = GL.glPixelStorei
    return lambda first: store(_PACK_INVERT, first)


def gl_available() -> bool:
    """Whether cameras can be rendered here."""
    return gl_problem() is None


@functools.cache
def gl_renderer() -> str:
    """OpenGL's own name of what renders, e.g. ``llvmpipe (LLVM 15.0.6, 256 bits)``.

    Raises :class:`~hudsim.errors.UsageError` where there is no OpenGL.
    """
    make_current()
    return _renderer_string() or "unknown"


def _renderer_string() -> str | None:
    """GL_RENDERER of the current context; None if there is none."""
    from OpenGL.raw.GL.VERSION.GL_1_0 import glGetString

    name = glGetString(_GL_RENDERER)
    if not name:
        return None
    text = name if isinstance(name, bytes) else ctypes.string_at(name)
    return text.decode(errors="replace")


def is_software() -> bool:
    """Whether the CPU renders: a frame with MuJoCo's default shadows then takes 40 ms.

    Raises :class:`~hudsim.errors.UsageError` where there is no OpenGL.
    """
    return gl_backend() == "osmesa" or any(word in gl_renderer().lower() for word in _SOFTWARE)
