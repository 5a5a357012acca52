"""Folders that are meant to harm whoever reads them: to hang, to eat memory, or to write on the screen.

Each says how the checker must end: with which last line, and at which gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attacks.bundle import Bundle

Build = Callable[[Path], object]
Tensors = dict[str, np.ndarray]
ZERO = "0x0.0p+0"


@dataclass(frozen=True)
class Hostile:
    name: str
    why: str
    result: str
    gate: str
    build: Build  # writes the folder


def hostile_folders() -> Iterator[Hostile]:
    yield from _pairs()


def plain(tokens: np.ndarray, claims: list[dict[str, Any]], **changes: Any) -> Bundle:
    """A network that hands every token through, of all arithmetics and claims the smallest: its answer is 0."""
    ids = tokens.dtype == np.int64
    d = 1 if ids else tokens.shape[2]
    dtype = np.float32
    model: Tensors = {
        **({"embedding.table": np.zeros((2, d), dtype)} if ids else {}),
        **{f"attention.W_{name}": np.zeros((1, d, 1), dtype) for name in "QKV"},
        "attention.W_O": np.zeros((1, 1, d), dtype),
        "readout.0.weight": np.eye(d, dtype=dtype),
        "readout.0.bias": np.zeros(d, dtype),
        "readout.1.weight": np.zeros((d, 1), dtype),
        "readout.1.bias": np.zeros(1, dtype),
    }
    samples = tokens.shape[0] * tokens.shape[1]
    data = {"tokens": tokens, "answers": np.zeros((1, 1)), "which": np.zeros(samples, np.int64)}
    certificate = {
        "format": "onelayer-certificate/1",
        "graph": {"template": "one-layer/1", "attention": "softmax", "causal": False},
        "profile": "ieee-any-order/1",
        "files": {},
        "claims": claims,
        "producer": {"name": "attacks", "version": "0"},
    }
    return Bundle(certificate, model | changes.get("model", {}), data | changes.get("data", {}), {})


def claim(kind: str = "memorizes", scope: str = "token", arith: str = "real", **numbers: float) -> dict[str, Any]:
    fields = {name: float(value).hex() for name, value in numbers.items()}
    return {"type": kind, "arith": arith, "scope": scope, **fields}


def _pairs() -> Iterator[Hostile]:
    """`separated` looks at pairs of samples; these have all of their pairs near in the first coordinate."""
    apart = claim("separated", r=1e6, delta=2.0**-20)
    N = 50_000
    equal_first = np.stack([np.ones(N), np.arange(N)], axis=1)[:, None]
    yield Hostile(
        "quadratic separated",
        "0.8 MB of samples have a billion pairs that only their second coordinate tells apart",
        "UNKNOWN",
        "",
        plain(equal_first, [apart]).write,
    )
