"""Radii are at least as large as the theorems of Linear.v, TwoBalls.v and Radius.v demand, in fractions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.checker.adversary_exact import Edges, drawn
from tests.proofs import edges as at_edges
from tests.proofs.modules import MODULES, NAMES, run
from tests.proofs.theorems import MODEL, SUMS, Q, Sum, add_error, dot_ball, exact_sum, linear_ball, no_overflow

ROUNDS = 200


def spread(rng, x: np.ndarray) -> np.ndarray:
    """Radii: none, small, as large as the number, or at the edge of underflow."""
    kinds = (0 * x, np.abs(x) * 2.0**-10, np.abs(x), np.full_like(x, 2.0**-1022), np.abs(x) * 2.0**-40)
    return np.where(rng.random(x.shape) < 0.6, kinds[int(rng.integers(len(kinds)))], 0.0)


def pairs(ball, *at) -> list:
    """Midpoints and radii along the last axis, as fractions."""
    m, r = np.broadcast_to(ball.m, np.broadcast_shapes(ball.m.shape))[at], ball.r[at]
    return [(Q(a), Q(z)) for a, z in zip(np.ravel(m).tolist(), np.ravel(r).tolist(), strict=True)]


def encloses(name: str, A, total: Sum, m: float, r: float, where: object, extra: int | None = None) -> str:
    """If the radius is finite, it is large enough, the midpoint is near, and nothing can overflow."""
    if not r < np.inf:
        return "unknown"
    f = MODEL[name]
    need = linear_ball(f, total) if extra is None else dot_ball(f, total, extra)
    assert Q(r) >= need, (name, float(Q(r)), float(need), where)
    assert abs(Q(m) - total.mid) <= max(Q(r) - total.spread, Q(0)), (name, m, where)
    assert no_overflow(f, total) < Q(A.big), (name, where)
    return "exact" if r == 0 else "ball"


def check_linear(m, name: str) -> Counter:
    """linear: a bias that is a number or a ball; few inputs, or many of which most are 0."""
    rng = np.random.default_rng([61, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Counter()
    for turn in range(2 * ROUNDS):
        n = int(rng.choice([1, 2, 3, 12]))
        x, W, b = drawn(rng, edges, n)
        if n == 12:
            x = np.where(rng.random(x.shape) < 0.8, 0.0, x)
        ball = m.balls.Ball(x, np.where(x == 0, 0.0, spread(rng, x)) if turn % 2 else spread(rng, x))
        if turn % 5 == 0:  # sums, or radii, around what may overflow
            part = A.big / 2.0 ** int(rng.integers(-1, 6))
            x, radius = (part * rng.choice([0, 1, -1], (2, n)) * rng.integers(0, 2) for _ in range(2))
            ball, W = m.balls.Ball(x, np.abs(radius)), rng.choice([0.0, 1.0, -1.0, 0.5], (n, 2))
        own = m.balls.Ball(np.broadcast_to(b, (2, 2)).copy(), np.zeros((2, 2)))
        if rng.random() < 0.4:
            own = m.balls.Ball(own.m, spread(rng, own.m))
        y = m.balls.linear(ball, W, own if own.r.any() or rng.random() < 0.5 else b.ravel(), A)
        terms = m.balls.live_terms(ball, W)
        for i, j in np.ndindex(2, 2):
            weights = [(Q(w), Q(0)) for w in W[:, j].tolist()]
            total = Sum(list(zip(pairs(ball, i), weights, strict=True)), pairs(own, i, j)[0])
            assert np.broadcast_to(terms, (2, 2))[i, j] >= len(total.live)
            seen[encloses(name, A, total, y.m[i, j], y.r[i, j], (x[i], ball.r[i], W[:, j], own.m[i, j]))] += 1
    return seen


def check_dot(m, name: str) -> Counter:
    """dot, and weighed_alike where all weights lie in one ball; with and without a division."""
    rng = np.random.default_rng([62, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Counter()
    for _ in range(ROUNDS):
        k, extra = int(rng.integers(1, 5)), int(rng.choice([0, 4]))
        p, v = (edges.array(*shape, sparse=rng.choice([0, 0.6])) for shape in ((2, k), (k, 2)))
        if rng.random() < 0.5:
            p = edges.array(2, k, kind="one") / k
        x, y = m.balls.Ball(p, spread(rng, p)), m.balls.Ball(v, spread(rng, v))
        z = m.balls.dot(x, y, A, extra)
        alike = m.balls.Ball(x.m[:1, :1], x.r[:1, :1])
        w = m.averages.weighed_alike(alike, m.averages.Totals.of(y[None]), k, A, extra)
        for i, j in np.ndindex(2, 2):
            column = pairs(y, slice(None), j)
            total = Sum(list(zip(pairs(x, i), column, strict=True)))
            if z.r[i, j] == 0:
                assert not total.live
                seen["exact"] += 1
                continue
            seen[encloses(name, A, total, z.m[i, j], z.r[i, j], (x, y), extra)] += 1
            total = Sum(list(zip(pairs(alike) * k, column, strict=True)))
            if w.r[0, j] == 0:
                assert not total.live
            else:
                seen[encloses(name, A, total, w.m[0, j], w.r[0, j], (alike, y), extra)] += 1
    return seen


def check_add(m, name: str) -> Counter:
    """add, and relu, which moves no end of a ball past the other."""
    rng = np.random.default_rng([63, len(name)])
    A, f, edges, seen = m.balls.ARITHMETICS[name], MODEL[name], Edges(name, rng), Counter()
    some = np.array(at_edges.numbers(name))
    for _ in range(ROUNDS):
        x = edges.array(8, sparse=0.2, kind="mixed") if rng.random() < 0.5 else rng.choice(some, 8)
        y = edges.array(8, sparse=0.5, kind="mixed")
        y = np.where(rng.random(8) < 0.2, -x, y)
        a, b = (
            m.balls.Ball(t, np.where(t == 0, 0, spread(rng, t)) if rng.random() < 0.8 else spread(rng, t))
            for t in (x, y)
        )
        total, positive, numbers = m.balls.add(a, b, A), m.balls.relu(a), m.exactness.add_numbers(a, b.m, A)
        for i in range(8):
            one, other, r = pairs(a, i)[0], pairs(b, i)[0], total.r[i]
            if r < np.inf:
                need = add_error(f, one, other)
                assert Q(r) >= need, (name, one, other, r)
                assert abs(one[0]) + abs(other[0]) < 2 * Q(A.big) or abs(one[0] + other[0]) < Q(A.big)
                assert abs(Q(total.m[i]) - one[0] - other[0]) + one[1] + other[1] <= Q(r)
                seen["add, exact" if r == 0 else "add"] += 1
            exactly = one[1] == 0 and exact_sum(SUMS[name], [one[0], other[0]])
            if numbers.r[i] < np.inf and not exactly:
                assert Q(numbers.r[i]) >= add_error(f, one, (other[0], Q(0))), (name, one, other)
                seen["numbers"] += 1
            for end in (one[0] - one[1], one[0], one[0] + one[1]):
                assert abs(max(end, Q(0)) - Q(positive.m[i])) <= Q(positive.r[i]), (one, positive.m[i])
            seen["relu, exact" if positive.r[i] == 0 else "relu"] += 1
    return seen


def check_unknown(m, name: str) -> Counter:
    """What is infinite or NaN, or known up to an infinite radius, leaves nothing known that reads it."""
    rng = np.random.default_rng([64, len(name)])
    A, seen = m.balls.ARITHMETICS[name], Counter()
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 8))
        x, W, bad = rng.standard_normal((2, n)), rng.choice([0.0, 1.0, 0.5, 3.0], (n, 2)), int(rng.integers(n))
        r = np.abs(rng.standard_normal((2, n))) * rng.integers(0, 2)
        which, what = (x, [np.inf, -np.inf, np.nan]) if rng.random() < 0.5 else (r, [np.inf, np.nan])
        which[0, bad] = rng.choice(what)
        ball, b = m.balls.Ball(x, r), rng.choice([0.0, 1.0, 0.1], 2)
        found = {
            "linear": m.balls.linear(ball, W, b, A),
            "layer": m.layers.Layer(W, b).apply(ball, A),
            "dot": m.balls.dot(ball, m.balls.exact(W), A),
        }
        for function, y in found.items():
            assert np.isinf(y.r[0]).all(), (function, x, r, W)
            seen[function] += 1
        assert np.isinf(m.balls.add(ball, m.balls.exact(0 * x), A).r[0, bad])
        finite = m.balls.linear(m.balls.Ball(x[1:], r[1:]), W, b, A)
        assert np.isfinite(finite.r).all()
    return seen


CHECKS = {
    check_unknown: {"linear", "layer", "dot"},
    check_linear: {"exact", "ball", "unknown"},
    check_dot: {"exact", "ball", "unknown"},
    check_add: {"add", "add, exact", "relu", "relu, exact"},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_radius_is_as_large_as_the_theorem_demands(check, name) -> None:
    seen = run(check, MODULES, name)
    assert set(seen) >= CHECKS[check]
    assert min(seen[kind] for kind in CHECKS[check]) >= 40, seen
