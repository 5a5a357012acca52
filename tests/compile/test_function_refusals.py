"""What cannot be approximated, or is not what it is said to be, is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import onelayer
from onelayer import HypothesisError, OptionError, approximate
from onelayer.compile import positional
from onelayer.measure.recall import outside_box, recall
from onelayer.problems.targets import target
from tests.processes import CHECKER, run_python


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(3 * X)


@pytest.mark.parametrize("formula", ["1/x", "x**-1", "1/(x - 0.5)", "x/(x1 - x2)"])
def test_a_pole_in_the_box_is_found(formula: str) -> None:
    with pytest.raises(HypothesisError, match="finite values on the box"):
        approximate(formula, n=2, tolerance=0.1)


def test_values_that_are_missing_between_the_special_points_are_noticed() -> None:
    def hole(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X - 0.33) < 0.01, np.nan, X)

    with pytest.raises(HypothesisError, match="finite values on the box"):
        approximate(hole, n=1, tolerance=0.1, kind="equivariant")


@pytest.mark.parametrize("constant", ["3", float("nan"), float("inf"), -1])
def test_what_is_no_lipschitz_constant(constant) -> None:
    with pytest.raises(OptionError, match="a Lipschitz constant of at least 0"):
        approximate(wave, n=1, tolerance=0.1, kind="equivariant", lipschitz=constant)


@pytest.mark.parametrize("constant", [3, np.float32(3)])
def test_numbers_of_other_types_are_constants(constant) -> None:
    assert approximate(wave, n=1, tolerance=0.2, kind="equivariant", lipschitz=constant).proved


def test_an_assumption_that_the_model_contradicts_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that was overlooked when the constant was tried."""
    monkeypatch.setattr(target, "check_constant", lambda *_: None)

    def spike(X: np.ndarray) -> np.ndarray:
        return np.maximum(0, 0.3 - 300 * np.abs(X - 0.50051))

    with pytest.raises(HypothesisError, match=r"0.4-Lipschitz.*is off by 0\.1.*larger Lipschitz"):
        approximate(spike, n=1, tolerance=0.05, kind="equivariant", lipschitz=0.4)


def test_complex_values_are_not_cut_to_their_real_part() -> None:
    with pytest.raises(HypothesisError, match="complex"):
        approximate(lambda X: X * 1j, n=1, tolerance=0.1, kind="equivariant")


def test_what_no_machine_holds_is_refused_with_its_price() -> None:
    with pytest.raises(HypothesisError, match=r"positional: 1 cells a component.*10\^20 parameters"):
        approximate("max(y) - x1", n=50, tolerance=0.1)
    with pytest.raises(HypothesisError, match=r"quantise: .*fewer tokens"):
        approximate("mean", n=50, tolerance=0.1, construction="quantise")


def test_a_proof_that_would_take_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six tokens have 720 orders; with one cell the model is small, its proof is not."""
    monkeypatch.setattr(positional, "MOST_SECONDS", 60.0)
    model = approximate("max(y - x)", n=6, tolerance=0.3)
    assert model.interface.construction == "quantise"
    assert model.proved
    slow = next(plan for plan in model.interface.compared if plan.construction == "positional")
    assert not slow.reachable
    assert slow.seconds > 60


def test_a_saved_model_of_a_function_keeps_its_proof(tmp_path) -> None:
    model = approximate("x - mean(y)", n=2, tolerance=0.2)
    folder = onelayer.save(tmp_path / "kept", model)
    done = run_python(CHECKER, folder)
    assert done.stdout.splitlines()[-1] == "VERIFIED"
    with pytest.raises(OptionError, match="the proof about a function is made when it is built"):
        onelayer.save(tmp_path / "other", model, data=(np.zeros((1, 2, 1)), np.zeros((1, 2, 1))))


def test_a_tolerance_below_rounding_is_refused() -> None:
    with pytest.raises(HypothesisError, match=r"a model within 1e-09; .*float32.* Use float64"):
        approximate("max(y) - x", n=2, tolerance=1e-9)


def test_answers_within_the_tolerance_are_right_and_sequences_beyond_the_box_are_counted() -> None:
    model = approximate("x - mean(y)", n=2, tolerance=0.2)
    X = np.array([[[0.5], [0.1]], [[0.3], [5.0]]])
    wanted = X - X.mean(axis=1, keepdims=True)
    assert recall(model, X[:1], wanted[:1] + 0.01).perfect
    assert not recall(model, X[:1], wanted[:1] + 0.9).perfect
    assert outside_box(model, X) == 1
    assert outside_box(onelayer.memorize(X, [0, 1]), X) == 0
