"""The residual stream that attention reads: real tokens lifted, or token ids looked up, with room for contexts.

A `ChannelDraw` is one random choice of what each channel is read for: a key level and s values per token for
attention, and s codes per token that keep different tokens apart in the readout. Its arrays are float64 evaluations
with weights that are already rounded to the model's dtype, so they are what the model computes, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.units import units
from onelayer.errors import PrecisionError
from onelayer.network import Embedding
from onelayer.problems.blocks import blocks, mapped_like, product
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Codes of different real tokens are spread this many times wider than contexts, in turn: the projection of a
#: token is computed more accurately than a softmax average, so most of the separation is put there. The wider
#: one suits many different tokens, the narrower one tokens that are met in many contexts.
CODE_SPREADS = (256.0, 4096.0)
#: Bits of a temperature; W_Q = beta W_K is then exact.
BETA_BITS = 8


@dataclass(frozen=True)
class ChannelDraw:
    """Key levels [N, n], values and codes [N, n, s], and the columns [width] or [width, s] that read them."""

    embedding: Embedding
    dtype: np.dtype[Any]
    channels: tuple[str, ...]
    keys: Array
    values: Array
    codes: Array
    key_column: Array
    value_columns: Array
    code_columns: Array
    #: Rounding error of a key or value, and of a code, in units of the model's unit roundoff.
    key_error: float
    code_error: float

    @property
    def rank(self) -> int:
        return int(self.value_columns.shape[1])

    @property
    def spare(self) -> slice:
        """The zero channels that attention writes the contexts to."""
        return slice(len(self.channels) - self.rank, len(self.channels))


@dataclass(frozen=True)
class RealStream:
    """Real tokens, rounded to the dtype, in other units where a component comes near the ends of the format, and
    centred where it is far from zero."""

    tokens: Array  # [N, n, d], what the lift produces
    centre: Array  # [d] subtracted by the embedding's bias
    scale: Array  # [d] powers of two of the size of each centred component
    unit: Array  # [d] powers of two that the lift multiplies components with
    dtype: np.dtype[Any]
    positions: bool

    @cached_property
    def norm(self) -> float:
        """The largest norm of a token over scale, rounded up: bounds every projection by Cauchy and Schwarz."""
        inverse, largest = 1.0 / self.scale, 0.0
        for rows in blocks(self.tokens):  # without a copy of all tokens
            block = self.tokens[rows] * inverse
            largest = max(largest, float(np.einsum("ijk,ijk->ij", block, block).max()))
        return float(np.sqrt(largest) * (1 + 1e-6))

    @staticmethod
    def prepare(sequences: Sequences, dtype: np.dtype[Any], positions: bool) -> RealStream:
        assert sequences.low is not None
        assert sequences.high is not None
        low, high = sequences.low.astype(np.float64), sequences.high.astype(np.float64)
        unit = units(low, high, sequences, dtype)
        low, high = low * unit, high * unit
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        centre = np.where(np.abs(middle) > 4 * half, middle, 0.0).astype(dtype)
        given = tokens = sequences.tokens
        if centre.any() or given.dtype != dtype or (unit != 1).any():
            own = unit.astype(dtype)
            tokens = mapped_like(given, lambda rows: given[rows].astype(dtype, copy=False) * own - centre, dtype)
        size = np.maximum(np.abs(low - centre), np.abs(high - centre))
        scale = np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0))))
        return RealStream(tokens, centre.astype(np.float64), scale, unit, dtype, positions)

    @property
    def is_given(self) -> bool:
        """Whether these are the tokens that were given."""
        return not self.centre.any() and bool((self.unit == 1).all())

    def uncentred(self) -> RealStream:
        """The tokens as they are: a comparison of two numbers needs no centre."""
        if not self.centre.any():
            return self
        centred, centre = self.tokens, self.centre.astype(self.dtype)
        tokens = mapped_like(centred, lambda rows: centred[rows] + centre, self.dtype)
        return replace(self, tokens=tokens, centre=np.zeros_like(self.centre))

    def draw(
        self, rank: int, rng: np.random.Generator, attempt: int, coded: bool, key: Array | None = None
    ) -> ChannelDraw:
        """One random reading: rank values (the first is the key level, along ``key`` if given) and rank codes."""
        n, d = self.tokens.shape[1:]
        directions, read = self._read_directions(rank, rng, attempt, coded, key)
        values, codes = read[..., :rank], read[..., rank:]
        magnitude = self.norm * np.linalg.norm(directions * self.scale[:, None], axis=0)  # bounds sum |x||v|
        # Centring rounds nothing, which a checker does not know.
        magnitude += np.abs(self.centre) @ np.abs(directions)
        width = d + 2 * self.positions + rank
        columns = np.zeros((width, 2 * rank))
        columns[:d] = directions
        places = None
        if self.positions:
            level, places = _levels_of_places(n, self.dtype), np.zeros((n, width))
            spacing = _power_above(2 * magnitude[rank:].max() + 2 * (magnitude[:rank].max() + 2))
            places[:, d], places[:, d + 1] = level, np.arange(n)
            columns[d, :rank], columns[d + 1, rank:] = 1.0, spacing if coded else 0.0
            values = values + level[:, None]
            codes = codes + columns[d + 1, rank:] * np.arange(n)[:, None]
            magnitude += np.where(np.arange(2 * rank) < rank, 1.0, n * columns[d + 1])
        names = [f"x{i}" for i in range(d)] + ["level of place", "place"] * self.positions
        return ChannelDraw(
            self._embedding(width, places),
            self.dtype,
            (*names, *(f"context{i}" for i in range(rank))),
            np.ascontiguousarray(values[..., 0]),
            values,
            codes,
            columns[:, 0],
            columns[:, :rank],
            columns[:, rank:],
            key_error=float((d + 4) * magnitude[:rank].max()),
            code_error=float((d + rank + 4) * magnitude[rank:].max()),
        )

    def _read_directions(
        self, rank: int, rng: np.random.Generator, attempt: int, coded: bool, key: Array | None
    ) -> tuple[Array, Array]:
        """Random directions [d, 2 rank] and what they read off every token, [N, n, 2 rank]."""
        N, n, d = self.tokens.shape
        directions = rng.standard_normal((d, 2 * rank)) / self.scale[:, None]
        if key is not None:
            directions[:, 0] = key
        spread = CODE_SPREADS[attempt % len(CODE_SPREADS)] / (n if self.positions else 1)
        directions = short_column(directions, self.dtype)
        read = product(self.tokens.reshape(N * n, d), directions)
        # Scaling by powers of two is exact: readings of mean square near 1, codes spread wider.
        rms = np.sqrt(np.einsum("ij,ij->j", read, read) / len(read))
        factor = np.exp2(-np.round(np.log2(np.where(rms > 0, rms, 1.0))))
        factor[rank:] *= np.exp2(np.round(np.log2(spread))) if coded else 0.0
        return directions * factor, (read * factor).reshape(N, n, 2 * rank)

    def _embedding(self, width: int, places: Array | None) -> Embedding:
        """Components are copied, centred, and followed by zero channels."""
        d = self.tokens.shape[2]
        lift, bias = np.zeros((d, width), self.dtype), np.zeros(width, self.dtype)
        lift[:, :d], bias[:d] = np.diag(self.unit), -self.centre
        return Embedding(
            lift=lift,
            bias=bias if self.centre.any() else None,
            positions=None if places is None else places.astype(self.dtype),
        )


@dataclass(frozen=True)
class TokenStream:
    """Token ids; the library chooses the table, so levels are spread evenly and codes are whole numbers."""

    ids: Array  # [N, n]
    vocabulary: int
    dtype: np.dtype[Any]
    positions: bool
    count: int  # tokens, padding not counted

    #: Levels lie in [-2, 2] and positions add at most 1, so codes 8 apart never meet.
    SPACING = 8.0

    def draw(
        self,
        rank: int,
        rng: np.random.Generator,
        attempt: int,  # noqa: ARG002
        coded: bool,
        key: Array | None = None,
    ) -> ChannelDraw:
        """One random reading: rank levels per token, the first [V] of them given by ``key`` or random."""
        V, n = self.vocabulary, self.ids.shape[1]
        strata = np.stack([rng.permutation(V) for _ in range(rank)], axis=1)
        levels = (4.0 * (strata + 0.5 + 0.4 * rng.uniform(-1, 1, (V, rank))) / V - 2.0).astype(self.dtype)
        if key is not None:
            levels[:, 0] = key
        names = [f"level{i}" for i in range(rank)] + ["code"]
        width = len(names) + rank
        table = np.zeros((V, width), self.dtype)
        table[:, :rank] = levels
        table[:, rank] = self.SPACING * np.arange(V) if coded else 0.0
        columns = np.zeros((width, 2 * rank))
        columns[:rank, :rank] = np.eye(rank)
        columns[rank, rank:] = 1.0
        read = table.astype(np.float64)[:, [*range(rank), *[rank] * rank]]
        values, codes = read[self.ids, :rank], read[self.ids, rank:]
        places = None
        if self.positions:
            places = np.zeros((n, width), self.dtype)
            places[:, :rank] = _levels_of_places(n, self.dtype)[:, None]
            places[:, rank] = self.SPACING * V * np.arange(n) if coded else 0.0
            values = values + places[:, :rank].astype(np.float64)
            codes = codes + places[:, rank, None].astype(np.float64)
        top_code = float(np.abs(codes).max())
        self._refuse_codes(top_code)
        return ChannelDraw(
            Embedding(table=table, positions=places),
            self.dtype,
            (*names, *(f"context{i}" for i in range(rank))),
            np.ascontiguousarray(values[..., 0]),
            values,
            codes,
            columns[:, 0],
            columns[:, :rank],
            columns[:, rank:],
            key_error=3.0,  # an exact table entry plus an exact position: one rounding
            code_error=4.0 * top_code,
        )

    def _refuse_codes(self, top_code: float) -> None:
        if top_code >= 2.0 ** np.finfo(self.dtype).nmant:
            raise PrecisionError(
                "memorize",
                f"token codes that {self.dtype} holds exactly",
                f"{self.vocabulary} tokens (times places) need codes up to {top_code:.3g}",
                'Use dtype="float64".',
            )


Stream = RealStream | TokenStream


def open_stream(sequences: Sequences, dtype: np.dtype[Any], positions: bool) -> Stream:
    if sequences.vocabulary is None:
        return RealStream.prepare(sequences, dtype, positions)
    return TokenStream(sequences.tokens, len(sequences.vocabulary), dtype, positions, sequences.token_count())


def few_bits(beta: float) -> float:
    """A temperature of BETA_BITS significant bits, so that its product with a short column is exact."""
    mantissa, exponent = np.frexp(beta)
    return float(np.ldexp(np.ceil(mantissa * 2**BETA_BITS) / 2**BETA_BITS, exponent))


def short_column(columns: Array, dtype: np.dtype[Any]) -> Array:
    """Columns rounded to BETA_BITS bits less than the dtype holds."""
    mantissa, exponent = np.frexp(columns)
    bits = np.finfo(dtype).nmant + 1 - BETA_BITS
    shortened: Array = np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent)
    return shortened


def _levels_of_places(n: int, dtype: np.dtype[Any]) -> Array:
    """One level per place in (-1, 1), far from any regular pattern (multiples of the golden ratio)."""
    golden = (np.sqrt(5.0) - 1) / 2
    levels: Array = (2.0 * ((np.arange(n) + 1) * golden % 1.0) - 1.0).astype(dtype).astype(np.float64)
    return levels


def _power_above(x: float) -> float:
    return float(np.exp2(np.ceil(np.log2(x))))
