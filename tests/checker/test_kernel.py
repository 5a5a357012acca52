"""The kernel passes every check, and each deliberately broken kernel fails one."""

from __future__ import annotations

from pathlib import Path

import pytest

from onelayer_checker.core import balls as kernel
from onelayer_checker.core.claims import SMALL
from tests.checker import adversary, adversary_softmax, mutants

SOURCE = Path(kernel.__file__).read_text()

#: (what is broken, the code, what replaces it)
MUTANTS = [
    (
        "linear: no rounding of the arithmetic",
        "rounded = gamma(steps, U + A.u)",
        "rounded = gamma(steps, U)",
    ),
    ("linear: the length is forgotten", "gamma(steps, U + A.u)", "gamma(np.minimum(steps, 1), U + A.u)"),
    ("linear: no rounding of the midpoint", "gamma(steps, U + A.u)", "gamma(steps, A.u)"),
    (
        "linear: cancellation hides the size",
        "S = (product(ax, absW) + absb)",
        "S = (np.abs(product(x.m, W)) + absb)",
    ),
    ("linear: radius not propagated", "(product(x.r, absW) + rb)", "rb"),
    (
        "linear: radius propagated with signs",
        "(product(x.r, absW) + rb)",
        "(np.abs(product(x.r, W)) + rb)",
    ),
    ("linear: no underflow", "+ reach) + TINY", "+ reach) * 0.0"),
    ("linear: underflow does not grow with the operands", "(2 + widest + reach)", "2"),
    ("linear: underflow does not grow with the weights", "(2 + widest + reach)", "(2 + reach)"),
    ("linear: underflow does not grow with the inputs", "(2 + widest + reach)", "(2 + widest)"),
    ("linear: the bias has no size", "absW) + absb)", "absW))"),
    ("linear: the bias is not a term", "terms + present - 1", "terms - 1"),
    ("linear: the radius of the stream is forgotten", "(product(x.r, absW) + rb)", "product(x.r, absW)"),
    ("linear: a stream of unknown sign is no term", "(absb > 0) | (rb > 0)", "absb > 0"),
    ("linear: a stream alone is exact", "if radius != 0 or rb.any():", "if radius != 0:"),
    ("linear: a term of unknown sign is not counted", "live = (x.m != 0) | (x.r != 0)", "live = x.m != 0"),
    ("linear: a bias alone is never flushed", " | present & (absb - rb < 2 * A.tiny)", ""),
    ("linear: every product is exact", "- 1, 0) + inexact", "- 1, 0)"),
    ("linear: products with powers of two do not underflow", "        if small.any():\n", "        if False:\n"),
    ("linear: powers of two are not flushed", "np.minimum(ax - x.r, 1.0)", "(ax - x.r)"),
    ("linear: sums of exact products lose nothing", "loses = (steps > 0)", "loses = (terms > 0) & inexact"),
    (
        "linear: zero times infinity is zero",
        "guarded(r, (S + R) * np.where(reach < np.inf, 2.0, np.inf), A)",
        "np.where(terms > 0, guarded(r, 2 * (S + R), A), 0.0)",
    ),
    ("linear: nothing is rounded", "if steps.any() or not calm:", "if False:"),
    ("dot: one radius forgotten", " + (1 + model) * inflate * y.r)", ")"),
    ("dot: the other radius forgotten", "r += product(x.r, (1 + model) * inflate * wy) + lost", "r += lost"),
    ("dot: product of radii forgotten", "(1 + model) * inflate * wy)", "(1 + model) * inflate * ay)"),
    ("dot: no rounding of the arithmetic", "(own + model) * inflate * ay", "own * inflate * ay"),
    ("dot: no rounding of the midpoint", "(own + model) * inflate * ay", "model * inflate * ay"),
    ("dot: no underflow", "* inflate * wy) + lost", "* inflate * wy)"),
    ("dot: underflow does not grow with the operands", "(2 + reach) + TINY", "2 + TINY"),
    ("dot: underflow is taken for zero", "product((ax + x.r > 0) * 1.0, (wy > 0) * 1.0)", "product(ax, ay)"),
    ("dot: sums that are divided at the end do not overflow", "(k if extra else 1)", "1"),
    ("dot: zero times infinity is zero", "< A.big and model < np.inf", "< A.big or True"),
    (
        "dot: cancellation hides the size",
        "r = product(ax, (own + model) * inflate * ay + (1 + model) * inflate * y.r)",
        "r = (own + model) * inflate * np.abs(product(x.m, y.m)) + product(ax, (1 + model) * inflate * y.r)",
    ),
    ("dot: overflow is not seen", "max(4 * largest, 8 * lost) < A.big and", "True and"),
    ("add: no rounding of the arithmetic", "size * (U + A.u)", "size * U"),
    ("add: no rounding of the midpoint", "size * (U + A.u)", "size * A.u"),
    ("add: a ball around zero is taken for zero", "((y.m == 0) & (y.r == 0))", "(y.m == 0)"),
    ("add: zero flushes nothing", "kept = zero & ((m == 0) | (size - R >= 2 * A.tiny))", "kept = zero"),
    ("add: radii forgotten", "x.m + y.m, x.r + y.r", "x.m + y.m, x.r + 0.0"),
    ("relu: zero when the midpoint is negative", "np.minimum(x.m, 0.0) + x.r", "np.where(x.m < 0, 0.0, x.r)"),
    ("relu: half the radius", "x.r, 0.0) * UP", "x.r, 0.0) * 0.5"),
    ("relu: NaN is a radius", "r if r.max() < np.inf else np.where(r < np.inf, r, np.inf)", "r"),
    ("softmax: radius of the scores ignored", "A.roundings * A.u) + radius", "A.roundings * A.u)"),
    ("softmax: rounding of the argument ignored", "* -(2 * U + 2 * A.roundings * A.u)", "* 0.0"),
    ("softmax: error of exp ignored", "(2 * EXP_U + A.exp_error)", "0.0"),
    ("softmax: shift of the normaliser dropped", "L + (E + g), 8 * n", "L + g, 8 * n"),
    ("softmax: no absolute error", "8 * n * (A.tiny + TINY)", "0.0"),
    (
        "softmax: balls are never wider than 10^5",
        "    t = np.where(visible, t, -1e6)\n",
        "    L = np.minimum(L, 1e5)\n",
    ),
    ("softmax: an unknown score is a number", "~np.isfinite(E + g)[..., 0]", "r > 2"),
    (
        "softmax: any largest score has e^0",
        "    if n <= A.whole and not largest.all():\n        L[(t == 0) & (largest == 0)]",
        "    if True:\n        L[t == 0]",
    ),
    ("softmax: known scores are all equal", "(t == 0) & (largest == 0)", "(t <= 0) & (largest == 0)"),
    ("softmax: no score has e^0", "(t == 0) & (largest == 0)", "(t == 1) & (largest == 0)"),
    ("softmax: every sum is one of ones", "np.where(E > 0,", "np.where(E > 2,"),
    ("softmax: wide balls taken for narrow ones", "if not v.max() <= 1:", "if False:"),
    ("softmax: wide balls half as wide", "p_high - p, p - p_low), 0.0)", "p_high - p, p - p_low), 0.0) * 0.5"),
    ("exp: degree 9", "TAYLOR[12::-1]", "TAYLOR[8::-1]"),
    ("exp: one word of ln 2", "x -= k * LN2_LOW", "x -= 0.0"),
    (
        "exp: a wrong coefficient",
        "tuple(1.0 / factorial(i) for i in range(14))",
        "tuple((1 + 2.0**-30 * (i == 5)) / factorial(i) for i in range(14))",
    ),
    ("exp: not zero far below", "p[t < -700.0] = 0.0", "pass"),
    ("exp: far below is not looked for", "if not t.min(initial=0.0) >= -700.0:", "if False:"),
    ("linear: huge operands are taken for calm", "calm = most < A.big and", "calm = True or most < A.big and"),
    ("overflow is not seen", "np.where((size * UP < A.big) & (r < A.big / 8), r, np.inf)", "r"),
    ("tokens: nothing is rounded", "(r + size * A.u) * UP + A.tiny", "r"),
    ("tokens: the radius is not rounded", "(r + size * A.u) * UP", "(r + 0.5 * np.abs(x) * A.u) * UP"),
    ("tokens: one end decides", "for y in (radius, -radius):", "for y in (radius,):"),
    ("tokens: short radii are not added", "(s - x == y) & (s - y == x)", "(s - y == x)"),
    ("tokens: short tokens are not added", "(s - x == y) & (s - y == x)", "(s - x == y)"),
    (
        "tokens: every float64 is a float32",
        "(s.astype(np.float32) == s) & (A.whole >= 2**24)",
        "(s == s)",
    ),
    ("tokens: ends are always numbers", "between &= (s - x == y)", "between |= (s - x == y)"),
    ("tokens: none overflows", "A.u) * UP + A.tiny), size, A)", "A.u) * UP + A.tiny), 0 * size, A)"),
    ("arithmetics: operations are rounded once", "TWICE = 1 + 2.0**-11", "TWICE = 1"),
    ("gamma: half", "x * (1 + 2 * x) * UP", "x * 0.5"),
]


