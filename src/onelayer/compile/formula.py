"""`formula` from a tolerance: what the compiled lines cost, and the model with what to prove of it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from onelayer.compile.construction import Built, Construction, Request, construction
from onelayer.errors import HypothesisError
from onelayer.functions.formula import Compiled
from onelayer.functions.smallest import smallest
from onelayer.gadgets.stacks import read_parts
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant
from onelayer.problems.answers import AnswerForm
from onelayer.problems.targets.box import Box
from onelayer.problems.targets.pooled import Pooled

Sides = tuple[tuple[float, float], ...]

#: The share of the tolerance that lines are given; the rest is for rounding. Each level more leaves them so much of
#: it; a repair takes as many as rounding needs, or so many if nobody knows, but none if it leaves lines too little.
SHARE, LESS, UNKNOWN, TOO_LITTLE = 0.96, 0.98, 8, 0.1
#: By how much rounding may have been underestimated, if a first model did not keep its tolerance.
DOUBT = 4
#: Numbers in a model, and seconds of a proof for each of its units, measured on two cores.
MOST_NUMBERS, SECONDS, SECONDS_A_UNIT = 1 << 24, 0.1, 1e-3


def plan(request: Request) -> Plan:
    """The size follows from writing the model once, which takes less time than guessing it would."""
    made = _compile_formula(request, 1)
    numbers = made.transformer.n_parameters
    return Plan(
        "formula",
        1,
        request.tolerance,
        cells=made.units,
        parameters=numbers,
        bytes=24.0 * numbers,
        seconds=SECONDS + SECONDS_A_UNIT * made.units,
        reachable=numbers <= MOST_NUMBERS,
        provable=True,
        size=f"{made.lines} lines, {made.heads} heads, {made.units:,} units",
    )


def build(request: Request, levels: int) -> Built:
    """With the tolerance shared out over lines; more levels leave more of it to rounding."""
    target, made = request.target, _compile_formula(request, levels)
    n, q = target.n, target.components
    corners = np.array(request.sides).T[:, None].repeat(n, axis=1)  # [2, n, d]
    tokens = corners.astype(request.dtype)
    values = target.evaluate(tokens.astype(np.float64))
    entry = {"type": "formula_error", "scope": target.per, "target": made.target}
    constants = (
        Constant("lines", made.lines, "of the formula and of what it was rewritten to"),
        Constant("units", made.units, "ReLU units, of blocks and to pass numbers on"),
        Constant("tokens", made.target["tokens"], _lengths(request)),
    )
    return Built(
        made.transformer,
        tuple(part.covered for parts in read_parts(made.transformer).values() for part in parts),
        AnswerForm(target.per, None, q, False),
        "lines",
        "what the blocks of all lines are off, each by what later lines make of it",
        (),
        constants,
        Box.of_sides(n, request.sides, request.dtype),
        0.0,
        {"tokens": tokens, "answers": np.ascontiguousarray(values.reshape(-1, q))},
        tuple({**entry, "arith": arith} for arith in ("real", request.dtype.name)),
    )


def finer(levels: int, share: float) -> int:
    """Lines are given what rounding leaves. Its bound grows with the number of tokens, since they may be summed in
    any order: so a model may have to be larger where more of them are allowed."""
    if np.isnan(share):
        return levels + UNKNOWN
    return levels if share < TOO_LITTLE else levels + max(1, math.ceil(math.log(share) / math.log(LESS)))


def _lengths(request: Request) -> str:
    pooled = request.target.pooled
    assert pooled is not None
    every = "the bound holds for every sequence of 1 to this many tokens"
    return every if pooled.any_length else "the formula names the number of tokens: it holds for exactly this many"


def _compile_formula(request: Request, levels: int) -> Compiled:
    target: Any = request.target
    if target.pooled is None:
        needs = "a formula of x and of averages over y"
        found = f"{target.name!r} is a Python function, or names tokens by their place"
        raise HypothesisError("formula", needs, found, "Use another construction.")
    tolerance = request.tolerance * SHARE * LESS ** (levels - 1)
    room = (request.tolerance - tolerance) / (1 if levels == 1 else DOUBT)
    return _compiled(target.pooled, request.sides, target.n, tolerance, request.dtype, room)


@lru_cache(maxsize=1)
def _compiled(pooled: Pooled, sides: Sides, tokens: int, tolerance: float, dtype: Any, room: float) -> Compiled:
    """What a plan has written is not written again for the model."""
    return smallest(pooled, list(sides), tokens, tolerance, dtype, room)[1]


@construction
class LineByLine(Construction):
    name, order, at_once = "formula", 0, True
    plan, build, finer = staticmethod(plan), staticmethod(build), staticmethod(finer)
