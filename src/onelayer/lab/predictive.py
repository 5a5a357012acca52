"""Predictive coding: one attention layer whose weights change locally, after its values have relaxed.

Every value of the layer (logits of attention, context, hidden units) is a node that may leave what the layer below
predicts for it. With the answer clamped, nodes go down the sum of the divergences between what they are and what is
predicted for them; then every weight changes by the gradient of its own divergence alone, with all nodes held. The
divergence of the logits is that of the softmaxes ("kl") or of unit Gaussians, half a squared distance ("gaussian");
that of the answer is the cross-entropy in both, and those of context and hidden units are Gaussian.

After small steps of relaxation local changes point as the gradient does; with "kl" those of W_Q and W_K point as
the gradient times the Fisher matrix of the softmax, since that is what a divergence of softmaxes is near 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError
from onelayer.lab.networks import framework, one_thread
from onelayer.lab.plateaus import Patience, Scale
from onelayer.lab.runs import EndedBy

Array = NDArray[Any]
#: Tokens and answers.
Data = tuple[Array, Array]
Energy = Literal["kl", "gaussian"]
How = Literal["backprop", "kl", "gaussian"]
#: Sizes of a query, of the context, and of the hidden layer.
SIZE, WIDTH, HIDDEN = 16, 32, 64
NAMES = ("W_Q", "W_K", "W_V", "W_S", "W_1", "b_1", "W_2", "b_2")
NODES = ("logits", "context", "hidden")
#: Learning rates that every way tries, and the share of the steps that each of them is given.
LEARNING_RATES, TRIED = (0.003, 0.01, 0.03, 0.1), 0.2
#: Steps between two counts of the loss, the least that a fall is waited for, halvings without one that end a run,
#: and a loss that is none.
COUNT, WAIT, HALVINGS, NONE = 20, 100, 2, 1e-3


def draw_weights(d: int, classes: int, seed: int) -> dict[str, Any]:
    """Tokens have d components; W_S carries the last token past attention."""
    torch = framework()
    rng = np.random.default_rng([seed, 211])
    sizes: dict[str, tuple[int, ...]] = {
        "W_Q": (d, SIZE),
        "W_K": (d, SIZE),
        "W_V": (d, WIDTH),
        "W_S": (d, WIDTH),
        "W_1": (WIDTH, HIDDEN),
    }
    sizes |= {"b_1": (HIDDEN,), "W_2": (HIDDEN, classes), "b_2": (classes,)}
    drawn = {}
    for name in NAMES:
        spread = 0.0 if name.startswith("b") else float(sizes[name][0]) ** -0.5
        drawn[name] = torch.tensor(rng.normal(size=sizes[name]) * spread, dtype=torch.float64, requires_grad=True)
    return drawn


def predicted(p: dict[str, Any], X: Any, nodes: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is predicted for every node and for the answer from the nodes below; without nodes, from predictions."""
    torch = framework()
    last = X[:, -1]
    made = {"logits": ((last @ p["W_Q"])[:, None] * (X @ p["W_K"])).sum(-1) / SIZE**0.5}
    below = made if nodes is None else nodes
    weights = torch.softmax(below["logits"], dim=-1)
    made["context"] = (weights[..., None] * (X @ p["W_V"])).sum(1) + last @ p["W_S"]
    made["hidden"] = torch.relu(below["context"] @ p["W_1"] + p["b_1"])
    made["answer"] = below["hidden"] @ p["W_2"] + p["b_2"]
    return made


def divergence(kind: Energy, node: Any, mean: Any) -> Any:
    """Of what nodes say from what is predicted, [N]: logits of both, or means of unit Gaussians."""
    torch = framework()
    if kind == "gaussian":
        return ((node - mean) ** 2).sum(-1) / 2
    own = torch.log_softmax(node, -1)
    return (own.exp() * (own - torch.log_softmax(mean, -1))).sum(-1)


def total_energy(p: dict[str, Any], X: Any, nodes: dict[str, Any], answers: Any, energy: Energy) -> Any:
    """Summed over sequences, whose nodes do not see each other."""
    made = predicted(p, X, nodes)
    found = divergence(energy, nodes["logits"], made["logits"])
    found = found + divergence("gaussian", nodes["context"], made["context"])
    found = found + divergence("gaussian", nodes["hidden"], made["hidden"])
    clamped = framework().nn.functional.cross_entropy(made["answer"], answers, reduction="none")
    return (found + clamped).sum()


def relax(p: dict[str, Any], X: Any, answers: Any, steps: int, rate: float, energy: Energy) -> dict[str, Any]:
    """Nodes after so many steps down the energy, from what is predicted for them; the weights stay."""
    if steps < 1:
        found = f"{steps} steps, after which every node is what was predicted"
        raise OptionError("predictive", "at least one step of relaxation", found, "Give 4 or more.")
    torch = framework()
    held = {name: tensor.detach() for name, tensor in p.items()}
    with torch.no_grad():
        nodes = {name: value for name, value in predicted(held, X).items() if name in NODES}
    for _ in range(steps):
        nodes = {name: value.detach().requires_grad_() for name, value in nodes.items()}
        slopes = torch.autograd.grad(total_energy(held, X, nodes, answers, energy), list(nodes.values()))
        nodes = {n: value - rate * slope for (n, value), slope in zip(nodes.items(), slopes, strict=True)}
    return {name: value.detach() for name, value in nodes.items()}


