"""Contexts that attention has merged: what no feed-forward part after it can tell apart.

Two places are different contexts if their tokens differ, or the multisets around them do (with positions: if their
places or their sequences do). Representations are sorted along their widest directions and compared with their
neighbours there only, so that 100,000 tokens take seconds where few are closer than the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, OptionError
from onelayer.model import Model
from onelayer.network.blocks import evaluate
from onelayer.network.weights import Transformer
from onelayer.problems.consistency import Place
from onelayer.problems.sequences import Sequences, read_sequences

Array = NDArray[Any]
#: Merges returned unless asked otherwise, the nearest.
LIMIT = 1000


@dataclass(frozen=True)
class Merge:
    """Two different contexts, and how far apart attention left them."""

    a: Place
    b: Place
    distance: float  # Euclidean; 0 means equal bit for bit

    def __str__(self) -> str:
        return f"{self.a} and {self.b}, {f'{self.distance:.2g} apart' if self.distance else 'bit-equal'}"


def collapse(
    model_or_outputs: Any,
    X: Any,
    lengths: Any = None,
    *,
    margin: float = 0.0,
    positions: bool | None = None,
    last: bool = False,
    limit: int = LIMIT,
) -> list[Merge]:
    """Pairs of different contexts that are at most ``margin`` apart after attention, the nearest first.

    model_or_outputs  a Model, a trained or exported torch model, or attention outputs [N, n, w]
    X, lengths        the sequences, as for `memorize`
    margin            Euclidean distance; 0 asks for bit-equal contexts only
    positions         whether the order of tokens counts; by default as the model says, else not
    last              look at the last token of each sequence only, as models that answer once per sequence do
    limit             at most this many pairs

    Of a group of k bit-equal contexts, the first is paired with each of the k - 1 others.
    """
    if not (margin >= 0 and limit >= 1):
        found = f"margin={margin}, limit={limit}"
        raise OptionError("lab", "a margin of at least 0 and a limit of at least 1", found, "Give such.")
    sequences = model_or_outputs.read(X, lengths) if isinstance(model_or_outputs, Model) else None
    sequences = read_sequences(X, lengths) if sequences is None else sequences
    outputs, has_positions = _outputs(model_or_outputs, sequences)
    keys = context_keys(sequences, has_positions if positions is None else positions)
    valid = sequences.valid()
    places = np.argwhere(np.ones(keys.shape, bool) if valid is None else valid)
    if last:
        ends = np.full(sequences.N, sequences.n) if sequences.lengths is None else sequences.lengths
        places = np.stack([np.arange(sequences.N), ends - 1], axis=1)
    _, first = np.unique(keys[places[:, 0], places[:, 1]], return_index=True)  # one place speaks for its context
    places = places[np.sort(first)]
    rows = outputs[places[:, 0], places[:, 1]] + 0.0  # -0.0 is 0.0
    return [
        Merge(Place(*places[a].tolist()), Place(*places[b].tolist()), float(distance))
        for a, b, distance in nearest_pairs(rows, margin, limit)
    ]


def _outputs(given: Any, sequences: Sequences) -> tuple[Array, bool]:
    """Attention outputs [N, n, w], and whether the model adds positions."""
    tokens, lengths = sequences.tokens, sequences.lengths
    if isinstance(given, Model):
        t = given.transformer
        bare = Transformer(t.attention, t.embedding, t.feedforward, (), t.channels)
        return evaluate(bare, tokens, lengths), t.embedding is not None and t.embedding.positions is not None
    if isinstance(given, np.ndarray):
        if given.ndim != 3 or given.shape[:2] != tokens.shape[:2]:
            needs = f"outputs of shape ({sequences.N}, {sequences.n}, width)"
            raise DataError("lab", needs, f"they have shape {given.shape}", "Give one row per token.")
        return given, False
    from onelayer.lab.trained import contexts, has_positions

    return contexts(given, tokens, lengths), has_positions(given)


def context_keys(sequences: Sequences, positions: bool) -> Array:
    """[N, n] whole numbers, equal exactly where the contexts are; entries at padding mean nothing."""
    N, n = sequences.N, sequences.n
    tokens = sequences.tokens.reshape(N * n, -1)
    if sequences.is_real:
        tokens = np.unique(tokens + 0.0, axis=0, return_inverse=True)[1].reshape(-1, 1)
    ids = tokens.reshape(N, n).astype(np.int64)
    valid = sequences.valid()
    company = ids if valid is None else np.where(valid, ids, -1)
    if not positions:
        company = np.sort(company, axis=1)
    group = np.unique(company, axis=0, return_inverse=True)[1].reshape(N, 1)
    own = np.broadcast_to(np.arange(n), (N, n)) if positions else ids
    return np.asarray(group * (int(own.max()) + 1) + own)


def nearest_pairs(rows: Array, margin: float, limit: int = LIMIT) -> list[tuple[int, int, float]]:
    """Pairs of rows at most ``margin`` apart, the nearest first; equal rows are paired with the first of them."""
    unique, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    pairs = [(int(first[g]), i, 0.0) for i, g in enumerate(group.tolist()) if first[g] != i]
    if margin > 0 and len(pairs) < limit and len(unique) > 1:
        a, b, distances = _sweep(unique.astype(np.float64), float(margin), limit - len(pairs))
        ends = np.sort(np.stack([first[a], first[b]], axis=1), axis=1)
        pairs += [(i, k, distance) for (i, k), distance in zip(ends.tolist(), distances.tolist(), strict=True)]
    return sorted(pairs, key=lambda pair: (pair[2], pair[0], pair[1]))[:limit]


def _sweep(points: Array, margin: float, limit: int) -> tuple[Array, Array, Array]:
    """Sort along the widest direction; compare each point with the 1st, 2nd, ... next as long as one is near.

    When more pairs than ``limit`` are found, the margin shrinks to the distance of the last that counts.
    """
    centred = points - points.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    along = centred @ directions[:, ::-1][:, :3]  # lengths along unit vectors are at most the distance
    order = np.argsort(along[:, 0], kind="stable")
    points, along = points[order], along[order]
    slack = 1e-12 * (float(np.abs(along).max()) + margin)  # of rounding in the projections
    found, kept = np.empty((0, 2), np.int64), np.empty(0)
    left = np.arange(len(points) - 1)
    for step in range(1, len(points)):
        left = left[left + step < len(points)]
        left = left[along[left + step, 0] - along[left, 0] <= margin + slack]  # farther ones stay farther
        if not left.size:
            break
        near = left[(np.abs(along[left + step, 1:] - along[left, 1:]) <= margin + slack).all(axis=1)]
        distances = np.linalg.norm(points[near + step] - points[near], axis=1)
        close = distances <= margin
        found = np.concatenate([found, np.stack([near[close], near[close] + step], axis=1)])
        kept = np.concatenate([kept, distances[close]])
        if len(kept) > 2 * limit:
            best = np.argsort(kept, kind="stable")[:limit]
            found, kept = found[best], kept[best]
            margin = min(margin, float(kept[-1]))
    best = np.argsort(kept, kind="stable")[:limit]
    return order[found[best, 0]], order[found[best, 1]], kept[best]
