"""``World``: bridges of every kind, as slots that are reset, stepped and seen one by one."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import threading
import traceback
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hudsim.contract import Checks, Contract
from hudsim.errors import ContractError, HudsimError, NoFreeSlot, SimDiverged, SimFailed, UnknownName, UsageError
from hudsim.robot.bridge import Array, Observation, Pages, RobotBridge, VectorRobotBridge

__all__ = ["BatchWorld", "Row", "SeparateWorlds", "VectorWorld", "World", "make_world", "reset_arguments"]


log = logging.getLogger(__name__)

R = TypeVar("R")
_NO_PAGES: Pages = MappingProxyType({})
_NOT_RUN = (types.CoroutineType, types.GeneratorType)  # what an `async def` or a `yield` gives instead of running


class Row(NamedTuple):
    """What one slot shows after a tick: :class:`~hudsim.robot.bridge.Observation` without the slot axis, checked."""

    data: dict[str, Array]
    terminated: bool
    truncated: bool
    reward: float
    success: bool | None


class World(ABC):
    """N slots of one contract. All methods run on the sim thread.

    together
        The slots that are due are stepped in one call (True), or each by itself (False).
    barrier
        A step needs every slot that is being played; the others get a holding action.
    """

    together = False
    barrier = False

    def __init__(self, contract: Contract, num_slots: int, bridge: RobotBridge) -> None:
        self.contract = contract
        self.num_slots = num_slots
        self.params = bridge.capability_params()
        self.metadata = dict(bridge.metadata)
        self.checks: Checks = contract.compile()

    @abstractmethod
    def reset(self, slot: int, seed: int | None, task_args: Mapping[str, Any]) -> str:
        """Start an episode in ``slot``; its prompt. Raises :class:`SimFailed` or what the task refuses."""

    @abstractmethod
    def step(self, actions: Mapping[int, Array]) -> dict[int, HudsimError]:
        """Advance the slots named by a tick; what went wrong, by slot."""

    @abstractmethod
    def observe(self, slots: Sequence[int], pages: Pages = _NO_PAGES) -> dict[int, Row | HudsimError]:
        """What the slots show now, checked against the contract; what went wrong stands in a row's place.

        ``pages`` are those of the slots' agents that a bridge may write to (None: it cannot).
        """

    @abstractmethod
    def result(self, slot: int) -> dict[str, Any]:
        """The bridge's own score of the slot's episode; {} if it leaves that to the contract's rule."""

    def release(self, slot: int) -> None:
        """The slot's episode has been graded."""
        return

    @abstractmethod
    def close(self) -> None:
        """Free what the bridges hold."""

    def row(self, observation: Observation, index: int) -> Row | HudsimError:
        """World ``index`` of a batched observation, checked."""
        try:
            return self._row(observation, index)
        except HudsimError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever a bridge may have put into it
            return SimFailed(f"the world's observation cannot be read: {type(error).__name__}: {error}")

    def _row(self, observation: Observation, index: int) -> Row:
        try:
            data = self.checks.observation(_rows(observation.data, index, self.num_slots if self.together else 1))
        except ContractError as error:
            diverged = "finite" in error.expected
            kind = SimDiverged if diverged else SimFailed
            raise kind(f"the world's observation breaks its contract: {error.message}", **error.data) from None
        count = self.num_slots if self.together else 1
        reward = _nth("reward", observation.reward, index, count)
        ends = [_nth(name, getattr(observation, name), index, count) for name in ("terminated", "truncated")]
        success = _nth("success", observation.success, index, count)
        reward = 0.0 if reward is None else float(reward)
        if not math.isfinite(reward):
            raise SimDiverged(f"the world's reward is {reward}, expected a finite number")
        return Row(data, bool(ends[0]), bool(ends[1]), reward, None if success is None else bool(success))


