"""Every radius of the kernel is the one that `radii.py` writes out, whichever of its parts is the largest."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest

from onelayer_checker.core import balls
from onelayer_checker.core.balls import NORMAL, TINY, Ball, U, exact
from tests.checker import radii
from tests.checker.counted import counted
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())
parametrize = pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
NEAR = Fraction(1, 2**46)  # what a few roundings may make of it


def same(found: float, wanted: Fraction, near: Fraction = NEAR) -> bool:
    return abs(Fraction(float(found)) - wanted) <= near * wanted


def scaled(rng, shape, A) -> np.ndarray:
    """Numbers of all sizes at which another part of a radius counts; some are zero, some powers of two."""
    least = max(A.tiny, NORMAL)
    size = rng.choice([1.0, 1.0, 2.0**-10, 2.0**20, least / 4, least * 4, 2.0**-300])
    x = np.where(rng.random(shape) < 0.5, 2.0 ** rng.integers(-2, 3, shape), rng.uniform(0.5, 2, shape))
    return x * size * rng.choice([-1, 1, 1, 0], shape)


def ball(rng, shape, A) -> Ball:
    r = np.abs(scaled(rng, shape, A)) * rng.choice([0.0, 0.0, 2.0**-30, 1.0])
    return Ball(scaled(rng, shape, A) * rng.choice([1.0, 1.0, 1.0, 0.0]), r)


@parametrize
def test_of_sums_of_products(A) -> None:
    rng = np.random.default_rng(len(A.name))
    for _ in range(400):
        n = int(rng.choice([1, 2, 3, 7, 9]))
        x, W = ball(rng, (2, n), A), scaled(rng, (n, 2), A)
        W = W if rng.random() < 0.7 else np.where(rng.random(W.shape) < 0.7, np.sign(W), 0.0)
        if rng.random() < 0.3:
            kept = rng.random(x.m.shape) < 0.3
            x = Ball(x.m * kept, x.r * kept)
        b = ball(rng, (2, 2), A) if rng.random() < 0.5 else exact(np.zeros((2, 2)))
        with np.errstate(under="ignore"):
            y = balls.linear(x, W, b, A)
        for t, o in np.ndindex(2, 2):
            wanted = radii.of_linear(x, W, b, A, t, o)
            assert same(y.r[t, o], wanted) or y.r[t, o] == float(wanted), (A.name, x, W, b)


@parametrize
def test_of_long_sums(A) -> None:
    """So long that the roundings of the radius itself count."""
    n = 1 << 14
    for m, r, w, b in product((1.0, 0.0), (0.0, 0.25), (1.0, 0.75), (0.0, 4.0)):
        x, W, bias = Ball(np.full((1, n), m), np.full((1, n), r)), np.full((n, 1), w), exact(np.full((1, 1), b))
        wanted = radii.of_linear(x, W, bias, A, 0, 0)
        assert same(balls.linear(x, W, bias, A).r[0, 0], wanted), (m, r, w, b)
        y = Ball(W, np.full((n, 1), r / 2))
        assert same(balls.dot(x, y, A, 4).r[0, 0], radii.of_dot(x, y, A, 4, 0, 0))


@parametrize
def test_of_products_of_balls(A) -> None:
    rng = np.random.default_rng(1 + len(A.name))
    for _ in range(400):
        k, extra = int(rng.integers(1, 7)), int(rng.choice([0, 4]))
        x, y = ball(rng, (2, k), A), ball(rng, (k, 2), A)
        with np.errstate(under="ignore"):
            z = balls.dot(x, y, A, extra)
        for i, j in np.ndindex(2, 2):
            wanted = radii.of_dot(x, y, A, extra, i, j)
            assert same(z.r[i, j], wanted) or z.r[i, j] == float(wanted), (A.name, x, y)


@parametrize
def test_of_sums_of_two(A) -> None:
    rng = np.random.default_rng(2 + len(A.name))
    for _ in range(400):
        x, y = ball(rng, 4, A), ball(rng, 4, A)
        z = balls.add(x, y, A)
        for i in range(4):
            wanted = radii.of_add(x, y, A, i)
            assert same(z.r[i], wanted) or z.r[i] == float(wanted), (A.name, x, y)


@parametrize
def test_of_tokens_that_are_moved(A) -> None:
    """By what does not lead to numbers of the format; where it does, the radius is the move itself."""
    if A is not balls.REAL:
        for x, radius in ((1.0, 0.1), (0.1, 0.3), (A.tiny * 2.0**25, A.tiny * 0.3)):
            found = balls.around(np.full(1, x), radius, A).r[0]
            assert same(found, radii.of_around(x, radius, A)), (A.name, x, radius)
    kept = 1 + 2.0**-40  # of 41 bits
    assert (balls.around(np.full(1, kept), 0.5, A).r[0] == 0.5) == (A is not balls.FLOAT32)


@parametrize
def test_of_inputs_that_are_large(A) -> None:
    """Then what flushing costs a row is counted with its own inputs."""
    rng = np.random.default_rng(5)
    for scale in (2.0**41, 2.0**60):
        for part in ("m", "r"):
            x = {"m": np.zeros((2, 3)), "r": np.zeros((2, 3))}
            x[part][0] = rng.integers(1, 4, 3) * scale
            W, b = rng.choice([0.75, 0.5], (3, 2)) * max(A.tiny, NORMAL), exact(np.zeros((2, 2)))
            y = balls.linear(Ball(**x), W, b, A)
            for t, o in np.ndindex(2, 2):
                wanted = radii.of_linear(Ball(**x), W, b, A, t, o, calm=False)
                assert same(y.r[t, o], wanted), (A.name, scale, part, t)


@parametrize
def test_of_weights(A) -> None:
    """Narrow ones by one formula, and wide ones, which are not known up to e, by another."""
    rng, wide = np.random.default_rng(3 + len(A.name)), 0
    for n in [1, 2, 5] * 60 + [1 << 12]:
        m = rng.choice([0.0, -1.0, 2.0, 30.0], n) + rng.choice([0.0, 0.1]) * rng.standard_normal(n)
        m[0] -= rng.choice([0.0, 0.0, 690.0])
        r = rng.choice([0.0, 1e-9, 0.01, rng.uniform(0.3, 0.9)], n) * rng.choice([0.0, 1.0, 1.0])
        if n > 5:
            m, r = m * 2.0**-20, r * 0.001
        visible = rng.random(n) < rng.choice([0.7, 1.0])
        visible[rng.integers(n)] = True
        p = balls.softmax(Ball(m[None], r[None]), True if visible.all() else visible, A)
        wanted = radii.of_softmax(m, r, visible, p.m[0], A)
        if wanted is None:
            wide += 1
            wanted = of_wide_weights(m, r, visible, p.m[0], A)
        for found, known in zip(p.r[0].tolist(), wanted, strict=True):
            assert same(found, known, Fraction(1, 2**43)) or known == found == 0, (A.name, m, r)
    assert wide > 10


def of_wide_weights(m, r, visible, p, A) -> list[Fraction]:
    L, _, g = radii.exponents(m, r, visible, p, A)
    t = np.where(visible, m - m[visible].max(), -np.inf)
    own = np.array([[float(L.get(k, 0)) for k in range(len(m))]])
    found = balls._softmax_of_wide(t[None], own, p[None], visible[None], np.full((1, 1), float(g)))[0]
    lost = 8 * len(m) * (Fraction(A.tiny) + radii.TINY)
    return [Fraction(float(x)) + lost if seen else radii.ZERO for x, seen in zip(found, visible, strict=True)]


@parametrize
def test_rows_beside_others_have_the_radii_that_they_have_alone(A) -> None:
    """Narrow, wide, exact and unknown ones; and sequences and heads are rows, too."""
    m = np.array([[0.0, 0.0, -1.0], [0.5, 0.5, 0.0], [3.0, 0.0, 1.0], [2.0, -9.0, 2.0], [1.0, 1.0, 1.0], [0, 1, 2]])
    r = np.array([[0, 0, 0], [0.01, 0, 0.01], [2.0, 1.0, 3.0], [0.3, 0.4, 0.3], [0, 0, 0], [0, np.inf, 0]])
    values = Ball(np.arange(12.0).reshape(2, 3, 2), np.zeros((2, 3, 2)))
    with np.errstate(all="ignore"):
        alone = [balls.softmax(Ball(m[i : i + 1], r[i : i + 1]), True, A) for i in range(6)]
        for shape in ((6, 3), (3, 2, 3), (2, 3, 1, 3), (1, 6, 1, 3)):
            x = Ball(m.reshape(shape), r.reshape(shape))
            for visible in (True, np.ones(3, bool)):
                found = balls.softmax(x, visible, A).reshape(6, 3)
                for i in range(6):
                    assert found.m[i].tolist() == alone[i].m[0].tolist()
                    assert found.r[i].tolist() == alone[i].r[0].tolist()
    assert (alone[5].r == np.inf).all()
    weights = balls.softmax(Ball(m[:4].reshape(2, 2, 3), r[:4].reshape(2, 2, 3)), True, A)
    for extra in (0, 4):
        stacked = balls.dot(weights, values, A, extra)
        deeper = balls.dot(weights.reshape(1, 2, 2, 3), values.reshape(1, 2, 3, 2), A, extra)
        assert (deeper.m[0] == stacked.m).all()
        assert (deeper.r[0] == stacked.r).all()
    ones = balls.dot(exact(np.ones((2, 2, 3))), exact(np.ones((2, 3, 2))), A)
    assert (ones.r == balls.dot(exact(np.ones((2, 3))), exact(np.ones((3, 2))), A).r).all()
    assert balls.dot(weights, values, A).r.tolist() == balls.dot(weights, values, A, 0).r.tolist()


def test_equal_weights_are_exact_up_to_as_many_as_there_are_whole_numbers() -> None:
    """This many ones add up without rounding; of an arithmetic that has whole numbers only up to 4."""
    A = replace(balls.FLOAT32, whole=4.0)
    for n, exactly in ((3, True), (4, True), (5, False)):
        p = balls.softmax(exact(np.zeros((1, n))), True, A)
        assert (p.r * n < 5 * A.u).all() == exactly
        assert (p.r * n >= A.exp_error).all() == (not exactly)


def test_the_ends_of_an_exponential() -> None:
    """By 32 units of float64, of which 8 are its own error; and by one more number where it may underflow."""
    flint.ctx.prec = 200
    rng = np.random.default_rng(4)
    d = np.concatenate([rng.uniform(-30, 30, 400), -(10.0 ** rng.uniform(-9, 2.8, 100)), [0.0, -700.0, 600.0]])
    for x, low, high in zip(d.tolist(), balls._exp_lower(d).tolist(), balls._exp_upper(d).tolist(), strict=True):
        true, unit = flint.arb(x).exp(), flint.arb(U)
        assert true * (1 - 52 * unit) <= flint.arb(low) <= true * (1 - 20 * unit)
        assert true * (1 + 20 * unit) <= flint.arb(high) <= true * (1 + 52 * unit) + flint.arb(TINY)
    far = np.array([-800.0, 800.0])
    assert balls._exp_lower(far).tolist() == [0, (1 - 8 * U) / TINY]
    assert balls._exp_upper(far).tolist() == [TINY, np.inf]


@pytest.mark.parametrize("n", [1, 2, 4, 70])
def test_of_weights_whose_exponents_are_wide(n) -> None:
    """Every other exponent at its most and at its least, with 8 units for each difference and 8 n for the sums."""
    flint.ctx.prec = 200
    rng = np.random.default_rng(n)
    unit, up = flint.arb(U), flint.arb(balls.UP)
    for wide in (3.0, 40.0):
        for share in (0.6, 1.0):
            t, L = -rng.uniform(0, 8 * wide, (3, n)), rng.uniform(0.5, 1, (3, n)) * wide
            g, visible = np.full((3, 1), 2.0**-9), rng.random((3, n)) < share
            visible[:, 0] = True
            p = visible / visible.sum(axis=1, keepdims=True)
            p[1], p[2] = 0, 1  # so that one end or the other is all that counts
            found = balls._softmax_of_wide(t, L, p, visible, g)
            for i, k in np.ndindex(3, n):
                if visible[i, k]:
                    low, high = flint.arb(0), flint.arb(0)
                    for j in np.flatnonzero(visible[i]):
                        if j != k:
                            a, b = (flint.arb(t[i, j] + s * L[i, j] - (t[i, k] - s * L[i, k])) for s in (-1, 1))
                            low += (a - 8 * abs(a) * unit).exp() * (1 - 32 * unit)
                            high += (b + 8 * abs(b) * unit).exp() * (1 + 32 * unit)
                    slack, error = (1 + 8 * n * unit) * up, 2 * flint.arb(g[i, 0])
                    most = min(slack / (1 + low / slack), flint.arb(1)) * (1 + error) * up
                    least = (1 - error) / ((1 + high * slack) * slack) / up
                    wanted = max(most - flint.arb(p[i, k]), flint.arb(p[i, k]) - least, flint.arb(0)) * up
                    assert abs(float(wanted) - found[i, k]) <= 1e-13 * float(wanted), (n, wide, i, k)


def test_wide_weights_are_counted_before_they_are_computed() -> None:
    with counted() as lines:
        balls.softmax(Ball(np.zeros((3, 2, 5)), np.full((3, 2, 5), 9.0)), True, balls.REAL)
    assert lines == [("a softmax of wide logits", 150 * 5 * 30, 100 * 5 * 30, 0)]
