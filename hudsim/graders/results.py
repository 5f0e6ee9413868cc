"""``SubScore`` and ``EvaluationResult``: what a grader gives."""

from __future__ import annotations

import difflib
import reprlib
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from hudsim.errors import UsageError, WireError
from hudsim.graders.evidence import evident
from hudsim.graders.model import Model, told
from hudsim.graders.number import finite, share, unboxed
from hudsim.graders.plain import clean, plain
from hudsim.graders.verdict import Verdict

__all__ = ["EvaluationResult", "SubScore"]

_CLOSE = 0.01  # within which weights make 1, and subscores the reward

Number = Annotated[float, BeforeValidator(finite)]
Share = Annotated[float, BeforeValidator(share)]
Text = Annotated[str, BeforeValidator(clean)]
Truth = Annotated[bool, BeforeValidator(unboxed)]
Json = Annotated[Any, BeforeValidator(plain)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(plain)]


class SubScore(Model):
    """One node of a grade: a single measurement, or what was made of its ``children``.

    name
        What was measured.
    weight
        Its part of the reward, from -1e9 to 1e9; a negative weight is a penalty.
    value
        From 0 to 1.
    children
        What it was made of. None: it is a leaf.
    info
        What else there is to say, plain JSON; also given and read as ``metadata``. None: nothing.

    Unknown fields are refused. Raises :class:`~hudsim.errors.UsageError`, a ``ValueError``, that names the field.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Text
    weight: Number = 1.0
    value: Share
    children: list[SubScore] | None = None
    info: JsonObject | None = Field(default=None, validation_alias="metadata")

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The same as ``info``."""
        return self.info

    @metadata.setter
    def metadata(self, value: dict[str, Any] | None) -> None:
        self.info = value

    @property
    def score(self) -> float:
        """The same as ``value``."""
        return self.value

    def to_frame(self, where: str = "") -> dict[str, Any]:
        """As it crosses the wire, plain JSON; pydantic reads it back.

        Raises :class:`~hudsim.errors.UsageError` if what is no JSON was put into ``info`` meanwhile, at ``where``.
        """
        children = None if self.children is None else _frames(self.children, f"{where}.children")
        info = plain(self.info, f"{where}.info")
        return {"name": self.name, "weight": self.weight, "value": self.value, "children": children, "info": info}


