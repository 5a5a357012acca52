"""Numbers that later layers need are passed on as sums, where those are fewer than their parts.

A number that is a sum of terms from several layers waits for the last of them. What is there before is passed on
from layer to layer: each term alone, or their sum, which is one number. Sums are lines that the formula has anyway,
so that their ranges are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onelayer.functions.layout import Phase


def carry_sums(phase: Phase) -> None:
    """Write numbers over sums that are passed on, if that leaves fewer numbers to be passed on."""
    waiting = {k: terms for k in phase.numbers if (terms := _early(phase, k))}
    found = {k: line for k, terms in waiting.items() if (line := _line(phase, k, terms)) is not None}
    parts = {j for terms in waiting.values() for j in terms}
    others = {j for k, terms in waiting.items() if k not in found for j in terms}
    lines = set(found.values())
    if not len(lines | others) < len(parts):
        return
    for k, line in found.items():
        terms, constant = phase.sum(k)
        own, offset = phase.sum(line)
        factor = next(terms[j] / own[j] for j in own)
        late = {j: e for j, e in terms.items() if j not in waiting[k]}
        phase.sums[k] = {**late, line: factor}, constant - factor * offset
    phase.carried |= lines
    phase.numbers = list(dict.fromkeys([*sorted(lines, key=phase.level), *phase.numbers]))


def _early(phase: Phase, k: int) -> dict[int, Fraction]:
    """Terms of a number that are there a layer before the number is, or earlier."""
    last = phase.level(k)
    return {j: e for j, e in phase.sum(k)[0].items() if phase.ready(j) < last}


def _line(phase: Phase, k: int, terms: dict[int, Fraction]) -> int | None:
    """A line that the number is a sum with, of just these terms up to a factor; None if there is none."""
    if len(terms) == 1:
        return None
    for line in _parts(phase, k):
        own = phase.sum(line)[0]
        if own.keys() == terms.keys() and len({terms[j] / own[j] for j in own}) == 1:
            return line
    return None


def _parts(phase: Phase, k: int) -> Iterator[int]:
    """Lines below a sum, those with the narrowest ranges last."""
    found, open_ = list[int](), [k]
    while open_:
        line = open_.pop()
        op, *of = phase.lines.lines[line]
        affine = op in ("add", "sub", "neg") or (op == "mul" and phase.lines.value(of[0]) is not None)
        if line not in phase.inputs and affine:
            found.append(line)
            open_ += of
    return reversed(found)
