"""``Answer``: what an agent answered, parsed into the type that a template asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

__all__ = ["Answer"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a template with ``returns=T`` is sent for its second yield.

    content
        The answer as a ``T``; the text as it came if it is none, for the template to judge.
    raw
        The answer's text as it was submitted.
    problem
        Why ``content`` is no ``T``. None: it is one.
    """

    content: T
    raw: str = ""
    problem: str | None = None

    @property
    def valid(self) -> bool:
        """Whether ``content`` is a ``T``."""
        return self.problem is None

    @classmethod
    def parse(cls, kind: Any, given: Any) -> Answer[Any]:
        """``given`` (text, or JSON values) as a ``kind``."""
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        raw = given if isinstance(given, str) else json.dumps(given)
        try:
            if not isinstance(given, str):
                return cls(adapter.validate_python(given), raw)
            try:
                return cls(adapter.validate_json(given), raw)
            except ValidationError:
                return cls(adapter.validate_python(given), raw)  # plain text for a str
        except ValidationError as error:
            return cls(given, raw, str(error))
