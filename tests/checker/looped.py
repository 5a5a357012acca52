"""Looped networks and algorithms for the tests of the checker: written here by hand, without the library."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from safetensors.numpy import save

from onelayer_checker import Report, check
from onelayer_checker.core.files import CERTIFICATE, DATA, MODEL, NAMES

ETA = 0.25
LAYER = {"attention": "linear", "causal": False, "context": 3, "mean": True, "window": None, "repeat": 3}
#: Reads s0 s1 x0 x1 and gives <s, x> at line 6.
INNER = ["s 0", "s 1", "x 0", "x 1", "mul 0 2", "mul 1 3", "add 4 5"]


def program(lines: list[str], *outputs: int) -> dict[str, Any]:
    return {"lines": lines, "outputs": list(outputs)}


def descent(**changes: Any) -> dict[str, Any]:
    """Three steps of gradient descent in two variables, on tokens [x0, x1, y - <s, x>, flag]."""
    start = {
        "x": 2,
        "y": 1,
        "m": 2,
        "steps": 3,
        "start": [(0.0).hex()] * 2,
        "gather": "mean",
        "ridge": [],
        "logit": None,
        "term": program([*INNER, "y 0", "sub 7 6", "mul 8 2", "mul 8 3"], 9, 10),
        "step": program(
            ["s 0", "s 1", "m 0", "m 1", f"const {ETA.hex()}", "mul 2 4", "mul 3 4", "add 0 5", "add 1 6"], 7, 8
        ),
        "answer": program(INNER, 6),
        "example": program([*INNER, "y 0", "sub 7 6", f"const {(1.0).hex()}"], 2, 3, 8, 9),
        "query": program([*INNER, "neg 6", f"const {(0.0).hex()}"], 2, 3, 7, 8),
    }
    return start | changes


def weights(eta: float = ETA) -> dict[str, np.ndarray]:
    x = np.eye(4)[:, :2]
    r = np.eye(4)[:, 2:3]
    return {
        "attention.W_Q": x[None].copy(),
        "attention.W_K": x[None].copy(),
        "attention.W_V": -eta * r[None],
        "attention.W_O": r.T[None].copy(),
        "readout.0.weight": -r,
        "readout.0.bias": np.zeros(1),
    }


def folder(
    tensors: dict[str, np.ndarray],
    algorithm: Any,
    layers: Any = (LAYER,),
    claim: dict[str, Any] | None = None,
    **top: Any,
) -> dict[str, bytes]:
    names = {"format": "onelayer-names/1", "scope": "token", "causal": layers[0]["causal"], "positions": False}
    names |= {"tokens": None, "pieces": None, "answers": None}
    content = {MODEL: save(tensors), DATA: save(top.pop("data", {})), NAMES: json.dumps(names).encode()}
    entry = claim or {"type": "equals", "arith": "real", "scope": "token", "target": algorithm}
    certificate = {
        "format": "onelayer-certificate/2",
        "graph": {"template": "looped/1", "layers": list(layers)},
        "profile": "ieee-any-order/1",
        "files": {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in content.items()},
        "claims": [entry],
        "producer": {"name": "test", "version": "0"},
    } | top
    return content | {CERTIFICATE: json.dumps(certificate).encode()}


def judged(tensors: dict[str, np.ndarray], algorithm: Any, layers: Any = (LAYER,), **options: Any) -> Report:
    return check(folder(tensors, algorithm, layers), **options)


def outcome(report: Report) -> tuple[str, str]:
    """What is said of the first claim, and why; of a folder that is refused, which rule did."""
    if not report.claims:
        return report.result, report.why
    return report.claims[0].verdict.outcome, report.claims[0].verdict.why
