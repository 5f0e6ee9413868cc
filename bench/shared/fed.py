"""``fed``: play a realtime world whose every tick has an action, with as little of an agent as that takes."""

from __future__ import annotations

import time

import numpy as np

from hudsim.robot.client import RobotClient
from hudsim.wire.session import Heard

__all__ = ["fed"]

_CHUNK_S = 0.4  # renewed at half of it: room for an agent that is late, and little is sent


async def fed(robot: RobotClient, first: Heard, ticks: int) -> tuple[list[int], list[int]]:
    """Zeros for ``ticks`` ticks from the ``first`` observation on. The episode goes on: whoever grades it ends it.

    Two lists of an observation each: when it was taken (ns, of perf_counter), and its tick's place on the grid of
    deadlines, those that were missed counted.
    """
    rate_hz = robot.contract.control_rate or 1.0
    chunk = np.zeros((max(4, int(_CHUNK_S * rate_hz)), *(robot.contract.action.shape or ())), np.float32)
    heard, sent, taken_ns, places = first, -len(chunk), list[int](), list[int]()
    while heard.index < ticks and not heard.over:
        if heard.index - sent >= len(chunk) // 2:
            sent = heard.index
            await robot.send_chunk(chunk)
        heard = await robot.get_observation()
        taken_ns.append(time.perf_counter_ns())
        places.append(heard.index + int(heard.meta.get("ticks_missed", 0)))
    return taken_ns, places
