"""Sequences that are not stored, drawn from what is: they show how often a model takes one for a stored input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.blocks import blocks
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Of more tokens than this, this many are drawn to say where components lie.
SAMPLE = 1 << 12


#: Which kinds of unknown inputs are drawn, in words.
TOGETHER, NEW = "put together of stored tokens", "of new tokens"


def draw(
    stored: Sequences, count: int, ordered: bool, dtype: np.dtype[Any], rng: np.random.Generator
) -> dict[str, Sequences]:
    """At most ``count`` sequences of each kind, as long as stored ones, none of them stored. A kind without any is
    left out; so are new tokens in place of ids, since a model has no embedding for them."""
    lengths = None if stored.lengths is None else stored.lengths[rng.integers(0, stored.N, count)]
    drawn = {TOGETHER: _put_together(stored, count, ordered, rng)}
    if stored.is_real:
        drawn[NEW] = _new_tokens(stored, count, rng)
    known, found = np.sort(_digests(stored, ordered, dtype)), {}
    for kind, tokens in drawn.items():
        digests = _digests(Sequences(tokens, lengths), ordered, dtype)
        new = known.take(np.searchsorted(known, digests), mode="clip") != digests
        if new.any():
            found[kind] = Sequences(tokens[new], None if lengths is None else lengths[new], stored.vocabulary)
    return found


def _put_together(stored: Sequences, count: int, ordered: bool, rng: np.random.Generator) -> Array:
    """Each token is one of a stored sequence, both drawn at random; where order matters, the token at the same
    place, if that sequence is long enough."""
    i = rng.integers(0, stored.N, (count, stored.n))
    limit = np.full(i.shape, stored.n) if stored.lengths is None else stored.lengths[i]
    k = np.floor(rng.random(i.shape) * limit).astype(np.int64)
    if ordered:
        k = np.where(np.arange(stored.n) < limit, np.arange(stored.n), k)
    return np.asarray(stored.tokens[i, k])


def _new_tokens(stored: Sequences, count: int, rng: np.random.Generator) -> Array:
    """Every component is drawn for itself: in one of the gaps between the values that it has in the data, or
    beyond the first or the last of them, all as likely, since each is as likely to hold one value more."""
    values = np.sort(_some_tokens(stored, rng), axis=0)
    first, last = values[:1], values[-1:]
    step = (last - first) / len(values)
    values = np.concatenate([first - step, values, last + step])
    gap = rng.integers(0, len(values) - 1, (count, stored.n, stored.d))
    low, high = (np.take_along_axis(values, at.reshape(-1, stored.d), axis=0) for at in (gap, gap + 1))
    tokens = low + rng.random(low.shape) * (high - low)
    return np.asarray(tokens.reshape(gap.shape), stored.tokens.dtype)


def _some_tokens(stored: Sequences, rng: np.random.Generator) -> Array:
    """All stored tokens [T, d], or a sample of them."""
    valid = stored.valid()
    if stored.token_count() <= SAMPLE:
        flat = stored.tokens.reshape(-1, stored.d) if valid is None else stored.tokens[valid]
        return np.asarray(flat, np.float64)
    i = rng.integers(0, stored.N, SAMPLE)
    limit = stored.n if stored.lengths is None else stored.lengths[i]
    return np.asarray(stored.tokens[i, np.floor(rng.random(SAMPLE) * limit).astype(np.int64)], np.float64)


def _digests(sequences: Sequences, ordered: bool, dtype: np.dtype[Any]) -> Array:
    """64 bits per sequence: equal for equal sequences, as the model's dtype sees them, in any order of the tokens
    unless ``ordered``; of others almost never."""
    N, n = sequences.tokens.shape[:2]
    odd = np.random.default_rng(0).integers(0, 2**63, sequences.d, dtype=np.uint64) | np.uint64(1)
    place = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) if ordered else np.uint64(0)
    valid, out = sequences.valid(), np.empty(N, np.uint64)
    for rows in blocks(sequences.tokens):
        mixed = _spread(_bits(sequences.tokens[rows], odd, dtype) + place)
        out[rows] = (mixed if valid is None else np.where(valid[rows], mixed, 0)).sum(axis=1, dtype=np.uint64)
    return out


def _bits(tokens: Array, odd: Array, dtype: np.dtype[Any]) -> Array:
    """64 bits per token; integers wrap around."""
    if tokens.ndim == 2:
        return np.asarray(tokens.astype(np.uint64) * odd[0])
    seen = tokens.astype(dtype) + dtype.type(0.0)  # -0.0 is 0.0
    bits = seen.view(np.uint32 if dtype.itemsize == 4 else np.uint64)
    return np.asarray(bits.astype(np.uint64) @ odd)


def _spread(bits: Array) -> Array:
    """A mix after which sums of digests say which tokens were added, not only what their bits add up to."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
