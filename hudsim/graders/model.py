"""``Model``: a pydantic model whose complaints are one line."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from hudsim.errors import UnknownName, UsageError
from hudsim.given import shown

__all__ = ["Model", "told"]


class Model(BaseModel):
    """Checked when it is made and at each assignment; raises :class:`~hudsim.errors.UsageError`."""

    model_config = ConfigDict(validate_assignment=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise UsageError(told(type(self), error)) from None

    # Without this mark pydantic would call this __init__ for nested models too, and lose the path to them.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise UsageError(told(type(self), error)) from None


def told(model: type[Model], error: ValidationError) -> str:
    """Every complaint, the field before it: ``SubScore: value: got 1.5, expected a number from 0 to 1``."""
    return "; ".join(_line(model, detail) for detail in error.errors(include_url=False))


def _line(model: type[Model], detail: ErrorDetails) -> str:
    loc = detail["loc"]
    path = ": ".join([model.__name__, ".".join(map(str, loc))] if loc else [model.__name__])
    match detail["type"]:
        case "missing":
            return f"{path}: got nothing, expected a value"
        case "extra_forbidden" if loc[-1] in model.model_fields:
            return f"{path}: given twice, by two names"
        case "extra_forbidden" | "no_such_attribute" if len(loc) == 1:
            return UnknownName(f"field of {model.__name__}", str(loc[0]), model.model_fields).message
        case "extra_forbidden":
            return f"{path}: no such field"
        case "value_error":
            return f"{path}: {detail['msg'].removeprefix('Value error, ')}"
    return f"{path}: got {shown(detail['input'])}, expected {detail['msg'].removeprefix('Input should be ')}"
