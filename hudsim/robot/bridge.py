"""``RobotBridge`` and ``VectorRobotBridge``: what one implements to bring a simulator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hudsim.contract import Contract
from hudsim.errors import UnknownName
from hudsim.wire.ring import LARGE, Page

__all__ = ["Array", "Observation", "Pages", "RobotBridge", "VectorRobotBridge"]

Array = NDArray[Any]
Pages: TypeAlias = Mapping[int, Page | None]
"""By slot, where its agent reads: memory that a bridge may write its observation to. None: there is none."""


@dataclass
class Observation:
    """What N worlds show after one control tick. Every array's first axis is the world, N = ``num_envs``.

    data
        ``{feature name: array [N, ...]}``, as the contract says; instead of such an array also a list of N arrays.
    terminated, truncated
        bool [N]: the task itself is over; the episode was cut off (time limit) though it is not. None: no.
    reward
        float [N], of this tick alone. None: the world gives none (0).
    success
        bool [N], whether the task's goal holds *now*. None: the world does not say.
    info
        Plain values for the record, one dict for all worlds.
    """

    data: Mapping[str, Any]
    terminated: Array | None = None
    truncated: Array | None = None
    reward: Array | None = None
    success: Array | None = None
    info: dict[str, Any] = field(default_factory=dict)


class RobotBridge(ABC):
    """One simulated world (or, as in HUD, a batch of them that is reset and stepped as a whole).

    Implement ``reset``, ``step`` and ``get_observation``. They are plain blocking functions, called on one
    thread only, the *sim thread* (the sim process's main thread), never two at once, in the order ``reset``,
    ``get_observation``, then ``step``, ``get_observation`` for each control tick. ``close`` comes last.
    Take your time: the server's event loop never waits for them.

    contract
        A :class:`~hudsim.contract.Contract`, or a dict of one (HUD's v0 documents load). May be set in
        ``__init__``. What it leaves out is filled from the first observation.
    metadata
        Sent to every client with the contract; plain JSON.
    num_envs
        How many worlds ``step`` advances at once. Leave it 1: ``hudsim serve --num-envs N`` makes N bridges.
    pages
        Set by the server while :meth:`get_observation` runs: what :meth:`out` gives of.
    total_reward, success, terminated
        Read by :meth:`result` when ``get_observation`` returns the bare pair; ``step`` keeps them.
    """

    contract: Contract | Mapping[str, Any] = MappingProxyType({})
    metadata: Mapping[str, Any] = MappingProxyType({})
    num_envs: int = 1
    total_reward: float = 0.0
    success: bool = False
    terminated: bool = False
    pages: Pages = MappingProxyType({})
    made_with: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, so that another process can make the same bridge."""
        bridge = super().__new__(cls)
        bridge.made_with = (args, kwargs)
        return bridge

    @abstractmethod
    def reset(self, *args: Any, **task_args: Any) -> str:
        """Start an episode and return its prompt.

        ``task_args`` holds ``seed`` (int) if the signature takes it, and what the task gives. The first
        observation must be a function of them alone, whatever was played before.
        """

    @abstractmethod
    def step(self, action: Array) -> None:
        """Advance by one control tick. ``action`` is [N, *action shape], checked against the contract."""

    @abstractmethod
    def get_observation(self) -> Observation | tuple[dict[str, Array], Array]:
        """What the world shows now: an :class:`Observation`, or ``(data {name: [N, ...]}, terminated [N])``.

        The arrays may be reused by the next ``step``: they are copied before it is called.
        """

    def out(self, name: str, slot: int = 0) -> Array:
        """An array to write feature ``name`` of ``slot`` into, of its shape and dtype, instead of making one.

        Where the slot's agent is on this host it is memory that the agent reads, so that an image is written once and
        never copied. Ask in :meth:`get_observation`, write all of it, show it as that slot's row, and let go of it:
        what stands in it is undefined, and the next tick's is another. Elsewhere it is kept for the purpose.
        Raises :class:`~hudsim.errors.UnknownName` for what is no observation of a contract that says all shapes.
        """
        shapes = self.__dict__.get("_shapes")
        if shapes is None:
            self._shapes = shapes = _shapes(Contract.load(self.contract))
        if name not in shapes:
            raise UnknownName("observation", name, shapes)
        shape, dtype, size = shapes[name]
        page = self.pages.get(slot) if size >= LARGE else None
        room = None if page is None else page.room(shape, dtype)
        if room is not None:
            return room
        own: dict[tuple[str, int], Array] = self.__dict__.setdefault("_own", {})
        if (name, slot) not in own:
            own[name, slot] = np.empty(shape, dtype)
        return own[name, slot]

    def close(self) -> None:
        """Free what the bridge holds. Called once, on the sim thread."""

    def capability_params(self) -> dict[str, Any]:
        """More for the capability's ``params`` beside the contract (a planner's model and cost). Plain JSON."""
        return {}

    def result(self) -> dict[str, Any]:
        """The finished episode's own score, if it has a finer one than success: ``{"score": 0…1, …}``.

        ``{}``, the default, leaves the score to the server: 1.0 for success by the contract's rule, else 0.0.
        """
        return {}


class VectorRobotBridge(RobotBridge):
    """N worlds stepped together (``mujoco.batch``, a GPU simulator), each reset and stepped by itself.

    A slot's episode must not depend on the other slots: with the same seed and actions its observations are
    the same bit for bit, whichever others are reset, stepped or idle.
    """

    def reset(self, slots: Sequence[int], seeds: Sequence[int | None], **task_args: Any) -> list[str]:  # type: ignore[override]
        """Start an episode in each of ``slots`` with its seed; the other slots stay as they are. Prompts, in order."""
        raise NotImplementedError

    def step(self, action: Array, active: NDArray[np.bool_]) -> None:  # type: ignore[override]
        """Advance the slots where ``active`` [N] is true by one tick; rows of the others are to be ignored.

        What it raises ends every active slot's episode; a :class:`~hudsim.errors.SimFailed` made with
        ``slots=[…]`` ends those alone, and the others have been stepped.
        """
        raise NotImplementedError

    def results(self, slot: int) -> dict[str, Any]:
        """As :meth:`RobotBridge.result`, of one slot."""
        return {}


def _shapes(contract: Contract) -> dict[str, tuple[tuple[int, ...], np.dtype[Any], int]]:
    """Shape, dtype and bytes of each observation that the contract says them of."""
    return {
        name: (feature.shape, np.dtype(feature.dtype), feature.nbytes)
        for name, feature in contract.observations.items()
        if feature.shape is not None and feature.complete
    }
