"""Branch and bound holds against Arb and hill climbing, broken versions are caught, verdicts say what they mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network, build
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.samples import read_data
from onelayer_checker.functions import branch, rounding, slopes
from tests.checker import branching, mutants

MODULES = SimpleNamespace(slopes=slopes, rounding=rounding, branch=branch)
SOURCES = {name: Path(module.__file__).read_text() for name, module in vars(MODULES).items()}

#: (module, what is broken, the code, what replaces it)
MUTANTS = [
    ("slopes", "kinks are nowhere", "np.where(off, 0.0, 0.5))", "np.where(off, 0.0, 1.0))"),
    ("slopes", "a kink moves no slope", "np.where(on | off, 0.0, 0.5)", "np.where(on | off, 0.0, 0.0)"),
    (
        "slopes",
        "a unit that is off is on",
        "np.where(on, 1.0, np.where(off, 0.0,",
        "np.where(on, 1.0, np.where(off, 1.0,",
    ),
    ("slopes", "signs are those of the centre", "> reach * UP, value.m", "> 0, value.m"),
    ("slopes", "off is that of the centre", "< -reach * UP", "< 0"),
    ("slopes", "what kinks add is forgotten", "+ steepest * half[:, None, :]", "+ 0 * steepest"),
    ("slopes", "what kinks added is forgotten", "R * (middle + half)[:, None, :] +", "0 * R +"),
    ("slopes", "R passes a layer with signs", "@ np.abs(W)).reshape(T, m, -1)", "@ W).reshape(T, m, -1)"),
    ("slopes", "R does not widen the reach", "((steepest + R) * radius", "((steepest) * radius"),
    ("slopes", "slopes are exact", "(spread(self.Z, self.C) + self.R) * UP", "self.R * UP"),
    ("slopes", "R is not in the ball", "(spread(self.Z, self.C) + self.R) * UP", "spread(self.Z, self.C) * UP"),
    ("slopes", "Z has no radius", "_product(Z.r + gamma(", "_product(0 * Z.r + gamma("),
    ("slopes", "Z rounds nowhere", "* inflation(k) + TINY\n", "* 0 * inflation(k) + TINY\n"),
    ("slopes", "signs of C count", "np.abs(Z.m), np.abs(C)) * inf", "np.abs(Z.m), C) * inf"),
    ("slopes", "products of one radius", "(size + x.r) * y.r + x.r * np.abs(y.m)", "size * y.r"),
    ("slopes", "products without the other radius", "+ x.r * np.abs(y.m) +", "+"),
    (
        "slopes",
        "the token itself does not pass",
        "add(Z[:, own, own], dh.reshape(B, n, d, w), REAL)",
        "Z[:, own, own]",
    ),
    ("slopes", "queries do not move", "add(out[:, :, own, own], by_query, REAL)", "out[:, :, own, own]"),
    (
        "slopes",
        "values do not move",
        "times(p[..., None, None], dv[:, :, None])",
        "times(p[..., None, None], Ball(0 * dv.m, 0 * dv.r)[:, :, None])",
    ),
    ("slopes", "keys do not move", "out = add(out, times(by_key[..., None], pull[..., None, :]), REAL)", "pass"),
    (
        "slopes",
        "weights are those of the centre",
        "low, high = logits.low, logits.high",
        "low, high = logits.m, logits.m",
    ),
    (
        "slopes",
        "weights move half as far",
        "np.maximum(top - m, m - bottom) * UP + TINY",
        "np.maximum(top - m, m - bottom) * 0.5",
    ),
    (
        "slopes",
        "all keys are visible",
        "np.tri(n, dtype=bool) if network.causal else",
        "np.ones((n, n), bool) if network.causal else",
    ),
    (
        "slopes",
        "values are as far apart as their centres",
        "gaps.r[:, :, own, own] = 0.0, 0.0",
        "gaps.r[...] = 0.0, 0.0",
    ),
    ("slopes", "no gap of values", "gaps.m[:, :, own, own], ", "gaps.m[...], "),
    ("slopes", "the box of the stream is a point", "Ball(h.m, (h.r + near) * UP)", "Ball(h.m, h.r)"),
    (
        "slopes",
        "feed-forward slopes at the centre",
        "h, dh, radius.reshape(B * n, d))",
        "h, dh, 0 * radius.reshape(B * n, d))",
    ),
    ("slopes", "blocks overlap", "W[np.arange(g), :, np.arange(g)] = layer.weight", "W[:, :, 0] = layer.weight"),
    (
        "slopes",
        "a token moves itself only",
        "np.repeat(radius.reshape(B, 1, n * d), n, axis=1)",
        "0.1 * np.repeat(radius.reshape(B, 1, n * d), n, axis=1)",
    ),
    (
        "rounding",
        "affine maps round nothing",
        "linear(x.known, W, known, A).r + flushing_cost(largest, W.shape[-2], A)",
        "x.error @ np.abs(W)",
    ),
    (
        "rounding",
        "errors stop at a layer",
        "error = linear(x.known, W, known, A).r",
        "error = linear(exact(x.known.m), W, known, A).r",
    ),
    ("rounding", "the stream is a real number", "(b.known, b.real)", "(b.real, b.real)"),
    (
        "rounding",
        "sizes are those of the centre",
        "Ball((np.abs(self.real.m) + self.real.r) * UP, self.error)",
        "Ball(0 * self.real.m, self.error)",
    ),
    ("rounding", "sums round nothing", "(add(x.known, y.known, A).r + 4 * A.tiny)", "(x.error + 0 * A.tiny)"),
    (
        "rounding",
        "products round nothing",
        "dot(x.known, y.known, A, extra).r)",
        "0 * dot(x.known, y.known, A, extra).r)",
    ),
    ("rounding", "exp is exact", "(2 * EXP_U + A.exp_error)", "0.0"),
    ("rounding", "logits are exact", "largest * (1 + 4 * A.roundings * A.u)", "0 * largest"),
    ("rounding", "weights are exact", "np.where(visible, moved, 0.0)", "0 * moved"),
    ("branch", "the centre is all there is", "(distance + each.sum(axis=3))", "(distance + 0 * each.sum(axis=3))"),
    ("branch", "one variable counts", "(distance + each.sum(axis=3))", "(distance + each.min(axis=3))"),
    (
        "branch",
        "the centre is met",
        "distance = np.maximum(at_high - value, value - at_low) * UP + r",
        "distance = 0 * (at_high - value) + r",
    ),
    ("branch", "above only", "np.maximum(at_high - value, value - at_low) * UP", "(at_high - value) * UP"),
    ("branch", "below only", "np.maximum(at_high - value, value - at_low) * UP", "(value - at_low) * UP"),
    ("branch", "the target has no slopes", "np.abs(J - g) + loose + wide", "np.abs(J) + loose"),
    ("branch", "the target has one slope", "np.abs(J - g) + loose + wide", "np.abs(J - g) + loose"),
    ("branch", "the network has one slope", "np.abs(J - g) + loose + wide", "np.abs(J - g) + wide"),
    ("branch", "slopes by sign", "(np.abs(J - g) + loose + wide)", "np.abs(np.abs(J) - np.abs(g)) + loose + wide"),
    (
        "branch",
        "values of the target are those of the centre",
        "np.maximum(f_high - value, value - f_low)",
        "np.maximum(at_high - value, value - at_low)",
    ),
    ("branch", "the network is constant", "(r + alone)) * inflation(1)", "r) * inflation(1)"),
    ("branch", "the best of tokens", "return Bounds(upper.max(axis=1)", "return Bounds(upper.min(axis=1)"),
    (
        "branch",
        "lower bounds are upper bounds",
        "lower = (np.maximum(at_low - value, value - at_high) / UP - r)",
        "lower = (distance + r)",
    ),
    (
        "branch",
        "half the radius",
        "np.maximum(high - centre, centre - low) * UP",
        "np.maximum(high - centre, centre - low) * 0.5",
    ),
    (
        "branch",
        "right halves are dropped",
        "return np.concatenate([low, right]), np.concatenate([left, high])",
        "return low, left",
    ),
    (
        "branch",
        "halves leave a gap",
        "left[rows, at], right[rows, at] = cut, cut",
        "left[rows, at], right[rows, at] = cut, np.nextafter(cut, np.inf)",
    ),
    ("branch", "the grid stops early", "(parts,) * self.m), axis=1)", "(parts,) * self.m), axis=1)[:-1]"),
    ("branch", "edges fall short", "edges[0], edges[-1] = self.low, self.high", "edges *= 0.999"),
    ("branch", "open boxes are done", "done = found.upper <= bound", "done = ~(found.upper > 2 * bound)"),
    (
        "branch",
        "boxes without a bound are done",
        "split = ~(found.upper <= max(",
        "split = (found.upper > 4 * max(",
    ),
    ("branch", "the last of the boxes", "if len(low) else 0.0)", "if False else 0.0)"),
    (
        "branch",
        "rounding adds nothing",
        'bound = (number["bound"] - rounding) / UP - TINY',
        'bound = number["bound"]',
    ),
    ("branch", "rounding of one box", "for a in range(0, len(low), 64)]", "for a in range(0, 1, 64)]"),
    (
        "slopes",
        "the largest weight is the least",
        "np.minimum(slack / (1 + few / slack), 1.0)",
        "np.minimum(slack / (1 + many / slack), 1.0)",
    ),
    ("rounding", "a wide softmax is narrow", "np.where(v <= 1, moved, np.inf)", "moved * 1e-9"),
]


def line(dtype: str = "float32") -> Network:
    """One token x of one component: 1.5 x, up to rounding, where x > -2."""
    one = np.ones((1, 1, 1), dtype)
    T = {f"attention.W_{name}": one for name in "QKV"} | {"attention.W_O": one / 2}
    T |= {"readout.0.weight": one[0], "readout.0.bias": np.full(1, 3, dtype)}
    return build(T | {"readout.1.weight": one[0], "readout.1.bias": np.full(1, -3, dtype)})


def target(offset: float) -> dict:
    """1.5 x + offset"""
    lines = [["x", 0, 0], ["const", (1.5).hex()], ["mul", 0, 1], ["const", offset.hex()], ["add", 2, 3]]
    return {"n": 1, "d": 1, "per": "token", "components": 1, "lines": lines, "outputs": [4]}


def entry(bound: float, arith: str = "real", low: float = -1.0, high: float = 2.0, offset: float = 0.25) -> dict:
    ends = {"bound": bound.hex(), "low": low.hex(), "high": high.hex()}
    return {"type": "sup_error_everywhere", "arith": arith, "scope": "token", **ends, "target": target(offset)}


#: sin(20 x), which takes more than a few boxes.
WAVE = entry(2.31, low=0.0, high=1.0)
WAVE["target"] |= {"lines": [["x", 0, 0], ["const", (20.0).hex()], ["mul", 0, 1], ["sin", 2]], "outputs": [3]}


def check_verdicts(m: SimpleNamespace) -> None:
    """The error is 1/4 everywhere, and a float32 may round."""
    wanted = {
        ("real", 0.25 + 1e-12): "proved",
        ("real", 0.25 - 1e-12): "refuted",
        ("real", 0.2): "refuted",
        ("float64", 0.25 + 1e-12): "proved",
        ("float64", 0.2): "refuted",
        ("float32", 0.26): "proved",
        ("float32", 0.25 + 1e-9): "undecided",
        ("float32", 0.25 - 1e-9): "undecided",
        ("float32", 0.2): "refuted",
        ("float32", 1e-7): "undecided",
    }
    for (arith, bound), outcome in wanted.items():
        found, why, value = m.branch.judge(Claim.read(entry(bound, arith), "claim"), line())
        assert found == outcome, (arith, bound, why)
        assert (0.25 <= value <= bound) if outcome == "proved" else value == np.inf
    for k in (1.0, 8.0):  # rounding grows with the box, and is that of its worst part
        problem = m.branch.Problem(line(), Claim.read(entry(1.0), "claim").target, 0.0, k)
        at = np.full((1, 1, 1), k)
        assert problem.rounding(FLOAT32) >= m.rounding.largest_rounding(line(), at, 0 * at, FLOAT32)[0]
        assert problem.rounding(REAL) == 0
    problem = m.branch.Problem(line(), Claim.read(entry(1.0), "claim").target, -3.0, 1.0)  # it has a kink at -2
    assert 1.25 <= m.branch.smallest_bound(problem, 0.1) < 1.26
    assert 1.25 <= m.branch.smallest_bound(problem, 0.1, enough=2.0) <= 2.01
    problem = m.branch.Problem(line(), Claim.read(WAVE, "claim").target, 0.0, 1.0)
    few = m.branch.search(problem, 2.31, 4)
    assert len(few.open[0])
    assert few.open_upper > 2.31


def judged(claim: dict, network: Network, tokens: np.ndarray):
    data = read_data({"tokens": tokens, "answers": np.zeros((tokens.shape[0] * tokens.shape[1], 1))}, network)
    return Judge(network, data, lambda *_: None).judge(Claim.read(claim, "claims[0]"))


def test_verdicts() -> None:
    check_verdicts(MODULES)


def test_claims_are_judged() -> None:
    tokens = np.zeros((1, 1, 1), np.float32)
    proved = judged(entry(0.3, "float32"), line(), tokens)
    assert proved.outcome == "proved"
    assert "on the whole box" in proved.why
    assert "boxes" in proved.why
    again = judged(entry(proved.value, "float32"), line(), tokens)
    assert again.outcome == "proved"
    refuted = judged(entry(0.2), line(), tokens)
    assert refuted.outcome == "refuted"
    assert "the error is at least 0.25" in refuted.why


def test_a_budget_that_ends_names_a_box(monkeypatch) -> None:
    monkeypatch.setattr(branch, "MOST_BOXES", 8)
    monkeypatch.setattr(branch, "FIRST", 1)
    verdict = judged(WAVE, line(), np.zeros((1, 1, 1), np.float32))
    assert verdict.outcome == "undecided"
    assert "boxes were not enough; open is [" in verdict.why
    monkeypatch.undo()
    assert judged(WAVE, line(), np.zeros((1, 1, 1), np.float32)).outcome == "proved"


def test_what_cannot_be_judged() -> None:
    tokens = np.zeros((1, 1, 1), np.float32)
    for claim, message in (
        (entry(0.3, low=2.0, high=2.0), "empty"),
        (entry(0.3) | {"scope": "last"}, "full sequences"),
        (entry(0.3) | {"scope": "sequence"}, "other numbers"),
    ):
        with pytest.raises(Malformed, match=message):
            judged(claim, line(), tokens)
    five = {"n": 5, "d": 1, "per": "token", "components": 1, "lines": [["x", 0, 0]], "outputs": [0] * 5}
    with pytest.raises(Malformed, match="at most 4 variables"):
        judged(entry(0.3) | {"target": five}, line(), np.zeros((1, 5, 1), np.float32))
    assumed = {"lipschitz": (1.0).hex(), "error": (0.0).hex(), "symmetric": True}
    assert judged(entry(0.3) | {"target": assumed}, line(), tokens).outcome == "undecided"


def test_a_target_that_is_not_defined_everywhere_is_not_proved() -> None:
    lines = [["x", 0, 0], ["const", (1.5).hex()], ["div", 1, 0], ["const", (0.0).hex()], ["mul", 2, 3]]
    broken = target(0.0) | {"lines": lines}
    verdict = judged(entry(100.0) | {"target": broken}, line(), np.zeros((1, 1, 1), np.float32))
    assert verdict.outcome == "undecided"


def test_a_root_has_values_where_it_has_no_slope() -> None:
    lines = [["x", 0, 0], ["sqrt", 0]]
    root = target(0.0) | {"lines": lines, "outputs": [1]}
    claim = entry(0.6, low=0.0, high=1.0) | {"target": root}
    assert judged(claim, line(), np.zeros((1, 1, 1), np.float32)).outcome == "proved"


def test_overflow_is_not_proved() -> None:
    network = line()
    huge = {name: a.astype(np.float32) for name, a in network.tensors.items()}
    huge["readout.0.weight"] = np.full((1, 1), 2.0**120, np.float32)
    huge["readout.1.weight"] = np.full((1, 1), 2.0**120, np.float32)
    verdict = judged(entry(2.0**127, "float32"), build(huge), np.zeros((1, 1, 1), np.float32))
    assert verdict.outcome == "undecided"


@pytest.mark.parametrize("check", branching.CHECKS, ids=lambda check: check.__name__)
def test_branch_and_bound_holds(check) -> None:
    check(MODULES)


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 55
    assert [(module, old) for module, _, old, _ in MUTANTS if old not in SOURCES[module]] == []


@pytest.mark.parametrize(
    ("module", "name", "old", "new"), MUTANTS, ids=[f"{module}: {name}" for module, name, _, _ in MUTANTS]
)
def test_a_broken_branch_and_bound_is_caught(module: str, name: str, old: str, new: str, monkeypatch) -> None:
    mutant = mutants.installed(monkeypatch, {**SOURCES, module: SOURCES[module].replace(old, new)}, name)
    first = {
        "slopes": branching.check_slopes,
        "rounding": branching.check_rounding,
        "branch": branching.check_bounds,
    }
    checks = (*branching.CHECKS[:2], check_verdicts, first[module], *branching.CHECKS[2:])
    mutants.assert_caught(checks, mutant, ValueError, IndexError)
