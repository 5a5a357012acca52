"""Are all answers reproduced? Every kind of data at three sizes, the dense network compared on a sample."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from onelayer import memorize

SIZES = (200, 2_000, 20_000)
n, d, CLASSES, VOCABULARY = 16, 16, 1_000, 50


def labels_by_context(ids: Any, rng: np.random.Generator, lengths: Any = None) -> Any:
    """One label per distinct token and multiset (proportional multisets are one)."""
    seen: dict[Any, int] = {}
    Y = np.zeros(ids.shape, int)
    for i, row in enumerate(ids.tolist()):
        visible = row if lengths is None else row[: lengths[i]]
        counts = Counter(visible)
        divisor = math.gcd(*counts.values())
        company = frozenset((token, c // divisor) for token, c in counts.items())
        for k, token in enumerate(visible):
            Y[i, k] = seen.setdefault((token, company), int(rng.integers(CLASSES)))
    return Y


def cases(N: int, rng: np.random.Generator) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    X, ids, lengths = rng.standard_normal((N, n, d)), rng.integers(0, VOCABULARY, (N, n)), rng.integers(1, n + 1, N)
    free = rng.integers(0, CLASSES, (N, n))
    yield "real tokens", X, free, {}
    yield f"ids from {VOCABULARY}, one label per context", ids, labels_by_context(ids, rng), {}
    yield f"ids from {VOCABULARY} with positions, free labels", ids, free, {"positions": True}
    yield "real tokens, lengths 1..16", X, free, {"lengths": lengths}
    yield "ids, lengths 1..16", ids, labels_by_context(ids, rng, lengths), {"lengths": lengths}
    yield "real tokens, real answers", X, rng.standard_normal((N, n)), {}
    yield "one class per sequence", X, rng.integers(0, CLASSES, N), {}


def measure(name: str, X: Any, Y: Any, options: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    start = time.perf_counter()
    model = memorize(X, Y, certify=False, **options)
    seconds = time.perf_counter() - start
    lengths = options.get("lengths")
    inside = slice(None) if lengths is None else np.arange(n) < lengths[:, None]
    answers = model.predict(X, lengths)
    some = rng.choice(len(X), min(len(X), 20), replace=False)
    few = None if lengths is None else lengths[some]
    dense = model.predict(X[some], few, path="dense")
    at = slice(None) if few is None else np.arange(n) < few[:, None]
    return {
        "data": name,
        "N": len(X),
        "answers": int(np.size(Y[inside])),
        "wrong": int((answers[inside] != Y[inside]).sum()),
        "wrong, dense sample": int((dense[at] != Y[some][at]).sum()),
        "rank": model.ledger["rank"],
        "heads": model.transformer.attention.heads,
        "margin": model.ledger["margin"],
        "parameters": model.n_parameters,
        "build s": seconds,
    }


def real_datasets(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Multivariate data that ships with scikit-learn, each row a sequence of features or of image rows."""
    from sklearn import datasets

    digits, wine, diabetes = datasets.load_digits(), datasets.load_wine(), datasets.load_diabetes()
    rows = [
        ("digits: 8 rows of 8 pixels, the digit", digits.images, digits.target, {"positions": True}),
        ("wine: 13 features, the class", wine.data, wine.target, {"positions": True}),
        ("diabetes: 10 features, the progression", diabetes.data, diabetes.target, {"positions": True}),
    ]
    return [measure(name, X, Y, options, rng) for name, X, Y, options in rows]


def run() -> dict[str, list[dict[str, Any]]]:
    rng = np.random.default_rng(0)
    rows = [measure(name, X, Y, options, rng) for N in SIZES for name, X, Y, options in cases(N, rng)]
    return {"Recall in float64": rows, "Recall of real multivariate data": real_datasets(rng)}
