"""Mutants of a module: its source with one line deleted or altered.

What is altered stands in one table, `TABLE`. Left alone are docstrings, annotations, decorators, imports, the texts
of messages, and the first binding of a name: without it every use is a NameError.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

Edit = tuple[int, int, str]  # from byte, to byte, new text

NEIGHBOURS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
NEIGHBOURS |= {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
OPPOSITES = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<"}
SWAPS = {"maximum": "minimum", "max": "min", "any": "all", "argmax": "argmin", "floor": "ceil", "left": "right"}
SWAPS |= {new: old for old, new in SWAPS.items()}
#: Functions of which the argument is put in place of the call.
UNWRAPPED = {"abs", "nextafter", "rint"}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.BitAnd: "&"}
SYMBOLS |= {ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>"}
ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set)


@dataclass(frozen=True)
class Mutant:
    module: str  # "core/layers"
    where: str  # the function or class
    line: int
    statement: range  # its lines, or those of its head; one of them runs before the change matters
    kind: str
    old: str  # the first line that differs
    new: str
    source: str

    @property
    def diff(self) -> str:
        return f"{self.module}.py:{self.line} in {self.where} ({self.kind})\n- {self.old}\n+ {self.new}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.where, self.old, self.new


@dataclass(frozen=True)
class Source:
    """A module's bytes; nodes know their place in lines and in bytes of a line."""

    text: str

    @cached_property
    def bytes(self) -> bytes:
        return self.text.encode()

    @cached_property
    def starts(self) -> list[int]:
        lines = self.bytes.splitlines(keepends=True)
        return [sum(map(len, lines[:i])) for i in range(len(lines))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """The node's text, in brackets unless it can stand anywhere."""
        start, stop = self.span(node)
        text = self.bytes[start:stop].decode()
        return text if isinstance(node, ATOMS) else f"({text})"

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str) -> Edit:
        """The operator between two operands replaced."""
        start, stop = self.span(left)[1], self.span(right)[0]
        gap = self.bytes[start:stop].decode()
        words = r"\s+".join(map(re.escape, old.split()))
        replaced, count = re.subn(words, lambda _: new, gap, count=1)
        assert count == 1, (gap, old)
        return start, stop, replaced

    def replace_node(self, node: ast.AST, *texts: str) -> Iterator[Edit]:
        for text in texts:
            yield *self.span(node), text


def _delete_statement(node: ast.AST, source: Source) -> Iterator[Edit]:
    """A statement; of an ``if`` the condition is made false instead."""
    kinds = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Assert)
    if isinstance(node, (*kinds, ast.For, ast.While)):
        yield from source.replace_node(node, "pass")


def _condition(node: ast.AST, source: Source) -> Iterator[Edit]:
    tests: list[ast.expr] = []
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        tests = [node.test]
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    for test in tests:
        forever = () if isinstance(node, ast.While) else ("True",)
        yield from source.replace_node(test, f"not {source.of(test)}", "False", *forever)


