"""``Arguments``: what a world, policy or agent can be told, read off its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from hudsim.errors import HudsimError, UnknownName, UsageError
from hudsim.given import refusal

__all__ = ["Arguments", "make"]

_LENIENT = ConfigDict(coerce_numbers_to_str=True)  # a word that looks like a number is one by then
_RESET_OWN = ("seed", "seeds", "slots")  # said by other means than settings


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a callable takes by keyword: names with their defaults. ``open``: others as well, nobody knows which.

    kinds
        The types of those that say one which a plain value can be checked against.
    """

    names: dict[str, Any]
    open: bool
    kinds: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, made: Callable[..., Any]) -> Arguments:
        """Of a class: its ``__init__``'s, and its bases' as long as ``**options`` pass everything on to them."""
        if not isinstance(made, type):
            return cls(*_keywords(made), _kinds(made))
        names: dict[str, Any] = {}
        kinds: dict[str, Any] = {}
        is_open = False
        for base in made.__mro__[:-1]:
            if "__init__" in vars(base):
                own, is_open = _keywords(vars(base)["__init__"], skip=1)
                names, kinds = {**own, **names}, {**_kinds(vars(base)["__init__"]), **kinds}
                if not is_open:
                    break
        return cls(names, is_open, kinds)

    @classmethod
    def of_reset(cls, made: Callable[..., Any]) -> Arguments:
        """Of the ``reset`` of the world that ``made`` makes; none if a function does not say what it returns."""
        kind: Any = made
        if not isinstance(made, type):
            try:
                kind = get_type_hints(made).get("return")
            except (NameError, TypeError):
                kind = None
        reset = getattr(kind, "reset", None)
        if reset is None:
            return cls({}, open=False)
        names, is_open = _keywords(reset, skip=1)
        return cls({name: default for name, default in names.items() if name not in _RESET_OWN}, is_open)

    def check(self, name: str, settings: Mapping[str, Any]) -> None:
        """Raises :class:`~hudsim.errors.UnknownName` for a setting of ``name`` that is not taken, and
        :class:`~hudsim.errors.UsageError` for one of another type than its parameter says.
        """
        for key, value in settings.items():
            if key not in self.names and not self.open:
                raise UnknownName(f"{name} setting", key, self.names)
            if key in self.kinds:
                try:
                    TypeAdapter(self.kinds[key], config=_LENIENT).validate_python(value)
                except ValidationError:
                    kind = inspect.formatannotation(self.kinds[key])
                    raise refusal(f"{name} setting {key}", value, kind) from None


def make(what: str, maker: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    """What ``maker`` makes of ``args``. Raises :class:`~hudsim.errors.UsageError` that says ``what`` cannot be made."""
    try:
        return maker(**args)
    except HudsimError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} cannot be made: {error}") from error


def _kinds(made: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters whose annotations are plain enough to be checked."""
    try:
        hints = get_type_hints(made)
    except Exception:  # noqa: BLE001 - an annotation is anybody's expression
        return {}
    kinds = {}
    for name, hint in hints.items():
        try:
            TypeAdapter(hint, config=_LENIENT)
        except PydanticUserError:  # of another library's classes nothing is known
            continue
        kinds[name] = hint
    return kinds


def _keywords(made: Callable[..., Any], skip: int = 0) -> tuple[dict[str, Any], bool]:
    """The keyword arguments and whether there may be others; ``skip`` leaves out the first, ``self``."""
    parameters = list(inspect.signature(made).parameters.values())[skip:]
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = {p.name: p.default for p in parameters if p.kind in kinds}
    return names, any(p.kind is p.VAR_KEYWORD for p in parameters)
