"""The kernel passes every check, and each deliberately broken kernel fails one."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from onelayer_checker import kernel
from tests.checker.adversary import checks

SOURCE = Path(kernel.__file__).read_text()
CHECKS = dict(checks(kernel))

#: (what is broken, the code, what replaces it)
MUTANTS = [
    ("linear: no rounding of the arithmetic", "gamma(steps, A.u) * (S + R)", "0 * (S + R)"),
    (
        "linear: the length is forgotten",
        "gamma(steps, A.u) * (S + R)",
        "gamma(np.minimum(steps, 1), A.u) * (S + R)",
    ),
    ("linear: no rounding of the midpoint", "gamma(steps, U) * S", "0 * S"),
    ("linear: cancellation hides the size", "S = np.abs(x.m) @ absW", "S = np.abs(x.m @ W)"),
    ("linear: radius not propagated", "R = x.r @ absW if", "R = 0 * (x.r @ absW) if"),
    ("linear: radius propagated with signs", "R = x.r @ absW if", "R = np.abs(x.r @ W) if"),
    ("linear: no underflow", "np.where(terms > 0, lost, 0.0)", "0.0"),
    ("linear: the bias has no size", "S = S + np.abs(b)", "S = S + 0"),
    ("linear: every product is exact", "inexact.any(axis=0), adds + 1, adds", "inexact.any(axis=0), adds, adds"),
    ("linear: any small weight copies", "((W == 0) | (W == 1)).all()", "(np.abs(W) <= 1).all()"),
    ("linear: a copy has no radius", "x.r[:, where] + flushed", "0 * x.r[:, where]"),
    ("dot: one radius forgotten", "    R += product(ax, y.r)\n", ""),
    ("dot: product of radii forgotten", "R = product(x.r, (ay + y.r) * UP)", "R = product(x.r, ay * UP)"),
    ("dot: no rounding of the arithmetic", "S *= (own + model) *", "S *= own *"),
    ("dot: no rounding of the midpoint", "S *= (own + model) *", "S *= model *"),
    ("dot: no underflow", "    S += lost\n", ""),
    (
        "dot: cancellation hides the size",
        "product(x.m, y.m), product(ax, ay)",
        "product(x.m, y.m), np.abs(product(x.m, y.m))",
    ),
    ("dot: overflow is not seen", "S if 4 * largest < A.big else np.full_like(S, np.inf)", "S"),
    ("add: no rounding of the arithmetic", "U * np.abs(m) + A.u * size", "U * np.abs(m)"),
    ("add: no rounding of the midpoint", "U * np.abs(m) + A.u * size", "A.u * size"),
    ("add: a ball around zero is taken for zero", "(y.m == 0) & (y.r == 0), x.r", "(y.m == 0), x.r"),
    ("add: radii forgotten", "R = (x.r + y.r) * UP", "R = x.r * UP"),
    ("relu: zero when the midpoint is negative", "np.minimum(x.m, 0.0) + x.r", "np.where(x.m < 0, 0.0, x.r)"),
    (
        "relu: half the radius",
        "np.maximum(np.minimum(x.m, 0.0) + x.r, 0.0) * UP",
        "np.maximum(np.minimum(x.m, 0.0) + x.r, 0.0) * 0.5",
    ),
    ("softmax: radius of the scores ignored", "    L += radius\n", ""),
    ("softmax: rounding of the argument ignored", "* -(2 * U + 2 * A.roundings * A.u)", "* 0.0"),
    ("softmax: error of exp ignored", "(2 * EXP_U + A.exp_error)", "0.0"),
    ("softmax: shift of the normaliser dropped", "np.add(L, E + g, out=v)", "np.add(L, g, out=v)"),
    ("softmax: no absolute error", "lost = 8 * n * (A.tiny + TINY)", "lost = 0.0"),
    ("softmax: wide balls taken for narrow ones", "if wide.any():", "if False:"),
    ("softmax: wide balls half as wide", "p_high - p, p - p_low), 0.0)", "p_high - p, p - p_low), 0.0) * 0.5"),
    ("exp: degree 9", "TAYLOR[12::-1]", "TAYLOR[8::-1]"),
    ("exp: one word of ln 2", "x -= k * LN2_LOW", "x -= 0.0"),
    (
        "exp: a wrong coefficient",
        "tuple(1.0 / factorial(i) for i in range(14))",
        "tuple((1 + 2.0**-30 * (i == 5)) / factorial(i) for i in range(14))",
    ),
    ("exp: not zero far below", "p[t < -700.0] = 0.0", "pass"),
    ("overflow is not seen", "np.where(size * UP < A.big, r, np.inf)", "r"),
    ("gamma: half", "x * (1 + 2 * x) * UP", "x * 0.5"),
]


@pytest.mark.parametrize("name", CHECKS)
def test_the_kernel_encloses(name: str) -> None:
    CHECKS[name]()


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 26
    assert all(SOURCE.count(old) >= 1 for _, old, _ in MUTANTS)


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS, ids=[name for name, _, _ in MUTANTS])
def test_a_broken_kernel_is_caught(name: str, old: str, new: str) -> None:
    mutant = types.ModuleType("mutant")
    mutant.__file__ = kernel.__file__
    sys.modules["mutant"] = mutant  # dataclasses look their module up
    exec(compile(SOURCE.replace(old, new), f"<{name}>", "exec"), mutant.__dict__)
    for check in dict(checks(mutant)).values():
        try:
            check()
        except (AssertionError, FloatingPointError, RuntimeWarning):
            return
    pytest.fail("no check noticed")
