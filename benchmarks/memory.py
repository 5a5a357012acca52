"""Time and memory of the build from ten thousand to a million sequences, from memory and from a mapped file.

Each build runs in a process of its own. Its peak is that of memory which no file stands for, read off /proc every
few milliseconds: pages of a mapped file count towards ru_maxrss too, but the system drops them when it likes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

n = d = 16
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
CHUNK = 10_000


def write(folder: Path, N: int) -> None:
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (N, n, d))  # type: ignore[no-untyped-call]
    for start in range(0, N, CHUNK):
        X[start : start + CHUNK] = rng.standard_normal((CHUNK, n, d), np.float32)
    np.save(folder / "Y.npy", rng.integers(0, 1000, (N, n)))


def anonymous() -> float:
    """Megabytes of this process that no file stands for."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("RssAnon"))


def build(folder: Path, kind: str) -> dict[str, Any]:
    """One build, in this process; the peak counts X if it is in memory."""
    from onelayer import memorize

    before, done = anonymous(), threading.Event()
    peak = before

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    X = np.load(folder / "X.npy", mmap_mode="r" if kind == "mapped" else None)
    Y = np.load(folder / "Y.npy", mmap_mode="r" if kind == "mapped" else None)
    start = time.perf_counter()
    model = memorize(X, Y, certify=False)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    return {
        "N": len(X),
        "X": kind,
        "X MB": X.nbytes / 1e6,
        "build s": seconds,
        "peak MB": peak - before,
        "peak / X": (peak - before) * 1e6 / X.nbytes,
        "peak bytes per answer": (peak - before) * 1e6 / Y.size,
        "ru_maxrss MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "readout": str(model.ledger["readout"]),
    }


def growth(sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for N in sizes:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), N)
            for kind in ("memory", "mapped"):
                command = [sys.executable, "-m", "benchmarks.memory", name, kind]
                rows.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    for kind in ("memory", "mapped"):
        mine = [row for row in rows[: 2 * len(sizes)] if row["X"] == kind]
        logs = {name: np.log([row[name] for row in mine]) for name in ("N", "build s", "peak MB")}
        slopes = {name: float(np.polyfit(logs["N"], logs[name], 1)[0]) for name in ("build s", "peak MB")}
        rows.append({"N": "exponent", "X": kind, **slopes})
    return rows


def run() -> dict[str, list[dict[str, Any]]]:
    return {"Growth of the build, in memory and mapped (n = d = 16, float32)": growth()}


if __name__ == "__main__":
    print(json.dumps(build(Path(sys.argv[1]), sys.argv[2])))
