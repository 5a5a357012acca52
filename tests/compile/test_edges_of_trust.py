"""Where a promise ends: jumps, poles, wrong constants, targets of which nothing is proved, inputs elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

from onelayer import DataError, HypothesisError, OptionError, approximate
from onelayer.compile import positional, proof_time
from onelayer.compile.asked import request_for
from onelayer_checker.functions import simplices

Array = NDArray[np.float64]


def fitted() -> Callable[[Array], Array]:
    """The trees are grown once: a function is called often."""
    points = np.random.default_rng(0).random((300, 1))
    trees = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(points, np.sin(6 * points[:, 0]))
    return lambda X: trees.predict(X.reshape(-1, 1)).reshape(X.shape)


#: A function, its tokens, and where it jumps: a condition on the pair of inputs that the refusal names.
JUMPS: dict[str, tuple[Callable[[Array], Array], int, Callable[[Array], bool]]] = {
    "sign": (lambda X: np.sign(X - 0.3312), 1, lambda x: abs(x[0, 0] - 0.3312) < 1e-6),
    "sign at the end": (np.sign, 1, lambda x: abs(x[0, 0]) < 1e-6),
    "floor": (lambda X: np.floor(7 * X) / 7, 1, lambda x: abs(7 * x[0, 0] - round(7 * x[0, 0])) < 1e-5),
    "argmax": (lambda X: (X.max(1, keepdims=True) == X) * 1.0, 2, lambda x: abs(x[0, 0] - x[1, 0]) < 1e-6),
    "rank": (
        lambda X: (X[:, :, None, 0] > X[:, None, :, 0]).sum(2)[..., None] / 3.0,
        3,
        lambda x: min(abs(np.diff(np.sort(x[:, 0])))) < 1e-6,
    ),
    "a small jump on a steep wave": (
        lambda X: np.sin(30 * X) + 0.2 * (X > 0.7123),
        1,
        lambda x: abs(x[0, 0] - 0.7123) < 1e-6,
    ),
}


@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("constant", [None, 200.0])
def test_a_jump_is_refused_with_the_place(name: str, constant: float | None) -> None:
    f, n, near = JUMPS[name]
    with pytest.raises(HypothesisError, match=r"continuous.* jumps by") as refused:
        approximate(f, n=n, kind="equivariant", tolerance=0.05, lipschitz=constant, allow_unproved=True)
    place = refused.value.found.split(" at ")[1].split(" to ")[0]
    assert near(np.array(eval(place)))


def test_boosted_trees_are_refused_with_the_place() -> None:
    f = fitted()
    with pytest.raises(HypothesisError, match="jumps by") as refused:
        approximate(f, n=1, kind="equivariant", tolerance=0.05, allow_unproved=True)
    x = float(refused.value.found.split(" at [[")[1].split("]")[0])
    around = f(np.array([x - 1e-4, x + 1e-4]).reshape(2, 1, 1)).ravel()
    assert abs(np.diff(around)) > 0.05 / 8


@pytest.mark.parametrize("f", [np.cbrt, lambda X: np.sin(60 * X), lambda X: np.abs(X - 0.5), np.sqrt])
def test_what_is_steep_is_no_jump(f: Callable[[Array], Array]) -> None:
    model = approximate(f, n=1, kind="equivariant", tolerance=0.1, allow_unproved=True)
    assert model.measured_error <= 0.1


def test_a_pole_of_a_python_function_is_named() -> None:
    with pytest.raises(HypothesisError, match=r"no bound near \[\[0\.3333"):
        approximate(lambda X: 1 / (X - 0.3333), n=1, kind="equivariant", tolerance=0.05, allow_unproved=True)


@pytest.mark.parametrize(
    ("formula", "n", "point"),
    [
        ("1/(x - 0.3333)", 1, r"undefined at \[\[0\.3333\]\]: a divisor is 0 there"),
        ("1/(mean(y) - 0.3333)", 2, r"undefined at \[\[0\.3333\], \[0\.3333\]\]"),
        ("1/(x - 0.3333)**2", 1, r"undefined at \[\[0\.3333\]\]"),
        ("1/(0.25 - var(y))", 2, r"undefined at \[\[[01](\.0)?\], \[[01](\.0)?\]\]"),
        ("log(x - 0.25)", 1, r"undefined at .*: the argument of log is -?[0-9.e-]+ there"),
        ("sqrt(mean(y) - 0.4)", 8, r"the argument of sqrt is -[0-9.e-]+ there"),
        ("x1/(x2 - 0.71)", 2, r"undefined at \[\[0\.71\], \[0\.71\]\]"),
    ],
)
def test_a_pole_is_named_with_the_point(formula: str, n: int, point: str) -> None:
    with pytest.raises(HypothesisError, match=point):
        approximate(formula, n=n, tolerance=0.05)


def test_what_only_might_have_a_pole_has_none() -> None:
    """Interval arithmetic sees a 0 in 0.1 + x - x**2, which is none of its values."""
    model = approximate("1/(0.1 + x - x**2)", n=1, tolerance=0.1, construction="positional")
    assert model.proved


@pytest.mark.parametrize("where", [0.123, 0.87654])
def test_a_constant_that_is_wrong_in_a_small_place_has_a_witness(where: float) -> None:
    def spike(X: Array) -> Array:
        return np.maximum(0, 0.3 - 40 * np.abs(X - where))

    with pytest.raises(HypothesisError, match=r"from \[\[.* to \[\[.* it changes by.*Pass at least (39\.|40)"):
        approximate(spike, n=1, kind="equivariant", tolerance=0.05, lipschitz=5.0)


def test_a_callable_without_a_constant_gets_the_right_plan_if_that_is_wished() -> None:
    def wave(X: Array) -> Array:
        return np.sin(2 * np.pi * X)

    with pytest.raises(HypothesisError, match=r"a proof.*lipschitz=6\.[2-9].*allow_unproved=True"):
        approximate(wave, n=1, kind="equivariant", tolerance=0.05)
    model = approximate(wave, n=1, kind="equivariant", tolerance=0.05, allow_unproved=True)
    assert not model.proved
    assert model.n_parameters < 200
    X = np.random.default_rng(1).random((200_000, 1, 1)).astype(np.float32)
    assert model.errors(X).max() <= 0.05


def test_what_is_not_proved_is_not_returned() -> None:
    with pytest.raises(HypothesisError, match=r"a proof that the error is at most 1e-05"):
        approximate("max(y)", n=2, tolerance=1e-5, construction="positional")
    model = approximate("max(y)", n=2, tolerance=1e-5, construction="positional", allow_unproved=True)
    assert not model.proved


@pytest.mark.parametrize(
    ("target", "n"), [("max(y)", 2), ("sort", 2), ("abs(x1 - x2)", 2), ("median", 3), ("relu(x1 - x2)", 2)]
)
def test_what_is_exact_is_proved_exact_along_the_simplices(target: str, n: int) -> None:
    model = approximate(target, n=n, tolerance=3e-4, construction="positional")
    assert model.error_bound <= 3e-4
    assert model.certificate is not None
    real = next(c for c in model.certificate.claims if c["arith"] == "real")
    assert float.fromhex(str(real["bound"])) < 1e-9
    assert int(model.ledger.number("levels")) == 1


def test_a_symmetric_formula_keeps_its_function_for_any_number_of_tokens() -> None:
    model = approximate("max(y) - x", n=8, tolerance=0.55, construction="quantise")
    assert model.proved
    assert model.interface.assumes == ""


def test_inputs_beyond_the_box_are_named() -> None:
    model = approximate("x - mean(y)", n=3, tolerance=0.05)
    X = np.full((2, 3, 1), 0.5)
    X[1, 2] = 5.0
    with pytest.raises(DataError, match=r"within \[0, 1\].*sequence 1, token 2, .* is 5.*outside=\"answer\""):
        model.predict(X)
    assert model.predict(X, outside="answer").shape == (2, 3, 1)
    with pytest.raises(OptionError, match="outside"):
        model.predict(X, outside="perhaps")  # type: ignore[arg-type]


def test_other_lengths_are_answered_only_where_the_bound_holds() -> None:
    model = approximate("x - mean(y)", n=3, tolerance=0.05)
    assert model.predict(np.full((1, 2, 1), 0.5)).shape == (1, 2, 1)
    with pytest.raises(DataError, match=r"1 to 3 tokens.*sequences of 5"):
        model.predict(np.full((1, 5, 1), 0.5))
    counted = approximate("sum(y) - x", n=3, tolerance=0.05)
    with pytest.raises(DataError, match=r"sequences of 3 tokens.*sequences of 2"):
        counted.predict(np.full((1, 2, 1), 0.5))
    with pytest.raises(DataError, match="components a token as the model was built for: 1"):
        model.predict(np.full((1, 3, 2), 0.5))


def test_ends_of_the_box_belong_to_it_in_any_dtype() -> None:
    model = approximate("x - mean(y)", n=2, low=0.1, high=0.7, tolerance=0.05)
    assert np.isfinite(model.predict(np.array([[[0.1], [0.7]]]))).all()


@pytest.mark.parametrize(("text", "n"), [("max(y - x)", 3), ("sort", 4), ("x*mean(y)", 3), ("x - mean(y)", 6)])
def test_a_first_look_counts_the_boxes_of_a_proof(text: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the checker encloses in one arithmetic, within a factor of 5."""
    asked = request_for(text, n=n, tolerance=0.1)
    plan = positional.plan(asked)
    lattice = positional.lattice_of(asked, plan.levels)
    expected = proof_time.first_look(asked, lattice).boxes * lattice.levels**lattice.m * math.factorial(lattice.m)
    counted: list[int] = []
    enclose = simplices.enclose

    def counting(target: Any, low: Array, high: Array, gradient: bool) -> Any:
        counted.append(len(low))
        return enclose(target, low, high, gradient)

    monkeypatch.setattr(simplices, "enclose", counting)
    approximate(text, n=n, tolerance=0.1, construction="positional")
    views = n if asked.target.kind == "equivariant" else 1
    boxes = sum(counted) / (2 * 2 * views)  # two arithmetics; values at the centre, slopes on the box
    assert boxes / 5 <= expected <= 5 * boxes
