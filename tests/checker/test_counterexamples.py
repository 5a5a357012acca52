"""False claims are not verified; and each guard that stops one is needed: without it the claim would pass."""

from __future__ import annotations

import shutil
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import onelayer_checker
from attacks.counterexamples import counterexamples
from attacks.functions import false_claims
from attacks.searched import searched_claims
from onelayer_checker.core.balls import Ball, exact
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.exactness import whole_products
from onelayer_checker.core.judge import Samples
from onelayer_checker.core.samples import Data
from onelayer_checker.core.separated import _separated
from tests.checker.asked import assert_not_verified
from tests.checker.large import ARITHMETICS
from tests.processes import CHECKER, run_python

CASES = {case.name: case for case in (*counterexamples(), *searched_claims(), *false_claims())}
SOURCE = Path(onelayer_checker.__file__).parent

CLIP = ("core/balls.py", "    t = np.where(visible, t, -1e6)\n", "    L = np.minimum(L, 1e5)\n")
UNKNOWN = ("core/balls.py", "    r[~np.isfinite(E + g)[..., 0]] = np.inf  # a logit is unknown\n", "")
LATER = "{} = __import__('onelayer_checker.core.balls').core.balls.add({}, Ball({}, 0 * {}), A)\n"
LOST = ("core/balls.py", "lost = 4 * (n + 1) * normal * (2 + widest + reach)", "lost = 8 * (n + 1) * normal")
APART = (
    "core/graph.py",
    'return linear(aside, self.tensors["attention.W_O"].reshape(-1, h.m.shape[1]), h, A)',
    'heads = linear(aside, self.tensors["attention.W_O"].reshape(-1, h.m.shape[1]), 0.0, A)\n        '
    "return __import__('onelayer_checker.core.balls').core.balls.add(h, heads, A)",
)
BIAS = ("core/balls.py", " | present & (absb - rb < 2 * A.tiny)", "")
LOW = ("search/steps.py", "(low > 0) & (low < A.tiny)", "low > np.inf")
#: Without this, the dense evaluation would notice.
NOT_COMPARED = ("core/judge.py", "    judge.compare_ways(samples, claim.A)\n", "")
DEFINED = (
    "functions/cells.py",
    "if isinstance(target, Program) and (where := open_box",
    "if (where := False and open_box",
)
FINITE = ("search/builder.py", "if not np.isfinite(value.r).all():", "if False:")
CALM = ("core/graph.py", "self.unseeing(last) and stream.is_calm", "self.unseeing(last)")
SIZE = (
    "functions/hats.py",
    "size = (float(np.abs(W).max()) * H + float(np.abs(b).max())) * UP",
    "size = float(np.abs(W * H + b).max())",
)
#: The counterexample that would pass, and what must be broken for it.
MUTANTS = {
    "logits that cancel": [CLIP],
    "coordinates nearer": [CLIP],
    "a box of logits": [CLIP],
    "logits that overflow": [CLIP, UNKNOWN, ("core/balls.py", "wide = (v > 1)", "wide = ~(v <= 1)")],
    "a query that begins with its bias": [
        (
            "core/graph.py",
            "found = linear(self.h.reshape(N * n, w), columns, bias, self.A)",
            "A, read = self.A, linear(self.h.reshape(N * n, w), columns, 0.0, self.A)\n        "
            + LATER.format("read", "read", "bias", "bias")
            + "        found = read",
        )
    ],
    "a block that begins with its bias": [
        (
            "core/layers.py",
            "y = linear(split, W, bias, A)\n",
            "y = linear(split, W, 0.0, A)\n            " + LATER.format("y", "y", "bias", "bias"),
        )
    ],
    "heads that are added one by one": [APART],
    "components that are added one by one": [APART],
    "zero times infinity": [
        (
            "core/balls.py",
            "guarded(r, (S + R) * np.where(reach < np.inf, 2.0, np.inf), A)",
            "np.where(terms > 0, guarded(r, 2 * (S + R), A), 0.0)",
        )
    ],
    "averages normalised late": [("core/averages.py", "y.widest * k * k", "y.widest * k")],
    "a subnormal weight in a block": [LOST],
    "a subnormal token in a block": [LOST],
    "a subnormal bias": [BIAS],
    "a subnormal slope": [("search/cells.py", "parts = np.concatenate([s, np.abs(x)])", "parts = np.abs(x)")],
    "a subnormal value": [("search/parts.py", "one = one & ((size == 0) | normal(value, A))", "pass")],
    "a negative subnormal token on a plateau": [
        ("search/steps.py", "(high < 0) & (high > -A.tiny)", "high > np.inf")
    ],
    "a positive subnormal token on a plateau": [LOW],
    "a subnormal coordinate": [BIAS, LOW],
    "whole numbers beyond the mantissa": [
        ("core/exactness.py", "(size + np.abs(m) <= 2 * A.whole)", "(size + np.abs(m) <= 8 * A.whole)")
    ],
    "two terms": [("core/exactness.py", "one = (terms <= 1)", "one = (terms <= 2)")],
    "a product that rounds": [("core/exactness.py", "one = (terms <= 1) & (rounds == 0)", "one = terms <= 1")],
    "a product below all floats": [("core/exactness.py", "4 * (A.tiny + NORMAL)", "4 * A.tiny")],
    "an average near a whole number": [("core/exactness.py", "_count(~point | (x.m", "_count((x.m")],
    "a row and a bias": [("search/parts.py", "one & (count <= 1)", "one & (count <= 2)")],
    "a row and a bias beyond the mantissa": [
        ("search/parts.py", "fits = sums_fit(S, A, m)", "fits = S < np.inf"),
        NOT_COMPARED,
    ],
    "a unit that is always on": [
        ("search/cells.py", " & (edge < 2.0**900)", ""),
        ("search/cells.py", "np.append(at[i : j + 1][slope[i : j + 1] != 0], 0)", "np.zeros(1, int)"),
        NOT_COMPARED,
    ],
    "a cell that is written twice": [
        ("search/cells.py", "            certain[rows[on & (cell[rows] < len(self.on_low))]] = False\n", ""),
        NOT_COMPARED,
    ],
    "a ramp that reaches into a plateau": [
        ("search/cells.py", "            certain[rows[~off & ~on]] = False\n", ""),
        NOT_COMPARED,
    ],
    "a coordinate that no cell reads": [
        ("search/parts.py", "if not ball.r.max(initial=0.0) < np.inf:", "if False:"),
        NOT_COMPARED,
    ],
    "many units along one coordinate": [
        ("search/cells.py", "self.largest, self.units, A,", "self.largest, 2 * low.shape[1], A,")
    ],
    "a carried product below all floats": [
        ("search/parts.py", "normal(x.m, A)[:, :, None] & normal(W, A) & normal(terms, A)", "True")
    ],
    "a subnormal weight of a carried product": [("search/parts.py", " & normal(W, A)", "")],
    "a subnormal operand of a carried product": [BIAS, ("search/parts.py", "normal(x.m, A)[:, :, None] & ", "")],
    "two rows and a bias beyond the mantissa": [
        ("core/exactness.py", "(size < REAL.whole)", "(size <= REAL.whole)")
    ],
    "a radius below all floats": [("core/balls.py", "        small |= (x.r > 0)", "        small |= (x.r < 0)")],
    "units that overflow": [("search/cells.py", "self.largest, self.units, A,", "self.largest, 1, A,")],
    "a pole between the cells": [DEFINED],
    "a root of negative numbers between the cells": [DEFINED],
    "a fraction of a unit that is on": [("search/sums.py", "(weight, bias, *few)", "(weight, bias)")],
    "units of the second block": [
        ("search/builder.py", "(part.slot, weights[part.units])", "(part.slot, weights)"),
        NOT_COMPARED,
    ],
    "a gate of many steps": [
        ("search/operations.py", "sum(r.terms for r in self.sums.rows)", "len(self.sums.rows)")
    ],
    "a gate of many families": [("search/builder.py", " if prod(by.values()) < 1 << 62 else []", ""), NOT_COMPARED],
    "a gate that one choice feeds twice": [
        ("search/operations.py", "for pivot in same:", "for pivot in same[:1]:"),
        NOT_COMPARED,
    ],
    "a layer whose table overflows": [FINITE],
    "a diagonal layer whose table overflows": [FINITE],
    "a threshold below all floats": [("search/steps.py", "faint = 8 * (A.tiny + NORMAL)", "faint = 8 * A.tiny")],
    "a step in two rows": [
        ("search/plan.py", "free[i:j], by = False, self.name()", "by = self.name()"),
        NOT_COMPARED,
    ],
    "zero times an infinite K": [CALM],
    "zero times an infinite Q": [CALM],
    "powers below all floats": [("functions/cells.py", "    x = np.maximum(x, 2.0 ** -(FAINT // p))\n", "")],
    "overflow between cells": [("functions/cells.py", "claim.A.u > 0 and overflows(", "False and overflows(")],
    "cells that are not stored": [("functions/cells.py", "if count == len(centres) ** (n * d):", "if True:")],
    "an answer of many small terms": [("functions/cells.py", " + 2 * gamma(terms, U)", "")],
    "a token between two numbers": [("core/graph.py", "around(x, radius, A)", "Ball(x, np.full_like(x, radius))")],
    "a token that is rounded twice": [
        ("functions/rounding.py", "guarded(size * (A.u * UP) + A.tiny, size, A)", "np.zeros_like(x.m)")
    ],
    "tokens that overflow": [
        ("functions/rounding.py", "guarded(size * (A.u * UP) + A.tiny, size, A)", "size * (A.u * UP) + A.tiny")
    ],
    "a cell that overflows": [
        ("core/balls.py", "Ball(x, guarded(np.where(between,", "Ball(x, (lambda r, *_: r)(np.where(between,")
    ],
    "answers that cancel": [SIZE],
    "values that the checker rounds": [SIZE],
    "a bad vertex of the last simplex": [
        ("functions/simplices.py", "break  # the other", "return worst  # the other")
    ],
    "a subnormal scale": [("functions/hats.py", "small * (2 + scale + largest)", "small * (2 + scale)")],
    "a channel that nobody reads": [("functions/hats.py", "if not 4 * n * (", "if False and not 4 * n * (")],
    "answers that overflow": [("functions/hats.py", " and 4 * size < A.big", "")],
    "a grid that no float reaches": [
        ("functions/hats.py", " or not 2.0**-900 <= found.scale <= 2.0**900", ""),
        (
            "functions/simplices.py",
            "~((low > box[1]) | (high < box[0])).any(axis=1)",
            "((low <= box[1]) & (high >= box[0])).all(axis=1)",
        ),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_false_claim_is_not_verified(tmp_path, name) -> None:
    assert_not_verified(CASES[name].bundle.write(tmp_path))


def test_every_counterexample_has_its_mutant() -> None:
    assert set(MUTANTS) == set(CASES)
    assert len(CASES) >= 15


#: The checker of the folder that is named first.
ANOTHER_CHECKER = """
import runpy, sys
for name in [name for name in sys.modules if name.partition(".")[0] == "onelayer_checker"]:
    del sys.modules[name]
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("onelayer_checker", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("name", MUTANTS)
def test_without_its_guard_it_would_be(tmp_path, name) -> None:
    shutil.copytree(SOURCE, tmp_path / "mutant" / "onelayer_checker")
    for file, old, new in MUTANTS[name]:
        path = tmp_path / "mutant" / "onelayer_checker" / file
        text = path.read_text()
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new))
    done = run_python(ANOTHER_CHECKER, tmp_path / "mutant", CASES[name].bundle.write(tmp_path / "folder"))
    assert done.stdout.splitlines()[-1:] == ["VERIFIED"], done


@pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)
def test_whole_numbers_are_exact_only_below_the_limit(A) -> None:
    most, ones = A.whole, np.ones((2, 1))
    taken = whole_products(exact(np.array([[most * 0.75, 3]])), ones, np.full((1, 1), 2.0), A)
    assert taken.m.tolist() == [[most * 0.75 + 5]]
    assert taken.r.tolist() == [[0]]
    for x in ([[most, 1]], [[most + 2, -2]], [[0.5, 0.5]], [[np.inf, 1]], [[np.nan, 1]]):
        assert whole_products(exact(np.array(x)), ones, np.zeros((1, 1)), A) is None
    unknown = Ball(np.ones((1, 2)), np.array([[0, 2.0**-60]]))
    assert whole_products(unknown, ones, np.zeros((1, 1)), A) is None


def test_separation_is_never_overstated() -> None:
    """Gaps within a few last bits of delta, in one coordinate and in two, against exact rationals."""
    rng, proved = np.random.default_rng(3), 0
    for _ in range(2000):
        count, c, delta = int(rng.integers(2, 6)), int(rng.integers(1, 3)), float(rng.uniform(0.1, 8))
        m = (
            rng.integers(0, 4, (count, c)) * delta * (1 + rng.integers(-3, 4, (count, c)) * 2.0**-52)
            + rng.uniform()
        )
        r = m * 2.0**-53 * rng.integers(0, 3, (count, c)) * rng.integers(0, 2)
        delta *= 1 - int(rng.integers(0, 12)) * 2.0**-52
        claim = Claim("separated", "real", "token", {"r": 1e9, "delta": delta})
        data = Data(rng.normal(size=(count, 1, 1)), np.ones(count, int), np.zeros((count, 1)), np.arange(count))
        samples = Samples(np.arange(count), np.zeros(count, int), Ball(m, r))
        network = SimpleNamespace(tensors={})
        judge = SimpleNamespace(network=network, data=data, samples=lambda *_, s=samples: s, has=lambda *_: False)
        if _separated(judge, claim).outcome != "proved":
            continue
        proved += 1
        exact_m, exact_r = ([[Fraction(x) for x in row] for row in a.tolist()] for a in (m, r))
        for a, b in combinations(range(count), 2):
            gaps = (abs(exact_m[a][k] - exact_m[b][k]) - exact_r[a][k] - exact_r[b][k] for k in range(c))
            assert max(gaps) >= Fraction(delta)
    assert proved > 100


def test_usage_errors_are_not_verdicts(tmp_path) -> None:
    for arguments in ([], [tmp_path, "--engine", "abacus"], [tmp_path, "--jobs", "0"]):
        done = run_python(CHECKER, *arguments)
        assert done.returncode == 64
        assert "usage:" in done.stderr
