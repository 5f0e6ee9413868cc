"""``play``: an agent's part of a task that somebody has started by hand."""

from __future__ import annotations

from hudsim.environment.client import ControlClient
from hudsim.environment.task import Task
from hudsim.eval.access import Access
from hudsim.eval.plugged import check_agent, check_protocols, check_reference
from hudsim.eval.protocols import Agent
from hudsim.eval.run import Run
from hudsim.eval.work import Left, work

__all__ = ["play"]


async def play(client: ControlClient, agent: Agent) -> Left:
    """Have ``agent`` work on the task that the session of ``client`` has started; it is left to be graded.

    Raises :class:`~hudsim.errors.NoTask` if there is none, :class:`~hudsim.errors.UsageError` if ``agent`` cannot work
    on it. What the agent raises is in what it leaves.
    """
    check_agent(agent)
    check_reference(agent, f"environment {client.environment}", reveals=client.manifest["reveals"])
    current = await client.current()
    check_protocols(agent, client.capabilities)
    task = Task(env=client.environment, id=current["id"], args=current["args"])
    run = Run(task, job_id="by-hand", run_id=f"by-hand-{client.session_id}")
    run.prompt, run.bindings, run.capabilities = current["prompt"], current["bindings"], client.capabilities
    access = Access(client)
    try:
        return await work(agent, run.handed(access), seconds=None)
    finally:
        access.revoke()
