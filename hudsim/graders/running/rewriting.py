"""``rewriting``: the files of tests as they are run: strict in their comparisons, and masters of their own names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from hudsim.graders.running.matching import Matching

__all__ = ["install", "rewritten"]

Node = TypeVar("Node", bound=ast.AST)
_STRICT, _STARS = "@strict", "@stars"  # no names that a test could have
_WORDS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_CALLS = {"isinstance": "isinstance_of", "bool": "bool_of", "all": "all_of", "any": "any_of"}
_MEANT = {
    "ANY", "approx", "contains", "count", "eq", "ge", "gt", "index", "le", "lt", "make_dataclass", "ne", "not_",
    "truth",
}  # fmt: skip
"""As :func:`hudsim.graders.running.strict.meant` knows them."""


def install(tests: str, modules: Sequence[str], *, strictly: bool) -> None:
    """From now on each file below the folder ``tests``, and no other, is rewritten: by pytest, and then here."""
    from _pytest.assertion import rewrite

    original, folder = rewrite.rewrite_asserts, f"{tests}/"

    def rewrite_asserts(mod: ast.Module, source: bytes, module_path: str | None = None, config: Any = None) -> None:
        used = _used(mod)
        original(mod, source, module_path, config)
        rewritten(mod, modules, used=used, strictly=strictly)

    hook: Any = rewrite.AssertionRewritingHook
    # Pytest's own rule goes by names, which the solution's files may have too.
    hook._should_rewrite = lambda self, name, file, state: file.startswith(folder)  # noqa: SLF001
    hook._early_rewrite_bailout = lambda self, name, state: False  # noqa: SLF001
    rewrite.rewrite_asserts = rewrite_asserts


def rewritten(
    module: ast.Module, modules: Sequence[str] = (), *, used: Sequence[str] | None = None, strictly: bool = True
) -> ast.Module:
    """``module``, changed in place.

    modules
        The solution's.
    used
        The names that it uses; None: as it stands.
    strictly
        Its comparisons too.
    """
    Stars(modules, _used(module) if used is None else used).visit(module)
    names = [_STARS]
    if strictly:
        Matching(lambda at, a, b: _strictly("compare", at, _constants(["=="], at), a, b),
                 lambda at, value, kind: _strictly("isinstance_of", at, value, kind)).visit(module)  # fmt: skip
        Strict().visit(module)
        names.append(_STRICT)
    at = 0
    for statement in module.body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            at += 1
        else:
            break
    place = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    for name in names:
        alias = ast.alias(f"hudsim.graders.running.{name[1:]}", name, **place)
        module.body.insert(at, ast.Import([alias], **place))
    return module


def _used(module: ast.Module) -> tuple[str, ...]:
    return tuple(
        {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    )


class Stars(ast.NodeTransformer):
    """``from calc import *``, of the solution's modules."""

    def __init__(self, modules: Sequence[str], used: Sequence[str]) -> None:
        self._modules, self._used = frozenset(modules), tuple(used)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        name = node.module or ""
        if node.names[0].name != "*" or node.level or name.partition(".")[0] not in self._modules:
            return node
        words = [_at(ast.Constant(name), node), _constants(self._used, node)]
        return _at(ast.Expr(_at(ast.Call(_function(_STARS, "take", node), words, []), node)), node)


class Strict(ast.NodeTransformer):
    """Comparisons, and every place where a value is asked whether it is true."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return node
        words = _constants([_WORDS[type(op)] for op in node.ops], node)
        return _strictly("compare", node, words, node.left, *node.comparators)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = _asked(node.operand)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            node.func = _function(_STRICT, _CALLS[node.func.id], node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return _strictly("meant", node, node) if node.attr in _MEANT and isinstance(node.ctx, ast.Load) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        out: list[ast.stmt] = [node]
        for alias in node.names:
            if alias.name in _MEANT:
                name = alias.asname or alias.name
                value = _strictly("meant", node, _at(ast.Name(name, ast.Load()), node))
                out.append(_at(ast.Assign([_at(ast.Name(name, ast.Store()), node)], value), node))
        return out

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self.generic_visit(node)
        node.decorator_list.insert(0, _function(_STRICT, "own", node))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs = [_asked(test) for test in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """But for its pattern, in which no call can stand."""
        if node.guard is not None:
            node.guard = _asked(self.visit(node.guard))
        node.body = [new for old in node.body for new in _list(self.visit(old))]
        return node

    def _visit_test(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = _asked(node.test)
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = _visit_test  # noqa: N815 - ast's names


def _list(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _constants(words: Sequence[str], at: ast.AST) -> ast.expr:
    return _at(ast.Tuple([_at(ast.Constant(word), at) for word in words], ast.Load()), at)


def _asked(node: ast.expr) -> ast.expr:
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return node if is_not or isinstance(node, ast.Constant) else _strictly("truth", node, node)


def _strictly(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    return _at(ast.Call(_function(_STRICT, name, at), list(args), []), at)


def _function(module: str, name: str, at: ast.AST) -> ast.Attribute:
    return _at(ast.Attribute(_at(ast.Name(module, ast.Load()), at), name, ast.Load()), at)


def _at(node: Node, place: ast.AST) -> Node:
    # fix_missing_locations would give what pytest has made an end before its beginning.
    return ast.copy_location(node, place)
