"""Judging that of every sample the output of its class is the largest, by a margin.

Few samples differ before the last layer, which reads a number of the class: it is evaluated for those only.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import isfinite

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball, relu
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.core.graph import BLOCK
from onelayer_checker.core.judge import Judge, Samples
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.core.processes import side_by_side


def _argmax(judge: Judge, claim: Claim) -> Verdict:
    samples, (body, last) = judge.samples(claim.A, claim.scope), judge.network.readout.cut()
    count = len(samples.i)
    spend(f"{count:,} class numbers", count * body.effort(claim.A))
    run = partial(_different, judge, claim, samples, body)
    rows = _first(np.concatenate(side_by_side(judge.jobs, count, count, run, lambda _: None)))
    spend(f"{len(rows):,} different rows of logits", len(rows) * Stack((last,)).effort(claim.A))
    margin, least, undecided = Fraction(claim.numbers["margin"]), Fraction(np.finfo(np.float64).max), ""
    for at, low, high in _leads(last, rows, claim.A):
        where = f"sequence {samples.i[at]}, token {samples.k[at]}"
        if high is not None and high < margin:
            return Verdict("refuted", f"{where}: the output of its class does not lead so far", 0.0)
        if low is None or low < margin:
            undecided = undecided or f"{where}: whether the output of its class leads so far is open"
        else:
            least = min(least, low)
    judge.compare_ways(samples, claim.A, body)
    value = _at_most(least)
    if undecided:
        return Verdict("undecided", undecided, 0.0)
    return Verdict("proved", f"{count} answers, each leads by at least {value:.6g}", value)


def _different(judge: Judge, claim: Claim, samples: Samples, body: Stack, first: int, stop: int) -> Array:
    """[different, 2k + 2] of some samples: what the last layer reads, midpoints and radii, the class, a sample."""
    data, found, step = judge.data, [], max(1, 4 * BLOCK // body.widest)
    for start in range(first, stop, step):
        at = np.arange(start, min(start + step, stop))
        h = relu(body.apply(samples.t[at], claim.A))
        which = data.which[at if claim.scope == "token" else samples.i[at]]
        found.append(_first(np.column_stack([h.m, h.r, data.answers[which], at])))
    return np.concatenate(found)


def _first(rows: Array) -> Array:
    """The first of rows that are equal but for their last entry."""
    return np.asarray(rows[np.unique(rows[:, :-1], axis=0, return_index=True)[1]])


def _leads(last: Layer, rows: Array, A: Arithmetic) -> Iterator[tuple[int, Fraction | None, Fraction | None]]:
    """For each row its sample, and by how much the output of its class exceeds all others: at least and at most."""
    k, outputs = last.inputs, last.bias.size
    step = max(1, BLOCK // outputs)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        out = last.apply(Ball(part[:, :k], part[:, k : 2 * k]), A)
        own = np.arange(len(part)), part[:, -2].astype(np.intp)
        # The nearest number to a sum is at most a neighbour away from it.
        low = np.where(out.r == 0, out.m, np.nextafter(out.m - out.r, -np.inf))
        high = np.where(out.r == 0, out.m, np.nextafter(out.m + out.r, np.inf))
        low_own, high_own = low[own], high[own]
        low[own] = high[own] = -np.inf
        ends = (low_own, high.max(axis=1), high_own, low.max(axis=1))
        for at, *edges in zip(part[:, -1].tolist(), *(a.tolist() for a in ends), strict=True):
            yield int(at), _difference(*edges[:2]), _difference(*edges[2:])


def _difference(a: float, b: float) -> Fraction | None:
    """Exactly; None if one of them is not known."""
    return Fraction(a) - Fraction(b) if isfinite(a) and isfinite(b) else None


def _at_most(value: Fraction) -> float:
    """The largest float64 that is not above it, or the one before."""
    near = float(value)
    return near if Fraction(near) <= value else float(np.nextafter(near, -np.inf))


KINDS |= {"argmax": Kind(frozenset({"margin"}), _argmax)}
