"""``Template``: an async generator of two yields, prompt and reward, that makes tasks when it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from pydantic import TypeAdapter

from hudsim.environment.arguments import Parameters
from hudsim.environment.task import Task
from hudsim.errors import TaskError
from hudsim.given import refusal

if TYPE_CHECKING:
    from hudsim.environment.environment import Environment

__all__ = ["Template"]

P = ParamSpec("P")

Generator = Callable[P, AsyncGenerator[Any, Any]]


class Template(Generic[P]):
    """What ``@env.template(...)`` makes of an async generator function.

    ::

        @env.template(id="count")
        async def count(word: str, letter: str):
            answer = yield f"How many {letter!r} are in {word!r}?"       # the prompt; the agent works here
            yield numeric_match(answer, word.count(letter))              # the reward

        @count.reference                                                 # what `oracle` answers
        def right(word, letter):
            return str(word.count(letter))

        task = count("strawberry", "r")                                  # a Task; nothing runs

    The first yield is the prompt (text, a list of messages, or ``{"prompt": …, "bindings": {…}}``), the second the
    reward: a finite number, an :class:`~hudsim.graders.EvaluationResult`, a :class:`~hudsim.graders.SubScore`, a
    bridge's record, or ``{"score": …}``. Anything else is a :class:`~hudsim.errors.TemplateError`.

    id, description, input_type, return_type
        As given to the decorator.
    """

    def __init__(
        self,
        environment: Environment,
        func: Generator[P],
        *,
        id: str,  # noqa: A002 - HUD's name for it
        description: str = "",
        input: Any = None,  # noqa: A002 - HUD's name for it
        returns: Any = None,
    ) -> None:
        if not inspect.isasyncgenfunction(func):
            raise refusal(
                f"template {id}",
                func,
                "an async generator function: `async def` with two yields, prompt and reward",
            )
        if not isinstance(description, str):
            raise refusal(f"template {id}: description", description, "a text")
        self.environment = environment
        self.id, self.description = id, description
        self.input_type, self.return_type = input, returns
        self.func: Callable[..., AsyncGenerator[Any, Any]] = func
        self.parameters = Parameters(id, func)
        self._schemas = {
            key: _schema(f"template {id}: {key}", kind)
            for key, kind in (("input", input), ("returns", returns))
            if kind is not None
        }
        self._reference: Callable[..., Any] | None = None
        functools.update_wrapper(self, func)

    @property
    def name(self) -> str:
        """``environment/template``, for messages."""
        return f"{self.environment.name}/{self.id}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Task:
        """A task with these arguments. Raises :class:`~hudsim.errors.UsageError` for arguments it does not take."""
        bound = self.parameters.bind(*args, **kwargs)
        return Task(env=self.environment.name, id=self.id, args=bound).at_home(self.environment)

    def reference(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Register what the task's author would answer or do: a function of the template's arguments.

        It returns an answer, or what is to be done: ``{"policy": "scripted"}``.
        """
        if not callable(func):
            raise refusal(f"reference of template {self.name}", func, "a function of the template's arguments")
        self._reference = func
        return func

    @property
    def has_reference(self) -> bool:
        return self._reference is not None

    def solve(self, args: Mapping[str, Any]) -> Any:
        """The reference for ``args``. Raises :class:`~hudsim.errors.TaskError` if there is none."""
        if self._reference is None:
            raise TaskError(f"template {self.name} has no reference; declare one with @{self.func.__name__}.reference")
        return self._reference(**self.parameters.whole(args))

    def manifest(self) -> dict[str, Any]:
        """What ``tasks.list`` says of it: id, description, and JSON Schemas of what it takes and wants back."""
        about = self.description or inspect.getdoc(self.func) or ""
        return {
            "id": self.id,
            "description": about,
            "args": self.parameters.schema,
            "reference": self.has_reference,
            **self._schemas,
        }


def _schema(what: str, kind: Any) -> dict[str, Any]:
    try:
        return TypeAdapter(kind).json_schema()
    except Exception:  # noqa: BLE001 - pydantic has many
        raise refusal(what, kind, "a type that a JSON document can be checked against") from None
