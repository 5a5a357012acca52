"""A line of a program as a formula that `read_expression` reads again; nothing if it would be long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: How tightly an operator binds; what binds less tightly is put into parentheses.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
INFIX = {"add": (" + ", SUM, SUM), "sub": (" - ", SUM, PRODUCT), "mul": ("*", PRODUCT, PRODUCT)}
INFIX |= {"div": ("/", PRODUCT, SIGN)}


def formula(lines: Sequence[tuple[Any, ...]], d: int, output: int, most: int) -> str | None:
    """The line ``output`` in terms of x1, x2, ...; None if that takes more than ``most`` characters."""
    needed, open_ = set[int](), [output]
    while open_:
        at = open_.pop()
        if at not in needed:
            needed.add(at)
            open_ += lines[at][1:] if lines[at][0] not in ("x", "y", "const") else ()
    written: dict[int, tuple[str, int]] = {}
    for at in sorted(needed):
        written[at] = _write(lines[at], d, written)
        if len(written[at][0]) > most:
            return None
    return written[output][0]


def _write(line: tuple[Any, ...], d: int, written: dict[int, tuple[str, int]]) -> tuple[str, int]:
    """Text, and how tightly it binds."""
    op, *of = line
    if op in ("x", "y") and len(of) == 1:  # of a formula for any number of tokens
        return f"{op}[{of[0]}]" if d > 1 else op, ATOM
    if op == "x":
        return f"x{of[0] + 1}" + (f"[{of[1]}]" if d > 1 else ""), ATOM
    if op == "const":
        text = repr(int(of[0])) if of[0] == int(of[0]) and abs(of[0]) < 1e15 else repr(float(of[0]))
        return text, SIGN if of[0] < 0 else ATOM

    def inside(at: int, binds: int) -> str:
        text, tight = written[at]
        return text if tight >= binds else f"({text})"

    if op == "neg":
        return f"-{inside(of[0], POWER)}", SIGN
    if op == "mul" and of[0] == of[1]:
        return f"{inside(of[0], ATOM)}**2", POWER
    if op in INFIX:
        sign, left, right = INFIX[op]
        return f"{inside(of[0], left)}{sign}{inside(of[1], right)}", left
    op = "max" if op == "largest" else op
    return f"{op}({', '.join(inside(at, SUM) for at in of)})", ATOM
