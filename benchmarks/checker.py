"""What checking costs: 1.6 million answers in real arithmetic and in float64 in any order, with separation."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onelayer import memorize, save

n = d = 16
#: The checker in a process of its own, which says at the end how much memory it had at most.
CHECK = """
import atexit, runpy, sys
peak = lambda: [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
atexit.register(lambda: sys.stderr.write(peak()))
sys.argv = ["onelayer_checker", *sys.argv[1:], "--json"]
runpy.run_module("onelayer_checker", run_name="__main__")
"""


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
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", CHECK, str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "N": N,
        "answers": N * n,
        "claims": claims,
        "result": json.loads(done.stdout)["result"],
        "seconds": seconds,
        "cpu s": cpu,
        "cpu s per sequence": cpu / N,
        "peak GB": int(done.stderr.split()[-2]) / 1e6,  # of the first process
    }


def run() -> dict[str, list[dict[str, Any]]]:
    one, both = [], []
    for N in (1_000, 20_000, 100_000):
        with bundle(N) as (path, claims):
            one.append(verification(path, claims, N))
            both.append(verification(path, claims, N, "--engine", "both"))
    return {"Verification": one, "By both engines, on all cores": both}