def gradients(p: dict[str, Any], X: Any, answers: Any, how: How, steps: int, rate: float) -> list[Any]:
    """What the weights go down by: the gradient of the loss, or of their own divergences after relaxation."""
    torch = framework()
    if how == "backprop":
        loss = torch.nn.functional.cross_entropy(predicted(p, X)["answer"], answers)
    else:
        nodes = relax(p, X, answers, steps, rate, how)
        loss = total_energy(p, X, nodes, answers, how) / len(X)
    return list(torch.autograd.grad(loss, [p[name] for name in NAMES]))


@dataclass(frozen=True)
class Learned:
    """How it ended, on sequences that were neither trained on nor counted.

    And the cosine of the first step with the gradient.
    """

    accuracy: float
    loss: float
    learning_rate: float
    taken: int
    ended_by: EndedBy
    cosines: dict[str, float]


@dataclass(frozen=True)
class Way:
    """What weights go down by, and how its nodes relax."""

    how: How
    relaxation: int = 0
    rate: float = 0.0


def learn(batches: list[Data], counted: Data, test: Data, classes: int, way: Way, seed: int) -> Learned:
    """Adam at the learning rate that is best on the counted sequences after a share of the steps."""
    tried = batches[: max(1, round(TRIED * len(batches)))]
    losses = [_descend(tried, counted, classes, way, rate, seed)[1] for rate in LEARNING_RATES]
    pairs = zip(losses, LEARNING_RATES, strict=True)
    best = min(pairs, key=lambda pair: pair[0] if math.isfinite(pair[0]) else math.inf)[1]
    p, _, taken, ended_by = _descend(batches, counted, classes, way, best, seed)
    loss, accuracy = _judge(p, test)
    first = draw_weights(batches[0][0].shape[2], classes, seed)
    with one_thread(framework()):
        X, answers = map(framework().from_numpy, batches[0])
        found, exact = (gradients(first, X, answers, *each) for each in (_said(way), ("backprop", 0, 0.0)))
    cosines = {n: cosine(a, b) for n, a, b in zip(NAMES, found, exact, strict=True)}
    return Learned(accuracy, loss, best, taken, ended_by, cosines)


def _said(way: Way) -> tuple[How, int, float]:
    return way.how, way.relaxation, way.rate


def _descend(
    batches: list[Data], counted: Data, classes: int, way: Way, learning_rate: float, seed: int
) -> tuple[dict[str, Any], float, int, EndedBy]:
    """The weights with the least loss on the counted sequences, that loss, steps taken, and what ended them.

    A step for every batch of tokens [N, n, d] and answers [N]; where the loss no longer falls it goes on from the
    best weights at half the rate.
    """
    torch = framework()
    p = draw_weights(batches[0][0].shape[2], classes, seed)
    optimiser = torch.optim.Adam([p[name] for name in NAMES], learning_rate)
    shares = np.bincount(counted[1]) / len(counted[1])
    entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    patience = Patience(Scale(entropy, 0.0, len(counted[1])), WAIT, HALVINGS)
    kept, end, step = dict(p), "budget", 0
    with one_thread(torch):
        for step in range(len(batches) + 1):
            if step % COUNT == 0 or step == len(batches):
                loss = _judge(p, counted)[0]
                if patience.is_best(loss):
                    kept = {name: tensor.detach().clone() for name, tensor in p.items()}
                if patience.halves(step, loss):
                    for name, tensor in p.items():
                        tensor.data.copy_(kept[name])
                    optimiser = torch.optim.Adam([p[n] for n in NAMES], optimiser.param_groups[0]["lr"] / 2)
                end = "all right" if loss < NONE else "plateau" if patience.flat else "budget"
            if end != "budget" or step == len(batches):
                break
            X, answers = map(torch.from_numpy, batches[step])
            for name, gradient in zip(NAMES, gradients(p, X, answers, *_said(way)), strict=True):
                p[name].grad = gradient
            optimiser.step()
    return kept, patience.best, step, cast(EndedBy, end)


def _judge(p: dict[str, Any], data: Data) -> tuple[float, float]:
    """Mean loss, and the share of right answers."""
    torch = framework()
    with torch.no_grad():
        said = predicted(p, torch.from_numpy(data[0]))["answer"]
        loss = float(torch.nn.functional.cross_entropy(said, torch.from_numpy(data[1])))
    return loss, float((said.argmax(-1).numpy() == data[1]).mean())


def cosine(a: Any, b: Any) -> float:
    """Of two tensors as vectors; 0 if one of them is 0."""
    sizes = float(a.norm() * b.norm())
    return float((a * b).sum()) / sizes if sizes else 0.0
