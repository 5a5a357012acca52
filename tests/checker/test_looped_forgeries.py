"""Looped networks that are nearly what a claim says of them: each of these claims is false, and was once proved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import onelayer
from onelayer.export import bundle
from onelayer_checker import Report, check
from onelayer_checker.core.files import CERTIFICATE, MODEL
from tests.checker.looped import LAYER, folder, outcome, program

ZERO, ONE = f"const {(0.0).hex()}", f"const {(1.0).hex()}"
ITSELF = {"attention": "linear", "causal": False, "context": None, "mean": False, "window": 1, "repeat": 1}


def with_tensors(model: onelayer.Model, tensors: dict[str, np.ndarray]) -> dict[str, bytes]:
    """The folder of a model with other weights, whose certificate is the same but for their hash."""
    files, content = bundle.files(model), save(tensors)
    certificate = json.loads(files[CERTIFICATE])
    certificate["files"][MODEL] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return files | {MODEL: content, CERTIFICATE: json.dumps(certificate).encode()}


def tensors_of(model: onelayer.Model) -> dict[str, np.ndarray]:
    return {name: a.copy() for name, a in model.transformer.tensors()}


def test_examples_that_become_judges_in_the_only_loop_are_seen() -> None:
    """Of one loop queries were followed, and judges; a head that flags examples as judges wrote to neither."""
    model = onelayer.learner("selection", d=2, steps=1, penalties=(0.001, 10.0), delta=2.0**-20)
    assert model.proved
    tensors = tensors_of(model)
    one, flag, judge = 7, 8, 9
    for name, row, column in (("Q", flag, 0), ("K", one, 0), ("V", one, 0), ("O", 0, judge)):
        more = np.zeros_like(tensors[f"attention.W_{name}"])
        more[0, row, column] = 1.0
        tensors[f"attention.W_{name}"] = np.concatenate([tensors[f"attention.W_{name}"], more])
    forged = replace(model, transformer=model.transformer.with_tensors(tensors))
    rng = np.random.default_rng(0)
    X, y, queries = rng.uniform(-1, 1, (50, 8, 2)), rng.uniform(-1, 1, (50, 8)), rng.uniform(-1, 1, (50, 3, 2))
    assert np.abs(forged.predict(X, y, queries) - model.predict(X, y, queries)).max() > 0.01
    report = check(with_tensors(model, tensors))
    assert report.result == "NOT VERIFIED"
    assert all(judged.verdict.outcome == "refuted" for judged in report.claims)


def products_of_sums(gather: str = "mean") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Tokens [x, y, A, B, C, 1, flag]: A gathers y and B gathers X x, and a second layer writes A B to C."""
    unit = np.eye(7)

    def stacked(prefix: str, *heads: tuple[int, int, int, int]) -> dict[str, np.ndarray]:
        parts = [[unit[:, [q]], unit[:, [k]], unit[:, [v]], unit[[o]]] for q, k, v, o in heads]
        return {f"{prefix}attention.W_{name}": np.stack([p[i] for p in parts]) for i, name in enumerate("QKVO")}

    tensors = stacked("", (5, 5, 1, 2), (0, 5, 0, 3)) | stacked("1.", (2, 3, 5, 4))
    tensors |= {"1.readout.0.weight": unit[:, [4]], "1.readout.0.bias": np.zeros(1)}
    algorithm = {
        "x": 1,
        "y": 1,
        "m": 2,
        "steps": 1,
        "start": [(0.0).hex()] * 2,
        "gather": gather,
        "ridge": [],
        "logit": None,
        "term": program(["y 0", "x 0"], 0, 1),
        "step": program(["s 0", "s 1", "m 0", "m 1", "add 0 2", "add 1 3"], 4, 5),
        "answer": program(["s 0", "s 1", "x 0", "mul 0 1", "mul 3 2"], 4),
        "example": program(["x 0", "y 0", "s 0", "s 1", "mul 3 0", ZERO, ONE], 0, 1, 2, 4, 5, 6, 6),
        "query": program(["x 0", ZERO, "s 0", "s 1", "mul 3 0", ONE], 0, 1, 2, 4, 1, 5, 1),
    }
    return tensors, algorithm


def minimised(tensors: dict[str, np.ndarray], algorithm: dict[str, Any], layers: list[dict[str, Any]]) -> Report:
    numbers = {"examples": 4, "half": 1, "weight": 1, "noise": 0, "value": 9, "gap": 9}
    claim = {"type": "minimises", "arith": "real", "scope": "token", "target": algorithm}
    return check(folder(tensors, None, layers, claim | {k: float(v).hex() for k, v in numbers.items()}))


