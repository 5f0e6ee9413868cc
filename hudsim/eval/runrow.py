"""``RunRow``: a kept run as the database has it, checked before anything is made of it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hudsim.errors import HudsimError, StoreError
from hudsim.eval.run import Run
from hudsim.graders import Verdict

__all__ = ["RunRow", "read_run", "row_or_what_is_left"]


def _stamp(words: str) -> str:
    if words:  # a run that was cancelled before it began has none
        datetime.fromisoformat(words)
    return words


class _Attempt(BaseModel):
    verdict: Verdict
    error: str | None = None


class RunRow(BaseModel):
    """What :meth:`hudsim.eval.Run.to_row` gives, as far as it is read again."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    id: str
    job: str
    task: dict[str, Any]
    index: int = Field(ge=0)
    group: str | None = None
    prompt: Any
    end: Literal["done", "max_steps", "timeout", "error", "lost"] | None
    verdict: Annotated[Verdict, Field(strict=False)]
    reward: float | None = None
    grade: dict[str, Any] | None
    error: str | None
    seconds: float = Field(ge=0)
    started_at: Annotated[str, AfterValidator(_stamp)]
    attempts: list[Annotated[_Attempt, Field(strict=False)]]


def read_run(run_id: str, row: str, trace: str | None = None) -> Run:
    """The run that was kept as ``run_id``, from its row and its trace as JSON text. ``trace`` None: without it.

    Raises :class:`~hudsim.errors.StoreError`, which names the run, for what is none.
    """
    try:
        document = json.loads(row)
        RunRow.model_validate(document)
        if document["id"] != run_id or run_id != f"{document['job']}-{_number(run_id)}":
            raise StoreError(f"it says that it is {document['id']!r:.80}")
        return Run.from_row(document, None if trace is None else json.loads(trace))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = f"{'.'.join(map(str, first['loc'])) or 'its row'}: {first['msg']}"
    except HudsimError as error:
        why = error.message
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
    raise StoreError(f"run {run_id} was kept, and cannot be read: {why}")


def row_or_what_is_left(run_id: str, row: str) -> dict[str, Any]:
    """The row of a run that is to be replaced; of one that cannot be read, that it was there."""
    try:
        return read_run(run_id, row).to_row()
    except StoreError as error:
        blank: dict[str, Any] = {"end": None, "seconds": 0.0, "started_at": "", "attempts": []}
        return {**blank, "verdict": Verdict.infra_error.value, "error": error.message}


def _number(run_id: str) -> int:
    return int(run_id.rpartition("-")[2])
