"""Environments of one template, graded by what arrives or by a file, with a reference of one's choice."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from hudsim.environment import Environment
from hudsim.environment.task import Task
from hudsim.eval.protocols import Agent
from hudsim.eval.run import Run

__all__ = ["asking", "run_alone", "shelled"]


def asking(reference: Any, right: Any = "right") -> Task:
    """A task that pays 1 for the answer ``right``, and whose author would do ``reference``."""
    env = Environment("asking")

    @env.template(id="ask")
    async def ask() -> AsyncGenerator[Any, Any]:
        answer = yield "Say it."
        yield float(answer == right)

    @ask.reference
    def known() -> Any:
        return reference

    return ask()


def shelled(reference: Any, right: str) -> Task:
    """A task with a workspace that holds ``notes.txt``, and pays 1 if that is ``right`` in the end."""
    env = Environment("shelled")
    ws = env.workspace()

    @env.template(id="edit")
    async def edit() -> AsyncGenerator[Any, Any]:
        await ws.write("notes.txt", "one\ntwo\nthree\n")
        yield "Edit it."
        yield float(await ws.read("notes.txt") == right.encode())

    @edit.reference
    def known() -> Any:
        return reference

    return edit()


async def run_alone(task: Task, agent: Agent) -> Run:
    """The one run of ``task`` that ``agent`` was given."""
    job = await task.run(agent, runs=None)
    (run,) = job.runs
    return run
