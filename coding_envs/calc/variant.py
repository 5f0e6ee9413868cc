"""``Variant``: one way in which calc is broken, and how a user would report it."""

from __future__ import annotations

import ast
import functools
import json
from dataclasses import dataclass
from pathlib import Path

from hudsim.coding_envs.calc.mutants import Mutant
from hudsim.errors import UsageError

__all__ = ["HELD_OUT", "HIDDEN", "PROJECT", "TRAINING", "Variant", "source", "variant_of", "variants"]

_HERE = Path(__file__).parent
PROJECT = _HERE / "project"
"""What an agent is given: calc as it should be, and a few tests."""
HIDDEN = _HERE / "hidden"
"""The tests that grade."""

TRAINING = range(256)
"""Numbers of the variants to train on."""
HELD_OUT = range(256, 320)
"""Numbers of those to measure with: no line that they break is broken by one of the others."""


@dataclass(frozen=True)
class Variant:
    """One wrong line, and what it does.

    mutant
        The line.
    failing
        How many hidden tests it fails.
    test
        The first of them, as ``test_numbers.py::test_lcm_of_two_numbers``.
    said
        What pytest says of it.
    """

    mutant: Mutant
    failing: int
    test: str
    said: str

    @property
    def text(self) -> str:
        """The module with the wrong line in it."""
        return self.mutant.applied(source())

    @property
    def report(self) -> str:
        """What pytest prints of the first test that fails, down to the line where it does."""
        return _shown(_function(*self.test.split("::")), self.said)


@functools.cache
def source() -> str:
    """The module as it should be."""
    return (PROJECT / "calc.py").read_text(encoding="utf-8")


@functools.cache
def variants() -> tuple[Variant, ...]:
    """All of them, in order; made by ``make_variants.py``."""
    rows = json.loads((_HERE / "variants.json").read_text(encoding="utf-8"))
    return tuple(
        Variant(Mutant(function, kind, line, wrong), failing, test, said)
        for function, kind, line, wrong, failing, test, said in rows
    )


def variant_of(number: int) -> Variant:
    """The one of this number. Raises :class:`~hudsim.errors.UsageError` if there is none."""
    if not 0 <= number < len(variants()):
        raise UsageError(f"calc: got variant {number}, expected 0 to {len(variants()) - 1}")
    return variants()[number]


@functools.cache
def _function(file: str, name: str) -> str:
    text = (HIDDEN / file).read_text(encoding="utf-8")
    (found,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return ast.get_source_segment(text, found) or ""


def _shown(function: str, said: str) -> str:
    indented = "\n".join(f"    {line}" if line else "" for line in function.splitlines())
    errors = "\n".join(f"E       {line}" for line in said.splitlines())
    return f"{indented}\n{errors}"
