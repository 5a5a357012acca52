"""Random heads, then a fitted readout: a continuous model without a quantiser.

Statement  2nd + 1 random softmax heads and d uniform ones, each with a channel of its own, hold (token, multiset)
           in a continuous stream; one layer of ReLU units on it approximates f.
Gives      a continuous, equivariant model; its sup error is measured here, and proved by the checker if n d <= 3.
Rests on   temperature_heads (the stream is one-to-one, so f is a continuous function of it), and on one ReLU layer
           being dense in the continuous functions of a compact set.
Why        "any continuous map", without cells: no share of the box is left out, and smooth maps need few units.
Differs    units are fitted by least squares (readouts/ridges.py), not taken from a proof; the uniform
           heads are not needed for the statement and make sums and means linear in the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts import temperature_heads
from onelayer.contexts.spare_channels import SpareChannels, one_channel_each
from onelayer.gadgets import ridges as gadget
from onelayer.gadgets.stacks import Covered, cover
from onelayer.ledger import Constant
from onelayer.network import Embedding, Transformer
from onelayer.network.blocks import evaluate
from onelayer.problems.answers import AnswerForm
from onelayer.problems.scopes import Scope
from onelayer.readouts.ridges import Ridges, fit
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["continuous"]
Array = NDArray[Any]
Values = Callable[[Array], Array]

#: How sharp the heads are, in units of the box: the first whose error, with few units, is near that of the best.
SCALES, SCALE_UNITS, WORTH = (1.0, 4.0, 16.0), 32, 2.0
#: Samples that a fit sees, and fresh ones on which its error is measured.
SAMPLES, FRESH = 4000, 16_000
#: Fits; before all but the first, the worst of the fresh samples join those seen.
EXCHANGES, EXCHANGED = 2, 1000


@dataclass(frozen=True)
class Domain:
    """Sequences of n tokens in [low, high]^d."""

    n: int
    d: int
    low: float
    high: float
    dtype: np.dtype[Any]

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Half of them anywhere, a quarter with components at the ends, a quarter with tokens near each other."""
        X = rng.uniform(self.low, self.high, (count, self.n, self.d))
        faces, near = X[: count // 4], X[count // 4 : count // 2]
        at_end = rng.random(faces.shape) < 0.5
        faces[at_end] = rng.choice([self.low, self.high], int(at_end.sum()))
        reach = (self.high - self.low) * 10.0 ** rng.uniform(-3, -0.5, (len(near), 1, 1))
        near[:, 1:] = near[:, :1] + reach * rng.standard_normal(near[:, 1:].shape)
        return np.clip(X, self.low, self.high)


@dataclass(frozen=True)
class Continuous:
    transformer: Transformer
    gadgets: tuple[Covered, ...]
    form: AnswerForm
    error: float  # the largest on the fresh samples
    constants: tuple[Constant, ...]


def choose(values: Values, domain: Domain, scope: Scope, seed: int = 0) -> SampledStream:
    """The smoothest heads whose stream a few units read about as well as any."""
    fits = [SampledStream(values, domain, scope, scale, seed) for scale in SCALES]
    errors = [found.error(found.ridges(SCALE_UNITS)) for found in fits]
    return next(found for found, error in zip(fits, errors, strict=True) if error <= WORTH * min(errors))


def construct(found: SampledStream, units: int) -> Continuous:
    """The model of ``found`` with this many units, for an equivariant or invariant function."""
    ridges = found.ridges(units)
    transformer, gadgets = found.transformer(ridges)
    constants = (
        Constant(
            "units", ridges.weight.shape[1], "ReLU units, one an output among them that carries the affine part"
        ),
        Constant("heads", transformer.attention.heads, "2nd + 1 random ones and d that average"),
        Constant("scale", found.scale, f"of the random heads, in units of the box, of {SCALES}"),
        Constant("out_sum", float(np.abs(ridges.out).sum(axis=0).max()), "sizes of an output's weights, added up"),
    )
    X, _, wanted = found.fresh
    answers = evaluate(transformer, X.astype(found.domain.dtype))[:, 0].astype(np.float64)
    form = AnswerForm(found.scope, None, ridges.out.shape[1], False)
    return Continuous(transformer, gadgets, form, float(np.abs(answers - wanted).max()), constants)


class SampledStream:
    """Samples of a function and of the stream that heads of one scale make of them.

    ``values`` are [B, n, q] (scope "token") or [B, q] for sequences [B, n, d]. With one answer a sequence, only the
    channels that are the same at every token are read.
    """

    def __init__(self, values: Values, domain: Domain, scope: Scope, scale: float, seed: int) -> None:
        self.values, self.domain, self.scope, self.scale, self.seed = values, domain, scope, scale, seed
        self.heads = stream(domain, scale, seed)
        self.read = slice(0 if scope == "token" else domain.d, None)
        rng = np.random.default_rng([seed, 21])
        self.seen = self._sample(domain.draw(SAMPLES, rng))
        self.fresh = self._sample(domain.draw(FRESH, rng))

    def _sample(self, X: Array) -> tuple[Array, Array, Array]:
        """Sequences, what a readout sees of the first token, and its answer; others are first in another order."""
        X = X.astype(self.domain.dtype).astype(np.float64)
        F = self.values(X)
        return X, self.stream_of(X), F[:, 0] if self.scope == "token" else F

    def stream_of(self, X: Array) -> Array:
        h: Array = evaluate(self.heads.transformer(), X.astype(self.domain.dtype))[:, 0, self.read]
        return h.astype(np.float64)

    def ridges(self, units: int) -> Ridges:
        rng = np.random.default_rng([self.seed, 22, units])
        Z, F = self.seen[1:]
        _, tried, wanted = self.fresh
        ridges = fit(Z, F, (tried, wanted), units, rng)
        for _ in range(EXCHANGES - 1):
            worst = np.argsort(-np.abs(ridges(tried) - wanted).max(axis=1), kind="stable")[:EXCHANGED]
            more = np.concatenate([Z, tried[worst]]), np.concatenate([F, wanted[worst]])
            again = fit(*more, (tried, wanted), units, rng)
            ridges = min(ridges, again, key=self.error)
        return ridges

    def error(self, ridges: Ridges) -> float:
        """The largest on fresh samples, before weights are rounded."""
        return float(np.abs(ridges(self.fresh[1]) - self.fresh[2]).max())

    def transformer(self, ridges: Ridges) -> tuple[Transformer, tuple[Covered, ...]]:
        weight = np.zeros((len(self.heads.channels), ridges.weight.shape[1]))
        weight[self.read] = ridges.weight
        parts = (weight, ridges.bias, ridges.out, ridges.constant)
        readout = gadget.Ridges(*(part.astype(self.domain.dtype) for part in parts))
        return self.heads.transformer(*readout.dense), cover((), (readout,))


def stream(domain: Domain, scale: float, seed: int) -> SpareChannels:
    """(x_k, scratch, means): the random heads of temperature_heads, and one uniform head a component."""
    n, d = domain.n, domain.d
    heads = temperature_heads.construct(n, d, seed=seed, scale=scale, low=domain.low, high=domain.high)
    H = heads.attention.heads
    keys = np.zeros((H + d, 2 * d + H))
    keys[:H, :d] = heads.attention.W_K[:, :d, 0]
    values = keys.copy()
    values[H:, :d] = np.eye(d)
    names = (*heads.channels, *(f"mean{i}" for i in range(d)))
    lift = np.eye(d, 2 * d + H, dtype=domain.dtype)
    return SpareChannels(Embedding(lift=lift), one_channel_each(keys, values, d, domain.dtype), names)


def parameters(n: int, d: int, units: int, components: int) -> int:
    """Stored numbers of the whole model."""
    H = temperature_heads.heads_needed(n, d) + d
    width, hidden = d + H, units + components
    return d * width + H * (4 * width + 1) + (width + 1) * hidden + (hidden + 1) * components
