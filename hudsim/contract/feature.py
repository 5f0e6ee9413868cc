"""``Feature``: one named array that is observed or commanded."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema, field_validator, model_validator

from hudsim.contract.bounds import bounds
from hudsim.contract.encoding import ENCODABLE, PATTERN, RAW, settled
from hudsim.contract.refusal import Model, nearest, refuse

__all__ = ["DTYPES", "IMAGE_TYPES", "Feature", "Limits", "default_hold"]

IMAGE_TYPES = ("rgb", "bgr", "gray", "depth")
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_MOST_NUMBERS = {"observation": 2**28, "action": 2**20}
"""A document comes from a peer: what it can make this process allocate has an end."""
_MOST_AXES = 32
_CHANNELS = {"rgb": (3,), "bgr": (3,), "gray": (None, 1), "depth": (None, 1)}
_LONGEST_SIDE = 65500  # of a JPEG, as its libraries have it
_ZERO_WHEN_STARVED = {"del", "delta", "vel", "rotvel", "velocity", "twist", "eff", "effort", "torque", "acc"}


def _bound(value: Any) -> Any:
    """A number, None, or nested lists of them; an infinity means None."""
    return _nested(value.tolist() if isinstance(value, np.ndarray | np.generic) else value, 0)


def _nested(value: Any, depth: int) -> Any:
    if depth > _MOST_AXES:
        raise refuse("lists in lists without end", "a number, null or lists no deeper than the shape")
    if isinstance(value, list | tuple):
        return [_nested(item, depth + 1) for item in value]
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise refuse(repr(value), "a number, or null for no bound")
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Bound = Annotated[
    Any,
    BeforeValidator(_bound),
    WithJsonSchema({"type": ["number", "null", "array"], "description": "a number, null (no bound), or lists of them"}),
]


class Limits(Model):
    """The hard range of a feature's values, both ends included.

    Each side is a number, None (unbounded) or a nested list that broadcasts to the feature's shape.
    """

    min: Bound = None
    max: Bound = None


class Feature(Model):
    """One named array: its shape (without a batch axis), dtype, and what its numbers mean.

    role
        ``observation`` (the world shows it) or ``action`` (the world takes it).
    type
        ``rgb | bgr | gray | depth`` for an image, which is HWC (gray and depth may be HW); for an action the
        kind of command (``joint_pos``, ``ee_del`` …); else free. None: not said.
    dtype, shape
        numpy's name and the array's shape. None: not known yet, filled from the first observation. An action
        without them is float32, as long as its ``names``.
    names, unit
        One for each entry of the last axis; a single unit stands for all.
    limits, out_of_range
        An action outside its limits is refused (``reject``) or clipped and counted (``clip``). Limits of an
        observation only inform.
    hold
        What a starved tick does with each entry of an action's last axis: ``repeat`` the last command or send
        ``zero``. A single word stands for all; None becomes :func:`default_hold`. None for an observation.
    finite
        False: the values may hold infinities and NaN (depth, lidar). Observations only.
    privileged
        A real robot would not have it; adapters leave it out unless asked.
    encoding
        How an image (rgb, bgr or gray, of uint8) crosses a link that is not local: ``raw``, or ``jpeg`` with a
        quality from 1 to 100, as in ``jpeg:75`` (``jpeg`` alone is ``jpeg:90``). What arrives has the same shape,
        dtype and order of channels; jpeg loses detail. Between processes of one host every image is raw.
    stats, state_type, state_representation, frame
        As in HUD's v0 contract: the distribution, ``JOINT_ABS_POS`` …, ``XYZ_QUATWXYZ`` …, ``base`` ….
    extra
        What a v0 document said of the feature that this schema has no word for.
    """

    role: Literal["observation", "action"]
    type: str | None = None
    dtype: str | None = None
    shape: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    names: list[str] | None = None
    unit: Annotated[list[str] | None, BeforeValidator(_listed)] = None
    limits: Limits | None = None
    out_of_range: Literal["reject", "clip"] = "reject"
    hold: Annotated[list[Literal["repeat", "zero"]] | None, BeforeValidator(_listed)] = None
    finite: bool = True
    privileged: bool = False
    encoding: Annotated[
        str, BeforeValidator(settled), WithJsonSchema({"type": "string", "pattern": PATTERN, "default": RAW})
    ] = RAW
    stats: dict[str, JsonValue] | None = None
    state_type: str | None = None
    state_representation: str | None = None
    frame: str | None = None
    description: str | None = None
    extra: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def is_image(self) -> bool:
        """Whether ``type`` says an image."""
        return self.type in IMAGE_TYPES

    @property
    def complete(self) -> bool:
        """Whether shape and dtype are known."""
        return self.shape is not None and self.dtype is not None

    @property
    def nbytes(self) -> int:
        """Size of one such array in bytes. Only once shape and dtype are known."""
        assert self.shape is not None
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def width(self) -> int | None:
        """Length of the last axis, 1 for a 0-d value, None if not known."""
        if self.shape is None:
            return None
        return self.shape[-1] if self.shape else 1

    @field_validator("dtype", mode="before")
    @classmethod
    def _dtype_is_carried(cls, value: Any) -> Any:
        if value is None or (isinstance(value, str) and value in DTYPES):
            return value
        if isinstance(value, str):
            raise refuse(repr(value), "a dtype that is carried", hint=nearest(value, DTYPES))
        try:
            name = np.dtype(value).name
        except TypeError:
            name = ""
        if name not in DTYPES:
            raise refuse(repr(value), "a dtype that is carried", hint=f"there are: {', '.join(DTYPES)}")
        return name

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.shape is not None and math.prod(self.shape) > _MOST_NUMBERS[self.role]:
            most = _MOST_NUMBERS[self.role]
            raise refuse(f"an {self.role} of shape {list(self.shape)}", f"at most {most} numbers")
        if self.role == "action":
            self._settle_action()
        if self.is_image:
            self._check_image()
        if self.encoding != RAW:
            self._check_encoding()
        self._check_lengths()
        if self.limits is not None and self.complete:
            self._check_limits(self.limits)
        return self

    def _settle_action(self) -> None:
        if self.is_image or self.privileged or not self.finite:
            what = self.type if self.is_image else "privileged" if self.privileged else "finite: false"
            raise refuse(f"an action that is {what}", "an action of finite numbers that an agent sends")
        if self.shape is None:
            if not self.names:
                raise refuse("an action with neither shape nor names", "its shape")
            object.__setattr__(self, "shape", (len(self.names),))
        if self.dtype is None:
            object.__setattr__(self, "dtype", "float32")
        width = self.width or 0
        if self.hold is None:
            object.__setattr__(self, "hold", default_hold(self, width))
        elif len(self.hold) == 1:
            object.__setattr__(self, "hold", self.hold * width)

    def _check_image(self) -> None:
        if self.dtype is not None and np.dtype(self.dtype).kind not in "uf":
            raise refuse(f"an image ({self.type}) of {self.dtype}", "unsigned integers or floats")
        if self.shape is None:
            return
        counts = _CHANNELS[str(self.type)]
        channels = self.shape[2] if len(self.shape) == 3 else None
        if len(self.shape) in (2, 3) and channels in counts:
            return
        want = "[height, width, 3]" if counts == (3,) else "[height, width] or [height, width, 1]"
        hint = ""
        if len(self.shape) == 3 and self.shape[0] in (1, 3):
            hint = "it looks like CHW; images are HWC"
        elif len(self.shape) == 4:
            hint = "one frame a feature; for a stack of frames leave the type out"
        raise refuse(f"{self.type} of shape {list(self.shape)}", want, hint=hint)

    def _check_encoding(self) -> None:
        unknown = self.type is None and self.role == "observation" and not self.complete
        if self.type not in ENCODABLE and not unknown:
            what = f"a feature of type {self.type}" if self.type else "a feature without a type"
            raise refuse(f"{what}, encoded as {self.encoding}", f"an image: {', '.join(ENCODABLE)}")
        if self.dtype not in (None, "uint8"):
            raise refuse(f"an image of {self.dtype}, encoded as {self.encoding}", "one of uint8")
        if self.shape is not None and not all(0 < side <= _LONGEST_SIDE for side in self.shape[:2]):
            got = f"an image of shape {list(self.shape)}, encoded as {self.encoding}"
            raise refuse(got, f"sides from 1 to {_LONGEST_SIDE}")

    def _check_lengths(self) -> None:
        if self.names is not None and len(set(self.names)) < len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise refuse(f"names that occur twice: {', '.join(twice)}", "each name once")
        if self.width is None:
            return
        for key, value, single in (("names", self.names, False), ("unit", self.unit, True), ("hold", self.hold, True)):
            if value is not None and len(value) != self.width and not (single and len(value) == 1):
                raise refuse(f"{len(value)} {key}", f"{self.width}, the last axis of shape {list(self.shape or ())}")

    def _check_limits(self, limits: Limits) -> None:
        dtype = np.dtype(self.dtype)
        if dtype.kind == "b":
            raise refuse("limits of a bool", "no limits")
        try:
            low, high = bounds(limits.min, limits.max, self.shape or (), dtype)
        except ValueError as error:
            raise refuse(f"limits with {error}", "limits that broadcast to the shape and fit the dtype") from None
        if (low > high).any():
            at = tuple(int(i) for i in np.argwhere(low > high)[0])
            raise refuse(f"limits with min {low[at]} > max {high[at]} at {list(at)}", "min <= max")


def default_hold(feature: Feature, width: int) -> list[Literal["repeat", "zero"]]:
    """What a starved tick does when the contract does not say.

    ``zero`` where ``state_type`` or ``type`` names a delta, velocity, effort or acceleration, ``repeat``
    elsewhere; and for whatever is named a gripper, since an open hand drops what it holds.
    """
    words = f"{feature.state_type or ''}_{feature.type or ''}".lower().split("_")
    moving = not _ZERO_WHEN_STARVED.isdisjoint(words) and "gripper" not in words
    names = feature.names if feature.names is not None and len(feature.names) == width else [""] * width
    return ["zero" if moving and "grip" not in name.lower() else "repeat" for name in names]
