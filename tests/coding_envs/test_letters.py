from __future__ import annotations

import pytest

from hudsim.agents import Answer, Noop, Oracle
from hudsim.coding_envs.letters.tasks import count, tasks
from hudsim.eval import LocalRuntime
from hudsim.registry import taskset
from tests.asyncrun import on_loop


@on_loop
async def test_nothing_is_worth_nothing_and_the_reference_everything() -> None:
    noop = await tasks.run(Noop(), runs=None)
    oracle = await tasks.run(Oracle(), group=2, runs=None)
    assert {run.reward for run in noop.runs} == {0.0}
    assert {run.reward for run in oracle.runs} == {1.0}
    assert (len(noop.runs), len(oracle.runs)) == (len(tasks), 2 * len(tasks))


@on_loop
async def test_a_guess_is_right_in_some_and_wrong_in_others() -> None:
    job = await tasks.run(Answer("3"), runs=None)
    right = {run.slug for run in job.runs if run.reward == 1.0}
    assert right == {"strawberry-r", "banana-a", "raspberry-r", "parallel-l"}


@on_loop
async def test_its_file_is_served_by_its_name() -> None:
    source = taskset("letters")
    job = await source.taskset.run(Answer("about 3 of them"), runtime=LocalRuntime(source.file), runs=None)
    assert [run.error for run in job.runs] == [None] * len(tasks)
    assert job.results["banana-a"][0].reward == 1.0


@pytest.mark.parametrize(("word", "letter", "prompt"), [("banana", "a", "the letter 'a' stand in 'banana'?")])
@on_loop
async def test_the_prompt_says_word_and_letter(word: str, letter: str, prompt: str) -> None:
    job = await count(word, letter).run(Noop(), runs=None)
    assert prompt in job.runs[0].prompt_text
