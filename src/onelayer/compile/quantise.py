"""`quantise` from a tolerance: how fine the cells, what that costs, and the model with what to prove of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.functions import as_entry
from onelayer.compile.construction import (
    Built,
    Construction,
    Request,
    at_most_float,
    construction,
    enough_levels,
    extrapolate_levels,
)
from onelayer.functions import quantise
from onelayer.functions.grid import Grid
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant
from onelayer.problems.targets.box import Box
from onelayer.problems.targets.enclosure import as_checked

Array = NDArray[Any]

#: Stored values are rounded to multiples of a power of two: about this share of the tolerance.
VALUE_SHARE = 1 / 32
#: Tokens of all sequences of cells that one model may hold: what fits in memory while it is made and proved.
MOST_TOKENS = 6_000_000
#: Sequences of cells that a plan looks at; a sample stands for more.
LOOKED_AT = 1 << 16
#: If only values of a target are known: at least this many of them, in cells and at their corners.
SEEN = 1 << 13
#: Measured on two cores: what a token takes while a model is built and proved.
BYTES_A_TOKEN, SECONDS_A_TOKEN = 600, 5e-5


def plan(request: Request, distinct: bool = False) -> Plan:
    """About the fewest levels whose predicted error stays within the tolerance."""
    request.needs_a_cube("quantise")
    step = value_step(request.tolerance)
    levels, error = enough_levels(
        lambda levels: predicted_error(request, levels) + step / 2,
        request.tolerance,
        lambda levels: grid_of(request, levels).count * request.target.n <= MOST_TOKENS,
        rate=1,
    )
    wanted = extrapolate_levels(levels, error, request.tolerance, rate=1)
    # As measured: plateaus for few answers, tables or retrieval for many; and a trapezoid for each cell of a token.
    grid, answers, q = grid_of(request, wanted), answers_of(request, wanted), request.target.components
    return Plan(
        "published" if distinct else "quantise",
        wanted,
        error,
        cells=grid.count,
        parameters=min((7 + q) * answers, 12_000 + (1 + 2 * q) * answers // 2) + grid.cells * 4 * (grid.d + 1) ** 2,
        bytes=BYTES_A_TOKEN * at_most_float(grid.count * grid.n),
        seconds=SECONDS_A_TOKEN * at_most_float(grid.count * grid.n),
        reachable=wanted == levels and bool(np.isfinite(error)),
        provable=request.target.program is not None or request.target.lipschitz is not None,
    )


def build(request: Request, levels: int, distinct: bool = False) -> Built:
    """The model, its claims, and a budget without the error of quantisation, which is the checker's to find."""
    target, step, grid = request.target, value_step(request.tolerance), grid_of(request, levels)
    made = quantise.construct(
        target.evaluate, grid, step, target.per, distinct=distinct, seed=request.seed, on_step=request.say
    )
    tokens = grid.tokens[made.cells].astype(grid.dtype)
    exact = target.evaluate(tokens.astype(np.float64))
    rounding = float(np.abs(exact - made.answers).max())
    tensors = {
        "tokens": np.ascontiguousarray(tokens),
        "answers": np.ascontiguousarray(made.answers.reshape(-1, target.components)),
    }
    left_out = grid.left_out_of(len(made.cells), distinct)
    return Built(
        made.transformer,
        made.gadgets,
        made.form,
        "quantisation",
        "largest |target - its value at the centre of a cell|, enclosed on every cell",
        _budget(rounding, left_out, distinct),
        made.constants,
        Box(grid.n, grid.d, grid.low, grid.high, grid.dtype, grid.centres, grid.radius, distinct),
        left_out,
        tensors,
        _entries(request, grid, rounding, left_out),
    )


def _budget(rounding: float, left_out: float, distinct: bool) -> tuple[Constant, ...]:
    left = "the ramps and cells with two tokens" if distinct else "the ramps"
    return (
        Constant("ramp", 0.0, f"outside {left}, a share {left_out:.3g} of the box; there see lp_error"),
        Constant("collision", 0.0, "all sequences of cells have contexts of their own"),
        Constant("readout", rounding, "largest |stored value - target at the centre|, from rounding to value_step"),
    )


def _entries(request: Request, grid: Grid, rounding: float, left_out: float) -> tuple[dict[str, Any], ...]:
    target = as_entry(request.target, rounding)
    if target is None:
        return ()
    box = {"radius": grid.radius.hex(), "low": grid.low.hex(), "high": grid.high.hex(), "target": target}
    common = {"scope": request.target.per, **box}
    dtype = grid.dtype.name
    return (
        {"type": "sup_error", "arith": "real", **common, "measure": left_out.hex()},
        {"type": "sup_error", "arith": dtype, **common, "measure": left_out.hex()},
        {"type": "lp_error", "arith": dtype, **common, "p": (2.0).hex()},
    )


def value_step(tolerance: float) -> float:
    return float(np.exp2(np.floor(np.log2(tolerance * VALUE_SHARE))))


def grid_of(request: Request, levels: int) -> Grid:
    t = request.target
    return Grid(t.n, t.d, request.low, request.high, levels, request.dtype, t.kind == "ordered")


def answers_of(request: Request, levels: int) -> int:
    return grid_of(request, levels).count * (request.target.n if request.target.per == "token" else 1)


def predicted_error(request: Request, levels: int) -> float:
    """How far the target gets from its value at the centre of a cell: enclosed, on all cells or many of them.

    Without an expression: the Lipschitz constant times half a cell, or what is seen on samples if there is none.
    """
    grid, target = grid_of(request, levels), request.target
    cells = some_sequences(grid, LOOKED_AT, request.seed)
    centres = grid.tokens[cells]
    if target.program is not None:
        x = centres.reshape(len(cells), -1)
        low, high = as_checked(target.program).bounds(x - grid.radius, x + grid.radius)
        at_centre = target.evaluate(centres).reshape(low.shape)
        return float(np.maximum(high - at_centre, at_centre - low).max())
    if target.lipschitz is not None:
        return target.lipschitz * grid.radius
    rng = np.random.default_rng([request.seed, 13])
    centres = np.repeat(centres, max(1, SEEN // len(centres)), axis=0)
    inside = centres + grid.radius * rng.uniform(-1, 1, centres.shape)
    corners = centres + grid.radius * rng.choice([-1.0, 1.0], centres.shape)
    known = target.evaluate(centres)
    return 1.2 * max(float(np.abs(target.evaluate(X) - known).max()) for X in (inside, corners))


def some_sequences(grid: Grid, most: int, seed: int) -> Array:
    """All sequences of cells, or random ones; half of these have neighbouring cells, where targets are steep."""
    if grid.count <= most:
        return grid.sequences()
    rng = np.random.default_rng([seed, 12])
    cells = rng.integers(0, grid.levels, (most, grid.n, grid.d))
    near = cells[: most // 2]
    near[:, 1:] = np.clip(near[:, :1] + rng.integers(-2, 3, near[:, 1:].shape), 0, grid.levels - 1)
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(cells, 2, 0)), (grid.levels,) * grid.d))


@construction
class Quantise(Construction):
    name, order, automatic = "quantise", 1, True
    plan, build = staticmethod(plan), staticmethod(build)


@construction
class Published(Construction):
    """Sequences with two tokens in one cell are left out, as the paper does."""

    name, order = "published", 2

    @classmethod
    def plan(cls, request: Request) -> Plan:
        return plan(request, distinct=True)

    @classmethod
    def build(cls, request: Request, levels: int) -> Built:
        return build(request, levels, distinct=True)
