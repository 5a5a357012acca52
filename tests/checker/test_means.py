"""The mean error on a whole square: never below a fine grid's, near it, and refused where it is claimed smaller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer_checker.core.claims import Claim
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.samples import Data
from onelayer_checker.functions import means
from onelayer_checker.functions.branch import middle
from onelayer_checker.functions.cells import power
from onelayer_checker.functions.expansions import POWERS, expand
from onelayer_checker.functions.means import Boxes, Means, recognise, taylor
from tests.checker import honest
from tests.checker.asked import check
from tests.checker.square import (
    CUBIC,
    WEIGHTS,
    answers,
    claimed,
    cubic,
    mean_on_grid,
    network,
    program,
    summed,
    tensors,
)

#: |x1 - x2| of the pair, whose slopes jump where both are equal; and its root, whose slopes have no bound there.
APART: dict[str, Any] = {
    "n": 2,
    "d": 1,
    "per": "sequence",
    "components": 1,
    "lines": [["x", 0, 0], ["x", 1, 0], ["sub", 0, 1], ["abs", 2]],
    "outputs": [3],
}
ROOT = APART | {"lines": [*APART["lines"], ["sqrt", 3]], "outputs": [4]}
#: x1 at the first token, x2 - 1/2 at the second: no symmetry.
UNLIKE = CUBIC | {"lines": [["x", 0, 0], ["x", 1, 0], ["const", (0.5).hex()], ["sub", 1, 2]], "outputs": [0, 3]}


def looked_at(target: Any = CUBIC, p: int = 2, low: float = -1.0, high: float = 1.0, **parts: Any) -> Means:
    layer = recognise(network(**parts), program(target))
    assert layer is not None
    patches = expand(layer.heads, low, high)
    assert patches is not None
    return Means(layer, patches, program(target), p)


@pytest.fixture(autouse=True)
def _few_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares with which a layer of four heads takes thousands of boxes, not a million."""
    monkeypatch.setattr(means, "SHARES", (2.0**-14, 2.0**-16))


# Bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_bound_is_a_little_above_the_mean(p: int) -> None:
    found, seen = looked_at(p=p).bound(means.SHARES[0]), mean_on_grid(tensors(), cubic, p, -1, 1)
    assert seen <= found * (1 + 1e-3)  # a grid of 400 x 400 may be a little above the mean
    assert found <= seen * 1.02


def test_a_smaller_share_is_nearer() -> None:
    one = looked_at()
    far, near = one.bound(2.0**-14), one.bound(2.0**-19)
    assert mean_on_grid(tensors(), cubic, 2, -1, 1) * (1 - 1e-3) < near < far


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.1, 0.7), (-3.0, 0.0)])
def test_on_other_boxes(ends: tuple[float, float]) -> None:
    found, seen = looked_at(low=ends[0], high=ends[1]).bound(2.0**-15), mean_on_grid(tensors(), cubic, 2, *ends)
    assert seen * (1 - 2e-3) <= found <= seen * 1.05


@pytest.mark.parametrize("target", [APART, ROOT])
def test_targets_with_kinks_and_without_slopes(target: Any) -> None:
    def wanted(x: Any, other: Any) -> Any:
        return np.abs(x - other) ** (0.5 if target is ROOT else 1)

    found, seen = looked_at(target).bound(2.0**-15), mean_on_grid(tensors(), wanted, 2, -1, 1)
    assert seen * (1 - 2e-3) <= found <= seen * 1.05


def test_tokens_have_targets_of_their_own() -> None:
    """Where no symmetry is seen, both halves of the square are looked at."""
    one = looked_at(UNLIKE)
    assert not one.halved
    axis = -1 + (np.arange(300) + 0.5) / 150
    x, other = (a.ravel() for a in np.meshgrid(axis, axis))
    errors = np.abs(answers(tensors(), x, other) - x), np.abs(answers(tensors(), other, x) - (other - 0.5))
    seen = float((np.maximum(*errors) ** 2).mean())
    assert seen * (1 - 2e-3) <= one.bound(2.0**-15) <= seen * 1.05


def test_half_of_the_square_is_enough_where_the_target_is_symmetric() -> None:
    one = looked_at()
    assert one.halved
    half, looked = one.bound(2.0**-15), one.looked
    one.halved = False
    assert one.bound(2.0**-15) == pytest.approx(half, rel=1e-3)
    assert one.looked > 1.7 * looked


numbers = st.floats(-8, 8).map(lambda x: round(x, 2))
HEADS = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4)
HINGES = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4)


@settings(max_examples=8)
@given(HEADS, HINGES, numbers, st.sampled_from([1, 2, 3]))
def test_no_random_layer_has_a_larger_mean(heads: Any, hinges: Any, constant: float, p: int) -> None:
    slopes, shifts, weights = zip(*heads, strict=True)
    knots, out = zip(*hinges, strict=True)
    parts = {"slopes": slopes, "shifts": shifts, "weights": weights, "knots": knots, "out": out}
    found = looked_at(p=p, constant=constant, **parts).bound(2.0**-12)
    seen = mean_on_grid(tensors(constant=constant, **parts), cubic, p, -1, 1, 120)
    assert seen <= found * (1 + 5e-3) + 1e-9


