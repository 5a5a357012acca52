"""Honest bundles that claim something about a function, small and made once."""

from __future__ import annotations

import tempfile
import types
from functools import cache
from pathlib import Path

import numpy as np

from attacks.bundle import Bundle, read
from onelayer import approximate
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.samples import read_data
from onelayer_checker.functions import branch
from onelayer_checker.search.stack import accelerate
from tests.checker import dense

#: Instead of branch and bound, which would look long at what is not hats.
NO_SEARCH = types.SimpleNamespace(judge=lambda *_: ("undecided", "not hats", np.inf), halves=branch.halves)
#: (target, d, tolerance, construction, dtype)
MODELS = {
    "cells": ("x - mean(y)", 1, 0.3, "quantise", "float32"),
    "ordered cells": ("reversal", 1, 0.3, "quantise", "float64"),
    "distinct cells": ("standardise", 1, 0.4, "published", "float32"),
    "hats": ("softmax", 1, 0.01, "positional", "float32"),
    "hats of two components": ("softmax", 2, 0.2, "positional", "float64"),
    "gates": ("reversal", 1, 0.2, "positional", "float32"),
}


@cache
def bundle(name: str) -> Bundle:
    target, d, tolerance, construction, dtype = MODELS[name]
    model = approximate(
        target, n=2, d=d, tolerance=tolerance, construction=construction, dtype=dtype, low=-0.5, high=0.7
    )
    with tempfile.TemporaryDirectory() as folder:
        return read(model.save(Path(folder) / "bundle"))


def judged(b: Bundle) -> list[str]:
    """The outcome of every claim; or "malformed"."""
    try:
        network = accelerate(build(b.model, b.certificate["graph"]["causal"]))
        judge = Judge(network, read_data(b.data, network), lambda *_: None)
        found = [Claim.read(entry, f"claims[{i}]") for i, entry in enumerate(b.certificate["claims"])]
        return [judge.judge(claim).outcome for claim in found]
    except Malformed:
        return ["malformed"]


def numbers(claim) -> dict[str, float]:
    return Claim.read(claim, "claim").numbers


def difference(b: Bundle, claim, dtype=None):
    """|network - target| of sequences [B, n, d], in the largest component; NaN where the network is."""
    if dtype is None:
        dtype = np.float32 if claim["arith"] == "float32" else np.float64

    def error(X):
        found = dense.evaluate(b.model, X, dtype).astype(np.float64)
        return np.abs(found - dense.target(claim["target"], X)).max(axis=(1, 2))

    return error, dtype