class SeparateWorlds(World):
    """N bridges of one world each; one that fails takes only its own slot with it."""

    def __init__(self, bridges: Sequence[RobotBridge], contract: Contract) -> None:
        super().__init__(contract, len(bridges), bridges[0])
        self._bridges = list(bridges)
        self._eyes = [_Eye(bridge) for bridge in bridges]

    def reset(self, slot: int, seed: int | None, task_args: Mapping[str, Any]) -> str:
        bridge = self._bridges[slot]
        self._eyes[slot].reset()
        arguments = reset_arguments(bridge.reset, seed, task_args)
        return str(_guarded(lambda: bridge.reset(**arguments)))

    def step(self, actions: Mapping[int, Array]) -> dict[int, HudsimError]:
        failures: dict[int, HudsimError] = {}
        for slot, action in actions.items():
            try:
                _guarded(functools.partial(self._bridges[slot].step, np.array(action[np.newaxis])))  # its own copy
            except HudsimError as error:
                failures[slot] = error
        return failures

    def observe(self, slots: Sequence[int], pages: Pages = _NO_PAGES) -> dict[int, Row | HudsimError]:
        rows: dict[int, Row | HudsimError] = {}
        for slot in slots:
            try:
                rows[slot] = self.row(self._eyes[slot].see({0: pages.get(slot)}), 0)
            except HudsimError as error:
                rows[slot] = error
        return rows

    def result(self, slot: int) -> dict[str, Any]:
        return _guarded(self._bridges[slot].result)

    def close(self) -> None:
        for bridge in self._bridges:
            _closed(bridge)


class _OneBridge(World):
    """What a vector bridge and a whole batch share: one object, one call, one failure for all of its slots."""

    together = True

    def __init__(self, bridge: RobotBridge, contract: Contract) -> None:
        super().__init__(contract, bridge.num_envs, bridge)
        self._whole = bridge
        self._eye = _Eye(bridge)

    def observe(self, slots: Sequence[int], pages: Pages = _NO_PAGES) -> dict[int, Row | HudsimError]:
        try:
            observation = self._eye.see(pages)
        except HudsimError as error:
            return dict.fromkeys(slots, error)
        return {slot: self.row(observation, slot) for slot in slots}

    def close(self) -> None:
        _closed(self._whole)

    def _all_failed(self, actions: Mapping[int, Array], call: Callable[[], None]) -> dict[int, HudsimError]:
        try:
            _guarded(call)
        except HudsimError as error:
            return dict.fromkeys(error.data.get("slots", actions), error)
        return {}


class VectorWorld(_OneBridge):
    """A :class:`~hudsim.robot.bridge.VectorRobotBridge`: N slots of one simulator, each by its mask."""

    def __init__(self, bridge: VectorRobotBridge, contract: Contract) -> None:
        super().__init__(bridge, contract)
        self.bridge = bridge
        feature = contract.action
        self._actions = np.zeros((bridge.num_envs, *(feature.shape or ())), dtype=feature.dtype)
        self._active = np.zeros(bridge.num_envs, dtype=np.bool_)

    def reset(self, slot: int, seed: int | None, task_args: Mapping[str, Any]) -> str:
        arguments = reset_arguments(self.bridge.reset, None, task_args)
        return str(_guarded(lambda: self.bridge.reset([slot], [seed], **arguments))[0])

    def step(self, actions: Mapping[int, Array]) -> dict[int, HudsimError]:
        self._active[:] = False
        for slot, action in actions.items():
            self._actions[slot] = action
            self._active[slot] = True
        return self._all_failed(actions, lambda: self.bridge.step(self._actions, self._active))

    def result(self, slot: int) -> dict[str, Any]:
        return _guarded(lambda: self.bridge.results(slot))


