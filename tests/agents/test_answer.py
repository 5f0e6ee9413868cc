from __future__ import annotations

import pytest

from hudsim.agents import Answer
from tests.agents.environments import asking, run_alone
from tests.asyncrun import on_loop


@pytest.mark.parametrize(("text", "reward"), [("right", 1.0), ("wrong", 0.0), ("", 0.0)])
@on_loop
async def test_its_text_is_what_is_graded(text: str, reward: float) -> None:
    run = await run_alone(asking("right"), Answer(text))
    assert (run.end, run.reward, run.trace.content) == ("done", reward, text)


def test_it_is_known_by_its_text() -> None:
    assert Answer("3").name == "answer:3"
    assert repr(Answer("3")) == "Answer(text='3')"
