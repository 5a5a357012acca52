"""The statements in numbers: the published constants on three tokens, and hardmax against softmax."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from onelayer.contexts import hardmax
from onelayer.measure.price import compare
from onelayer.network import Attention
from onelayer.problems.tables import example, read_table

LAYERS = 2_000


def three_tokens() -> list[dict[str, Any]]:
    table = read_table(example("three_tokens"))
    comparison = compare(table.X, table.Y, table.lengths)
    return [{k: "" if v is None else v for k, v in asdict(column).items()} for column in comparison.columns]


def random_hardmax_layer(rng: np.random.Generator, d: int) -> Attention:
    """1 to 8 heads; whole-number weights, which make exact ties, in every third layer; biases in every second."""
    heads, s = int(rng.integers(1, 9)), int(rng.integers(1, 4))

    def weights(*shape: int) -> Any:
        whole = rng.integers(-1, 2, shape).astype(float)
        return whole if ties else rng.standard_normal(shape)

    ties, biased = rng.random() < 1 / 3, rng.random() < 1 / 2
    W_Q, W_K, W_V, W_O = weights(heads, d, s), weights(heads, d, s), weights(heads, d, s), weights(heads, s, d)
    b_Q, b_K = (weights(heads, s), weights(heads, s)) if biased else (None, None)
    return Attention(W_Q, W_K, W_V, W_O, b_Q, b_K, kind="hardmax")


def hardmax_fails() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    failed, worst = 0, 0.0
    for _ in range(LAYERS):
        d, n = int(rng.integers(1, 5)), int(rng.integers(4, 9))
        X, Y, _ = hardmax.witness(rng.standard_normal(d), n)
        agreement = hardmax.refutes(random_hardmax_layer(rng, d), X, Y)
        failed += agreement.coincide
        worst = max(worst, float(agreement.difference))
    X, Y, _ = hardmax.witness(np.ones(1))
    softmax = hardmax.softmax_separates(X, Y)
    return [
        {
            "random hardmax layers": LAYERS,
            "that fail on the witness pair": failed,
            "largest difference of ids": worst,
            "gap of a searched softmax head": float(softmax.gap),
            "its rounding": float(softmax.radius),
        }
    ]


def run() -> dict[str, list[dict[str, Any]]]:
    return {"Three tokens in the plane": three_tokens(), "Hardmax is not a contextual mapping": hardmax_fails()}
