"""What formulas may say for short, written out: sigmoid, clip, var, std, softmax, dot, norm, powers, vectors.

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
#: What runs over all tokens, and the same in short.
AGGREGATES = {"sum": "add", "mean": "add", "max": "max", "min": "min"}
AVERAGES = {"var": "var(y)", "std": "std(y)", "softmax": "softmax(x*y, y)"}
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
        if name in AVERAGES and not has_own_y(node.args[0]):
            needs = f"a y in the first argument, for {name} to run over the tokens"
            raise self.refusal(node.args[0], needs, f"Write for example {AVERAGES[name]}.")
        if name in SCALARS:
            return _fill_form(SCALARS[name], node.args, node)
        first, second = node.args[0], node.args[-1]
        products = [_fill_form("a*b", [_component(first, c), _component(second, c)], node) for c in range(self.d)]
        total = products[0]
        for part in products[1:]:
            total = _fill_form("a + b", [total, part], node)
        return total if name == "dot" else _fill_form("sqrt(a)", [total], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """A power that is no whole number: by a square root, or by exp and log; the square of a norm is a dot
        product."""
        match node:
            case ast.BinOp(ast.Call(ast.Name("norm"), [of], []), ast.Pow(), ast.Constant(2)):
                return self.visit(_fill_form("dot(a, a)", [of], node))  # type: ignore[no-any-return]
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        if _has_token(node.right):
            return _fill_form("exp(b*log(a))", [node.left, node.right], node)
        value = _number(node.right)
        if value is None or value == int(value):
            return node
        size = abs(value)
        if (2 * size) == int(2 * size) and size < 100:
            form = "sqrt(a)" if size == 0.5 else f"a**{int(size)}*sqrt(a)"
            return _fill_form(form if value > 0 else f"1/({form})", [node.left], node)
        return _fill_form(f"exp({value!r}*log(a))", [node.left], node)


def has_own_y(node: ast.AST) -> bool:
    """Whether y occurs, outside of aggregates further inside: those have a y of their own."""
    if isinstance(node, ast.Name):
        return node.id == "y"
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_]) if name in AGGREGATES:
            return False
    return any(has_own_y(child) for child in ast.iter_child_nodes(node))


def _has_token(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and TOKEN.fullmatch(part.id) for part in ast.walk(node))


def _number(node: ast.expr) -> float | None:
    """The value of a number, of its negative or of a ratio of numbers; None of anything else."""
    match node:
        case ast.Constant(value=int() | float() as value) if abs(value) < 1e6:
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negative = _number(operand)
            return None if negative is None else -negative
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            over, under = _number(left), _number(right)
            return over / under if over is not None and under else None
    return None


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
