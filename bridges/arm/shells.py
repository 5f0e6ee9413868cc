"""What the arm looks like: convex shells, each the hull of a few rings, hung on the links of ``arm.xml``.

Our own shapes in the proportions of an arm of this class. One hull of some 150 triangles is drawn several times faster
on a CPU than the cylinders and capsules that it stands for, and its bevels catch the light.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ["dress"]

Point = tuple[float, float, float]
Points = NDArray[np.float64]

_SEGMENTS = 20

_MATERIALS = {
    "shell": ((0.94, 0.945, 0.95, 1.0), 0.45, 0.55),
    "dark": ((0.19, 0.21, 0.24, 1.0), 0.35, 0.40),
    "accent": ((0.05, 0.58, 0.66, 1.0), 0.40, 0.50),
    "rubber": ((0.09, 0.09, 0.10, 1.0), 0.05, 0.10),
}
"""rgba, specular, shininess."""


@dataclass(frozen=True)
class Shell:
    """One convex piece: the link it hangs on, its material, its corners [n, 3] in the link's frame."""

    link: str
    material: str
    points: Points


def _puck(axis: str, centre: Point, radius: float, half: float, bevel: float = 0.004) -> Points:
    """A disc with bevelled rims, ``half`` thick to both sides along ``axis``."""
    turn = np.linspace(0.0, 2 * np.pi, _SEGMENTS, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    rims = [(radius - bevel, half), (radius, half - bevel)]
    rings = [
        np.column_stack([circle * r, np.full(_SEGMENTS, side * height)]) for r, height in rims for side in (-1.0, 1.0)
    ]
    order = {"x": [2, 0, 1], "y": [1, 2, 0], "z": [0, 1, 2]}[axis]
    points: Points = np.concatenate(rings)[:, order] + np.array(centre)
    return points


def _block(centre: Point, half: Point, bevel: float = 0.0015) -> Points:
    """A box with bevelled edges."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
    shrunk = [np.array(half) - bevel * (1 - np.eye(3)[i]) for i in range(3)]
    points: Points = np.concatenate([corners * size for size in shrunk]) + np.array(centre)
    return points


def _shell(link: str, material: str, *parts: Points) -> Shell:
    return Shell(link, material, np.concatenate(parts))


def _base_to_elbow() -> Iterable[Shell]:
    yield _shell("link0", "dark", _puck("z", (0, 0, 0.008), 0.100, 0.008), _puck("z", (-0.10, 0, 0.008), 0.068, 0.008))
    yield _shell(
        "link0",
        "shell",
        _puck("z", (0, 0, 0.046), 0.092, 0.032, 0.02),
        _puck("z", (-0.09, 0, 0.04), 0.056, 0.026, 0.02),
    )
    yield _shell("link0", "shell", _puck("z", (0, 0, 0.10), 0.066, 0.038))
    yield _shell("link0", "accent", _puck("z", (0, 0, 0.142), 0.0672, 0.004, 0.001))
    yield _shell("link1", "shell", _puck("z", (0, 0, -0.145), 0.064, 0.041), _puck("z", (0, 0, -0.10), 0.064, 0.01))
    yield _shell("link1", "shell", _puck("z", (0, 0, -0.11), 0.064, 0.01), _puck("y", (0, 0, 0), 0.068, 0.062, 0.010))
    yield _shell("link1", "dark", _puck("y", (0, 0, 0), 0.052, 0.070))
    yield _shell("link2", "shell", _puck("z", (0, 0, 0), 0.060, 0.052, 0.01), _puck("y", (0, -0.15, 0), 0.062, 0.038))
    yield _shell("link2", "accent", _puck("y", (0, -0.193, 0), 0.0632, 0.004, 0.001))
    yield _shell("link3", "shell", _puck("z", (0, 0, -0.092), 0.062, 0.026))
    yield _shell(
        "link3", "shell", _puck("z", (0, 0, -0.076), 0.062, 0.01), _puck("y", (0.0825, 0, 0), 0.058, 0.053, 0.010)
    )
    yield _shell("link3", "dark", _puck("y", (0.0825, 0, 0), 0.044, 0.061))


def _elbow_to_flange() -> Iterable[Shell]:
    yield _shell(
        "link4", "shell", _puck("z", (0, 0, 0), 0.052, 0.044, 0.01), _puck("y", (-0.0825, 0.10, 0), 0.055, 0.042)
    )
    yield _shell("link4", "accent", _puck("y", (-0.0825, 0.147, 0), 0.0562, 0.004, 0.001))
    yield _shell("link5", "shell", _puck("z", (0, 0, -0.205), 0.055, 0.026), _puck("z", (0, 0.004, -0.10), 0.050, 0.02))
    yield _shell(
        "link5", "shell", _puck("z", (0, 0.004, -0.10), 0.050, 0.02), _puck("y", (0, 0, 0), 0.047, 0.046, 0.008)
    )
    yield _shell("link5", "dark", _puck("y", (0, 0, 0), 0.036, 0.053))
    yield _shell(
        "link6",
        "shell",
        _puck("z", (0, 0, 0), 0.044, 0.040, 0.008),
        _puck("y", (0.088, -0.004, 0), 0.048, 0.044, 0.012),
    )
    yield _shell("link7", "accent", _puck("z", (0, 0, 0.052), 0.0462, 0.004, 0.001))
    yield _shell("link7", "shell", _puck("z", (0, 0, 0.074), 0.045, 0.018))
    yield _shell("link7", "dark", _puck("z", (0, 0, 0.100), 0.036, 0.010, 0.002))


def _gripper() -> Iterable[Shell]:
    ends = [_puck("z", (0, side * 0.070, 0.024), 0.030, 0.022, 0.008) for side in (-1, 1)]
    yield _shell("hand", "shell", *ends)
    yield _shell("hand", "dark", _block((0, 0, 0.051), (0.019, 0.088, 0.007)))
    yield _shell("hand", "dark", _block((0.050, 0, 0.010), (0.026, 0.010, 0.004)))
    yield _shell("hand", "dark", _block((0.082, 0, -0.003), (0.013, 0.024, 0.011), 0.003))
    yield _shell("hand", "rubber", _puck("z", (0.082, 0, 0.009), 0.0085, 0.003, 0.001))
    for finger in ("finger1", "finger2"):
        yield _shell(finger, "dark", _block((0, 0.0165, 0.010), (0.011, 0.009, 0.012)))
        yield _shell(
            finger,
            "shell",
            _block((0, 0.0160, 0.024), (0.0095, 0.0075, 0.004)),
            _block((0, 0.008, 0.050), (0.0095, 0.003, 0.004)),
        )
        yield _shell(finger, "rubber", _block((0, 0.003, 0.043), (0.0088, 0.003, 0.0095), 0.001))


def dress(spec: mujoco.MjSpec) -> None:
    """Hang the shells on the arm's links: seen (group 2), without mass, touching nothing."""
    for name, (rgba, specular, shininess) in _MATERIALS.items():
        spec.add_material(name=name, rgba=rgba, specular=specular, shininess=shininess)
    for i, shell in enumerate([*_base_to_elbow(), *_elbow_to_flange(), *_gripper()]):
        mesh = f"shell{i}"
        spec.add_mesh(name=mesh, uservert=shell.points.ravel().tolist())
        spec.body(shell.link).add_geom(
            type=mujoco.mjtGeom.mjGEOM_MESH,
            meshname=mesh,
            material=shell.material,
            contype=0,
            conaffinity=0,
            group=2,
            mass=0.0,
        )
