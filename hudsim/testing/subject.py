"""``Subject``: a bridge under test, played through the same :class:`~hudsim.robot.world.World` as a server's."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from hudsim.contract import Contract
from hudsim.errors import HudsimError
from hudsim.robot.bridge import Array, RobotBridge, VectorRobotBridge
from hudsim.robot.world import Row, World, make_world

__all__ = ["Recognise", "Subject", "over"]

Recognise = Callable[[Array], str]
"""What was done to a test card [H, W, 3]: ``upright``, ``bgr``, ``mirrored`` …, or ``not a test card``."""


def over(row: Row) -> bool:
    """Whether this is an episode's last observation."""
    return row.terminated or row.truncated


class Subject:
    """Makes worlds from ``factory`` as they are asked for, and plays them with actions that the contract allows.

    Everything happens on the calling thread. ``task_args`` go to every reset. Methods raise what the world raises,
    :class:`~hudsim.errors.HudsimError` all of it. ``tick`` is the one that was played last, 0 for a reset, None
    before any.
    """

    def __init__(
        self,
        factory: Callable[..., RobotBridge],
        task_args: Mapping[str, Any] | None = None,
        recognise: Recognise | None = None,
    ) -> None:
        self.recognise = recognise
        self.tick: int | None = None
        self._factory = factory
        self._task_args = dict(task_args or {})
        self._made: list[World] = []
        self._bridges: list[RobotBridge] = []
        self._world: World | None = None

    @property
    def world(self) -> World:
        """The first world that was made, as the factory makes it."""
        if self._world is None:
            self._world = self.another()
        return self._world

    @property
    def contract(self) -> Contract:
        """The world's contract, filled."""
        return self.world.contract

    @property
    def bridge(self) -> RobotBridge:
        """The bridge of :attr:`world` itself."""
        if not self._bridges:
            self._world = self.another()
        return self._bridges[0]

    @property
    def vector(self) -> bool:
        """Whether the factory makes one bridge of any number of slots."""
        takes = "num_envs" in inspect.signature(self._factory).parameters
        return takes and isinstance(self.bridge, VectorRobotBridge)

    @property
    def seeded(self) -> bool:
        """Whether ``reset`` takes a seed."""
        parameters = inspect.signature(self.bridge.reset).parameters
        return any(name in ("seed", "seeds") or p.kind is p.VAR_KEYWORD for name, p in parameters.items())

    def another(self, num_envs: int | None = None) -> World:
        """One more world; ``num_envs`` is given to the factory (None: it is not)."""

        def make() -> RobotBridge:
            bridge = self._factory() if num_envs is None else self._factory(num_envs=num_envs)
            self._bridges.append(bridge)
            return bridge

        self.tick = None
        world = make_world(make)
        self._made.append(world)
        return world

    def reset(self, world: World, seed: int, slots: Sequence[int] = (0,)) -> dict[int, Row]:
        """Start an episode with ``seed`` in each of ``slots``; what they show first."""
        self.tick = 0
        for slot in slots:
            world.reset(slot, seed, self._task_args)
        return self.see(world, slots)

    def see(self, world: World, slots: Sequence[int] = (0,)) -> dict[int, Row]:
        """What ``slots`` show now, checked against the contract, in arrays that stay as they are."""
        rows = {}
        for slot, row in world.observe(slots).items():
            if isinstance(row, HudsimError):
                raise row
            data = {name: array.copy() for name, array in row.data.items()}
            rows[slot] = Row(data, row.terminated, row.truncated, row.reward, row.success)
        return rows

    def step(self, world: World, action: Array, slots: Sequence[int] = (0,)) -> dict[int, Row]:
        """Advance ``slots`` by a tick with ``action``, read-only as it is when it comes from the wire."""
        self.tick = (self.tick or 0) + 1
        given = action.copy()
        given.flags.writeable = False
        for error in world.step(dict.fromkeys(slots, given)).values():
            raise error
        return self.see(world, slots)

    def action(self, tick: int) -> Array:
        """An action [*shape] that the contract allows, another one for each tick."""
        return self.contract.example(seed=tick)[1]

    def play(self, world: World, seed: int, ticks: int) -> list[Row]:
        """The rows of slot 0: the reset's, then one a tick; ends early with the episode."""
        rows = [self.reset(world, seed)[0]]
        for tick in range(ticks):
            if over(rows[-1]):
                break
            rows.append(self.step(world, self.action(tick))[0])
        return rows

    def close_twice(self, seed: int) -> None:
        """Make one more world, start an episode, then close its bridge, and again. Raises what the bridge raises."""
        world = self.another()
        self._made.remove(world)
        self.reset(world, seed)
        for _ in range(2):
            self._bridges[-1].close()

    def close(self) -> None:
        """Close all worlds. Idempotent."""
        made, self._made = self._made, []
        self._world = None
        self._bridges.clear()
        for world in made:
            with contextlib.suppress(Exception):  # a check closes worlds too, and says what comes of it
                world.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
