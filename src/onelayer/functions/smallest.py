"""Of all ways to compile a formula, the one with the fewest numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.functions.formula import Compiled, Compiler
from onelayer.functions.tilts import Head
from onelayer.problems.targets.pooled import Pooled

Found = tuple[Compiler, Compiled]
#: Of the tolerance: what covariances and logarithms of means of exponentials may cost as sums of averages, and what
#: rounding of these may cost besides, if the tolerance is less than so many units; how often it is asked for less,
#: if that moves outputs by more.
SHARES, ROUNDED, FEW_UNITS, ROOMS = (0.15, 0.6), (0.0, 0.3, 0.6), 1e7, 2
#: Of the tolerance: what functions of pairs may cost, besides the usual, as sums of fewer products.
PAIRS = 0.4


def smallest(
    target: Pooled,
    box: list[tuple[float, float]],
    tokens: int,
    tolerance: float,
    dtype: np.dtype[Any],
    room: float = 0.0,
) -> Found:
    """With tokens as they are, or counted from the middle of the box inside products; with squares and logarithms,
    or with averages near them, as far as there is room for their rounding; with more products for functions of
    pairs, or with fewer and more exact blocks: what takes the fewest numbers."""
    plain = Compiler(target, box, tokens, tolerance)
    tried: list[Callable[[], Found]] = [partial(_written, plain, dtype)]
    if plain.plan.has_middles:
        tried.append(partial(_written, Compiler(target, box, tokens, tolerance, centred=True), dtype))
    if plain.plan.has_pairs:
        tried.append(partial(_written, Compiler(target, box, tokens, tolerance, pairs=PAIRS), dtype))
    rounding = ROUNDED if tolerance <= FEW_UNITS * np.finfo(dtype).eps else ROUNDED[:1]
    for share, rounded in product(SHARES, rounding) if plain.plan.has_moments else ():
        tilted = partial(Compiler, target, box, tokens, (1 - rounded) * tolerance, share=share)
        tried.append(partial(_rounded, tilted, Head(tokens, dtype, room + rounded * tolerance)))
    made, refusals = list[Found](), list[HypothesisError]()
    for attempt in tried:
        try:
            made.append(attempt())
        except HypothesisError as refusal:
            refusals.append(refusal)
    if not made:
        raise refusals[0]
    return min(made, key=lambda found: found[1].transformer.n_parameters)


def _written(compiler: Compiler, dtype: np.dtype[Any]) -> Found:
    return compiler, compiler.write(dtype)


def _rounded(tilted: Callable[..., Compiler], head: Head) -> Found:
    """With averages that round to no more than there is room for."""
    room = head.room
    for _ in range(ROOMS):
        found = _written(tilted(head=head), head.dtype)
        needed = found[0].rounding(head)
        if needed <= room:
            return found
        head = replace(head, room=0.9 * head.room * room / needed)
    needs = f"averages that round to at most {room:.3g}"
    raise HypothesisError("formula", needs, f"{needed:.3g} in {head.dtype}", "Use float64, or a larger tolerance.")
