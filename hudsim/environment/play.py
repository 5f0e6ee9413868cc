"""``Play``: one template being played: its generator between the first yield and the second."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from types import AsyncGeneratorType
from typing import Any, cast

from pydantic import BaseModel

from hudsim.environment.answer import Answer
from hudsim.environment.reward import evaluation_of
from hudsim.environment.template import Template
from hudsim.errors import (
    EpisodeError,
    HudsimError,
    LinkError,
    SandboxError,
    TaskError,
    TemplateError,
    WorkspaceError,
    words,
)
from hudsim.graders import EvaluationResult
from hudsim.loop.bounded import bounded, is_cancellation

__all__ = ["CLOSE_S", "Play"]

log = logging.getLogger(__name__)

CLOSE_S = 5.0
"""How long a template's ``finally`` clauses may take once its task is cancelled."""
_LONGEST_PROMPT = 16 << 20
"""Of a prompt and its bindings as JSON text. It is copied to the agent, into the trace and into the record."""


class Play:
    """``await start()`` → ``await grade(answer)``; ``await close()`` at any time ends it. Each at most once."""

    def __init__(self, template: Template[Any], args: Mapping[str, Any]) -> None:
        self.template = template
        self.given = dict(args)  # plain JSON, as it came
        self.args = template.parameters.check(args)
        self._generator: AsyncGeneratorType[Any, Any] | None = None

    async def start(self) -> dict[str, Any]:
        """Up to the first yield: ``{"prompt": …, "bindings": {…}}``, plain JSON.

        Raises :class:`~hudsim.errors.TemplateError`, or the typed error of what the template called.
        """
        self._generator = cast("AsyncGeneratorType[Any, Any]", self.template.func(**self.args))
        try:
            prompt = await anext(self._generator)
        except StopAsyncIteration:
            raise self._broken("ended without a yield; expected two: prompt and reward") from None
        except BaseException as error:
            raise self._raised("start", error) from error
        frame = prompt if isinstance(prompt, Mapping) and "prompt" in prompt else {"prompt": prompt}
        try:
            text = json.dumps(dict(frame), default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._broken(f"yielded a prompt that is no plain JSON: {error}") from None
        if len(text) > _LONGEST_PROMPT:
            got, most = len(text) / (1 << 20), _LONGEST_PROMPT >> 20
            raise self._broken(f"yielded a prompt of {got:.1f} MiB as JSON, expected at most {most} MiB")
        plain: dict[str, Any] = json.loads(text)
        bindings = plain.setdefault("bindings", {})
        if not isinstance(bindings, dict) or not all(isinstance(value, dict) for value in bindings.values()):
            raise self._broken(f"yielded bindings {bindings!r:.80}, expected {{capability: {{…}}}}")
        return plain

    async def grade(self, answer: Any) -> EvaluationResult:
        """From the answer to the second yield, and on to the end. Raises as :meth:`start`."""
        assert self._generator is not None
        kind = self.template.return_type
        try:
            given = await self._generator.asend(answer if kind is None else Answer.parse(kind, answer))
        except StopAsyncIteration:
            raise self._broken("yielded once; expected two yields: prompt and reward") from None
        except BaseException as error:
            raise self._raised("grade", error) from error
        evaluation = evaluation_of(given, self.template.name)
        try:
            await anext(self._generator)
        except StopAsyncIteration:
            return evaluation
        except BaseException as error:
            raise self._raised("clean up after the grade", error) from error
        raise self._broken("yielded three times; expected two yields: prompt and reward")

    async def close(self) -> None:
        """End the template where it stands; its ``finally`` clauses run. Idempotent, ends within a few seconds.

        One that runs, and does not let itself be cancelled, is left alone.
        """
        if self._generator is None or self._generator.ag_running:
            return
        generator, self._generator = self._generator, None
        try:
            await bounded(generator.aclose, f"closing template {self.template.name}", timeout_s=CLOSE_S)
        except BaseException as error:
            if is_cancellation(error):
                raise
            log.warning("closing template %s: %s: %s", self.template.name, type(error).__name__, words(error))

    def _broken(self, what: str) -> TemplateError:
        return TemplateError(f"template {self.template.name} {what}", template=self.template.name)

    def _raised(self, phase: str, error: BaseException) -> HudsimError:
        """What is typed already stays what it is: of the world, link or workspace, or of the arguments at the start.

        Raises the cancellation of the task that plays; one that the template raised itself is its error.
        """
        if is_cancellation(error):
            raise error
        if isinstance(error, BaseExceptionGroup) and (known := _first_of(error, SandboxError, WorkspaceError)):
            return known
        if isinstance(error, EpisodeError | LinkError | TaskError | SandboxError | WorkspaceError) or (
            phase == "start" and isinstance(error, HudsimError)
        ):
            return error
        frames = traceback.extract_tb(error.__traceback__)
        place = next((f for f in reversed(frames) if f.filename == self.template.func.__code__.co_filename), frames[-1])
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))  # which grader it was
        return TemplateError(
            f"template {self.template.name} raised {type(error).__name__}: {words(error)}{notes} "
            f"({place.filename}:{place.lineno}, as it was to {phase})",
            template=self.template.name,
            traceback="".join(traceback.format_exception(error, limit=-8)),
        )


def _first_of(group: BaseExceptionGroup, *kinds: type[HudsimError]) -> HudsimError | None:
    """The first error of a group that has none but of these kinds."""
    if group.split(kinds)[1] is not None:
        return None
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, HudsimError) else None


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"got a {type(value).__name__}")
