"""Answers per second on one core: the dense network, the search, a Python dict and a nearest neighbour."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer import HypothesisError, memorize

SIZES = (10_000, 100_000, 1_000_000)
n = d = 16
CLASSES = 1_000
#: Multiplications that the dense network may spend on its sample, and answers asked of the nearest neighbour.
DENSE_WORK, NEIGHBOUR_SAMPLE = 4e9, 16_000

Ask = Callable[[Any], Any]


@dataclass
class Contender:
    """Something that answers, and what was measured of it."""

    name: str
    build: float
    ask: Ask
    sequences: Any  # which of the stored ones it is asked
    seconds: float = float("inf")  # the best round
    wrong: int = 0

    @property
    def rate(self) -> float:
        return len(self.sequences) * n / self.seconds


@contextmanager
def one_core() -> Iterator[None]:
    """One thread for BLAS and for PyTorch, if that is loaded, and one core for all threads.

    A dict cannot use a second core, so nobody gets one; and threads of PyTorch that wait for each other on a busy
    machine make training up to 40 times slower than one thread does.
    """
    from threadpoolctl import threadpool_limits

    torch: Any = sys.modules.get("torch")
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else None
    threads = torch.get_num_threads() if torch else None
    with threadpool_limits(1):
        if cores is not None:
            os.sched_setaffinity(0, {max(cores)})
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(threads)
            if cores is not None:
                os.sched_setaffinity(0, cores)


def keys(X: Any) -> Iterator[tuple[bytes, bytes]]:
    """A token and the sorted company it is in, by their bytes: what the answer may depend on."""
    for sequence in X:
        tokens = [token.tobytes() for token in sequence]
        company = b"".join(sorted(tokens))
        for token in tokens:
            yield token, company


def by_dict(X: Any, Y: Any) -> Ask:
    table = dict(zip(keys(X), Y.ravel().tolist(), strict=True))
    return lambda asked: np.array([table[key] for key in keys(asked)]).reshape(asked.shape[:2])


def features(X: Any) -> Any:
    """A token beside the mean of its sequence, [answers, 2 d]."""
    return np.concatenate([X, np.broadcast_to(X.mean(1, keepdims=True), X.shape)], -1).reshape(-1, 2 * d)


def by_neighbour(X: Any, Y: Any) -> Ask:
    """A stored point finds itself at distance 0, which makes a tree some 40 times faster here than brute force."""
    from sklearn.neighbors import KNeighborsClassifier

    tree = KNeighborsClassifier(1, algorithm="kd_tree", n_jobs=1).fit(features(X), Y.ravel())
    return lambda asked: tree.predict(features(asked)).reshape(asked.shape[:2])


def time_action(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def compiled_contenders(X: Any, Y: Any, dtype: str, rng: np.random.Generator) -> Iterator[Contender]:
    """The two paths of one model; the dense network, which is slow, is asked a sample."""
    try:
        build, model = time_action(lambda: memorize(X, Y, dtype=dtype, certify=False))
    except HypothesisError as refusal:
        print(f"onelayer, {dtype}, {Y.size:,} answers: {refusal}")
        return
    name = f"{dtype}, {model.n_parameters:,} parameters"
    few = max(2, min(len(X), int(DENSE_WORK / (n * model.n_parameters))))
    sample = rng.choice(len(X), few, replace=False)
    yield Contender(f"onelayer, dense network, {name}", build, lambda x: model.predict(x, path="dense"), sample)
    yield Contender(f"onelayer, search, {name}", build, lambda x: model.predict(x, path="fast"), np.arange(len(X)))


def contenders(X: Any, Y: Any) -> Iterator[Contender]:
    """The dict comes first: the others are compared with it."""
    rng, everything = np.random.default_rng(1), np.arange(len(X))
    yield Contender("Python dict of (token, sorted company)", *time_action(lambda: by_dict(X, Y)), everything)
    for dtype in ("float64", "float32"):
        yield from compiled_contenders(X, Y, dtype, rng)
    some = rng.choice(len(X), min(len(X), NEIGHBOUR_SAMPLE // n), replace=False)
    yield Contender("scikit-learn nearest neighbour, k-d tree", *time_action(lambda: by_neighbour(X, Y)), some)


def measure(answers: int, repeats: int = 3) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((answers // n, n, d)), rng.integers(0, CLASSES, (answers // n, n))
    racing = list(contenders(X, Y))
    for _ in range(repeats):
        for c in racing:
            asked = X[c.sequences]
            start = time.perf_counter()
            found = c.ask(asked)
            c.seconds = min(c.seconds, time.perf_counter() - start)
            c.wrong = max(c.wrong, int((found != Y[c.sequences]).sum()))
    return [
        {
            "stored answers": Y.size,
            "what": c.name,
            "build s": c.build,
            "asked": f"{len(c.sequences) * n:,}" + (" (a sample)" if len(c.sequences) < len(X) else ""),
            "wrong": c.wrong,
            "answers per second": c.rate,
            "times the dict": c.rate / racing[0].rate,
        }
        for c in racing
    ]


def run() -> dict[str, list[dict[str, Any]]]:
    import sklearn.neighbors  # noqa: F401  # so that no row pays for the import

    with one_core():
        return {"Answers per second on one core": [row for answers in SIZES for row in measure(answers)]}
