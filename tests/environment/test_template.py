"""Templates: two yields and nothing else, and arguments that are what the signature says."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel

from hudsim.environment import Answer, Environment, Template
from hudsim.environment.play import Play
from hudsim.errors import SimFailed, TaskError, TemplateError, UnknownName, UsageError
from hudsim.graders import EvaluationResult, SubScore, Verdict
from tests.asyncrun import on_loop


class Colour(enum.Enum):
    red = "r"
    blue = "b"


class Point(BaseModel):
    x: float
    y: float = 0.0


ORIGIN = Point(x=0)


def yielding(*values: Any, returns: Any = None) -> Template[Any]:
    """A template that yields ``values``; an exception among them is raised."""
    env = Environment("shop")

    async def template() -> AsyncGenerator[Any, Any]:
        for value in values:
            if isinstance(value, BaseException):
                raise value
            yield value

    return env.template("sell", returns=returns)(template)


async def graded(*values: Any) -> EvaluationResult:
    play = Play(yielding(*values), {})
    await play.start()
    try:
        return await play.grade("an answer")
    finally:
        await play.close()


@pytest.mark.parametrize(
    ("given", "reward"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (np.float32(0.5), 0.5),
        (np.int64(0), 0.0),
        ({"score": 0.75}, 0.75),
        (EvaluationResult(reward=0.1), 0.1),
        (SubScore(name="half", value=0.5, weight=0.1), 0.5),
        (-2.5, -2.5),
    ],
)
@on_loop
async def test_what_stands_for_a_reward_is_one(given: Any, reward: float) -> None:
    assert (await graded("prompt", given)).reward == reward


@pytest.mark.parametrize(
    "given",
    [True, np.True_, None, "1.0", float("nan"), float("inf"), [1.0], {"points": 1}, {"score": True}, {"score": None}],
)
@on_loop
async def test_what_is_no_reward_is_refused_by_the_templates_name(given: Any) -> None:
    with pytest.raises(TemplateError, match="shop/sell graded with"):
        await graded("prompt", given)


@on_loop
async def test_a_template_that_yields_once_is_refused() -> None:
    with pytest.raises(TemplateError, match="shop/sell yielded once; expected two"):
        await graded("prompt")


@on_loop
async def test_a_template_that_yields_thrice_is_refused() -> None:
    with pytest.raises(TemplateError, match="shop/sell yielded three times"):
        await graded("prompt", 1.0, 1.0)


@on_loop
async def test_a_template_that_yields_never_is_refused() -> None:
    with pytest.raises(TemplateError, match="without a yield"):
        await graded()


@pytest.mark.parametrize(
    ("values", "phase"),
    [
        ((KeyError("till"),), "to start"),
        (("prompt", KeyError("till")), "to grade"),
        (("prompt", 1.0, KeyError("till")), "clean up"),
        (("prompt", SystemExit(3)), "to grade"),
    ],
)
@on_loop
async def test_what_a_template_raises_says_where(values: tuple[Any, ...], phase: str) -> None:
    with pytest.raises(TemplateError, match=rf"shop/sell raised (KeyError|SystemExit).*test_template\.py:\d+.*{phase}"):
        await graded(*values)


@on_loop
async def test_a_typed_error_stays_what_it_is() -> None:
    with pytest.raises(SimFailed, match="the arm fell off"):
        await graded("prompt", SimFailed("the arm fell off"))


@on_loop
async def test_a_lost_episodes_record_is_no_reward_but_an_error_of_the_infrastructure() -> None:
    record = {"end": "aborted(sim_failed)", "is_error": True, "message": "it died", "score": None, "cadence": {}}
    evaluation = await graded("prompt", record)
    assert evaluation.outcome is Verdict.infra_error
    assert "it died" in str(evaluation.content)


@on_loop
async def test_a_prompt_may_be_messages_and_carry_bindings() -> None:
    play = Play(
        yielding({"prompt": [{"role": "user", "content": "go"}], "bindings": {"robot": {"token": "t"}}}, 1.0), {}
    )
    assert await play.start() == {
        "prompt": [{"role": "user", "content": "go"}],
        "bindings": {"robot": {"token": "t"}},
    }
    await play.close()


@pytest.mark.parametrize("prompt", [object(), {"prompt": "x", "bindings": {"robot": 3}}, {"prompt": float("nan")}])
@on_loop
async def test_a_prompt_that_is_no_json_is_refused(prompt: Any) -> None:
    play = Play(yielding(prompt, 1.0), {})
    with pytest.raises(TemplateError, match="shop/sell yielded"):
        await play.start()
    await play.close()


@on_loop
async def test_closing_runs_the_finally_clauses() -> None:
    env = Environment("shop")
    closed: list[str] = []

    @env.template()
    async def sell() -> AsyncGenerator[Any, Any]:
        try:
            yield "prompt"
            yield 1.0
        finally:
            closed.append("till")

    play = Play(sell, {})
    await play.start()
    await play.close()
    await play.close()
    assert closed == ["till"]


def test_only_an_async_generator_is_a_template() -> None:
    async def coroutine() -> None: ...

    with pytest.raises(UsageError, match="expected an async generator"):
        Environment("shop").template()(coroutine)  # type: ignore[arg-type]


def test_two_templates_of_one_id_are_refused() -> None:
    template = yielding("p", 1.0)
    with pytest.raises(UsageError, match="has a template sell already"):
        template.environment.template("sell")(template.func)


def arguments() -> Template[Any]:
    env = Environment("shop")

    @env.template()
    async def sell(
        item: str, count: int = 1, colour: Colour = Colour.red, size: Literal["s", "m"] = "s", at: Point = ORIGIN
    ) -> AsyncGenerator[Any, Any]:
        yield "prompt"
        yield 1.0

    return sell


def test_a_call_is_a_task_with_plain_arguments() -> None:
    task = arguments()("pen", colour=Colour.blue, at=Point(x=1.5))
    assert task.args == {"item": "pen", "colour": "b", "at": {"x": 1.5, "y": 0.0}}
    assert (task.env, task.id) == ("shop", "sell")
    assert task.slug.startswith("sell-")
    assert task.home is not None


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "argument item is missing. It takes item: str"),
        ({"item": 3}, "argument item: got 3"),
        ({"item": "pen", "count": "many"}, "argument count: got 'many'"),
        ({"item": "pen", "size": "xl"}, "argument size: got 'xl'"),
    ],
)
def test_arguments_are_checked_before_anything_runs(args: dict[str, Any], words: str) -> None:
    for attempt in (lambda: arguments()(**args), lambda: Play(arguments(), args)):
        with pytest.raises(UsageError, match=words):
            attempt()


def test_an_unknown_argument_is_refused_with_the_nearest_there_is() -> None:
    with pytest.raises(UnknownName, match="did you mean 'count'"):
        arguments()("pen", cuont=2)


def test_too_many_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="too many positional arguments"):
        arguments()("pen", 1, Colour.red, "s", Point(x=0), 6)


@on_loop
async def test_arguments_reach_the_template_in_its_own_types() -> None:
    env = Environment("shop")
    seen: list[Any] = []

    @env.template()
    async def sell(colour: Colour, at: Point) -> AsyncGenerator[Any, Any]:
        seen.extend([colour, at])
        yield "prompt"
        yield 1.0

    play = Play(sell, {"colour": "b", "at": {"x": 2}})
    await play.start()
    await play.close()
    assert seen == [Colour.blue, Point(x=2)]


@on_loop
async def test_a_typed_answer_is_parsed_and_a_wrong_one_is_kept_as_it_came() -> None:
    env = Environment("shop")
    seen: list[Answer[Any]] = []

    @env.template(returns=Point)
    async def where() -> AsyncGenerator[Any, Any]:
        answer = yield "where?"
        seen.append(answer)
        yield float(answer.valid)

    for answer, reward in (('{"x": 3}', 1.0), ({"x": 3}, 1.0), ("north", 0.0), (None, 0.0)):
        play = Play(where, {})
        await play.start()
        assert (await play.grade(answer)).reward == reward
    assert seen[0].content == seen[1].content == Point(x=3)
    assert seen[2].content == seen[2].raw == "north"
    assert seen[2].problem is not None


def test_the_manifest_says_what_a_template_takes_and_wants() -> None:
    env = Environment("shop")

    @env.template(description="Where is it?", input=str, returns=Point)
    async def where(item: str) -> AsyncGenerator[Any, Any]:
        yield "where?"
        yield 1.0

    manifest = where.manifest()
    assert manifest["id"] == "where"
    assert manifest["description"] == "Where is it?"
    assert manifest["args"]["required"] == ["item"]
    assert manifest["args"]["additionalProperties"] is False
    assert manifest["returns"]["properties"].keys() == {"x", "y"}


def test_a_reference_is_a_function_of_the_arguments() -> None:
    template = arguments()
    with pytest.raises(TaskError, match="has no reference"):
        template.solve({"item": "pen"})
    template.reference(lambda item, **others: item.upper())
    assert template.solve({"item": "pen"}) == "PEN"


@on_loop
async def test_a_grade_that_cannot_be_names_its_template_and_line() -> None:
    env = Environment("shop")

    @env.template()
    async def sell() -> AsyncGenerator[Any, Any]:
        yield "prompt"
        yield SubScore(name="half", value=7)

    play = Play(sell, {})
    await play.start()
    with pytest.raises(TemplateError, match=r"shop/sell raised UsageError: SubScore: value.*test_template\.py:\d+"):
        await play.grade("an answer")


@on_loop
async def test_a_world_without_a_goal_is_graded_by_its_summed_reward() -> None:
    record = {"end": "truncated", "is_error": False, "score": None, "total_reward": 12.5, "cadence": {}}
    assert (await graded("prompt", record)).reward == 12.5


@on_loop
async def test_a_prompt_that_is_too_long_to_be_copied_about_is_the_template_s_error() -> None:
    assert (await Play(yielding("x" * (15 << 20), 1.0), {}).start())["prompt"][:2] == "xx"
    with pytest.raises(TemplateError, match=r"yielded a prompt of 17\.0 MiB as JSON, expected at most 16 MiB"):
        await Play(yielding("x" * (17 << 20), 1.0), {}).start()
