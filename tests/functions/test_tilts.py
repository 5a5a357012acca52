"""Averages with weights e^(s g) in place of covariances and logarithms: few of them, as near as was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import approximate
from onelayer.functions.lines import Lines
from onelayer.functions.tilts import Head, Moment, estimate, find_moment, tilts
from onelayer.model import Model
from onelayer.problems.targets import resolve

FLOAT64 = Head(4, np.dtype("float64"), 1.0)
UNIT = (0.0, 1.0)


def average(s: float, g: np.ndarray, v: np.ndarray) -> np.ndarray:
    weights = np.exp(s * (g - g.max(axis=1, keepdims=True)))
    return (weights * v).sum(axis=1) / weights.sum(axis=1)


def tokens(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.uniform(low, high, (2000, 5))
    X[1000:] = rng.choice([low, high], (1000, 5))
    return X


@pytest.mark.parametrize("end", [0.0, 1.0, -2.0])
@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-7])
def test_they_are_as_near_as_was_asked_for(end: float, eps: float) -> None:
    found = tilts(UNIT, UNIT, end, eps, 1.0, FLOAT64)
    assert found is not None
    X = tokens(*UNIT)
    wanted = np.log(np.mean(np.exp(end * X), axis=1)) if end else X.var(axis=1)
    made = sum(float(w) * average(float(s), X, X) for s, w in found)
    assert np.abs(made - wanted).max() <= eps


def test_the_estimate_is_above_what_is_found_and_not_far() -> None:
    s, w = np.array([0.5, -0.5]), np.array([1.0, -1.0])
    X = tokens(*UNIT)
    found = np.abs(average(0.5, X, X) - average(-0.5, X, X) - X.var(axis=1)).max()
    assert found <= estimate(s, w, UNIT, UNIT, 0.0) <= 10 * found


def test_a_smaller_error_takes_few_more_heads_and_less_room_takes_more() -> None:
    counts = [len(tilts((-2.0, 2.0), (-2.0, 2.0), 1.0, eps, 1.0, FLOAT64) or ()) for eps in (1e-2, 1e-4, 1e-6)]
    assert counts == sorted(counts)
    assert 3 <= counts[0] <= 4
    assert counts[-1] <= 8
    near = [tilts(UNIT, UNIT, 0.0, 1e-4, room, Head(4, np.dtype("float32"), 1.0)) for room in (1.0, 5e-5, 1e-6)]
    assert near[0] is not None
    assert near[1] is not None
    assert near[2] is None
    assert len(near[0]) < len(near[1])
    weights = [sum(abs(w) for _, w in found) for found in near[:2] if found]
    assert weights[1] < weights[0]


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-9])
def test_differences_have_the_least_weights_that_are_exact_for_polynomials(eps: float) -> None:
    """A rule that is exact for the Chebyshev polynomial of degree 2 k - 1, which is at most 1 and has the slope
    2 k - 1 at 0, has weights whose sizes add up to at least that."""
    found = tilts(UNIT, UNIT, 0.0, eps, 1.0, FLOAT64)
    assert found is not None
    s, w = np.array(found, np.float64).T
    assert np.abs(w).sum() == pytest.approx((len(s) - 1) / s.max(), rel=1e-9)


def lines_of(text: str, d: int = 1) -> tuple[Lines, int]:
    target = resolve(text, n=4, d=d).pooled
    assert target is not None
    L, place = Lines([(0.5, 1.0)] * d), list[int]()
    for op, *of in target.lines:
        given = of if op in ("x", "y", "const") else [place[i] for i in of]
        place.append(L.const(given[0]) if op == "const" else L.add(op, *given))
    return L, place[target.outputs[0]]


@pytest.mark.parametrize(
    "text",
    [
        "mean((y - mean(y))**2)",
        "var(y)",
        "mean(y*y) - mean(y)*mean(y)",
        "mean(y*(y - mean(y)))",
        "mean((y[0] - mean(y[0]))*(y[1] - mean(y[1])))",
        "mean(y[0]*y[1]) - mean(y[1])*mean(y[0])",
        "mean((exp(y) - mean(exp(y)))**2)",
        "mean((x - y)**2)",
        "mean((y - x)**2)",
    ],
)
def test_covariances_are_seen_however_they_are_written(text: str) -> None:
    L, k = lines_of(text, 2 if "y[1]" in text else 1)
    found = find_moment(L, k)
    assert found is not None
    assert found.end == 0
    assert bool(found.apart) == ("x - y" in text or "y - x" in text)
    assert (found.v == found.g) == ("y[1]" not in text)


def test_logarithms_of_means_of_exponentials_are_seen() -> None:
    for text, factor in (("log(mean(exp(3*y)))", 1), ("log(sum(exp(y)))", 4)):
        L, k = lines_of(text)
        found = find_moment(L, k)
        assert isinstance(found, Moment), text
        assert (found.end, found.factor) == (1, factor)


@pytest.mark.parametrize(
    "text",
    [
        "mean(y*y)",
        "mean((y - mean(y))**3)",
        "mean(x*(y - mean(y)))",
        "mean((y[0] - mean(y[1]))*y[0])",
        "mean(y[0]*y[1]) - mean(y[0])*mean(y[0])",
        "mean(y*y) - mean(y)*x",
        "mean(y*y) - x*x",
        "mean(y) - mean(y)*mean(y)",
        "log(1 + mean(y))",
        "log(1 + x)",
        "log(mean(exp(x*y)))",
        "log(2*(1 + x))",
        "mean(exp(y))",
    ],
)
def test_other_lines_are_not(text: str) -> None:
    L, k = lines_of(text, 2 if "y[1]" in text else 1)
    assert find_moment(L, k) is None


#: Formula, low end of the box, and the most numbers that it may take at tolerance 0.001.
MODELS = [
    ("var(y)", 0.0, 40),
    ("sqrt(0.01 + var(y))", 0.0, 100),
    ("log(mean(exp(2*y)))", -1.0, 60),
    ("log(sum(exp(y)))", 0.0, 40),
    ("x - 2*log(mean(exp(-y)))", -1.0, 60),
    ("mean((y[0] - mean(y[0]))*(y[1] - mean(y[1])))", 0.0, 60),
    ("mean((x - y)**2)", 0.0, 200),
    ("mean((y[0] - mean(y[0]))**2 - (y[1] - mean(y[1]))**2 + y[0])", 0.0, 150),
    ("mean((x[0] - y[0])**2 + (x[1] - y[1])**2)", 0.0, 1000),
    ("var(exp(y))", 0.0, 460),
]


@pytest.mark.parametrize(("text", "low", "most"), MODELS)
def test_models_are_small_and_keep_their_bounds(text: str, low: float, most: int) -> None:
    d = 2 if "y[1]" in text else 1
    model: Model = approximate(text, n=6, d=d, low=low, high=1, tolerance=0.001, construction="formula")
    assert model.n_parameters <= most
    assert model.error_bound <= 0.001
    rng = np.random.default_rng(1)
    X = rng.uniform(low, 1, (4000, 6, d)).astype(np.float32)
    X[:2000] = rng.choice([low, 1], (2000, 6, d))
    for path in ("dense", "reference"):
        errors = np.abs(model.predict(X, path=path).astype(np.float64).ravel() - model.target.evaluate(X).ravel())
        assert errors.max() <= model.error_bound
    assert model.verify()


@pytest.mark.parametrize(
    ("text", "tolerance", "dtype", "most"),
    [
        ("std(y)", 0.05, "float32", 40),
        ("std(y)", 0.01, "float32", 150),
        ("std(y)", 0.001, "float64", 120),
        ("std(y[0]) + 2*std(y[1])", 0.02, "float64", 150),
        ("(x - mean(y))/(0.2 + std(y))", 0.05, "float64", 400),
    ],
)
def test_roots_of_variances_are_small_although_they_are_vertical_at_zero(text, tolerance, dtype, most) -> None:
    d = 2 if "y[1]" in text else 1
    model: Model = approximate(text, n=6, d=d, tolerance=tolerance, dtype=dtype, construction="formula")
    assert model.n_parameters <= most
    assert model.error_bound <= tolerance
    assert model.verify()
    rng = np.random.default_rng(2)
    spread = 10.0 ** rng.uniform(-5, 0, (4000, 1, 1))  # where the root is steep
    X = np.clip(rng.uniform(0, 1, (4000, 1, d)) + spread * rng.normal(size=(4000, 6, d)), 0, 1).astype(dtype)
    errors = np.abs(model.predict(X, path="dense").astype(np.float64) - model.target.evaluate(X))
    assert errors.max() <= model.error_bound


def test_smaller_tolerances_take_heads_and_no_units() -> None:
    sizes = [
        approximate("log(mean(exp(y)))", n=4, tolerance=t, dtype="float64", construction="formula").n_parameters
        for t in (1e-3, 1e-5, 1e-7)
    ]
    assert sizes[-1] <= 2 * sizes[0]
