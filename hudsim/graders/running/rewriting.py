"""``rewriting``: makes the comparisons of test files strict, after pytest has rewritten their assertions."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

__all__ = ["install", "rewritten"]

Node = TypeVar("Node", bound=ast.AST)
_STRICT = "@strict"  # no name that a test could have
_WORDS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_CALLS = {"isinstance": "isinstance_of", "bool": "bool_of", "all": "all_of", "any": "any_of"}


def install() -> None:
    """From now on each file whose assertions pytest rewrites is made strict."""
    from _pytest.assertion import rewrite

    original = rewrite.rewrite_asserts

    def rewrite_asserts(mod: ast.Module, source: bytes, *args: Any, **kwargs: Any) -> None:
        original(mod, source, *args, **kwargs)
        rewritten(mod)

    rewrite.rewrite_asserts = rewrite_asserts


def rewritten(module: ast.Module) -> ast.Module:
    """``module``, changed in place."""
    Strict().visit(module)
    at = 0
    for statement in module.body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            at += 1
        else:
            break
    place = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    alias = ast.alias("hudsim.graders.running.strict", _STRICT, **place)
    module.body.insert(at, ast.Import([alias], **place))
    return module


class Strict(ast.NodeTransformer):
    """Comparisons, and every place where a value is asked whether it is true."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        words: list[ast.expr] = [_at(ast.Constant(_WORDS[type(op)]), node) for op in node.ops]
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return node
        return self._call("compare", node, _at(ast.Tuple(words, ast.Load()), node), node.left, *node.comparators)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self._asked(node.operand)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            node.func = self._function(_CALLS[node.func.id], node.func)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self.generic_visit(node)
        node.decorator_list.insert(0, self._function("own", node))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs = [self._asked(test) for test in node.ifs]
        return node

    def _visit_test(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = self._asked(node.test)
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = _visit_test  # noqa: N815 - ast's names

    def _asked(self, node: ast.expr) -> ast.expr:
        is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        return node if is_not or isinstance(node, ast.Constant) else self._call("truth", node, node)

    def _call(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        return _at(ast.Call(self._function(name, at), list(args), []), at)

    def _function(self, name: str, at: ast.AST) -> ast.Attribute:
        return _at(ast.Attribute(_at(ast.Name(_STRICT, ast.Load()), at), name, ast.Load()), at)


def _at(node: Node, place: ast.AST) -> Node:
    # fix_missing_locations would give what pytest has made an end before its beginning.
    return ast.copy_location(node, place)
