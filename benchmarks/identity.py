"""Are the answers of one large model the same bits in NumPy, PyTorch, ONNX Runtime and 20 orders of summation?"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer import memorize, to_torch
from onelayer.model import Model
from onelayer.network import Grouped, Linear, Transformer
from onelayer.network.blocks import evaluate

n = d = 16
ORDERS = 20


def permute_plateaus(model: Transformer, rng: np.random.Generator) -> Transformer:
    """The same network with its plateaus in another order: every sum over them is added up in that order."""
    bottleneck, units, group, values = model.readout
    K, size, _ = group.weight.shape
    order = rng.permutation(K)
    columns = (order[:, None] * size + np.arange(size)).ravel()
    assert isinstance(units, Linear)
    assert isinstance(values, Linear)
    readout = (
        bottleneck,
        Linear(units.weight[:, columns], units.bias[columns]),
        Grouped(group.weight[order], group.bias[order]),
        Linear(values.weight[order], values.bias),
    )
    return Transformer(model.attention, model.embedding, model.feedforward, readout, model.channels)


def outputs(model: Model, X: Any) -> dict[str, Any]:
    import onnxruntime
    import torch

    from onelayer.export.onnx import build

    lengths = np.full(len(X), X.shape[1], np.int64)
    session = onnxruntime.InferenceSession(build(model.transformer).SerializeToString())
    with torch.no_grad():
        in_torch = to_torch(model)(torch.tensor(X)).numpy()
    rng = np.random.default_rng(1)
    return {
        "NumPy": evaluate(model.transformer, X),
        "PyTorch": in_torch,
        "ONNX Runtime": session.run(["outputs"], {"tokens": X, "lengths": lengths})[0],
        **{f"order {i}": evaluate(permute_plateaus(model.transformer, rng), X) for i in range(ORDERS)},
    }


def identity(N: int, asked: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n))
    model = memorize(X, Y, certify=False)
    some = rng.choice(N, asked, replace=False)
    found = outputs(model, X[some])
    wanted = model.outputs(model.read(X[some]))
    return {
        "N": N,
        "plateaus": model.ledger["plateaus"],
        "answers compared": int(wanted.size),
        "evaluations": len(found),
        "with other bits": sum(out.tobytes() != wanted.tobytes() for out in found.values()),
        "wrong answers": int((model.form.decode(found["NumPy"], None) != Y[some]).sum()),
    }


def run() -> dict[str, list[dict[str, Any]]]:
    return {"Bit identity": [identity(2_000, 200), identity(100_000, 4)]}
