"""Predictive coding: one attention layer whose weights change locally, after its values have relaxed.

Every value of the layer (logits of attention, context, hidden units) is a node that may leave what the layer below
predicts for it. With the answer clamped, nodes go down the sum of the divergences between what they are and what is
predicted for them; then every weight changes by the gradient of its own divergence alone, with all nodes held. The
divergence of the logits is that of the softmaxes ("kl") or of unit Gaussians, half a squared distance ("gaussian");
that of the answer is the cross-entropy in both, and those of context and hidden units are Gaussian.

A second layer stands below the first where a `Shape` asks for it: there every token asks, and its hidden units are
the tokens of the layer above. A shape may also begin with sharper attention, or leave out hidden units.

After small steps of relaxation local changes point as the gradient does; with "kl" those of W_Q and W_K point as
the gradient times the Fisher matrix of the softmax, since that is what a divergence of softmaxes is near 0. Of two
layers they point so only nearly: what comes down through the upper logits comes a step later than what comes down
through values, so small steps leave it out.
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
from onelayer.lab.runs import EndedBy, Run

Array = NDArray[Any]
#: Tokens and answers.
Data = tuple[Array, Array]
Energy = Literal["kl", "gaussian"]
How = Literal["backprop", "kl", "gaussian"]
#: Sizes of a query, of the context, and of the hidden layer.
SIZE, WIDTH, HIDDEN = 16, 32, 64
#: Learning rates that every way tries, and the share of the steps that each of them is given.
LEARNING_RATES, TRIED = (0.001, 0.003, 0.01, 0.03, 0.1), 0.2
#: Steps between two counts of the loss, the least that a fall is waited for, halvings without one that end a run,
#: and a loss that is none.
COUNT, WAIT, HALVINGS, NONE = 20, 100, 2, 1e-3


@dataclass(frozen=True)
class Shape:
    """What a model has: layers, hidden units after attention, and logits of attention so many times as large."""

    layers: int = 1
    hidden: bool = True
    sharper: float = 1.0

    @property
    def places(self) -> list[str]:
        """What names of a layer's weights and nodes end with, from the lowest layer up."""
        return [*("_below" * k for k in range(self.layers - 1, 0, -1)), ""]

    @property
    def nodes(self) -> list[str]:
        """What relaxes, from the lowest node up."""
        kinds = ("logits", "context", "hidden") if self.hidden else ("logits", "context")
        return [kind + place for place in self.places for kind in kinds]


PLAIN = Shape()


def draw_weights(d: int, classes: int, seed: int, shape: Shape = PLAIN) -> dict[str, Any]:
    """Tokens have d components; W_S carries the token that asks past attention."""
    torch = framework()
    rng = np.random.default_rng([seed, 211])
    sizes: dict[str, tuple[int, ...]] = {}
    for place in shape.places:
        sizes |= {f"{name}{place}": (d, SIZE) for name in ("W_Q", "W_K")}
        sizes |= {f"{name}{place}": (d, WIDTH) for name in ("W_V", "W_S")}
        d = WIDTH
        if shape.hidden:
            sizes |= {f"W_1{place}": (WIDTH, HIDDEN), f"b_1{place}": (HIDDEN,)}
            d = HIDDEN
    sizes |= {"W_2": (d, classes), "b_2": (classes,)}
    drawn = {}
    for name, size in sizes.items():
        spread = 0.0 if name.startswith("b") else float(size[0]) ** -0.5
        spread *= shape.sharper**0.5 if name.startswith(("W_Q", "W_K")) else 1.0
        drawn[name] = torch.tensor(rng.normal(size=size) * spread, dtype=torch.float64, requires_grad=True)
    return drawn


def shape_of(p: dict[str, Any]) -> Shape:
    """Of what weights there are; how sharp attention was at first, they do not tell."""
    return Shape(sum(name.startswith("W_Q") for name in p), "W_1" in p)


