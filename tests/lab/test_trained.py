"""Trained twins: gradients against differences and against a derivation by hand, budgets, determinism."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch

import onelayer
from onelayer import to_torch
from onelayer.errors import DataError, OptionError
from onelayer.lab import trained
from onelayer.lab.plateaus import Scale
from onelayer.lab.runs import MILESTONES
from onelayer.lab.sizes import NARROWEST
from onelayer.lab.trained import (
    Budget,
    Net,
    Shape,
    Task,
    Training,
    contexts,
    count_parameters,
    fill,
    predict,
    train,
    train_tuned,
)

memorize = partial(onelayer.memorize, certify=False)

torch.set_num_threads(1)  # matrices of a few rows; several threads would only wait for each other


def facts(N: int = 12, n: int = 3, vocabulary: int = 9, classes: int = 4, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    sets = np.array(list(combinations(range(vocabulary), n)))
    X = sets[rng.permutation(len(sets))[:N]]
    return Task(X, rng.integers(0, classes, (N, n)))


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gradients_by_hand(h, W_Q, W_K, W_V, W_O, y) -> dict[str, np.ndarray]:
    """Of 1/2 |z - y|^2 for one sequence, z = h + A h W_V W_O and A = softmax(h W_Q (h W_K)^T / sqrt(s)).

    With G = z - y:  dW_O = (A v)^T G;  dU = G W_O^T is the gradient at the averages U = A v, so dv = A^T dU and
    dA = dU v^T; the softmax of a row gives dL = A o (dA - (A o dA) 1);
    L = q k^T / sqrt(s) gives dq = dL k / sqrt(s) and dk = dL^T q / sqrt(s).
    """
    q, k, v = h @ W_Q, h @ W_K, h @ W_V
    A = softmax(q @ k.T / q.shape[1] ** 0.5)
    U = A @ v
    G = h + U @ W_O - y
    dU = G @ W_O.T
    dA = dU @ v.T
    dL = A * (dA - (A * dA).sum(1, keepdims=True)) / q.shape[1] ** 0.5
    return {"W_Q": h.T @ (dL @ k), "W_K": h.T @ (dL.T @ q), "W_V": h.T @ (A.T @ dU), "W_O": U.T @ G}


def bare(width: int = 3, size: int = 2) -> tuple[Net, Task]:
    """One head, no feed-forward part, a head that changes nothing, in float64."""
    rng = np.random.default_rng(3)
    task = Task(rng.standard_normal((2, 4, width)), rng.standard_normal((2, 4, width)), "reals")
    net = Net(Shape(width, size=size), task, seed=1, dtype="float64")
    with torch.no_grad():
        net.tensors["embedding"].copy_(torch.eye(width))
        net.tensors["embedding.bias"].zero_()
        net.tensors["head"].copy_(torch.eye(width))
    return net, task


def test_the_gradient_is_the_one_derived_by_hand() -> None:
    net, task = bare()
    out = net(torch.from_numpy(task.tokens))
    (((out - torch.from_numpy(task.answers)) ** 2).sum() / 2).backward()
    weights = {name: net.tensors[f"0.{name}"].detach().numpy()[0] for name in ("W_Q", "W_K", "W_V", "W_O")}
    for name in weights:
        mine = sum(
            gradients_by_hand(x, *weights.values(), y)[name] for x, y in zip(task.tokens, task.answers, strict=True)
        )
        theirs = net.tensors[f"0.{name}"].grad.numpy()[0]
        assert np.abs(mine).max() > 1e-3
        np.testing.assert_allclose(theirs, mine, rtol=1e-12, atol=1e-14)


def test_a_layer_norm_leaves_more_of_a_number_than_its_sign() -> None:
    net = Net(Shape(4, hidden=8, norm=True), Task(np.ones((1, 2, 1)), np.ones((1, 2, 1)), "reals"))
    seen = [net._normalise(net.embed(torch.full((1, 1, 1), x)), "0.attention") for x in (0.2, 0.9)]
    assert (seen[0] - seen[1]).abs().max() > 0.01


@pytest.mark.parametrize(
    "shape",
    [
        Shape(6, hidden=5),
        Shape(6, hidden=5, layers=2, heads=2, norm=True, positions=True),
        Shape(6, hidden=5, rank=1),
    ],
)
@pytest.mark.parametrize("scope", ["token", "sequence", "last"])
def test_gradients_agree_with_differences(shape, scope) -> None:
    task = facts()
    lengths = torch.tensor([3, 2] * 6)
    task = replace(task, scope=scope, answers=task.answers if scope == "token" else task.answers[:, 0])
    net = Net(shape, task, seed=2, dtype="float64")
    with torch.no_grad():
        for name, tensor in net.tensors.items():
            if name.endswith("bias"):  # a unit at the kink of ReLU has no derivative
                tensor += 0.1 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(5))

    def loss() -> torch.Tensor:
        return (net(torch.from_numpy(task.tokens), lengths) ** 3).sum()

    loss().backward()
    for tensor in net.tensors.values():
        for at in {0, tensor.numel() // 2, tensor.numel() - 1}:
            values, values_at = tensor.detach().view(-1), []
            before = values[at].item()
            for shift in (1e-6, -1e-6):
                values[at] = before + shift
                values_at.append(loss().item())
            values[at] = before
            slope = (values_at[0] - values_at[1]) / 2e-6
            assert tensor.grad.view(-1)[at].item() == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_leaving_out_the_scale_changes_steps_not_the_start() -> None:
    task = facts()
    nets = [Net(Shape(8, scaled=scaled), task, dtype="float64") for scaled in (True, False)]
    np.testing.assert_allclose(*(predict(net, task.tokens) for net in nets), rtol=1e-9)
    moved = [predict(train(net, task, Budget(steps=5), 1e-2).net, task.tokens) for net in nets]
    assert np.abs(moved[0] - moved[1]).max() > 1e-3


def test_a_rank_limits_the_weights() -> None:
    task = facts()
    net = train(Net(Shape(8, hidden=8, rank=2), task), task, Budget(steps=30), 1e-2).net
    for name in ("W_Q", "W_K", "W_V"):
        assert np.linalg.matrix_rank(net.factor(0, name).detach().numpy()[0], tol=1e-6) == 2
    full = Net(Shape(8, hidden=8, rank=8), task)
    assert np.linalg.matrix_rank(full.factor(0, "W_Q").detach().numpy()[0]) == 8


def test_hardmax_is_hard_forwards_and_soft_backwards() -> None:
    task = facts()
    net = Net(Shape(8, attention="hardmax"), task, dtype="float64")
    tokens = torch.from_numpy(task.tokens)
    h = net.embed(tokens)
    q, k, v = (h @ net.factor(0, name)[0] for name in ("W_Q", "W_K", "W_V"))
    top = (q @ k.transpose(-1, -2)).argmax(-1)
    picked = torch.stack([v[i, top[i]] for i in range(len(v))])
    expected = h + picked @ net.tensors["0.W_O"][0]
    torch.testing.assert_close(net.contexts(tokens), expected)
    net(tokens).sum().backward()
    assert net.tensors["0.W_Q"].grad.abs().max() > 0


def test_padding_is_not_seen() -> None:
    task = facts()
    net = Net(Shape(8, hidden=8, positions=True), task, dtype="float64")
    short = predict(net, task.tokens[:, :2])
    padded = predict(net, task.tokens, np.full(len(task.tokens), 2))
    np.testing.assert_allclose(padded[:, :2], short, rtol=1e-12)


def test_the_same_seed_gives_the_same_weights_and_the_budget_is_kept() -> None:
    task = facts()
    runs = [train_tuned(Shape(8, hidden=16), task, Budget(steps=60, batch=5), seed=4) for _ in range(2)]
    assert runs[0].steps <= 60
    assert runs[0].rate == runs[1].rate
    for a, b in zip(runs[0].net.parameters(), runs[1].net.parameters(), strict=True):
        assert torch.equal(a, b)
    other = train_tuned(Shape(8, hidden=16), task, Budget(steps=60, batch=5), seed=5)
    assert not torch.equal(runs[0].net.tensors["head"], other.net.tensors["head"])


def test_small_data_is_learned_and_the_run_ends_there() -> None:
    run = train_tuned(Shape(16, hidden=64), facts(6), Budget(steps=1000))
    assert run.exact
    assert run.steps < 1000
    assert predict(run.net, facts(6).tokens).argmax(-1).tolist() == facts(6).answers.tolist()


def test_reals_are_regressed_and_plateaus_slow_down() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((64, 2, 1))
    task = Task(X, X.max(axis=1), "reals", "sequence", tolerance=0.2)
    run = train(Net(Shape(8, hidden=32), task), task, Budget(steps=200, decay="plateau", patience=2), 1e-2)
    assert run.loss < 0.01
    assert run.right > 50
    assert run.steps == 200 or run.plateau


def test_a_run_ends_when_its_loss_has_stopped_falling() -> None:
    """Contradictory answers: half of them can be right, and no step changes that."""
    task = Task(np.zeros((8, 1), int), np.array([[0], [1]] * 4))
    budget = Budget(steps=5000, check=5, patience=3, halvings=3)
    run = train(Net(Shape(4), task), task, budget, 1e-2)
    assert run.plateau
    assert run.ended
    assert not run.exact
    assert run.steps < 1000
    assert run.loss == pytest.approx(np.log(2), abs=1e-2)
    cut = train(Net(Shape(4), task), task, replace(budget, steps=10), 1e-2)
    assert not cut.ended
    assert cut.steps == 10


def test_a_rate_that_is_too_large_is_halved_from_the_best_weights_on() -> None:
    """At rate 3 Adam throws every weight away; the run comes back and learns."""
    task = facts()
    budget = Budget(steps=600, check=5, patience=2, halvings=50, warm_up=1)
    run = train(Net(Shape(8, hidden=32), task), task, budget, 3.0)
    first, highest = run.curve[0][2], max(loss for _, _, loss in run.curve)
    assert highest > 2 * first
    assert run.loss < 0.7 * first


def test_accuracy_against_steps_is_kept() -> None:
    run = train_tuned(Shape(16, hidden=64), facts(6), Budget(steps=400, check=20))
    steps, accuracy, losses = zip(*run.curve, strict=True)
    assert steps[0] == 0
    assert steps[-1] == run.steps
    assert list(steps) == sorted(set(steps))
    assert accuracy[-1] == run.accuracy
    assert losses[-1] == run.loss < losses[0]
    assert run.seconds > 0


def test_a_run_that_its_budget_ends_goes_back_to_its_best_weights() -> None:
    """Contradictory answers, one row a step: no answer is ever all right, and the last count is nobody's best."""
    task = Task(np.zeros((8, 1), int), np.array([[0], [1]] * 4))
    budget = Budget(steps=203, batch=1, check=5, patience=100, warm_up=1)
    run = train(Net(Shape(8, hidden=16), task), task, budget, 0.1)
    losses = [loss for _, _, loss in run.curve]
    assert run.ended_by == "budget"
    assert run.loss == min(losses) < losses[-1]
    out = torch.from_numpy(predict(run.net, task.tokens)).flatten(0, 1)
    again = torch.nn.functional.cross_entropy(out, torch.from_numpy(task.answers).flatten())
    assert float(again) == pytest.approx(run.loss, rel=1e-5)
    plain = train(Net(Shape(8, hidden=16), task), task, replace(budget, decay="none"), 0.1)
    assert plain.loss == losses[-1]


