"""The graph over balls against section 3 of the specification, written out token by token; and its shapes."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from onelayer_checker.core import graph
from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import build
from tests.checker.large import ARITHMETICS

N, n, d, W, V, c = 5, 3, 2, 4, 3, 2


def drawn(rng, *shape: int) -> np.ndarray:
    return np.round(rng.standard_normal(shape) * 64) / 128


def tensors(
    rng, *, source="lift", heads=2, s=2, bias=True, positions=True, before=(), biases="QK", blind="", alike=False
):
    """Weights of a network whose first layers are of the given shapes."""
    T = {}
    first = before[0] if before else (W,)
    width = first[-2] * (first[0] if len(first) == 3 else 1) if before else W
    if source == "lift":
        T["embedding.lift"] = drawn(rng, d, width)
    if source == "table":
        T["embedding.table"] = drawn(rng, V, width)
    if source and bias:
        T["embedding.bias"] = drawn(rng, width)
    if source and positions:
        T["embedding.positions"] = drawn(rng, n + 1, width)
    for i, shape in enumerate(before):
        out = shape[-1] * (shape[0] if len(shape) == 3 else 1)
        T |= {f"feedforward.{i}.weight": drawn(rng, *shape), f"feedforward.{i}.bias": drawn(rng, out)}
    T |= {f"attention.W_{name}": drawn(rng, heads, W, s) for name in "QKV"} | {
        "attention.W_O": drawn(rng, heads, s, W)
    }
    T |= {f"attention.b_{name}": drawn(rng, heads, s) for name in biases}
    for name in blind:
        T[f"attention.W_{name}"] = np.zeros((heads, W, s))
        T.pop(f"attention.b_{name}", None)
    if alike:
        T["attention.W_Q"] = np.zeros((heads, W, s))
    T |= {"readout.0.weight": drawn(rng, W, c), "readout.0.bias": drawn(rng, c)}
    return T | {"readout.1.weight": drawn(rng, c, 1), "readout.1.bias": drawn(rng, 1)}


def affine(x: list[float], weight: np.ndarray, bias: np.ndarray) -> list[float]:
    """One sum after the other; of a block-diagonal matrix each block has its own inputs."""
    blocks = weight if weight.ndim == 3 else weight[None]
    a = blocks.shape[1]
    out = [
        sum(x[g * a + i] * block[i, j] for i in range(a))
        for g, block in enumerate(blocks)
        for j in range(block.shape[1])
    ]
    return [value + b for value, b in zip(out, bias.tolist(), strict=True)]


def plainly(T, tokens, causal: bool) -> list[list[float]]:
    """The coordinates of all tokens of one sequence."""
    stream = []
    for k, token in enumerate(tokens):
        if "embedding.table" in T:
            h = T["embedding.table"][token].tolist()
        elif "embedding.lift" in T:
            h = affine(list(token), T["embedding.lift"], np.zeros(T["embedding.lift"].shape[1]))
        else:
            h = list(token)
        for name in ("bias", "positions"):
            if f"embedding.{name}" in T:
                more = T[f"embedding.{name}"] if name == "bias" else T[f"embedding.{name}"][k]
                h = [x + y for x, y in zip(h, more.tolist(), strict=True)]
        i = 0
        while f"feedforward.{i}.weight" in T:
            h = [max(x, 0.0) for x in h] if i else h
            h = affine(h, T[f"feedforward.{i}.weight"], T[f"feedforward.{i}.bias"])
            i += 1
        stream.append(h)
    heads, _, s = T["attention.W_Q"].shape
    out = []
    for k in range(len(tokens)):
        z = list(stream[k])
        for r in range(heads):
            none = np.zeros((heads, s))
            q, *keys = (
                affine(h, T[f"attention.W_{name}"][r], T.get(f"attention.b_{name}", none)[r])
                for h, name in [(stream[k], "Q"), *((h, "K") for h in stream)]
            )
            values = [affine(h, T["attention.W_V"][r], none[r]) for h in stream]
            seen = range(k + 1) if causal else range(len(tokens))
            logits = {j: sum(x * y for x, y in zip(q, keys[j], strict=True)) for j in seen}
            e = {j: math.exp(x - max(logits.values())) for j, x in logits.items()}
            average = [sum(e[j] * values[j][i] for j in seen) / sum(e.values()) for i in range(s)]
            z = [x + y for x, y in zip(z, affine(average, T["attention.W_O"][r], np.zeros(W)), strict=True)]
        out.append([max(x, 0.0) for x in affine(z, T["readout.0.weight"], T["readout.0.bias"])])
    return out


def found(T, X, lengths, radius, A, last, causal=False, known=True):
    """Midpoints and radii of all tokens, [N, n, c], or of the last ones, [N, 1, c]."""
    network = build(T, causal)
    beforehand = network.known(X, radius, A) if known else None
    parts = list(network.coordinates(X, lengths, radius, A, last, beforehand))
    assert [rows.start for rows, _ in parts] == [0, *(rows.stop for rows, _ in parts[:-1])]
    assert parts[-1][0].stop == len(X)
    return tuple(np.concatenate([getattr(t, part) for _, t in parts]) for part in ("m", "r"))


NETWORKS = {
    "a lift": {},
    "a table": {"source": "table"},
    "a table without a bias": {"source": "table", "bias": False},
    "no positions": {"positions": False},
    "no bias": {"bias": False},
    "nothing before attention": {"source": ""},
    "layers": {"before": ((W, 6), (6, W))},
    "only layers": {"source": "", "before": ((W, 6), (6, W))},
    "blocks": {"before": ((2, 2, 3), (6, W))},
    "a table and layers": {"source": "table", "before": ((W, 6), (3, 2, 2), (6, W))},
    "one head": {"heads": 1, "s": 1},
    "three heads": {"heads": 3, "s": 1},
    "no biases of keys": {"biases": "Q"},
    "no biases of queries": {"biases": "K"},
    "no biases": {"biases": ""},
    "queries are zero": {"blind": "Q"},
    "keys are zero": {"blind": "K"},
    "queries are biases": {"alike": True},
    "queries are biases, of a table": {"source": "table", "alike": True, "heads": 1},
    "nothing is seen": {"blind": "QK"},
    "a table of which nothing is seen": {"source": "table", "blind": "QK"},
    "as many heads as numbers in the stream": {"source": "table", "blind": "QK", "heads": W, "s": 1},
}
LENGTHS = {"full": np.full(N, n), "ragged": np.array([3, 1, 2, 3, 2])}


def sequences(rng, T, lengths):
    if "embedding.table" in T:
        return rng.integers(0, V, (N, n))
    first = T.get("embedding.lift", T.get("feedforward.0.weight"))
    width = W if first is None else first.shape[-2] * (first.shape[0] if first.ndim == 3 else 1)
    X = drawn(rng, N, n, width)
    X[np.arange(n) >= lengths[:, None]] = 99.0  # padding
    return X


CUT = (
    "queries are biases",
    "queries are biases, of a table",
    "a lift",
    "a table and layers",
    "three heads",
    "nothing is seen",
    "a table of which nothing is seen",
)


@pytest.mark.parametrize(
    ("name", "block"), [(name, 1 << 18) for name in NETWORKS] + list(product(CUT, (1, 40, 200)))
)
def test_coordinates_are_those_of_the_specification(monkeypatch, name, block) -> None:
    """In whatever blocks, for all tokens and for the last ones, causal or not, ragged or not."""
    for size, value in (("BLOCK", block), ("QUERIES", 1)):
        monkeypatch.setattr(graph, size, value)
    rng = np.random.default_rng([len(name), block])
    T = tensors(rng, **NETWORKS[name])
    for causal, lengths in product((False, True), LENGTHS.values()):
        X = sequences(rng, T, lengths)
        wanted = [plainly(T, X[i, : lengths[i]].tolist(), causal) for i in range(N)]
        for A, known in ((REAL, True), (REAL, False), (FLOAT64, True)):
            m, r = found(T, X, lengths, 0.0, A, False, causal, known)
            ends, spread = found(T, X, lengths, 0.0, A, True, causal, known)
            assert m.shape == r.shape == (N, n, c)
            assert ends.shape == spread.shape == (N, 1, c)
            for i, length in enumerate(lengths):
                np.testing.assert_allclose(m[i, :length], wanted[i], rtol=0, atol=1e-10)
                np.testing.assert_allclose(ends[i, 0], wanted[i][-1], rtol=0, atol=1e-10)
                assert (r[i, :length] < 1e-8).all()
                assert (spread[i] < 1e-8).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_what_the_arithmetic_rounds_and_what_moves_is_inside(name) -> None:
    """Radii grow with the unit of the arithmetic; tokens that move stay inside their ball, and fill much of it."""
    rng = np.random.default_rng(len(name))
    T = tensors(rng, **NETWORKS[name])
    X, lengths = sequences(rng, T, LENGTHS["full"]), LENGTHS["full"]
    for last in (False, True):
        single, double = (found(T, X, lengths, 0.0, A, last)[1] for A in (FLOAT32, FLOAT64))
        assert (single.max() > 0) == (double.max() > 0)
        assert single.max() > 1e6 * double.max() or not double.max()
    if X.dtype == np.int64:
        return
    m, r = found(T, X, lengths, 1e-4, FLOAT64, False)
    reached = np.zeros_like(m)
    for sign in product((-1, 1), repeat=2):
        moved = X + 1e-4 * np.resize(sign, X.shape)
        for i in range(N):
            error = np.abs(np.array(plainly(T, moved[i].tolist(), False)) - m[i])
            assert (error <= r[i]).all()
            reached[i] = np.maximum(reached[i], error)
    assert (reached.max() > 0.01 * r.max()) == (r.max() > 0)


def test_queries_that_are_biases_are_asked_once(monkeypatch) -> None:
    """One row of logits for each sequence; a row for each token where queries differ, see different keys, or where
    0 times a number that overflows would not be 0."""
    rows = []
    honest = graph.softmax
    monkeypatch.setattr(graph, "softmax", lambda x, *rest: rows.append(x.m.shape[2]) or honest(x, *rest))
    rng = np.random.default_rng(8)
    T = tensors(rng, alike=True)
    X, lengths = sequences(rng, T, LENGTHS["full"]), LENGTHS["full"]
    for causal, last, expected in ((False, False, 1), (True, False, n), (False, True, 1), (True, True, 1)):
        rows.clear()
        found(T, X, lengths, 0.0, FLOAT32, last, causal)
        assert set(rows) == {expected}
    assert build(T).asks_alike
    assert not build(T, causal=True).asks_alike
    assert not build(tensors(rng)).asks_alike
    rows.clear()
    with np.errstate(all="ignore"):
        found(T, X * 1e38, lengths, 0.0, FLOAT32, False)
    assert set(rows) == {n}


def test_a_part_of_what_is_known_has_its_places() -> None:
    """Some sequences, up to the longest of them: the same coordinates as all of them with padding."""
    rng = np.random.default_rng(9)
    for options in ({"source": "table"}, {"source": "table", "blind": "QK"}, {"source": "table", "alike": True}):
        T = tensors(rng, **options)
        network, lengths = build(T), np.array([2, 1, 2, 1, 2])
        X = sequences(rng, T, lengths)
        known = network.known(X, 0.0, REAL)
        rows = np.array([4, 0, 1])
        assert known.at(rows, 2).n == 2
        (_, t), *_ = network.coordinates(X[rows, :2], lengths[rows], 0.0, REAL, False, known.at(rows, 2))
        whole = found(T, X, lengths, 0.0, REAL, False)[0][rows, :2]
        for one, other, length in zip(t.m, whole, lengths[rows], strict=True):
            np.testing.assert_allclose(one[:length], other[:length], rtol=0, atol=1e-12)


def test_equal_numbers_are_looked_up(monkeypatch) -> None:
    """Of tokens that are one number, of which few differ, each is computed once: the coordinates are the same."""
    rng = np.random.default_rng(3)
    T = tensors(rng, before=((W, W),))
    T["embedding.lift"] = drawn(rng, 1, W)
    few, many = rng.choice([0.5, -1.25, 2.0], (N, n, 1)), rng.standard_normal((N, n, 1))
    network = build(T)
    assert network.known(few, 0.0, REAL) is not None
    assert network.known(many, 0.0, REAL) is None
    assert network.known(drawn(rng, N, n, 2)[..., :2], 0.0, REAL) is None
    one = rng.standard_normal((n, 1, 1))
    assert network.known(one, 0.0, REAL) is not None  # as many as sequences
    ids = build(tensors(rng, source="table"))
    assert ids.known(np.zeros((V, n), np.int64), 0.0, REAL) is not None
    assert ids.known(np.zeros((V - 1, n), np.int64), 0.0, REAL) is None
    assert ids.known(np.zeros((2 * V, n), np.int64), 0.0, REAL, 0.5) is not None
    assert ids.known(np.zeros((2 * V, n), np.int64), 0.0, REAL, 0.49) is None  # the rest is padding
    for block in (1, 7, 1 << 18):
        monkeypatch.setattr(graph, "BLOCK", block)
        for radius, last in product((0.0, 0.125), (False, True)):
            a, b = (found(T, few, LENGTHS["full"], radius, FLOAT32, last, known=k) for k in (True, False))
            np.testing.assert_allclose(a[0], b[0], rtol=0, atol=1e-12)
            np.testing.assert_allclose(a[1], b[1], rtol=1e-9)


def test_whole_numbers_stay_exact() -> None:
    """A table, its bias, positions and uniform attention of whole numbers in a power of two places."""
    T = tensors(np.random.default_rng(4), source="table", blind="QK", heads=1)
    for name in T:
        T[name] = np.round(T[name] * 4)
    network = build(T)
    h = network.embed(np.zeros((2, n), np.int64), 0.0, FLOAT32)
    assert not h.r.any()
    wanted = T["embedding.table"][0] + T["embedding.bias"] + T["embedding.positions"][:n]
    assert h.m.tolist() == [*wanted.tolist(), *wanted.tolist()]


def test_tokens_are_known_up_to_their_radius() -> None:
    T = tensors(np.random.default_rng(5), source="")
    h = build(T).lifted(np.ones((1, n, W)), 0.25, REAL)
    assert h.m.tolist() == [[1] * W] * n
    assert h.r.tolist() == [[0.25] * W] * n


def parsed(T, **other):
    return build({name: a for name, a in (T | other).items() if a is not None})


def refused(T, **other) -> None:
    with pytest.raises(Malformed) as error:
        parsed(T, **other)
    assert error.value.gate == "graph"


WHOLE = tensors(np.random.default_rng(6), before=((W, 6), (3, 2, 2), (6, W)))


def test_a_network_keeps_its_weights() -> None:
    for dtype in (np.float32, np.float64):
        network = build({name: a.astype(dtype) for name, a in WHOLE.items()}, causal=True)
        assert network.dtype == dtype
        assert network.causal
        assert all(a.dtype == np.float64 for a in network.tensors.values())
        assert [layer.weight.shape for layer in network.feedforward.layers] == [(W, 6), (3, 2, 2), (6, W)]
        assert network.bottleneck.weight.shape == (W, c)
        assert [layer.weight.shape for layer in network.readout.layers] == [(c, 1)]
    assert not build(WHOLE).causal


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_tensor_that_is_missing_is_missed(name) -> None:
    if name in ("embedding.bias", "embedding.positions", "attention.b_Q", "attention.b_K"):
        parsed(WHOLE, **{name: None})
    else:
        refused(WHOLE, **{name: None})


@pytest.mark.parametrize(
    "name", ["attention.b_V", "attention.b_O", "embedding.x", "readout.3.bias", "x", "readout.2.x"]
)
def test_an_unknown_tensor_is_refused(name) -> None:
    refused(WHOLE, **{name: np.zeros(1)})


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_tensor_of_another_shape_or_dtype_is_refused(name) -> None:
    a = WHOLE[name]
    shapes = {(*a.shape, 1), a.shape[1:], (1, *a.shape), (0, *a.shape[1:])}
    for axis, more in product(range(a.ndim), (-1, 1)):
        shapes.add(tuple(k + more * (i == axis) for i, k in enumerate(a.shape)))
    fits = {"embedding.lift": {(d + 1, W), (d - 1, W)}, "embedding.positions": {(n, W), (n + 2, W)}}
    fits["readout.1.weight"] = {(1, c, 1)}  # one block is a full matrix
    fits["feedforward.0.weight"] = {(1, W, 6)}
    fits["feedforward.2.weight"] = {(1, 6, W)}
    for shape in shapes - fits.get(name, set()):
        if name in ("embedding.lift", "embedding.positions") and shape[0] == 0:
            continue  # files have no tensor without numbers
        refused(WHOLE, **{name: np.zeros(shape)})
    for shape in fits.get(name, set()):
        parsed(WHOLE, **{name: np.zeros(shape)})
    for dtype in (np.float32, np.int64, np.float16):
        refused(WHOLE, **{name: a.astype(dtype)})


def test_all_tensors_have_one_known_dtype() -> None:
    for dtype in (np.int64, np.float16, ">f8"):
        refused({name: a.astype(dtype) for name, a in WHOLE.items()})


def test_parts_that_do_not_fit_together_are_refused() -> None:
    refused(WHOLE, **{"embedding.table": np.zeros((V, W))})
    bare = tensors(np.random.default_rng(7), source="")
    parsed(bare)
    refused(bare, **{"embedding.bias": np.zeros(W)})
    refused(bare, **{"embedding.positions": np.zeros((n, W))})
    parsed(bare, **{"feedforward.0.weight": np.zeros((9, W)), "feedforward.0.bias": np.zeros(W)})
    refused(bare, **{"feedforward.0.weight": np.zeros((9, W + 1)), "feedforward.0.bias": np.zeros(W + 1)})
    refused(bare, **{"readout.1.weight": None, "readout.1.bias": None})
    refused(bare, **{"readout.0.weight": np.zeros((2, 2, 1)), "readout.0.bias": np.zeros(2)})
    refused(
        bare,
        **{f"attention.W_{name}": np.zeros((1, W, 0)) for name in "QKV"} | {"attention.W_O": np.zeros((1, 0, W))},
    )
    twice = {"readout.2.weight": np.zeros((1, 3)), "readout.2.bias": np.zeros(3)}
    parsed(bare, **twice)
    refused(bare, **twice, **{"readout.4.weight": np.zeros((3, 3)), "readout.4.bias": np.zeros(3)})
    refused(bare, **twice | {"readout.2.weight": np.zeros((2, 3))})


def test_no_arithmetic_is_forgotten() -> None:
    assert list(ARITHMETICS) == ["real", "float64", "float32"]
