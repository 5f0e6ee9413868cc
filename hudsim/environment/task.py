"""``Task``: one row of work: which template of which environment, with which arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from hudsim.errors import UnknownName, UsageError
from hudsim.given import given_object, given_text
from hudsim.graders.model import Model, told

if TYPE_CHECKING:
    from hudsim.environment.environment import Environment
    from hudsim.eval.job import Job
    from hudsim.eval.protocols import Agent, Provider

__all__ = ["Task"]


Name = Annotated[str, AfterValidator(lambda text: given_text(text, ""))]
Object = Annotated[dict[str, Any], AfterValidator(lambda value: given_object(value, ""))]


class Task(Model):
    """A task; plain data, so that one row can be run many times at once. Making it runs nothing.

    env, id
        The environment's name and the template's id.
    args
        The template's arguments, plain JSON.
    slug
        Its name in a taskset. Left out: the id, and eight digits that stand for ``args`` if there are any.
    columns
        What to filter and group by: ``{"difficulty": "easy"}``. None: nothing.
    agent_config
        What this task asks of the agent: ``{"timeout_seconds": 60, "max_steps": 200}``. None: nothing.
    runtime_config
        What this task asks of the place where its environment runs. No runtime here takes any, and one that is
        given is refused, not ignored. None: nothing.

    Raises :class:`~hudsim.errors.UsageError` that names the field: other types, what is no plain JSON, other fields.
    """

    model_config = ConfigDict(extra="forbid")

    env: Name
    id: Name
    args: Object = Field(default_factory=dict)
    slug: Name = ""
    columns: Object | None = None
    agent_config: Object | None = None
    runtime_config: Object | None = None

    _home: Environment | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _name_it(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and not data.get("slug"):
            return {**data, "slug": _slug(str(data.get("id", "")), data.get("args") or {})}
        return data

    @property
    def home(self) -> Environment | None:
        """The live environment whose template made this row. None: it came from a file."""
        return self._home

    def at_home(self, environment: Environment) -> Self:
        """This row, made by a template of ``environment``."""
        self._home = environment
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy of the row; its home stays where it is."""
        return super().__deepcopy__({**(memo or {}), id(self._home): self._home})

    @classmethod
    def from_row(cls, row: Any, where: str) -> Self:
        """From JSON. Raises :class:`~hudsim.errors.UsageError` that names ``where`` and the key that is wrong."""
        if not isinstance(row, Mapping):
            raise UsageError(f"{where}: got a {type(row).__name__}, expected an object with env, id, args")
        for key in row:
            if key not in cls.model_fields:
                raise UnknownName(f"key of {where}", str(key), cls.model_fields)
        try:
            return cls.model_validate(row)
        except ValidationError as error:
            raise UsageError(told(cls, error).replace(f"{cls.__name__}: ", f"{where}: ")) from None

    def to_row(self) -> dict[str, Any]:
        """As JSON, without what is not said."""
        return self.model_dump(mode="json", exclude_none=True)

    async def run(
        self,
        agent: Agent,
        *,
        runtime: Provider | None = None,
        group: int | None = None,
        max_concurrent: int | None = None,
        job: Job | None = None,
        rollout_timeout: float | None = None,
        **options: Any,
    ) -> Job:
        """Run this task alone: as :meth:`hudsim.eval.Taskset.run` of a taskset that holds nothing else."""
        from hudsim.eval.taskset import Taskset

        return await Taskset(self.slug, [self]).run(
            agent,
            runtime=runtime,
            group=group,
            max_concurrent=max_concurrent,
            job=job,
            rollout_timeout=rollout_timeout,
            **options,
        )


def _slug(task_id: str, args: Mapping[str, Any]) -> str:
    if not args:
        return task_id
    words = json.dumps(args, sort_keys=True, default=str).encode()
    return f"{task_id}-{hashlib.sha256(words).hexdigest()[:8]}"
