"""The checks of a world, as plain functions; ``hudsim check`` and :class:`BridgeConformance` run the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from hudsim.contract import Feature
from hudsim.errors import ContractError, HudsimError
from hudsim.robot.bridge import Array, Observation, RobotBridge
from hudsim.robot.world import Row
from hudsim.testing.finding import Finding
from hudsim.testing.subject import Recognise, Subject, over

__all__ = ["CHECKS", "Finding", "Recognise", "check_bridge", "differences", "iter_findings"]

_TICKS = 10
_EPISODE_TICKS, _EPISODE_S = 2000, 2.0  # an episode that has not ended by then is left
_TIMED_TICKS = 50
_SEED, _OTHER_SEED = 7, 8
_RAISED = "the bridge raised "  # a World's errors begin so


def check_bridge(
    factory: Callable[..., RobotBridge],
    *,
    task_args: Mapping[str, Any] | None = None,
    recognise: Recognise | None = None,
) -> list[Finding]:
    """Make the world of ``factory`` and look at all that a policy relies on; what was found, good and bad.

    Runs on the calling thread and makes two or three worlds. ``task_args`` go to every reset. ``recognise``
    (``hudsim.bridges.testcard.recognise``) tells how a frame that shows a test card is turned; None: frames are
    not looked at for one. Raises nothing that the world raises: that is a finding too.
    """
    return list(iter_findings(factory, task_args=task_args, recognise=recognise))


def iter_findings(
    factory: Callable[..., RobotBridge],
    *,
    task_args: Mapping[str, Any] | None = None,
    recognise: Recognise | None = None,
    on_check: Callable[[str], None] = lambda what: None,
) -> Iterator[Finding]:
    """As :func:`check_bridge`, each finding as soon as its check is done; ``on_check`` is told which begins."""
    said: set[tuple[str, str]] = set()  # what breaks several checks is said once
    with Subject(factory, task_args, recognise) as subject:
        for what, check in CHECKS.items():
            on_check(what)
            findings = _findings(what, check, subject)
            for finding in findings:
                key = (finding.what if finding.ok else "", finding.got)
                if key not in said:
                    said.add(key)
                    yield finding
            if what == "world" and not findings[0].ok:
                break


def _findings(what: str, check: Callable[[Subject], Iterator[Finding]], subject: Subject) -> list[Finding]:
    """Of one check: those it came to, and what cut it short."""
    findings: list[Finding] = []
    try:
        findings.extend(check(subject))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own world: what it raises is the finding
        findings.append(_broken(what, error, subject.tick))
    return findings


def check_world(subject: Subject) -> Iterator[Finding]:
    """The factory gives a bridge with a contract."""
    contract = subject.contract
    kind = f"{contract.robot_type or 'a world'} of {len(contract.observations)} features"
    yield Finding("world", f"{kind}, action {list(contract.action.shape or ())}", severity="ok")


def check_observations(subject: Subject) -> Iterator[Finding]:
    """What is shown is what the contract says, finite, and looking at it changes nothing."""
    rows = subject.play(subject.world, _SEED, _TICKS)
    count = len(subject.contract.observations)
    yield Finding("observations", f"{count} features as the contract says, over {len(rows)} looks", severity="ok")
    again = subject.see(subject.world)[0]
    for name, how in differences(rows[-1].data, again.data):
        yield Finding(f"looking twice at {name}", how, "the same observation until the next step")
    yield from _tolerated(subject)


def _tolerated(subject: Subject) -> Iterator[Finding]:
    """What the server puts right by itself, at every tick anew."""
    count, seen = subject.bridge.num_envs, subject.bridge.get_observation()
    for name, value in (seen.data if isinstance(seen, Observation) else seen[0]).items():
        feature, array = subject.contract.observations[name], np.asarray(value)
        whole = [count, *(feature.shape or ())]
        if list(array.shape) != whole:
            got = f"{list(array.shape)}, without the world as its first axis"
            yield Finding(f"{name} (shape)", got, f"{whole}, as in array[np.newaxis]", "warning")
        if array.dtype != feature.dtype:
            expected = f"{feature.dtype} as the contract says, as in array.astype(np.{feature.dtype})"
            yield Finding(f"{name} (dtype)", str(array.dtype), expected, "warning")


def check_cameras(subject: Subject) -> Iterator[Finding]:
    """Images are HWC, uint8, and show something; what looks like one is called one."""
    first = subject.reset(subject.world, _SEED)[0].data
    for name, feature in subject.contract.observations.items():
        if feature.type in ("rgb", "bgr", "gray"):
            yield _camera(name, feature, first[name])
        elif not feature.is_image and _looks_like_an_image(first[name]):
            shape = list(first[name].shape)
            yield Finding(name, f"uint8{shape} without a type", 'an image that says so ("type": "rgb")', "warning")


def _camera(name: str, feature: Feature, image: Array) -> Finding:
    if image.dtype != np.uint8:
        return Finding(name, f"an image of {image.dtype}", "uint8, as policies are trained on", "warning")
    if (image == image.reshape(-1, *image.shape[2:])[0]).all():
        colour = np.atleast_1d(image[0, 0]).tolist()
        return Finding(name, f"one colour all over, {colour}", "a picture; is there a light, is the camera in a wall?")
    return Finding(name, f"{feature.type} {list(image.shape)}, shows something", severity="ok")


def _looks_like_an_image(array: Array) -> bool:
    return array.dtype == np.uint8 and array.ndim == 3 and 3 in (array.shape[0], array.shape[2]) and array.size > 3000


def check_test_card(subject: Subject) -> Iterator[Finding]:
    """Frames that show a test card show it upright, their channels in the contract's order."""
    if subject.recognise is None:
        return
    first = subject.reset(subject.world, _SEED)[0].data
    for name, feature in subject.contract.observations.items():
        if feature.type not in ("rgb", "bgr"):
            continue
        image = first[name][..., ::-1] if feature.type == "bgr" else first[name]
        seen = subject.recognise(image)
        if seen == "upright":
            yield Finding(f"{name} (test card)", f"upright, {feature.type} as the contract says", severity="ok")
        elif seen == "bgr":
            other = {"rgb": "bgr", "bgr": "rgb"}[feature.type]
            yield Finding(f"{name} (test card)", f"{other} channels", f"{feature.type}, as the contract says")
        elif seen != "not a test card":
            yield Finding(f"{name} (test card)", f"an image that is {seen}", "an upright one")


