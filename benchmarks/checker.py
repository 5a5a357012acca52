"""What checking costs: 1.6 million answers in real arithmetic and in float64 in any order, with separation."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import Measured, measure
from onelayer import memorize, save

n = d = 16
#: A short verification is measured so often, and the least CPU time counts: other work only adds to it.
RUNS, SHORT = 5, 2.0


@contextmanager
def bundle(N: int) -> Iterator[tuple[Path, str]]:
    """A certified folder, without the claim on robustness, and its claims in words."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n))
    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder) / "bundle", memorize(X, Y, certify=False), data=(X, Y))
        certificate = json.loads((path / "certificate.json").read_text())
        certificate["claims"] = [c for c in certificate["claims"] if c["type"] != "robust"]
        (path / "certificate.json").write_text(json.dumps(certificate))
        yield path, ", ".join(f"{c['type']} ({c['arith']})" for c in certificate["claims"])


def verification(path: Path, claims: str, N: int, *options: str) -> dict[str, Any]:
    """`python -I -m onelayer_checker`, process start included: CPU time and memory of the process and its own."""
    command = [sys.executable, "-I", "-m", "onelayer_checker", str(path), "--json", *options]
    runs: list[Measured] = []
    while not runs or (len(runs) < RUNS and runs[0].cpu < SHORT):
        runs.append(measure(*command))
    best = min(runs, key=lambda run: run.cpu)
    return {
        "N": N,
        "answers": N * n,
        "claims": claims,
        "result": json.loads(best.printed)["result"],
        "seconds": best.seconds,
        "cpu s": best.cpu,
        "cpu s per sequence": best.cpu / N,
        "peak GB": best.peak,
    }


def run() -> dict[str, list[dict[str, Any]]]:
    one, both = [], []
    for N in (1_000, 20_000, 100_000):
        with bundle(N) as (path, claims):
            one.append(verification(path, claims, N))
            both.append(verification(path, claims, N, "--engine", "both"))
    return {"Verification": one, "By both engines, on all cores": both}
