"""Claims about functions. sup_error, lp_error: on every input whose components lie in cells.

The stored sequences are centres, and a cell reaches `radius` to either side of a component. The network, known on
the ball around a stored sequence, is compared with an enclosure of the target there; without positions it commutes
with permutations, so that a stored sequence stands for all its orders. Cells are counted and measured exactly.
sup_error_everywhere: on the whole box, for networks that interpolate (hats.py), and for others (branch.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Arithmetic, Array, Ball, U, gamma, relu
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.files import Malformed, fields, real
from onelayer_checker.core.graph import Network, Stream
from onelayer_checker.core.layers import Stack, run_stack
from onelayer_checker.core.samples import Data
from onelayer_checker.functions import branch, hats
from onelayer_checker.functions.targets import Program, bounds, enclose, read_program

#: Without positions every order of a stored sequence is looked at, of which there are n!, unless the lines of the
#: target show its symmetry.
MOST_TOKENS = 6
#: Boxes that the domain is cut into where the range of a target is wanted.
RANGE_BOXES = 4096
#: Boxes, and halvings for each variable, by which a target is seen to be defined on the whole box.
DEFINED_BOXES, DEFINED_ROUNDS = 1 << 14, 40
#: Errors whose p-th powers would be below 2^-FAINT are taken to be larger: no power may be lost to underflow.
FAINT = 960


@dataclass(frozen=True)
class Assumed:
    """A target known only by its stored values: an assumption that no checker can verify."""

    lipschitz: float  # for the largest component, on both sides
    error: float  # of the stored values at the centres
    symmetric: bool  # permuting tokens permutes its answers, or leaves them


Target = Program | Assumed


def read_target(entry: Any, where: str) -> Target:
    if isinstance(entry, dict) and "lines" in entry:
        return read_program(entry, where)
    fields(entry, {"lipschitz", "error", "symmetric"}, where)
    lipschitz, error = (real(entry[name], f"{where}.{name}") for name in ("lipschitz", "error"))
    if min(lipschitz, error) < 0 or type(entry["symmetric"]) is not bool:
        raise Malformed("claim", f"{where} has a negative number, or symmetric is not true or false")
    return Assumed(lipschitz, error, entry["symmetric"])


@dataclass(frozen=True)
class Cells:
    """Which cells of [low, high]^m are stored; cells are disjoint and lie inside the box."""

    orders: list[tuple[int, ...]]  # the orders in which a stored sequence is compared
    weight: Array  # [N] how many sequences of cells a stored sequence stands for in each of them
    count: int  # sequences of cells that are covered
    side: Fraction  # of a cell, relative to the box
    nearest: float  # no point of the box is further than this from a stored sequence, in the largest component


def find_cells(network: Network, claim: Claim, tokens: Array) -> Cells:
    """Check that the stored sequences are centres of cells, each stored once; how many there are in all orders."""
    (N, n, d), number = tokens.shape, claim.numbers
    # Orders are counted in whole numbers of up to n log n bits; a share of the box has 1,100 bits per variable.
    spend("counting cells exactly", N * n * (200.0 + n) + 300.0 * (n * d) ** 2)
    radius, low, high = (Fraction(number[name]) for name in ("radius", "low", "high"))
    centres = np.unique(tokens).astype(np.float64)
    gaps = np.diff(centres)
    inside = Fraction(float(centres[0])) - radius >= low and Fraction(float(centres[-1])) + radius <= high
    if not inside or (gaps.size and not gaps.min() * (1 - 2.0**-50) >= 2 * number["radius"]) or not low < high:
        raise Malformed("claim", "the cells around the stored tokens overlap, or leave the box")
    cells = np.searchsorted(centres, tokens).reshape(N * n, -1)
    ids = np.unique(cells, axis=0, return_inverse=True)[1].reshape(N, n)
    ordered = network.causal or "embedding.positions" in network.tensors
    rows = ids if ordered else np.sort(ids, axis=1)
    if len(np.unique(rows, axis=0)) != N:
        raise Malformed("data", "a sequence of cells is stored twice")
    every_order = not (ordered or claim.target.symmetric)
    if every_order and isinstance(claim.target, Assumed):
        raise Malformed("claim", "without positions the target must be symmetric")
    if every_order and n > MOST_TOKENS:
        raise Malformed("claim", f"{n} tokens have too many orders; at most {MOST_TOKENS} can be judged")
    product, run = np.ones(N, object), np.ones(N, np.int64)  # whole numbers of any size
    for k in range(1, n if not ordered else 1):  # the product of the factorials of the multiplicities
        run = np.where(rows[:, k] == rows[:, k - 1], run + 1, 1)
        product = product * run
    different = (1 if ordered else factorial(n)) // product  # orders of a stored sequence that differ
    orders = list(permutations(range(n))) if every_order else [tuple(range(n))]
    reach, count = number["high"] - number["low"], int(different.sum())
    if count == len(centres) ** (n * d):  # every component may move to its own centre
        reach = max(centres[0] - number["low"], number["high"] - centres[-1], gaps.max(initial=0.0) / 2)
    share = np.where(different < 2**1000, different, np.inf) / len(orders)  # n! is no float beyond n = 170
    weight = share.astype(np.float64) * UP
    return Cells(orders, weight, count, 2 * radius / (high - low), float(reach * UP))


@dataclass(frozen=True)
class Errors:
    """Of one order of a block of stored sequences: bounds that hold on the whole cell, [B, n]."""

    rows: slice
    upper: Array
    lower: Array


def errors(target: Target, cells: Cells, out: Ball, data: Data, radius: float) -> Iterator[Errors]:
    """Bounds on |network - target| for every stored sequence in every order; ``out`` is [N, n, q]."""
    tokens, (N, n, q) = data.tokens.astype(np.float64), out.m.shape
    step = max(1, (1 << 16) // n)
    for order in cells.orders:
        for start in range(0, N, step):
            rows, at = slice(start, start + step), list(order)
            m, r = out.m[rows][:, at], out.r[rows][:, at]
            if isinstance(target, Program):
                x = tokens[rows][:, at].reshape(len(m), -1)
                low, high = np.nextafter(x - radius, -np.inf), np.nextafter(x + radius, np.inf)
                low, high = (f.reshape(len(m), -1, q) for f in bounds(target, low, high))
            else:
                known = data.answers[data.which].reshape(N, -1, q)[rows]
                slack = (target.error + target.lipschitz * radius * UP) * UP
                wide = slack + np.abs(known) * 2.0**-50
                low, high = known - wide, known + wide
            upper = (np.maximum(high - m, m - low) * UP + r) * UP + TINY
            lower = (np.maximum(low - m, m - high) / UP - r) / UP - TINY
            yield Errors(rows, upper.max(axis=2), lower.max(axis=2))


def overflows(network: Network, tokens: Array, low: float, high: float, A: Arithmetic) -> bool:
    """Whether a value may overflow on the box: one ball around all of it, which is wide but finite if none does.

    Between cells a search decides nothing, so that all layers are evaluated densely.
    """
    middle, n = low / 2 + high / 2, tokens.shape[1]
    dense = sum(Stack(stack.layers).effort(A) for stack in (network.feedforward, network.readout))
    spend("looking for overflow", n * (dense + 100.0 * n))
    radius = max(high - middle, middle - low) * UP + TINY
    h = replace(network, feedforward=Stack(())).embed(np.full_like(tokens[:1], middle, np.float64), radius, A)
    if network.feedforward.layers:
        h = run_stack(network.feedforward.layers, h, A)
    t = relu(
        network.bottleneck.apply(network.attend(Stream(network, h.reshape(1, n, -1), A), np.array([n]), False), A)
    )
    return not bool(np.isfinite(run_stack(network.readout.layers, t, A).r).all())


def range_of_output(network: Network, A: Arithmetic) -> tuple[Array, Array]:
    """Bounds on every output, whatever the input: from the last two layers, which read numbers >= 0."""
    layers = network.readout.layers[-2:]
    q = len(layers[-1].bias)
    if len(layers) < 2 or any(layer.weight.ndim != 2 for layer in layers):
        return np.full(q, -np.inf), np.full(q, np.inf)
    (W, b), (V, c) = ((layer.weight, layer.bias) for layer in layers)
    # A unit without a positive weight is at most its bias, in any order of summation; the others may be anything.
    top = np.where((W > 0).any(axis=0), np.inf, np.maximum(b, 0.0))
    with np.errstate(invalid="ignore"):  # zero times infinity is zero here
        reach = np.where(V == 0, 0.0, V * top[:, None])
    size = np.abs(reach).sum(axis=0) + np.abs(c)
    terms = 2 * len(V) + 8  # rounded by the arithmetic, and by the sums below and their size here
    slack = size * (gamma(terms, A.u) + 2 * gamma(terms, U) + 2.0**-40) + 8 * len(V) * (A.tiny + TINY)
    return c + np.minimum(reach, 0.0).sum(axis=0) - slack, c + np.maximum(reach, 0.0).sum(axis=0) + slack


def range_of_target(target: Target, cells: Cells, data: Data, low: float, high: float) -> tuple[Array, Array]:
    """Bounds [q] on the target on the whole box."""
    q = data.answers.shape[1]
    if isinstance(target, Assumed):
        slack = (target.error + target.lipschitz * cells.nearest) * UP
        return data.answers.min(axis=0) - slack, data.answers.max(axis=0) + slack
    m = target.n * target.d
    parts = int(RANGE_BOXES ** (1 / m) + 1e-9)
    edges = np.linspace(low, high, parts + 1)
    at = np.zeros((1, m), np.intp)
    if parts > 1:  # not with many variables: NumPy knows no more than 64 axes
        at = np.stack(np.unravel_index(np.arange(parts**m), (parts,) * m), axis=1)
    below, above = bounds(target, edges[at], edges[at + 1])
    return below.reshape(-1, q).min(axis=0), above.reshape(-1, q).max(axis=0)


def open_box(target: Program, low: float, high: float) -> str:
    """A part of the box on which the target is not seen to be defined; nothing if it is, on all of it.

    Its bounds are finite only where it is defined; a box where they are not is halved across its longest side, and
    the halves share the number at which they meet.
    """
    m = target.n * target.d
    below, above, looked = np.full((1, m), low), np.full((1, m), high), 0
    for _ in range(DEFINED_ROUNDS * m):
        looked += len(below)
        ends = enclose(target, below, above, False)
        left = ~(np.isfinite(ends.low) & np.isfinite(ends.high)).all(axis=1)
        below, above = below[left], above[left]
        if not left.any():
            return ""
        if looked + 2 * len(below) > DEFINED_BOXES:
            break
        below, above = branch.halves(below, above, above - below)
    return " x ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(below[0], above[0], strict=True))


def judge_everywhere(claim: Claim, network: Network) -> Verdict:
    """The same for sup_error_everywhere, where no input of the box is left out."""
    number, target = claim.numbers, claim.target
    if not number["low"] < number["high"]:
        raise Malformed("claim", "the box is empty")
    if not isinstance(target, Program):
        return Verdict("undecided", "the target is no program", np.inf)
    found = hats.recognise(network.readout.layers)
    if found is None:
        return Verdict(*branch.judge(claim, network))
    bound = hats.judge(network, target, found, number["low"], number["high"], number["bound"], claim.A)
    if isinstance(bound, str):
        return Verdict("undecided", bound, np.inf)
    if not bound <= number["bound"]:
        return Verdict("undecided", f"the error may be {bound:.6g}", bound)
    return Verdict("proved", f"largest error {bound:.6g} on the whole box", bound)


def judge(claim: Claim, network: Network, data: Data, out: Ball) -> Verdict:
    """Of a sup_error or lp_error claim; ``out`` are the answers [N, n, q]."""
    number, target = claim.numbers, claim.target
    cells = find_cells(network, claim, data.tokens)
    if isinstance(target, Program) and (where := open_box(target, number["low"], number["high"])):
        return Verdict("undecided", f"the target is not seen to be defined on {where}", np.inf)
    m = data.tokens[0].size
    covered = cells.count * (cells.side**m)  # a share of the box, exact
    assumed = ""
    if isinstance(target, Assumed):
        symmetric = " and commutes with permutations" if target.symmetric else ""
        assumed = (
            f", if the target is {target.lipschitz:.6g}-Lipschitz{symmetric}, its values within {target.error:.3g}"
        )
    worst, powers, left = 0.0, Fraction(0), 1 - covered
    for found in errors(target, cells, out, data, number["radius"]):
        upper, lower = found.upper.max(axis=1), found.lower.max(axis=1)
        if claim.type == "sup_error" and not (upper <= number["bound"]).all():
            at = int(np.argmax(~(upper <= number["bound"])))
            where = f"around sequence {found.rows.start + at}"
            if lower[at] > number["bound"]:
                return Verdict("refuted", f"{where} the error is at least {lower[at]:.6g}", np.inf)
            return Verdict("undecided", f"{where} the error may be {upper[at]:.6g}", float(upper[at]))
        worst = max(worst, float(upper.max()))
        if claim.type == "lp_error":
            raised = power(upper, int(number["p"]))
            part = float((raised * cells.weight[found.rows]).sum()) * (1 + 2 * len(upper) * U) * UP
            if not part < np.inf:
                return Verdict("undecided", "the error has no bound, or its power overflows", np.inf)
            powers += Fraction(part)
    if claim.type == "sup_error":
        if not left <= Fraction(number["measure"]):
            return Verdict("undecided", f"a share {float(left):.6g} of the box lies in no stored cell", np.inf)
        outside = f" but for a share {float(left):.3g} of the box" if left > 0 else ""
        return Verdict("proved", f"largest error {worst:.6g}{outside}{assumed}", worst)
    return _mean(claim, network, data, cells, powers * cells.side**m, left, assumed)


def _mean(
    claim: Claim, network: Network, data: Data, cells: Cells, inside: Fraction, left: Fraction, assumed: str
) -> Verdict:
    """The same for lp_error, given what the cells contribute to the mean and which share of the box they leave."""
    number, p = claim.numbers, int(claim.numbers["p"])
    f_low, f_high = range_of_target(claim.target, cells, data, number["low"], number["high"])
    y_low, y_high = range_of_output(network, claim.A)
    if claim.A.u > 0 and overflows(network, data.tokens, number["low"], number["high"], claim.A):
        return Verdict("undecided", "between the cells a value may overflow", np.inf)
    most = np.maximum(np.maximum(f_high - y_low, y_high - f_low).max() * UP, 0.0)
    if not (largest := float(power(most, p)) * UP) < np.inf:
        return Verdict("undecided", "between the cells the error has no bound, or its power overflows", np.inf)
    total = inside + Fraction(largest) * left  # exact, and so is the comparison
    mean = float(total) if total < 2**1000 else np.inf
    if total <= Fraction(number["bound"]) ** p:
        ramps = f"ramps are a share {float(left):.3g} with an error of at most {most:.6g}"
        return Verdict("proved", f"mean of the {p}-th powers {mean:.6g}; {ramps}{assumed}", mean)
    return Verdict("undecided", f"the mean of the {p}-th powers of the error may be {mean:.6g}", np.inf)


def power(x: Array, p: int) -> Array:
    """x^p for whole p >= 1, up to p - 1 roundings, and at least about 2^-FAINT."""
    x = np.maximum(x, 2.0 ** -(FAINT // p))
    result = x
    for _ in range(p - 1):
        result = result * x
    return result
