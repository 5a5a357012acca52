"""The ridge that nobody chose: small enough for exact recurrences, large enough for degenerate ones."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import onelayer
from onelayer.errors import PrecisionError

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize(
    ("name", "options", "keys", "longest"),
    [
        ("mesa", {"d": 3}, 32, 3.0),
        ("mesa", {"d": 40, "low": -2.0, "high": 1.0}, 40, 160.0),
        ("recurrence", {}, 32, 2.0),
        ("recurrence", {"affine": False, "high": 3.0}, 32, 9.0),
        ("recurrence", {"d": 2, "order": 30}, 61, 61.0),
    ],
    ids=str,
)
def test_it_outweighs_rounding_for_so_many_keys_of_the_box(
    dtype: Any, name: str, options: dict[str, Any], keys: int, longest: float
) -> None:
    model = onelayer.learner(name, dtype=dtype, certify=False, **options)
    assert model.ledger.number("ridge") == np.dtype(dtype).type(2 * UNIT[dtype] * keys * longest)
    assert model.transformer.attention.ridge.tolist() == [model.ledger.number("ridge")]


def affine_series(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """300 recurrences s' = a s + b, five values of each, and the sixth."""
    rng, series = np.random.default_rng(seed), []
    for _ in range(300):
        a, b, s = rng.uniform(-1, 1), rng.uniform(-2, 2), [rng.normal()]
        for _ in range(5):
            s.append(a * s[-1] + b)
        series.append(s)
    return np.array(series)[:, :5], np.array(series)[:, 5]


@pytest.mark.parametrize("seed", range(20))
def test_five_values_determine_a_recurrence(seed: int) -> None:
    series, wanted = affine_series(seed)
    errors = np.abs(onelayer.learner("recurrence", certify=False).predict(series)[:, -1] - wanted)
    assert errors.max() <= 5e-11
    assert np.median(errors) <= 1e-14


@given(value=st.floats(-1, 1, width=32), n=st.integers(3, 32), dtype=st.sampled_from(sorted(UNIT)))
@example(value=0.9161749482154846, n=26, dtype="float32")
def test_a_constant_series_of_the_box_is_continued(value: float, n: int, dtype: Any) -> None:
    """It determines no recurrence; the ridge estimate continues it, short of what the ridge shrinks.

    Rounding makes the matrix of some series singular in float32, and with the ridge that is then named it does not.
    """
    model = onelayer.learner("recurrence", dtype=dtype, certify=False)
    try:
        found = model.predict(np.full(n, value))
    except PrecisionError as refusal:
        needed = float(re.search(r"Build it with ridge=(\S+?),", str(refusal))[1])  # type: ignore[index]
        assert needed > model.ledger.number("ridge")
        model = onelayer.learner("recurrence", dtype=dtype, certify=False, ridge=needed)
        found = model.predict(np.full(n, value))
    assert np.abs(found - value).max() <= 64 * model.ledger.number("ridge")


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("components", [1, 2, 7])
def test_fewer_examples_than_components_are_no_singular_matrix(components: int, dtype: Any) -> None:
    rng, model = np.random.default_rng(0), onelayer.learner("recurrence", d=components, order=8, dtype=dtype)
    corners = rng.choice([-1.0, 1.0], (30, components))
    assert np.isfinite(model.predict(corners)).all()


#: Both lags are the same, far outside the box: twice the same column.
TWICE: dict[str, Any] = {"order": 2, "affine": False, "certify": False}
FAR = np.full(64, 512.0)


@pytest.mark.parametrize("path", ["auto", "reference"])
def test_a_prompt_that_cannot_be_solved_says_which_ridge_it_needs(path: Any) -> None:
    words = r"can be solved in float64; ridge=1.4e-14 is lost in rounding: a prompt may need 2.6e-07.*ridge=2.6e-07"
    with pytest.raises(PrecisionError, match=words):
        onelayer.learner("recurrence", **TWICE).predict(FAR, path=path)
    for better in ({"ridge": 2.6e-7}, {"high": 512.0}):
        found = onelayer.learner("recurrence", **TWICE, **better).predict(FAR, path=path)
        np.testing.assert_allclose(found, 512.0, rtol=1e-6)


def test_bounds_and_traces_say_so_too() -> None:
    model = onelayer.learner("recurrence", **TWICE)
    with pytest.raises(PrecisionError, match="lost in rounding"):
        model.predict(FAR, bounds=True)
    with pytest.raises(PrecisionError, match="lost in rounding"):
        model.trace(FAR)


def test_a_bound_says_that_a_prompt_determines_little() -> None:
    """The same recurrence far from and near its fixed point: the bound grows as what determines it shrinks."""
    model, bounds = onelayer.learner("recurrence", certify=False), []
    for away in (1.0, 1e-3, 1e-6):
        s = 0.5 + away * 0.5 ** np.arange(6.0)
        answers, bound = model.predict(s[:5], bounds=True)
        ridge_answer = _exact(s[:5], model.ledger.number("ridge"))
        assert abs(float(answers[-1]) - ridge_answer) <= bound[-1]
        bounds.append(float(bound[-1]))
    assert bounds[0] < 1e-11
    assert bounds[0] * 1e6 < bounds[1] * 1e3 < bounds[2]


def _exact(s: np.ndarray, ridge: float) -> float:
    """The ridge estimate in rational numbers."""
    x, y = [Fraction(v) for v in s[:-1]], [Fraction(v) for v in s[1:]]
    a, b, d = sum(v * v for v in x) + Fraction(ridge), sum(x), len(x) + Fraction(ridge)
    e, f = sum(v * w for v, w in zip(x, y, strict=True)), sum(y)
    det = a * d - b * b
    return float((d * e - b * f) / det * Fraction(s[-1]) + (a * f - b * e) / det)
