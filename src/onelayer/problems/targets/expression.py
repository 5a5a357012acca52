"""Formulas as text: `(x - mean(y)) / (0.1 + sqrt(mean(y**2)))`, read with Python's grammar and never executed.

`x` is the token whose answer is wanted, `y` the token that an aggregate (sum, mean, max, min with one argument)
runs over; `x1`, `x2`, ... are the tokens by place. Components are `x[0]`, `x[1]`, ...; tokens of width 1 need none,
and a formula of wider ones without components is taken component by component.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from onelayer.errors import OptionError
from onelayer.problems.targets.pooled import Pooled, PooledBuilder
from onelayer.problems.targets.program import Builder, Node, Per, Program
from onelayer.problems.targets.shorthand import AGGREGATES, has_own_y, written_out
from onelayer.problems.targets.zoo import ZOO, Kind

#: What people write and no continuous function is near; and what is.
JUMPS = ("sign", "floor", "ceil", "round", "step", "heaviside", "argmax", "argmin", "rank", "argsort")
CONTINUOUS = "continuous functions, since every Transformer is one"
RAMP = "Replace the jump by a ramp, as clip(50*x, -1, 1) is for sign(x)."
#: Of comparisons, conditions and remainders.
CHOICE = "Write what does not jump with max, min, clip or relu, and replace a jump by a ramp, as clip(50*x, -1, 1)."
LANGUAGE = (
    "It has x, y (inside sum, mean, var, std, max, min, softmax(logits, values)), x1, x2, ..., n, pi, e, numbers, "
    "+ - * / **, abs, sqrt, exp, log, sin, cos, tanh, sigmoid, relu, clip, hypot, max, min, dot, norm."
)
CONSTANTS = {"pi": math.pi, "e": math.e}
#: Named targets that are formulas for any number of tokens, component by component.
NAMED = {
    "attention": "softmax(dot(x, y), y)",
    "max": "max(y)",
    "mean": "mean(y)",
    "range": "max(y) - min(y)",
    "softmax": "exp(x)/sum(exp(y))",
    "variance": "var(y)",
}
FUNCTIONS = dict.fromkeys(("abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "relu"), 1) | {"hypot": 2}
OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
PLACE = re.compile(r"x([1-9][0-9]*)")
MOST_TEXT, MOST_POWER = 10_000, 1_000
#: Characters of a formula that are shown around a mistake.
SHOWN = 100


def read_expression(text: str, n: int, d: int) -> tuple[Kind, Program]:
    """The kind and the program that a formula stands for: with x a value per token, else one per sequence."""
    reader = _Reader(text.strip(), n, d, Builder(n, d))
    outputs = reader.outputs([*range(n)] if reader.per == "token" else [None])
    return reader.kind, reader.builder.program(outputs, reader.per)


def read_pooled(text: str, n: int, d: int) -> tuple[Kind, Pooled] | None:
    """The kind and the formula for sequences of any length; None if it names tokens by place."""
    builder = PooledBuilder(n, d)
    reader = _PooledReader(text.strip(), n, d, builder)
    if reader.kind == "ordered":
        return None
    outputs = reader.outputs([0] if reader.per == "token" else [None])
    return reader.kind, builder.build(outputs, reader.per, not reader.counts)


class _Reader:
    """Walks the tree of a formula and writes lines; ``own`` is the place of x, ``other`` that of y."""

    def __init__(self, text: str, n: int, d: int, builder: Builder) -> None:
        self.text, self.n, self.d, self.builder = text, n, d, builder
        self.tree = self._parse()
        try:
            self.tree = written_out(self.tree, d, self.refusal)
        except RecursionError:
            raise self.refusal(self.tree, "a formula that is not nested that deep", "Split it.") from None
        self.done: dict[tuple[int, int | None, int | None], Node] = {}
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        own, placed = "x" in names, any(PLACE.fullmatch(name) for name in names)
        self.kind: Kind = "ordered" if placed else "equivariant" if own else "invariant"
        self.per: Per = "token" if own else "sequence"
        self.counts = False  # whether the number of tokens was used

    def outputs(self, places: Sequence[int | None]) -> list[Node]:
        """A line for every output at every place of x."""
        parts = self.tree.elts if isinstance(self.tree, ast.Tuple) else [self.tree]
        if not parts:
            raise self.refusal(self.tree, "at least one output", "Write a formula between the parentheses.")
        try:
            return [self.read(part, place, None) for place in places for part in parts]
        except RecursionError:
            raise self.refusal(self.tree, "a formula that is not nested that deep", "Split it.") from None

    def _parse(self) -> ast.expr:
        needs = "a formula that can be read"
        if len(self.text) > MOST_TEXT:
            found = f"it has {len(self.text):,} characters"
            raise OptionError("target", needs, found, f"Use at most {MOST_TEXT:,}, or a program.")
        if not self.text:
            raise OptionError("target", needs, "it is empty", "Write one, such as x - mean(y).")
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            at = error.offset or len(self.text)  # Python says 0 where the text ends too early
            found = f"{self.text!r:.200} has a mistake ({error.msg}) at column {at}"
            raise OptionError(
                "target", needs, found, "Correct it there." + point_at(self.text, error.lineno or 1, at, at)
            ) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise OptionError("target", needs, f"Python's parser gives up: {error}", "Shorten it.") from None

    def refusal(self, node: ast.expr, needs: str, remedy: str) -> OptionError:
        """An error that says where: at which part, and at which column of the text."""
        piece = ast.get_source_segment(self.text, node) or ""
        column = len(self.text.splitlines()[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        found = f"{piece!r:.80} stands at column {column} of {self.text!r:.200}"
        last = column + max(len(piece.split("\n")[0]), 1) - 1
        return OptionError("target", needs, found, remedy + point_at(self.text, node.lineno, column, last))

    def read(self, node: ast.expr, own: int | None, other: int | None) -> Node:
        """A line for every part; each is written once for a pair (x, y) of places."""
        key = id(node), own, other
        if key not in self.done:
            found = self.write(node, own, other)
            if not math.isfinite(self.builder.value(found) or 0.0):
                remedy = "Nothing is divided by 0, no number below 0 has a root or log, none is beyond 1e308."
                raise self.refusal(node, "finite numbers", remedy)
            self.done[key] = found
        return self.done[key]

    def write(self, node: ast.expr, own: int | None, other: int | None) -> Node:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.builder.const(self.number(node, value))
            case ast.Name() | ast.Subscript():
                return self.leaf(node, own, other)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.read(operand, own, other)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, own, other)
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self.read(left, own, other) ** self.power(right, own, other)
            case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
                return self.builder.op(
                    OPERATORS[type(op)], self.read(left, own, other), self.read(right, own, other)
                )
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(node, name, arguments, own, other)
            case ast.Compare() | ast.IfExp() | ast.BoolOp() | ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
                raise self.refusal(node, CONTINUOUS, CHOICE)
            case ast.BinOp(op=ast.BitXor()):
                raise self.refusal(node, "the language of formulas", "Write powers with **.")
            case ast.Tuple():
                raise self.refusal(node, "several outputs only around the whole formula", "Move them outside.")
            case _:
                raise self.refusal(node, "the language of formulas", LANGUAGE)

    def number(self, node: ast.expr, value: float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise self.refusal(node, "finite numbers", "No number is beyond 1e308.") from None

    def power(self, node: ast.expr, own: int | None, other: int | None) -> int:
        value = self.builder.value(self.read(node, own, other))
        if value is None or value != int(value) or abs(value) > MOST_POWER:
            raise self.refusal(node, f"a whole power of at most {MOST_POWER}", "Use a smaller one.")
        return int(value)

    def leaf(self, node: ast.expr, own: int | None, other: int | None) -> Node:
        """A variable with its component, or one of the names of numbers."""
        name, component = node, 0
        if isinstance(node, ast.Subscript):
            name, component = node.value, self.component(node.slice)
        if not isinstance(name, ast.Name):
            raise self.refusal(node, "a component of a token", "Write x[0], y[0] or x1[0].")
        place = PLACE.fullmatch(name.id)
        if (name.id == "n" or name.id in CONSTANTS) and name is node:
            self.counts |= name.id == "n"
            return self.builder.const(CONSTANTS.get(name.id, self.n))
        if name.id not in ("x", "y") and place is None:
            raise self.refusal(node, "names that it knows", LANGUAGE)
        if name is node and self.d > 1:
            raise self.refusal(node, f"a component, for tokens of width {self.d}", f"Write {name.id}[0].")
        if place is not None:
            if int(place[1]) > self.n:
                raise self.refusal(node, f"tokens that are there: x1 to x{self.n}", "Take longer sequences.")
            return self.builder.x(int(place[1]) - 1, component)
        at = own if name.id == "x" else other
        if at is None:
            raise self.refusal(
                node, "y inside an aggregate", "Write sum(...), mean(...), max(...) or min(...) around it."
            )
        return self.variable(name.id, at, component)

    def variable(self, name: str, at: int, component: int) -> Node:  # noqa: ARG002
        """A component of x or y, which stands at a place."""
        return self.builder.x(at, component)

    def component(self, node: ast.expr) -> int:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < self.d:
            raise self.refusal(node, f"a component from 0 to {self.d - 1}", "Count components from 0.")
        return value

    def call(
        self, node: ast.Call, name: str, arguments: list[ast.expr], own: int | None, other: int | None
    ) -> Node:
        if name in AGGREGATES and (len(arguments) == 1 or name in ("sum", "mean")):
            return self.aggregate(node, name, arguments, own)
        if name in ("max", "min") and len(arguments) > 1:
            return self.builder.fold(name, [self.read(argument, own, other) for argument in arguments])
        if name in JUMPS or name == "where":
            raise self.refusal(node, CONTINUOUS, RAMP if name in JUMPS else CHOICE)
        if name not in FUNCTIONS and name not in AGGREGATES:
            alone = f"As a whole target there is {name}: pass {name!r} alone. " if name in ZOO else ""
            raise self.refusal(node, "functions that it knows", alone + LANGUAGE)
        if len(arguments) != FUNCTIONS.get(name):
            count = FUNCTIONS.get(name, "one or more")
            raise self.refusal(node, f"arguments for {name}: {count}", "Give as many.")
        values = [self.read(argument, own, other) for argument in arguments]
        return self.builder.op("max", values[0], 0.0) if name == "relu" else self.builder.op(name, *values)

    def aggregate(self, node: ast.Call, name: str, arguments: list[ast.expr], own: int | None) -> Node:
        """Over all tokens y, its own among them; an aggregate inside has a y of its own."""
        if len(arguments) != 1 or not has_own_y(arguments[0]):
            remedy = f"Write for example {name}(y)." + (" Add with +." if name in ("sum", "mean") else "")
            raise self.refusal(node, f"one argument with a y in it, for {name} to run over the tokens", remedy)
        return self.pool(name, arguments[0], own)

    def pool(self, name: str, argument: ast.expr, own: int | None) -> Node:
        total = self.builder.fold(AGGREGATES[name], [self.read(argument, own, j) for j in range(self.n)])
        return total / self.n if name == "mean" else total


class _PooledReader(_Reader):
    """The same for a formula of any length, in which x and y have no place."""

    def variable(self, name: str, at: int, component: int) -> Node:  # noqa: ARG002
        assert isinstance(self.builder, PooledBuilder)
        return self.builder.own(component) if name == "x" else self.builder.other(component)

    def pool(self, name: str, argument: ast.expr, own: int | None) -> Node:
        assert isinstance(self.builder, PooledBuilder)
        value = self.read(argument, own, 0)
        if name in ("max", "min"):
            sign = 1.0 if name == "max" else -1.0
            return sign * self.builder.pool("largest", sign * value)
        self.counts |= name == "sum"
        return (float(self.n) if name == "sum" else 1.0) * self.builder.pool("mean", value)


def point_at(text: str, line: int, first: int, last: int) -> str:
    """The line of a formula in which something is wrong, and below it a mark under these columns."""
    shown = text.splitlines()[line - 1] if text else ""
    start = max(0, min(first - 1, len(shown)) - SHOWN // 2)
    part, mark = shown[start : start + SHOWN], min(last, start + SHOWN) - first + 1
    return f"\n  {part}\n  {' ' * (first - 1 - start)}{'^' * max(mark, 1)}"
