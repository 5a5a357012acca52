"""Predictive coding: divergences are those of the distributions, and local changes tend to the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer.errors import OptionError
from onelayer.lab import predictive
from onelayer.lab.predictive import (
    Descent,
    Shape,
    Way,
    cosine,
    divergence,
    draw_weights,
    gradients,
    learn,
    predicted,
    relax,
    total_energy,
)

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
X, ANSWERS = torch.from_numpy(RNG.normal(size=(12, 5, 6))), torch.from_numpy(RNG.integers(0, 4, 12))
WEIGHTS = draw_weights(6, 4, 0)
NAMES = tuple(WEIGHTS)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_divergence_of_gaussians_is_half_a_squared_distance(a: float, b: float) -> None:
    """By quadrature: the mean, under the first, of the difference of the logarithms of both densities."""
    z = np.linspace(a - 12, a + 12, 20001)
    density = np.exp(-((z - a) ** 2) / 2) / np.sqrt(2 * np.pi)
    wanted = np.trapezoid(density * (((z - b) ** 2 - (z - a) ** 2) / 2), z)
    found = divergence("gaussian", torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64))
    assert float(found) == pytest.approx(wanted, abs=1e-9)


def test_the_divergence_of_softmaxes_is_theirs_and_its_slope_is_their_difference() -> None:
    node, mean = torch.from_numpy(RNG.normal(size=(3, 5))), torch.from_numpy(RNG.normal(size=(3, 5)))
    p, q = torch.softmax(node, -1), torch.softmax(mean, -1)
    torch.testing.assert_close(divergence("kl", node, mean), (p * (p / q).log()).sum(-1))
    mean.requires_grad_()
    (slope,) = torch.autograd.grad(divergence("kl", node, mean).sum(), mean)
    torch.testing.assert_close(slope, q - p)
    assert float(divergence("kl", node, node).abs().max()) == 0


@pytest.mark.parametrize("energy", ["kl", "gaussian"])
def test_relaxation_lowers_the_energy_and_leaves_weights(energy) -> None:
    before = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    energies = [
        float(total_energy(WEIGHTS, X, relax(WEIGHTS, X, ANSWERS, steps, 0.05, energy), ANSWERS, energy).detach())
        for steps in (1, 4, 16)
    ]
    assert energies[0] > energies[1] > energies[2]
    assert all((before[name] == WEIGHTS[name]).all() for name in NAMES)
    start = torch.nn.functional.cross_entropy(predicted(WEIGHTS, X)["answer"], ANSWERS, reduction="sum")
    assert energies[0] < float(start.detach())  # nodes that are predicted have no energy but that of the answer


@pytest.mark.parametrize("energy", ["kl", "gaussian"])
def test_small_steps_point_as_the_gradient_does(energy) -> None:
    """With the divergence of softmaxes, at W_Q and W_K as the gradient times the Fisher matrix of the softmax."""
    exact = gradients(WEIGHTS, X, ANSWERS, "backprop", 0, 0.0)
    if energy == "kl":
        made = predicted(WEIGHTS, X)
        logits = made["logits"]
        loss = torch.nn.functional.cross_entropy(made["answer"], ANSWERS)
        (g,) = torch.autograd.grad(loss, logits, retain_graph=True)
        p = torch.softmax(logits, -1).detach()
        fisher = p * (g - (p * g).sum(-1, keepdim=True))
        exact[:2] = torch.autograd.grad(logits, [WEIGHTS["W_Q"], WEIGHTS["W_K"]], fisher)
    found = {rate: gradients(WEIGHTS, X, ANSWERS, energy, 4, rate) for rate in (1e-3, 0.3)}
    for i, name in enumerate(NAMES):
        near, far = (cosine(found[rate][i], exact[i]) for rate in (1e-3, 0.3))
        assert near > 0.9999, name
        assert near > far or far > 0.999, name


def test_what_is_known_moves_up_by_one_node_a_step() -> None:
    """The answer moves hidden units, these the context, this the logits: after one step W_Q has no gradient."""
    for steps, still in ((1, {"W_Q", "W_K", "W_V", "W_S"}), (2, {"W_Q", "W_K"}), (3, set())):
        found = gradients(WEIGHTS, X, ANSWERS, "gaussian", steps, 0.1)
        assert {n for n, g in zip(NAMES, found, strict=True) if not g.abs().max() > 1e-12} == still
    with pytest.raises(OptionError, match="at least one step of relaxation"):
        relax(WEIGHTS, X, ANSWERS, 0, 0.1, "kl")


def test_all_ways_learn_and_begin_alike() -> None:
    tokens = RNG.normal(size=(200, 5, 6))
    wanted = (tokens[:, -1, 0] > 0).astype(np.int64)
    data = (tokens, wanted)
    found = {how: learn([data] * 60, data, data, 2, Way(how, 4, 0.1), 0) for how in ("backprop", "kl", "gaussian")}
    assert all(one.accuracy > 0.9 for one in found.values())
    assert all(value == pytest.approx(1) for value in found["backprop"].cosines.values())
    assert found["kl"].cosines["W_2"] < 1
    assert all((one.ended_by == "budget") == (one.taken == 60) for one in found.values())


def test_the_learning_rate_is_chosen_on_what_is_counted(monkeypatch) -> None:
    data, other = ((RNG.normal(size=(40, 5, 6)), RNG.integers(0, 2, 40)) for _ in range(2))
    asked: list[tuple] = []

    def descend(batches, counted, classes, way, rate, seed, shape):
        asked.append((len(batches), counted is other, way.how, rate))
        curve = ((0, 0.5, float("nan") if rate == 0.01 else 0.7),)  # it grew without bound: the last choice
        loss = -1.0 if rate == 0.01 else abs(rate - 0.03)
        return Descent(draw_weights(6, classes, seed, shape), loss, len(batches), "plateau", curve)

    monkeypatch.setattr(predictive, "_descend", descend)
    for how in ("backprop", "kl"):
        found = learn([data] * 50, other, data, 2, Way(how, 4, 0.1), 0)
        assert (found.learning_rate, found.taken, found.ended_by) == (0.03, 50, "plateau")
        tried = [(10, True, how, rate) for rate in predictive.LEARNING_RATES]
        assert asked[-6:] == [*tried, (50, True, how, 0.03)]


def test_noise_is_a_plateau() -> None:
    """Answers without a pattern: what is learned of half of them does not help with the others."""
    X, hint = RNG.normal(size=(60, 3, 4)), RNG.integers(0, 2, 60)
    X[:, -1, 0] = 3 * (2 * hint - 1)
    wrong = np.where(RNG.random(60) < 0.3, 1 - hint, hint)
    long = [(X, wrong)] * 3000
    counted = (X[:30], hint[:30] ^ (np.arange(30) % 5 == 0))
    found = predictive._descend(long, counted, 2, Way("backprop"), 0.03, 0)
    assert found.ended_by == "plateau"
    assert found.taken < 3000
    assert found.loss == min(loss for _, _, loss in found.curve) < np.log(2)


def test_a_run_that_grows_without_bound_goes_back_to_its_best_weights() -> None:
    wanted = np.arange(len(X)) % 2
    data, torn = (X.numpy(), wanted), (X.numpy() * np.inf, wanted)
    found = predictive._descend([data] * 45 + [torn] + [data] * 14, data, 2, Way("backprop"), 0.001, 0)
    assert found.grew
    assert all(bool(torch.isfinite(tensor).all()) for tensor in found.weights.values())
    assert found.loss == min(loss for step, _, loss in found.curve if step <= 40)


def test_hidden_units_can_be_left_out_and_attention_begin_sharper() -> None:
    without, sharp = (draw_weights(6, 4, 0, shape) for shape in (Shape(hidden=False), Shape(sharper=64.0)))
    assert set(without) == set(NAMES) - {"W_1", "b_1"}
    torch.testing.assert_close(predicted(sharp, X)["logits"], 64 * predicted(WEIGHTS, X)["logits"])
    torch.testing.assert_close(sharp["W_V"], WEIGHTS["W_V"])


def test_of_two_layers_the_lower_one_gives_tokens_to_the_upper() -> None:
    """The answer again, sequence by sequence; and the lowest weights learn after five steps of relaxation."""
    p = {name: tensor.detach() for name, tensor in draw_weights(6, 4, 0, Shape(layers=2)).items()}
    found = predicted(p, X)["answer"]
    for tokens, answer in zip(X, found, strict=True):
        H = tokens
        for place in ("_below", ""):
            logits = (H @ p[f"W_Q{place}"]) @ (H @ p[f"W_K{place}"]).T / predictive.SIZE**0.5
            context = torch.softmax(logits, -1) @ H @ p[f"W_V{place}"] + H @ p[f"W_S{place}"]
            H = torch.relu(context @ p[f"W_1{place}"] + p[f"b_1{place}"])
        torch.testing.assert_close(H[-1] @ p["W_2"] + p["b_2"], answer)
    p = draw_weights(6, 4, 0, Shape(layers=2))
    exact = dict(zip(p, gradients(p, X, ANSWERS, "backprop", 0, 0.0), strict=True))
    for steps, moves in ((4, False), (5, True)):
        local = dict(zip(p, gradients(p, X, ANSWERS, "gaussian", steps, 0.05), strict=True))
        assert bool(local["W_Q_below"].abs().max() > 1e-12) is moves
        # What comes down through the upper logits is a step late, so this is not the whole gradient.
        assert 0.9 < cosine(local["W_V_below"], exact["W_V_below"]) < 0.999
