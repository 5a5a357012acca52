"""Heads of formulas: small networks by hand, whose errors are known, and the rounding of averages as argued."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from attacks.forged_formulas import HEAD, X, about, make_bundle, one
from onelayer_checker import check
from onelayer_checker.core.balls import EXP_U, FLOAT32, FLOAT64, NORMAL, REAL, Ball, U
from onelayer_checker.functions import pooled
from onelayer_checker.functions.pooled import Head, average
from onelayer_checker.functions.rounding import Value

CHORD = [([[1]], [0]), ([[1]], [0])]
Y, MEAN = ["y", 0], [X, ["y", 0], ["mean", 1], ["add", 0, 2]]


def error(lines: list[Any], stages: list[list[int]], arith: str = "real", **more: Any) -> float:
    """What is proved of a network that passes on the stream, with a head."""
    target = {name: more.pop(name) for name in ("tokens", "box", "outputs", "meant", "planned") if name in more}
    layers = more.pop("layers", CHORD)
    claim = about(arith, 1e30, lines, stages, **target)
    report = check(make_bundle("float64" if arith == "real" else arith, layers, claim, **more).files())
    assert report.claims, report
    return report.claims[0].verdict.value


def test_a_mean_is_exact() -> None:
    assert error(MEAN, [[3], [3]], **HEAD) <= 1e-11
    assert error(MEAN, [[3], [3]], **HEAD | {"W_V": [[[0.75]]]}) == pytest.approx(0.25)  # mean(y)/4 is in [0, 1/4]
    assert error(MEAN, [[3], [3]], **HEAD | {"W_O": [[[-1]]]}) == pytest.approx(2)
    assert error(MEAN, [[3], [3]], **HEAD | {"W_V": [[[2]]], "W_O": [[[0.5]]]}) <= 1e-11


def test_values_and_outputs_of_several_channels_add_up() -> None:
    twice = {"W_Q": [[[0, 0]]], "W_K": [[[0, 0]]], "W_V": [[[0.25, 3]]], "W_O": [[[1], [0.25]]]}
    assert error(MEAN, [[3], [3]], **twice) <= 1e-11
    heads = {name: [[[0]], [[0]]] for name in ("W_Q", "W_K")} | {"W_V": [[[0.25]], [[3]]], "W_O": [[[1]], [[0.25]]]}
    assert error(MEAN, [[3], [3]], **heads) <= 1e-11


@pytest.mark.parametrize("off", [0.0, 0.125])
def test_logits_that_are_off_cost_a_share_of_the_range(off: float) -> None:
    """softmax(x y) averages y; with logits (1 + off) x y they are off by at most D = off."""
    lines = [X, Y, ["mul", 0, 1], ["average", 2, 1], ["add", 0, 3]]
    found = error(lines, [[4], [4]], **HEAD | {"W_Q": [[[1 + off]]], "W_K": [[[1]]]})
    assert found == pytest.approx(off / 2, abs=1e-11)


def test_biases_of_queries_and_keys_are_part_of_the_logits() -> None:
    lines = [X, Y, one(2), ["mul", 2, 1], ["average", 3, 1], ["add", 0, 4]]
    head = HEAD | {"W_K": [[[1]]], "b_Q": [[2]]}
    assert error(lines, [[5], [5]], **head) <= 1e-11
    assert error(lines, [[5], [5]], **head | {"b_K": [[7]]}) <= 1e-11  # 2 (y + 7): the same weights
    assert error(lines, [[5], [5]], **head | {"b_Q": [[2.25]]}) == pytest.approx(0.25 / 2)
    assert error(lines, [[5], [5]], **head | {"W_Q": [[[0.5]]], "b_K": [[1]]}) > 0.1


def test_a_head_that_is_far_from_every_line_is_far_off() -> None:
    assert error(MEAN, [[3], [3]], **HEAD | {"W_K": [[[1]]], "b_Q": [[0.75]]}) == pytest.approx(0.75 / 2)
    assert error(MEAN, [[3], [3]], **HEAD | {"W_K": [[[1]]], "b_Q": [[0.25]]}) == pytest.approx(0.25 / 2)


@pytest.mark.parametrize(
    ("tokens", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 10, 10), (1 << 10 | 1, 11)]
)
def test_the_largest_value_is_missed_by_an_entropy(tokens: int, bits: int) -> None:
    lines = [X, Y, ["largest", 1], ["add", 0, 2]]
    head = HEAD | {"W_K": [[[8]]], "b_Q": [[1]]}
    assert error(lines, [[3], [3]], tokens=tokens, **head) == pytest.approx(bits * log(2) / 8, rel=1e-9)
    # Values 0.75 y are y/4 off; queries 1 + x/64 move the logits 8 y by at most 1/8.
    far = error(lines, [[3], [3]], tokens=tokens, **head | {"W_V": [[[0.75]]]})
    assert far == pytest.approx(bits * log(2) / 8 + 0.25)
    moved = error(lines, [[3], [3]], tokens=tokens, **head | {"W_Q": [[[1 / 64]]]})
    assert moved == pytest.approx((bits * log(2) + 2 / 8) / 8)


def test_the_largest_of_a_multiple() -> None:
    lines = [X, Y, one(3), ["mul", 2, 1], ["largest", 3], ["add", 0, 4]]
    head = HEAD | {"W_K": [[[24]]], "b_Q": [[1]], "W_V": [[[3]]]}
    assert error(lines, [[5], [5]], **head) == pytest.approx(2 * log(2) / 8, rel=1e-9)
    assert error(lines, [[5], [5]], **head | {"W_V": [[[0]]]}) >= 1.5
    assert error([X, Y, ["largest", 1], ["add", 0, 2]], [[3], [3]], **HEAD | {"W_K": [[[-8]]], "b_Q": [[1]]}) >= 4


def test_a_constant_is_its_own_largest_value() -> None:
    """Of the two channels of a sharp head, one has values 0."""
    lines = [X, Y, ["largest", 1], ["add", 0, 2]]
    head = {"W_Q": [[[0, 0]]], "W_K": [[[8, 0]]], "W_V": [[[1, 0]]], "W_O": [[[1], [5]]], "b_Q": [[1, 0]]}
    found = error(lines, [[3], [3]], **head)
    assert found == pytest.approx(6 * 2 * log(2) / 8, rel=1e-9)


@pytest.mark.parametrize("near", [0.0, 0.125, 0.5, 0.51])
def test_errors_of_heads_are_those_of_the_text(near: float) -> None:
    wide = np.full(1, -1.0), np.full(1, 2.0)
    found = Head({}, None, near).error(wide, 9)
    assert found == pytest.approx(near * 1.5, rel=1e-9)
    assert found >= np.tanh(near) * 1.5  # of two tokens, whose weights are moved from 1/2 apart
    sharp = Head({}, {}, near, 4.0).error(wide, 9)
    assert sharp == pytest.approx((4 * log(2) + 2 * near) / 4, rel=1e-9)
    assert sharp > (4 * log(2) + 2 * near) / 4
    assert log(2) < pooled.LOG_TWO < log(2) + 1e-15


def test_a_formula_must_fit_the_network() -> None:
    def outcome(**more: Any) -> str:
        claim = about(
            "real", 1e30, more.pop("lines", MEAN), more.pop("stages", [[3], [3]]), **more.pop("target", {})
        )
        report = check(make_bundle("float64", CHORD, claim, **HEAD).files())
        return f"{report.result} {report.why}{report.claims[0].verdict.why if report.claims else ''}"

    assert outcome().startswith("VERIFIED")
    assert "another number of layers" in outcome(stages=[[3]])
    assert error(MEAN, [[3]], **HEAD) == np.inf
    assert "another number of layers" in outcome(stages=[[3], [3], [3]])
    assert "another number of channels" in outcome(stages=[[3, 3], [3]])
    assert "is not bounded" in outcome(stages=[[2], [3]]) or "UNKNOWN" in outcome(stages=[[2], [3]])
    assert "no line is component 0" in outcome(lines=[Y, ["mean", 0]], stages=[[1], [1]])
    assert "takes or gives other numbers" in outcome(target={"outputs": [3, 3], "meant": [3, 3], "planned": [3, 3]})
    assert "takes or gives other numbers" in outcome(target={"per": "sequence"})
    assert "another function" in outcome(target={"planned": [0]})


def test_the_offset_and_what_is_meant_are_part_of_the_error() -> None:
    shifted = [([[1]], [0]), ([[1]], [0.25])]
    assert error([X], [[0], [0]], layers=shifted) == pytest.approx(0.25)
    lines = [X, one(0.5), ["add", 0, 1]]  # the output is x + 1/2, meant and planned is x
    assert error(lines, [[0], [0]], outputs=[2], meant=[0], planned=[0]) == np.inf
    lines = [X, one(0.5), ["mul", 0, 1], ["exp", 0], ["exp", 2]]
    line = [([[1]], [0]), ([[0.5]], [1.25])]
    off = error(lines, [[0], [0]], layers=line, outputs=[3], meant=[4], planned=[4])
    alone = error(lines, [[0], [0]], layers=line, outputs=[4], meant=[4], planned=[4])
    assert alone == pytest.approx(0.25, rel=0.01)
    assert off == pytest.approx(alone + np.e - np.sqrt(np.e), rel=0.01)


def value(size: float, moved: float) -> Value:
    return Value(Ball(np.zeros((1, 1, 1)), np.full((1, 1, 1), size)), np.full((1, 1, 1), moved))


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=lambda A: A.name)
@pytest.mark.parametrize(
    ("size", "late", "reach", "off"), [(3, 1e-9, 2, 1e-8), (0, 1e-9, 0.5, 0), (40, 0, 1, 1e-7)]
)
@pytest.mark.parametrize("sharp", [0.0, 16.0])
def test_rounding_of_an_average_is_as_argued(A, size: float, late: float, reach: float, off: float, sharp) -> None:
    n = 100
    found = float(average(value(size, late), value(reach, off), n, np.full((1, 1, 1), sharp), A).error[0, 0, 0])
    L = 2 * size * (2 * U + 2 * A.roundings * A.u) + late * (1 + 4 * A.roundings * A.u) + 2 * EXP_U + A.exp_error
    gamma = (2 * n + 8) * A.u / (1 - (2 * n + 8) * A.u)
    x = gamma
    wanted = off * (1 + x + x * x) + (reach + off) * (x + x * x) + (2 * L / sharp if sharp else L * reach)
    assert wanted <= found <= wanted * (1 + 1e-4 if A is FLOAT32 else 1 + 1e-9) + 1e-30


def test_equal_weights_are_exact_and_flushing_counts() -> None:
    none = average(value(0, 0), value(1, 0), 5, np.zeros((1, 1, 1)), FLOAT64).error[0, 0, 0]
    gamma = 18 * FLOAT64.u / (1 - 18 * FLOAT64.u)
    assert gamma <= none <= gamma * 1.0001
    lost = average(value(0, 0), value(0, 0), 5, np.zeros((1, 1, 1)), FLOAT32).error[0, 0, 0]
    assert lost == pytest.approx(8 * 13**2 * FLOAT32.tiny * 2, rel=1e-9)
    assert (
        average(value(0, 0), value(3, 0), 5, np.zeros((1, 1, 1)), REAL).error[0, 0, 0]
        < 8 * 13**2 * NORMAL * 6 + 1e-300
    )


@pytest.mark.parametrize(
    ("size", "n", "reach"),
    [(2.0**125, 2, 1.0), (0.0, 2, 2.0**123), (0.0, 1 << 20, 2.0**105), (2e6, 2, 1.0)],
)
def test_what_may_overflow_or_is_too_far_off_has_no_bound(size: float, n: int, reach: float) -> None:
    assert average(value(size, 0), value(reach, 0), n, np.zeros((1, 1, 1)), FLOAT32).error[0, 0, 0] == np.inf


def test_what_is_below_those_limits_has_a_bound() -> None:
    for size, n, reach, sharp in (
        (2.0**123, 2, 1.0, 2.0**126),
        (0.0, 2, 2.0**122, 0.0),
        (0.0, 1 << 17, 2.0**104, 0.0),
    ):
        found = average(value(size, 0), value(reach, 0), n, np.full((1, 1, 1), sharp), FLOAT32).error[0, 0, 0]
        assert found < np.inf


def test_rounding_of_heads_counts_every_part() -> None:
    """mean(y): the token rounded, 4 values added up, and the stream; softmax(9 x y): logits up to 9 as well."""
    u, arith = 2.0**-24, "float32"
    found = error(MEAN, [[3], [3]], arith, **HEAD)
    assert 64 / 2 + 16 < found / u < 70
    sharp = error(
        [X, Y, ["mul", 0, 1], one(9), ["mul", 2, 3], ["average", 4, 1], ["add", 0, 5]],
        [[6], [6]],
        arith,
        **HEAD | {"W_Q": [[[9]]], "W_K": [[[1]]]},
    )
    assert 140 < sharp / u < 150
    scaled = error(
        [X, Y, ["largest", 1], ["add", 0, 2]], [[3], [3]], arith, **HEAD | {"W_K": [[[8]]], "b_Q": [[1]]}
    )
    real = error([X, Y, ["largest", 1], ["add", 0, 2]], [[3], [3]], **HEAD | {"W_K": [[[8]]], "b_Q": [[1]]})
    assert 78 < (scaled - real) / u < 84
