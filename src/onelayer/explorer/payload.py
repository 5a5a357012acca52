"""What a page knows of a model: one JSON object and its arrays, in one compressed run of bytes.

The bytes are, after zlib: the length of the JSON as 8 bytes, the JSON, and the arrays one after another, each at a
multiple of 8. An array in the JSON is {"type", "shape", "start"}, with its start counted from the first array.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import visible
from onelayer.explorer.interfaces import describe_interface
from onelayer.explorer.samples import Samples
from onelayer.ledger import show
from onelayer.network.weights import Array, Transformer

if TYPE_CHECKING:
    from onelayer.model import Model

VERSION = 1
#: Names of units beyond this many are left out: they would outgrow the weights.
MOST_NAMES = 200_000
#: Entries of the ledger that a page draws.
DRAWN = ("radius_upper", "guard", "gap", "beta", "mapping", "readout", "construction")


@dataclass
class Arrays:
    """Arrays that are collected, and where each of them starts."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, array: Array) -> dict[str, Any]:
        content = np.ascontiguousarray(array).tobytes()
        entry = {"type": str(array.dtype), "shape": list(array.shape), "start": self.size}
        self.parts.append(content + bytes(-len(content) % 8))
        self.size += len(self.parts[-1])
        return entry


def pack(model: Model, samples: Samples, title: str, twin: tuple[dict[str, Any], Array] | None = None) -> bytes:
    """The model, its names and its samples, and what a race said of its twin."""
    arrays, network = Arrays(), model.transformer
    described = {
        "version": VERSION,
        "title": visible(title),
        "says": visible(model.describe()),
        "is": visible(model.interface.describe()),
        "dtype": str(network.dtype),
        "parameters": model.n_parameters,
        "layers": [_describe_layer(layer) for layer in network.layers],
        "tensors": {name: arrays.add(array) for name, array in network.tensors()},
        "units": _name_units(model),
        "gadgets": [part.covered.to_json() for stack in model.parts.values() for part in stack],
        "ledger": {line.name: _number(line.value) for line in model.ledger.lines if line.name in DRAWN},
        "constants": [[line.name, visible(show(line.value)), visible(line.meaning)] for line in model.ledger.lines],
        "certificate": _certificate(model),
        "samples": samples.to_json(arrays.add),
        "twin": None if twin is None else twin[0] | {"contexts": arrays.add(twin[1])},
        "lines": _lines_of_cells(model, arrays),
        **describe_interface(model),
    }
    return seal(json.dumps(described, ensure_ascii=False, separators=(",", ":"), allow_nan=False), arrays)


def seal(head: str, arrays: Arrays) -> bytes:
    content = head.encode()  # `visible` has left no half of a surrogate pair
    content += b" " * (-len(content) % 8)
    return zlib.compress(len(content).to_bytes(8, "little") + content + b"".join(arrays.parts), 9)


def _describe_layer(layer: Transformer) -> dict[str, Any]:
    a = layer.attention
    flags = {name: getattr(a, name) for name in ("kind", "causal", "context", "mean", "window")}
    return {**flags, "repeat": layer.repeat}


def _name_units(model: Model) -> dict[str, list[str]]:
    """What the units of every layer mean, by the value that they are."""
    if model.transformer.further:  # only the first of several layers has names
        return {}
    found, left = {}, MOST_NAMES
    for value in model.described():
        left -= len(value.units)
        if left >= 0:
            found[value.value] = [visible(name) for name in value.units]
    return found


def _lines_of_cells(model: Model, arrays: Arrays) -> list[dict[str, Any]]:
    """The coordinates that the readout cuts into cells: of which value, where each ramp starts, and its slope."""
    found = []
    for part in model.parts["readout"]:
        start = part.covered.start
        for name, line in part.gadget.lines_of_cells().items():
            if line.count > 1:
                slopes = line.weight[:-1, 0].astype(np.float64)
                ends = {"at": arrays.add(line.ends), "slope": arrays.add(slopes)}
                value = f"readout.{start - 1}" if start else "context"
                found.append({"name": name, "value": value, "depth": start, "coordinate": line.coordinate, **ends})
    return found


def _certificate(model: Model) -> dict[str, Any]:
    """What is proved, in words, and the radius in which no answer changes, if one is certified."""
    blocks: list[dict[str, Any]] = []
    for line in model.explain().splitlines():
        if line.startswith("  - ") and blocks:
            blocks[-1]["items"].append(visible(line[4:]))
        elif line:
            blocks.append({"text": visible(line), "items": []})
    claims = () if model.certificate is None else model.certificate.claims
    radii = [float.fromhex(claim["radius"]) for claim in claims if claim["type"] == "robust"]
    return {"claims": len(claims), "radius": max(radii, default=None), "words": blocks}


def _number(value: Any) -> Any:
    """As JSON knows it, which has no infinity."""
    return value if isinstance(value, str | int) or (isinstance(value, float) and np.isfinite(value)) else None
