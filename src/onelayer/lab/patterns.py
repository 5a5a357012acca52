"""One attention layer trained on patterns of which the most frequent decides, as in the theory of low-rank updates.

A sequence has tokens that are orthogonal patterns; some patterns count, and the answer is the one of them that
occurs most often. The layer is relu(attention(X) W_O), summed into a score for every answer with fixed signs and
averaged over tokens. It is trained by plain SGD on the hinge loss, and W_Q, W_K and W_V begin as multiples of the
identity. Its rate is the best of a few after a share of the steps, and is halved where its loss no longer falls; a
run goes on from its best weights then, and ends when halving brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.networks import framework, one_thread
from onelayer.lab.plateaus import Patience, Scale
from onelayer.lab.runs import EndedBy, Run

Array = NDArray[Any]
#: Gives the sequences and the answers of a step.
Batch = Callable[[int], tuple[Array, Array]]
#: Components of a token, patterns, tokens of a sequence, how many of them count, and sequences of a step.
WIDTH, PATTERNS, LENGTH, COUNTED, BATCH = 20, 10, 20, 7, 64
#: Size of the first W_Q, W_K and W_V, and of W_O.
START, SPREAD = 0.3, 0.1
NAMES = ("W_Q", "W_K", "W_V", "W_O")
#: Rates that are tried, and the share of the steps that each of them is given.
RATES, TRIED = (0.1, 0.3, 1.0, 3.0, 10.0), 0.2
#: Steps between two counts of the loss, the least that a fall is waited for, halvings without one that end a run,
#: and a loss that is none.
COUNT, WAIT, HALVINGS, NONE = 20, 100, 2, 1e-3


def draw(rng: np.random.Generator, deciding: int, count: int, patterns: Array) -> tuple[Array, Array]:
    """Sequences [count, LENGTH, WIDTH], and which of the ``deciding`` first patterns each has most often."""
    answers = rng.integers(0, deciding, count)
    most = rng.integers(COUNTED // 2 + 1, COUNTED, count)  # an absolute majority of those that count
    others = (answers[:, None] + rng.integers(1, deciding, (count, COUNTED))) % deciding
    counted = np.where(np.arange(COUNTED) < most[:, None], answers[:, None], others)
    rest = rng.integers(deciding, PATTERNS, (count, LENGTH - COUNTED))
    which = rng.permuted(np.concatenate([counted, rest], axis=1), axis=1)
    return patterns[which], answers


@dataclass(frozen=True)
class Layer:
    """Weights before training, and the best of a run; products of two factors where the rank was limited."""

    before: dict[str, Array]
    after: dict[str, Array]
    signs: Array  # [neurons, answers]
    rate: float  # the first one
    loss: float  # of the best weights on the counted sequences
    steps: int  # taken
    ended_by: EndedBy
    curve: tuple[tuple[int, float, float], ...] = ()  # step, accuracy and loss at every count

    @property
    def at_an_end(self) -> bool:
        """Whether no rate beyond it was tried."""
        return self.rate in (min(RATES), max(RATES))

    @property
    def lost(self) -> bool:
        """Whether weights grew without bound or all units died, so that the run went back to its best ones."""
        return not np.isfinite([loss for _, _, loss in self.curve]).all()

    @property
    def milestones(self) -> str:
        """Accuracy and loss on the way, as rows of every trainer keep them."""
        taken = Run(None, self.rate, self.steps, 0, 0, self.loss, curve=self.curve)
        return str(taken.end["curve"])

    def scores(self, X: Array, kept: Array | None = None) -> Array:
        """[N, answers], with some of the neurons."""
        torch = framework()
        with torch.no_grad(), one_thread(torch):
            weights = {name: torch.from_numpy(a) for name, a in self.after.items()}
            signs = self.signs if kept is None else self.signs * kept[:, None]
            return np.asarray(_scores(torch, weights, torch.from_numpy(signs), torch.from_numpy(X))[0].numpy())

    def attends(self, X: Array) -> Array:
        """[N, n] the mean weight that attention gives each token."""
        torch = framework()
        with torch.no_grad(), one_thread(torch):
            weights = {name: torch.from_numpy(a) for name, a in self.after.items()}
            found = _scores(torch, weights, torch.from_numpy(self.signs), torch.from_numpy(X))[1]
            return np.asarray(found.mean(1).numpy())


def hinge(scores: Array, answers: Array) -> float:
    """Mean of max(0, 1 - lead of the right answer)."""
    right = np.take_along_axis(scores, answers[:, None], axis=1)[:, 0]
    others = np.where(np.arange(scores.shape[1]) == answers[:, None], -np.inf, scores).max(axis=1)
    return float(np.maximum(0.0, 1.0 - right + others).mean())


def margins(scores: Array, answers: Array) -> float:
    """What training goes down: the mean of max(0, 1 - lead over another answer), summed over all others."""
    right = np.take_along_axis(scores, answers[:, None], axis=1)
    short = np.maximum(0.0, 1.0 - right + scores)
    return float(np.where(np.arange(scores.shape[1]) == answers[:, None], 0.0, short).sum(axis=1).mean())


def tune(
    batch: Batch, counted: tuple[Array, Array], deciding: int, neurons: int, rank: int, steps: int, seed: int
) -> Layer:
    """Trained at the rate whose best loss on the counted sequences is the least after a share of the steps.

    A rate at which weights grow without bound, or all units die, is the last choice.
    """
    few = max(1, round(TRIED * steps))
    tried = [train(batch, counted, deciding, neurons, rank, few, rate, seed) for rate in RATES]
    losses = [np.inf if layer.lost else layer.loss for layer in tried]
    return train(batch, counted, deciding, neurons, rank, steps, RATES[int(np.argmin(losses))], seed)


def train(
    batch: Batch,
    counted: tuple[Array, Array],
    deciding: int,
    neurons: int,
    rank: int,
    steps: int,
    rate: float,
    seed: int,
) -> Layer:
    """SGD on what ``batch(step)`` gives; W_Q, W_K and W_V of limited rank if it is below their width.

    Where the loss on ``counted`` sequences no longer falls, or is no number, it goes on from the best weights at
    half the rate. It ends before its steps are spent when that loss is next to none, or halving brings nothing.
    """
    torch = framework()
    tensors, signs = _draw_weights(torch, batch(0)[0].shape[2], deciding, neurons, rank, seed)
    fixed, given = torch.from_numpy(signs), torch.from_numpy(counted[0])
    trained = [a for parts in tensors.values() for a in parts]
    # Of a constant answer all scores are the same, and every other one costs 1.
    patience = Patience(Scale(deciding - 1.0, 0.0, len(counted[1])), WAIT, HALVINGS)
    curve: list[tuple[int, float, float]] = []
    kept = [a.detach().clone() for a in trained]

    def whole() -> dict[str, Any]:
        return {name: p[0] if len(p) == 1 else p[0] @ p[1] for name, p in tensors.items()}

    def copied() -> dict[str, Array]:
        return {name: a.detach().numpy().copy() for name, a in whole().items()}

    def go_back(learning_rate: float) -> Any:
        for a, best in zip(trained, kept, strict=True):
            a.data.copy_(best)
        return torch.optim.SGD(trained, lr=learning_rate)

    before, optimiser, end = copied(), go_back(rate), "budget"
    with one_thread(torch):
        for step in range(steps + 1):
            if step % COUNT == 0 or step == steps:
                with torch.no_grad():
                    scores = np.asarray(_scores(torch, whole(), fixed, given)[0].numpy())
                # Units that no sequence switches on have no gradient: such weights are lost, whatever their loss.
                loss = margins(scores, counted[1]) if np.ptp(scores, axis=0).any() else np.inf
                curve.append((step, float((scores.argmax(axis=1) == counted[1]).mean()), loss))
                if patience.is_best(loss):
                    kept = [a.detach().clone() for a in trained]
                if not np.isfinite(loss) or patience.halves(step, loss):
                    optimiser = go_back(optimiser.param_groups[0]["lr"] / 2)
                end = "all right" if loss < NONE else "plateau" if patience.flat else "budget"
            if end != "budget" or step == steps:
                break
            tokens, answers = (torch.from_numpy(a) for a in batch(step))
            found = torch.nn.functional.multi_margin_loss(_scores(torch, whole(), fixed, tokens)[0], answers)
            optimiser.zero_grad()
            (found * deciding).backward()
            optimiser.step()
        go_back(rate)
    return Layer(before, copied(), signs, rate, patience.best, step, cast(EndedBy, end), tuple(curve))


def _draw_weights(
    torch: Any, width: int, deciding: int, neurons: int, rank: int, seed: int
) -> tuple[dict[str, list[Any]], Array]:
    """Factors of all matrices that are trained, by name, and the signs of the neurons, which are not."""
    rng = np.random.default_rng([seed, 407])
    factors = {}
    for name in ("W_Q", "W_K", "W_V"):
        if rank < width:
            factors[name] = [rng.normal(size=s) * (START / rank) ** 0.5 for s in ((width, rank), (rank, width))]
        else:
            factors[name] = [START * np.eye(width)]
    factors["W_O"] = [SPREAD * rng.normal(size=(width, neurons))]
    owner = np.arange(neurons) % deciding
    signs = np.where(np.arange(deciding) == owner[:, None], 1.0, -1.0 / (deciding - 1)) * deciding / neurons
    return {name: [torch.tensor(a, requires_grad=True) for a in parts] for name, parts in factors.items()}, signs


def _scores(torch: Any, weights: dict[str, Any], signs: Any, X: Any) -> tuple[Any, Any]:
    logits = (X @ weights["W_Q"]) @ (X @ weights["W_K"]).transpose(-1, -2)
    attention = torch.softmax(logits, dim=-1)
    units = torch.relu(attention @ (X @ weights["W_V"]) @ weights["W_O"])
    return (units @ signs).mean(1), attention
