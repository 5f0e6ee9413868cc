"""``Matching``: ``case 3`` as ``case x if x == 3``, so that it is the test that compares."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Matching"]

Check = Callable[[ast.AST, ast.expr, ast.expr], ast.expr]
"""(Where it stands, what was matched, what with) → the expression that asks."""


class Matching(ast.NodeTransformer):
    """``equal`` and ``is_kind`` make the conditions under which a value, and a class, match.

    An ``a | b`` becomes two cases, as each has conditions of its own.
    """

    def __init__(self, equal: Check, is_kind: Check) -> None:
        self._equal, self._is_kind = equal, is_kind
        self._names = (f"@matched{n}" for n in itertools.count())

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        self.generic_visit(node)
        node.cases = [new for old in node.cases for new in self._cases(old)]
        return node

    def _cases(self, case: ast.match_case) -> Iterator[ast.match_case]:
        patterns = list(_alternatives(case.pattern))
        for one in patterns:
            conditions: list[ast.expr] = []
            pattern = self._captured(one, conditions)
            guard, body = copy.deepcopy((case.guard, case.body)) if len(patterns) > 1 else (case.guard, case.body)
            conditions += [] if guard is None else [guard]
            if len(conditions) > 1:
                guard = ast.copy_location(ast.BoolOp(ast.And(), conditions), pattern)
            elif conditions:
                guard = conditions[0]
            yield ast.match_case(pattern, guard, body)

    def _captured(self, pattern: Any, conditions: list[ast.expr]) -> Any:
        if isinstance(pattern, ast.MatchValue):
            conditions.append(self._equal(pattern, *self._matched(pattern, pattern.value)))
            return ast.copy_location(ast.MatchAs(None, self._last), pattern)
        for name, value in ast.iter_fields(pattern):
            if isinstance(value, ast.pattern):
                setattr(pattern, name, self._captured(value, conditions))
            elif isinstance(value, list):
                setattr(pattern, name, [self._captured(one, conditions) if isinstance(one, ast.pattern) else one
                                        for one in value])  # fmt: skip
        if isinstance(pattern, ast.MatchClass):
            conditions.insert(0, self._is_kind(pattern, *self._matched(pattern, copy.deepcopy(pattern.cls))))
            return ast.copy_location(ast.MatchAs(pattern, self._last), pattern)
        return pattern

    def _matched(self, at: ast.AST, what: ast.expr) -> tuple[ast.expr, ast.expr]:
        self._last = next(self._names)
        return ast.copy_location(ast.Name(self._last, ast.Load()), at), what


def _alternatives(pattern: Any) -> Iterator[Any]:
    """The patterns without ``|`` that match what it matches, in its order."""
    if isinstance(pattern, ast.MatchOr):
        for one in pattern.patterns:
            yield from _alternatives(one)
        return
    parts = [(name, at) for name, value in ast.iter_fields(pattern)
             for at in (range(len(value)) if isinstance(value, list) else [None])
             if isinstance(value if at is None else value[at], ast.pattern)]  # fmt: skip
    choices = [list(_alternatives(_part(pattern, *part))) for part in parts]
    for choice in itertools.product(*choices):
        made = copy.deepcopy(pattern)
        for (name, at), one in zip(parts, choice, strict=True):
            if at is None:
                setattr(made, name, copy.deepcopy(one))
            else:
                getattr(made, name)[at] = copy.deepcopy(one)
        yield made


def _part(pattern: Any, name: str, at: int | None) -> Any:
    value = getattr(pattern, name)
    return value if at is None else value[at]
