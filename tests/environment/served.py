"""Environments for the tests beside this file, and a served one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hudsim.environment import Environment, EnvironmentServer
from hudsim.graders import numeric_match

__all__ = ["BEARER", "Slow", "letters", "serving"]

BEARER = "a-token"


def letters() -> Environment:
    """``count``: a letter in a word. ``slow``: starts and grades when its events are set. ``fails``: raises."""
    env = Environment("letters")

    @env.template()
    async def count(word: str, letter: str = "r") -> AsyncGenerator[Any, Any]:
        answer = yield f"How many {letter!r} are in {word!r}?"
        yield numeric_match(answer, word.count(letter))

    @count.reference
    def right(word: str, letter: str = "r") -> str:
        return str(word.count(letter))

    return env


class Slow:
    """An environment whose template waits: for ``start`` before the prompt, for ``grade`` before the reward."""

    def __init__(self) -> None:
        self.start, self.grade = asyncio.Event(), asyncio.Event()
        self.log: list[str] = []
        self._news = asyncio.Event()
        self.env = Environment("slow")

        @self.env.template()
        async def wait() -> AsyncGenerator[Any, Any]:
            self._say("starting")
            try:
                await self.start.wait()
                self._say("started")
                yield "wait"
                self._say("grading")
                await self.grade.wait()
                self._say("graded")
                yield 1.0
            finally:
                self._say("closed")

    async def reached(self, word: str) -> None:
        """Until ``word`` is in the log."""
        while word not in self.log:
            self._news.clear()
            await self._news.wait()

    def _say(self, word: str) -> None:
        self.log.append(word)
        self._news.set()


@asynccontextmanager
async def serving(env: Environment, *, reveal: bool = False) -> AsyncIterator[EnvironmentServer]:
    """``env`` on a port of its own, with :data:`BEARER`."""
    server = EnvironmentServer(env, bearer=BEARER, reveal=reveal)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
