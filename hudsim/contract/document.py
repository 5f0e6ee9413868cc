"""``Contract``: the document that a world publishes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, JsonValue, model_validator

from hudsim.contract.arrays import Array
from hudsim.contract.check import Checks
from hudsim.contract.difference import difference
from hudsim.contract.encoding import encodable
from hudsim.contract.example import example
from hudsim.contract.feature import Feature
from hudsim.contract.fill import filled_features
from hudsim.contract.refusal import Model, refuse
from hudsim.contract.v0 import upgraded
from hudsim.errors import ContractError

__all__ = ["RESERVED_NAMES", "SCHEMA", "Contract", "Success", "Timing"]

SCHEMA = "hudsim/1"

RESERVED_NAMES = frozenset(
    ("terminated", "truncated", "reward", "success", "meta", "error", "actions", "result", "prompt")
)
"""Keys of a frame that are the wire's own: no feature may be called so."""


def _free(name: str) -> str:
    if not name or name in RESERVED_NAMES:
        hint = f"the wire's own are: {', '.join(sorted(RESERVED_NAMES))}"
        raise refuse(f"a feature called {name!r}", "another name", hint=hint)
    if not name.isprintable():  # what UTF-8 cannot say is not, either
        raise refuse(f"a feature called {name!r}", "a name that can be printed")
    return name


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Timing(Model):
    """How the world and the agent keep time.

    mode
        ``lockstep``: a step per action, no clock. ``paced``: the same, not faster than ``control_rate``.
        ``realtime``: a tick every 1 / ``control_rate`` seconds, whatever the agent does.
    on_miss
        What a realtime tick without an action does: ``hold`` (by the dimension) or ``stop`` the episode.
    policy_deadline_s
        Seconds that the world waits for an action.
    warmup_s
        The same for an episode's first action, since a cold model compiles and loads.
    """

    mode: Literal["lockstep", "paced", "realtime"] = "lockstep"
    on_miss: Literal["hold", "stop"] = "hold"
    policy_deadline_s: Seconds = 5.0
    warmup_s: Seconds = 120.0


class Success(Model):
    """When an episode counts as a success: the goal held at ``any`` tick, or at the ``last`` one."""

    rule: Literal["any", "last"] = "any"


