"""Weights that a model can do without: gone, and what is left is proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer import OptionError, approximate, learner, load, memorize, memorize_text, prune
from onelayer.errors import PrecisionError
from onelayer.gadgets.line import trapezoids
from onelayer.gadgets.plateaus import Plateaus

RNG = np.random.default_rng(5)
X = np.unique(RNG.integers(0, 30, (120, 3)), axis=0)
Y = np.where(RNG.random(X.shape) < 0.7, "O", RNG.choice(["a", "b", "c"], X.shape))
UNSEEN = RNG.integers(0, 30, (2000, 3))
KINDS = {
    "plateaus": {"readout": "plateaus"},
    "logits": {"readout": "plateaus", "logits": True},
    "boxes": {"readout": "boxes"},
    "default": {"default": "O"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_claims_are_proved_of_fewer_weights(kind, tmp_path) -> None:
    """The same answers, to stored inputs and to others; of plateaus, with at least a tenth fewer weights."""
    model = memorize(X, Y, positions=True, certify=True, **KINDS[kind])
    made = prune(model)
    assert made.model.n_parameters < (1.0 if kind == "default" else 0.9) * model.n_parameters
    assert made.n_removed == model.n_parameters - made.model.n_parameters
    assert made.model.ledger["parameters"] == made.model.n_parameters
    assert made.model.ledger["bytes"] == model.transformer.dtype.itemsize * made.model.n_parameters
    assert made.verify() == "VERIFIED"
    assert made.model.certificate.claims == model.certificate.claims
    for path in ("auto", "dense"):
        np.testing.assert_array_equal(made.model.predict(X, path=path), Y)
        np.testing.assert_array_equal(made.model.predict(UNSEEN, path=path), model.predict(UNSEEN, path=path))
    assert load(made.model.save(tmp_path / "small")) == made.model
    assert made.model.verify(data=(X, Y)).result == "VERIFIED"
    with pytest.raises(OptionError, match="weights that carry no answer"):
        prune(made.model)


def test_the_commonest_class_needs_no_plateaus() -> None:
    model = memorize(X, Y, positions=True, certify=True, readout="plateaus")
    made = prune(model).model
    before, after = (m.parts["readout"][1].gadget for m in (model, made))
    assert (before.values == model.form.classes.index("O")).sum() == len(before.values) - len(after.values)
    assert after.constant == model.form.classes.index("O")


def test_a_claim_that_cannot_be_proved_again_is_an_error(monkeypatch) -> None:
    """A constant that is wrong: the checker, not the pruning, decides."""
    model = memorize(X, Y, positions=True, certify=True, readout="plateaus")
    right = Plateaus.without_commonest
    monkeypatch.setattr(Plateaus, "without_commonest", lambda g: replace(right(g), constant=right(g).constant + 1))
    with pytest.raises(PrecisionError, match=r"without them the checker says of memorizes .*: refuted"):
        prune(model)


def test_real_answers_within_a_tolerance() -> None:
    tokens, answers = RNG.normal(size=(80, 2, 2)), RNG.random((80, 2))
    model = memorize(tokens, answers, certify=True, readout="plateaus")
    with pytest.raises(OptionError, match="no answer"):
        prune(model)
    sizes = []
    for tolerance in (0.05, 0.2, 0.3):
        made = prune(model, tolerance)
        assert made.verify() == "VERIFIED"
        off = np.abs(made.model.predict(tokens, path="dense") - answers).max()
        bounds = {
            c["arith"]: float.fromhex(c["eps"]) for c in made.model.certificate.claims if c["type"] == "memorizes"
        }
        assert off <= bounds[model.arithmetic] <= tolerance
        assert off > tolerance / 2
        sizes.append(made.model.n_parameters)
    assert model.n_parameters > sizes[0] > sizes[1] > sizes[2]


def test_a_function_gets_a_new_bound(tmp_path) -> None:
    model = approximate("sin(3*x)*mean(y**2)", n=4, low=-1, high=1, tolerance=0.01)
    made = prune(model, 0.05)
    assert made.n_removed > 0
    assert model.error_bound < made.model.error_bound <= 0.05
    assert made.model.measured_error <= made.model.error_bound
    assert made.verify() == "VERIFIED"
    claimed = {c["arith"]: float.fromhex(c["bound"]) for c in made.model.certificate.claims}
    assert claimed["float32"] == made.model.error_bound
    parts = sum(made.model.interface.budget.number(name) for name in made.model.interface.budget)
    assert parts == pytest.approx(made.model.error_bound)
    assert load(made.model.save(tmp_path / "small")) == made.model
    assert "(proved)" in str(made)
    with pytest.raises(OptionError, match="a tolerance of at least the proved bound"):
        prune(model, 0.001)
    with pytest.raises(OptionError, match="weights that the bound can do without"):
        prune(model)


def test_units_that_nothing_reads_go_at_no_cost() -> None:
    """A value of 0 in a cell of a quantiser takes a plateau that adds nothing."""
    model = approximate("x - mean(y)", n=2, low=0, high=1, tolerance=0.1, construction="quantise")
    made = prune(model)
    assert made.n_removed > 0
    assert made.model.error_bound == model.error_bound


def test_what_cannot_be_pruned_is_refused() -> None:
    model = memorize(X, Y, positions=True, certify=True)
    with pytest.raises(OptionError, match="real answers for a tolerance"):
        prune(model, 0.1)
    with pytest.raises(OptionError, match="a tolerance above 0"):
        prune(model, -1.0)
    with pytest.raises(OptionError, match="with its certificate"):
        prune(replace(model, certificate=None))
    for other in (memorize_text("a text, and its end", context=4), learner("gd", d=2, eta=0.1)):
        with pytest.raises(OptionError, match="stored answers or of a function"):
            prune(other)


def test_trapezoids_tile_a_line_or_do_not() -> None:
    weight, bias, _ = trapezoids(np.arange(4.0), np.arange(4.0) + 0.5, np.float32)
    line = Plateaus.of(weight[:, None], bias[:, None], np.array([[0.0], [2], [2], [1], [2]]))
    assert line.tiles
    assert len(line.without_commonest().values) == 2
    assert not replace(line, bias=line.bias * 1.25).tiles
    assert not replace(line, weight=line.weight * [1.0, 2.0]).tiles  # ramps of other slopes
    hole = replace(line, weight=line.weight[[0, 2, 3, 4]], bias=line.bias[[0, 2, 3, 4]], values=line.values[1:])
    assert not hole.tiles
    assert hole.without_commonest() is hole.merge(5.0) is hole
    t = np.linspace(-1, 5, 400, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(line.without_commonest().search(t).round(4), line.search(t).round(4))
    assert line.merge(1.0).values.tolist() == [[1.0]]
    assert line.merge(0.5).values.tolist() == [[0.0], [1.5]]
