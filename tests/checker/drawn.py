"""Numbers that tests by hand draw, and the weights of small networks; a seed says which."""

from __future__ import annotations

from typing import Any

import numpy as np


def numbers(seed: int, *shape: int) -> Any:
    """Of many sizes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 2.0 ** rng.integers(-6, 6, shape)


def small(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape) / 4


def tensors(lifted: bool, deep: bool, biased: bool) -> dict[str, Any]:
    """Two heads for tokens of two components: with a lift and places, layers before attention, biases of heads."""
    H, w, s, d = 2, 4 if lifted else 2, 3, 2
    T = {f"attention.W_{name}": small(100 + i, H, w, s) for i, name in enumerate("QKV")}
    T |= {"attention.W_O": small(104, H, s, w)}
    if biased:
        T |= {f"attention.b_{name}": small(105 + i, H, s) for i, name in enumerate("QK")}
    if lifted:
        T |= {"embedding.lift": small(110, d, w), "embedding.positions": small(112, 3, w)}
    if deep:
        T |= {"feedforward.0.weight": small(120, w, 5), "feedforward.0.bias": small(121, 5)}
        T |= {"feedforward.1.weight": small(122, 5, w), "feedforward.1.bias": small(123, w)}
    T |= {"readout.0.weight": small(130, w, 6), "readout.0.bias": small(131, 6)}
    return T | {"readout.1.weight": small(132, 6, 2), "readout.1.bias": small(133, 2)}
