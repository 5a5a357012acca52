"""Programs whose answers move with the tokens, seen from their lines.

Two lines are the same function if they are the same operation of the same functions; and sums, products, minima and
maxima if they are of the same parts, in whatever order they are taken. A program is symmetric if with two tokens
exchanged, and with all of them moved by one place, its outputs are its own outputs, moved likewise: these two make
every order.
"""

from __future__ import annotations

from typing import Any

from onelayer_checker.core.budget import spend

Lines = tuple[tuple[Any, ...], ...]

#: Operations whose arguments may be taken in any order; those of the first four in any grouping, too.
GROUPED, COMMUTE = ("add", "mul", "min", "max"), ("add", "mul", "min", "max", "hypot")
#: Parts of all such lines together: beyond, nothing is seen.
MOST_PARTS = 1 << 20


def is_symmetric(n: int, lines: Lines, outputs: tuple[int, ...], per_token: bool) -> bool:
    """Of a program for n tokens, whose outputs are those of one token after the other, or of the whole sequence."""
    spend("symmetry of a program", 3e3 * len(lines))
    known: dict[Any, int] = {}
    own, q = _outputs(lines, outputs, list(range(n)), known), len(outputs) // n
    if own is None:
        return False
    for place in ([1, 0, *range(2, n)], [*range(1, n), 0]) if n > 1 else ():
        moved = _outputs(lines, outputs, place, known)
        wanted = [own[place[j] * q + c] for j in range(n) for c in range(q)] if per_token else own
        if moved != wanted:
            return False
    return True


def _outputs(lines: Lines, outputs: tuple[int, ...], place: list[int], known: dict[Any, int]) -> list[int] | None:
    """A number for each output, the same for the same function, if token j is replaced by token place[j]."""
    found: list[int] = []
    parts: list[tuple[str, tuple[int, ...]]] = []  # of a line: its operation, and what is added, multiplied, ...
    count = 0
    for op, *of in lines:
        if op in ("x", "const"):
            key: Any = (op, place[of[0]], of[1]) if op == "x" else (op, float(of[0]).hex())
            listed: tuple[int, ...] = ()
        else:
            listed = tuple(found[i] for i in of)
            if op in GROUPED:
                listed = tuple(p for i in of for p in (parts[i][1] if parts[i][0] == op else (found[i],)))
            listed = tuple(sorted(listed)) if op in COMMUTE else listed
            key = (op, listed)
        count += len(listed)
        if count > MOST_PARTS:
            return None
        found.append(known.setdefault(key, len(known)))
        parts.append((op, listed))
    return [found[k] for k in outputs]
