"""``Entry``: what a name stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudsim.errors import HudsimError, UsageError
from hudsim.target import load_target

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a name stands for.

    target, args
        ``module:attr`` and the arguments that the name fixes.
    about
        One line.
    defaults
        Arguments that settings may change.
    rest
        The argument (a dict) that takes the settings which are none of the target's own. None: there are no such.
    chunks
        A policy's own chunk strategy and its length. None: the agent's choice.

    Of an environment the target is its taskset.
    """

    name: str
    target: str
    about: str
    args: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    rest: str | None = None
    chunks: tuple[str, int | None] | None = None

    def find(self) -> Any:
        """Import what the target names. Raises :class:`~hudsim.errors.UsageError` if that cannot be."""
        try:
            return load_target(self.target)
        except HudsimError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(f"{self.target} cannot be imported: {type(error).__name__}: {error}") from error

    def load(self) -> Callable[..., Any]:
        """As :meth:`find`, of what makes something; raises for what cannot be called, too."""
        made = self.find()
        if not callable(made):
            raise UsageError(f"{self.target} is no class or function but of type {type(made).__name__}")
        return made  # type: ignore[no-any-return]
