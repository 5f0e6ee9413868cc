"""One world process of many slots, and one agent process that plays them all: the latter is this program.

Asked by lines of JSON: ``{"world": …, "slots": n, "mode": …}`` once, then ``{"seconds": s}`` as often as may be
(``realtime``: once).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import numpy as np

from hudsim.bench.scale.worlds import RATE_HZ, world_of
from hudsim.bench.shared.fed import fed
from hudsim.bench.shared.tell import tell
from hudsim.loop import run
from hudsim.robot.cadence import Cadence
from hudsim.robot.client import RobotClient
from hudsim.robot.endpoint import RobotEndpoint

__all__: list[str] = []

_START_S = 0.5  # ticks that are not looked at: the slots start one after another


async def _main() -> None:
    if not (line := await asyncio.to_thread(sys.stdin.readline)):
        return
    order = json.loads(line)
    spec, slots = world_of(order["world"]), order["slots"]
    async with AsyncExitStack() as stack:
        endpoint = RobotEndpoint.spawn(spec, mode=order["mode"], rate_hz=RATE_HZ, num_envs=slots)
        world = await stack.enter_async_context(endpoint)
        tokens = [(await world.reset(seed=slot)).token for slot in range(slots)]
        dials = [RobotClient.connect(world.capability(), token=token) for token in tokens]
        robots = [await stack.enter_async_context(await dial) for dial in dials]
        firsts = [await robot.get_observation() for robot in robots]
        _say({"transport": robots[0].transport})
        while line := await asyncio.to_thread(sys.stdin.readline):
            seconds = json.loads(line)["seconds"]
            if order["mode"] == "lockstep":
                _say(await _step(robots, seconds))
                continue
            ticks = int((seconds + _START_S) * RATE_HZ)
            await asyncio.gather(*(fed(robot, first, ticks) for robot, first in zip(robots, firsts, strict=True)))
            records = [await world.result(token) for token in tokens]
            _say(_account(records, sum(robot.skipped for robot in robots)))


async def _step(robots: list[RobotClient], seconds: float) -> dict[str, Any]:
    """All act, all observe, as one policy for all of them has it."""
    action = np.zeros(robots[0].contract.action.shape or (), np.float32)
    rounds, began_s = 0, time.perf_counter()
    while (passed_s := time.perf_counter() - began_s) < seconds:
        for robot in robots:
            await robot.send_action(action)
        for robot in robots:
            await robot.get_observation()
        rounds += 1
    return {"steps_per_s": rounds * len(robots) / passed_s}


def _account(records: list[dict[str, Any]], skipped: int) -> dict[str, Any]:
    """All slots together; ``worst``: the largest share of ticks that one slot missed or starved through."""
    cadence, worst = Cadence(), 0.0
    for record in records:
        one = Cadence.from_json(record["cadence"])
        worst = max(worst, (one.missed + one.starved) / max(1, one.ticks + one.missed))
        cadence.merge(one)
    cadence.skipped = skipped
    ends = sorted({record["end"] for record in records if record["is_error"]})
    return {"cadence": cadence.to_json(), "worst": worst, "errors": ends}


def _say(answer: dict[str, Any]) -> None:
    tell(json.dumps(answer), _ANSWERS)


if __name__ == "__main__":
    _ANSWERS = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a simulator prints is no answer
    run(_main())
