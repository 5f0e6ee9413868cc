"""``Slots``: which slot holds which episode, and who plays it. Lives on the loop thread."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudsim.errors import EpisodeOver, NoFreeSlot, SlotTaken

if TYPE_CHECKING:
    from hudsim.robot.seat import Seat

__all__ = ["Slot", "Slots"]


@dataclass
class Slot:
    """One slot: free (``token`` None), or holding an episode.

    ready
        Its reset is done: it may be claimed and asked for.
    claimed
        Somebody has claimed this episode already, so that it is not up for another claim.
    ungraded
        A claim started it, so that nobody will ask for its result.
    seat
        The agent that plays it now; None: nobody.
    result
        The episode's record once it is over, until it is graded.
    """

    index: int
    token: str | None = None
    seed: int | None = None
    prompt: str = ""
    ready: bool = False
    claimed: bool = False
    ungraded: bool = False
    seat: Seat | None = None
    result: dict[str, Any] | None = None

    def free(self) -> None:
        """Make room for the next episode."""
        self.token = self.seed = self.seat = self.result = None
        self.prompt, self.ready, self.claimed, self.ungraded = "", False, False, False

    @property
    def live(self) -> bool:
        """It holds an episode that is not over."""
        return self.token is not None and self.result is None


class Slots:
    """All slots of a world."""

    def __init__(self, count: int) -> None:
        self._slots = [Slot(index) for index in range(count)]

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def __getitem__(self, index: int) -> Slot:
        return self._slots[index]

    def take(self) -> Slot:
        """A slot for a new episode, with a fresh token. Raises :class:`~hudsim.errors.NoFreeSlot`.

        An episode that is over and that nobody will ask for gives its slot up.
        """
        slot = next((s for s in self._slots if s.token is None), None)
        if slot is None:
            slot = next((s for s in self._slots if s.ungraded and not s.live), None)
        if slot is None:
            held = len(self._slots)
            live = sum(s.live for s in self._slots)
            what = "the only slot is" if held == 1 else f"all {held} slots are"
            raise NoFreeSlot(
                f"{what} taken: {live} being played, {held - live} over but not asked for (result frees a slot)"
            )
        slot.free()
        slot.token = f"{slot.index}-{secrets.token_hex(8)}"
        return slot

    def find(self, token: str | None) -> Slot:
        """The slot of ``token``; None: the only one that holds an episode. Raises :class:`EpisodeOver`."""
        held = [s for s in self._slots if s.token is not None and s.ready]
        if token is not None:
            held = [s for s in held if s.token == token]
            if not held:
                raise EpisodeOver(f"no episode {token!r} here: it has been graded, or never was")
        if len(held) != 1:
            raise EpisodeOver(f"got no token, and {len(held)} episodes are held; name one by its token")
        return held[0]

    def claimable(self, token: str | None) -> Slot | None:
        """The slot that a claim gets. None: no token, and no episode waits for a claim.

        Raises :class:`~hudsim.errors.SlotTaken` if another connection has it, :class:`EpisodeOver` if it is over.
        """
        if token is None:
            waiting = [s for s in self._slots if s.live and s.ready and not s.claimed]
            if len(waiting) > 1:
                raise EpisodeOver(f"got no token, and {len(waiting)} episodes wait for a claim; claim one by its token")
            return waiting[0] if waiting else None
        slot = self.find(token)
        if slot.live and slot.claimed:
            raise SlotTaken(f"slot {slot.index} has a live connection")
        if not slot.live:
            raise EpisodeOver(f"episode {token} is over: {(slot.result or {}).get('end')}")
        return slot