def checks(kernel):
    """All checks of a kernel, as calls without arguments, the quick ones first, and where most is rounded."""
    arithmetics = [kernel.ARITHMETICS[name] for name in ("float32", "float64", "real")]
    assert {A.name for A in arithmetics} | set(SMALL) == set(kernel.ARITHMETICS)
    for check in (
        adversary.check_the_order_attack,
        adversary.check_copies_and_zeros,
        adversary.check_monotone,
        adversary_softmax.check_exp,
        adversary.check_two_roundings,
    ):
        yield check.__name__, lambda check=check: check(kernel)
    for A in arithmetics:
        yield f"overflow {A.name}", lambda A=A: adversary.check_overflow_and_nan(kernel, A)
        for check in (adversary_softmax.check_equal_logits, adversary_softmax.check_averages):
            yield f"{check.__name__} {A.name}", lambda A=A, check=check: check(kernel, A)
        for sign in adversary.SIGNS:
            yield f"sums {A.name} {sign}", lambda A=A, sign=sign: adversary.check_sums_and_products(kernel, A, sign)
    yield "tokens", lambda: adversary.check_around(kernel)
    for A in arithmetics:
        yield f"dot: products {A.name}", lambda A=A: adversary.check_products(kernel, A)
        yield f"linear: flushing {A.name}", lambda A=A: adversary.check_flushing(kernel, A)
        for wide in (False, True):
            yield (
                f"softmax {A.name} {wide}",
                lambda A=A, wide=wide: adversary_softmax.check_softmax(kernel, A, wide),
            )
        for sign in adversary.SIGNS:
            yield f"linear {A.name} {sign}", lambda A=A, sign=sign: adversary.check_linear_maps(kernel, A, sign)


CHECKS = dict(checks(kernel))


@pytest.mark.parametrize("name", CHECKS)
def test_the_kernel_encloses(name: str) -> None:
    CHECKS[name]()


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 50
    assert all(SOURCE.count(old) >= 1 for _, old, _ in MUTANTS)


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS, ids=[name for name, _, _ in MUTANTS])
def test_a_broken_kernel_is_caught(name: str, old: str, new: str, monkeypatch) -> None:
    mutant = mutants.installed(monkeypatch, {"kernel": SOURCE.replace(old, new)}, name).kernel
    operation = name.partition(":")[0]  # the checks named after it are most likely to notice
    in_order = sorted(checks(mutant), key=lambda named: operation not in named[0])
    checked = ((lambda _, check=check: check()) for _, check in in_order)
    mutants.assert_caught(checked, mutant, FloatingPointError)
