"""``Kept``: a benchmark's document as it is read back, checked once: whoever compares need not look again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from hudsim.errors import UsageError
from hudsim.given import shown

__all__ = ["Kept", "KeptRow", "KeptSeries"]

_MOST = 1e15  # of a sample: beyond it a ratio could leave the finite numbers

Sample = Annotated[FiniteFloat, Field(ge=-_MOST, le=_MOST)]
Turn = Annotated[list[Sample], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class KeptSeries(_Model):
    """What :func:`~hudsim.bench.shared.series.series` made: one turn at least, of one sample at least."""

    name: str
    unit: str = ""
    better: Literal["lower", "higher"]
    judged: bool = True
    turns: Annotated[list[Turn], Field(min_length=1)]

    @property
    def samples(self) -> int:
        """Of all turns."""
        return sum(map(len, self.turns))


class KeptRow(_Model):
    """Of a row only which system it is of, and the versions that this one rests on; empty where it says neither."""

    system: str = ""
    versions: dict[str, str] = {}


class Kept(_Model):
    """What the parts say that two documents are held against each other by; None or empty: it does not say."""

    bench: str
    hudsim: str | None = None
    machine: str | None = None
    load: FiniteFloat | None = None
    python: str | None = None
    versions: dict[str, str] = {}
    quick: bool = False
    rows: list[KeptRow] = []
    series: list[KeptSeries] = []

    @field_validator("series")
    @classmethod
    def _named_once(cls, series: list[KeptSeries]) -> list[KeptSeries]:
        for name, count in Counter(one.name for one in series).items():
            if count > 1:
                said = {"name": shown(name), "count": count}
                raise PydanticCustomError("twice", "got {count} series called {name}, expected one of a name", said)
        return series

    @classmethod
    def load_from(cls, file: Path) -> Self:
        """Raises :class:`~hudsim.errors.UsageError` for what is no benchmark's document, or cannot be read."""
        try:
            return cls.model_validate_json(file.read_bytes())
        except OSError as error:
            raise UsageError(f"{file}: expected a benchmark's JSON document ({error.strerror})") from None
        except ValidationError as error:
            raise UsageError(f"{file}: {_words(error.errors(include_url=False)[0])}") from None

    def versions_of(self, system: str) -> dict[str, str]:
        """Those that its rows of ``system`` rest on; empty if it has none."""
        return {name: version for row in self.rows if row.system == system for name, version in row.versions.items()}


def _words(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return f"expected a benchmark's JSON document ({detail['msg']})"
    if not detail["loc"]:
        return f"got {shown(detail['input'])}, expected a benchmark's JSON document"
    path = ".".join(map(str, detail["loc"]))
    match detail["type"]:
        case "missing":
            return f"{path}: got nothing, expected a value"
        case "too_short":
            return f"{path}: got {shown(detail['input'])}, expected one at least"
        case "twice":
            return f"{path}: {detail['msg']}"
    return f"{path}: got {shown(detail['input'])}, expected {detail['msg'].removeprefix('Input should be ')}"