def check_determinism(subject: Subject) -> Iterator[Finding]:
    """An episode is a function of its seed and actions, whatever was played before and in whichever instance."""
    if not subject.seeded:
        expected = "a seed, or no episode can be played again"
        yield Finding("determinism", "a reset that takes no seed", expected, "warning")
        return
    world = subject.world
    before = subject.play(world, _SEED, _TICKS)
    other = subject.play(world, _OTHER_SEED, _TICKS)
    yield from _same_episode("after another episode", before, subject.play(world, _SEED, _TICKS))
    yield from _same_episode("in a fresh instance", before, subject.play(subject.another(), _SEED, _TICKS))
    if not differences(before[0].data, other[0].data):
        got = f"the same start for seeds {_SEED} and {_OTHER_SEED}"
        yield Finding("seeds", got, "another start for another seed, unless it is fixed on purpose", "warning")


def _same_episode(when: str, before: list[Row], again: list[Row]) -> Iterator[Finding]:
    what = f"the same seed {when}"
    if len(before) != len(again):
        yield Finding(what, f"{len(again) - 1} ticks", f"{len(before) - 1}, as the first time")
        return
    for tick, (one, two) in enumerate(zip(before, again, strict=True)):
        if changed := differences(one.data, two.data):
            name, how = changed[0]
            yield Finding(f"{what}, {name} at tick {tick}", how, "the same observations, bit for bit")
            return
        if one.reward != two.reward:
            yield Finding(f"{what}, reward at tick {tick}", f"{two.reward!r}", f"{one.reward!r}, as the first time")
            return
    yield Finding(what, f"the same {len(before)} observations, bit for bit", severity="ok")


def check_ending(subject: Subject) -> Iterator[Finding]:
    """The last observation of an episode is its own: not the next one's first, and it stays until the reset."""
    world, began = subject.world, perf_counter()
    first = row = subject.reset(world, _SEED)[0]
    tick = 0
    while not over(row) and tick < _EPISODE_TICKS and perf_counter() - began < _EPISODE_S:
        row = subject.step(world, subject.action(tick))[0]
        tick += 1
    if tick == 0:
        yield Finding("ending", "an episode that is over before its first action", "one that can be played")
        return
    if not over(row):
        yield Finding("ending", f"no end within {tick} ticks of random actions", severity="ok")
        return
    again = subject.see(world)[0]
    if (again.terminated, again.truncated) != (row.terminated, row.truncated) or differences(row.data, again.data):
        yield Finding("ending", "an end that is gone at the second look", "the last observation until the next reset")
    elif tick > 1 and not differences(first.data, row.data):
        yield Finding(
            "ending", "the reset's observation", "the episode's true last one, kept until a reset is asked for"
        )
    else:
        how = "terminated" if row.terminated else "truncated"
        yield Finding("ending", f"{how} at tick {tick}, with its last observation", severity="ok")


