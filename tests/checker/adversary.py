"""Checks of a kernel, each operation alone: what an arithmetic may do is in the ball, and the balls are tight.

The model of an arithmetic is adversarial: operands anywhere in their balls, every rounding at the worst relative
error it may make, underflow flushed or not, sums in any order. References are exact rationals, and Arb for exp.
"""

from __future__ import annotations

from fractions import Fraction

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

    def load(self, x: Fraction) -> Fraction:
        """An operand, as it is read: a subnormal one may be flushed."""
        return Fraction(0) if abs(x) < self.tiny and self.rng.random() < 0.5 else x

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
            c, d = adversary.load(a), adversary.load(b)
            seen.inside(c + d if exact_zero else adversary.round(c + d), total.m[i], total.r[i])
            seen.inside(adversary.round(c * d), product.m[i, i], product.r[i, i])
            seen.inside(max(a, Fraction(0)), positive.m[i], positive.r[i])
    assert seen.count == 12 * ROUNDS
    assert seen.tightest >= 0.9


def check_linear_maps(kernel, A, sign) -> None:
    """Biases that are numbers, and streams that are balls; wide rows of which a few entries are not 0."""
    rng = np.random.default_rng([2, len(A.name), len(sign)])
    adversary, seen = Adversary(A, rng, sign), Ledger()
    for _ in range(2 * ROUNDS):
        n = int(rng.integers(1, 10)) if rng.random() < 0.7 else 24
        x, W = ball(kernel, rng, 2, n), numbers(rng, n, 3)
        if n == 24:  # centres of some balls are 0, all the others are points
            kept = rng.random(x.m.shape) < 0.2
            x = kernel.Ball(np.where(kept, x.m * rng.integers(0, 2), 0), np.where(kept, x.r, 0))
        b = (ball(kernel, rng, 2, 3), kernel.exact(numbers(rng, 3)), kernel.exact(np.zeros(3)))[rng.integers(3)]
        y = kernel.linear(x, W, b if b.m.ndim == 2 else b.m, A)
        own = kernel.Ball(np.broadcast_to(b.m, (2, 3)), np.broadcast_to(b.r, (2, 3)))
        for i in range(2):
            point_x = [point(rng, x.m[i, k], x.r[i, k]) for k in range(n)]
            for j in range(3):
                products = [point_x[k] * Fraction(W[k, j]) for k in range(n)]
                exact = [is_power_of_two(W[k, j]) and abs(products[k]) >= 4 * A.tiny for k in range(n)]
                terms = [p if e else adversary.round(p) for p, e in zip(products, exact, strict=True)]
                value = adversary.sum([*terms, adversary.load(point(rng, own.m[i, j], own.r[i, j]))])
                seen.inside(value, y.m[i, j], y.r[i, j])
    assert seen.count == 12 * ROUNDS
    assert seen.tightest >= 0.9


def is_power_of_two(w):
    return np.abs(np.frexp(w)[0]) == 0.5


def check_flushing(kernel, A) -> None:
    """Subnormal operands against large ones, in groups; whole columns, copies and biases alone among them."""
    rng = np.random.default_rng([7, len(A.name)])
    adversary, seen = Adversary(A, rng, "random"), Ledger()
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 4))
        small, large = max(A.tiny, 2.0**-900) * 2.0 ** rng.integers(-3, 3), 2.0 ** rng.integers(0, 90)
        scales = rng.permutation([small, large])
        x, W, b = (rng.standard_normal(shape) for shape in ((2, 3, n), (2, n, 3), (2, 1, 3)))
        x, W, b = x * scales[0], W * scales[1], b * rng.choice([0, small])
        W[rng.random(W.shape) < 0.4] = 0
        if rng.random() < 0.4:
            W = np.sign(W) * np.ldexp(0.5, np.frexp(W)[1])  # powers of two
        x = kernel.Ball(x, np.abs(x) * rng.choice([0, 0.25]))
        y, z = kernel.linear(x, W, b, A), kernel.dot(x, kernel.exact(W), A)
        for g, i, j in np.ndindex(2, 3, 3):
            a = [point(rng, x.m[g, i, k], x.r[g, i, k]) for k in range(n)]
            products = [adversary.load(a[k]) * adversary.load(Fraction(W[g, k, j])) for k in range(n)]
            exact = is_power_of_two(W[g, :, j])  # then only flushing changes it
            terms = [(adversary.load if e else adversary.round)(p) for p, e in zip(products, exact, strict=True)]
            seen.inside(adversary.sum([*terms, adversary.load(Fraction(b[g, 0, j]))]), y.m[g, i, j], y.r[g, i, j])
            seen.inside(adversary.sum(terms), z.m[g, i, j], z.r[g, i, j])
    assert seen.count == 36 * ROUNDS


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


