from __future__ import annotations

from hudsim.agents import Noop
from tests.agents.environments import asking, run_alone
from tests.asyncrun import on_loop


@on_loop
async def test_nothing_is_done_and_nothing_answered() -> None:
    run = await run_alone(asking("right"), Noop())
    assert (run.end, run.verdict, run.reward, run.error) == ("done", "failed", 0.0, None)
    assert run.trace.content is None
    assert [step.content for step in run.trace.steps if step.source == "agent"] == ["does nothing"]


@on_loop
async def test_no_answer_reaches_the_template_as_none() -> None:
    assert (await run_alone(asking("right", right=None), Noop())).reward == 1.0


def test_it_is_known_by_its_name() -> None:
    assert Noop().name == "noop"
    assert repr(Noop()) == "Noop()"
