"""``TestCardBridge``: a tiny exact world without a simulator, whose frames say which slot and tick they are of.

For tests, benches and first tries: nothing to install, microseconds a step, and every fault on request.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import xor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hudsim.contract import Contract
from hudsim.errors import SimDiverged, UsageError
from hudsim.robot.bridge import Array, Observation, RobotBridge, VectorRobotBridge

__all__ = ["Card", "Faults", "TestCardBridge", "TestCardVectorBridge", "read_card", "recognise"]

_CORNERS = {(255, 0, 0): "red", (0, 255, 0): "green", (0, 0, 255): "blue", (255, 255, 255): "white"}
# Colours seen in reading order (top left, top right, bottom left, bottom right) -> what was done to the card.
_SEEN: dict[tuple[str, ...], str] = {
    ("red", "green", "blue", "white"): "upright",
    ("blue", "green", "red", "white"): "bgr",
    ("blue", "white", "red", "green"): "upside down",
    ("green", "red", "white", "blue"): "mirrored",
    ("white", "blue", "green", "red"): "rotated by 180 degrees",
    ("red", "blue", "green", "white"): "transposed",
}
_ROWS, _COLUMNS = 8, 8
_FIXED = ("tick", "slot", "seed")


class Card(NamedTuple):
    """What one frame says of itself. ``tick`` and ``seed`` are modulo 65536, ``slot`` and ``camera`` modulo 256."""

    slot: int
    tick: int
    seed: int
    camera: int


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and at which tick (0 is the reset). None or empty: it does not.

    raise_at, diverge_at, hang_at
        The step to that tick raises ``RuntimeError``, raises ``SimDiverged``, or sleeps ``hang_s`` seconds.
    nan_at, nan_reward_at
        The state's last number, or the reward, is NaN at that tick.
    terminate_at, truncate_at
        The episode says so from that tick on.
    success_at
        Ticks at which success holds. Empty: the world does not say.
    slot
        The one slot that it happens to; None: every slot.
    """

    raise_at: int | None = None
    diverge_at: int | None = None
    hang_at: int | None = None
    hang_s: float = 3600.0
    nan_at: int | None = None
    nan_reward_at: int | None = None
    terminate_at: int | None = None
    truncate_at: int | None = None
    success_at: Sequence[int] = ()
    slot: int | None = None


def recognise(image: Array) -> str:
    """What was done to a test card [H, W, 3].

    ``upright`` (nothing), ``bgr``, ``upside down``, ``mirrored``, ``rotated by 180 degrees``, ``transposed``, or
    ``not a test card``.
    """
    if image.ndim != 3 or image.shape[2] != 3:
        return "not a test card"
    corners = (image[0, 0], image[0, -1], image[-1, 0], image[-1, -1])
    names = {bytes(colour): name for colour, name in _CORNERS.items()}
    seen = tuple(names.get(corner.astype(np.uint8).tobytes(), "other") for corner in corners)
    return _SEEN.get(seen, "not a test card")


def _read(image: Array) -> Card:
    seen = recognise(image)
    if seen != "upright":
        raise UsageError(f"expected an upright RGB test card [H, W, 3], got {list(image.shape)}: {seen}")
    height, width = image.shape[:2]
    rows, columns = height // 4 + _middles(height // 2, _ROWS), width // 4 + _middles(width // 2, _COLUMNS)
    bits = image[np.ix_(rows, columns)][..., 0] > 127
    slot, camera, t1, t0, s1, s0, check, flipped = np.packbits(bits, axis=1)[:, 0].tolist()
    if check != (slot ^ camera ^ t1 ^ t0 ^ s1 ^ s0) or flipped != check ^ 0xFF:
        raise UsageError("a test card with a broken check sum: two frames mixed, or pixels changed on the way")
    return Card(slot=slot, tick=t1 << 8 | t0, seed=s1 << 8 | s0, camera=camera)


