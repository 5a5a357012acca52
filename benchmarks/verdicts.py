"""What a verdict costs on every route: CPU time an answer, over sizes, and against the build in the same run."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checker import verification
from onelayer import certify, memorize, memorize_text, save
from onelayer.compile.text import python_reference

n = d = 16
SIZES = (125, 2_000, 20_000, 100_000)


def real_tokens(N: int, dtype: Any, classes: int, **options: Any) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((N, n, d)).astype(dtype), rng.integers(0, classes, (N, n))
    return X, Y, options


def ids(answers: int, places: int) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    shape = (answers // places, places)
    return rng.integers(0, 1000, shape), rng.integers(0, 1000, shape), {"positions": True}


def one_component(answers: int) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    shape = (answers // 24, 24)
    return rng.standard_normal(shape).astype(np.float32), rng.integers(0, 1000, shape), {"positions": True}


Case = Callable[[], tuple[Any, Any, dict[str, Any]]]
LATTICE = {"mapping": "lattice"}
ROUTES: dict[str, list[Case]] = {
    "float64 plateaus, 1,000 classes": [
        lambda N=N: real_tokens(N, np.float64, 1000, readout="plateaus", mapping="temperature") for N in SIZES
    ],
    "float64 as chosen (packed from 32,000 on), 1,000 classes": [
        lambda N=N: real_tokens(N, np.float64, 1000) for N in SIZES
    ],
    "float32 packed, 10 classes": [
        lambda N=N: real_tokens(N, np.float32, 10, readout="packed", **LATTICE) for N in SIZES
    ],
    "float32 packed, 65,536 classes": [
        lambda N=N: real_tokens(N, np.float32, 65_536, readout="packed", **LATTICE) for N in SIZES
    ],
    "float32 retrieval, 65,536 classes": [
        lambda N=N: real_tokens(N, np.float32, 65_536, readout="retrieval", **LATTICE) for N in SIZES
    ],
    "float32 table, 65,536 classes": [
        lambda N=N: real_tokens(N, np.float32, 65_536, readout="table", **LATTICE) for N in SIZES
    ],
    "ids with positions, n = 8": [lambda T=T: ids(T, 8) for T in (2_048, 32_768, 327_680)],
    "ids with positions, n = 64": [lambda T=T: ids(T, 64) for T in (2_048, 32_768, 327_680)],
    "ids with positions, n = 256": [lambda T=T: ids(T, 256) for T in (2_048, 32_768, 327_680)],
    "one component, positions, n = 24": [lambda T=T: one_component(T) for T in (2_040, 26_304, 105_216)],
}
TEXTS = (8_000, 35_000, 140_000)


def without_robust(folder: Path) -> list[dict[str, str]]:
    """The claims of a folder, but for robust ones: they take further evaluations, and not every route has one."""
    certificate = json.loads((folder / "certificate.json").read_text())
    certificate["claims"] = [claim for claim in certificate["claims"] if claim["type"] != "robust"]
    (folder / "certificate.json").write_text(json.dumps(certificate))
    return list(certificate["claims"])


def measure_route(route: str, make: Callable[[Path], tuple[float, float, int]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        built, certified, answers = make(Path(folder) / "bundle")
        claims = without_robust(Path(folder) / "bundle")
        found = verification(Path(folder) / "bundle", "", answers, "--jobs", "1")
    return {
        "route": route,
        "answers": answers,
        "claims": ", ".join(f"{c['type']} ({c['arith']})" for c in claims),
        "result": found["result"],
        "us an answer": found["cpu s"] / answers * 1e6,
        "verify, CPU s": found["cpu s"],
        "peak GB": found["peak GB"],
        "build, CPU s": built,
        "certify, CPU s": certified,
        "verify over build": found["cpu s"] / built,
    }


def stored_bundle(case: Case) -> Callable[[Path], tuple[float, float, int]]:
    def make(folder: Path) -> tuple[float, float, int]:
        X, Y, options = case()
        start = time.process_time()
        model = memorize(X, Y, certify=False, **options)
        built = time.process_time() - start
        save(folder, model, data=(X, Y))
        return built, time.process_time() - start - built, Y.size

    return make


def text(size: int) -> Callable[[Path], tuple[float, float, int]]:
    def make(folder: Path) -> tuple[float, float, int]:
        words = python_reference()[:size]
        start = time.process_time()
        model = memorize_text(words, context=128, certify=False)
        built = time.process_time() - start
        save(folder, model, certificate=certify(model, words))
        return built, time.process_time() - start - built, len(words.encode())

    return make


def exponents(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """How CPU time grows from the second size to the last: the first is mostly a constant."""
    for route in dict.fromkeys(row["route"] for row in rows):
        own = [row for row in rows if row["route"] == route][1:]
        growth = np.log(own[-1]["verify, CPU s"] / own[0]["verify, CPU s"])
        yield {
            "route": route,
            "from": own[0]["answers"],
            "to": own[-1]["answers"],
            "exponent": float(growth / np.log(own[-1]["answers"] / own[0]["answers"])),
        }


def run() -> dict[str, list[dict[str, Any]]]:
    rows = [measure_route(route, stored_bundle(case)) for route, cases in ROUTES.items() for case in cases]
    rows += [measure_route("text, context 128", text(size)) for size in TEXTS]
    return {"Cost of a verdict": rows, "Growth": list(exponents(rows))}