class EvaluationResult(Model):
    """A grade.

    reward
        A number, usually from 0 to 1, and from -1e9 to 1e9 at most; without meaning if ``isError``.
    done
        The task is complete.
    content
        What a person would want to read. None: nothing.
    info
        What else there is to say, plain JSON. Scalars of numpy become plain numbers.
    isError
        Grading itself failed: there is no reward.
    subscores
        What the reward was made of. None: not said.
    verdict
        What a grader has evidence for (``tampered``, ``resource_limit`` ...). None: as the reward says; see
        :attr:`outcome`.

    Further fields are kept, as plain JSON. Raises :class:`~hudsim.errors.UsageError`, a ``ValueError``, that names
    the field.
    """

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, Json]

    reward: Number = 0.0
    done: Truth = True
    content: Text | None = None
    info: JsonObject = Field(default_factory=dict)
    isError: Truth = False  # noqa: N815 - its name on the wire
    subscores: list[SubScore] | None = None
    verdict: Verdict | None = None

    @model_validator(mode="before")
    @classmethod
    def _can_be_meant(cls, data: Any) -> Any:
        for name, field in (("score", "reward"), ("is_error", "isError")):
            if isinstance(data, Mapping) and name in data:  # kept as a further field, it would change nothing
                raise UsageError(f"got {name}, expected {field}")
        return data

    @classmethod
    def from_float(cls, value: float) -> Self:
        """A grade that is a reward and nothing else."""
        return cls(reward=value)

    @property
    def outcome(self) -> Verdict:
        """The verdict: the one given, else one that a subscore has evidence for if the reward is 0, else by the reward.

        ``isError`` makes a valid one ``grader_error``.
        """
        verdict = self.verdict
        if verdict is None and self.reward <= 0:
            verdict = evident(self.subscores or ())
        verdict = Verdict.of(self.reward) if verdict is None else verdict
        return Verdict.grader_error if self.isError and verdict.valid else verdict

    def problems(self) -> list[str]:
        """What does not add up, a line each: mistakes of the template that do not make the grade void.

        A name twice among the subscores, positive weights that do not make 1, subscores that do not make the
        reward (each within 0.01), a verdict that the reward contradicts, a further field that is nearly one of ours.
        """
        return [*self._sums(), *self._contradictions()]

    def _sums(self) -> list[str]:
        if not self.subscores:
            return []
        counts = Counter(subscore.name for subscore in self.subscores)
        out = [f"{count} subscores are called {name!r}" for name, count in counts.items() if count > 1]
        weights = sum(subscore.weight for subscore in self.subscores if subscore.weight > 0)
        if abs(weights - 1) > _CLOSE:
            out.append(f"the positive weights make {weights:.4g}, expected 1")
        total = sum(subscore.value * subscore.weight for subscore in self.subscores)
        if not self.isError and evident(self.subscores) is None and abs(total - self.reward) > _CLOSE:
            out.append(f"the subscores make {total:.4g}, the reward is {self.reward:.4g}")
        return out

    def _contradictions(self) -> list[str]:
        out = []
        by_reward = Verdict.of(self.reward)
        if self.verdict in (Verdict.passed, Verdict.partial, Verdict.failed) and self.verdict is not by_reward:
            out.append(f"the verdict is {self.verdict}, the reward {self.reward:.4g} says {by_reward}")
        if self.verdict is Verdict.tampered and self.reward > 0:
            out.append(f"the verdict is tampered, the reward is {self.reward:.4g}")
        if self.isError and self.verdict is not None and self.verdict.valid:
            out.append(f"the verdict is {self.verdict}, which carries a reward, and isError says that there is none")
        for name in self.__pydantic_extra__:
            near = difflib.get_close_matches(name, type(self).model_fields, n=1, cutoff=0.8)
            out += [f"{name!r} is no field of a grade; did you mean {field!r}?" for field in near]
        return out

    def to_frame(self) -> dict[str, Any]:
        """The grade as it crosses the wire, plain JSON.

        ``score`` (the reward; None if the verdict is invalid), ``done, content, info, isError, subscores``, ``verdict``
        (the :attr:`outcome`), and the further fields. Raises :class:`~hudsim.errors.UsageError` if what is no JSON was
        put into ``info`` meanwhile.
        """
        outcome = self.outcome
        return {
            **{name: plain(value, name) for name, value in self.__pydantic_extra__.items()},
            "score": self.reward if outcome.valid else None,
            "done": self.done,
            "content": self.content,
            "info": plain(self.info, "info"),
            "isError": not outcome.valid,
            "subscores": None if self.subscores is None else _frames(self.subscores, "subscores"),
            "verdict": outcome.value,
        }

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> Self:
        """From what :meth:`to_frame` gave, or from ``{"score": 0.5}`` with any of the other keys.

        Raises :class:`~hudsim.errors.WireError` for what is no grade: above all one without a finite ``score`` that
        is no error either.
        """
        if not isinstance(frame, Mapping):
            raise WireError(f"{cls.__name__}: got {reprlib.repr(frame)}, expected an object with a score")
        fields = dict(frame)
        score = fields.pop("score", None)
        if score is not None or not fields.get("isError"):
            fields["reward"] = score
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise WireError(told(cls, error).replace(": reward:", ": score:")) from None


def _frames(subscores: list[SubScore], where: str) -> list[dict[str, Any]]:
    return [subscore.to_frame(f"{where}[{index}]") for index, subscore in enumerate(subscores)]
