"""How far somebody else's network is from a formula on a box: `bound_error`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.written import program_of_model
from onelayer.errors import OptionError
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model, load
from onelayer.problems.targets import resolve
from onelayer.problems.targets.box import Box
from onelayer.problems.targets.networks import kind_of, name_of, network_program
from onelayer.problems.targets.program import Builder, Node, Program
from onelayer_checker import largest_output

Array = NDArray[Any]
#: Components of all tokens: beyond, boxes are too many to be halved.
MOST_VARIABLES = 16
#: Inputs at which the error is looked at before the climb.
SAMPLES = 4_000


@dataclass(frozen=True)
class ErrorBound:
    """Of the largest error on a box, in real arithmetic: at most ``upper`` (proved by the checker, which covers the
    box), and at least ``lower``, which is attained at ``where`` (enclosed by the checker)."""

    network: str
    formula: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    upper: float
    lower: float
    where: Array  # [n, d]
    boxes: int
    seconds: float  # of CPU time

    def __str__(self) -> str:
        given = f"{self.boxes:,} boxes, {self.seconds:.1f} CPU s"
        return (
            f"{self.network} is within {self.upper:.6g} of {self.formula} on the whole box (proved in real "
            f"arithmetic, {given}), and off by at least {self.lower:.6g} at {self.where.tolist()}"
        )

    def to_json(self) -> dict[str, Any]:
        kept = ("network", "formula", "low", "high", "upper", "lower", "boxes", "seconds")
        found = {name: getattr(self, name) for name in kept}
        upper, where = self.upper if np.isfinite(self.upper) else None, self.where.tolist()
        return {**found, "upper": upper, "proved": upper is not None, "arithmetic": "real", "where": where}


def bound_error(
    network: Any,
    formula: Any,
    *,
    n: int,
    d: int = 1,
    low: Any = 0.0,
    high: Any = 1.0,
    seconds: float = 10.0,
    close: float = 0.05,
    seed: int = 0,
) -> ErrorBound:
    """Bound |network - formula| over all sequences of n tokens in [low, high]^d, from above and from below.

    network   a PyTorch module, an ONNX file or model, an MLPRegressor, a `Model` or its folder; its weights, in
              real arithmetic: what rounding adds to a network that runs in float32 is not in the bound
    formula   a formula, a name, a program, or another network
    low, high ends of the box: a number, or one for each component of a token
    seconds   of CPU time: more of it brings the two bounds closer
    close     the relative distance of the two bounds that is close enough
    """
    if not all(0 < x < np.inf for x in (seconds, close)):
        needs, found = "seconds and close above 0", f"seconds={seconds!r}, close={close!r}"
        raise OptionError("bound_error", needs, found, "Give numbers above 0.")
    if n * d > MOST_VARIABLES:
        needs, found = f"at most {MOST_VARIABLES} components of all tokens", f"n={n}, d={d}"
        raise OptionError("bound_error", needs, found, "Take shorter sequences.")
    begun = time.process_time()
    ends = tuple((float(a), float(b)) for a, b in zip(_ends(low, d), _ends(high, d), strict=True))
    wanted, title = _write_side(formula, n, d, None, ends)
    given, name = _write_side(network, n, d, wanted, ends)
    if (given.per, given.components) != (wanted.per, wanted.components):
        found = f"{given.components} per {given.per} of {name}, {wanted.components} per {wanted.per} of {title}"
        raise OptionError("bound_error", "outputs of the same kind", found, "Change one of them.")
    apart = difference(given, wanted)
    box = Box.of_sides(n, ends, np.dtype(np.float64))

    def error(X: Array) -> Array:
        return np.asarray(np.abs(apart.evaluate(X)).reshape(len(X), -1).max(axis=1))

    _, worst = largest_error(error, box, SAMPLES, seed)
    sides = (np.tile([end[i] for end in ends], n) for i in (0, 1))
    left = max(float(seconds) - (time.process_time() - begun), 0.0)
    bounds = largest_output(apart.to_json(), *sides, seconds=left, close=float(close), tried=worst.reshape(1, -1))
    spent = time.process_time() - begun
    corners = tuple(zip(*ends, strict=True))
    where = bounds.where.reshape(n, d)
    return ErrorBound(name, title, corners[0], corners[1], bounds.upper, bounds.lower, where, bounds.boxes, spent)


def _ends(given: Any, d: int) -> Array:
    ends = np.asarray(given, np.float64)
    if ends.shape not in ((), (d,)):
        raise OptionError(
            "bound_error", f"a number, or one for each of {d} components", f"{given!r}", "Give it so."
        )
    return np.broadcast_to(ends, d)


def _write_side(side: Any, n: int, d: int, like: Program | None, ends: Any) -> tuple[Program, str]:
    """The program of a network or of a formula, and its name."""
    if isinstance(side, str | os.PathLike) and Path(side).is_dir():
        side = load(side)
    if isinstance(side, Model):
        return program_of_model(side, n, d), f"a model of {side.n_parameters:,} parameters"
    if kind_of(side) is not None:
        per_token = like is None or like.per == "token"
        return network_program(side, n, d, per_token), name_of(side)
    below, above = np.array(ends).T
    found = resolve(side, n=n, d=d, low=below, high=above)
    if found.program is None and found.pooled is None:
        needs, what = "a formula, a program or a network", f"{found.name!r} is a Python function"
        raise OptionError("bound_error", needs, what, "Write it as a formula.")
    program = found.program if found.pooled is None or found.program is not None else found.pooled.program()
    assert program is not None
    return program, found.name


def difference(first: Program, second: Program) -> Program:
    """The outputs of one less those of the other."""
    builder = Builder(first.n, first.d)
    sides = []
    for program in (first, second):
        nodes: list[Node] = []
        for op, *of in program.lines:
            if op == "x":
                nodes.append(builder.x(*of))
            elif op == "const":
                nodes.append(builder.const(of[0]))
            else:
                nodes.append(builder.op(op, *(nodes[i] for i in of)))
        sides.append([nodes[k] for k in program.outputs])
    return builder.program([a - b for a, b in zip(*sides, strict=True)], first.per)