def to_nearest(x: Fraction, bits: int, up: bool) -> Fraction:
    """x > 0 rounded to this many bits, ties upwards or downwards."""
    unit = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - bits)
    while x / unit >= 2**bits:
        unit *= 2
    below, rest = divmod(x, unit)
    return (below + (rest > unit / 2 or (up and rest == unit / 2))) * unit


def check_two_roundings(kernel) -> None:
    """Rounded to 11 more bits and then to the format, near ties of both, a number is off by at most A.u of it."""
    rng, worst = np.random.default_rng(9), 0.0
    for A, bits in ((kernel.FLOAT32, 24), (kernel.FLOAT64, 53)):
        unit, finer = Fraction(2, 2**bits), Fraction(2, 2 ** (bits + 11))
        for _ in range(300):
            x = (
                1
                + unit * (int(rng.integers(0, 4)) + Fraction(1, 2))
                + finer * Fraction(int(rng.integers(-4, 5)), 2)
            )
            for up in (False, True):
                error = abs(to_nearest(to_nearest(x, bits + 11, up), bits, up) - x) / x
                assert error <= Fraction(A.u)
                worst = max(worst, float(error / Fraction(2) ** -bits))
    assert worst > 1.0004


def check_the_order_attack(kernel) -> None:
    """2^25 + 1 - 2^25 is 1 in real arithmetic and in float64, and 0 or 1 in float32 depending on the order."""
    x = kernel.exact(np.array([[2.0**25, 1.0, -(2.0**25)]]))
    W = np.ones((3, 1))
    for name, sure in (("real", True), ("float64", True), ("float32", False)):
        y = kernel.linear(x, W, 0.0, kernel.ARITHMETICS[name])
        assert (abs(y.m[0, 0] - 1) + y.r[0, 0] < 0.5) == sure
    assert kernel.linear(x, W, 0.0, kernel.FLOAT32).r[0, 0] >= 1


def check_copies_and_zeros(kernel) -> None:
    x = kernel.Ball(np.array([[1.5, -2.0]]), np.array([[0.25, 0.0]]))
    copied = kernel.linear(x, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), 0.0, kernel.FLOAT32)
    assert copied.m.tolist() == [[-2.0, 1.5, 0.0]]
    assert copied.r[0, [0, 2]].tolist() == [0.0, 0.0]
    assert 0.25 <= copied.r[0, 1] <= 0.25 * (1 + 1e-9)
    zeros = kernel.dot(
        kernel.exact(np.array([[0.0, 3.0]])), kernel.Ball(np.array([[1.0], [0.0]]), x.r.T), kernel.FLOAT32
    )
    assert zeros.m.tolist() == zeros.r.tolist() == [[0.0]]
    near = kernel.exact(np.array([[5.0, 4.5]]) * kernel.FLOAT32.tiny)
    assert kernel.linear(near, np.array([[1.0], [-1.0]]), 0.0, kernel.FLOAT32).r[0, 0] >= kernel.FLOAT32.tiny / 2
    small = kernel.exact(np.full((1, 1), 2.0**-600))
    assert kernel.dot(small, small, kernel.REAL).r[0, 0] > 0  # not a zero, it underflows here
    assert kernel.add(x, kernel.exact(np.zeros((1, 2))), kernel.FLOAT32).r.tolist() == x.r.tolist()
    assert kernel.relu(kernel.Ball(np.array([-3.0]), np.array([2.0]))).r.tolist() == [0.0]