def test_a_run_that_knows_all_keeps_the_weights_that_do() -> None:
    """It was about to halve its rate, which would have put back weights that know less."""
    task = facts(6)
    known = train(Net(Shape(16, hidden=64), task), task, Budget(steps=1000), 1e-2)
    assert known.exact
    run = Training(known.net, task, Budget(steps=10), 1e-2)
    run.patience.best, run.patience.halves = 0.0, lambda *_: True  # type: ignore[method-assign]
    run.kept = [torch.zeros_like(tensor) for tensor in run.kept]
    found = run.finish()
    assert found.exact
    assert (predict(found.net, task.tokens).argmax(-1) == task.answers).all()


def test_digits_are_answers_of_many_classes_with_few_outputs() -> None:
    rng = np.random.default_rng(2)
    X, classes = np.array([[0, 1], [2, 3], [1, 3]]), rng.permutation(64)[:6].reshape(3, 2)
    task = Task(X, np.stack([classes // 8, classes % 8], -1), "digits")
    whole = Task(X, classes)
    assert task.outputs == 2 * (task.answers.max() + 1) < whole.outputs
    run = train_tuned(Shape(16, hidden=32), task, Budget(steps=1000))
    assert run.exact
    assert run.answers == 6
    said = predict(run.net, X).reshape(3, 2, 2, -1).argmax(-1)
    assert (said @ (8, 1) == classes).all()
    logits = torch.from_numpy(predict(run.net, X)).reshape(12, -1)
    each = torch.nn.functional.cross_entropy(logits, torch.from_numpy(task.answers).flatten())
    assert run.loss == pytest.approx(2 * float(each), rel=1e-5)
    digit = [np.bincount(column) / 6 for column in task.answers.reshape(6, 2).T]
    entropies = [-(p[p > 0] * np.log(p[p > 0])).sum() for p in digit]
    assert Scale.of(task).constant == pytest.approx(sum(entropies))
    assert Scale.of(task).least == pytest.approx(0.0)


def test_a_run_that_is_left_and_taken_up_is_the_same_run() -> None:
    task, budget = facts(), Budget(steps=60, batch=5)
    whole = Training(Net(Shape(8, hidden=16), task), task, budget, 1e-2, 3, "adamw")
    parts = Training(Net(Shape(8, hidden=16), task), task, budget, 1e-2, 3, "adamw")
    parts.go(7)
    parts.go(25)
    once, twice = whole.go(60), parts.go(60)
    for a, b in zip(once.net.parameters(), twice.net.parameters(), strict=True):
        assert torch.equal(a, b)
    assert once.loss == twice.loss


def test_halving_keeps_the_best_rate_and_spends_less_than_all() -> None:
    """One rate that learns among those that cannot: it survives every halving, and the others are stopped early."""
    task, taken = facts(), []

    class Counted(Training):
        def _advance(self) -> None:
            taken.append(self.rate)
            super()._advance()

    budget = Budget(steps=200, rates=(1e-9, 1e-8, 1e-2, 1e-7), short=0.1)
    run = trained.train_tuned(Shape(8, hidden=32), task, budget)
    assert run.rate == 1e-2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained, "Training", Counted)
        again = trained.train_tuned(Shape(8, hidden=32), task, budget)
    assert again.steps == run.steps
    assert len(taken) < 0.5 * 8 * 200
    assert taken.count(1e-9) == 2 * 20


def test_a_twin_in_float64() -> None:
    rng = np.random.default_rng(0)
    task = Task(rng.random((8, 2, 1)), rng.random((8, 1)), "reals", "sequence", tolerance=0.1)
    run = train_tuned(Shape(4), task, Budget(steps=20, dtype="float64"))
    assert {p.dtype for p in run.net.parameters()} == {torch.float64}


def test_training_goes_on_from_constructed_weights() -> None:
    task = facts()
    model = memorize(task.tokens, task.answers)
    numbers = replace(task, kind="numbers", tokens=model.read(task.tokens).tokens)
    net = to_torch(model)
    at_once = train(net, numbers, Budget(steps=50), 1e-3)
    assert at_once.exact
    assert at_once.steps == 0
    changed = replace(numbers, answers=(task.answers + 1) % 4)
    assert train_tuned(Shape(1), changed, Budget(steps=20), net=net).steps == 20
    assert contexts(net, numbers.tokens).shape == (12, 3, model.transformer.attention.W_Q.shape[1])


def test_parameters_are_counted_and_filled() -> None:
    task = facts()
    shape = fill(Shape(1, layers=2, heads=2, norm=True, positions=True), task, 5000)
    count = count_parameters(shape, task)
    assert count == sum(p.numel() for p in Net(shape, task).parameters())
    assert shape.width >= NARROWEST
    one_more = replace(shape, hidden=shape.hidden + 1)
    assert count <= 5000 < count_parameters(one_more, task)


def test_small_models_are_wide_rather_than_full_of_units() -> None:
    """Four layers of 700 parameters would have streams of two components with four units to each."""
    task = facts()
    shape = fill(Shape(1, layers=4, norm=True), task, 1500)
    wasteful = replace(shape, width=shape.width, hidden=4 * shape.width)
    assert count_parameters(shape, task) <= 1500 < count_parameters(wasteful, task)


def test_a_run_keeps_a_few_counts_of_its_way() -> None:
    ended = train_tuned(Shape(8, hidden=16), facts(), Budget(steps=200, check=5, choosing=100))
    curve = json.loads(ended.end["curve"])
    assert 2 <= len(curve) <= MILESTONES
    assert curve[0][0] == 0
    assert curve[-1][0] == ended.steps
    assert curve[-1][1] == round(ended.accuracy, 4)


def test_answers_must_fit_the_tokens() -> None:
    with pytest.raises(DataError, match="answers of shape"):
        Task(np.zeros((3, 2), int), np.zeros((3, 3), int))
    with pytest.raises(OptionError, match="a trained model"):
        contexts(object(), np.zeros((3, 2), int))
