"""Scores for what a tool finds, each between 0 and 1, against the mechanism."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onelayer.ground_truth.mechanism import Edge
from onelayer.ground_truth.suite import Case
from onelayer.network.weights import Array


def match_directions(found: Array, case: Case) -> float:
    """How well directions [k, width] that a tool found are the channels: the mean over channels of the largest
    |correlation| between a channel and the stream along one of them, each direction used once (greedily, the best
    pair first). Channels that are constant on the data do not count."""
    return match_values(case.stream() @ np.asarray(found, np.float64).T, case)


def match_values(values: Array, case: Case) -> float:
    """The same of values [tokens, k] that a tool computes, such as the latents of an autoencoder."""
    features = case.features()
    moving = features.std(0) > 1e-9 * (1 + np.abs(features).max(0))
    table = _correlations(features[:, moving], values)
    total, pairs = 0.0, min(table.shape)
    for _ in range(pairs):
        i, j = np.unravel_index(int(np.argmax(table)), table.shape)
        total += float(table[i, j])
        table[i, :] = table[:, j] = -1
    return total / int(moving.sum())


def probe_scores(probe: Array, case: Case, channel: str) -> tuple[float, float]:
    """Of a probe [width] for a channel: |correlation| of what it reads with the channel, and |cosine| with the true
    reader (a probe may read well on the data along another direction)."""
    c = case.mechanism.channels.index(channel)
    reads = case.stream() @ probe
    reader = case.mechanism.readers[:, c]
    cosine = abs(probe @ reader) / (np.linalg.norm(probe) * np.linalg.norm(reader) + 1e-300)
    return float(_correlations(case.features()[:, [c]], reads[:, None])[0, 0]), float(cosine)


def edge_score(scores: Mapping[Edge, float], case: Case) -> float:
    """The area under the ROC curve: how often a true edge has a larger score than a false one; 0.5 is
    chance. Edges are (channel, part) and (part, channel); one that was not scored has 0."""
    every = [(c, p) for c in case.mechanism.channels for p in case.mechanism.parts if not p.endswith("output")]
    every += [(p, c) for c in case.mechanism.channels for p in case.mechanism.parts if p.endswith("output")]
    truth = np.array([edge in case.mechanism.edges for edge in every])
    given = np.array([scores.get(edge, 0.0) for edge in every])
    true, false = given[truth], given[~truth]
    if not len(false):
        return float("nan")  # every edge is a true one
    above = (true[:, None] > false).mean() + (true[:, None] == false).mean() / 2
    return float(above)


def _correlations(a: Array, b: Array) -> Array:
    """|correlation| of every column of a with every column of b; 0 with a constant."""
    a, b = a - a.mean(0), b - b.mean(0)
    spread = np.sqrt((a**2).sum(0))[:, None] * np.sqrt((b**2).sum(0))
    return np.asarray(np.abs(a.T @ b) / np.where(spread > 0, spread, 1) * (spread > 1e-300))