def _middles(length: int, parts: int) -> Array:
    return np.array([(low + high - 1) // 2 for low, high in pairwise(_edges(length, parts))])


def read_card(image: Array) -> tuple[int, int]:
    """(slot, tick) of one frame, uint8 [H, W, 3]; :meth:`TestCardBridge.read` says the rest.

    Raises :class:`~hudsim.errors.UsageError` for a frame that is flipped, transposed, BGR, torn or no card at all.
    """
    card = _read(image)
    return card.slot, card.tick


class _Painter:
    """Paints one camera's frames into a buffer [H, W, 3] of its own."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        height, width = buffer.shape[:2]
        buffer[..., 0] = np.linspace(32, 223, width)
        buffer[..., 1] = np.linspace(32, 223, height)[:, np.newaxis]
        buffer[..., 2] = 96
        dy, dx = height // 8, width // 8
        places = [np.s_[:dy, :dx], np.s_[:dy, -dx:], np.s_[-dy:, :dx], np.s_[-dy:, -dx:]]
        for colour, place in zip(_CORNERS, places, strict=True):
            buffer[place] = colour
        grid = buffer[height // 4 : height // 4 + height // 2, width // 4 : width // 4 + width // 2]
        self._cells = [
            [band[:, left:right] for left, right in pairwise(_edges(width // 2, _COLUMNS))]
            for band in (grid[top:bottom] for top, bottom in pairwise(_edges(height // 2, _ROWS)))
        ]
        self._bits = np.full((_ROWS, _COLUMNS), 2, np.uint8)

    def paint(self, card: Card) -> None:
        """Write ``card`` into the frame; only the cells that change are touched."""
        numbers = [card.slot, card.camera, card.tick >> 8, card.tick, card.seed >> 8, card.seed]
        octets = [number & 0xFF for number in numbers]
        check = reduce(xor, octets)
        bits = np.unpackbits(np.array([*octets, check, check ^ 0xFF], np.uint8)[:, np.newaxis], axis=1)
        for row, column in np.argwhere(bits != self._bits).tolist():
            self._cells[row][column][...] = 255 * bits[row, column]
        self._bits = bits


def _edges(length: int, parts: int) -> list[int]:
    return [length * i // parts for i in range(parts + 1)]


class TestCardVectorBridge(VectorRobotBridge):
    """N test-card worlds stepped together.

    width, height
        Of each camera's frames in pixels, at least 16.
    cameras
        How many: ``observation/camera0`` and so on. A frame carries slot, tick, seed and camera.
    state
        Length of ``observation/state``: tick, slot, seed, then the action last executed (zeros before the first).
        The action has the ``state - 3`` numbers that are echoed.
    limit, out_of_range, hold
        The action's limits (±limit; None: unbounded), what happens beyond them, what a starved tick does.
    step_s
        Seconds that a step takes (slept), whatever the number of slots.
    max_ticks
        Truncated at that tick. None: never.
    first_slot
        The number that slot 0 calls itself.
    faults
        :class:`Faults`, or its fields as a dict.

    The reward is 1 each tick. ``executed[slot]`` lists the actions of the slot's episode as they came.
    """

    __test__ = False  # not a test, for all its name
    contract: Contract

    def __init__(
        self,
        *,
        num_envs: int = 1,
        width: int = 224,
        height: int = 224,
        cameras: int = 2,
        state: int = 8,
        control_rate: float = 50.0,
        limit: float | None = None,
        out_of_range: str = "reject",
        hold: str = "repeat",
        step_s: float = 0.0,
        max_ticks: int | None = None,
        first_slot: int = 0,
        faults: Faults | dict[str, Any] | None = None,
    ) -> None:
        if min(width, height) < 2 * _ROWS or state <= len(_FIXED) or num_envs < 1:
            raise UsageError(
                f"a test card of {width}x{height} with state {state} and {num_envs} slots; "
                f"expected at least {2 * _ROWS}x{2 * _ROWS}, {len(_FIXED) + 1} and 1"
            )
        self.num_envs = num_envs
        self.contract = Contract.load(_document(width, height, cameras, state, control_rate, limit, out_of_range, hold))
        self.executed: list[list[Array]] = [[] for _ in range(num_envs)]
        self._faults = Faults(**faults) if isinstance(faults, dict) else faults or Faults()
        self._step_s, self._max_ticks, self._first_slot = step_s, max_ticks, first_slot
        self._ticks = np.zeros(num_envs, np.int64)
        self._seeds = np.zeros(num_envs, np.int64)
        self._state = np.zeros((num_envs, state), np.float32)
        self._frames = [np.zeros((num_envs, height, width, 3), np.uint8) for _ in range(cameras)]
        self._painters = [[_Painter(buffer) for buffer in frames] for frames in self._frames]
        for slot in range(num_envs):
            self._show(slot)

    def reset(  # type: ignore[override]
        self, slots: Sequence[int], seeds: Sequence[int | None], prompt: str = "read the card"
    ) -> list[str]:
        for slot, seed in zip(slots, seeds, strict=True):
            self._ticks[slot] = 0
            self._seeds[slot] = (seed or 0) & 0xFFFF
            self._state[slot] = 0
            self.executed[slot] = []
            self._show(slot)
        return [prompt] * len(slots)

    def step(self, action: Array, active: NDArray[np.bool_]) -> None:  # type: ignore[override]
        if self._step_s:
            time.sleep(self._step_s)
        for slot in np.flatnonzero(active).tolist():
            self._ticks[slot] += 1
            self._state[slot, len(_FIXED) :] = action[slot]
            self.executed[slot].append(np.array(action[slot]))
            self._fail(slot)
            self._show(slot)

    def get_observation(self) -> Observation:
        faults, hit = self._faults, np.array([self._hit(slot) for slot in range(self.num_envs)])
        data: dict[str, Array] = {f"observation/camera{i}": frames for i, frames in enumerate(self._frames)}
        data["observation/state"] = self._state
        never = np.iinfo(np.int64).max
        over = self._ticks >= (never if faults.truncate_at is None else faults.truncate_at)
        limit = self._ticks >= (never if self._max_ticks is None else self._max_ticks)
        reward = np.where(self._ticks > 0, 1.0, 0.0)
        reward[hit & (self._ticks == faults.nan_reward_at)] = np.nan
        return Observation(
            data=data,
            terminated=hit & (self._ticks >= (never if faults.terminate_at is None else faults.terminate_at)),
            truncated=hit & over | limit,
            reward=reward,
            success=hit & np.isin(self._ticks, list(faults.success_at)) if len(faults.success_at) else None,
        )

    def _hit(self, slot: int) -> bool:
        return self._faults.slot is None or self._faults.slot == slot

    def _fail(self, slot: int) -> None:
        faults, tick = self._faults, self._ticks[slot]
        if not self._hit(slot):
            return
        if tick == faults.raise_at:
            raise RuntimeError(f"the test card raises at tick {tick}, as asked")
        if tick == faults.diverge_at:
            raise SimDiverged(f"the test card diverges at tick {tick}, as asked")
        if tick == faults.hang_at:
            time.sleep(faults.hang_s)

    def _show(self, slot: int) -> None:
        number, tick, seed = self._first_slot + slot, int(self._ticks[slot]), int(self._seeds[slot])
        self._state[slot, : len(_FIXED)] = tick, number, seed
        if self._hit(slot) and tick == self._faults.nan_at:
            self._state[slot, -1] = np.nan
        for camera, painters in enumerate(self._painters):
            painters[slot].paint(Card(number, tick, seed, camera))


class TestCardBridge(RobotBridge):
    """One test-card world; ``slot`` is the number it calls itself, the options are :class:`TestCardVectorBridge`'s."""

    __test__ = False
    contract: Contract

    def __init__(self, *, slot: int = 0, **options: Any) -> None:
        if "num_envs" in options:
            raise UsageError("TestCardBridge is one world; num_envs is TestCardVectorBridge's")
        self._worlds = TestCardVectorBridge(num_envs=1, first_slot=slot, **options)
        self.contract = self._worlds.contract

    @staticmethod
    def read(image: Array) -> Card:
        """Everything that one frame, uint8 [H, W, 3], says of itself; raises as :func:`read_card` does."""
        return _read(image)

    @property
    def executed(self) -> list[Array]:
        """The actions of this episode as they came."""
        return self._worlds.executed[0]

    def reset(self, seed: int | None = None, prompt: str = "read the card") -> str:
        return self._worlds.reset([0], [seed], prompt)[0]

    def step(self, action: Array) -> None:
        self._worlds.step(action, np.ones(1, bool))

    def get_observation(self) -> Observation:
        return self._worlds.get_observation()


def _document(
    width: int,
    height: int,
    cameras: int,
    state: int,
    control_rate: float,
    limit: float | None,
    out_of_range: str,
    hold: str,
) -> dict[str, Any]:
    echoed = state - len(_FIXED)
    features: dict[str, Any] = {
        f"observation/camera{i}": {
            "role": "observation",
            "type": "rgb",
            "dtype": "uint8",
            "shape": [height, width, 3],
        }
        for i in range(cameras)
    }
    features["observation/state"] = {
        "role": "observation",
        "dtype": "float32",
        "shape": [state],
        "names": [*_FIXED, *(f"echo_{i}" for i in range(echoed))],
    }
    features["action"] = {
        "role": "action",
        "dtype": "float32",
        "shape": [echoed],
        "names": [f"a{i}" for i in range(echoed)],
        "limits": {"min": [None if limit is None else -limit] * echoed, "max": [limit] * echoed},
        "out_of_range": out_of_range,
        "hold": [hold] * echoed,
    }
    return {"schema": "hudsim/1", "robot_type": "test-card", "control_rate": control_rate, "features": features}
