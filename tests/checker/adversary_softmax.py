"""Checks of a kernel's softmax: exp, weights and averages, against Arb and exact rationals."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np

from tests.checker.adversary import ROUNDS, SIGNS, Adversary, Ledger, numbers, point


def check_exp(kernel) -> None:
    """Including both sides of every boundary of the argument reduction, against 200-bit balls."""
    flint.ctx.prec = 200
    ln2 = float(np.log(2))
    boundaries = np.array([-(k + 0.5) * ln2 for k in range(1010)])
    near = np.concatenate([np.nextafter(boundaries, s) for s in (-np.inf, np.inf)] + [boundaries])
    rng = np.random.default_rng(4)
    t = np.concatenate(
        [near, -rng.uniform(0, 700, 6000), -(10.0 ** rng.uniform(-18, 2.8, 6000)), [0.0, -0.0, -700.0]]
    )
    t = t[t >= -700.0]
    worst = 0.0
    for x, e in zip(t.tolist(), kernel.exp_nonpositive(t).tolist(), strict=True):
        error = abs(flint.arb(e) / flint.arb(x).exp() - 1)
        assert error < flint.arb(kernel.EXP_U)
        worst = max(worst, float(error))
    assert worst > 0.1 * kernel.EXP_U
    assert kernel.exp_nonpositive(np.array([-700.1, -1e9, -np.inf])).tolist() == [0.0, 0.0, 0.0]


def check_softmax(kernel, A, wide) -> None:
    """Exponents off by their radius, their argument's roundings and exp's error; normalised with rounding."""
    flint.ctx.prec = 160
    rng = np.random.default_rng([5, len(A.name), wide])
    tightest, u = 0.0, flint.arb(A.u)
    for _ in range(150):
        n = int(rng.integers(1, 8))
        m = numbers(rng, 1, n) if rng.random() < 0.5 else rng.standard_normal((1, n)) * 10.0 ** rng.uniform(-1, 2)
        r = np.abs(rng.standard_normal((1, n))) * 10.0 ** (rng.uniform(-1, 8) if wide else rng.uniform(-14, -2))
        m = np.where(rng.random((1, n)) < rng.choice([0, 0.5, 1]), m.max(), m)  # equal ones
        visible = rng.random((1, n)) < 0.8
        visible[0, rng.integers(n)] = True
        x = kernel.Ball(m, r * (rng.random() < 0.8))
        p = kernel.softmax(x, visible.all() or visible, A)
        known = not x.r[visible].any()  # then the largest have e^0, which is 1
        for sign in SIGNS.values():
            points = {k: as_arb(point(rng, m[0, k], x.r[0, k])) for k in range(n) if visible[0, k]}
            top = max(points.values(), key=lambda v: float(v.mid()))
            e = {
                k: (
                    (v - top) * (1 + u * sign(rng)) ** int(A.roundings)
                    + flint.arb(A.exp_error) * sign(rng) * 127 / 128
                ).exp()
                if not (known and m[0, k] == m[visible].max())
                else flint.arb(1)
                for k, v in points.items()
            }
            equal = known and (m[visible] == m[visible].max()).all()
            if A.u and rng.random() < 0.5:
                e = {k: flint.arb(0) if v < flint.arb(A.tiny) else v for k, v in e.items()}
            total = flint.arb(0)
            for i, k in enumerate(rng.permutation(list(e))):
                total = e[int(k)] if i == 0 else (total + e[int(k)]) * (1 + u * sign(rng) * (not equal))
            for k in range(n):
                if not visible[0, k]:
                    assert p.m[0, k] == p.r[0, k] == 0
                    continue
                weight = e[k] / total * (1 + u * sign(rng))
                error = abs(weight - flint.arb(float(p.m[0, k])))
                assert error <= flint.arb(float(p.r[0, k])), (A.name, m, x.r, k)
                if p.r[0, k] > 0:
                    tightest = max(tightest, float((error / flint.arb(float(p.r[0, k]))).mid()))
    assert tightest >= (0.9 if wide or A.u == 0 else 0.4)


def check_equal_logits(kernel, A) -> None:
    """Exactly equal logits have weights 1/n but for a few roundings, however many there are."""
    for n in (1, 3, 1000):
        visible = np.arange(n + 5) < n
        p = kernel.softmax(kernel.exact(np.full((1, n + 5), 0.1)), visible, A)
        assert (p.r[0, :n] <= 5 * (A.u + 4 * kernel.U) / n + 9 * n * A.tiny + 1e-290).all()
        assert not p.r[0, n:].any()
        p = kernel.softmax(kernel.Ball(np.full((1, n), 0.1), np.full((1, n), 2.0**-1000)), True, A)
        assert (p.r[0, :n] >= A.exp_error / n).all()
        p = kernel.softmax(kernel.exact(np.array([[-0.5, *np.zeros(n)]])), True, A)
        assert (p.r >= n * A.u * p.m).all()  # e^-0.5 first, and every sum rounds


def check_averages(kernel, A) -> None:
    """Weights times values, normalised before or after; values anywhere up to overflow of the unnormalised sum."""
    rng = np.random.default_rng([8, len(A.name)])
    seen = Ledger()
    for sign in SIGNS:
        adversary = Adversary(A, rng, sign)
        for _ in range(ROUNDS // 2):
            n = int(rng.integers(1, 9))
            scale = rng.choice([1.0, A.big / 2.0 ** int(rng.integers(1, 9)), max(A.tiny, 2.0**-900)])
            v = kernel.exact(rng.uniform(-1, 1, (n, 1)) * scale)
            w = kernel.exact(rng.integers(1, 2**10, (1, n)) / 2.0**10)  # unnormalised, exact, the largest at most 1
            mass = float(w.m.sum())
            p = kernel.Ball(w.m / mass, w.m / mass * 4 * (A.u + kernel.U))
            y = kernel.dot(p, v, A, extra=4)
            terms = [adversary.round(Fraction(w.m[0, k]) * adversary.load(Fraction(v.m[k, 0]))) for k in range(n)]
            total = sum(map(abs, terms), Fraction(0))
            assert total < Fraction(A.big) or np.isinf(y.r).all(), "an infinite sum is in a finite ball"
            seen.inside(adversary.round(adversary.sum(terms) / Fraction(mass)), y.m[0, 0], y.r[0, 0])
    assert seen.count == 3 * (ROUNDS // 2)


def as_arb(x: Fraction):
    return flint.arb(flint.fmpq(x.numerator, x.denominator))
