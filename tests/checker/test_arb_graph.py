"""Enclosures of the second engine: outward, searched as in full, and of networks as they are specified."""

from __future__ import annotations

import math
import sys

import flint
import numpy as np
import pytest

from onelayer_checker.arb import engine as arb_engine
from onelayer_checker.arb.graph import Stack, Trapezoids, outward
from onelayer_checker.core import graph as network
from onelayer_checker.core.samples import read_data


def test_outward_is_outward_and_tight() -> None:
    with flint.ctx.workprec(128):
        third = flint.arb(1) / 3
        assert outward(third) == (1 / 3, math.nextafter(1 / 3, 1))
        assert outward(flint.arb(0.1)) == (0.1, 0.1)
        assert outward(flint.arb((1, -1080))) == (0.0, 5e-324)
        assert outward(-flint.arb((1, -1080))) == (-5e-324, 0.0)
        assert outward(flint.arb((1, 2000))) == (sys.float_info.max, math.inf)
        for unknown in (flint.arb.nan(), flint.arb.pos_inf()):
            assert outward(unknown) == (-math.inf, math.inf)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_for_groups_finds_what_the_full_layers_say(seed) -> None:
    """Slopes of any size, groups in any order, overlapping or degenerate: searched and evaluated in full."""
    rng = np.random.default_rng(seed)
    c, K, q = 1 + seed % 3, 12, 2
    weight = rng.standard_normal((K, 2 * c, c)) * (np.arange(c) == np.repeat(np.arange(c), 2)[:, None])
    if seed >= 3:
        weight[rng.random(weight.shape) < 0.1] = 0.0  # units that never switch
    if seed >= 6:
        weight[::2] = rng.standard_normal((K // 2, 2 * c, c))  # units that read every coordinate
    tensors = {
        "readout.1.weight": np.eye(c),
        "readout.1.bias": np.full(c, 3.0),
        "readout.2.weight": weight.reshape(-1, c).T.copy(),
        "readout.2.bias": rng.normal(-1, 3, K * 2 * c),
        "readout.3.weight": np.full((K, 2 * c, 1), -1.0),
        "readout.3.bias": np.ones(K),
        "readout.4.weight": rng.standard_normal((K, q)),
        "readout.4.bias": rng.standard_normal(q),
    }
    searched, full = Stack(tensors, "readout", 1), Stack(tensors, "readout", 1)
    assert isinstance(searched.tail, Trapezoids)
    for other in ("weight", "bias"):
        assert Stack(tensors | {f"readout.3.{other}": tensors[f"readout.3.{other}"] * 2}, "readout", 1).tail is None
    full.tail = None
    full.layers = [(tensors[f"readout.{i}.weight"], tensors[f"readout.{i}.bias"]) for i in range(1, 5)]
    with flint.ctx.workprec(128):
        for t in rng.standard_normal((100, c)) * 3:
            wide = searched(flint, [flint.arb(y, 0.5) for y in t.tolist()])
            for x in (t, t - 0.5, t + 0.5):
                exact = [flint.arb(y) for y in x.tolist()]
                for a, b, w in zip(searched(flint, exact), full(flint, exact), wide, strict=True):
                    assert abs(a - b) < 1e-30
                    assert w.overlaps(b)


def random_network(rng) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Weights and data of random shapes, with or without each optional part."""
    d, w, s, c, q, length, count = rng.integers(1, 5, 7).tolist()
    kind = rng.choice(["lift", "table", "none"])
    w = d if kind == "none" else w
    model = {"lift": {"embedding.lift": (d, w)}, "table": {"embedding.table": (6, w)}, "none": {}}[kind]
    if kind != "none":
        model |= {"embedding.bias": (w,)} if rng.random() < 0.5 else {}
        model |= {"embedding.positions": (length + 1, w)} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        model |= {"feedforward.0.weight": (w, 4), "feedforward.0.bias": (4,)}
        model |= {"feedforward.1.weight": (2, 2, 3), "feedforward.1.bias": (6,)}
        w = 6
    model |= {f"attention.W_{name}": (1, w, s) for name in "QKV"} | {"attention.W_O": (1, s, w)}
    model |= {f"attention.b_{name}": (1, s) for name in "QK" if rng.random() < 0.5}
    model |= {"readout.0.weight": (w, c), "readout.0.bias": (c,)}
    model |= {"readout.1.weight": (c, 4), "readout.1.bias": (4,)}
    model |= {"readout.2.weight": (2, 2, q), "readout.2.bias": (2 * q,)}
    lengths = rng.integers(1, length + 1, count)
    tokens = rng.integers(0, 6, (count, length)) if kind == "table" else rng.standard_normal((count, length, d))
    data = {"tokens": tokens, "lengths": lengths, "answers": np.zeros((lengths.sum(), 2 * q))}
    return {name: rng.standard_normal(shape) for name, shape in model.items()}, data


def layers(T, name, start, x):
    while f"{name}.{start}.weight" in T:
        W, b = T[f"{name}.{start}.weight"], T[f"{name}.{start}.bias"]
        groups = W if W.ndim == 3 else W[None]
        x = np.concatenate([p @ G for p, G in zip(np.split(x, len(groups), -1), groups, strict=True)], -1) + b
        start += 1
        x = np.maximum(x, 0) if f"{name}.{start}.weight" in T else x
    return x


def plainly(T, x, ids: bool):
    """Section 3 of the specification, written down once more: coordinates and answers of one sequence."""
    h = T["embedding.table"][x] if ids else x @ T.get("embedding.lift", np.eye(x.shape[-1]))
    h = h + T.get("embedding.bias", 0) + T.get("embedding.positions", np.zeros((len(x), 1)))[: len(x)]
    h = layers(T, "feedforward", 0, h)
    Q, K, V, O = (T[f"attention.W_{name}"][0] for name in "QKVO")
    logits = (h @ Q + T.get("attention.b_Q", 0)) @ (h @ K + T.get("attention.b_K", 0)).T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    z = h + p @ (h @ V) / p.sum(axis=1, keepdims=True) @ O
    t = np.maximum(z @ T["readout.0.weight"] + T["readout.0.bias"], 0)
    return t, layers(T, "readout", 1, t)


@pytest.mark.parametrize("scale", [1.0, 30.0, 2.0**300])
@pytest.mark.parametrize("seed", range(12))
def test_random_networks_are_evaluated_as_specified(seed, scale) -> None:
    """Every optional part, small and huge logits; and inputs anywhere in a box, which is another path for exp."""
    rng = np.random.default_rng(seed)
    model, tensors = random_network(rng)
    model["attention.W_Q"] *= scale
    net = network.build(model)
    ids = "embedding.table" in model
    engine = arb_engine.Engine(net, read_data(tensors, net), 1, 512)
    sequences = zip(tensors["tokens"], tensors["lengths"], strict=True)
    t, out = (np.concatenate(a) for a in zip(*(plainly(model, x[:k], ids) for x, k in sequences), strict=True))
    bounds, size = engine.bounds(0.0), 1e-9 * (1 + np.abs(t).max() + np.abs(out).max())
    assert (np.abs(bounds[:, :-1] - t[:, :, None]) <= size).all()
    assert (np.abs(bounds[:, -1] - np.abs(out).max(axis=1)[:, None]) <= size).all()
    for radius in () if ids else (2.0**-20, 0.25):
        moved = tensors | {"tokens": tensors["tokens"] + radius * rng.uniform(-1, 1, tensors["tokens"].shape)}
        inside = arb_engine.Engine(net, read_data(moved, net), 1, 512).bounds(0.0)
        box = engine.bounds(radius)
        assert (box[..., 0] <= inside[..., 0]).all()
        assert (inside[..., 1] <= box[..., 1]).all()
        assert np.isfinite(box).all()
