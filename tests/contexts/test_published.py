"""Theorem 2 as published: its constants against their derivation, and the weights as written in ball arithmetic."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Callable

import flint
import numpy as np
import pytest

from onelayer.contexts import projection, published
from onelayer.contexts.boltzmann import lemma_1_level_gap
from onelayer.contexts.literal import Promise, evaluate, precision, strict
from onelayer.errors import HypothesisError, MissingExtraError
from onelayer.problems.separation import Separation, distinct, measure

TOKENS = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])
TOY = TOKENS[[[0, 1], [0, 2], [1, 2]]]


def overlap(a, b) -> bool:
    return bool(a.overlaps(b)) and bool(abs(a - b) < abs(a) * flint.arb("1e-30"))


def test_toy_example() -> None:
    """Three tokens in the plane, their three pairs: what the published constants come to."""
    separation = published.hypotheses(TOY)
    assert published.log10_delta(separation) == pytest.approx(-978.1, abs=0.05)
    run = published.run(TOY)
    assert run.separation_holds
    assert run.norm_holds
    assert run.log10_gap_lower == pytest.approx(-258, abs=1)
    assert run.log10_delta == pytest.approx(-978.1, abs=0.05)
    assert run.norm_upper < run.r
    assert run.bits == 1024


def test_strict_moves_every_number_to_its_strict_side() -> None:
    measured = measure(TOY)
    moved = strict(measured)
    assert moved.r_min == measured.r_min * (1 - 2.0**-30) < measured.r_min
    assert moved.r_max == measured.r_max * (1 + 2.0**-30) > measured.r_max
    assert moved.eps == measured.eps * (1 - 2.0**-30) < measured.eps


@pytest.mark.parametrize(("D", "log10"), [(2, -489), (4, -14967), (8, -628242)])
def test_delta_on_a_grid_of_the_unit_interval(D: int, log10: int) -> None:
    grid = Separation(1 / D, 1.0, 1 / D, vocabulary=D, n=2, d=1, repeated_within=None)
    assert round(published.log10_delta(grid)) == log10


@pytest.mark.parametrize("seed", range(4))
def test_delta_follows_from_lemma_1_and_the_projection_lemma(seed: int) -> None:
    rng = np.random.default_rng(seed)
    separation = strict(measure(rng.normal(size=(4, 3, 2)) + 2.0))
    c = published.constants(separation, bits=300)
    with precision(300):
        r_max, r_min, eps = (flint.arb(x) for x in (separation.r_max, separation.r_min, separation.eps))
        r = c.beta.value * r_max**2  # logits lie in [-r, r]
        lemma_1 = flint.arb(separation.n).log() ** 2 * (-2 * r).exp()
        assert overlap(c.delta.value, c.lam.value * lemma_1 / (c.beta.value * r_max))
        square = 8 / (flint.arb.pi() * separation.d) / (separation.vocabulary + 1) ** 4  # the square of c
        assert overlap(c.beta.value * square * eps * r_min, 2 * flint.arb(separation.n).log() + 3)
        assert overlap(c.r.value, r_max + c.lam.value * r_max)
        log10 = c.delta.value.log() / flint.arb.const_log10()
    assert float(log10) == pytest.approx(c.log10_delta, rel=1e-12)
    assert c.log10_delta == published.log10_delta(separation)
    assert float(c.beta.value) * projection.published_constant(
        separation.vocabulary, separation.d
    ) ** 2 * separation.eps * separation.r_min == pytest.approx(lemma_1_level_gap(separation.n))


def test_printed_formulas_are_those_of_the_values() -> None:
    separation = strict(measure(TOY))
    names = {name: getattr(separation, name) for name in ("eps", "r_min", "r_max", "d")}
    names |= {"V": separation.vocabulary, "L": math.log(separation.n), "pi": math.pi}

    def value(formula: str) -> float:
        code = formula.replace("|V|", "V").replace("log n", "L").replace("^", "**")
        code = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", code)  # a space between factors is a product
        return float(eval(code, {"__builtins__": {}}, names))

    c = published.constants(separation, bits=53)
    for constant in (c.beta, c.lam, c.r):
        assert value(constant.formula) == pytest.approx(float(constant.value), rel=1e-12)
    factor, exponent = c.delta.formula.split(" exp")  # exp itself would leave the range of float64
    log10 = math.log10(value(factor)) + value(exponent) / math.log(10)
    assert log10 == pytest.approx(c.log10_delta, rel=1e-12)


def test_bits_needed_resolve_delta_beside_r_and_half_of_them_do_not() -> None:
    separation = published.hypotheses(TOY)
    bits = published.bits_needed(separation)
    assert bits == pytest.approx(978.1 * math.log2(10), rel=0.01)
    for enough, precision_bits in ((True, bits), (False, bits // 2)):
        c = published.constants(separation, precision_bits)
        with precision(precision_bits):
            assert bool(c.r.value + c.delta.value > c.r.value) is enough


def brute_force(X: np.ndarray, v: np.ndarray, beta, lam) -> tuple[flint.arb, flint.arb]:
    """Every id as a full vector, every pair of ids, at the current precision."""
    norm = sum((flint.arb(x) ** 2 for x in v.tolist()), flint.arb(0)).sqrt()
    unit = [flint.arb(x) / norm for x in v.tolist()]
    ids = []
    for sequence in X.tolist():
        y = [sum((a * x for a, x in zip(unit, row, strict=True)), flint.arb(0)) for row in sequence]
        for k, row in enumerate(sequence):
            weights = [(beta * y[k] * (t - y[0])).exp() for t in y]
            average = sum((w * t for w, t in zip(weights, y, strict=True)), flint.arb(0)) / sum(
                weights, flint.arb(0)
            )
            id_ = [x + lam * average * a for x, a in zip(row, unit, strict=True)]
            ids.append((tuple(row), frozenset(map(tuple, sequence)), id_))
    gap = min(
        sum(((s - t) ** 2 for s, t in zip(a[2], b[2], strict=True)), flint.arb(0)).sqrt()
        for a, b in itertools.combinations(ids, 2)
        if a[:2] != b[:2]
    )
    return gap, max(sum((s**2 for s in i[2]), flint.arb(0)).sqrt() for i in ids)


def fixed(beta: float, lam: float, r: str = "100", delta: str = "1e-300") -> Callable[..., Promise]:
    return lambda ball, _: Promise(ball.arb(beta), ball.arb(lam), ball.arb(r), ball.arb(delta))


@pytest.mark.parametrize("lam", [0.05, 3.0, -0.5, -0.8, -1.0, -1.3])
def test_evaluation_against_brute_force_over_all_pairs(lam: float) -> None:
    """A small lambda leaves same tokens closest; large and negative ones make ids of different tokens meet."""
    rng = np.random.default_rng(1)
    tokens = rng.normal(size=(5, 2)) + 0.5
    v = projection.search(tokens)
    for X in (tokens[list(itertools.combinations(range(5), 3))], tokens[[[0, 1], [2, 3]]]):
        run = evaluate("rank_one", *distinct(X), v, fixed(0.3, lam))
        with precision(256):
            gap, norm = brute_force(X, v, flint.arb(0.3), flint.arb(lam))
            assert float(gap.log()) / math.log(10) == pytest.approx(run.log10_gap_lower, abs=1e-5)
            assert float(norm) == pytest.approx(run.norm_upper)
        assert run.separation_holds
        assert run.norm_holds


def test_the_printed_gap_is_accurate_at_every_temperature() -> None:
    tokens, codes = distinct(TOY)
    v = projection.search(tokens)
    for beta in range(20, 200, 4):  # gaps down to the resolution of the first precision, and below it
        run = evaluate("theorem_2", tokens, codes, v, fixed(float(beta), 0.2))
        with precision(2000):
            gap, _ = brute_force(TOY, v, flint.arb(beta), flint.arb(0.2))
            assert float(gap.log()) / math.log(10) == pytest.approx(run.log10_gap_lower, abs=1e-5)


@pytest.mark.parametrize(("last_digit", "holds"), [("1", True), ("-1", False)])
def test_a_norm_next_to_r_is_decided_by_more_bits(last_digit: str, holds: bool) -> None:
    def promise(ball, _) -> Promise:
        return Promise(
            ball.arb(1), ball.arb(0.5), 1.5 + ball.arb(last_digit) * ball.arb(10) ** -60, ball.arb("0.1")
        )

    run = evaluate("theorem_2", *distinct([[[1.0]]]), np.array([1.0]), promise)  # the id is 1.5
    assert run.norm_holds is holds
    assert run.bits == 256


def test_a_false_promise_is_found_out() -> None:
    tokens, codes = distinct(TOY)
    v = projection.search(tokens)
    run = evaluate("theorem_2", tokens, codes, v, fixed(5, 0.2, r="1.4", delta="0.1"))
    assert not run.separation_holds
    assert not run.norm_holds


def test_ids_that_coincide_are_seen_to_be_closer_than_any_delta() -> None:
    """A direction with two equal levels: the sets {a, b} and {a, c} are the same to the head."""
    X = np.array([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, -1.0]]])
    run = evaluate("theorem_2", *distinct(X), np.array([1.0, 0.0]), fixed(1, 0.1))
    assert not run.separation_holds
    assert run.norm_holds
    assert run.log10_gap_lower == -math.inf
    assert run.bits >= 1000


def test_one_context_has_no_gap_to_decide() -> None:
    run = evaluate("theorem_2", *distinct([[[1.0]], [[1.0]]]), np.array([1.0]), fixed(1, 0.1))
    assert run.separation_holds
    assert run.log10_gap_lower == math.inf


def test_order_inside_sequences_and_repeated_sequences_do_not_matter() -> None:
    shuffled = np.concatenate([TOY[:, ::-1], TOY[::-1]])
    assert published.run(shuffled) == published.run(TOY)


def test_precision_is_restored_even_after_an_error() -> None:
    flint.ctx.prec = 77
    try:
        published.run(TOY)
        published.constants(published.hypotheses(TOY), 500)
        with pytest.raises(HypothesisError, match="128 bits do not decide"):
            published.run(TOY, max_bits=128)
        with precision(300):
            assert flint.ctx.prec == 300
        assert flint.ctx.prec == 77
    finally:
        flint.ctx.prec = 53


def test_without_flint_the_logarithm_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    separation = published.hypotheses(TOY)
    assert published.log10_delta(separation) == pytest.approx(-978.1, abs=0.05)
    assert published.bits_needed(separation) > 3000
    with pytest.raises(MissingExtraError, match=r"\[exact\]"):
        published.constants(separation)
    with pytest.raises(MissingExtraError, match="flint"):
        published.run(TOY)


@pytest.mark.parametrize(
    ("X", "lengths", "words"),
    [
        (
            TOKENS[[[0, 1, 2], [1, 0, 1]]],
            None,
            r"\[theorem_2\] needs the tokens of a sequence to be distinct; "
            r"sequence 1 has tokens 0 and 2 both equal to \(0.3, 1.1\)",
        ),
        (np.array([[[1.0], [2.0]], [[1.0], [0.0]]]), None, r"sequence 1, token 1 is \(0\).*shared_query"),
        (TOKENS[:, None], None, "n >= 2.*one token"),
        (TOKENS[[[0, 1, 2], [1, 0, 0]]], [3, 2], "sequence 1 has 2 tokens, others have 3"),
        (np.ones((2, 1, 3)), None, "eps = inf"),
    ],
)
def test_first_broken_hypothesis_is_named(X: np.ndarray, lengths, words: str) -> None:
    with pytest.raises(HypothesisError, match=words):
        published.hypotheses(X, lengths)


@pytest.mark.parametrize("seed", [6, 7, 9, 13])
def test_a_direction_is_found_where_the_best_for_theorem_k_breaks_the_inequality(seed: int) -> None:
    tokens = np.random.default_rng(seed).normal(size=(3, 2))
    with pytest.raises(HypothesisError, match="smallest ratio"):
        projection.hypotheses(tokens, projection.search(tokens))
    run = published.run(tokens[[[0, 1], [0, 2], [1, 2]]], max_bits=1 << 17)
    assert run.norm_holds
    assert run.separation_holds


def test_a_direction_outside_the_projection_lemma_is_refused() -> None:
    with pytest.raises(HypothesisError, match="smallest ratio"):
        published.run(TOY, direction=[-0.2, 1.0])
