"""What a terminal shows while a job runs."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from hudsim.cli.watch import Watch
from hudsim.environment import Task
from hudsim.eval import Run
from tests.asyncrun import on_loop


@pytest.mark.parametrize("columns", [60, 120])
@on_loop
async def test_what_a_run_waits_for_is_drawn_beside_it(columns: int) -> None:
    watch = Watch("seats · noop", 2)
    waiting, other = (Run(Task(env="seats", id="sit"), job_id="j", run_id=f"j-{n}", index=n) for n in range(2))
    for run in (waiting, other):
        watch("started", run)
    waiting.waits_for = "seat, which has 1: other [sessions] hold all of them"
    drawn = StringIO()
    Console(file=drawn, width=columns).print(watch.drawn())
    watch.stop()
    said = " ".join(drawn.getvalue().split())
    assert "waits for a slot of seat" in said
    assert "[sessions]" in said
    assert said.count("waits for") == 1
    assert "sit[1]" in said
