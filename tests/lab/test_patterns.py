"""The layer that is trained on patterns, and what is measured of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer.errors import OptionError
from onelayer.lab import patterns
from onelayer.lab.sparsity import directions, energy, prune_curve

torch.set_num_threads(1)
EYE = np.eye(patterns.WIDTH)[: patterns.PATTERNS]


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_answer_is_the_pattern_that_occurs_most_often(seed: int, deciding: int) -> None:
    X, answers = patterns.draw(np.random.default_rng(seed), deciding, 20, EYE)
    counts = X.sum(axis=1)[:, :deciding]
    assert (counts.sum(axis=1) == patterns.COUNTED).all()
    assert (counts.argmax(axis=1) == answers).all()
    assert (np.sort(counts, axis=1)[:, -1] > np.sort(counts, axis=1)[:, -2]).all()


def test_hinge_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    scores, answers = rng.normal(size=(9, 2)), rng.integers(0, 2, 9)
    wanted = 2 * torch.nn.functional.multi_margin_loss(torch.from_numpy(scores), torch.from_numpy(answers))
    assert patterns.hinge(scores, answers) == pytest.approx(float(wanted))


def test_what_is_counted_is_what_is_trained() -> None:
    rng = np.random.default_rng(0)
    scores, answers = rng.normal(size=(9, 5)), rng.integers(0, 5, 9)
    wanted = 5 * torch.nn.functional.multi_margin_loss(torch.from_numpy(scores), torch.from_numpy(answers))
    assert patterns.margins(scores, answers) == pytest.approx(float(wanted))
    assert patterns.margins(np.zeros((9, 5)), answers) == 4


def test_training_lowers_the_loss_and_a_rank_stays_a_rank() -> None:
    def batch(step: int) -> tuple:
        return patterns.draw(np.random.default_rng(step), 2, 64, EYE)

    X, y = batch(-1 % 1000)
    for rank in (patterns.WIDTH, 1):
        none, some = (patterns.train(batch, (X, y), 2, 12, rank, steps, 1.0, 0) for steps in (0, 60))
        assert all((none.before[name] == none.after[name]).all() for name in patterns.NAMES)
        assert patterns.hinge(some.scores(X), y) < 0.7 * patterns.hinge(none.scores(X), y)
        assert np.linalg.matrix_rank(some.after["W_V"]) == rank
        assert (none.before["W_O"] == some.before["W_O"]).all()
        np.testing.assert_allclose(some.attends(X).sum(axis=1), 1)
        assert (some.scores(X, np.zeros(12, bool)) == 0).all()


def test_energy_is_the_share_of_the_largest_singular_values() -> None:
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    update = U @ np.diag([3.0, 4.0, 0, 0, 0]) @ V
    assert energy(update, 1) == pytest.approx(16 / 25)
    assert energy(update, 2) == pytest.approx(1)
    assert (directions(update), directions(update, 0.6)) == (2, 1)
    assert energy(np.zeros((3, 3)), 1) == 1


def test_a_curve_takes_the_smallest_or_the_largest_units() -> None:
    sizes = np.array([3.0, 1.0, 4.0, 2.0, 5.0])
    found = prune_curve(sizes, (0.2, 0.4), lambda kept: float(sizes[kept].sum()))
    assert found == {
        ("smallest", 0.2): 14,
        ("largest", 0.2): 10,
        ("smallest", 0.4): 12,
        ("largest", 0.4): 6,
    }


def test_a_run_says_what_ended_it() -> None:
    X, y = patterns.draw(np.random.default_rng(0), 2, 8, EYE)
    short, solved = (patterns.train(lambda _: (X, y), (X, y), 2, 12, 20, steps, 1.0, 0) for steps in (20, 2000))
    assert (short.ended_by, short.steps) == ("budget", 20)
    assert solved.ended_by == "all right"
    assert solved.steps < 2000
    assert patterns.hinge(solved.scores(X), y) < patterns.NONE
    contradictory = np.concatenate([X, X, X]), np.concatenate([y, y, 1 - y])
    flat = patterns.train(lambda _: contradictory, contradictory, 2, 12, 20, 4000, 1.0, 0)
    assert flat.ended_by == "plateau"
    assert flat.steps < 4000


@pytest.mark.parametrize("rank", [patterns.WIDTH, 1])
def test_the_rate_is_the_best_of_the_same_list_for_every_rank(rank: int) -> None:
    """By the loss on sequences that are counted, after the same share of the steps."""

    def batch(step: int) -> tuple:
        return patterns.draw(np.random.default_rng(step), 2, 16, EYE)

    counted = batch(999)
    losses = [patterns.train(batch, counted, 2, 12, rank, 8, rate, 0).loss for rate in patterns.RATES]
    found = patterns.tune(batch, counted, 2, 12, rank, 40, 0)
    assert found.rate == patterns.RATES[int(np.argmin(losses))]
    assert found.at_an_end == (found.rate in (patterns.RATES[0], patterns.RATES[-1]))
    again = patterns.train(batch, counted, 2, 12, rank, 40, found.rate, 0)
    assert (found.after["W_O"] == again.after["W_O"]).all()


def test_a_run_whose_loss_no_longer_falls_goes_on_at_half_the_rate(monkeypatch) -> None:
    """A rate that is too large for the end of a run: halving it brings the loss down further."""
    X, y = patterns.draw(np.random.default_rng(0), 2, 8, EYE)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, y, 1 - y])  # at best, 2 of 3 are right
    found = patterns.train(lambda _: (X, y), (X, y), 2, 12, patterns.WIDTH, 2000, 1.0, 0)
    losses = [loss for _, _, loss in found.curve]
    assert found.loss == min(losses) == pytest.approx(patterns.hinge(found.scores(X), y))
    monkeypatch.setattr(patterns.Patience, "halves", lambda *_: False)
    fixed = patterns.train(lambda _: (X, y), (X, y), 2, 12, patterns.WIDTH, found.steps, 1.0, 0)
    assert found.loss < fixed.loss


def test_a_run_that_grows_without_bound_goes_back_to_its_best_weights() -> None:
    X, y = patterns.draw(np.random.default_rng(0), 2, 32, EYE)
    torn = X * 1e200  # one batch that no rate survives

    def batch(step: int) -> tuple:
        return (torn if step == 45 else X), y

    found = patterns.train(batch, (X, y), 2, 12, patterns.WIDTH, 60, 0.1, 0)
    assert not np.isfinite([loss for _, _, loss in found.curve]).all()
    assert all(np.isfinite(weights).all() for weights in found.after.values())
    assert found.loss == min(loss for step, _, loss in found.curve if step <= 40) < found.curve[0][2]


def test_a_rate_at_which_weights_are_no_numbers_is_never_the_best(monkeypatch) -> None:
    def batch(step: int) -> tuple:
        return patterns.draw(np.random.default_rng(step), 2, 16, EYE)

    for rates in ((1e9, 0.3), (0.3, 1e9)):
        monkeypatch.setattr(patterns, "RATES", rates)
        assert patterns.tune(batch, batch(999), 2, 12, 1, 40, 0).rate == 0.3


def test_a_change_of_weights_that_are_no_numbers_is_refused() -> None:
    with pytest.raises(OptionError, match="2 of 9 that are none"):
        energy(np.diag([1.0, np.nan, np.inf]), 1)


def test_a_layer_whose_units_all_died_goes_back_to_its_best_weights() -> None:
    X, y = patterns.draw(np.random.default_rng(0), 5, 32, EYE)
    found = patterns.train(lambda _: (X, y), (X, y), 5, 20, patterns.WIDTH, 200, 30.0, 0)
    assert found.lost
    assert np.ptp(found.scores(X), axis=0).any()
