from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from hudsim.agents import Answer, Oracle
from hudsim.environment import Environment
from hudsim.eval import Taskset
from hudsim.eval.protocols import Agent
from tests.agents.environments import asking, run_alone
from tests.asyncrun import on_loop


class Players:
    """Makes agents that answer with a setting, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, name: str, settings: Mapping[str, Any]) -> Agent:
        self.asked.append((name, settings))
        return Answer(settings.get("text", name))


@pytest.mark.parametrize("right", ["right", 3, 0.5, False, [1, "a", None]])
@on_loop
async def test_a_reference_that_is_no_object_is_the_answer(right: Any) -> None:
    run = await run_alone(asking(right, right), Oracle())
    assert (run.end, run.reward, run.trace.content, run.error) == ("done", 1.0, right, None)


@pytest.mark.parametrize("right", ["right", {"x": 1}])
@on_loop
async def test_an_answer_in_an_object_is_the_answer_whatever_it_is(right: Any) -> None:
    run = await run_alone(asking({"answer": right}, right), Oracle())
    assert (run.reward, run.trace.content) == (1.0, right)


@on_loop
async def test_a_policy_plays_before_the_answer_is_given() -> None:
    players = Players()
    run = await run_alone(asking({"policy": "mine", "settings": {"text": "right"}}), Oracle(policy=players))
    assert (run.reward, players.asked) == (1.0, [("mine", {"text": "right"})])
    said = [(step.content, step.data) for step in run.trace.steps if step.source == "agent"]
    assert said == [("plays mine", {"policy": "mine", "settings": {"text": "right"}}), ("right", {})]
    run = await run_alone(asking({"policy": "mine", "answer": "right"}), Oracle(policy=players))
    assert (run.reward, run.trace.content) == (1.0, "right")


@on_loop
async def test_one_agent_plays_every_run_of_one_policy() -> None:
    env, players = Environment("many"), Players()

    @env.template()
    async def ask(text: str) -> AsyncGenerator[Any, Any]:
        answer = yield text
        yield float(answer == text)

    @ask.reference
    def play(text: str) -> dict[str, Any]:
        return {"policy": "mine", "settings": {"text": text}}

    job = await Taskset("many", [ask("a"), ask("b")]).run(Oracle(policy=players), group=4, runs=None)
    assert [run.reward for run in job.runs] == [1.0] * 8
    assert sorted(settings["text"] for _, settings in players.asked) == ["a", "b"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"polcy": "hold"}, "has the key 'polcy'; known are: answer, patch, files, commands, policy, settings"),
        (None, "the reference of ask is null; expected an answer, or an object that has one, a policy"),
        ({}, "the reference of ask is {}; expected an answer"),
        ({"answer": None}, 'the reference of ask is {"answer": null}; expected an answer'),
        ({"policy": 3}, "policy: got 3, expected a name"),
        ({"policy": "hold", "settings": [1]}, "settings: got [1], expected an object beside a policy"),
        ({"answer": "x", "settings": {"a": 1}}, "settings: got {'a': 1}, expected an object beside a policy"),
        ({"policy": "hold"}, "names the policy 'hold', and this oracle was given nothing to make it"),
    ],
)
@on_loop
async def test_a_reference_that_cannot_be_carried_out_ends_the_agent_with_words(reference: Any, said: str) -> None:
    run = await run_alone(asking(reference), Oracle())
    assert (run.end, run.verdict, run.trace.content) == ("error", "failed", None)
    assert run.error is not None
    assert said in run.error


@on_loop
async def test_a_template_without_a_reference_is_said() -> None:
    env = Environment("secretive")

    @env.template()
    async def ask() -> AsyncGenerator[Any, Any]:
        yield "Say it."
        yield 0.0

    run = await run_alone(ask(), Oracle())
    assert run.end == "error"
    assert "template secretive/ask has no reference" in str(run.error)


def test_it_asks_for_references_and_is_known_by_its_name() -> None:
    assert Oracle().needs_reference
    assert Oracle().name == "oracle"
    assert repr(Oracle()) == "Oracle()"
