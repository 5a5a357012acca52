"""Kinds of attention, key masks, loops and further layers: by the formula, in PyTorch and in ONNX Runtime."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from onelayer import to_onnx, to_torch
from onelayer.errors import OptionError
from onelayer.network import Attention, Linear, Transformer, structure
from onelayer.network.blocks import evaluate
from onelayer.network.trace import trace

WIDTH, SIZE, VALUES, FLAG = 5, 3, 2, 4
CASES = [
    {"kind": kind, "causal": causal, "context": context, "mean": mean, "window": window, "repeat": repeat}
    for kind in ("softmax", "hardmax", "linear", "relu", "mesa")
    for causal, context, mean, window, repeat in (
        (False, None, False, None, 1),
        (False, FLAG, True, None, 3),
        (True, FLAG, False, None, 1),
        (True, None, True, None, 2),
        (True, FLAG, True, None, 1),
        (False, None, False, 1, 2),
        (True, FLAG, True, 2, 1),
    )
    if not (mean and kind not in ("linear", "relu")) and not (window and kind == "mesa")
]


def layer(rng: np.random.Generator, heads: int, repeat: int = 1, **options) -> Transformer:
    shapes = ((heads, WIDTH, SIZE), (heads, WIDTH, SIZE), (heads, WIDTH, VALUES), (heads, VALUES, WIDTH))
    weights = [rng.uniform(-0.5, 0.5, shape) for shape in shapes]
    weights[3][..., FLAG] = 0
    biases = [rng.uniform(-0.5, 0.5, (heads, SIZE)) for _ in "QK"]
    ridge = np.full(heads, 0.5) if options["kind"] == "mesa" else None
    forward = Linear(rng.uniform(-0.5, 0.5, (WIDTH, WIDTH)), np.zeros(WIDTH))
    return Transformer(Attention(*weights, *biases, ridge, **options), None, (forward,), repeat=repeat)


def model(case: dict, dtype: type = np.float64) -> Transformer:
    rng = np.random.default_rng(3)
    last = layer(rng, 1, kind="linear", causal=True, window=1)
    last = replace(last, readout=(Linear(rng.standard_normal((WIDTH, 2)), np.ones(2)),))
    made = replace(layer(rng, 2, **case), further=(last,), channels=tuple("abcde"))
    return made.with_tensors({name: a.astype(dtype) for name, a in made.tensors()})


def prompts(rng: np.random.Generator, flags: list[int]) -> np.ndarray:
    X = rng.standard_normal((3, len(flags), WIDTH))
    X[..., FLAG] = flags
    return X


def by_the_formula(net: Transformer, x: np.ndarray) -> np.ndarray:
    """One prompt, token by token and key by key."""
    h = x
    for part in net.layers:
        a = part.attention
        keys = [j for j in range(len(h)) if a.context is None or h[j, a.context] != 0]
        for _ in range(part.repeat):
            h = h @ part.feedforward[0].weight + part.feedforward[0].bias
            h = np.stack(
                [token + sum(of_head(a, i, h, k, keys) for i in range(a.heads)) for k, token in enumerate(h)]
            )
    return h @ net.last_readout[0].weight + net.last_readout[0].bias


def of_head(a: Attention, i: int, h: np.ndarray, k: int, keys: list[int]) -> np.ndarray:
    q = h[k] @ a.W_Q[i] + a.b_Q[i]
    near = [j for j in keys if not a.causal or j <= k]
    near = [j for j in near if a.window is None or k - a.window < j <= k]
    if not near:
        return np.zeros(h.shape[1])
    K, V = h[near] @ a.W_K[i] + a.b_K[i], h[near] @ a.W_V[i]
    if a.kind == "mesa":
        return q @ np.linalg.inv(K.T @ K + a.ridge[i] * np.eye(SIZE)) @ K.T @ V @ a.W_O[i]
    l = K @ q
    weights = {
        "softmax": np.exp(l - l.max()) / np.exp(l - l.max()).sum(),
        "hardmax": (l == l.max()) / (l == l.max()).sum(),
        "linear": l / (len(near) if a.mean else 1),
        "relu": np.maximum(l, 0) / (len(near) if a.mean else 1),
    }[a.kind]
    return weights @ V @ a.W_O[i]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_numpy_torch_and_onnx_follow_the_formula(case: dict, tmp_path: Path) -> None:
    net, rng = model(case), np.random.default_rng(1)
    loops = case["repeat"] > 1 and case["context"] is not None  # a loop's feed-forward moves the flag: read once
    X = prompts(rng, [0, 1, 1, 0, 1, 0])
    wanted = np.stack([by_the_formula(net, x) for x in X])
    if loops:
        assert not np.allclose(net.feedforward[0].weight[:, FLAG], np.eye(WIDTH)[:, FLAG])
    np.testing.assert_allclose(evaluate(net, X), wanted, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        np.testing.assert_allclose(to_torch(net)(torch.tensor(X)).numpy(), wanted, rtol=1e-9, atol=1e-9)
    session = onnxruntime.InferenceSession(to_onnx(net, tmp_path / "net.onnx").read_bytes())
    given = {"tokens": X, "lengths": np.full(3, 6)}
    np.testing.assert_allclose(session.run(["outputs"], given)[0], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_padding_changes_nothing_and_dtype_is_kept(case: dict) -> None:
    net, rng = model(case, np.float32), np.random.default_rng(2)
    X = prompts(rng, [1, 0, 1, 1, 0]).astype(np.float32)
    lengths = np.array([5, 3, 1])
    X[np.arange(5) >= lengths[:, None]] = 0
    whole = evaluate(net, X, lengths)
    assert whole.dtype == np.float32
    assert {a.dtype for a in trace(net, X, lengths).values.values()} == {np.dtype(np.float32)}
    for x, k, found in zip(X, lengths, whole, strict=True):
        np.testing.assert_allclose(found[:k], evaluate(net, x[None, :k])[0], rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        found = to_torch(net)(torch.tensor(X), torch.tensor(lengths)).numpy()
    inside = np.arange(5) < lengths[:, None]
    np.testing.assert_allclose(found[inside], whole[inside], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_structure_and_tensors_are_the_whole_network(case: dict) -> None:
    net = model(case)
    again = structure.rebuild_network(structure.describe_structure(net), dict(net.tensors()), net.attention.causal)
    assert structure.describe_structure(again) == structure.describe_structure(net)
    X = prompts(np.random.default_rng(4), [1, 1, 0])
    np.testing.assert_array_equal(evaluate(again, X), evaluate(net, X))


def test_a_trace_holds_every_loop_and_layer() -> None:
    kept = trace(
        model(next(case for case in CASES if case["repeat"] == 3)), prompts(np.random.default_rng(5), [1, 1, 0])
    )
    assert {"loop0.context", "loop2.context", "layer1.context", "context", "readout.0"} <= set(kept)
    np.testing.assert_array_equal(kept["context"], kept["layer1.context"])
    np.testing.assert_array_equal(kept["a"], kept["context"][..., 0])


def test_long_prompts_are_evaluated_some_queries_at_a_time(monkeypatch) -> None:
    X = prompts(np.random.default_rng(6), [1] * 40)
    nets = [model(case) for case in CASES]
    whole = [evaluate(net, X) for net in nets]
    monkeypatch.setattr("onelayer.network.blocks.ATTENTION_BYTES", 1 << 10)
    monkeypatch.setattr("onelayer.network.heads.CAUSAL_BLOCK", 7)
    for net, wanted in zip(nets, whole, strict=True):
        np.testing.assert_allclose(evaluate(net, X), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "mesa"])
def test_causal_sums_take_no_matrix_of_tokens(kind: str) -> None:
    """Of 3,000 tokens one of bytes would take 9 MB."""
    rng = np.random.default_rng(7)
    net = replace(
        layer(rng, 1, kind=kind, causal=True, context=FLAG), readout=(Linear(np.eye(WIDTH), np.zeros(WIDTH)),)
    )
    X = rng.uniform(-1, 1, (1, 3000, WIDTH))
    tracemalloc.start()
    evaluate(net, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "mesa"}, "a positive ridge"),
        ({"ridge": np.ones(2)}, "no other has one"),
        ({"kind": "softmax", "mean": True}, "only sums are divided"),
        ({"context": WIDTH}, "no channel 5"),
        ({"window": 0}, "at least one token"),
        ({"kind": "mesa", "ridge": np.ones(2), "window": 2}, "mesa attention has none"),
        ({"kind": "mesa", "ridge": np.zeros(2)}, "a positive ridge"),
    ],
)
def test_options_that_make_no_sense_are_refused(change: dict, words: str) -> None:
    net = layer(np.random.default_rng(0), 2, kind="linear")
    with pytest.raises(ValueError, match=words):
        Transformer(replace(net.attention, **change))


def test_layers_that_do_not_follow_each_other_are_refused() -> None:
    net = layer(np.random.default_rng(0), 1, kind="linear")
    out = (Linear(np.ones((WIDTH, 1)), np.zeros(1)),)
    with pytest.raises(ValueError, match="only the last layer has a readout"):
        replace(net, readout=out, further=(net,))
    with pytest.raises(ValueError, match="is one layer"):
        replace(net, further=(replace(net, further=(net,)),))
    with pytest.raises(ValueError, match="at least once"):
        replace(net, repeat=0)
    grows = replace(net, feedforward=(Linear(np.ones((3, WIDTH)), np.zeros(WIDTH)),))
    with pytest.raises(ValueError, match="takes what attention gives"):
        replace(grows, repeat=2)


def test_onnx_writes_out_no_more_loops_than_it_can(tmp_path: Path) -> None:
    net = layer(np.random.default_rng(0), 1, kind="linear", repeat=1025)
    with pytest.raises(OptionError, match=r"at most 1024 loops.*there are 1,025"):
        to_onnx(net, tmp_path / "net.onnx")