class BatchWorld(_OneBridge):
    """A bridge that set ``num_envs`` itself, as HUD's do: one reset serves all of its slots, a step needs them all."""

    barrier = True

    def __init__(self, bridge: RobotBridge, contract: Contract) -> None:
        super().__init__(bridge, contract)
        self.bridge = bridge
        self._taken: set[int] = set()  # had a turn since the last reset
        self._held: set[int] = set()  # have not been graded yet
        self._args: tuple[int | None, dict[str, Any]] | None = None
        self._prompt = ""
        self._last: dict[int, Array] = {}

    def reset(self, slot: int, seed: int | None, task_args: Mapping[str, Any]) -> str:
        """The first slot resets the batch; the others join it, with the same arguments, until all have had a turn."""
        wanted = (seed, dict(task_args))
        if others := self._held - {slot} if slot in self._taken else set():
            raise NoFreeSlot(f"this world resets its slots together, and slots {sorted(others)} are still held")
        if slot in self._taken or self._args is None:
            self._eye.reset()
            arguments = reset_arguments(self.bridge.reset, seed, task_args)
            self._prompt = str(_guarded(lambda: self.bridge.reset(**arguments)))
            self._args, self._taken = wanted, set()
            self._last.clear()
        elif wanted != self._args:
            raise UsageError(
                f"this world resets its {self.num_slots} slots together: got {wanted}, expected {self._args}, the "
                "arguments of the episodes that are running"
            )
        self._taken.add(slot)
        self._held.add(slot)
        return self._prompt

    def release(self, slot: int) -> None:
        self._held.discard(slot)

    def step(self, actions: Mapping[int, Array]) -> dict[int, HudsimError]:
        rows = [actions.get(slot, self.checks.hold(self._last.get(slot))) for slot in range(self.num_slots)]
        self._last.update(actions)
        return self._all_failed(actions, lambda: self.bridge.step(np.stack(rows)))

    def result(self, slot: int) -> dict[str, Any]:
        per_slot = getattr(self.bridge, "result_slots", None)
        return dict(_guarded(per_slot)[slot]) if per_slot is not None else _guarded(self.bridge.result)


def make_world(
    make: Callable[..., RobotBridge], *, num_envs: int = 1, adjust: Callable[[Contract], Contract] = lambda c: c
) -> World:
    """The world that ``make()`` gives, with ``num_envs`` slots.

    If ``make`` takes ``num_envs`` it is asked for one bridge of them all, else it is called for each. ``adjust``
    may change the contract (timing, rate) before it is published. Resets a world whose contract is not complete,
    to see its first observation.
    """
    at_once = num_envs > 1 and "num_envs" in inspect.signature(make).parameters
    bridge: object = _guarded(lambda: make(num_envs=num_envs) if at_once else make())
    if not isinstance(bridge, RobotBridge):
        hint = "; a Gymnasium environment is served as gym:module:factory" if hasattr(bridge, "action_space") else ""
        raise UsageError(f"got a {type(bridge).__name__}, expected a RobotBridge{hint}")
    contract = adjust(_completed(bridge))
    if bridge.num_envs == 1 and not isinstance(bridge, VectorRobotBridge):
        return SeparateWorlds([bridge] + [_guarded(make) for _ in range(num_envs - 1)], contract)
    if num_envs not in (1, bridge.num_envs):
        raise UsageError(f"num_envs: got {num_envs}, but {type(bridge).__name__} has {bridge.num_envs} by itself")
    return VectorWorld(bridge, contract) if isinstance(bridge, VectorRobotBridge) else BatchWorld(bridge, contract)


def _completed(bridge: RobotBridge) -> Contract:
    """The bridge's contract, with what it leaves out filled from its first observation."""
    contract = Contract.load(bridge.contract)
    if contract.observations and all(feature.complete for feature in contract.features.values()):
        return contract
    if isinstance(bridge, VectorRobotBridge):
        slots = list(range(bridge.num_envs))
        _guarded(lambda: bridge.reset(slots, [0] * len(slots)))
    else:
        _guarded(lambda: bridge.reset(**reset_arguments(bridge.reset, 0, {})))
    return contract.filled(_rows(_Eye(bridge).see().data, 0, bridge.num_envs))


