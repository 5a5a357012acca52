"""Functions into one layer: bounds that hold, equivariance to the bit, refusals before any work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer.compile import approximate as compiler
from onelayer.compile import making
from onelayer.compile.construction import CONSTRUCTIONS, Request, enough_levels
from onelayer.functions.grid import Grid
from onelayer.functions.positional import Lattice, at_vertices, construct, interpolate
from onelayer.interfaces import Answers
from onelayer.ledger import Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.problems.targets import resolve

CASES = [
    ("sort", 3, 1, 0.1, "quantise"),
    ("standardise", 2, 1, 0.2, "quantise"),
    ("softmax", 2, 2, 0.1, "quantise"),
    ("reversal", 2, 1, 0.1, "quantise"),
    ("standardise", 2, 1, 0.1, "published"),
    ("standardise", 2, 1, 0.1, "positional"),
    ("gap", 3, 1, 0.1, "positional"),
    ("moving_average", 3, 1, 0.05, "positional"),
    ("softmax", 2, 2, 0.02, "positional"),
    ("x1*x2 + sin(3*x1)", 2, 1, 0.05, "positional"),
]


@pytest.mark.parametrize(("target", "n", "d", "tolerance", "construction"), CASES)
def test_the_bound_is_proved_and_holds(
    target: str, n: int, d: int, tolerance: float, construction: str, tmp_path: Path
) -> None:
    model = onelayer.approximate(
        target, n=n, d=d, tolerance=tolerance, construction=construction, low=-0.5, high=0.7
    )
    assert model.proved
    assert not model.interface.assumes
    assert model.error_bound <= tolerance
    assert 0.0 < largest_error(model.errors, model.interface.box, 20_000, seed=3)[0] <= model.error_bound
    ramps = {"quantise": 0.01, "published": 0.1, "positional": 0.0}  # and two tokens in one cell, if published
    assert model.interface.left_out <= ramps[construction]
    assert sum(line.value for line in model.budget.lines) == pytest.approx(model.error_bound)
    dense = model.predict(model.interface.box.draw(np.random.default_rng(0), 200), path="dense")
    found = model.predict(model.interface.box.draw(np.random.default_rng(0), 200))
    np.testing.assert_allclose(dense, found, atol=1e-5)
    model.save(tmp_path / "model")
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "onelayer_checker", str(tmp_path / "model")], capture_output=True, text=True
    )
    assert ran.stdout.strip().endswith("VERIFIED"), ran.stdout + ran.stderr
    again = onelayer.load(tmp_path / "model")
    X = model.interface.box.draw(np.random.default_rng(1), 50)
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("construction", ["quantise", "positional"])
def test_real_arithmetic_and_float64(construction: str) -> None:
    model = onelayer.approximate("softmax", n=2, tolerance=0.1, construction=construction, dtype="float64")
    assert model.proved
    assert model.transformer.dtype == np.float64
    assert model.budget["floating_point"] < 1e-9


def test_permuting_sixty_four_tokens_permutes_the_answers_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    model = onelayer.approximate("x - mean(y)", n=64, tolerance=0.55, construction="quantise")
    X = rng.random((20, 64, 1)).astype(np.float32)
    order = rng.permutation(64)
    for path in ("dense", "auto"):
        assert np.array_equal(model.predict(X, path=path)[:, order], model.predict(X[:, order], path=path))
    assert model.interface.assumes == ""  # the checker sees the symmetry in the lines of the formula


def test_a_function_with_a_lipschitz_constant_is_proved_under_that_assumption() -> None:
    def wave(X: np.ndarray) -> np.ndarray:
        return np.sin(3 * X).mean(axis=1)

    model = onelayer.approximate(wave, n=2, tolerance=0.1, kind="invariant", lipschitz=3.0)
    assert model.proved
    assert model.interface.assumes == "the target is 3-Lipschitz and invariant"
    assert model.certificate is not None
    assert all("3-Lipschitz" in verdict for verdict in model.certificate.verdicts)
    unknown = onelayer.approximate(wave, n=2, tolerance=0.1, kind="invariant", allow_unproved=True)
    assert not unknown.proved
    assert unknown.error_bound == np.inf
    assert 0 < unknown.measured_error <= 0.1
    assert "not proved" in repr(unknown)
    assert "Lipschitz constant" in unknown.explain()
    with pytest.raises(onelayer.OptionError, match=r"nothing was proved.*Lipschitz constant"):
        unknown.verify()
    X = unknown.interface.box.draw(np.random.default_rng(0), 3)
    for known in (model, unknown):
        with pytest.raises(onelayer.OptionError, match=r"made when it is built.*Lipschitz constant"):
            known.certify(X, wave(X))


def test_auto_takes_the_smallest_with_a_proof_and_says_what_the_others_cost() -> None:
    model = onelayer.approximate("standardise", n=2, tolerance=0.05)
    assert model.interface.construction == "continuous"
    assert model.error_bound <= 0.05
    for name in ("quantise", "positional"):
        other = onelayer.approximate("standardise", n=2, tolerance=0.05, construction=name)
        assert model.n_parameters < other.n_parameters
        line = next(line for line in model.ledger.lines if line.name == "construction")
        assert f"{name}: " in line.meaning
        assert "parameters" in line.meaning


def test_auto_fits_nothing_where_cells_are_fewer_or_a_proof_takes_long() -> None:
    for target, n in (("median", 2), ("standardise", 3), ("reversal", 2)):
        model = onelayer.approximate(target, n=n, tolerance=0.2)
        assert {plan.construction for plan in model.interface.compared} == {"quantise", "positional"}, target


def test_auto_goes_on_when_one_construction_refuses(monkeypatch) -> None:
    def refuse(_: Request) -> None:
        raise onelayer.HypothesisError("quantise", "patience", "none", "Wait.")

    monkeypatch.setattr(CONSTRUCTIONS["quantise"], "plan", refuse)
    assert onelayer.approximate("median", n=2, tolerance=0.1).interface.construction == "positional"
    for name in ("positional", "continuous"):
        monkeypatch.setattr(CONSTRUCTIONS[name], "plan", refuse)
    monkeypatch.setattr(CONSTRUCTIONS["continuous"], "worth_comparing", lambda request, _: refuse(request))
    with pytest.raises(onelayer.HypothesisError, match="patience"):
        onelayer.approximate("median", n=2, tolerance=0.1)


def test_auto_takes_the_next_plan_when_the_first_cannot_be_proved(monkeypatch) -> None:
    """Claims of the fit are withheld from the checker, as if it had found no proof of them."""
    asked = making.prove

    def prove(transformer, tensors, entries, *rest):
        averages = transformer.attention.heads > 2
        return None if averages else asked(transformer, tensors, entries, *rest)

    monkeypatch.setattr(making, "prove", prove)
    monkeypatch.setattr(making, "REPAIRS", 1)
    model = onelayer.approximate("standardise", n=2, tolerance=0.05)
    assert [plan.construction for plan in model.interface.compared][:2] == ["continuous", "positional"]
    assert model.interface.construction == "positional"
    assert model.proved


def test_a_tolerance_out_of_reach_is_refused_before_any_work() -> None:
    said: list[str] = []
    with pytest.raises(onelayer.HypothesisError, match=r"in all.*GiB.*tolerance of about") as caught:
        onelayer.approximate("sort", n=4, d=2, tolerance=0.001, on_step=said.append)
    assert not any("building" in line for line in said)
    assert "0.001 would take" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"low": 1.0, "high": 0.0}, "low < high"),
        ({"high": float("inf")}, "finite ends"),
        ({"n": 1.5}, "whole n and d"),
        ({"tolerance": "0.1"}, "whole n and d"),
        ({"tolerance": 0.0}, "tolerance above 0"),
        ({"construction": "magic"}, "a construction among"),
        ({"dtype": "int32"}, "float32 or float64"),
        ({"seed": -1}, "whole seed"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    options_given: dict[str, object] = {"n": 2, "tolerance": 0.1} | options
    with pytest.raises(onelayer.OnelayerError, match=message):
        onelayer.approximate("mean", **options_given)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = (onelayer.approximate("sort", n=3, tolerance=0.1, construction="quantise") for _ in range(2))
    for (_, a), (_, b) in zip(first.transformer.tensors(), second.transformer.tensors(), strict=True):
        assert np.array_equal(a, b)


@settings(deadline=None, max_examples=30)
@given(levels=st.integers(2, 6), n=st.integers(1, 3), d=st.integers(1, 2), ordered=st.booleans())
def test_a_grid_lists_every_sequence_of_cells_once(levels: int, n: int, d: int, ordered: bool) -> None:
    grid = Grid(n, d, -1.0, 2.0, levels, np.dtype("float64"), ordered)
    rows = grid.sequences()
    assert len(rows) == grid.count == len({tuple(row) for row in rows.tolist()})
    assert ordered or (np.diff(rows, axis=1) >= 0).all()
    assert rows.max() == grid.cells - 1


@settings(deadline=None, max_examples=20)
@given(levels=st.integers(1, 5), m=st.integers(1, 3), seed=st.integers(0, 99))
def test_hats_interpolate(levels: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.normal(size=2))
    lattice = Lattice(m, 1, float(low), float(high), levels, np.dtype("float64"))
    mixing = rng.normal(size=(m, m))

    def wave(X: np.ndarray) -> np.ndarray:
        return np.sin(X[:, :, 0] @ mixing)[:, :, None]

    made = construct(wave, lattice, "ordered", "token", 1)
    X = rng.uniform(low, high, (50, m, 1))
    model = onelayer.Model(made.transformer, Answers(form=made.form), Ledger(()))
    wanted = interpolate(at_vertices(wave, lattice)[:, :, 0], lattice, X)
    np.testing.assert_allclose(model.predict(X, path="dense")[..., 0], wanted, atol=1e-9, rtol=1e-9)


def test_levels_are_searched_from_below() -> None:
    asked: list[int] = []

    def error(levels: int) -> float:
        asked.append(levels)
        return 1.0 / levels

    levels, found = enough_levels(error, 0.01, lambda levels: levels <= 1000, rate=1)
    assert 100 <= levels <= 104
    assert found <= 0.01
    assert enough_levels(lambda levels: 1.0 / levels, 0.01, lambda levels: levels <= 50, rate=1) == (50, 1 / 50)


def test_every_plan_has_its_builder() -> None:
    assert len(compiler.OURS) == 4  # modules, of which one registers two
    assert list(CONSTRUCTIONS) == ["formula", "quantise", "published", "positional", "continuous"]
    request = Request(resolve("mean", n=2, d=1), ((0.0, 1.0),), 0.2, np.dtype("float32"), 0, lambda _: None)
    for name in ("quantise", "positional"):
        assert CONSTRUCTIONS[name].plan(request).construction == name
