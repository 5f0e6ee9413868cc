"""``Mutant``: a module with one expression of one function changed, in one line."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "mutants"]

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
}
_OPERATED: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.FloorDiv, ast.Mult),
    ast.FloorDiv: (ast.Mod, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "abs": "int", "sum": "max"}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


@dataclass(frozen=True)
class Mutant:
    """One wrong line.

    function, kind
        Which function is broken, and by what kind of mistake.
    line
        Which line of the module, counted from 1.
    wrong
        What stands there.
    """

    function: str
    kind: str
    line: int
    wrong: str

    def applied(self, source: str) -> str:
        """The module with the wrong line in it."""
        lines = source.splitlines(keepends=True)
        lines[self.line - 1] = f"{self.wrong}\n"
        return "".join(lines)


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module's functions, in the order of the text; what a ``raise`` says is left alone."""
    lines = source.splitlines()
    seen: set[tuple[int, str]] = set()
    for function in ast.parse(source).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        names = _names(function)
        for parent, field, node in _expressions(function):
            for kind, changed in _changes(node, field, parent, names):
                line = _changed_line(lines, function, (parent, field, node), changed)
                if line is not None and (node.lineno, line) not in seen:
                    seen.add((node.lineno, line))
                    yield Mutant(function.name, kind, node.lineno, line)


# Where ------------------------------------------------------------------------------------------------------------


def _expressions(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """Expressions of one line, each with what holds it and where; docstring, annotations and errors left out."""
    waiting: list[ast.AST] = list(reversed(function.body[1:] if ast.get_docstring(function) else function.body))
    while waiting:
        parent = waiting.pop()
        inner: list[ast.AST] = []
        for field, value in ast.iter_fields(parent):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.Raise) or field in _LEFT_ALONE:
                    continue
                inner.append(child)
                if isinstance(child, ast.expr) and child.lineno == child.end_lineno:
                    yield parent, field, child
        waiting += reversed(inner)


_LEFT_ALONE = ("annotation", "returns", "format_spec", "target", "targets")


def _names(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]


# What -------------------------------------------------------------------------------------------------------------

Changes = Iterator[tuple[str, ast.expr]]


def _changes(node: ast.expr, field: str, parent: ast.AST, names: list[str]) -> Changes:
    """Wrong expressions in the place of ``node``, each with the kind of mistake that it is."""
    if field == "test" and not isinstance(node, ast.Constant):
        yield "inverted condition", ast.UnaryOp(ast.Not(), node)
    is_place = field in ("slice", "lower", "upper") or (_is_range(parent) and field == "args")
    if is_place and not isinstance(node, ast.Slice | ast.Constant):
        yield "off by one", ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield "off by one", ast.BinOp(node, ast.Sub(), ast.Constant(1))
    if isinstance(node, ast.Name) and node.id in names:
        yield from (("wrong name", ast.Name(other)) for other in names if other != node.id)
    change = _CHANGE.get(type(node))
    if change is not None:
        yield from change(node)


def _compare(node: ast.Compare) -> Changes:
    if len(node.ops) == 1:
        yield from (("comparison", _with(node, ops=[kind()])) for kind in _COMPARED.get(type(node.ops[0]), ()))


def _logic(node: ast.BoolOp) -> Changes:
    yield "and, or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for left_out in node.values:
        kept = [value for value in node.values if value is not left_out]
        yield "missing case", kept[0] if len(kept) == 1 else _with(node, values=kept)


def _binary(node: ast.BinOp) -> Changes:
    yield from (("operator", _with(node, op=kind())) for kind in _OPERATED.get(type(node.op), ()))
    if isinstance(node.op, _ORDERED):
        yield "swapped", _with(node, left=node.right, right=node.left)
    yield "missing term", node.left


def _unary(node: ast.UnaryOp) -> Changes:
    if isinstance(node.op, ast.USub | ast.Not):
        yield "missing sign" if isinstance(node.op, ast.USub) else "inverted condition", node.operand


def _choice(node: ast.IfExp) -> Changes:
    yield "swapped", _with(node, body=node.orelse, orelse=node.body)


def _constant(node: ast.Constant) -> Changes:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
        if node.value > 0:
            yield "constant", ast.Constant(node.value - 1)


def _call(node: ast.Call) -> Changes:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _CALLED:
        yield "wrong function", _with(node, func=ast.Name(_CALLED[name]))
    elif len(node.args) == 2:
        yield "swapped", _with(node, args=node.args[::-1])


_CHANGE: dict[type[ast.expr], Callable[[Any], Changes]] = {
    ast.Compare: _compare,
    ast.BoolOp: _logic,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.Constant: _constant,
    ast.Call: _call,
}


def _is_range(parent: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range"


def _with(node: ast.expr, **changed: object) -> ast.expr:
    twin = copy.copy(node)
    for name, value in changed.items():
        setattr(twin, name, value)
    return twin


# The text ---------------------------------------------------------------------------------------------------------


def _changed_line(
    lines: list[str], function: ast.FunctionDef, place: tuple[ast.AST, str, ast.expr], changed: ast.expr
) -> str | None:
    """The line with ``changed`` written in. None: it cannot be written in that place."""
    parent, field, node = place
    wanted = _dump_with(function, parent, field, node, changed)
    line = lines[node.lineno - 1].encode()
    words = _OF_A_GENERATOR.sub(r"(\1)", ast.unparse(changed).replace("'", '"'))
    for written in (_LAST_BRACKETS.sub(r"\1", words), words, f"({words})"):
        new = (line[: node.col_offset] + written.encode() + line[node.end_col_offset :]).decode()
        text = [*lines[function.lineno - 1 : node.lineno - 1], new, *lines[node.lineno : function.end_lineno]]
        try:
            found = ast.parse("\n".join(text))
        except SyntaxError:
            continue
        if ast.dump(found) == wanted:
            return new
    return None


_LAST_BRACKETS = re.compile(r"\(([^()]*)\)$")
_OF_A_GENERATOR = re.compile(r"\(\((.* for .*)\)\)")
"""``ast.unparse`` puts more brackets than people do."""


def _dump_with(function: ast.FunctionDef, parent: ast.AST, field: str, node: ast.expr, changed: ast.expr) -> str:
    """The function as a tree with ``changed`` in the place of ``node``; the tree itself stays as it is."""
    held = getattr(parent, field)
    try:
        setattr(parent, field, [changed if one is node else one for one in held] if isinstance(held, list) else changed)
        # Nodes made here have no context and no place: what is parsed from the text has.
        return ast.dump(ast.parse(ast.unparse(function)))
    finally:
        setattr(parent, field, held)
