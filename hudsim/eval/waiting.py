"""What runs wait for while others hold it: a job that waits looks like one that hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from hudsim.environment.client import ControlClient
from hudsim.errors import HudsimError
from hudsim.eval.run import Run

__all__ = ["follow", "tell"]

log = logging.getLogger(__name__)

_ASK_S = 2.0
_LOOK_S = 0.5


async def follow(client: ControlClient, on_news: Callable[[str | None], None]) -> None:
    """While the session of ``client`` starts a task: tell what that waits for (None: nothing) as it changes.

    Until cancelled.
    """
    before: str | None = None
    while True:
        await asyncio.sleep(_ASK_S)
        try:
            (session,) = await client.sessions(client.session_id)
        except (HudsimError, ValueError):  # one that does not tell; what has broken, the start itself will say
            return
        now = (session["task"] or {}).get("waits_for")
        if now != before:
            on_news(before := now)


async def tell(live: Collection[Run]) -> None:
    """Log once what the ``live`` runs of a job wait for, as soon as all of them do; until cancelled."""
    while True:
        await asyncio.sleep(_LOOK_S)
        if live and all(run.waits_for for run in live):
            what = ", ".join(sorted({run.waits_for or "" for run in live}))
            log.warning("%s for a slot of %s", "1 run waits" if len(live) == 1 else f"{len(live)} runs wait", what)
            return
