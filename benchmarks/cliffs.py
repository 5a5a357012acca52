"""Where a little more data costs much more: neighbouring sizes along one axis, the default call, cost an answer.

Along each axis (places, components, sequences, classes, words, lengths) the other sizes stay. A cliff is a step
between neighbours at which parameters, seconds to build or seconds of proof, each per answer, grow by more than a
factor of three; steps of less than some hundredths of a second are noise, and not listed. ONELAYER_BENCH_AXES names
the axes to look at, ONELAYER_BENCH_ANSWERS how many answers a size has, about.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onelayer import OnelayerError, certify, memorize
from onelayer.compile.memorize import settle_conflicts
from onelayer.search.problem import Options

ANSWERS = int(os.environ.get("ONELAYER_BENCH_ANSWERS", "16384"))
CLIFF = 3.0
#: Seconds in all below which a difference is noise.
NOISE = 0.1
#: A run of less than so many seconds is repeated.
RUNS, SHORT = 3, 2.0
COSTS = ("parameters / answer", "build CPU us / answer", "proof CPU us / answer")
Case = tuple[str, Any, Any, dict[str, Any]]


def reals(n: int = 16, d: int = 16, N: int | None = None, C: int = 256, **options: Any) -> Case:
    rng = np.random.default_rng(0)
    N = N or max(4, ANSWERS // n)
    X = rng.standard_normal((N, n, d), dtype=np.float32)
    return "", X, rng.integers(0, C, (N, n)), options


def ids(n: int = 16, V: int = 1_000, C: int = 256, **options: Any) -> Case:
    rng = np.random.default_rng(0)
    N = max(4, ANSWERS // n)
    X = rng.integers(0, V, (N, n))
    answers = rng.integers(0, C, (N, V))  # one for each token of a sequence: bags may hold a token twice
    Y = rng.integers(0, C, (N, n)) if options.get("positions") else np.take_along_axis(answers, X, axis=1)
    return "", X, Y, options


def sentences(longest: int, words: bool = True, **options: Any) -> Case:
    rng = np.random.default_rng(0)
    lengths = rng.integers(max(1, longest // 8), longest + 1, max(4, 2 * ANSWERS // longest))
    X = [rng.integers(0, 3_000, k).tolist() if words else rng.standard_normal((k, 8)) for k in lengths]
    known: list[dict[Any, int]] = [{} for _ in X]
    options["on_conflict"] = "first"  # short sentences are met again
    if options.get("positions") or not words:
        return "", X, [rng.integers(0, 9, k).tolist() for k in lengths], options
    Y = [[own.setdefault(t, int(rng.integers(9))) for t in row] for own, row in zip(known, X, strict=True)]
    return "", X, Y, options


#: Attention over n tokens costs n an answer: where that counts, neighbours are no further apart than a doubling.
PLACES = (4, 16, 64, 128, 256, 512, 1_024)
AXES: dict[str, tuple[tuple[int, ...], Callable[[int], Case]]] = {
    "n, reals": (PLACES, lambda n: reals(n=n)),
    "n, reals in order": (PLACES, lambda n: reals(n=n, positions=True)),
    "n, ids": (PLACES, lambda n: ids(n=n)),
    "n, ids in order": (PLACES, lambda n: ids(n=n, positions=True)),
    "d": ((1, 2, 4, 16, 64, 256), lambda d: reals(d=d)),
    "N": ((32, 128, 512, 2_048, 8_192), lambda N: reals(N=N)),
    "C": ((2, 16, 256, 4_096, 65_536, 1_000_000), lambda C: reals(C=C)),
    "vocabulary": ((16, 256, 4_096, 65_536, 1_000_000), lambda V: ids(V=V)),
    "vocabulary, in order": ((16, 256, 4_096, 65_536, 1_000_000), lambda V: ids(V=V, positions=True)),
    "longest sentence, in order": ((8, 32, 128, 400), lambda k: sentences(k, positions=True)),
    "longest bag of words": ((8, 32, 128, 300), lambda k: sentences(k)),
    "longest bag of vectors": ((8, 32, 128, 300), lambda k: sentences(k, words=False)),
}


def least(make: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the fastest of a few runs, where one is short, and what it made: the first of a process warms
    caches, and threads of BLAS may spin beside any of them."""
    times: list[float] = []
    while not times or (len(times) < RUNS and times[0] < SHORT):
        start = time.process_time()
        made = make()
        times.append(time.process_time() - start)
    return min(times), made


def measure_point(axis: str, size: int) -> dict[str, Any]:
    _, X, Y, options = AXES[axis][1](size)
    row: dict[str, Any] = {"axis": axis, "size": size}
    try:
        built, model = least(lambda: memorize(X, Y, certify=False, **options))
    except OnelayerError as error:
        return row | {"route": f"refused: {error}"[:160]}
    answers = int(model.ledger.number("tokens"))
    row |= {"answers": answers, "route": ", ".join(str(model.ledger[k]) for k in ("mapping", "readout", "dtype"))}
    options.pop("on_conflict", None)
    given = settle_conflicts(X, Y, "first", Options(**options))
    seconds, proof = least(lambda: certify(model, given.sequences, given.answers))
    proved = all(": proved" in verdict for verdict in proof.verdicts)
    costs = (model.n_parameters / answers, built / answers * 1e6, seconds / answers * 1e6)
    return row | {"any order": "VERIFIED" if proved else "not proved", **dict(zip(COSTS, costs, strict=True))}


def cliffs(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Neighbours of one axis that differ by more than the factor in some cost, or of which one is refused."""
    for before, after in itertools.pairwise(rows):
        if before["axis"] != after["axis"]:
            continue
        step = {"axis": after["axis"], "from": before["size"], "to": after["size"]}
        if COSTS[0] not in before or COSTS[0] not in after:
            yield step | {"cost": "refused", "factor": float("inf"), "route": after["route"]}
            continue
        for cost in COSTS:
            factor = after[cost] / before[cost]
            spent = (after[cost] * after["answers"] - before[cost] * after["answers"]) / 1e6
            if factor > CLIFF and (cost == COSTS[0] or spent > NOISE):
                route = f"{before['route']} -> {after['route']}"
                yield step | {"cost": cost, "factor": factor, "route": route}


def run() -> dict[str, list[dict[str, object]]]:
    wanted = os.environ.get("ONELAYER_BENCH_AXES", "")
    rows = []
    for axis, (sizes, _) in AXES.items():
        for size in sizes if wanted in axis else ():
            rows.append(measure_point(axis, size))
            print(rows[-1], flush=True)
    found = list(cliffs(rows)) or [{"axis": "none", "from": 0, "to": 0, "cost": "", "factor": 1.0, "route": ""}]
    return {"Cliffs": found, "Costs": [{"any order": "", **dict.fromkeys(COSTS, ""), **row} for row in rows]}
