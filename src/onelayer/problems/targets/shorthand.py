"""What formulas may say for short, written out: sigmoid, clip, var, std, softmax, dot, norm, real powers, vectors.

A tree is rewritten before it is read, and every new part keeps the place of what it stands for, so that a refusal
still points at the character. Tokens of width d without a component are vectors: in dot and norm, and as outputs.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable

from onelayer.errors import OptionError

Refusal = Callable[[ast.expr, str, str], OptionError]
TOKEN = re.compile(r"x[1-9][0-9]*|x|y")
ARGUMENTS = {"sigmoid": 1, "clip": 3, "var": 1, "std": 1, "softmax": 2, "dot": 2, "norm": 1}
#: Written with the names a, b, c of the arguments; averages run over y.
SCALARS = {
    "sigmoid": "0.5 + 0.5*tanh(0.5*(a))",
    "clip": "min(max(a, b), c)",
    "var": "mean((a - mean(a))**2)",
    "std": "sqrt(mean((a - mean(a))**2))",
    "softmax": "mean(exp(a)*b)/mean(exp(a))",
}


def written_out(tree: ast.expr, d: int, refusal: Refusal) -> ast.expr:
    """The same formula without shorthand; several outputs if it is a vector."""
    found: ast.expr = _Writer(d, refusal).visit(tree)
    parts = found.elts if isinstance(found, ast.Tuple) else [found]
    if d > 1 and any(_is_vector(part) for part in parts):
        listed = [_component(part, c) for part in parts for c in (range(d) if _is_vector(part) else [0])]
        found = ast.copy_location(ast.Tuple(elts=listed, ctx=ast.Load()), tree)
    return ast.fix_missing_locations(found)


class _Writer(ast.NodeTransformer):
    def __init__(self, d: int, refusal: Refusal) -> None:
        self.d, self.refusal = d, refusal

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ARGUMENTS:
            return node
        if len(node.args) != ARGUMENTS[name] or node.keywords:
            raise self.refusal(node, f"arguments for {name}: {ARGUMENTS[name]}", "Give as many.")
        if name in SCALARS:
            return _fill_form(SCALARS[name], node.args, node)
        first, second = node.args[0], node.args[-1]
        products = [_fill_form("a*b", [_component(first, c), _component(second, c)], node) for c in range(self.d)]
        total = products[0]
        for part in products[1:]:
            total = _fill_form("a + b", [total, part], node)
        return total if name == "dot" else _fill_form("sqrt(a)", [total], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """A power that is a number, but not a whole one: by a square root, or by exp and log; the square of a norm
        is a dot product."""
        match node:
            case ast.BinOp(ast.Call(ast.Name("norm"), [of], []), ast.Pow(), ast.Constant(2)):
                return self.visit(_fill_form("dot(a, a)", [of], node))  # type: ignore[no-any-return]
        self.generic_visit(node)
        power, sign = node.right, 1.0
        if isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub):
            power, sign = power.operand, -1.0
        value = power.value if isinstance(power, ast.Constant) else None
        if not isinstance(node.op, ast.Pow) or not isinstance(value, float) or value == int(value):
            return node
        if (2 * value) == int(2 * value) and value < 100:
            form = "sqrt(a)" if value == 0.5 else f"a**{int(value)}*sqrt(a)"
            return _fill_form(form if sign > 0 else f"1/({form})", [node.left], node)
        return _fill_form(f"exp({sign * value!r}*log(a))", [node.left], node)


def _fill_form(form: str, arguments: list[ast.expr], at: ast.expr) -> ast.expr:
    """A form whose names a, b, c are the arguments, at the place of what it stands for."""
    names = dict(zip("abc", arguments, strict=False))

    class Filler(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(names[node.id]) if node.id in names else node

    tree = ast.parse(form, mode="eval").body
    for part in ast.walk(tree):
        ast.copy_location(part, at)
    return Filler().visit(tree)  # type: ignore[no-any-return]


def _is_vector(node: ast.AST) -> bool:
    """Whether a token occurs without a component."""
    if isinstance(node, ast.Subscript):
        return False
    if isinstance(node, ast.Name):
        return TOKEN.fullmatch(node.id) is not None
    return any(_is_vector(child) for child in ast.iter_child_nodes(node))


def _component(node: ast.expr, c: int) -> ast.expr:
    """The formula with component c of every token that has none."""

    class Picker(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            return node

        def visit_Name(self, node: ast.Name) -> ast.AST:
            if TOKEN.fullmatch(node.id) is None:
                return node
            picked = ast.Subscript(value=copy.copy(node), slice=ast.Constant(value=c), ctx=ast.Load())
            return ast.fix_missing_locations(ast.copy_location(picked, node))

    return Picker().visit(copy.deepcopy(node))  # type: ignore[no-any-return]
