"""A network as a sequence: one token for each of its tensors, so that networks can be read by networks.

A token has the kind of its tensor (one component for each kind), log2 of its axes, its size and log2 of it, log2 of
its largest and smallest weights other than 0, its place in its stack, and a 1. Sizes add up to the number of
parameters, so that one head of linear attention with key 1 and value `size` counts them exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.network import Transformer

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]

KINDS = (
    *(f"embedding.{name}" for name in ("lift", "table", "bias", "positions")),
    *(f"{stack}.{name}" for stack in ("feedforward", "readout") for name in ("weight", "bias")),
    *(f"attention.{name}" for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "ridge")),
)
AXES = 3
#: What the components of a token are, in order.
COMPONENTS = (
    *KINDS,
    *(f"log2 axis {i}" for i in range(AXES)),
    "size",
    "log2 size",
    "log2 largest weight",
    "log2 smallest weight",
    "place",
    "one",
)


def encode(model: Model | Transformer) -> Array:
    """[tensors, components] The tokens of a network, in the order of its tensors; `COMPONENTS` are the columns."""
    network = model if isinstance(model, Transformer) else model.transformer
    return np.stack([_token(name, tensor) for name, tensor in network.tensors()])


def _token(name: str, tensor: Array) -> Array:
    parts = name.split(".")
    if parts[0].isdigit():  # of a further layer
        parts = parts[1:]
    place = float(parts.pop(1)) if len(parts) == 3 else 0.0
    kind = ".".join(parts)
    if kind not in KINDS or tensor.ndim > AXES:
        found = f"{name} of shape {tensor.shape}"
        raise DataError("encode", f"tensors of the kinds {', '.join(KINDS)}", found, "Encode another network.")
    axes = np.zeros(AXES)
    axes[: tensor.ndim] = np.log2(np.maximum(tensor.shape, 1))
    sizes = np.abs(tensor[tensor != 0], dtype=np.float64)
    weights = (np.log2(sizes.max()), np.log2(sizes.min())) if len(sizes) else (0.0, 0.0)
    one_hot = np.array([float(kind == known) for known in KINDS])
    return np.array([*one_hot, *axes, tensor.size, np.log2(max(1, tensor.size)), *weights, place, 1.0])
