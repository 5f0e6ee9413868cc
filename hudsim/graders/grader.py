"""``Grader``: the base class of graders that are used again."""

from __future__ import annotations

from typing import Any, ClassVar

from hudsim.graders.number import finite, unboxed
from hudsim.graders.plain import plain, shown
from hudsim.graders.results import SubScore

__all__ = ["Grader"]


class Grader:
    """Implement :meth:`compute_score`; call :meth:`grade`, and give what it returns to ``combine``.

    ::

        class Shorter(Grader):
            name = "shorter"

            @classmethod
            async def compute_score(cls, *, answer: str, limit: int) -> float:
                return 1.0 if len(answer) <= limit else 0.0

        yield await combine(Shorter.grade(answer=answer, limit=80))

    ``name`` is what its subscores are called unless the caller says otherwise.
    """

    name: ClassVar[str] = "BaseGrader"

    @classmethod
    async def compute_score(cls, *args: Any, **kwargs: Any) -> SubScore | float | tuple[float, dict[str, Any]]:
        """The score from 0 to 1 (True is 1.0), alone or with an ``info`` of plain JSON, or a SubScore.

        Called once a grade with the keywords that the caller gave to :meth:`grade`: name those you want. It may take
        its time, but must not block the event loop; it is cancelled when another grader beside it fails.
        """
        raise NotImplementedError(f"{cls.__name__} does not implement compute_score")

    @classmethod
    async def grade(cls, weight: float = 1.0, name: str | None = None, **kwargs: Any) -> SubScore:
        """A SubScore of this ``weight`` and ``name`` (None: the grader's own).

        ``info["_parameters"]`` holds ``kwargs``, so that the grade can be made again; what is no JSON in them stands
        there as its repr. What :meth:`compute_score` raises is raised, with a note that names the grader.
        """
        name = name or cls.name
        try:
            weight = finite(weight)  # before the work, not after it
            scored = _scored(name, await cls.compute_score(**kwargs))
        except Exception as error:
            error.add_note(f"in the grader {name!r} ({cls.__name__})")
            raise
        info = {**(scored.info or {}), **plain({"_parameters": kwargs}, other=shown)}
        return SubScore(name=name, weight=weight, value=scored.value, children=scored.children, info=info)


def _scored(name: str, result: Any) -> SubScore:
    if isinstance(result, SubScore):
        return result
    value, info = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    value = unboxed(value)
    return SubScore(name=name, value=float(value) if isinstance(value, bool) else value, info=info)
