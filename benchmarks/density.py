"""How densely answers are stored: bits a parameter for any number of classes, and shapes of data that were dear.

Every row is built by the default call. All answers are asked by search, and a sample of the dense network; where it
is said, the checker proves them in float32 for any order of summation. ONELAYER_BENCH_SEQUENCES limits the sizes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from onelayer import Model, certify, memorize

CLASSES = (2, 4, 10, 256, 65_536, 1_000_000)
MOST = int(os.environ.get("ONELAYER_BENCH_SEQUENCES", "100000"))
SIZES = tuple(N for N in (2_000, 20_000, 100_000) if N <= MOST)
PLACES, WIDTH = 16, 16
#: Answers of a shape, sequences that are asked of the dense network, and the size up to which a proof is made.
ANSWERS, DENSE, PROVED = 65_536, 100, 100_000


def wrong(model: Model, X: Any, Y: Any, path: Any) -> int:
    found = model.predict(X, path=path)
    return sum(int(np.sum(np.asarray(a) != np.asarray(b))) for a, b in zip(found, Y, strict=True))


def row(name: str, X: Any, Y: Any, **options: Any) -> dict[str, object]:
    start = time.process_time()
    model = memorize(X, Y, certify=False, **options)
    built = time.process_time() - start
    M, few = int(model.ledger["tokens"]), max(1, DENSE * PLACES * len(X) // int(model.ledger["tokens"]))
    verdict, proof = "not asked", float("nan")
    if M <= PROVED:
        start = time.process_time()
        claims = certify(model, X, Y).claims
        proof = (time.process_time() - start) / M * 1e6
        proved = any(c["type"] == "memorizes" and c["arith"] == model.ledger["dtype"] for c in claims)
        verdict = "VERIFIED" if proved else "not proved"
    return {
        "data": name,
        "answers": M,
        "distinct": int(model.ledger["distinct"]),
        "mapping, readout, dtype": ", ".join(str(model.ledger[k]) for k in ("mapping", "readout", "dtype")),
        "build CPU s": built,
        "parameters": model.n_parameters,
        "parameters / answer": model.n_parameters / M,
        "bits / parameter": model.bits_per_parameter,
        "wrong by search": wrong(model, X, Y, "auto"),
        f"wrong of {few} dense sequences": wrong(model, X[:few], Y[:few], "dense"),
        "any order": verdict,
        "proof CPU us / answer": proof,
    }


def measure_packed() -> Iterator[dict[str, object]]:
    for N in SIZES:
        rng = np.random.default_rng(N)
        X = rng.standard_normal((N, PLACES, WIDTH), dtype=np.float32)
        for C in CLASSES:
            yield {"classes": C, **row(f"{N:,} x {PLACES}", X, rng.integers(0, C, (N, PLACES)))}


def bag_answers(bags: Any, classes: int) -> Any:
    """One answer for each (token, shares of tokens)."""
    rng, known = np.random.default_rng(1), {}
    answers = []
    for bag in bags:
        ids, counts = np.unique(bag, return_counts=True)
        company = (*ids.tolist(), *(counts // np.gcd.reduce(counts)).tolist())
        answers.append([known.setdefault((t, company), int(rng.integers(classes))) for t in bag])
    return answers


def shapes() -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(0)
    bags = [rng.integers(0, 40, rng.integers(2, 5)).tolist() for _ in range(20_000)]
    yield row("bags of 2 to 4 of 40 tokens", bags, bag_answers(bags, 1_000))
    for n in (256, 512, 1_024, 4_096):
        N = ANSWERS // n
        X, Y = rng.standard_normal((N, n, WIDTH), dtype=np.float32), rng.integers(0, 1_000, (N, n))
        yield row(f"n = {n:,}", X, Y)
        yield row(f"n = {n:,}, positions", X, Y, positions=True)
    sentences = [rng.integers(0, 3_000, k).tolist() for k in rng.integers(3, 145, ANSWERS // 74)]
    labels = [rng.integers(0, 5, len(s)).tolist() for s in sentences]
    yield row("words, positions, lengths 3 to 144", sentences, labels, positions=True)
    for N in (ANSWERS // PLACES, 62_500):
        X = rng.standard_normal((N, PLACES, 1), dtype=np.float32)
        yield row("one component", X, rng.integers(0, 2, (N, PLACES)))
    ids = rng.integers(0, 10**6, (20_000, PLACES))
    yield row("10^6 words", ids, rng.integers(0, 1_000, ids.shape))
    yield row("10^6 words, positions", ids, rng.integers(0, 1_000, ids.shape), positions=True)
    X = rng.standard_normal((1_000, PLACES, 768), dtype=np.float32)
    yield row("d = 768", X, rng.integers(0, 1_000, X.shape[:2]))


def run() -> dict[str, list[dict[str, object]]]:
    tables: dict[str, list[dict[str, object]]] = {}
    for title, rows in (("bits for any number of classes", measure_packed()), ("shapes", shapes())):
        tables[title] = []
        for found in rows:
            print(found, flush=True)
            tables[title].append(found)
    return tables
