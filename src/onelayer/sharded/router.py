"""The router: one number for each sequence, the sum of whole-number codes of its tokens, cut into shards.

A step on a component of a real token is 0 or 1 wherever the data leaves a gap; a word has a code in a table. The
sum over the tokens is a whole number that any order of float32 sums gets right, so every stored sequence is sent to
one shard for certain, and equal contexts, whose sums are equal, always to the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.lattice import coordinate_radius, summing_attention
from onelayer.contexts.quantiser import LEAST_GAP_IN_ULPS
from onelayer.errors import HypothesisError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.line import trapezoids
from onelayer.gadgets.stacks import compose
from onelayer.gadgets.steps import Steps
from onelayer.interfaces import Answers
from onelayer.ledger import Constant, Ledger
from onelayer.model import Model
from onelayer.network import Embedding, Linear
from onelayer.problems.answers import AnswerForm
from onelayer.readouts.plateaus import on_a_line

Array = NDArray[Any]
#: Steps that the router looks at, places where each might be, and how far from a quantile they are looked for.
STEPS, PLACES, AROUND = 8, 8, 0.1
#: The rounding of a sum may take this share of half a step between whole numbers.
SHARE = 0.5
LARGEST_CODE = 1 << 12


@dataclass(frozen=True)
class Places:
    """Where steps might be: component [T], threshold [T, K], and what the data has nearest on either side."""

    component: Array
    threshold: Array
    low: Array
    high: Array

    @staticmethod
    def draw(sample: Array, seed: int) -> Places:
        """Near quantiles of components of a sample of tokens [S, d], in gaps that are wide for their numbers."""
        rng, d = np.random.default_rng([seed, 17]), sample.shape[1]
        component = np.resize(rng.permutation(d), min(STEPS, STEPS if d < STEPS else d))
        turn = np.arange(len(component)) // d
        turns = int(turn.max()) + 1
        found = np.full((len(component), PLACES), np.nan)
        for t, (c, k) in enumerate(zip(component, turn, strict=True)):
            values = np.unique(sample[:, c].astype(np.float64))
            if len(values) > 1:
                some = _widest(values, (k + 1) / (turns + 1), sample.dtype)
                found[t, : len(some)] = some
        ends = np.full(found.shape, np.inf)
        return Places(component, found, -ends, ends)

    def seen(self, tokens: Array) -> Places:
        """The same, with the nearest numbers among more tokens [.., d]."""
        low, high = self.low.copy(), self.high.copy()
        flat = tokens.reshape(-1, tokens.shape[-1])
        for t, c in enumerate(self.component):
            values, at = np.ascontiguousarray(flat[:, c]), self.threshold[t]
            at = at[~np.isnan(at)]
            if len(at):
                inside = values[(values > at[0]) & (values <= at[-1])]
                below = values.max(where=values <= at[0], initial=-np.inf)
                above = values.min(where=values > at[-1], initial=np.inf)
                near = np.concatenate([[below], np.sort(inside), [above]])
                after, some = np.searchsorted(near, at, side="right"), slice(len(at))
                low[t, some] = np.maximum(low[t, some], near[after - 1])
                high[t, some] = np.minimum(high[t, some], near[after])
        return replace(self, low=low, high=high)

    def merged(self, other: Places) -> Places:
        return replace(self, low=np.maximum(self.low, other.low), high=np.minimum(self.high, other.high))

    def widest(self, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
        """Components and gaps (low, high) of the steps that the data leaves room for."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        with np.errstate(invalid="ignore"):
            fits = np.isfinite(self.low) & np.isfinite(self.high)
            room = np.where(fits, (self.high - self.low) / np.spacing(np.where(fits, size, 1.0).astype(dtype)), 0.0)
        best = room.argmax(axis=1)
        rows = np.arange(len(best))
        good = np.flatnonzero(room[rows, best] > LEAST_GAP_IN_ULPS)
        return self.component[good], self.low[good, best[good]], self.high[good, best[good]]


def _widest(values: Array, quantile: float, dtype: np.dtype[Any]) -> Array:
    """Middles of the gaps near a quantile that hold the most numbers of the dtype."""
    at, reach = quantile * (len(values) - 1), max(1.0, AROUND * len(values))
    first, last = max(0, int(at - reach)), min(len(values) - 1, int(np.ceil(at + reach)))
    low, high = values[first:last], values[first + 1 : last + 1]
    room = (high - low) / np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(dtype))
    best = np.sort(np.argsort(-room, kind="stable")[:PLACES])
    return np.asarray((low[best] + high[best]) / 2)


