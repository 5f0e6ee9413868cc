"""pydantic's complaints, told as :class:`~hudsim.errors.ContractError`: feature, got, expected."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from hudsim.errors import ContractError

__all__ = ["Model", "nearest", "refuse"]

_OURS = "contract"


def refuse(got: str, expected: str, *, hint: str = "") -> PydanticCustomError:
    """What a validator raises: the difference in words. The path to it is known to pydantic."""
    return PydanticCustomError(_OURS, "{expected}", {"got": got, "expected": expected, "hint": hint})


def nearest(got: str, there_are: Iterable[str]) -> str:
    """``"did you mean 'limits'?"``, or the list of what there is."""
    names = sorted(there_are)
    near = difflib.get_close_matches(got, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"


class Model(BaseModel):
    """A frozen model that refuses unknown keys and whose constructor raises ``ContractError``."""

    model_config = {"extra": "forbid", "frozen": True, "populate_by_name": True}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _told(type(self), error) from None

    # Without this mark pydantic would call this __init__ for nested models too, and lose the path to them.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def known_keys(cls) -> list[str]:
        """The document's keys of this model."""
        return [field.alias or name for name, field in cls.model_fields.items()]


def _told(root: type[Model], error: ValidationError) -> ContractError:
    detail = error.errors(include_url=False)[0]
    path = [str(part) for part in detail["loc"]]
    if path[:1] == ["features"] and len(path) > 1:
        feature, part = path[1], ".".join(path[2:])
    else:
        feature, part = ".".join(path) or root.__name__.lower(), ""
    got, expected, hint = _difference(root, detail, path)
    if part and detail["type"] != "extra_forbidden" and not part.endswith("[key]"):
        got = f"{part} {got}"
    return ContractError(feature, got=got, expected=expected, hint=hint)


def _difference(root: type[Model], detail: ErrorDetails, path: list[str]) -> tuple[str, str, str]:
    match detail["type"]:
        case "contract":
            context = detail.get("ctx", {})
            return str(context["got"]), str(context["expected"]), str(context["hint"])
        case "extra_forbidden":
            keys = _model_at(root, path[:-1]).known_keys()
            return f"an unknown key {path[-1]!r}", "keys that the schema has", nearest(path[-1], keys)
        case "missing":
            return "nothing", "a value (it is required)", ""
    message = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return reprlib.repr(detail["input"]), message, ""


def _model_at(root: type[Model], path: list[str]) -> type[Model]:
    """The model that stands at ``path``, a walk over the annotations."""
    model = root
    for part in path:
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        annotation = field.annotation if field is not None else None  # None: a key of a dict of models
        for candidate in (annotation, *getattr(annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, Model):
                model = candidate
    return model