def nearest(y: Fraction, dtype) -> Fraction:
    near = dtype(float(y))
    ends = (np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf)))
    return min((Fraction(float(z)) for z in ends), key=lambda z: abs(z - y))


def check_around(kernel) -> None:
    """Real numbers near a number, and the numbers of the format nearest to them, are in the ball."""
    rng, kept = np.random.default_rng(7), 0
    for A, dtype in ((kernel.FLOAT32, np.float32), (kernel.FLOAT64, np.float64)):
        for _ in range(400):
            k = int(rng.integers(-2, 3))
            size = 2.0 ** (k if rng.random() < 0.5 else rng.integers(-60, 2))
            radius = float(rng.choice([1.0, 1.5, 0.3, 1 + A.u, 1 + 3 * A.u, 2.0**-9]) * size)
            x = np.full(1, dtype(rng.choice([1.0, -1.5, 1.5, 0.1, 2.0**-30, 0.0]) * 2.0**k), np.float64)
            ball = kernel.around(x, radius, A)
            kept += ball.r[0] == radius
            assert ball.r[0] <= (radius + 2 * A.u * (abs(x[0]) + radius)) * (1 + 1e-9) + A.tiny
            for t in (-1, 1, Fraction(int(rng.integers(-(2**40), 2**40)), 2**40)):
                y = Fraction(float(x[0])) + Fraction(radius) * t
                for z in (y, nearest(y, dtype)):
                    assert abs(z - Fraction(float(x[0]))) <= Fraction(float(ball.r[0])), (A.name, x, radius)
    assert kept > 100
    assert kernel.around(x, 0.3, kernel.REAL).r.tolist() == [0.3]
    assert np.isinf(kernel.around(x, kernel.FLOAT32.big, kernel.FLOAT32).r).all()
    assert np.isinf(kernel.around(np.full(1, kernel.FLOAT32.big), 1.0, kernel.FLOAT32).r).all()


def check_overflow_and_nan(kernel, A) -> None:
    huge = kernel.exact(np.array([[A.big, A.big]]))
    half = kernel.exact(np.full((2, 1), 0.75))
    many = kernel.exact(np.full((64, 1), A.big / 8))
    unknown = [kernel.Ball(np.array([[0.0, m]]), np.array([[0.0, r]])) for m, r in ((np.nan, 0.0), (1.0, np.inf))]
    with np.errstate(all="ignore"):
        assert np.isinf(kernel.linear(huge, half.m, 0.0, A).r).all()
        assert np.isinf(kernel.dot(huge, half, A).r).all()
        assert np.isinf(kernel.add(huge, huge, A).r).all()
        assert np.isinf(kernel.dot(kernel.exact(np.full((1, 64), 1 / 64)), many, A, extra=4).r).all()
        for x in unknown:
            for factor in (0.0, 0.75, 1.0):  # a product with zero, or a copy, is as unknown
                assert np.isinf(kernel.linear(x, np.full((2, 1), factor), 0.0, A).r).all()
                assert np.isinf(kernel.dot(x, kernel.exact(np.full((2, 1), factor)), A).r).all()
            assert np.isinf(kernel.softmax(x, True, A).r).all()
            for result in (kernel.add(x, kernel.exact(np.zeros((1, 2))), A), kernel.relu(x)):
                assert not np.isnan(result.r).any()
        assert np.isinf(kernel.relu(unknown[1]).r[0, 1])
        assert (kernel.softmax(kernel.Ball(np.array([[9e5, 0.0]]), np.full((1, 2), 1e300)), True, A).r >= 1).all()


def check_monotone(kernel) -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        x, W = ball(kernel, rng, 3, 4), numbers(rng, 4, 2)
        wider = kernel.Ball(x.m, x.r * 2 + 1e-9)
        for A in kernel.ARITHMETICS.values():
            assert (kernel.linear(wider, W, 0.0, A).r >= kernel.linear(x, W, 0.0, A).r).all()
        assert (kernel.linear(x, W, 0.0, kernel.FLOAT32).r >= kernel.linear(x, W, 0.0, kernel.REAL).r).all()
