"""Whole-number codes of tokens, before places and hashes: where they come from and what computes them.

Words have a table of codes; of a large vocabulary, only a number each, whose two digits have codes that are added
up. Real tokens are cut at quantiles of some of their components, and every step has a code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.cuts import meeting
from onelayer.contexts.hashed import Hashes
from onelayer.contexts.quantiser import Quantiser, quantise, thin_tokens, told_apart
from onelayer.contexts.stream import RealStream, TokenStream
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.steps import Steps
from onelayer.network import Embedding, Linear
from onelayer.problems.blocks import UNTHREADED, column_bounds, product
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Up to this many components all are looked at; of more, as many as should tell all tokens apart, and at least so
#: many.
ALL_COMPONENTS, FEWEST_COMPONENTS = 32, 16
#: Bits that a component is counted for at most, and pairs of tokens by which they are judged.
BITS_A_COMPONENT, PAIRS = 2.0, 1024
#: A component with more steps than this has many levels.
MANY_STEPS = 64
#: Levels of each of two components, over the length of sequences, at least: sums over few tokens of fewer take few
#: values.
LEVELS_OF_TWO = 1 << 9
#: From this many words on, and more than one to this many tokens, words are numbered, not coded one by one.
LARGE_VOCABULARY, TOKENS_A_WORD = 1 << 12, 8


class Raw(Protocol):
    """Codes from 0 on, and the gadgets to them."""

    @property
    def values(self) -> Array:
        """[N, n, s]; what padding has there is not used."""

    @property
    def top(self) -> Array:
        """[s] the largest codes."""

    @property
    def count(self) -> int:
        """Thresholds on components of real tokens, or token ids."""

    def network(self, hashes: Hashes) -> tuple[Embedding, tuple[Gadget, ...]]:
        """From tokens to z, and the mark of the first place where there is a sink."""


@dataclass(frozen=True)
class CodedWords:
    """A row of codes for each word."""

    table: Array  # [V, s]
    ids: Array
    dtype: np.dtype[Any]

    @property
    def values(self) -> Array:
        return np.asarray(self.table.astype(self.dtype)[self.ids])

    @property
    def top(self) -> Array:
        return np.asarray(self.table.max(axis=0))

    @property
    def count(self) -> int:
        return len(self.table)

    def network(self, hashes: Hashes) -> tuple[Embedding, tuple[Gadget, ...]]:
        table = np.pad(self.table, ((0, 0), (0, int(hashes.sink)))).astype(self.dtype)
        places = hashes.embedded_places
        return Embedding(table=table, positions=None if places is None else places.astype(self.dtype)), ()


@dataclass(frozen=True)
class NumberedWords:
    """One number for each word: its digits high and low have codes, which are added up."""

    number: Array  # [V], all different, below the square of the base
    base: int
    high: Array  # [base, s]
    low: Array
    ids: Array
    dtype: np.dtype[Any]

    @property
    def values(self) -> Array:
        codes = self.high[self.number // self.base] + self.low[self.number % self.base]
        return np.asarray(codes.astype(self.dtype)[self.ids])

    @property
    def top(self) -> Array:
        return np.asarray(self.high.max(axis=0) + self.low.max(axis=0))

    @property
    def count(self) -> int:
        return len(self.number)

    def network(self, hashes: Hashes) -> tuple[Embedding, tuple[Gadget, ...]]:
        """The number and the place on a channel each; steps of the high digit and the place, then of the low."""
        dtype, base, s = self.dtype, self.base, self.high.shape[1]
        places = np.zeros((1, s)) if hashes.places is None else hashes.places
        n, placed = len(places), hashes.places is not None
        table, at = np.zeros((len(self.number), 1 + placed), dtype), np.zeros((n, 1 + placed), dtype)
        table[:, 0], at[:, -1] = self.number, np.arange(n)
        K, P = base - 1, n - 1
        marks = int(hashes.sink)
        first = _half_steps([0] * K + [placed] * P, [*base * np.arange(1, base), *np.arange(1, n)], dtype)
        digit, digit_bias = np.zeros((K + P + 1, s + 1 + marks)), np.zeros(s + 1 + marks)
        digit[:K, :s], digit[K:-1, :s] = np.diff(self.high, axis=0), np.diff(places, axis=0)
        digit_bias[:s] = self.high[0] + places[0]
        digit[:K, s], digit[-1, s] = -base, 1.0
        if marks and P:
            digit[K, -1] = -1.0  # not the second place, nor one behind it
        digit_bias[s + 1 :] = 1.0
        kept = s + marks
        last, last_bias = np.zeros((K + kept, kept)), np.zeros(kept)
        last[:K, :s], last[K:], last_bias[:s] = np.diff(self.low, axis=0), np.eye(kept), self.low[0]
        others = np.delete(np.eye(s + 1 + marks), s, axis=1)
        return Embedding(table=table, positions=at if placed else None), (
            Steps(*first, np.eye(1 + placed, 1, dtype=dtype)),
            Affine(_linear(digit, digit_bias, dtype)),
            Steps(*_half_steps([s] * K, list(range(1, base)), dtype), others.astype(dtype)),
            Affine(_linear(last, last_bias, dtype)),
        )


@dataclass(frozen=True)
class Quantised:
    """Real tokens: steps of some components, and a code for each step."""

    quantiser: Quantiser
    layer: Linear  # from steps to codes
    values: Array
    top: Array
    components: Array  # which are looked at
    stream: RealStream

    @property
    def count(self) -> int:
        return self.quantiser.count

    def network(self, hashes: Hashes | None) -> tuple[Embedding, tuple[Gadget, ...]]:
        carried = 0 if hashes is None else hashes.carried
        dtype, used, s = self.stream.dtype, len(self.components), self.layer.width
        lift = np.zeros((self.stream.tokens.shape[2], used + carried), dtype)
        lift[self.components, np.arange(used)] = self.stream.unit[self.components]
        places = None if hashes is None else hashes.embedded_places
        positions = None if places is None else np.pad(places, ((0, 0), (used, 0))).astype(dtype)
        outputs = s if hashes is None else s + hashes.sink
        weight = np.zeros((self.count + carried, outputs), dtype)
        weight[: self.count, :s], weight[self.count :] = self.layer.weight, np.eye(carried, outputs)
        last = Linear(weight, np.pad(self.layer.bias, (0, outputs - s)))
        return Embedding(lift=lift, positions=positions), (self.quantiser.steps(carried), Affine(last))


def numbers_words(stream: TokenStream) -> bool:
    """Whether codes of all words would be many beside the answers."""
    return stream.vocabulary >= LARGE_VOCABULARY and stream.vocabulary * TOKENS_A_WORD > stream.count


def words(stream: TokenStream, rank: int, values: int, rng: np.random.Generator) -> Raw:
    """Codes of about ``values`` values in each channel."""
    V = stream.vocabulary
    if not numbers_words(stream):
        return CodedWords(rng.integers(0, values, (V, rank)), stream.ids, stream.dtype)
    base = int(np.ceil(np.sqrt(V)))
    high, low = (rng.integers(0, values // 2, (base, rank)) for _ in range(2))
    return NumberedWords(rng.permutation(V), base, high, low, stream.ids, stream.dtype)


def reals(
    sequences: Sequences,
    stream: RealStream,
    rank: int,
    span: float,
    attempt: int,
    rng: np.random.Generator,
    centred: float = 0.0,
    rejects: bool = False,
) -> Quantised:
    """Steps at quantiles, and a random code per step, scaled to a range of about ``span``; from 0 on, or around 0
    and times ``centred``. Few steps of two components do where nothing ``rejects`` unknown inputs."""
    N, n, d = stream.tokens.shape
    dtype, flat, valid = stream.dtype, stream.tokens.reshape(-1, d), sequences.valid()
    used, T = None if valid is None else np.flatnonzero(valid), sequences.token_count()
    components = _components(flat, used, attempt, rng)
    if len(components) < d:
        flat = np.ascontiguousarray(flat[:, components])
    few = len(components) == 2 and attempt == 0 and n > 1 and not rejects
    levels = _few_levels(sequences) if few else _levels(sequences, len(components), attempt)
    quantiser = quantise(flat, levels, dtype, used)
    if attempt or few:
        met = meeting(quantiser.marks(flat).reshape(N, n), valid, stream.positions)
        quantiser = told_apart(quantiser, flat, used if attempt else met)
    steps = _drawn_steps(quantiser, rank, rng)
    trial = quantiser.features(thin_tokens(flat, used, max(1, T >> 16)), _linear(steps, np.zeros(rank), dtype))
    steps, trial = _uncorrelate(steps, trial)
    centre = trial.mean(axis=0)
    spread = np.abs(trial - centre).max(axis=0)
    scale = np.where(spread > 0, 0.45 * span / np.where(spread > 0, spread, 1.0), 0.0)
    factor = centred or 1.0
    layer = _linear(factor * np.rint(steps * scale), -factor * np.rint(centre * scale), dtype)
    raw = quantiser.features(flat, layer)
    low, top = column_bounds(raw if valid is None else raw[valid.ravel()])
    if not centred:
        raw -= low
        layer, top = Linear(layer.weight, layer.bias - low), top - low
    return Quantised(quantiser, layer, raw.reshape(N, n, rank), top, components, stream)


def _drawn_steps(quantiser: Quantiser, rank: int, rng: np.random.Generator) -> Array:
    """What each step adds to a code. The many levels of one component have unrelated codes each: if their steps
    had, neighbours would have neighbouring codes, and share their cells."""
    steps = rng.standard_normal((quantiser.count, rank))
    for i, count in enumerate(np.bincount(quantiser.component)):
        if count > MANY_STEPS:
            steps[quantiser.component == i] = np.diff(rng.standard_normal((count + 1, rank)), axis=0)
    return steps


def _uncorrelate(steps: Array, trial: Array) -> tuple[Array, Array]:
    """Steps, and the codes that they give, mixed so that channels are uncorrelated: cells of two of them are then
    about equally full."""
    channels = trial.shape[1]
    if len(trial) < 4 * channels or np.linalg.matrix_rank(covariance := _covariance(trial)) < channels:
        return steps, trial
    mixed = np.linalg.inv(np.linalg.cholesky(covariance)).T
    return steps @ mixed, product(trial, mixed)


def _covariance(trial: Array) -> Array:
    centred, T = trial - trial.mean(axis=0), len(trial)
    step = max(1, UNTHREADED // trial.shape[1] ** 2)
    parts = (centred[a : a + step] for a in range(0, T, step))
    return np.asarray(sum(part.T @ part for part in parts) / (T - 1))


def _components(flat: Array, used: Array | None, attempt: int, rng: np.random.Generator) -> Array:
    """Of many components those in which two tokens differ most often, until all tokens should be told apart; later
    attempts look at twice as many each, and at last at all."""
    d, T = flat.shape[1], len(flat) if used is None else len(used)
    if d <= ALL_COMPONENTS:
        return np.arange(d)
    pairs = rng.integers(0, T, (2, PAIRS))
    a, b = flat[pairs if used is None else used[pairs]]
    equal = (a == b).mean(axis=0)
    bits = np.minimum(-np.log2(np.maximum(equal, 1.0 / PAIRS)), BITS_A_COMPONENT)
    order = rng.permutation(d)
    order = order[np.argsort(-bits[order], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(bits[order]), 2 * np.log2(T) + 8)) + 1
    return np.sort(order[: max(FEWEST_COMPONENTS, enough) << (2 * attempt)])


def _levels(sequences: Sequences, d: int, attempt: int) -> int:
    """Of each component. At first, as many as tell two tokens of one sequence apart, with room to spare: different
    sequences differ in their sums, unless they share all tokens but one. Later, as many as tell all tokens apart.
    """
    T, n = sequences.token_count(), sequences.n
    all_apart = max(4, int(np.ceil(T ** (2.0 / d))))
    if attempt == 0 and n > 1:
        return min(max(4, int(np.ceil((8.0 * sequences.N * n * n) ** (1.0 / d)))), all_apart, T)
    return min(all_apart << attempt, T)


def _few_levels(sequences: Sequences) -> int:
    """Of each of two components: as many as there are of three, to be followed by steps where tokens meet."""
    T, n = sequences.token_count(), sequences.n
    return min(max(4, LEVELS_OF_TWO // n, int(np.ceil((8.0 * sequences.N * n * n) ** (1 / 3)))), T)


def _half_steps(component: list[int], reached: list[int], dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Components, slopes and biases of steps that whole numbers reach, with half a step of room."""
    bias = (2.0 * np.array(reached, float) - 0.5).astype(dtype)
    return np.array(component, np.intp), np.full(len(bias), 2.0, dtype), bias


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
