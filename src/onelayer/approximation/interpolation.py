"""`positional` from a tolerance: how fine the grid, what that costs, and the model with what to prove of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.approximation.measure import Box
from onelayer.approximation.plan import Built, Plan, Request, enough_levels
from onelayer.constructions.approximation import positional
from onelayer.constructions.approximation.positional import Lattice, interpolate
from onelayer_checker.hats import sup_error
from onelayer_checker.targets import read_program

Array = NDArray[Any]

#: Hats that one model may have, and numbers in it.
MOST_VERTICES, MOST_NUMBERS = 400_000, 1 << 28
#: Boxes that a proof looks at, about: cells are cut into parts where there are few of them.
BOXES = 60_000
LARGEST_PARTS = 16
#: Of the tolerance, for rounding and for what a plan leaves out.
SHARE = 0.97
#: Where nothing can be enclosed, samples are tried, and the error may be this much larger.
SAMPLES, MORE = 1 << 14, 1.3
#: Measured on two cores.
SECONDS_A_BOX = 2e-5


def plan(request: Request) -> Plan:
    """About the fewest levels whose error stays within the tolerance."""
    allowed = SHARE * request.tolerance
    levels, error = enough_levels(
        lambda levels: predicted_error(request, levels), allowed, lambda levels: reachable(request, levels)
    )
    lattice = lattice_of(request, levels)
    numbers = parameters(request, lattice)
    within = reachable(request, levels)
    best = error
    if not within:
        most = 1
        while reachable(request, most + 1):
            most += 1
        best = predicted_error(request, most) / SHARE
    return Plan(
        "positional",
        levels,
        error,
        cells=lattice.levels**lattice.m,
        parameters=numbers,
        bytes=24.0 * numbers,
        seconds=SECONDS_A_BOX * (levels * parts_of(request, levels)) ** lattice.m,
        reachable=within and error <= allowed,
        best=best,
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
        parts = float(parts_of(request, levels)).hex()
        entries = tuple({**common, "arith": arith, "parts": parts} for arith in ("real", lattice.dtype.name))
    return Built(
        made.transformer,
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


def parts_of(request: Request, levels: int) -> int:
    """A power of two: cells are cut so that about BOXES are looked at."""
    t = request.target
    wanted = BOXES ** (1 / (t.n * t.d)) / levels
    return int(np.exp2(np.clip(np.floor(np.log2(max(wanted, 1.0))), 0, np.log2(LARGEST_PARTS))))


def parameters(request: Request, lattice: Lattice) -> int:
    """Numbers in the model, about: those of the hats."""
    m, t = lattice.m, request.target
    gated = t.kind == "ordered" and t.per == "token"
    outputs = t.components * (t.n if gated else 1)
    inputs = m + (t.n if gated else 0)
    return lattice.count * (2 * m * (inputs + 1) + (m - 1) * (4 * m * m + 2 * m) + 2 * m + 1 + outputs)


def reachable(request: Request, levels: int) -> bool:
    lattice = lattice_of(request, levels)
    return lattice.count <= MOST_VERTICES and parameters(request, lattice) <= MOST_NUMBERS


def predicted_error(request: Request, levels: int) -> float:
    """The checker's own bound in real arithmetic; on samples where the target cannot be enclosed."""
    lattice, target = lattice_of(request, levels), request.target
    if lattice.count > 4 * MOST_VERTICES:
        return np.inf
    if target.program is None:
        return _sampled_error(request, lattice)
    values = target.evaluate(lattice.points()).reshape(*(levels + 1,) * lattice.m, -1)
    program = read_program(target.program.of_outputs(target.program.outputs).to_json(), "target")
    parts = parts_of(request, levels)
    return sup_error(program, values, lattice.origin, lattice.width, (lattice.low, lattice.high), parts)


def _sampled_error(request: Request, lattice: Lattice) -> float:
    rng = np.random.default_rng([request.seed, 14])
    X = rng.uniform(lattice.low, lattice.high, (SAMPLES, lattice.n, lattice.d))
    values = request.target.evaluate(lattice.points()).reshape(lattice.count, -1)
    found = interpolate(values, lattice, X)
    return MORE * float(np.abs(found - request.target.evaluate(X).reshape(found.shape)).max())