class _Eye:
    """Sees a bridge in the rich form; the pair that HUD's bridges return is completed from their attributes."""

    def __init__(self, bridge: RobotBridge) -> None:
        self._bridge = bridge
        self._total = 0.0

    def reset(self) -> None:
        """A new episode: what the pair form is scored by starts afresh."""
        bridge = self._bridge
        bridge.total_reward, bridge.success, bridge.terminated = 0.0, False, False
        self._total = 0.0

    def see(self, pages: Pages = _NO_PAGES) -> Observation:
        """What the bridge shows now. Raises :class:`SimFailed`."""
        self._bridge.pages = pages
        try:
            seen: object = _guarded(self._bridge.get_observation)
        finally:
            self._bridge.pages = _NO_PAGES
        if isinstance(seen, Observation):
            return seen
        if not isinstance(seen, tuple) or len(seen) != 2 or not isinstance(seen[0], Mapping):
            raise SimFailed(
                f"get_observation: got {type(seen).__name__}, expected an Observation or (data {{name: array}}, "
                "terminated)"
            )
        data, terminated = seen
        bridge, count = self._bridge, self._bridge.num_envs
        reward, self._total = bridge.total_reward - self._total, bridge.total_reward
        flags = np.broadcast_to(np.asarray(terminated, dtype=np.bool_).reshape(-1), (count,))
        success = np.full(count, bool(bridge.success))
        return Observation(dict(data), flags, reward=np.full(count, reward), success=success)


def reset_arguments(reset: Callable[..., Any], seed: int | None, task_args: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for ``reset``: the task's, and the seed if its signature takes one.

    Raises :class:`~hudsim.errors.UnknownName` for an argument that it does not take.
    """
    parameters = inspect.signature(reset).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    takes = [name for name, p in parameters.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for name in task_args:
        if not open_ended and name not in takes:
            raise UnknownName("task argument", name, [n for n in takes if n not in ("seed", "seeds", "slots")])
    arguments = dict(task_args)
    if seed is not None and (open_ended or "seed" in takes):
        arguments.setdefault("seed", seed)
    return arguments


def _guarded(call: Callable[[], R]) -> R:
    """Call into the bridge; whatever it raises comes out as an error of ours that says what it was."""
    try:
        result = call()
    except HudsimError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # it is the user's own
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise SimFailed(
            f"the bridge raised {type(error).__name__}: {error} ({where.filename}:{where.lineno} in {where.name})",
            traceback=traceback.format_exc(limit=-8),
        ) from error
    if isinstance(result, _NOT_RUN):
        result.close()
        raise SimFailed(
            f"got a {type(result).__name__} from the bridge: reset, step and the others are plain functions"
        )
    return result


def _closed(bridge: RobotBridge) -> None:
    try:
        _guarded(bridge.close)
    except HudsimError as error:
        log.warning("closing: %s", error)


def _rows(data: Mapping[str, Any], index: int, count: int) -> dict[str, Array]:
    """Row ``index`` of each array. One without the slot axis is every slot's, as HUD's bridges may leave it out."""
    return {name: _row_of(array, index, count) for name, array in data.items()}


def _row_of(array: Any, index: int, count: int) -> Array:
    if type(array) is list and len(array) == count and all(isinstance(row, np.ndarray) for row in array):
        return np.asarray(array[index])
    whole = np.asarray(array)
    return np.asarray(whole[index]) if whole.ndim and len(whole) == count else whole


def _nth(name: str, values: Any, index: int, count: int) -> Any:
    """Slot ``index``'s value of ``values`` [N], a plain number or bool; None if there are none."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (count,) and not (array.ndim == 0 and count == 1):
        raise SimFailed(f"{name}: got shape {list(array.shape)}, expected one value a world, [{count}]")
    if array.dtype.kind not in "biuf":
        raise SimFailed(f"{name}: got {values!r:.60}, expected numbers or bools")
    return array.item(index) if array.ndim else array.item()