@pytest.mark.parametrize("weights", [WEIGHTS, [2.5, -1.5, -2.25, 0.75]])
@pytest.mark.parametrize("token", [0, 1])
def test_errors_at_points_are_within_those_of_their_boxes(token: int, weights: list[float]) -> None:
    one, rng = looked_at(weights=weights), np.random.default_rng(7)
    T, apart = tensors(weights=weights), 1 + sum(weights)
    n = len(one.patches.edges) - 1
    cell = rng.integers(0, n, (400, 2))
    low, high = one.patches.edges[cell], one.patches.edges[cell + 1]
    for part in (0.0, 0.9, 0.999):  # the whole cell, and boxes in its corner
        boxes = Boxes(low + part * (high - low), high, cell)
        centre, radius = middle(boxes.low, boxes.high)
        e, _ = one.error(boxes, centre, radius, token)
        y = one.stream(cell, centre, radius)
        for _ in range(20):
            moved = radius * np.where(rng.random((400, 2)) < 0.3, rng.choice([-1, 1], (400, 2)), rng.uniform(-1, 1))
            x = np.clip(centre + moved, boxes.low, boxes.high)
            mine, other = (x[:, 0], x[:, 1]) if token == 0 else (x[:, 1], x[:, 0])
            moved = x - centre
            off = answers(T, mine, other) - cubic(mine, other)
            assert (np.abs(off - (e.c + e.p * moved[:, 0] + e.q * moved[:, 1])) <= e.r).all()
            t = x[:, 0] - x[:, 1]
            stream = t / 2 * (1 + summed(one.layer.heads, x[:, 0], x[:, 1])) + apart * (x[:, 0] + x[:, 1]) / 2
            assert (np.abs(stream - (y.c + y.p * moved[:, 0] + y.q * moved[:, 1])) <= y.r).all()
    assert np.median(e.r) < 1e-4


def test_derivatives_of_polynomials() -> None:
    """Of 2 xi^3 eta + 5 at (3, 2): values and derivatives by hand, those of second order halved."""
    coefficients = np.zeros((len(POWERS), 1))
    coefficients[POWERS.index((3, 1))], coefficients[POWERS.index((0, 0))] = 2.0, 5.0
    coefficients[POWERS.index((0, 2))] = 0.5
    found = [float(part[0]) for part in taylor(coefficients, np.array([3.0]), np.array([2.0]))]
    assert found == [115.0, 108.0, 56.0, 36.0, 54.0, 0.5]


# Claims -----------------------------------------------------------------------------------------------------------


def judged(bound: float, target: Any = CUBIC, model: Any = None, **numbers: Any) -> list[str]:
    return honest.judged(claimed(tensors() if model is None else model, target, bound=bound, **numbers))


ROOT_MEAN = mean_on_grid(tensors(), cubic, 2, -1, 1) ** 0.5


def test_a_bound_above_the_mean_is_proved_and_one_below_is_not() -> None:
    assert judged(ROOT_MEAN * 1.02) == ["proved"]
    assert judged(ROOT_MEAN * 0.999) == ["undecided"]


def test_in_float64_too_with_what_it_rounds() -> None:
    assert judged(ROOT_MEAN * 1.02, arith="float64") == ["proved"]
    assert judged(2.0**-60, arith="float64") == ["undecided"]


@pytest.mark.parametrize("p", [1, 64])
def test_other_powers(p: int) -> None:
    mean = mean_on_grid(tensors(), cubic, p, -1, 1) ** (1 / p)
    assert judged(mean * 1.05, p=float(p)) == ["proved"]
    assert judged(mean * 0.99, p=float(p)) == ["undecided"]


def test_where_the_first_share_misses_the_bound_the_second_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = ((looked_at().bound(2.0**-8) + looked_at().bound(2.0**-18)) / 2) ** 0.5
    monkeypatch.setattr(means, "SHARES", (2.0**-8, 2.0**-18))
    assert judged(bound) == ["proved"]
    monkeypatch.setattr(means, "SHARES", (2.0**-8,))
    assert judged(bound) == ["undecided"]


def judged_at_its_mean(model: Any) -> list[str]:
    """Just below its own mean, and just above."""
    own = mean_on_grid(model, cubic, 2, -1, 1) ** 0.5
    return judged(own * 0.998, model=model) + judged(own * 1.02, model=model)


def test_changed_weights_have_another_mean() -> None:
    for name, at, value in (
        ("attention.W_O", (1, 0, 0), -2.5),
        ("attention.b_Q", (0, 0), 3.0),
        ("attention.W_Q", (2, 0, 0), -6.0),
        ("readout.0.bias", (1,), -0.5),
        ("readout.1.weight", (1, 0), 2.0),
        ("readout.1.bias", (0,), 0.0),
    ):
        forged = {key: a.copy() for key, a in tensors().items()}
        forged[name][at] = value
        assert judged_at_its_mean(forged) == ["undecided", "proved"], name


