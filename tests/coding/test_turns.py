"""One alone, or some beside each other."""

from __future__ import annotations

import asyncio

import pytest

from hudsim.coding.turns import Turns
from tests.asyncrun import on_loop


class Seen:
    """What those in a turn have seen of each other."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.here: list[str] = []
        self.met: set[tuple[str, ...]] = set()

    async def one(self, name: str) -> None:
        async with self.turns.alone() if name.isupper() else self.turns.beside():
            self.here.append(name)
            for _ in range(3):
                self.met.add(tuple(sorted(self.here)))
                await asyncio.sleep(0)
            self.here.remove(name)


@on_loop
async def test_who_is_alone_meets_nobody_and_the_others_meet_each_other() -> None:
    seen = Seen()
    await asyncio.gather(*(seen.one(name) for name in "AbcDeF"))
    assert seen.here == []
    assert ("b", "c") in seen.met
    assert {names for names in seen.met if any(map(str.isupper, names))} == {("A",), ("D",), ("F",)}


@on_loop
async def test_who_stops_waiting_or_fails_holds_nobody_up() -> None:
    turns = Turns()
    async with turns.beside():
        waiting = asyncio.create_task(Seen.one(seen := Seen(), "b"))
        seen.turns = turns
        given_up = asyncio.create_task(turns.alone().__aenter__())
        await waiting
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
    with pytest.raises(ZeroDivisionError):
        async with turns.alone():
            raise ZeroDivisionError
    async with turns.alone():
        pass
