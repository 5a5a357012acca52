"""What there is to prune in compiled models, and what is proved of the rest.

    python -m benchmarks pruned

Answers: 400 sequences of 4 of 40 words (8,000 of 400 in the last rows), an answer to every word, five classes, of
which one has the share given, by several readouts, each in its own dtype. Zeros are weights of the model as it was
built that are 0, most of them in full matrices; removed are weights that `prune` takes away; the verdict is the
checker's on the data itself.
Functions: models within 0.01, pruned to a larger tolerance, beside models that were built for that tolerance.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from onelayer import approximate, memorize, prune
from onelayer.errors import OptionError

Row = dict[str, Any]
READOUTS = ("auto", "plateaus", "boxes", "table", "bits")
SHARES = (0.2, 0.5, 0.9)
FORMULAS = (
    ("x * exp(-mean((x - y)**2))", 4),
    ("sin(3*x) * mean(y**2)", 4),
    ("exp(x) * mean(sin(y))", 8),
    ("x * mean(y)", 4),
)
TOLERANCE, LARGER = 0.01, (1, 2, 5)


def zeros(model: Any) -> int:
    return sum(int((tensor == 0).sum()) for _, tensor in model.transformer.tensors())


def stored(readout: str, share: float, sequences: int = 400) -> Row:
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(0, 40 if sequences == 400 else 400, (sequences, 4)), axis=0)
    Y = np.where(rng.random(X.shape) < (share - 0.2) / 0.8, 0, rng.integers(0, 5, X.shape))
    row: Row = {"readout": readout, "sequences": len(X), "commonest class": f"{(Y == 0).mean():.2f}"}
    model = memorize(X, Y, positions=True, readout=readout, certify=True)
    row |= {"of": f"{model.ledger['readout']}, {model.arithmetic}", "parameters": model.n_parameters}
    row |= {"zeros": zeros(model) / model.n_parameters}
    start = time.process_time()
    try:
        made = prune(model)
    except OptionError:
        return row | {"removed": 0.0, "verdict": "nothing to remove"}
    seconds = time.process_time() - start
    verdict = made.model.verify(data=(X, Y)).result
    return row | {"removed": made.n_removed / model.n_parameters, "verdict": verdict, "CPU s": seconds}


def functions(text: str, n: int) -> list[Row]:
    model, rows = approximate(text, n=n, low=-1, high=1, tolerance=TOLERANCE), []
    for factor in LARGER:
        tolerance = factor * TOLERANCE
        row: Row = {"formula": text, "n": n, "parameters": model.n_parameters, "proved": model.error_bound}
        row |= {"tolerance": tolerance, "pruned": model.n_parameters, "proved then": model.error_bound}
        start = time.process_time()
        try:
            made = prune(model, tolerance)
            row |= {"pruned": made.model.n_parameters, "proved then": made.model.error_bound}
            row["verdict"] = made.verify()
        except OptionError:
            row["verdict"] = "nothing to remove"
        row["CPU s"] = time.process_time() - start
        rows.append(
            row | {"built for it": approximate(text, n=n, low=-1, high=1, tolerance=tolerance).n_parameters}
        )
    return rows


def run() -> dict[str, list[Row]]:
    answers = [stored(readout, share) for readout in READOUTS for share in SHARES]
    answers += [stored("auto", share, 8000) for share in SHARES]
    columns = (
        "readout",
        "sequences",
        "commonest class",
        "of",
        "parameters",
        "zeros",
        "removed",
        "verdict",
        "CPU s",
    )
    answers = [{name: row.get(name, "") for name in columns} for row in answers]
    return {
        "Stored answers: shares of the weights": answers,
        f"Functions: models within {TOLERANCE}, pruned": [row for case in FORMULAS for row in functions(*case)],
    }
