"""Logits behind class numbers: what they cost beside the model, and what three runtimes answer in float32.

Every answer is asked by search; of the dense network as many as it is said, in NumPy, PyTorch and
ONNX Runtime, by argmax. The checker proves the margin of every answer in float32 for any order of evaluation.
Seconds are of CPU, of all threads.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from onelayer import Model, memorize, with_logits

#: Sequences, places, classes, readout (none: the smallest), sequences that are asked of the dense network.
SIZES = (
    (300, 6, 7, None, 300),
    (300, 6, 300, None, 300),
    (20_000, 8, 256, None, 500),
    (20_000, 8, 256, "retrieval", 500),
)
AT_A_TIME = 50


def dense_wrong(model: Model, X: Any, Y: Any) -> str:
    """Wrong answers of the dense network in each runtime."""
    import onnxruntime
    import torch

    from onelayer.export.onnx import build
    from onelayer.export.torch import to_torch

    module, session = (
        to_torch(model.transformer),
        onnxruntime.InferenceSession(build(model.transformer).SerializeToString()),
    )
    classes, wrong = np.asarray(model.form.classes), dict.fromkeys(("numpy", "torch", "onnx"), 0)
    for start in range(0, len(X), AT_A_TIME):
        some, right = X[start : start + AT_A_TIME], Y[start : start + AT_A_TIME]
        lengths = np.full(len(some), some.shape[1], np.int64)
        with torch.no_grad():
            outputs = {
                "numpy": model.outputs(model.read(some), "dense"),
                "torch": module(torch.tensor(some), torch.tensor(lengths)).numpy(),
                "onnx": np.asarray(session.run(["outputs"], {"tokens": some, "lengths": lengths})[0]),
            }
        for name, out in outputs.items():
            wrong[name] += int((classes[out.argmax(axis=2)] != right).sum())
    return ", ".join(f"{name} {count}" for name, count in wrong.items())


def row(N: int, n: int, C: int, readout: str | None, dense: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 10_000, (N, n)), rng.integers(0, C, (N, n))
    X = np.unique(X, return_inverse=True)[1].reshape(N, n)  # ids as the network has them
    options: dict[str, Any] = {} if readout is None else {"readout": readout, "mapping": "lattice"}
    plain = memorize(X, Y, positions=True, certify=False, **options)
    model = with_logits(plain)
    start = time.process_time()
    proved = model.certify(X, Y)
    seconds = time.process_time() - start
    claims = [entry for entry in proved.certificate.claims if entry["type"] == "argmax"]  # type: ignore[union-attr]
    margin = min(float.fromhex(entry["margin"]) for entry in claims)
    demanded = proved.verify(require=["argmax float32"]).result
    return {
        "answers": N * n,
        "classes": len(model.form.classes or ()),
        "readout": str(plain.ledger["readout"]),
        "parameters": plain.n_parameters,
        "of logits": model.n_parameters - plain.n_parameters,
        "wrong by search": int((model.predict(X) != Y).sum()),
        "asked densely": dense * n,
        "wrong densely": dense_wrong(model, X[:dense], Y[:dense]),
        "margin proved": margin,
        "verdict": demanded,
        "proof, us an answer": seconds / (N * n) * 1e6,
    }


def run() -> dict[str, list[dict[str, object]]]:
    return {"logits": [row(*size) for size in SIZES]}
