"""Judging whether different contexts have coordinates that are apart."""

from __future__ import annotations

import numpy as np

from onelayer_checker.core.balls import FLOAT32, FLOAT64, UP, Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.core.classes import same_class
from onelayer_checker.core.judge import Judge, Samples


def _separated(judge: Judge, claim: Claim) -> Verdict:
    """By coordinates that were computed for floating point, if they are near enough; else by exact ones.

    Theorem: proofs/Layers.v real_stack_is_allowed.
    """
    for A in (FLOAT64, FLOAT32):
        if claim.arith == "real" and judge.has(A, claim.scope):
            verdict = _apart(judge, claim, judge.samples(A, claim.scope))
            if verdict.outcome == "proved":
                return verdict
    return _apart(judge, claim, judge.samples(claim.A, claim.scope))


def _apart(judge: Judge, claim: Claim, samples: Samples) -> Verdict:
    """Near whole numbers, or along the first coordinate. Theorem: proofs/Separated.v size_covers."""
    i, k, t = samples.i, samples.k, samples.t
    size = (np.abs(t.m) + t.r).max(axis=1) * UP
    if not (size <= claim.numbers["r"]).all():
        at = int(np.argmax(~(size <= claim.numbers["r"])))
        why = f"sequence {i[at]}, token {k[at]} may have a coordinate of size {size[at]:.6g}"
        return Verdict("undecided", why, 0.0, float(size.max()))
    verdict = _on_lattice(judge, claim, samples, float(size.max()))
    return _along(judge, claim, samples, float(size.max())) if verdict is None else verdict


def _on_lattice(judge: Judge, claim: Claim, samples: Samples, size: float) -> Verdict | None:
    """Where every coordinate is near a whole number: those that are near others are at least 1 - 2 off apart, and
    samples that are near the same ones must be of one class. None if that does not prove the claim.

    Theorem: proofs/Separated.v near_a_whole_number, lattice_apart, neighbours_are_enough.
    """
    t, nearest = samples.t, np.rint(samples.t.m)
    off = float((np.abs(t.m - nearest) + t.r).max()) * UP
    certain = (1 - 2 * off) / UP
    if not claim.numbers["delta"] <= certain or size >= 2.0**52:
        return None
    keys = _packed(nearest)
    order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys)
    same = np.flatnonzero(np.all([key[order[1:]] == key[order[:-1]] for key in keys], axis=0))
    i, k = samples.i, samples.k
    for few in filter(len, np.split(same, [64])):  # some first: where contexts are closer than 1, these show it
        spend("comparing equal samples", 2e4 * len(few))
        a, b = order[few], order[few + 1]  # to be in one class is transitive: neighbours are enough
        if not same_class(judge.data, judge.network, claim.scope, i[a], k[a], i[b], k[b]).all():
            return None
    return Verdict("proved", f"{len(i)} samples, classes at least {certain:.6g} apart", certain, size)


def _packed(whole: Array) -> list[Array]:
    """Columns of whole numbers, several in one where they fit: equal where the rows are, and nowhere else.

    Theorem: proofs/Separated.v packed_tells_apart.
    """
    steps = (whole - whole.min(axis=0)).astype(np.int64)
    found, room = [steps[:, 0]], int(steps[:, 0].max()) + 1
    for column in steps.T[1:]:
        span = int(column.max()) + 1
        if room * span < 1 << 62:
            found[-1], room = found[-1] * span + column, room * span
        else:
            found, room = [*found, column], span
    return found


def _along(judge: Judge, claim: Claim, samples: Samples, size: float) -> Verdict:
    """Along the first coordinate, every sample is compared with those that come near it there.

    Theorem: proofs/Separated.v along_sound.
    """
    i, k, low, high, delta = samples.i, samples.k, samples.t.low, samples.t.high, claim.numbers["delta"]
    order = np.argsort(low[:, 0], kind="stable")
    reach = (high[order, 0] + delta) * UP  # coordinates are not negative: what begins beyond is delta apart
    pairs = int((np.searchsorted(low[order, 0], reach, side="right") - np.arange(1, len(order) + 1)).sum())
    spend(f"{pairs:,} pairs of samples, near in their first coordinate,", 100.0 * pairs, 40.0 * len(order))
    i, k, ends = i[order], k[order], [(a[order], z[order]) for a, z in zip(low.T, high.T, strict=True)]

    def apart(c: int, a: Array, b: Array) -> Array:
        low, high = ends[c]
        return np.asarray(np.nextafter(np.maximum(low[b] - high[a], low[a] - high[b]), -np.inf))

    smallest = np.inf
    left, step = np.arange(len(i) - 1), 1  # samples that still have a near neighbour further along the order
    while left.size:
        gap = apart(0, left, left + step)
        smallest = min(smallest, float(gap.min(where=gap >= delta, initial=np.inf)))
        # `low` is sorted along the first coordinate: what comes later is at least as far away there.
        left = near = left[gap < delta]
        for c in range(1, len(ends)):
            near = near[apart(c, near, near + step) < delta]
        spend("comparing equal samples", 2e4 * len(near))
        same = same_class(judge.data, judge.network, claim.scope, i[near], k[near], i[near + step], k[near + step])
        for a in near[~same][:1]:
            pair = f"sequence {i[a]}, token {k[a]} and sequence {i[a + step]}, token {k[a + step]}"
            most = max(0.0, *(float(apart(c, a, a + step)) for c in range(len(ends))))
            return Verdict("undecided", f"{pair} are certainly apart only by {most:.6g}", 0.0)
        left, step = left[left + step + 1 < len(i)], step + 1
    certain = smallest if low.shape[1] == 1 else delta  # in one coordinate, neighbours are all there is to look at
    return Verdict("proved", f"{len(i)} samples, classes at least {certain:.6g} apart", certain, size)


KINDS |= {"separated": Kind(frozenset({"r", "delta"}), _separated)}