def test_the_risk_of_a_product_of_two_sums_is_not_that_of_one_sum() -> None:
    """(mean y) (mean x) X is mean(y x) X for one example: with more it is no layer of linear attention at all."""
    tensors, algorithm = products_of_sums()
    layers = [LAYER | {"context": 6, "repeat": 1}, ITSELF]
    assert check(folder(tensors, algorithm, layers)).result == "VERIFIED"  # it is that algorithm
    said, why = outcome(minimised(tensors, algorithm, layers))
    assert said == "undecided", why
    assert "cubic terms" in why


def test_the_risk_of_sums_counts_what_is_there_without_examples() -> None:
    """-X at the start and X + y x X from each example cancel for one example only."""
    unit = np.eye(5)  # tokens [x, y, r, 1, flag]
    tensors = {
        "attention.W_Q": np.stack([unit[:, [0]], unit[:, [0]]]),
        "attention.W_K": np.stack([unit[:, [3]], unit[:, [0]]]),
        "attention.W_V": np.stack([unit[:, [3]], unit[:, [1]]]),
        "attention.W_O": np.stack([unit[[2]], unit[[2]]]),
        "readout.0.weight": unit[:, [2]],
        "readout.0.bias": np.zeros(1),
    }
    algorithm = {
        "x": 1,
        "y": 1,
        "m": 1,
        "steps": 1,
        "start": [(-1.0).hex()],
        "gather": "sum",
        "ridge": [],
        "logit": None,
        "term": program(["x 0", "y 0", "mul 0 1", ONE, "add 2 3"], 4),
        "step": program(["s 0", "m 0", "add 0 1"], 2),
        "answer": program(["s 0", "x 0", "mul 0 1"], 2),
        "example": program(["x 0", "y 0", "s 0", "mul 2 0", ONE], 0, 1, 3, 4, 4),
        "query": program(["x 0", ZERO, "s 0", "mul 2 0", ONE], 0, 1, 3, 4, 1),
    }
    layers = [LAYER | {"context": 4, "repeat": 1, "mean": False}]
    assert check(folder(tensors, algorithm, layers)).result == "VERIFIED"
    said, why = outcome(minimised(tensors, algorithm, layers))
    assert said == "undecided", why


def scaled(q: float, k: float, v: float, o: float, x: float) -> tuple[onelayer.Model, onelayer.Model, Report]:
    """A lasso of float32 whose queries, keys, values and outputs have other sizes, with the same products."""
    model = onelayer.learner(
        "lasso", form="compact", d=2, steps=2, penalty=1e-6, low=-x, high=x, dtype="float32", examples=8
    )
    assert np.isfinite(model.interface.rounding_bound)
    tensors = tensors_of(model)
    for name, by in zip("QKVO", (q, k, v, o), strict=True):
        tensors[f"attention.W_{name}"] = (tensors[f"attention.W_{name}"].astype(np.float64) * by).astype(np.float32)
    forged = replace(model, transformer=model.transformer.with_tensors(tensors))
    return model, forged, check(with_tensors(model, tensors))


def test_products_of_keys_and_values_may_be_lost_before_a_large_query_is_seen() -> None:
    """q (sum k v) is allowed; where k v is smaller than every float, a query of 2^50 makes much of what is lost."""
    model, forged, report = scaled(2.0**60, 2.0**-60, 2.0**-84, 2.0**84, 2.0**-10)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-(2.0**-10), 2.0**-10, (200, 8, 2)), rng.uniform(-1, 1, (200, 8))
    off = np.abs(forged.predict(X, y, X[:, :2]).astype(float) - model.algorithm(X, y, X[:, :2])).max()
    assert off > model.interface.rounding_bound
    assert outcome(report)[0] == "proved"  # the same algorithm, in reals
    assert report.claims[-1].claim.type == "rounds"
    assert report.claims[-1].verdict.outcome == "undecided"


def test_sums_of_keys_and_values_may_overflow_before_a_small_query_is_seen() -> None:
    model, forged, report = scaled(2.0**-70, 2.0**70, 2.0**60, 2.0**-60, 1.0)
    X, y = np.ones((1, 8, 2)), np.ones((1, 8))
    with pytest.raises(onelayer.DataError, match="leaves the range of float32"):
        forged.predict(X, y, X)
    assert report.claims[-1].verdict.outcome == "undecided"
    assert model.proved
