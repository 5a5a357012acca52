"""Tensors as safetensors: numbers of 16 bits take two bytes each, and are float32 again when they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from onelayer.network.formats import Half

Array = NDArray[Any]
#: The library that reads the others knows no array of bfloat16.
CODES: dict[Half, str] = {"float16": "F16", "bfloat16": "BF16"}


def save_tensors(
    tensors: Mapping[str, Array], metadata: dict[str, str] | None = None, half: Half | None = None
) -> bytes:
    """The bytes of a file; with ``half``, of numbers that are all of that format, as such."""
    if half is None:
        return save({name: np.ascontiguousarray(a) for name, a in tensors.items()}, metadata)
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    parts, start = [], 0
    for name, array in sorted(tensors.items()):
        parts.append(_to_bits(np.ascontiguousarray(array, "<f4"), half).tobytes())
        stop = start + len(parts[-1])
        header[name] = {"dtype": CODES[half], "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def load_tensors(content: bytes) -> dict[str, Array]:
    """The tensors of a file; those of 16 bits as float32."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    if not any(entry["dtype"] in CODES.values() for entry in header.values()):
        return dict(load(content))
    body, found = memoryview(content)[8 + size :], {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        found[name] = _from_bits(np.frombuffer(body[start:stop], "<u2"), entry["dtype"]).reshape(entry["shape"])
    return found


def _to_bits(values: Array, half: Half) -> Array:
    if half == "float16":
        return values.astype("<f2").view("<u2")
    return (values.view("<u4") >> 16).astype("<u2")  # the upper half of a float32


def _from_bits(bits: Array, code: str) -> Array:
    if code == "F16":
        return bits.view("<f2").astype(np.float32)
    return (bits.astype("<u4") << 16).view("<f4").astype(np.float32, copy=False)