def predicted(p: dict[str, Any], X: Any, nodes: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is predicted for every node and for the answer from the nodes below; without nodes, from predictions."""
    torch, shape = framework(), shape_of(p)
    made: dict[str, Any] = {}
    below = made if nodes is None else nodes
    for place in shape.places:
        asks = X if place else X[:, -1:]
        logits = (asks @ p[f"W_Q{place}"]) @ (X @ p[f"W_K{place}"]).transpose(-1, -2) / SIZE**0.5
        made[f"logits{place}"] = logits if place else logits[:, 0]
        weights = torch.softmax(below[f"logits{place}"], dim=-1)
        values = (weights if place else weights[:, None]) @ (X @ p[f"W_V{place}"])
        context = values + asks @ p[f"W_S{place}"]
        made[f"context{place}"] = context if place else context[:, 0]
        X = below[f"context{place}"]
        if shape.hidden:
            made[f"hidden{place}"] = torch.relu(X @ p[f"W_1{place}"] + p[f"b_1{place}"])
            X = below[f"hidden{place}"]
    made["answer"] = X @ p["W_2"] + p["b_2"]
    return made


def divergence(kind: Energy, node: Any, mean: Any) -> Any:
    """Of what nodes say from what is predicted, [N] or [N, n]: logits of both, or means of unit Gaussians."""
    torch = framework()
    if kind == "gaussian":
        return ((node - mean) ** 2).sum(-1) / 2
    own = torch.log_softmax(node, -1)
    return (own.exp() * (own - torch.log_softmax(mean, -1))).sum(-1)


def total_energy(p: dict[str, Any], X: Any, nodes: dict[str, Any], answers: Any, energy: Energy) -> Any:
    """Summed over sequences, whose nodes do not see each other."""
    made = predicted(p, X, nodes)
    found = framework().nn.functional.cross_entropy(made["answer"], answers, reduction="sum")
    for name, node in nodes.items():
        kind: Energy = energy if name.startswith("logits") else "gaussian"
        found = found + divergence(kind, node, made[name]).sum()
    return found


def relax(p: dict[str, Any], X: Any, answers: Any, steps: int, rate: float, energy: Energy) -> dict[str, Any]:
    """Nodes after so many steps down the energy, from what is predicted for them; the weights stay."""
    if steps < 1:
        found = f"{steps} steps, after which every node is what was predicted"
        raise OptionError("predictive", "at least one step of relaxation", found, "Give 4 or more.")
    torch = framework()
    held = {name: tensor.detach() for name, tensor in p.items()}
    with torch.no_grad():
        nodes = {name: value for name, value in predicted(held, X).items() if name != "answer"}
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
    return list(torch.autograd.grad(loss, list(p.values())))


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
    curve: str  # of the sequences that are counted, as rows of every trainer keep it

    @property
    def at_an_end(self) -> bool:
        """Whether no learning rate beyond it was tried."""
        return self.learning_rate in (min(LEARNING_RATES), max(LEARNING_RATES))


@dataclass(frozen=True)
class Way:
    """What weights go down by, and how its nodes relax."""

    how: How
    relaxation: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Descent:
    """The weights with the least loss on the counted sequences, that loss, steps taken, and what ended them."""

    weights: dict[str, Any]
    loss: float
    taken: int
    ended_by: EndedBy
    curve: tuple[tuple[int, float, float], ...]  # step, accuracy and loss at every count

    @property
    def grew(self) -> bool:
        """Whether weights grew without bound on the way, so that the run went back to its best ones."""
        return not all(math.isfinite(loss) for _, _, loss in self.curve)


def learn(
    batches: list[Data], counted: Data, test: Data, classes: int, way: Way, seed: int, shape: Shape = PLAIN
) -> Learned:
    """Adam at the learning rate that is best on the counted sequences after a share of the steps."""
    few = batches[: max(1, round(TRIED * len(batches)))]
    tried = [_descend(few, counted, classes, way, rate, seed, shape) for rate in LEARNING_RATES]
    losses = [math.inf if each.grew else each.loss for each in tried]
    best = LEARNING_RATES[int(np.argmin(losses))]
    found = _descend(batches, counted, classes, way, best, seed, shape)
    loss, accuracy = _judge(found.weights, test)
    first = draw_weights(batches[0][0].shape[2], classes, seed, shape)
    with one_thread(framework()):
        X, answers = map(framework().from_numpy, batches[0])
        local, exact = (gradients(first, X, answers, *each) for each in (_said(way), ("backprop", 0, 0.0)))
    cosines = {name: cosine(a, b) for name, a, b in zip(first, local, exact, strict=True)}
    curve = str(Run(None, best, found.taken, 0, 0, found.loss, curve=found.curve).end["curve"])
    return Learned(accuracy, loss, best, found.taken, found.ended_by, cosines, curve)


def _said(way: Way) -> tuple[How, int, float]:
    return way.how, way.relaxation, way.rate


def _descend(
    batches: list[Data],
    counted: Data,
    classes: int,
    way: Way,
    learning_rate: float,
    seed: int,
    shape: Shape = PLAIN,
) -> Descent:
    """A step for every batch of tokens [N, n, d] and answers [N].

    Where the loss no longer falls, or is no number, it goes on from the best weights at half the rate.
    """
    torch = framework()
    p = draw_weights(batches[0][0].shape[2], classes, seed, shape)
    optimiser = torch.optim.Adam(p.values(), learning_rate)
    shares = np.bincount(counted[1]) / len(counted[1])
    entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    patience = Patience(Scale(entropy, 0.0, len(counted[1])), WAIT, HALVINGS)
    kept, end, step = {name: tensor.detach().clone() for name, tensor in p.items()}, "budget", 0
    curve: list[tuple[int, float, float]] = []
    with one_thread(torch):
        for step in range(len(batches) + 1):
            if step % COUNT == 0 or step == len(batches):
                loss, accuracy = _judge(p, counted)
                curve.append((step, accuracy, loss))
                if patience.is_best(loss):
                    kept = {name: tensor.detach().clone() for name, tensor in p.items()}
                if not math.isfinite(loss) or patience.halves(step, loss):
                    for name, tensor in p.items():
                        tensor.data.copy_(kept[name])
                    optimiser = torch.optim.Adam(p.values(), optimiser.param_groups[0]["lr"] / 2)
                end = "all right" if loss < NONE else "plateau" if patience.flat else "budget"
            if end != "budget" or step == len(batches):
                break
            X, answers = map(torch.from_numpy, batches[step])
            for tensor, gradient in zip(p.values(), gradients(p, X, answers, *_said(way)), strict=True):
                tensor.grad = gradient
            optimiser.step()
    return Descent(kept, patience.best, step, cast(EndedBy, end), tuple(curve))


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