def test_hinges_in_another_order_with_their_weights_are_the_same_readout() -> None:
    order, T = [3, 1, 0, 4, 2], tensors()
    moved = T | {"readout.0.bias": T["readout.0.bias"][order], "readout.1.weight": T["readout.1.weight"][order]}
    assert judged(ROOT_MEAN * 0.998, model=moved) + judged(ROOT_MEAN * 1.02, model=moved) == ["undecided", "proved"]
    assert judged_at_its_mean(T | {"readout.1.weight": T["readout.1.weight"][order]}) == ["undecided", "proved"]


def test_a_head_more_counts() -> None:
    T = tensors([12, 12, 6, 0, 3], [0.5, -0.5, 0, 0.25, 1], [2.5, -1.5, -2.25, 0.25, 0.5])
    assert judged_at_its_mean(T) == ["undecided", "proved"]


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        ({"low": -2.0, "high": 2.0}, "undecided"),
        ({"low": -1.0, "high": 1.5}, "undecided"),
        ({"low": -(2.0**1000), "high": 2.0**1000}, "undecided"),
        ({"low": -(2.0**1020), "high": 2.0**1020}, "undecided"),
        ({"low": 1.0, "high": 1.0 + 2.0**-52}, "undecided"),
        ({"radius": 2.0**-10}, "undecided"),
        ({"p": 64.0, "bound": 2.0**-900}, "undecided"),
        ({"bound": 0.0}, "undecided"),
    ],
)
def test_other_boxes_and_bounds(numbers: Any, outcome: str) -> None:
    assert honest.judged(claimed(tensors(), **{"bound": ROOT_MEAN * 1.02} | numbers)) == [outcome]


@pytest.mark.parametrize("scale", [2.0**-1074, 2.0**-1000, 2.0**30])
def test_weights_at_the_ends_of_the_numbers(scale: float) -> None:
    """Heads that weigh nothing leave (x1 + x2)/2 + (x1 - x2)/2, which is read; large ones are far off."""
    T = tensors() | {"attention.W_O": np.array([1, -1, 1, -1]).reshape(4, 1, 1) * scale}
    seen = mean_on_grid(T, cubic, 2, -1, 1) ** 0.5
    assert judged(seen * 0.99, model=T) == ["undecided"]
    if scale < 1:
        assert judged(seen * 1.02, model=T) == ["proved"]


def test_a_target_without_values_somewhere_is_not_proved() -> None:
    pole = APART | {"lines": [*APART["lines"], ["const", (1.0).hex()], ["div", 4, 3]], "outputs": [5]}
    assert judged(2.0**400, pole) == ["undecided"]


def test_more_tokens_are_not_of_this_kind() -> None:
    assert recognise(network(), program(CUBIC | {"n": 3, "outputs": [8, 9, 8]})) is None
    assert recognise(network(), program(CUBIC | {"d": 2})) is None
    assert recognise(build(tensors() | {"attention.b_K": np.ones((4, 1))}), program()) is None
    assert recognise(build(tensors() | {"readout.0.weight": -np.ones((1, 5))}), program()) is None
    assert recognise(network(), program()) is not None


def test_the_stored_pair_lies_in_the_box() -> None:
    b = claimed(tensors(), bound=2.0)
    b.data["tokens"][:] = 3.0
    assert honest.judged(b) == ["malformed"]


def test_the_verdict_says_what_is_proved(tmp_path: Any) -> None:
    verdict = check(claimed(tensors(), bound=ROOT_MEAN * 1.02).write(tmp_path / "proved"))
    assert verdict["result"] == "VERIFIED"
    assert "in real numbers, none left out" in verdict["claims"][0]["why"]
    verdict = check(claimed(tensors(), bound=ROOT_MEAN * 0.9).write(tmp_path / "forged"))
    assert verdict["result"] == "UNKNOWN"


def test_the_least_bound_is_one_that_is_then_proved() -> None:
    b = claimed(tensors(), bound=9.0)
    claim = Claim.read(b.certificate["claims"][0])
    layer, memo, T = recognise(build(tensors()), program()), {}, build(tensors())
    assert layer is not None
    least = means.least_bound(T, layer, claim, memo)
    assert ROOT_MEAN * 0.999 < least < ROOT_MEAN * 1.02
    assert judged(least) == ["proved"]
    smaller = replace(claim, numbers=claim.numbers | {"bound": 0.1})
    assert means.least_bound(T, layer, smaller, memo) == 0.1


def test_powers_of_small_errors_do_not_vanish() -> None:
    assert power(np.array([2.0**-100]), 64)[0] > 0


def test_each_mean_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    bound = Means.bound
    monkeypatch.setattr(Means, "bound", lambda self, share: made.append(1) or bound(self, share))
    b = claimed(tensors(), bound=ROOT_MEAN * 1.02)
    claims = [Claim.read(b.certificate["claims"][0])]
    claims.append(Claim(claims[0].type, "float64", "token", claims[0].numbers, claims[0].target))
    tokens = np.zeros((1, 2, 1))
    data = Data(tokens, np.array([2]), np.zeros((2, 1)), np.arange(2))
    judge = Judge(build(b.model), data)
    assert [judge.judge(claim).outcome for claim in claims] == ["proved", "proved"]
    assert len(made) == 1
