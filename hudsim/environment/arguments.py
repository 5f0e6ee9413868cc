"""``Parameters``: what a template can be told: read off its signature, published as JSON Schema, enforced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import PydanticSerializationError

from hudsim.errors import UnknownName, UsageError

__all__ = ["Parameters"]


class Parameters:
    """The parameters of ``func``, whose template is ``name`` in messages.

    Raises :class:`~hudsim.errors.UsageError` for ``*args``, a positional-only parameter, or a type that no JSON
    document can be checked against.
    """

    def __init__(self, name: str, func: Callable[..., Any]) -> None:
        self._name = name
        self.signature = inspect.signature(func, eval_str=True)
        fields: dict[str, Any] = {}
        self._open = False
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise UsageError(f"template {name}: parameter {parameter} cannot be given by name, as JSON gives it")
            if parameter.kind is parameter.VAR_KEYWORD:
                self._open = True
                continue
            kind = Any if parameter.annotation is parameter.empty else parameter.annotation
            fields[parameter.name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
        try:
            config = ConfigDict(extra="allow" if self._open else "forbid")
            self._model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
            self.schema: dict[str, Any] = self._model.model_json_schema()
        except Exception as error:  # noqa: BLE001 - pydantic has many
            raise UsageError(f"template {name}: its parameters cannot be given as JSON: {error}") from None
        self.schema.pop("title", None)

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments of a call by name, as plain JSON. Raises as :meth:`check`."""
        try:
            bound = self.signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            self._refuse_unknown(kwargs)  # says it better, if that is what is wrong
            raise UsageError(f"{self._name}: {error}. It takes {self}") from None
        flat: dict[str, Any] = {}
        for name, value in bound.items():
            kind = self.signature.parameters[name].kind
            flat.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
        try:
            return self._validated(flat).model_dump(mode="json", include=set(flat))
        except PydanticSerializationError as error:
            raise UsageError(f"{self._name}: an argument is no plain JSON: {error}") from None

    def check(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """``args`` in the types that the signature asks for; defaults are left to it.

        Raises :class:`~hudsim.errors.UnknownName` for a name that is not there, :class:`~hudsim.errors.UsageError`
        for one that is missing or of another type; each says what there is.
        """
        made = self._validated(args)
        known = {name: getattr(made, name) for name in self._model.model_fields if name in args}
        return known | dict(made.model_extra or {})

    def whole(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """``args``, checked, with the defaults of those that are left out."""
        fields = self._model.model_fields
        defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
        return {name: value for name, value in defaults.items() if not fields[name].is_required()} | self.check(args)

    def _validated(self, args: Mapping[str, Any]) -> BaseModel:
        self._refuse_unknown(args)
        try:
            return self._model.model_validate(dict(args))
        except ValidationError as error:
            raise UsageError(f"{self._name}: {self._say(error)}. It takes {self}") from None

    def _refuse_unknown(self, args: Mapping[str, Any]) -> None:
        fields = self._model.model_fields
        for name in args:
            if name not in fields and not self._open:
                raise UnknownName(f"argument of {self._name}", str(name), fields)

    def _say(self, error: ValidationError) -> str:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            return f"argument {name} is missing"
        return f"argument {name}: got {first['input']!r:.80}; {first['msg'].lower()}"

    def __str__(self) -> str:
        shown = [str(p) for p in self.signature.parameters.values()]
        return ", ".join(shown) if shown else "no arguments"
