"""`positional` from a tolerance: how fine the grid, what that costs, and the model with what to prove of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile import proof_time
from onelayer.compile.construction import (
    Built,
    Construction,
    Request,
    at_most_float,
    construction,
    enough_levels,
    extrapolate_levels,
)
from onelayer.functions import positional
from onelayer.functions.positional import Lattice, at_vertices, interpolate
from onelayer.interfaces.plan import Plan
from onelayer.measure.worst_error import largest_error
from onelayer.problems.targets.box import Box

Array = NDArray[Any]

#: Hats that one model may have, and numbers in it.
MOST_VERTICES, MOST_NUMBERS = 400_000, 1 << 28
#: A plan looks for the largest error on samples; what is proved may be larger by about this factor.
SAMPLES, MORE = 1 << 14, 1.15
#: Measured on two cores: a plan, and a number of the model.
SECONDS, SECONDS_A_NUMBER = 0.5, 2e-6
#: Simplices beyond which no proof is tried, and no first look at one taken.
MOST_SIMPLICES = 10**9
#: That one proof may take.
MOST_SECONDS = 600.0


def plan(request: Request) -> Plan:
    """About the fewest levels whose error stays within the tolerance."""
    request.needs_a_cube("positional")
    levels, error = enough_levels(
        lambda levels: predicted_error(request, levels),
        request.tolerance,
        lambda levels: reachable(request, levels),
        rate=2,
    )
    wanted = extrapolate_levels(levels, error, request.tolerance, rate=2)
    lattice = lattice_of(request, wanted)
    numbers = parameters(request, lattice)
    return Plan(
        "positional",
        wanted,
        error,
        cells=lattice.levels**lattice.m,
        parameters=numbers,
        bytes=24.0 * at_most_float(numbers),
        seconds=seconds(request, lattice),
        reachable=wanted == levels and bool(np.isfinite(error)),
        provable=request.target.program is not None,
    )


def build(request: Request, levels: int) -> Built:
    target, lattice = request.target, lattice_of(request, levels)
    made = positional.construct(target.evaluate, lattice, target.kind, target.per, target.components)
    corners = np.array([[lattice.low], [lattice.high]]).repeat(lattice.m, axis=1)
    tokens = corners.reshape(2, lattice.n, lattice.d).astype(lattice.dtype)
    tensors = {
        "tokens": tokens,
        "answers": np.ascontiguousarray(target.evaluate(tokens.astype(np.float64)).reshape(-1, target.components)),
    }
    entries: tuple[dict[str, Any], ...] = ()
    if target.program is not None:
        box = {"low": lattice.low.hex(), "high": lattice.high.hex(), "target": target.program.to_json()}
        common = {"type": "sup_error_everywhere", "scope": target.per, **box}
        entries = tuple({**common, "arith": arith} for arith in ("real", lattice.dtype.name))
    return Built(
        made.transformer,
        made.gadgets,
        made.form,
        "interpolation",
        "largest |target - its interpolant|, enclosed on every simplex",
        (),
        made.constants,
        Box(lattice.n, lattice.d, lattice.low, lattice.high, lattice.dtype, np.empty(0)),
        0.0,
        tensors,
        entries,
    )


def lattice_of(request: Request, levels: int) -> Lattice:
    t = request.target
    return Lattice(t.n, t.d, request.low, request.high, levels, request.dtype)


def parameters(request: Request, lattice: Lattice) -> int:
    """Numbers in the model, about: those of the hats."""
    m, t = lattice.m, request.target
    gated = t.kind == "ordered" and t.per == "token"
    outputs = t.components * (t.n if gated else 1)
    inputs = m + (t.n if gated else 0)
    return lattice.count * (2 * m * (inputs + 1) + (m - 1) * (4 * m * m + 2 * m) + 2 * m + 1 + outputs)


def reachable(request: Request, levels: int) -> bool:
    lattice = lattice_of(request, levels)
    fits = lattice.count <= MOST_VERTICES and parameters(request, lattice) <= MOST_NUMBERS
    return fits and (request.target.program is None or seconds(request, lattice) <= MOST_SECONDS)


def seconds(request: Request, lattice: Lattice) -> float:
    """Of a model and its proof, after a first look at some simplices."""
    simplices = at_most_float(lattice.levels**lattice.m * math.factorial(lattice.m))
    spent = SECONDS + SECONDS_A_NUMBER * at_most_float(parameters(request, lattice))
    if request.target.program is None:
        return spent
    if simplices > MOST_SIMPLICES or lattice.count > MOST_VERTICES:
        return spent + proof_time.at_least(request, lattice)
    return spent + proof_time.seconds(request, lattice)


def predicted_error(request: Request, levels: int) -> float:
    """A little more than the largest error of the interpolant that is found on samples and by climbing."""
    lattice, target = lattice_of(request, levels), request.target
    values = at_vertices(target.evaluate, lattice).reshape(lattice.count, -1)

    def error(X: Array) -> Array:
        found = interpolate(values, lattice, X)
        return np.asarray(np.abs(found - target.evaluate(X).reshape(found.shape)).max(axis=1))

    double = np.dtype(np.float64)
    box = Box(lattice.n, lattice.d, lattice.low, lattice.high, double, np.empty(0))
    return MORE * largest_error(error, box, SAMPLES, request.seed)[0]


@construction
class Positional(Construction):
    name, order, automatic = "positional", 3, True
    plan, build = staticmethod(plan), staticmethod(build)
