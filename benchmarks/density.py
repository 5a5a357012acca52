"""How densely answers are stored: bits a parameter for any number of classes, and shapes of data that were dear.

Every row is built by the default call. All answers are asked by search, and a sample of the dense network in NumPy,
PyTorch and ONNX Runtime, of one row all of it; where it is said, the checker proves all of them in float32 for any
order of summation. ONELAYER_BENCH_SEQUENCES limits the sizes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from onelayer import Model, certify, memorize

CLASSES = (2, 4, 10, 256, 65_536, 1_000_000)
MOST = int(os.environ.get("ONELAYER_BENCH_SEQUENCES", "500000"))
SIZES = tuple(N for N in (2_000, 20_000, 100_000, 500_000) if N <= MOST)
PLACES, WIDTH = 16, 16
#: Answers of a shape, sequences that are asked of the dense network, and the size up to which every row is proved.
ANSWERS, DENSE, PROVED = 65_536, 100, 320_000
#: Of the largest size these numbers of classes are built, and of the next largest these are proved.
OF_THE_LARGEST, PROVED_OF_MANY = (256,), CLASSES
#: The row of which all answers are asked densely: sequences, classes.
ALL_DENSE = (20_000, 256)
#: Sequences that are run at a time.
AT_A_TIME = 256


def wrong(model: Model, X: Any, Y: Any, path: Any) -> int:
    found = model.predict(X, path=path)
    return sum(int(np.sum(np.asarray(a) != np.asarray(b))) for a, b in zip(found, Y, strict=True))


def wrong_in_runtimes(model: Model, X: Any, Y: Any) -> str:
    """Wrong answers of the dense network in PyTorch and in ONNX Runtime, where inputs are arrays of reals."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or np.ndim(Y) != 2:
        return "not asked"
    import onnxruntime
    import torch

    from onelayer.export.onnx import build
    from onelayer.export.torch import to_torch

    module, found = to_torch(model.transformer), []
    Y = np.searchsorted(np.asarray(model.form.classes), Y)  # the network numbers the classes that occur
    session = onnxruntime.InferenceSession(build(model.transformer).SerializeToString())
    for name in ("torch", "onnx"):
        count = 0
        for start in range(0, len(X), AT_A_TIME):
            some = np.ascontiguousarray(X[start : start + AT_A_TIME], model.transformer.dtype)
            lengths = np.full(len(some), some.shape[1], np.int64)
            if name == "torch":
                with torch.no_grad():
                    out = module(torch.tensor(some), torch.tensor(lengths)).numpy()
            else:
                out = np.asarray(session.run(["outputs"], {"tokens": some, "lengths": lengths})[0])
            count += int((np.rint(out[..., 0]) != Y[start : start + AT_A_TIME]).sum())
        found.append(f"{name} {count}")
    return ", ".join(found)


def row(
    name: str, X: Any, Y: Any, *, proved: bool = False, all_dense: bool = False, **options: Any
) -> dict[str, object]:
    start = time.process_time()
    model = memorize(X, Y, certify=False, **options)
    built = time.process_time() - start
    M = int(model.ledger["tokens"])
    few = len(X) if all_dense else max(1, DENSE * PLACES * len(X) // M)
    verdict: str
    proof: float | str
    verdict, proof = "not asked", ""
    if proved or M <= PROVED:
        start = time.process_time()
        claims = certify(model, X, Y).claims
        proof = (time.process_time() - start) / M * 1e6
        sure = any(c["type"] == "memorizes" and c["arith"] == model.ledger["dtype"] for c in claims)
        verdict = "VERIFIED" if sure else "not proved"
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
        "dense sequences": few,
        "wrong of these": wrong(model, X[:few], Y[:few], "dense"),
        "in other runtimes": wrong_in_runtimes(model, X[:few], Y[:few]),
        "any order": verdict,
        "proof CPU us / answer": proof,
    }


def measure_packed() -> Iterator[dict[str, object]]:
    for N in SIZES:
        rng = np.random.default_rng(N)
        X = rng.standard_normal((N, PLACES, WIDTH), dtype=np.float32)
        for C in CLASSES if N < 500_000 else OF_THE_LARGEST:
            Y = rng.integers(0, C, (N, PLACES))
            asked = {"proved": N == 100_000 and C in PROVED_OF_MANY, "all_dense": (N, C) == ALL_DENSE}
            yield {"classes": C, **row(f"{N:,} x {PLACES}", X, Y, **asked)}


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
    yield row("10^6 words", ids, np.array(bag_answers(ids, 1_000)))  # a few sequences have a word twice
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