@dataclass(frozen=True)
class Router:
    """Codes of steps or of words; sums of sequences; from which sum on each further shard begins."""

    dtype: np.dtype[Any]
    n: int
    width: int  # d of real tokens, V of words
    codes: Array  # [T] of steps, or [V] of words
    component: Array | None = None  # [T], None for words
    low: Array | None = None
    high: Array | None = None
    starts: tuple[int, ...] = ()

    def sums(self, X: Array) -> Array:
        """[N] of tokens [N, n, d] or ids [N, n]."""
        if self.component is None or self.high is None:
            return np.asarray(self.codes[X].sum(axis=1, dtype=np.int64))
        total = np.zeros(len(X), np.int64)
        for c, high, code in zip(self.component, self.high, self.codes, strict=True):
            total += int(code) * np.count_nonzero(X[:, :, c] >= high, axis=1)
        return total

    def shards(self, X: Array) -> Array:
        return np.searchsorted(np.array(self.starts, np.int64), self.sums(X), side="right")

    @property
    def count(self) -> int:
        return len(self.starts) + 1

    def cut(self, sums: Array, shards: int) -> Router:
        """Into at most this many shards, about equally full by a sample of sums."""
        ordered = np.sort(sums)
        starts = {int(ordered[len(ordered) * k // shards]) for k in range(1, shards)}
        return replace(self, starts=tuple(sorted(start for start in starts if start > ordered[0])))

    def model(self, vocabulary: tuple[Any, ...] | None) -> Model:
        """As a network: steps or a table, one head that adds up, and a plateau for each shard."""
        embedding, gadgets = self._codes()
        attention = summing_attention(1, float(self.n), self.dtype, separate=True)
        weight = np.array([[0.0], [1.0]], self.dtype)
        cells = np.array(self.starts, np.float64)
        # Sums are whole numbers from 0 on, and one more, so that all of them are positive.
        t = np.concatenate([[1.0], np.stack([cells, cells + 1.0], axis=1).ravel()])
        numbers = np.concatenate([[0], np.repeat(np.arange(1, self.count), 2)])
        numbers[1::2] -= 1
        line = on_a_line(t, numbers[:, None].astype(np.float64), self.dtype)
        bottleneck = Affine(Linear(weight, np.ones(1, self.dtype)))
        transformer, covered = compose(attention, embedding, gadgets, (bottleneck, *line.gadgets), ("code", "sum"))
        form = AnswerForm("sequence", tuple(range(self.count)), None, False)
        said = Ledger(
            (Constant("shards", self.count, "what a sequence is sent to, by the sum of its tokens' codes"),)
        )
        return Model(transformer, Answers(form=form, vocabulary=vocabulary), said, gadgets=covered)

    def _codes(self) -> tuple[Embedding | None, tuple[Gadget, ...]]:
        """One channel with the code of a token, and one more for the sum."""
        if self.component is None or self.low is None or self.high is None:
            table = np.stack([self.codes, np.zeros(len(self.codes))], axis=1)
            return Embedding(table=table.astype(self.dtype)), ()
        order = np.lexsort((self.low, self.component))
        steps = [trapezoids(self.low[k : k + 1], self.high[k : k + 1], self.dtype)[:2] for k in order]
        slope = np.array([-weight[1, 1] for weight, _ in steps], self.dtype)
        bias = np.array([bias[1, 1] for _, bias in steps], self.dtype)
        none = np.zeros((self.width, 0), self.dtype)
        weight = np.stack([self.codes[order], np.zeros(len(order))], axis=1).astype(self.dtype)
        found = Steps(self.component[order].astype(np.intp), slope, bias, none)
        return None, (found, Affine(Linear(weight, np.zeros(2, self.dtype))))


def draw_router(places: Places | None, n: int, width: int, dtype: np.dtype[Any], seed: int) -> Router:
    """Random codes, as large as leaves the rounding of a sum within its share; ``places`` None for words."""
    rng, unit = np.random.default_rng([seed, 19]), float(np.finfo(dtype).eps) / 2
    if places is None:
        top = _largest_code(n, 1, unit)
        return Router(dtype, n, width, rng.integers(0, top + 1, width))
    component, low, high = places.widest(dtype)
    if not len(component):
        raise HypothesisError(
            "lattice",
            "a gap between two numbers of some component, by which sequences are sent to shards",
            f"of {np.isfinite(places.threshold).sum()} places none has {LEAST_GAP_IN_ULPS} units in the last place",
            "Round the tokens to fewer digits, or give them as float64.",
        )
    top = _largest_code(n, len(component), unit)
    return Router(dtype, n, width, rng.integers(1, top + 1, len(component)), component, low, high)


def _largest_code(n: int, steps: int, unit: float) -> int:
    """Of a step: sums of n tokens stay whole numbers for certain, in any order."""
    top = LARGEST_CODE
    while top > 1 and coordinate_radius(n, float(steps * top), 2.0 * n * steps * top, unit) > SHARE / 2:
        top //= 2
    return top