def check_cost(subject: Subject) -> Iterator[Finding]:
    """A tick (step and observation) fits into the control period."""
    rate = subject.contract.control_rate
    if rate is None:
        yield Finding("control rate", "none", "a control_rate in the contract, for paced and realtime", "warning")
        return
    world, took = subject.world, []
    row = subject.reset(world, _SEED)[0]
    for tick in range(_TIMED_TICKS):
        if over(row):
            row = subject.reset(world, _SEED + tick)[0]
        began = perf_counter()
        row = subject.step(world, subject.action(tick))[0]
        took.append(perf_counter() - began)
    period_ms, median_ms, worst_ms = 1e3 / rate, 1e3 * float(np.median(took)), 1e3 * max(took)
    got = f"{median_ms:.1f} ms in the median, {worst_ms:.1f} at worst"
    if median_ms > period_ms:
        expected = f"at most {period_ms:.1f} ms ({rate:g} Hz) to keep up in realtime; lockstep is fine"
        yield Finding("cost of a tick", got, expected, "warning")
    else:
        yield Finding("cost of a tick", f"{got}; there are {period_ms:.1f} ms ({rate:g} Hz)", severity="ok")


def check_slots(subject: Subject) -> Iterator[Finding]:
    """Slot 0 of a vector bridge is the same bit for bit with 1 and with 3 slots, and an idle slot stands still."""
    if not subject.vector:
        return
    alone = subject.play(subject.another(1), _SEED, _TICKS)
    world = subject.another(3)
    for slot in range(3):
        subject.reset(world, _OTHER_SEED, [slot])
    idle = subject.see(world, [2])[2]
    rows = [subject.reset(world, _SEED)[0]]
    for tick in range(len(alone) - 1):
        stepped = subject.step(world, subject.action(tick), [0, 1] if tick % 2 else [0])
        rows.append(stepped[0])
    yield from _same_episode("in one slot of three", alone, rows)
    moved = differences(idle.data, subject.see(world, [2])[2].data)
    for name, how in moved:
        yield Finding(f"a slot that is not stepped, {name}", how, "no change: only active slots move")
    if not moved:
        yield Finding("a slot that is not stepped", "it stands still", severity="ok")


def check_close(subject: Subject) -> Iterator[Finding]:
    """Closing works, and a second time does nothing."""
    try:
        subject.close_twice(_SEED)
    except HudsimError:
        raise
    except Exception as error:  # noqa: BLE001 - the bridge is the user's own: whatever it raises is the finding
        yield Finding("close", f"{type(error).__name__}: {error}", "no error, also the second time")
    else:
        yield Finding("close", "it closes, and again without harm", severity="ok")


CHECKS: dict[str, Callable[[Subject], Iterator[Finding]]] = {
    "world": check_world,
    "observations": check_observations,
    "cameras": check_cameras,
    "test card": check_test_card,
    "determinism": check_determinism,
    "ending": check_ending,
    "slots": check_slots,
    "cost of a tick": check_cost,
    "close": check_close,
}


def differences(one: Mapping[str, Array], two: Mapping[str, Array]) -> list[tuple[str, str]]:
    """(feature, how) for each array whose bytes differ."""
    found = []
    for name, array in one.items():
        other = two[name]
        if array.tobytes() != other.tobytes():
            off = np.abs(other.astype(np.float64) - array.astype(np.float64))
            found.append((name, f"{np.count_nonzero(off)} of {off.size} numbers differ, by up to {np.nanmax(off):.3g}"))
    return found


def _broken(what: str, error: BaseException, tick: int | None) -> Finding:
    """A check that the world cut short. An observation against the contract says its feature itself."""
    if not isinstance(error, HudsimError):
        return Finding(what, f"{type(error).__name__}: {error}{_when(tick)}", "no error")
    if isinstance(error, ContractError) or {"feature", "got", "expected"} <= error.data.keys():
        data = error.data
        return Finding(str(data["feature"]), f"{data['got']}{_when(tick)}", str(data["expected"]))
    raised = error.message.removeprefix(_RAISED)
    if raised != error.message:
        return Finding(what, f"{raised}{_when(tick)}", "no error")
    return Finding(what, f"{error.message}{_when(tick)}")


def _when(tick: int | None) -> str:
    return "" if tick is None else f" at tick {tick}" if tick else " at the reset"
