"""Lines of a program where its variables are in a known order: which of two is larger is decided."""

from __future__ import annotations

from typing import Any

Lines = tuple[tuple[Any, ...], ...]
ZERO = ("const", 0.0)


def simplify_ordered(given: Lines, d: int, falling: tuple[int, ...]) -> Lines:
    """Lines with the same values wherever the variables, in this order, do not increase: a minimum or maximum of
    two variables is one of them, and so of a difference of two variables and 0; the size of such a difference is
    itself or its negative."""
    place = {v: k for k, v in enumerate(falling)}
    lines = list(given)

    def variable(k: int) -> int | None:
        return lines[k][1] * d + lines[k][2] if lines[k][0] == "x" else None

    def sign(a: int, b: int) -> bool | None:
        """Whether line a is at least line b, or line b at least line a; None if neither is known."""
        if lines[b] == ZERO and lines[a][0] == "sub":
            return sign(*lines[a][1:])
        if lines[a] == ZERO and lines[b][0] == "sub":
            return sign(*lines[b][:0:-1])
        v, w = variable(a), variable(b)
        return None if v is None or w is None else place[v] <= place[w]

    for k, (op, *of) in enumerate(given):
        if op in ("min", "max"):
            more = sign(*of)
            if more is not None:
                lines[k] = lines[of[0] if more == (op == "max") else of[1]]
        elif op == "abs" and lines[of[0]][0] == "sub":
            more = sign(*lines[of[0]][1:])
            if more is not None:
                lines[k] = lines[of[0]] if more else ("neg", of[0])
    return tuple(lines)
