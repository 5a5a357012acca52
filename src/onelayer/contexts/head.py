"""One softmax head over a drawn stream: its weights, the coordinates of every token, and their rounding error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.stream import ChannelDraw, few_bits
from onelayer.gadgets.gadget import Gadget
from onelayer.ledger import Constant
from onelayer.network import Attention, Embedding, Linear
from onelayer.network.blocks import ATTENTION_BYTES, Rows, over_threads, sequence_blocks
from onelayer.network.heads import attend, visible_keys
from onelayer.problems.blocks import column_bounds
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: exp may be off by this many units of roundoff; subtracting the maximum and scaling add three roundings.
EXP_ERROR, ARGUMENT_ROUNDINGS = 64, 3


@dataclass(frozen=True)
class ContextMap:
    """Everything before the answers: layers up to a bottleneck of s coordinates t >= 0, and t on the data."""

    embedding: Embedding | None
    feedforward: tuple[Gadget, ...]
    attention: Attention
    bottleneck: Linear  # [width, s]; followed by ReLU, which the offset makes harmless
    channels: tuple[str, ...]
    coordinates: Array  # [T, s] one row per valid token in order, or one per sequence
    radius: float  # how far a coordinate as computed in the model's dtype may be from `coordinates`
    exact_radius: float  # how far `coordinates` may be from the real numbers they stand for
    constants: tuple[Constant, ...]

    @cached_property
    def span(self) -> float:
        """The widest range of a coordinate."""
        low, high = column_bounds(self.coordinates)
        return float((high - low).max())


def build_head(
    draw: ChannelDraw, sequences: Sequences, beta: float, shared: bool, per_sequence: bool
) -> ContextMap:
    """Logits beta y_j y_k, or beta y_j with a shared query; contexts are the averages of the drawn values."""
    dtype, beta = draw.dtype, few_bits(beta)
    contexts = softmax_contexts(draw.keys, draw.values, sequences.lengths, beta, shared)  # [N, n or 1, s]
    if per_sequence:
        coordinates = contexts[:, 0, :]
    else:
        coordinates = draw.codes + contexts
        valid = sequences.valid()
        coordinates = coordinates.reshape(-1, draw.rank) if valid is None else coordinates[valid]
    offset = -coordinates.min(axis=0)
    offset = (offset + 2.0**-10 * np.maximum(1.0, np.abs(offset))).astype(dtype).astype(np.float64)
    coordinates = coordinates + offset
    width, s = len(draw.channels), draw.rank
    weight = np.zeros((width, s))
    weight[draw.spare] = np.eye(s)
    if not per_sequence:
        weight += draw.code_columns
    attention = _attention(draw, beta, shared, dtype)
    key_max = float(np.abs(draw.keys).max())
    value_max = float(np.abs(draw.values).max())
    top = float(coordinates.max()) + float(np.abs(offset).max()) + value_max
    terms = int(np.count_nonzero(weight, axis=0).max())  # additions of the bottleneck's sum, in any order
    errors = (draw.key_error, 0.0 if per_sequence else draw.code_error, (s + 3) * top + (terms + 3) * value_max)
    radius, exact_radius = (
        coordinate_radius_upper(unit, sequences.n, errors, key_max, value_max, beta, shared)
        for unit in (float(np.finfo(dtype).eps) / 2, 2.0**-53)  # the model's evaluation, and ours
    )
    return ContextMap(
        draw.embedding,
        (),
        attention,
        Linear(weight.astype(dtype), offset.astype(dtype)),
        draw.channels,
        coordinates,
        radius + exact_radius,
        exact_radius,
        (
            Constant("beta", beta, "inverse temperature: logits beta y_j" + ("" if shared else " y_k")),
            Constant("direction", tuple(draw.key_column.tolist()), "column of W_K: y = h . direction"),
            Constant("largest_logit", beta * key_max * (1.0 if shared else key_max), "bound on |logit|, data"),
        ),
    )


def softmax_contexts(keys: Array, values: Array, lengths: Array | None, beta: float, shared: bool) -> Array:
    """Softmax averages in float64, [N, n, s], or [N, 1, s] when all tokens share one query."""
    N, n = keys.shape
    out = np.zeros((N, 1 if shared else n, values.shape[2]))

    def run(rows: Rows) -> None:
        longest = n if lengths is None else int(lengths[rows].max())
        k, v = keys[rows, :longest, None], values[rows, :longest]
        q = np.full((len(k), 1, 1), beta) if shared else beta * k
        visible = visible_keys(longest, None if lengths is None else lengths[rows], causal=False)
        step = max(1, ATTENTION_BYTES // (8 * len(k) * longest))  # queries at a time
        for start in range(0, q.shape[1], step):
            some = slice(start, min(start + step, q.shape[1]))
            out[rows, some] = attend(q[:, some], k, v, visible, "softmax")

    over_threads(run, list(sequence_blocks(keys, lengths, 8)))
    return out


def coordinate_radius_upper(
    unit: float,
    n: int,
    errors: tuple[float, float, float],
    key_max: float,
    value_max: float,
    beta: float,
    shared: bool,
) -> float:
    """A-priori bound on the rounding error of a coordinate, in any order of summation, with or without FMA.

    ``errors`` are those of a key or value, of a code, and of the final sum, in units of roundoff.
    """
    key = errors[0] * unit
    logit_max = beta * key_max * (1.0 if shared else key_max)
    logit = beta * key * (1.0 if shared else 2.0 * key_max + key) + 3.0 * unit * logit_max
    # Perturbation of one exponent, then of the normalised weights (numerator and denominator).
    log_weight = logit + 4 * ARGUMENT_ROUNDINGS * unit * (logit_max + logit) + (EXP_ERROR + 16) * unit
    # e^(2L) - 1 <= 2L + L^2 + (2L + L^2)^2 while the bound is below 1; beyond, it exceeds every average anyway.
    relative = 2 * log_weight + log_weight * log_weight + (2 * n + 16) * unit
    relative += relative * relative
    average = relative * value_max + key * (1 + relative) + (n + 8) * unit * value_max
    return 1.01 * (average + (errors[1] + errors[2]) * unit)


def _attention(draw: ChannelDraw, beta: float, shared: bool, dtype: np.dtype[Any]) -> Attention:
    width, s = len(draw.channels), draw.rank
    W_Q, W_K, W_V, W_O = (np.zeros(shape) for shape in ((width, s), (width, s), (width, s), (s, width)))
    W_K[:, 0] = draw.key_column
    W_Q[:, 0] = 0.0 if shared else beta * draw.key_column
    W_V[:] = draw.value_columns
    W_O[:, draw.spare] = np.eye(s)
    b_Q = None
    if shared:
        b_Q = np.zeros((1, s), dtype)
        b_Q[0, 0] = beta
    W_Q, W_K, W_V, W_O = (W.astype(dtype)[None] for W in (W_Q, W_K, W_V, W_O))
    return Attention(W_Q, W_K, W_V, W_O, b_Q=b_Q)
