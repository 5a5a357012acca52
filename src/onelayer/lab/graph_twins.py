"""One trained layer that reads a network off its tensors: ordinary softmax attention, or attention along its graph.

Tokens are lifted to a residual stream, one layer of attention and one of feed-forward follow, and a linear map of
the sum over tokens answers. The two twins differ in who attends to whom:
    softmax  softmax(Q K^T / sqrt(s)) over all tensors of the network
    graph    sigmoid(X W) sigmoid(X W)^T over a tensor and its neighbours, each row divided by its sum: the
             attention of NAR-Former V2 (arXiv 2306.10792)
The graph is a path: tensors in the order in which data meet them (embedding, feed-forward, attention, readout),
each the neighbour of the one before it, of the one behind it and of itself.

A quarter of the networks that are given judges: first the rate, then the decay of weights at that rate, and each
time after how many steps the error on that quarter had stopped falling. As for the strength of a ridge it is the
mean absolute error of answers within the range that is known; of a mean square, one odd network among those that
judge makes most. A twin of the same first weights then takes as many steps on all networks that are given, as a
ridge is fitted again with the strength that a part has chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.drawn import standards
from onelayer.lab.networks import framework, one_thread
from onelayer.measure.encoding import KINDS

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]
Way = Literal["softmax", "graph"]
EndedBy = Literal["plateau", "budget"]
#: Rates, and decays of weights that are tried at the best of them beside none.
RATES, DECAYS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2), (0.5,)
WIDTH, HIDDEN = 16, 32
#: Every so many networks one judges; and steps between two counts.
JUDGES, CHECK = 4, 20
#: A run ends anyway after so many steps for each network that is given.
MOST = 12
#: An error has stopped falling after so many steps without a new least one, or this share of the steps taken.
WAIT, SLOW, WARM_UP = 100, 0.2, 20
#: Parts of a network in the order in which data meet them.
PARTS = ("embedding", "feedforward", "attention", "readout")


@dataclass(frozen=True)
class Chosen:
    """What the networks that judge have chosen."""

    rate: float
    decay: float
    steps: int  # until the least error
    error: float
    ended_by: EndedBy


@dataclass(frozen=True)
class Graphs:
    """Tokens [N, n, d] of networks, filled up with zeros, which of them are there, and who is whose neighbour."""

    tokens: Tensor
    there: Tensor  # [N, n]
    near: Tensor  # [n, n]

    @classmethod
    def of(cls, networks: list[Array], components: list[int], seen: Array) -> Graphs:
        """Standardised by the tokens of the networks that are seen."""
        torch = framework()
        mean, spread = standards(
            np.concatenate([t[:, components] for t, s in zip(networks, seen, strict=True) if s])
        )
        longest = max(map(len, networks))
        filled = np.zeros((len(networks), longest, len(components)))
        there = np.zeros((len(networks), longest), bool)
        for i, tokens in enumerate(networks):
            filled[i, : len(tokens)] = (tokens[along_data(tokens)][:, components] - mean) / spread
            there[i, : len(tokens)] = True
        place = np.arange(longest)
        near = np.abs(place[:, None] - place) <= 1
        return cls(torch.from_numpy(filled).float(), torch.from_numpy(there), torch.from_numpy(near))

    def take(self, rows: Array) -> Graphs:
        places = framework().from_numpy(np.flatnonzero(rows))
        return Graphs(self.tokens[places], self.there[places], self.near)


def along_data(tokens: Array) -> Array:
    """The order in which data meet the tensors of one layer: `tensors` has the readout before attention."""
    part = np.array([PARTS.index(kind.partition(".")[0]) for kind in KINDS])
    found: Array = np.argsort(part[tokens[:, : len(KINDS)].argmax(axis=1)], kind="stable")
    return found


class Twin:
    """The layer, with its parameters by name and the forward pass on one screen."""

    def __init__(self, way: Way, components: int, seed: int) -> None:
        torch = framework()
        self.way, w, m = way, WIDTH, HIDDEN
        maps: dict[str, tuple[int, ...]] = {"lift": (components, w), "W_Q": (w, w), "W_V": (w, w), "W_O": (w, w)}
        maps |= {"W_K": (w, w)} if way == "softmax" else {}
        maps |= {"W_1": (w, m), "W_2": (m, w), "head": (w, 1)}
        generator = torch.Generator().manual_seed(seed)
        self.tensors: dict[str, Tensor] = {}
        for name, size in maps.items():
            self.tensors[name] = (torch.randn(size, generator=generator) * size[0] ** -0.5).requires_grad_()
        for name in ("lift", "W_Q", "W_1", "W_2", "head"):
            self.tensors[f"{name}.bias"] = torch.zeros(maps[name][1]).requires_grad_()

    def __call__(self, graphs: Graphs) -> Tensor:
        """One number for each network."""
        h = self._map(graphs.tokens, "lift")
        h = h + self.weights(h, graphs) @ (h @ self.tensors["W_V"]) @ self.tensors["W_O"]
        h = h + self._map(framework().relu(self._map(h, "W_1")), "W_2")
        count = graphs.there.sum(1).float().mean()  # of a usual network, so that sums are not large
        pooled = (h * graphs.there[..., None]).sum(1) / count
        out: Tensor = self._map(pooled, "head")[:, 0]
        return out

    def weights(self, h: Tensor, graphs: Graphs) -> Tensor:
        """[N, n, n] How much each tensor takes from each; nothing from what is not there."""
        torch, there = framework(), graphs.there[:, None, :]
        found: Tensor
        if self.way == "softmax":
            logits = self._map(h, "W_Q") @ (h @ self.tensors["W_K"]).transpose(1, 2) / WIDTH**0.5
            found = torch.softmax(logits.masked_fill(~there, -torch.inf), -1)
            return found
        keys = torch.sigmoid(self._map(h, "W_Q"))
        scores = keys @ keys.transpose(1, 2) * (there & graphs.near)
        found = scores / scores.sum(-1, keepdim=True).clamp_min(1e-9)
        return found

    def _map(self, x: Tensor, name: str) -> Tensor:
        return x @ self.tensors[name] + self.tensors[f"{name}.bias"]


def foretell(
    way: Way, networks: list[Array], components: list[int], wanted: Array, seen: Array, seed: int
) -> tuple[Array, Chosen]:
    """What a twin trained on the networks that are seen says of the others, and what it was trained with."""
    torch = framework()
    with one_thread(torch):
        graphs = Graphs.of(networks, components, seen)
        known = wanted[seen]
        mean, spread = standards(known)
        aims = torch.from_numpy((known - mean) / spread).float()
        given, judges = graphs.take(seen), np.arange(len(known)) % JUDGES == JUDGES - 1
        chosen = _choose(way, given, aims, judges, seed)
        twin = Twin(way, len(components), seed)
        optimiser = _optimiser(twin, chosen.rate, chosen.decay)
        for step in range(chosen.steps):
            _advance(twin, optimiser, chosen.rate, step, given, aims)
        with torch.no_grad():
            said = np.asarray(twin(graphs.take(~seen)), np.float64) * spread + mean
    return np.clip(said, known.min(), known.max()), chosen  # nothing beyond what was seen


def _choose(way: Way, given: Graphs, aims: Tensor, judges: Array, seed: int) -> Chosen:
    """The rate whose least error on the networks that judge is the least, then the decay, and the steps to it."""
    torch = framework()
    parts = [(given.take(rows), aims[torch.from_numpy(np.flatnonzero(rows))]) for rows in (~judges, judges)]

    def run(rate: float, decay: float) -> Chosen:
        return _run(Twin(way, given.tokens.shape[-1], seed), rate, decay, *parts)

    best = min((run(rate, 0.0) for rate in RATES), key=lambda found: found.error)
    return min((best, *(run(best.rate, decay) for decay in DECAYS)), key=lambda found: found.error)


def _run(twin: Twin, rate: float, decay: float, fit: tuple[Graphs, Tensor], judge: tuple[Graphs, Tensor]) -> Chosen:
    optimiser, least, at = _optimiser(twin, rate, decay), math.inf, 0
    most = MOST * (len(fit[1]) + len(judge[1]))
    low, high = float(fit[1].min()), float(fit[1].max())
    for step in range(most + 1):
        if step % CHECK == 0:
            with framework().no_grad():
                error = float((twin(judge[0]).clamp(low, high) - judge[1]).abs().mean())
            if error < least:
                least, at = error, step
            if step - at >= max(WAIT, SLOW * step):
                return Chosen(rate, decay, at, least, "plateau")
        _advance(twin, optimiser, rate, step, *fit)
    return Chosen(rate, decay, at, least, "budget")


def _optimiser(twin: Twin, rate: float, decay: float) -> Any:
    return framework().optim.AdamW(list(twin.tensors.values()), rate, weight_decay=decay, fused=True)


def _advance(twin: Twin, optimiser: Any, rate: float, step: int, graphs: Graphs, aims: Tensor) -> None:
    optimiser.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / WARM_UP)
    optimiser.zero_grad()
    loss: Any = (twin(graphs) - aims).square().mean()
    loss.backward()
    optimiser.step()
