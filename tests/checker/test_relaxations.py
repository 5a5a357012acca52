"""Linear relaxations and the bounds that they give: what they enclose lies in them, everywhere on the box."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.problems.targets.expression import read_expression
from onelayer_checker import largest_output
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions.extremes import largest
from onelayer_checker.functions.relaxations import relaxed
from onelayer_checker.functions.targets import Program, read_program

FORMULAS = [
    "x*exp(-mean((x - y)**2))",
    "tanh(3*x) - sin(2*mean(y)) + cos(5*x)",
    "max(y) - min(y) + abs(x - 0.3)",
    "sqrt(0.01 + var(y))/(1 + x)",
    "hypot(x - 0.5, mean(y))",
    "softmax(3*x*y, y)",
    "log(1 + exp(x)) - relu(x - 0.3)",
    "1/(0.2 + mean(1/(0.2 + y))) - 1000*x",
    "clip(x, 0.2, 0.5)**3 - -x*mean(y)",
    "abs(x1 - x2)*(x3 - 1/3)",
]


def program(text: str, n: int = 3) -> Program:
    return read_program(read_expression(text, n, 1)[1].to_json(), "program")


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("width", [0.0, 1e-9, 0.01, 1.0])
def test_values_lie_in_the_relaxation(text: str, width: float) -> None:
    f, rng = program(text), np.random.default_rng(1)
    low = rng.uniform(0, 1, (60, 3))
    high = np.minimum(low + width * rng.random((60, 3)), 1.0)
    low, high = np.minimum(low, high), np.maximum(low, high)
    lines, c = relaxed(f, low, high), np.clip(low / 2 + high / 2, low, high)
    r = np.maximum(high - c, c - low)
    for _ in range(30):
        u = rng.random(low.shape)
        X = np.clip(low + (high - low) * np.where(rng.random(low.shape) < 0.3, np.round(u), u), low, high)
        e = np.divide(X - c, r, out=np.zeros_like(X), where=r > 0)
        values = f.enclose(X, X, False)
        for k, line in enumerate(lines):
            near = line.centre + (line.slope * e.T).sum(axis=0)
            slack = line.radius + 1e-15 * (1 + np.abs(near))
            assert (values.low[:, k] <= near + slack).all()
            assert (values.high[:, k] >= near - slack).all()
            assert (values.low[:, k] <= line.value[1]).all()
            assert (values.high[:, k] >= line.value[0]).all()


def test_a_relaxation_is_exact_for_what_is_linear_and_second_order_for_what_is_not() -> None:
    low, high = np.full((1, 3), 0.25), np.full((1, 3), 0.75)
    (line, *_) = relaxed(program("2*x - 3*mean(y)"), low, high)
    assert line.radius.max() < 1e-12
    wide, narrow = (relaxed(program("exp(x)"), low, low + w)[0].radius[0] for w in (0.5, 0.05))
    assert 50 < wide / narrow < 200
    (kink, *_) = relaxed(program("relu(x - 0.5)"), low, high)
    assert 0.06 < kink.radius[0] < 0.0626  # a quarter of the half-width, as the triangle has it


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x - mean(y)", 2 / 3),
        ("x*mean(y)", 1.0),
        ("x**2 - x", 0.25),
        ("exp(x)*mean(y)", np.e),
        ("-2*abs(x-0.25)", 1.5),
    ],
)
def test_bounds_close_in_on_the_largest_size(text: str, wanted: float) -> None:
    found = largest(program(text), np.zeros(3), np.ones(3), 60.0, 0.02)
    assert found.lower <= wanted * (1 + 1e-12)
    assert wanted <= found.upper <= 1.021 * found.lower
    at = program(text).enclose(found.where[None], found.where[None], False)
    assert max(np.abs(at.low).max(), np.abs(at.high).max()) >= found.lower


def test_time_only_narrows_the_bounds_and_points_that_were_tried_count() -> None:
    f, ends = program("sin(9*x)*cos(7*mean(y))"), (np.zeros(3), np.ones(3))
    some = [largest(f, *ends, seconds, 0.01) for seconds in (0.0, 0.2, 1.0)]
    assert some[0].boxes == 1
    assert some[0].upper >= some[1].upper >= some[2].upper >= some[2].lower >= some[1].lower >= some[0].lower
    found = largest(f, *ends, 0.0, 0.01, some[2].where[None])
    assert found.lower >= some[2].lower


@pytest.mark.parametrize("text", ["tanh(1/(x - 0.5))", "clip(1/(x - 0.5), -1, 1)", "sin(log(x - 0.1))"])
def test_what_may_be_undefined_has_no_bound(text: str) -> None:
    assert largest(program(text, 1), np.zeros(1), np.ones(1), 0.2, 0.05).upper == np.inf


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([0.0], [1.0]),
        ([0.0] * 3, [np.inf] * 3),
        ([1.0] * 3, [0.0] * 3),
        ([np.nan] * 3, [1.0] * 3),
        ([0] * 3, [1e308] * 3),
    ],
)
def test_a_box_that_is_none_is_malformed(low: list[float], high: list[float]) -> None:
    entry = read_expression("x - mean(y)", 3, 1)[1].to_json()
    with pytest.raises(Malformed):
        largest_output(entry, low, high, seconds=1.0, close=0.1)
