"""Honest bundles that claim something about a function, small and made once, and modules with a broken line."""

from __future__ import annotations

import tempfile
import types
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from attacks.bundle import Bundle, read
from onelayer import approximate
from onelayer_checker import functions as ring
from onelayer_checker.core.claims import KINDS, Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.samples import read_data
from onelayer_checker.functions import branch, hats, simplices
from onelayer_checker.functions import cells as functions
from onelayer_checker.search.stack import accelerate
from tests.checker import dense, mutants

MODULES = {"simplices": simplices, "hats": hats, "cells": functions}
SOURCES = {name: Path(module.__file__).read_text() for name, module in MODULES.items()}
FINEST = "BLOCK, MOST, FINEST = 1 << 14, 1 << 22, 1 << 8"
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


def broken(monkeypatch, module: types.ModuleType, old: str, new: str) -> types.ModuleType:
    """Let claims be judged by modules of which one has a line replaced; and look less closely, which is quicker."""
    part = module.__name__.split(".")[-1]
    sources = {**SOURCES, part: SOURCES[part].replace(old, new)}
    imported = "from onelayer_checker.functions import branch, hats"
    assert imported in sources["cells"]
    sources["cells"] = sources["cells"].replace(imported, "import mutant_hats as hats")
    assert FINEST in sources["simplices"]
    sources["simplices"] = sources["simplices"].replace(FINEST, FINEST[:-1] + "4")
    made = mutants.installed(monkeypatch, sources, old[:40])
    made.cells.branch = NO_SEARCH
    for name in ("judge", "judge_everywhere"):
        monkeypatch.setattr(ring, name, getattr(made.cells, name))
    kinds = {
        name: replace(kind, read_target=made.cells.read_target) for name, kind in KINDS.items() if kind.read_target
    }
    for name, kind in kinds.items():
        monkeypatch.setitem(KINDS, name, kind)
    mutant: types.ModuleType = getattr(made, part)
    return mutant


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
