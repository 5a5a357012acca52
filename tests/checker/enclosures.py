"""Checks of intervals and slopes against Arb at 300 bits: random programs on random boxes, each operation alone.

Each takes the module it checks, so that deliberately broken ones can be checked too.
"""

from __future__ import annotations

import math

import flint
import numpy as np

BITS = 300
ONE_ARGUMENT = ("neg", "abs", "sqrt", "exp", "sin", "cos")
TWO_ARGUMENTS = ("add", "sub", "mul", "div", "min", "max", "hypot")
ARB = {
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": lambda a: a.sqrt(),
    "exp": lambda a: a.exp(),
    "sin": lambda a: a.sin(),
    "cos": lambda a: a.cos(),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "min": lambda a, b: a.min(b),
    "max": lambda a, b: a.max(b),
    "hypot": lambda a, b: (a * a + b * b).sqrt(),
}


def program(targets, lines, m: int, outputs=None):
    """A program of m tokens of one component; its last line is its output."""
    lines = [["const", float(line[1]).hex()] if line[0] == "const" else list(line) for line in lines]
    outputs = [len(lines) - 1] if outputs is None else outputs
    entry = {"n": m, "d": 1, "per": "sequence", "components": len(outputs), "lines": lines, "outputs": outputs}
    return targets.read_program(entry, "target")


def exactly(p, x) -> list:
    """The outputs at a point as Arb balls; not finite where the function is not defined there."""
    values = []
    for op, *arguments in p.lines:
        if op == "x":
            values.append(flint.arb(float(x[arguments[0] * p.d + arguments[1]])))
        elif op == "const":
            values.append(flint.arb(arguments[0]))
        else:
            values.append(ARB[op](*(values[i] for i in arguments)))
    return [values[k] for k in p.outputs]


def random_program(targets, rng, m: int):
    """Variables and constants first, then operations that prefer recent lines."""
    lines = [("x", j, 0) for j in range(m)]
    lines += [("const", float(c)) for c in rng.choice([0.5, 1.0, -1.0, 2.0, 1 / 3, math.pi, 0.1, 7.3], 2)]
    while len(lines) < m + 2 + rng.integers(1, 12):
        near = len(lines) - 1 - int(min(rng.exponential(2), len(lines) - 1))
        if rng.random() < 0.45:
            lines.append((str(rng.choice(ONE_ARGUMENT)), near))
        else:
            lines.append((str(rng.choice(TWO_ARGUMENTS)), near, int(rng.integers(len(lines)))))
    return program(targets, lines, m, [len(lines) - 1, int(rng.integers(m, len(lines)))])


def random_boxes(rng, B: int, m: int):
    """Wide, narrow and of no width; some ends at 0 and at whole numbers, where kinks are."""
    scale = 10.0 ** rng.uniform(-2, 1)
    a = rng.uniform(-1, 1, (B, m)) * scale
    width = scale * 10.0 ** rng.uniform(-9, 0.3, (B, m)) * (rng.random((B, 1)) < 0.7)
    a = np.where(rng.random((B, m)) < 0.2, np.round(a), a)
    b = a + width
    return np.where((a < 0) & (b > 0) & (rng.random((B, m)) < 0.3), 0.0, a), b


def point(rng, low, high):
    """A corner, something inside, or a face."""
    t = np.where(rng.random(len(low)) < 0.5, rng.random(len(low)), rng.integers(0, 2, len(low)))
    return np.clip(low * (1 - t) + high * t, low, high)


