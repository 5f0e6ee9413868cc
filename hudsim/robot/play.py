"""``Play``: one episode in one slot while it is played. Owned by the sim thread."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hudsim.contract import Contract
from hudsim.errors import HudsimError
from hudsim.robot.bridge import Array
from hudsim.robot.buffer import Due
from hudsim.robot.cadence import Cadence
from hudsim.robot.ending import End
from hudsim.robot.world import Row
from hudsim.wire.session import Peer

__all__ = ["Play", "lost_record"]


@dataclass(slots=True)
class Play:
    """What has happened in an episode so far.

    tick
        Ticks done, which is also the index of the newest observation.
    peer
        Who plays it; None: nobody has claimed it yet.
    due
        The action that waits for its step, where a step waits for the action.
    by_memory
        Observations whose large arrays went through shared memory.
    encodings
        {camera: encoding} of what crosses the link encoded.
    packed
        What :class:`~hudsim.robot.lateframe.LateFrame` tells of them, until it is in the cadence.
    """

    token: str
    slot: int
    seed: int | None
    prompt: str
    first: Row
    contract: Contract
    cadence: Cadence
    peer: Peer | None = None
    tick: int = 0
    due: Due | None = None
    by_memory: int = 0
    encodings: dict[str, str] = field(default_factory=dict)
    packed: deque[tuple[int, int]] = field(default_factory=deque)
    last_action: Array | None = None
    clipped: Array | None = None
    reward: float = 0.0
    success_any: bool | None = None
    success_last: bool | None = None
    end: End | None = None
    error: HudsimError | None = None

    def count_clipped(self, mask: Array | None) -> int:
        """Add a tick's clipped dimensions to the account; returns how many there were."""
        if mask is None:
            return 0
        if self.clipped is None:
            self.clipped = np.zeros(mask.shape, dtype=np.int64)
        self.clipped += mask
        return int(mask.sum())

    def account_packed(self) -> None:
        """Take over what another thread has told of frames that it packed."""
        while self.packed:
            took_ns, size = self.packed.popleft()
            self.cadence.stages["compress"].record(took_ns)
            self.cadence.frame_bytes.record(size)

    def account(self, row: Row) -> None:
        """Add what a tick brought."""
        self.reward += row.reward
        if row.success is not None:
            self.success_any = bool(self.success_any) or row.success
            self.success_last = row.success

    @property
    def success(self) -> bool | None:
        """By the contract's rule: whether success held at any tick, or at the last. None: the world does not say."""
        return self.success_last if self.contract.success.rule == "last" else self.success_any

    def result(self, score: dict[str, Any]) -> dict[str, Any]:
        """The record of the episode, plain JSON.

        ``score`` is the bridge's own; without one it is 1.0 for success, 0.0 for failure, null if the world
        does not say. An end that is nobody's verdict (``is_error``) has a null score whatever the bridge thinks.
        """
        self.account_packed()
        end = self.end or End("aborted", "cancelled")
        success = self.success
        value = score.get("score", None if success is None else float(success))
        if end.kind == "aborted":
            success = None if end.is_error else False
            value = None if end.is_error else 0.0
        clipped = self.clipped
        if clipped is None and self.contract.action.out_of_range == "clip":
            clipped = np.zeros(self.contract.action.shape or (), dtype=np.int64)
        return {
            "episode": self.token,
            "slot": self.slot,
            "seed": self.seed,
            "prompt": self.prompt,
            "end": str(end),
            "is_error": end.is_error,
            "message": self.error.message if self.error else None,
            "ticks": self.tick,
            "by_memory": self.by_memory,
            "encodings": self.encodings,
            "total_reward": self.reward,
            "success": success,
            "success_any": self.success_any,
            "success_last": self.success_last,
            "score": value,
            "clipped": None if clipped is None else clipped.reshape(-1).tolist(),
            "info": {key: value for key, value in score.items() if key not in ("score", "success", "total_reward")},
            "cadence": self.cadence.to_json(),
        }


def lost_record(
    token: str | None, slot: int, seed: int | None, prompt: str, *, end: End, message: str
) -> dict[str, Any]:
    """The record of an episode whose world cannot be asked any more: what is known, how it ended, and why."""
    unknown = dict.fromkeys(("total_reward", "success", "success_any", "success_last", "score", "clipped"))
    return {
        "episode": token,
        "slot": slot,
        "seed": seed,
        "prompt": prompt,
        "end": str(end),
        "is_error": end.is_error,
        "message": message,
        "ticks": 0,
        "by_memory": 0,
        "encodings": {},
        **unknown,
        "info": {},
        "cadence": Cadence().to_json(),
    }
