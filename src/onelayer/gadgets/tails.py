"""What follows an emitted row in a readout of cells: steps, gates, sums; for constructions and for searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Cells whose entries add up to an answer in a retrieval readout.
TABLES = 3


def retrieval_tail(G: int, C: int, dtype: np.dtype[Any]) -> tuple[Layer, ...]:
    """From TABLES x G gated entries, one of each G open, to their sum modulo C."""
    total = np.ones((TABLES * G, 3), dtype)
    total[:, 1:] = -1.0
    return (
        Linear(total, np.array([0.0, C, 2.0 * C], dtype)),  # the sum, and how far it is below C and 2 C
        Linear(np.diag([1.0, -1.0, -1.0]).astype(dtype), np.array([0.0, 1.0, 1.0], dtype)),
        Linear(np.array([[1.0], [-C], [-C]], dtype), np.zeros(1, dtype)),
    )


def table_tail(G: int, signs: Array, wall: float, default: Array | None, dtype: np.dtype[Any]) -> tuple[Layer, ...]:
    """From G thresholds (2 G with a default: starts, then ends) and G x parts values to the one value let through.

    ``wall`` is above every part.
    Inputs are relu(threshold - slope z) and the parts; ``signs`` [parts, q] puts the parts together again.
    """
    parts = len(signs)
    K, L = G if default is None else 2 * G, G * parts
    sign, one = np.ones((K + L, 1, 1)), np.zeros(K + L)
    sign[:K], one[:K] = -1.0, 1.0  # relu(1 - u): 1 from the threshold on
    below, beyond = np.zeros((K + L, G)), np.zeros((K + L, G))
    below[:G] = -np.eye(G)
    if default is None:
        beyond[1:G, : G - 1] = np.eye(G - 1)  # a column ends where the next begins
    else:
        beyond[G:K] = np.eye(G)
    both = np.concatenate([below, beyond, np.eye(K + L, L, -K)], axis=1)
    spread = np.repeat(np.eye(G), parts, axis=1)
    gates = np.concatenate([-wall * spread, -wall * spread, np.eye(L)])
    steps = (
        Grouped(sign.astype(dtype), one.astype(dtype)),
        _linear(both, np.concatenate([np.ones(G), np.zeros(G + L)]), dtype),
    )
    if default is None:
        add = np.tile(signs, (G, 1))
        return (*steps, _linear(gates, np.zeros(L), dtype), _linear(add, np.zeros(add.shape[1]), dtype))
    hits = np.concatenate([-np.eye(G), -np.eye(G), np.zeros((L, G))])
    tail = np.zeros((L + G, parts + 1))
    tail[:L, :parts] = np.tile(np.eye(parts), (G, 1))
    tail[L:, parts] = -1.0
    return (
        *steps,
        _linear(np.concatenate([gates, hits], axis=1), np.concatenate([np.zeros(L), np.ones(G)]), dtype),
        _linear(tail, np.append(np.zeros(parts), 1.0), dtype),  # sums of the parts, and 1 if nothing was hit
        _linear(np.concatenate([signs, default[None]]), np.zeros(len(default)), dtype),
    )


def same(found: tuple[Layer, ...], expected: tuple[Layer, ...]) -> bool:
    """Equal to the last bit."""
    return len(found) == len(expected) and all(
        type(a) is type(b) and np.array_equal(a.weight, b.weight) and np.array_equal(a.bias, b.bias)
        for a, b in zip(found, expected, strict=True)
    )


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