def _comparison(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        names = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
        names |= {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            old = names[type(op)]
            yield source.between(left, right, old, NEIGHBOURS[old])


def _operand_of_a_condition(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for dropped in node.values:
            kept = [source.of(value) for value in node.values if value is not dropped]
            yield from source.replace_node(node, kept[0] if len(kept) == 1 else f"({word.join(kept)})")


def _operator(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and type(node.op) in SYMBOLS:
        old = SYMBOLS[type(node.op)]
        yield source.between(node.left, node.right, old, OPPOSITES[old])
    if isinstance(node, ast.AugAssign) and type(node.op) in SYMBOLS:
        old = SYMBOLS[type(node.op)]
        yield source.between(node.target, node.value, f"{old}=", f"{OPPOSITES[old]}=")
        yield source.between(node.target, node.value, f"{old}=", "=")


def _term_or_factor(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and type(node.op) in SYMBOLS:
        yield from source.replace_node(node, source.of(node.left))
        if isinstance(node.op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)):
            yield from source.replace_node(node, source.of(node.right))


def _swap_operands(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in SWAPS:
            stop = source.span(function)[1]
            yield stop - len(name), stop, SWAPS[name]
        if name in UNWRAPPED:
            yield from source.replace_node(node, source.of(node.args[0]))
    if isinstance(node, ast.Constant) and node.value in ("left", "right"):
        yield from source.replace_node(node, repr(SWAPS[node.value]))


def _infinity(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.Attribute) and node.attr == "inf":
        yield from source.replace_node(node, "0.0", "-np.inf")


def _number(node: ast.AST, source: Source) -> Iterator[Edit]:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool):
        yield from source.replace_node(node, str(not value))
    elif isinstance(value, float):
        yield from source.replace_node(node, *(("1.0",) if value == 0 else (repr(value * 2), repr(value / 2))))
    elif isinstance(value, int):
        power = value >= 4 and value & (value - 1) == 0
        others = (value * 2, value // 2) if power else (value + 1, value - 1) if value else (1,)
        yield from source.replace_node(node, *map(str, others))


def _sign(node: ast.AST, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp):
        yield from source.replace_node(node, source.of(node.operand))


#: What is done to a node of the syntax tree, by name.
TABLE: dict[str, Callable[[ast.AST, Source], Iterator[Edit]]] = {
    "statement deleted": _delete_statement,
    "condition negated or constant": _condition,
    "comparison replaced by its neighbour": _comparison,
    "operand of and, or dropped": _operand_of_a_condition,
    "operator replaced by its opposite": _operator,
    "term, factor or set dropped": _term_or_factor,
    "function replaced by its opposite, or left out": _swap_operands,
    "infinity replaced": _infinity,
    "constant shifted, doubled or halved": _number,
    "minus, not or complement dropped": _sign,
}


def mutants(module: str, text: str, only: Collection[str] | None = None) -> list[Mutant]:
    """All mutants of a module, each only once; or those of the functions and classes that are named."""
    source, found = Source(text), {}
    for top in ast.parse(text).body:
        start, stop = source.span(top)
        own, seen = ast.parse(source.bytes[start:stop]), set()
        for node, where in _walk(ast.Module([top], []), Place("module", frozenset(), range(0))):
            if only is not None and where.name not in only:
                continue
            for kind, change in TABLE.items():
                for a, z, new in change(node, source):
                    if kind == "statement deleted" and _binds_first(node, where):
                        continue
                    changed = ast.parse(source.bytes[start:a] + new.encode() + source.bytes[z:stop])
                    before = source.bytes[start:a].split(b"\n")
                    statements = [_statement(tree, (len(before), len(before[-1]))) for tree in (own, changed)]
                    if statements[0] != statements[1] and statements[1] not in seen:
                        seen.add(statements[1])
                        made = _mutant(module, where, kind, source, (a, z, new))
                        found[made.source] = made
    return list(found.values())


def _statement(tree: ast.Module, place: tuple[int, int]) -> tuple[int, int, str]:
    """The innermost statement at a line and a column: where it begins, and what it is."""
    found: ast.AST = tree.body[0]
    while True:
        inner = [part for name in ("body", "orelse", "finalbody", "handlers") for part in getattr(found, name, ())]
        at = [part for part in inner if (part.lineno, part.col_offset) <= place]
        if not at or place >= (at[-1].end_lineno, at[-1].end_col_offset):
            return found.lineno, found.col_offset, ast.dump(found)  # type: ignore[attr-defined]
        found = at[-1]


@dataclass(frozen=True)
class Place:
    """The function or class a node is in, the names that are bound there more than once, and its statement."""

    name: str
    rebound: frozenset[str]
    statement: range


def _walk(node: ast.AST, outer: Place) -> Iterator[tuple[ast.AST, Place]]:
    """Nodes that may be altered, with their place."""
    for child in _children(node):
        if isinstance(child, (ast.Import, ast.ImportFrom, ast.JoinedStr)) or _only_says(child):
            continue
        place = outer
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            name = child.name if outer.name == "module" else f"{outer.name}.{child.name}"
            rebound = _bound_twice(child) if isinstance(child, ast.FunctionDef) else frozenset()
            place = Place(name, rebound, range(0))
        if isinstance(child, ast.stmt):
            place = replace(place, statement=_head(child))
        yield child, place
        if not isinstance(child, ast.Raise):  # what it says is a message
            yield from _walk(child, place)


def _head(statement: ast.stmt) -> range:
    """The lines of a statement, without those of other statements inside it."""
    inside = [part.lineno for part in ast.walk(statement) if isinstance(part, ast.stmt) and part is not statement]
    assert statement.end_lineno is not None
    return range(statement.lineno, max(min(inside, default=statement.end_lineno + 1), statement.lineno + 1))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """But for annotations and decorators, and the -1 of `reshape`, for which any negative number would do."""
    reshape = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reshape"
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (reshape and isinstance(child, ast.UnaryOp)):
                yield child


def _only_says(node: ast.AST) -> bool:
    """A docstring, the list of public names, the name of a type, or an import for type checkers."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
        union = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        return name == "__all__" or (name.istitle() and (union or isinstance(node.value, ast.Subscript)))
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _bound_twice(function: ast.FunctionDef) -> frozenset[str]:
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    stored += [a.arg for a in ast.walk(function) if isinstance(a, ast.arg)]
    return frozenset(name for name in stored if stored.count(name) > 1)


def _binds_first(node: ast.AST, where: Place) -> bool:
    """Whether an assignment binds only names that nothing else binds."""
    if not isinstance(node, ast.Assign):
        return False
    bound = [n for target in node.targets for n in ast.walk(target)]
    names = {n.id for n in bound if isinstance(n, ast.Name)}
    return not any(isinstance(n, (ast.Subscript, ast.Attribute)) for n in bound) and not names & where.rebound


def _mutant(module: str, where: Place, kind: str, source: Source, edit: Edit) -> Mutant:
    start, stop, new = edit
    content, line = source.bytes, source.bytes.count(b"\n", 0, edit[0])
    first, last = content.rfind(b"\n", 0, start) + 1, content.find(b"\n", stop)
    before, after = content[first:last], content[first:start] + new.encode() + content[stop:last]
    old, changed = (" ".join(part.strip() for part in text.decode().splitlines()) for text in (before, after))
    mutated = content[:start] + new.encode() + content[stop:]
    return Mutant(module, where.name, line + 1, where.statement, kind, old, changed, mutated.decode())
