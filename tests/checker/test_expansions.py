"""Expansions of sums of heads contain the sums, in long doubles; and what is no such layer is not taken for one."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.functions import attention_first
from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.core.graph import build
from onelayer_checker.functions import expansions
from onelayer_checker.functions.expansions import (
    DEGREE,
    POWERS,
    Heads,
    Patches,
    coefficients_of_tanh,
    expand,
    recognise,
    third_order,
)
from tests.checker.square import SHIFTS, SLOPES, WEIGHTS, cell_of, summed, tensors

OURS = Heads(np.array(SLOPES), np.array(SHIFTS), np.array(WEIGHTS))


def polynomial(patches: Patches, x: Any, other: Any) -> tuple[Any, Any]:
    at = patches.of[cell_of(patches, x), cell_of(patches, other)]
    t = x - other
    xi, eta = (x - patches.x[at]) * t / 2, (t - patches.t[at]) / 2
    value = sum(c[at] * xi**i * eta**j for c, (i, j) in zip(patches.coefficients, POWERS, strict=True))
    return value, patches.error[at]


def worst_ratio(heads: Heads, low: float, high: float, count: int, seed: int = 0) -> float:
    """The largest |S - polynomial| over what is said of it, at random pairs and at corners of cells."""
    patches = expand(heads, low, high)
    assert patches is not None
    rng = np.random.default_rng(seed)
    x, other = rng.uniform(low, high, (2, count))
    edge = rng.random((2, count)) < 0.2
    x, other = (np.where(e, rng.choice(patches.edges, count), a) for e, a in zip(edge, (x, other), strict=True))
    worst = 0.0
    for start in range(0, count, 4096):
        a, b = x[start : start + 4096], other[start : start + 4096]
        value, error = polynomial(patches, a, b)
        worst = max(worst, float((np.abs(value - summed(heads, a, b)) / error).max()))
    return worst


def test_a_hundred_thousand_pairs_lie_within_what_is_said() -> None:
    """Of the heads that are built, whose weights of either sign add up to 130 times as much as their sum."""
    made = attention_first.heads(2, 20.0)
    assert np.abs(made.weight).sum() > 50
    assert worst_ratio(Heads(made.slope, made.shift, made.weight), -1.0, 1.0, 100_000) < 1


def test_little_is_left_open() -> None:
    made = attention_first.heads(2, 20.0)
    patches = expand(Heads(made.slope, made.shift, made.weight), -1.0, 1.0)
    assert patches is not None
    assert float(np.max(patches.error * (np.abs(patches.t) / 2))) < 2 * expansions.ENOUGH


numbers = st.floats(-30, 30).map(lambda x: round(x, 2))


@settings(max_examples=10)
@given(
    st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=6), st.sampled_from([(-1, 1), (0.1, 0.7)])
)
def test_random_heads_on_random_boxes(parts: Any, ends: tuple[float, float]) -> None:
    slope, shift, weight = (np.array(column) for column in zip(*parts, strict=True))
    assert worst_ratio(Heads(slope, shift, weight), *ends, 2000) < 1


@pytest.mark.parametrize("coarse", [{"ENOUGH": 100.0}, {"NARROW": 4.0, "ENOUGH": 100.0}])
def test_coarse_patches_say_that_they_are(monkeypatch: pytest.MonkeyPatch, coarse: dict[str, float]) -> None:
    """Remainders are then what counts: signs of heads, and powers that are left out."""
    for name, value in coarse.items():
        monkeypatch.setattr(expansions, name, value)
    for one in range(len(SLOPES)):
        heads = Heads(*(np.array([part[one]]) for part in (SLOPES, SHIFTS, WEIGHTS)))
        assert worst_ratio(heads, -1.0, 1.0, 6_000) < 1
    assert worst_ratio(OURS, -1.0, 1.0, 6_000) < 1
    assert worst_ratio(OURS, -3.0, 5.0, 6_000) < 1


def test_coefficients_are_those_of_tanh() -> None:
    u = np.concatenate([np.linspace(-6, 6, 49), [1e-9, -1e-300, 30.0, -800.0]])
    found = np.array(coefficients_of_tanh(u))
    with mpmath.workdps(40):
        for at, one in enumerate(u.tolist()):
            wanted = (
                mpmath.taylor(mpmath.tanh, mpmath.mpf(one), DEGREE) if abs(one) < 700 else [math.copysign(1, one)]
            )
            for k, c in enumerate(wanted):
                assert abs(mpmath.mpf(found[k, at]) - c) < 2.0**-43, (one, k)


def test_far_coefficients_are_below_what_the_poles_give() -> None:
    """The remainder rests on it: two poles and a hundredth, for |u| <= 3, falling beyond."""
    n = DEGREE + 1
    with mpmath.workdps(60):
        for one in np.linspace(0, 12, 49).tolist():
            c = abs(mpmath.taylor(mpmath.tanh, mpmath.mpf(one), n)[n])
            near = min(one, 3.0)
            assert c <= expansions.TWICE * (near * near + expansions.POLE) ** (-(n + 1) / 2), one


def test_every_pair_has_its_patch() -> None:
    patches = expand(OURS, -1.0, 1.0)
    assert patches is not None
    n = len(patches.edges) - 1
    assert patches.of.shape == (n, n)
    assert (patches.edges[0], patches.edges[-1]) == (-1.0, 1.0)
    assert sorted(set(patches.of.ravel().tolist())) == list(range(len(patches.x)))
    middle = (patches.edges[1:] + patches.edges[:-1]) / 2
    np.testing.assert_allclose(patches.x[patches.of], np.broadcast_to(middle[:, None], (n, n)))
    for i in (0, n // 2, n - 1):
        for one in np.unique(patches.of[i]):
            mine = patches.edges[:-1][patches.of[i] == one][0], patches.edges[1:][patches.of[i] == one][-1]
            assert patches.t[one] == pytest.approx(middle[i] - sum(mine) / 2)


def test_terms_of_third_order_bound_those_of_a_moved_polynomial() -> None:
    rng = np.random.default_rng(3)
    coefficients, (xi, eta) = rng.standard_normal((len(POWERS), 5)), rng.uniform(0.1, 0.9, (2, 5))
    bound = third_order(coefficients, xi, eta)
    for a, b in ((1, 1), (-1, 1), (0.3, -0.7), (0, 0)):
        for p in range(4):
            found = sum(
                c * math.comb(i, p) * math.comb(j, 3 - p) * (a * xi) ** (i - p) * (b * eta) ** (j - 3 + p)
                for c, (i, j) in zip(coefficients, POWERS, strict=True)
                if i >= p and j >= 3 - p
            )
            assert (np.abs(found) <= bound[p]).all()
    alone = np.zeros((len(POWERS), 1))
    alone[POWERS.index((2, 1))] = -3.0
    np.testing.assert_allclose(third_order(alone, np.ones(1), np.ones(1))[:, 0], [0, 0, 3, 0], atol=1e-9)


def test_weights_that_do_not_add_up_to_minus_one_are_counted() -> None:
    assert OURS.apart == 0.0
    assert Heads(OURS.slope, OURS.shift, OURS.weight + 2.0**-50).apart == 4 * 2.0**-50
    assert Heads(OURS.slope, OURS.shift, -OURS.weight).apart == 2
    assert Heads(np.ones(3), np.ones(3), np.array([1.0, 2.0**-60, -2.0])).apart == 2.0**-60


@pytest.mark.parametrize(
    "change",
    [
        {"attention.W_K": np.array([1, 1, 1, 2.0]).reshape(4, 1, 1)},
        {"attention.W_V": np.array([1, 1, 1, -1.0]).reshape(4, 1, 1)},
        {"attention.b_K": np.array([[0], [0], [0], [1.0]])},
        {"embedding.lift": np.ones((1, 1))},
        {"embedding.table": np.ones((3, 1))},
        {"embedding.lift": np.ones((1, 1)), "embedding.positions": np.ones((2, 1))},
        {"feedforward.0.weight": np.ones((1, 1)), "feedforward.0.bias": np.zeros(1)},
        {"attention.W_Q": np.full((4, 1, 1), 2.0**31)},
        {"attention.W_O": np.full((4, 1, 1), 2.0**31)},
        {"attention.b_Q": np.full((4, 1), 2.0**31)},
        {f"attention.W_{name}": np.ones((4, 1, 2)) for name in "QKV"}
        | {"attention.W_O": np.ones((4, 2, 1)), "attention.b_Q": np.ones((4, 2))},
        {f"attention.W_{name}": np.ones((4, 2, 1)) for name in "QKV"}
        | {"attention.W_O": np.ones((4, 1, 2)), "readout.0.weight": np.ones((2, 5))},
    ],
)
def test_other_layers_are_not_taken_for_one(change: Any) -> None:
    assert recognise(build(tensors())) is not None
    assert recognise(build(tensors() | change)) is None
    assert recognise(build(tensors(), causal=True)) is None


def test_without_biases_there_are_no_shifts() -> None:
    T = tensors()
    del T["attention.b_Q"]
    found = recognise(build(T))
    assert found is not None
    np.testing.assert_array_equal(found.shift, np.zeros(4))
    np.testing.assert_array_equal(found.slope, SLOPES)
    np.testing.assert_array_equal(found.weight, WEIGHTS)


def test_too_much_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    steep = Heads(np.array([2.0**20]), np.zeros(1), np.ones(1))
    assert expand(steep, -1.0, 1.0) is None
    assert expand(OURS, -(2.0**31), 2.0**31) is None
    assert expand(OURS, 1.0, 1.0 + 2.0**-50) is None
    monkeypatch.setattr(expansions, "MOST_HEADS", 3)
    assert recognise(build(tensors())) is None
    for least, what in ((1e5, "patches"), (1e7, "expansions|patches")):
        with limited(least, None), pytest.raises(Beyond, match=what):
            expand(OURS, -1.0, 1.0)
