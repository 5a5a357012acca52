"""Checks of a kernel, each operation alone: what an arithmetic may do is in the ball, and the balls are tight.

The model of an arithmetic is adversarial: operands anywhere in their balls, every rounding at the worst relative
error it may make, underflow flushed or not, sums in any order. References are exact rationals, and Arb for exp.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np

ROUNDS = 60
SIGNS = {"up": lambda _: 1, "down": lambda _: -1, "random": lambda rng: int(rng.choice([-1, 1]))}


class Adversary:
    """An arithmetic that always does its worst."""

    def __init__(self, A, rng, sign) -> None:
        self.u, self.tiny, self.rng, self.sign = Fraction(A.u), Fraction(A.tiny), rng, SIGNS[sign]

    def round(self, x: Fraction) -> Fraction:
        if self.u == 0 or x == 0:
            return x
        if abs(x) < self.tiny and self.rng.random() < 0.5:
            return Fraction(0)
        return x * (1 + self.u * self.sign(self.rng))

    def sum(self, terms: list[Fraction]) -> Fraction:
        """In a random order and bracketing; a zero adds without rounding."""
        terms = [terms[i] for i in self.rng.permutation(len(terms))]
        while len(terms) > 1:
            i = int(self.rng.integers(len(terms) - 1))
            a, b = terms[i], terms[i + 1]
            terms[i : i + 2] = [a + b if 0 in (a, b) else self.round(a + b)]
        return terms[0]


def numbers(rng, *shape: int) -> np.ndarray:
    """Numbers of all sorts: 53 bits long, plain, whole, sparse, powers of two, near underflow."""
    x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3)
    sort = rng.integers(7)
    if sort > 4:
        return x
    if sort == 1:
        x = np.round(x)
    elif sort == 2:
        x = np.where(rng.random(shape) < 0.5, 0, x)
    elif sort == 3:
        x = np.exp2(rng.integers(-8, 8, shape)) * rng.choice([-1, 1], shape)
    elif sort == 4:
        x = x * 2.0**-125
    return x.astype(np.float32).astype(np.float64)


def ball(kernel, rng, *shape: int):
    m = numbers(rng, *shape)
    r = np.abs(rng.standard_normal(shape)) * 10.0 ** rng.uniform(-12, 1.5) * (rng.random() < 0.5)
    return kernel.Ball(m, r)


def point(rng, m: float, r: float) -> Fraction:
    return Fraction(float(m)) + Fraction(float(r)) * Fraction(int(rng.choice([-8, 8, 0, 3, -5])), 8)


class Ledger:
    """Counts checks, and remembers the largest error as a fraction of the radius."""

    def __init__(self) -> None:
        self.count, self.tightest = 0, 0.0

    def inside(self, value: Fraction, m: float, r: float) -> None:
        self.count += 1
        if not np.isfinite(r):
            return
        error = abs(value - Fraction(float(m)))
        assert error <= Fraction(float(r)), f"error {float(error)} > radius {r}"
        if r > 0:
            self.tightest = max(self.tightest, float(error / Fraction(float(r))))


def check_sums_and_products(kernel, A, sign) -> None:
    rng = np.random.default_rng([1, len(A.name), len(sign)])
    adversary, seen = Adversary(A, rng, sign), Ledger()
    for _ in range(ROUNDS):
        x, y = ball(kernel, rng, 4), ball(kernel, rng, 4)
        total = kernel.add(x, y, A)
        product = kernel.dot(kernel.Ball(x.m[:, None], x.r[:, None]), kernel.Ball(y.m[None], y.r[None]), A)
        positive = kernel.relu(x)
        for i in range(4):
            a, b = point(rng, x.m[i], x.r[i]), point(rng, y.m[i], y.r[i])
            exact_zero = (x.m[i] == x.r[i] == 0) or (y.m[i] == y.r[i] == 0)
            seen.inside(a + b if exact_zero else adversary.round(a + b), total.m[i], total.r[i])
            seen.inside(adversary.round(a * b), product.m[i, i], product.r[i, i])
            seen.inside(max(a, Fraction(0)), positive.m[i], positive.r[i])
    assert seen.count == 12 * ROUNDS
    assert seen.tightest >= 0.9


def check_linear_maps(kernel, A, sign) -> None:
    rng = np.random.default_rng([2, len(A.name), len(sign)])
    adversary, seen = Adversary(A, rng, sign), Ledger()
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 10))
        x, W = ball(kernel, rng, 2, n), numbers(rng, n, 3)
        b = numbers(rng, 3) if rng.random() < 0.5 else None
        y = kernel.linear(x, W, b, A)
        for i in range(2):
            point_x = [point(rng, x.m[i, k], x.r[i, k]) for k in range(n)]
            for j in range(3):
                products = [point_x[k] * Fraction(W[k, j]) for k in range(n)]
                exact = [is_power_of_two(W[k, j]) and abs(products[k]) >= 4 * A.tiny for k in range(n)]
                terms = [p if e else adversary.round(p) for p, e in zip(products, exact, strict=True)]
                value = adversary.sum([*terms, Fraction(0 if b is None else b[j])])
                seen.inside(value, y.m[i, j], y.r[i, j])
    assert seen.count == 6 * ROUNDS
    assert seen.tightest >= 0.9


def is_power_of_two(w: float) -> bool:
    return abs(np.frexp(w)[0]) == 0.5


def check_products(kernel, A) -> None:
    rng = np.random.default_rng([3, len(A.name)])
    seen = Ledger()
    for sign in SIGNS:
        adversary = Adversary(A, rng, sign)
        for _ in range(ROUNDS // 2):
            k = int(rng.integers(2, 8))
            x, y = ball(kernel, rng, 2, k), ball(kernel, rng, k, 2)
            z = kernel.dot(x, y, A)
            for i in range(2):
                for j in range(2):
                    pairs = [(point(rng, x.m[i, l], x.r[i, l]), point(rng, y.m[l, j], y.r[l, j])) for l in range(k)]
                    value = adversary.sum([adversary.round(a * b) for a, b in pairs])
                    seen.inside(value, z.m[i, j], z.r[i, j])
    assert seen.tightest >= 0.5


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
        r = np.abs(rng.standard_normal((1, n))) * 10.0 ** (rng.uniform(-1, 1.5) if wide else rng.uniform(-14, -2))
        visible = rng.random((1, n)) < 0.8
        visible[0, rng.integers(n)] = True
        x = kernel.Ball(m, r * (rng.random() < 0.8))
        p = kernel.softmax(x, None if visible.all() else visible, A)
        for sign in SIGNS.values():
            points = {k: as_arb(point(rng, m[0, k], x.r[0, k])) for k in range(n) if visible[0, k]}
            top = max(points.values(), key=lambda v: float(v.mid()))
            e = {
                k: (
                    (v - top) * (1 + u * sign(rng)) ** int(A.roundings)
                    + flint.arb(A.exp_error) * sign(rng) * 127 / 128
                ).exp()
                for k, v in points.items()
            }
            if A.u and rng.random() < 0.5:
                e = {k: flint.arb(0) if v < flint.arb(A.tiny) else v for k, v in e.items()}
            total = flint.arb(0)
            for i, k in enumerate(rng.permutation(list(e))):
                total = e[int(k)] if i == 0 else (total + e[int(k)]) * (1 + u * sign(rng))
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


def as_arb(x: Fraction):
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def check_the_order_attack(kernel) -> None:
    """2^25 + 1 - 2^25 is 1 in real arithmetic and in float64, and 0 or 1 in float32 depending on the order."""
    x = kernel.exact(np.array([[2.0**25, 1.0, -(2.0**25)]]))
    W = np.ones((3, 1))
    for name, sure in (("real", True), ("float64", True), ("float32", False)):
        y = kernel.linear(x, W, None, kernel.ARITHMETICS[name])
        assert (abs(y.m[0, 0] - 1) + y.r[0, 0] < 0.5) == sure
    assert kernel.linear(x, W, None, kernel.FLOAT32).r[0, 0] >= 1


def check_copies_and_zeros(kernel) -> None:
    x = kernel.Ball(np.array([[1.5, -2.0]]), np.array([[0.25, 0.0]]))
    copied = kernel.linear(x, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), None, kernel.FLOAT32)
    assert copied.m.tolist() == [[-2.0, 1.5, 0.0]]
    assert copied.r.tolist() == [[0.0, 0.25, 0.0]]
    assert kernel.add(x, kernel.exact(np.zeros((1, 2))), kernel.FLOAT32).r.tolist() == x.r.tolist()
    assert kernel.relu(kernel.Ball(np.array([-3.0]), np.array([2.0]))).r.tolist() == [0.0]


def check_overflow_and_nan(kernel, A) -> None:
    huge = kernel.exact(np.array([[A.big, A.big]]))
    assert np.isinf(kernel.linear(huge, np.full((2, 1), 0.75), None, A).r).all()
    assert np.isinf(kernel.dot(huge, kernel.exact(np.full((2, 1), 0.75)), A).r).all()
    assert np.isinf(kernel.add(huge, huge, A).r).all()
    nan = kernel.Ball(np.array([[np.nan, 1.0]]), np.zeros((1, 2)))
    assert not (kernel.linear(nan, np.full((2, 1), 0.75), None, A).r <= 1e300).any()


def check_monotone(kernel) -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        x, W = ball(kernel, rng, 3, 4), numbers(rng, 4, 2)
        wider = kernel.Ball(x.m, x.r * 2 + 1e-9)
        for A in kernel.ARITHMETICS.values():
            assert (kernel.linear(wider, W, None, A).r >= kernel.linear(x, W, None, A).r).all()
        assert (kernel.linear(x, W, None, kernel.FLOAT32).r >= kernel.linear(x, W, None, kernel.REAL).r).all()


def checks(kernel):
    """All checks of a kernel, as calls without arguments, the quick ones first."""
    arithmetics = list(kernel.ARITHMETICS.values())
    for check in (check_the_order_attack, check_copies_and_zeros, check_monotone, check_exp):
        yield check.__name__, lambda check=check: check(kernel)
    for A in arithmetics:
        yield f"overflow {A.name}", lambda A=A: check_overflow_and_nan(kernel, A)
        yield f"products {A.name}", lambda A=A: check_products(kernel, A)
        for sign in SIGNS:
            yield f"sums {A.name} {sign}", lambda A=A, sign=sign: check_sums_and_products(kernel, A, sign)
            yield f"linear {A.name} {sign}", lambda A=A, sign=sign: check_linear_maps(kernel, A, sign)
        for wide in (False, True):
            yield f"softmax {A.name} {wide}", lambda A=A, wide=wide: check_softmax(kernel, A, wide)