def inside(value, low, high) -> bool:
    """Whether a value may lie in [low, high]; a finite interval demands a function that is defined."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return low == -np.inf and high == np.inf
    if not value.is_finite():
        return False
    return not (value > flint.arb(float(high)) or value < flint.arb(float(low)))


def check_random_programs(targets, rounds: int = 120) -> None:
    """Values of `enclose` and `bounds` at points, and differences between points."""
    rng = np.random.default_rng(11)
    flint.ctx.prec = BITS
    finite = narrow = 0
    for _ in range(rounds):
        m = int(rng.integers(1, 4))
        p = random_program(targets, rng, m)
        low, high = random_boxes(rng, 12, m)
        found, (b_low, b_high) = targets.enclose(p, low, high, True), targets.bounds(p, low, high)
        plain = targets.enclose(p, low, high, False)
        assert np.array_equal(plain.low, found.low)
        assert np.array_equal(plain.high, found.high)
        for i in range(len(low)):
            a, b = point(rng, low[i], high[i]), point(rng, low[i], high[i])
            at_a, at_b = exactly(p, a), exactly(p, b)
            for k in range(len(p.outputs)):
                for value in (at_a[k], at_b[k]):
                    assert inside(value, found.low[i, k], found.high[i, k]), (p.lines, low[i], high[i])
                    known = np.isfinite(b_low[i, k])
                    assert not known or inside(value, b_low[i, k], b_high[i, k]), (p.lines, low[i], high[i])
                if np.isfinite(found.low[i, k]):
                    finite += 1
                    narrow += b_high[i, k] - b_low[i, k] <= 100 * np.ptp([low[i], high[i]]) + 1e-9
                    _check_difference(at_b[k] - at_a[k], a, b, found.slope_low[i, k], found.slope_high[i, k])
    assert finite > rounds * 6
    assert narrow > finite / 2


def _check_difference(change, a, b, low, high) -> None:
    """change = g . (b - a) for some g within [low, high]."""
    least = most = flint.arb(0)
    for v in range(len(a)):
        step = flint.arb(float(b[v])) - flint.arb(float(a[v]))
        if step == 0:
            continue
        assert low[v] <= high[v]
        if not (np.isfinite(low[v]) and np.isfinite(high[v])):
            return
        ends = [step * flint.arb(float(low[v])), step * flint.arb(float(high[v]))]
        least, most = least + ends[0].min(ends[1]), most + ends[0].max(ends[1])
    assert not change > most
    assert not change < least


SPECIAL = [
    0.0,
    5e-324,
    2.0**-1060,
    1e-300,
    1e-160,
    1e-8,
    0.5,
    1.0,
    math.pi / 2,
    math.pi,
    10.0,
    700.0,
    999.0,
    1001.0,
]
SPECIAL += [1e154, 1e200, 1.7e308]


def check_each_operation(targets) -> None:
    """Every operation on intervals between numbers of all sizes, and on single numbers, where rounding counts."""
    rng = np.random.default_rng(12)
    flint.ctx.prec = BITS
    ends = np.array(sorted({*SPECIAL, *(-x for x in SPECIAL)}))
    for op in ONE_ARGUMENT + TWO_ARGUMENTS:
        count = 1 if op in ONE_ARGUMENT else 2
        p = program(targets, [*(("x", j, 0) for j in range(count)), (op, *range(count))], count)
        boxes = np.sort(rng.choice(ends, (400, count, 2)), axis=2)
        boxes[:100] += rng.uniform(-1, 1, (100, count, 1))
        boxes[:150, :, 1] = boxes[:150, :, 0]
        boxes[350:] = np.sort(rng.uniform(-8, 8, (50, count, 2)), axis=2)
        _check_points(targets, p, rng, boxes[:, :, 0], boxes[:, :, 1])
        x = rng.uniform(-2, 2, (300, count)) ** 7
        _check_points(targets, p, rng, x, x)


def check_squares(targets) -> None:
    """A product of a line with itself is a square, nowhere negative; its slopes are twice the line."""
    p = program(targets, [("x", 0, 0), ("mul", 0, 0), ("sqrt", 1)], 1, [1, 2])
    found = targets.enclose(p, np.array([[-1.0], [2.0], [-3.0]]), np.array([[2.0], [3.0], [-1.0]]), True)
    assert (found.low[:, 0] >= 0).all()
    assert np.allclose(found.low[:, 1], [0, 2, 1])
    assert np.allclose(found.slope_low[:, 0, 0], [-2, 4, -6])
    assert np.allclose(found.slope_high[:, 0, 0], [4, 6, -2])
    x = np.random.default_rng(3).standard_normal((200, 1)) ** 5
    _check_points(targets, p, np.random.default_rng(4), x, x)


def _check_points(targets, p, rng, low, high) -> None:
    found = targets.enclose(p, low, high, True)
    b_low, b_high = targets.bounds(p, low, high)
    for i in range(len(low)):
        points = [low[i], high[i], point(rng, low[i], high[i])]
        values = [exactly(p, x) for x in points]
        for k in range(len(p.outputs)):
            assert not np.isnan([found.low[i, k], found.high[i, k], b_low[i, k], b_high[i, k]]).any()
            for value in values:
                assert inside(value[k], found.low[i, k], found.high[i, k]), (p.lines, low[i], high[i])
            if np.isfinite(found.low[i, k]):
                assert all(inside(value[k], b_low[i, k], b_high[i, k]) for value in values), (p.lines, low[i])
                for first, second in ((0, 1), (0, 2), (1, 2)):
                    change = values[second][k] - values[first][k]
                    _check_difference(
                        change, points[first], points[second], found.slope_low[i, k], found.slope_high[i, k]
                    )


def check_waves(targets) -> None:
    """sin and cos near their extremes and zeros, and across several periods, against Arb at many points."""
    rng = np.random.default_rng(13)
    flint.ctx.prec = BITS
    quarter = np.arange(-630, 631) * (math.pi / 2)
    centre = rng.choice(quarter, 600) + rng.choice([0.0, 1e-15, -1e-12, 1e-9, -1e-8, 1e-3, 0.3], 600)
    low = np.where(rng.random(600) < 0.5, centre - rng.choice([0, 1e-9, 1e-3, 1.0, 2.9, 6.0], 600), centre)
    high = np.maximum(low, centre + rng.choice([0, 1e-9, 1e-3, 1.0, 2.9], 600))
    far = 10.0 ** rng.uniform(3.1, 15, (50, 1)) * rng.choice([-1, 1], (50, 1))
    for op in ("sin", "cos"):
        p = program(targets, [("x", 0, 0), (op, 0)], 1)
        found = targets.enclose(p, far, far, True)
        assert (np.abs([found.low, found.slope_low[..., 0]]) == 1).all()
        assert (np.abs([found.high, found.slope_high[..., 0]]) == 1).all()
        found = targets.enclose(p, low[:, None], high[:, None], True)
        for i in range(600):
            inner = quarter[(quarter >= low[i]) & (quarter <= high[i])][:6]
            points = np.concatenate([[low[i], high[i]], inner, rng.uniform(low[i], high[i], 4)])
            values = [ARB[op](flint.arb(float(x))) for x in points]
            for x, value in zip(points, values, strict=True):
                assert inside(value, found.low[i, 0], found.high[i, 0]), (op, low[i], high[i], x)
                derivative = flint.arb(float(x)).cos() if op == "sin" else -flint.arb(float(x)).sin()
                assert inside(derivative, found.slope_low[i, 0, 0], found.slope_high[i, 0, 0]), (op, low[i], x)
            grid = np.sin(np.linspace(low[i], high[i], 200) + (op == "cos") * math.pi / 2)
            assert found.high[i, 0] - found.low[i, 0] <= np.ptp(grid) + 1e-3


def check_undefined(targets) -> None:
    """What may be undefined somewhere is unknown, and so is all that uses it, even inside sin or min."""
    one = [("x", 0, 0), ("const", 1.0), ("const", 0.0)]
    for lines in (
        [("div", 1, 0), ("sin", 3)],
        [("div", 1, 2), ("abs", 3), ("min", 4, 1)],
        [("sqrt", 0), ("min", 3, 1), ("max", 4, 2)],
        [("div", 1, 0), ("exp", 3), ("add", 4, 1), ("div", 1, 5)],
        [("div", 1, 2), ("cos", 3), ("add", 4, 0)],
        [("div", 2, 0), ("hypot", 3, 1), ("div", 1, 4)],
    ):
        p = program(targets, one + lines, 1)
        found = targets.enclose(p, np.array([[-1.0]]), np.array([[1.0]]), True)
        assert found.low[0, 0] == found.slope_low[0, 0, 0] == -np.inf
        assert found.high[0, 0] == found.slope_high[0, 0, 0] == np.inf
        b_low, b_high = targets.bounds(p, np.array([[-1.0]]), np.array([[1.0]]))
        assert b_low[0, 0] == -np.inf
        assert b_high[0, 0] == np.inf


def check_kinks(targets) -> None:
    """Slopes of abs, min, max and hypot: both sides at a kink, one side where it is certain."""
    kinks = [("x", 0, 0), ("x", 1, 0), ("abs", 0), ("min", 0, 1), ("max", 0, 1), ("hypot", 0, 1)]
    p = program(targets, kinks, 2, [2, 3, 4, 5])
    low = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, -1.0], [3.0, 4.0]])
    high = np.array([[1.0, 0.5], [1.0, 1.0], [2.0, 1.0], [3.0, 4.0]])
    found = targets.enclose(p, low, high, True)
    first = np.stack([found.slope_low[:, :, 0], found.slope_high[:, :, 0]], axis=2)
    wanted = [
        [[-1, 1], [0, 1], [0, 1], [-1, 1]],
        [[1, 1], [0, 1], [0, 1], [-1, 1]],
        [[1, 1], [0, 0], [1, 1], [1 / math.sqrt(5), 1]],
        [[1, 1], [1, 1], [0, 0], [0.6, 0.6]],
    ]
    assert np.allclose(first, wanted, rtol=1e-14, atol=1e-14)
    assert (found.slope_low[3] <= [[1, 0], [1, 0], [0, 1], [0.6, 0.8]]).all()
    assert (found.slope_high[3] >= [[1, 0], [1, 0], [0, 1], [0.6, 0.8]]).all()


def check_tight(targets) -> None:
    """Where nothing but rounding happens an enclosure is a few units wide; bounds are second-order accurate."""
    x = np.random.default_rng(5).uniform(0.5, 2, (200, 2))
    for op in ONE_ARGUMENT + TWO_ARGUMENTS:
        count = 1 if op in ONE_ARGUMENT else 2
        p = program(targets, [("x", 0, 0), ("x", 1, 0), (op, *range(count))], 2)
        found = targets.enclose(p, x, x, True)
        slack = 2.0**-44 if op in ("exp", "sin", "cos") else 2.0**-48
        assert (found.high - found.low <= slack * np.maximum(1, np.abs(found.low))).all(), op
        assert (found.slope_high - found.slope_low <= 2.0**-44 * np.maximum(1, np.abs(found.slope_low))).all(), op
    p = program(targets, [("x", 0, 0), ("const", 1.0), ("sub", 1, 0), ("mul", 0, 2)], 1)
    for h in (1e-2, 1e-3):
        low, high = targets.bounds(p, np.array([[0.3]]), np.array([[0.3 + h]]))
        assert high[0, 0] - low[0, 0] <= 0.4 * h + 3 * h * h


CHECKS = (
    check_kinks,
    check_undefined,
    check_squares,
    check_tight,
    check_each_operation,
    check_waves,
    check_random_programs,
)