class Contract(Model):
    """What is observed, what is commanded, how often.

    robot_type
        The embodiment's name. None: not said.
    control_rate
        Actions a second, Hz. None: not known yet.
    features
        By name, in the order in which they are shown; exactly one of role ``action``.
    extra
        What a v0 document said beyond this schema.

    Raises :class:`~hudsim.errors.ContractError` for a document that is not one or contradicts itself.
    """

    schema_: Literal["hudsim/1"] = Field(default="hudsim/1", alias="schema")
    robot_type: str | None = None
    control_rate: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, strict=True)] | None = None
    timing: Timing = Field(default_factory=Timing)
    success: Success = Field(default_factory=Success)
    features: dict[Annotated[str, AfterValidator(_free)], Feature]
    extra: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        actions = [name for name, feature in self.features.items() if feature.role == "action"]
        if len(actions) != 1:
            got = f"{len(actions)} action features ({', '.join(actions)})" if actions else "no action feature"
            raise refuse(got, "exactly one feature of role 'action'")
        return self

    # -- in and out --------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, doc: Contract | Mapping[str, Any] | str | Path) -> Contract:
        """From a document: a mapping, JSON text, or the path of a JSON file. A contract is given back as it is.

        A document without ``schema`` is read as HUD's v0: it may leave shapes and dtypes out (see
        :meth:`filled`), and keys that this schema does not know are kept in ``extra``.
        """
        if isinstance(doc, Contract):
            return doc
        if isinstance(doc, str | Path):
            doc = _parsed(doc)
        if not isinstance(doc, Mapping):
            raise ContractError("contract", got=type(doc).__name__, expected="a JSON object")
        if "schema" in doc:
            return cls(**{str(key): value for key, value in doc.items()})
        return cls(**upgraded({"features": {}, **doc}, [key for key in cls.known_keys() if key != "schema"]))

    def to_json(self) -> dict[str, Any]:
        """The document, plain JSON values; what is not said is left out. :meth:`load` gives an equal contract."""
        out = _plain(self)
        out["features"] = {name: _plain(feature) for name, feature in self.features.items()}
        return out

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the document."""
        schema = cls.model_json_schema(by_alias=True)
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "required": ["schema", "features"]}

    @classmethod
    def from_spaces(
        cls,
        observation_space: Any,
        action_space: Any,
        control_rate: float | None,
        *,
        robot_type: str | None = None,
        privileged: Iterable[str] = (),
        out_of_range: Literal["reject", "clip"] = "reject",
        hold: Literal["repeat", "zero"] = "repeat",
    ) -> Contract:
        """From Gymnasium spaces; see :func:`hudsim.contract.spaces.contract_from_spaces`."""
        from hudsim.contract.spaces import contract_from_spaces  # the one file that imports gymnasium

        return contract_from_spaces(
            observation_space,
            action_space,
            control_rate,
            robot_type=robot_type,
            privileged=privileged,
            out_of_range=out_of_range,
            hold=hold,
        )

    # -- reading it --------------------------------------------------------------------------------------------

    @cached_property
    def observations(self) -> dict[str, Feature]:
        """The features of role ``observation``, in order."""
        return {name: feature for name, feature in self.features.items() if feature.role == "observation"}

    @cached_property
    def action_name(self) -> str:
        """The name of the action feature."""
        return next(name for name, feature in self.features.items() if feature.role == "action")

    @property
    def action(self) -> Feature:
        """The one feature of role ``action``."""
        return self.features[self.action_name]

    @property
    def layout(self) -> list[tuple[str, np.dtype[Any], tuple[int, ...]]]:
        """Name, dtype and shape of each observation, in order; of those alone that say them."""
        features = self.observations.items()
        return [(name, np.dtype(f.dtype), f.shape) for name, f in features if f.complete and f.shape is not None]

    # -- using it ----------------------------------------------------------------------------------------------

    def filled(self, data: Mapping[str, Any], control_rate: float | None = None) -> Contract:
        """With what it leaves out: shape, dtype and image type from ``data``, an observation {feature: [*shape]}
        without batch axis; the rate from ``control_rate``, Hz. What it does say stays.

        A contract that names no observation takes over all of ``data``.
        """
        known = _fields(self)
        if self.control_rate is None:
            known["control_rate"] = control_rate
        known["features"] = filled_features(self.features, data)
        return type(self)(**known)

    def encoded(self, asked: Mapping[str, str]) -> Contract:
        """With cameras that cross a link as ``asked``: {camera: encoding}, as a feature's ``encoding`` says it.

        A camera is a feature's name, or the last part of one (``scene`` of ``observation/scene``); ``*`` is all that
        can be encoded. Raises :class:`~hudsim.errors.UnknownName` for what is no such camera.
        """
        features: dict[str, Any] = dict(self.features)
        for camera, encoding in asked.items():
            for name in encodable(self.observations, camera):
                features[name] = {**_fields(self.features[name]), "encoding": encoding}
        return type(self)(**{**_fields(self), "features": features})

    def compile(self) -> Checks:
        """The checkers that run every tick. Raises ``ContractError`` if a shape or dtype is not known yet."""
        return Checks(self.observations, self.action_name, self.action)

    def example(self, seed: int = 0) -> tuple[dict[str, Array], Array]:
        """A random (observation {feature: [*shape]}, action [*shape]) that the contract allows."""
        rng = np.random.default_rng(seed)
        observation = {name: example(name, feature, rng) for name, feature in self.observations.items()}
        return observation, example(self.action_name, self.action, rng)

    def diff(self, other: Contract) -> list[str]:
        """A line of words for each difference; empty if they are equal. *here* is this one, *there* the other."""
        return difference(self, other)


def _parsed(source: str | Path) -> Any:
    if isinstance(source, Path):
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ContractError("contract", got=f"{source} ({error})", expected="a JSON file") from None
    else:
        text = source
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        got = str(source) if isinstance(source, Path) else f"text that starts {text[:40]!r}"
        hint = str(error) if isinstance(source, Path) else f"{error}; give a Path for a file"
        raise ContractError("contract", got=got, expected="a JSON document", hint=hint) from None


def _fields(model: Model) -> dict[str, Any]:
    """A model's values, as the keywords of another."""
    return {key: getattr(model, key) for key in type(model).model_fields}


def _plain(model: Model) -> dict[str, Any]:
    """A model's fields by their document keys. Free-form values keep their nulls."""
    out: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, Model):
            value = _plain(value)
        if value is None or (name == "extra" and not value):
            continue
        if isinstance(model, Feature) and value == field.default:
            continue
        out[field.alias or name] = list(value) if isinstance(value, tuple) else value
    return out
