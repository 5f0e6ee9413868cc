"""Whose doing it is that time is up."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import pytest

from hudsim.coding.stopwatch import Times
from hudsim.errors import SandboxError
from hudsim.graders import time_limit as module
from hudsim.graders.time_limit import time_limit
from tests.asyncrun import on_loop


class Fake:
    """A box of which nothing but its limits matters here."""

    pid = None
    cgroups = ()

    def __init__(self, *evidence: str) -> None:
        self._evidence = list(evidence)

    async def sandbox(self) -> Any:
        return self

    def evidence(self) -> list[str]:
        return self._evidence


class Starved:
    """Time that hardly goes by for the tests."""

    ran_s = 0.0

    def __init__(self, read: object) -> None:
        self.wall_s = 0.0

    def look(self) -> float:
        self.wall_s += 100.0
        return 0.001


@on_loop
async def test_who_is_done_in_time_is_left_alone() -> None:
    async with time_limit(30.0, [Fake()]):  # type: ignore[list-item]
        await asyncio.sleep(0)


@on_loop
async def test_who_hangs_is_out_of_time() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(0.05, [Fake()]):  # type: ignore[list-item]
            await asyncio.Event().wait()


@on_loop
async def test_a_machine_without_a_processor_to_spare_is_nobodys_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Stopwatch", Starved)
    with pytest.raises(SandboxError, match="this machine is too busy to grade on"):
        async with time_limit(0.05, [Fake()]):  # type: ignore[list-item]
            await asyncio.Event().wait()


@on_loop
async def test_who_met_a_limit_has_none_but_itself_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Stopwatch", Starved)
    with pytest.raises(TimeoutError):
        async with time_limit(0.05, [Fake(), Fake("memory: 1 were killed for want of it")]):  # type: ignore[list-item]
            await asyncio.Event().wait()


@on_loop
async def test_who_ran_for_its_time_is_out_of_it_however_it_stood_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ran(Starved):
        ran_s = 0.06

    monkeypatch.setattr(module, "Stopwatch", Ran)
    with pytest.raises(TimeoutError):
        async with time_limit(0.05, [Fake()]):  # type: ignore[list-item]
            await asyncio.Event().wait()


@on_loop
async def test_a_look_that_fails_is_no_end_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def without_descriptors(_: object) -> Times:
        nonlocal looks
        looks += 1
        if looks == 1:
            return Times(0, {})
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(module, "times_of", without_descriptors)
    with pytest.raises(TimeoutError):
        async with time_limit(0.6, [Fake()]):  # type: ignore[list-item]
            await asyncio.Event().wait()
    assert looks >= 2
