"""False claims about functions that look provable; ``why`` says where the network is further from the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attacks.bundle import Bundle
from attacks.counterexamples import IDENTITY, Counterexample, Tensors, bundle

#: A readout that answers 0, whatever it reads; its first layer is to be given.
SILENT: Tensors = {
    "readout.1.weight": [[0]],
    "readout.1.bias": [0],
    "readout.2.weight": [[0]],
    "readout.2.bias": [0],
}
#: Of the first simplex 8 + 1620 2^-40 can be proved, at its finest boxes; for 4 more they are looked at.
EDGE = 8 + 1624 * 2.0**-40
COPY: Tensors = {"readout.0.weight": [[1]], "readout.0.bias": [0]}


def about(kind: str, arith: str, target: Any, scope: str = "token", **numbers: float) -> dict[str, Any]:
    given = {name: float(x).hex() for name, x in numbers.items()}
    return {"type": kind, "arith": arith, "scope": scope, "target": target, **given}


def constant(value: float, n: int = 1, q: int = 1) -> dict[str, Any]:
    """A target that is the same number everywhere."""
    lines = [["const", float(value).hex()]]
    return {"n": n, "d": 1, "per": "token", "components": q, "lines": lines, "outputs": [0] * n * q}


def interpolator(values: Any, dtype: str, H: float, scale: float, bias: float = 0.0) -> Tensors:
    """Hats on a grid that begins at 0, of ``values`` with one axis per token; ``bias`` is the last layer's."""
    W = np.asarray(values, np.float64)
    m, V = W.ndim, W.size
    at = np.stack(np.unravel_index(np.arange(V), W.shape), axis=1) * H
    width = 1 + 2 * m  # the token, its place, and a copy of each
    place, places = np.zeros((m, width)), np.arange(m)
    place[:, 1 : 1 + m] = np.eye(m)
    query, key, value = (np.zeros((m, width, m)) for _ in range(3))
    out, first = np.zeros((m, m, width)), np.zeros((m, V, m, 2))
    for r in range(m):
        query[r, 1 + places, r], key[r, 1 + places, places] = 1024, 1
        value[r, 0, 0], out[r, 0, 1 + m + r] = 1, 1
        first[r, :, r] = 1, -1
    model = {"embedding.lift": np.eye(1, width), "embedding.positions": place}
    model |= {f"attention.W_{name}": a for name, a in zip("QKVO", (query, key, value, out), strict=True)}
    layers = [(np.eye(m, width, 1 + m).T * scale, np.zeros(m))]
    layers.append((first.reshape(m, -1), np.stack([-at, at], axis=2)))
    for i in range(1, m):
        block = np.eye(2 * m)
        for side in (0, 1):
            block[side : 2 * i : 2, 2 * i + side] = -1
        layers.append((np.tile(block, (V, 1, 1)), np.zeros(V * 2 * m)))
    layers += [(np.full((V, 2 * m, 1), -1), np.full(V, H)), (W.reshape(-1, 1), np.full(1, bias))]
    for i, (weight, b) in enumerate(layers):
        model |= {f"readout.{i}.weight": weight, f"readout.{i}.bias": np.ravel(b)}
    return {name: np.asarray(a, dtype) for name, a in model.items()}


def everywhere(model: Tensors, dtype: str, arith: str, target: Any, high: float, bound: float) -> Bundle:
    n = len(model["embedding.positions"])
    claim = about("sup_error_everywhere", arith, target, low=0, high=high, bound=bound)
    return bundle(dtype, model, np.zeros((1, n, 1)), np.zeros(n), claim)


def false_claims() -> Iterator[Counterexample]:
    for make in (_undefined_targets, _means, _tokens_read, _cancelling_hats, _hats):
        yield from make()


def _undefined_targets() -> Iterator[Counterexample]:
    """Targets that have no value somewhere between the cells."""
    names = {"a pole between the cells": "div", "a root of negative numbers between the cells": "sqrt"}
    for name, op in names.items():
        lines = [["x", 0, 0], ["const", (1.0).hex()], ["div", 1, 0] if op == "div" else ["abs", 0]]
        lines += [["const", (-0.25).hex()], ["add", 2, 3], ["sqrt", 4]] if op == "sqrt" else []
        target = constant(0) | {"lines": lines, "outputs": [len(lines) - 1]}
        claim = about("sup_error", "real", target, bound=3, radius=0.25, low=-1, high=1, measure=0.5)
        b = bundle("float64", COPY | SILENT, [[[-0.75]], [[0.75]]], [0, 0], claim)
        yield Counterexample(name, "at 0 there is no such number; a target must be defined on the whole box", b)


def _means() -> Iterator[Counterexample]:
    """lp_error: powers that underflow, and inputs that lie in no cell."""
    whole = {"radius": 1, "low": -1, "high": 1}
    claim = about("lp_error", "real", constant(2.0**-20), p=64, bound=2.0**-1000, **whole)
    b = bundle("float64", COPY | SILENT, [[[0]]], [0], claim)
    yield Counterexample("powers below all floats", "the error is 2^-20 everywhere", b)
    claim = about("lp_error", "float32", constant(0), p=1, bound=1, radius=1, low=-(2.0**100), high=2.0**100)
    b = bundle("float32", SILENT | {"readout.0.weight": [[2.0**40]], "readout.0.bias": [0]}, [[[0]]], [0], claim)
    yield Counterexample("overflow between cells", "beyond 2^88 the coordinate is infinite, the answer NaN", b)
    places = {"embedding.lift": [[1]], "embedding.positions": [[0], [0]]}
    assumed = {"lipschitz": (1.0).hex(), "error": (0.0).hex(), "symmetric": False}
    claim = about("lp_error", "real", assumed, p=1, bound=0.75, radius=0.375, low=-0.5, high=1.5)
    b = bundle("float64", COPY | SILENT | places, [[[0], [1]]], [0, 0], claim)
    yield Counterexample("cells that are not stored", "max(|x|, |y - 1|), 0.875 in the mean, may be the target", b)
    terms = 1 << 18
    small = np.full((terms, 2), 2.0**-54)
    small[0] = 1
    model = {"readout.1.weight": np.zeros((1, terms)), "readout.1.bias": np.ones(terms)}
    model |= {"readout.2.weight": small, "readout.2.bias": [0, 0], **COPY}
    claim = about("lp_error", "real", constant(0, q=2), p=1, bound=1 + 2.0**-37, radius=0, low=-1, high=1)
    b = bundle("float64", model, [[[0]]], [0, 0], claim)
    b.data["answers"] = np.zeros((1, 2))
    yield Counterexample("an answer of many small terms", "it is more than 1 + 2^-37 everywhere", b)


def _tokens_read() -> Iterator[Counterexample]:
    """Tokens are real numbers; whatever is computed from them is a float32."""
    r = 1.5 * 2.0**-24
    claim = about(
        "sup_error", "float32", constant(1), bound=r * (1 + 2.0**-20), radius=r, low=0.5, high=1.5, measure=1
    )
    b = bundle("float32", COPY | IDENTITY, [[[1]]], [1], claim)
    yield Counterexample("a token between two numbers", "1 + 1.25 2^-24 is read as 1 + 2^-23", b)
    added = 2.0**-24
    model = {"embedding.lift": [[1, 0]], "embedding.positions": [[0, 1]], "attention.W_V": [[[0], [1]]]}
    model |= {"attention.W_O": [[[added, 0]]], "readout.0.weight": [[1], [0]], "readout.0.bias": [0]}
    lines = [["x", 0, 0], ["const", added.hex()], ["add", 0, 1]]
    target = constant(0) | {"lines": lines, "outputs": [2]}
    claim = about("sup_error_everywhere", "float32", target, bound=1.2 * 2.0**-24, low=1, high=1 + 2.0**-10)
    b = bundle("float32", model | IDENTITY, [[[1]]], [1], claim)
    why = "1 + 0.99 2^-24 is read as 1, and 1 + 2^-24 computed as 1 once more"
    yield Counterexample("a token that is rounded twice", why, b)
    far, model = 2.0**130, {"embedding.lift": [[0]]} | COPY | IDENTITY
    why = "2^130 is read as infinity, and zero times infinity is NaN"
    claim = about("sup_error_everywhere", "float32", constant(0), bound=2.0**10, low=-far, high=far)
    yield Counterexample("tokens that overflow", why, bundle("float32", model, [[[0]]], [0], claim))
    claim = about("sup_error", "float32", constant(0), bound=1, radius=far, low=-far, high=far, measure=0)
    yield Counterexample("a cell that overflows", why, bundle("float32", model, [[[0]]], [0], claim))


def _cancelling_hats() -> Iterator[Counterexample]:
    """Hats whose values W H + b are 0, as the difference of large numbers."""
    W = float(np.float32(1234567.0))
    model = interpolator(np.full(5, W), "float32", 16, 64, -16 * W)
    b = everywhere(model, "float32", "float32", constant(0), 0.9, 2.0**-10)
    yield Counterexample("answers that cancel", "products near 2^24 are rounded to whole numbers", b)
    W = 2.0**40 * (1 + 2.0**-52)
    b = everywhere(interpolator(np.full(5, W), "float64", 3, 16, -3 * W), "float64", "real", constant(0), 0.7, 2e-5)
    yield Counterexample("values that the checker rounds", "3 W is half a unit of 2^-11 from the bias", b)


def _hats() -> Iterator[Counterexample]:
    b = everywhere(interpolator([[1, 100], [1, 1]], "float64", 8, 8), "float64", "real", constant(0, 2), 0.9, EDGE)
    yield Counterexample("a bad vertex of the last simplex", "around (0, 1) the answers are up to 800", b)
    model = interpolator([0, 1], "float32", 1, 2.0**-127)
    lines = [["x", 0, 0], ["const", (2.0**-127).hex()], ["mul", 0, 1]]
    target = constant(0) | {"lines": lines, "outputs": [2]}
    b = everywhere(model, "float32", "float32", target, 2.0**120, 2.0**-10)
    yield Counterexample("a subnormal scale", "it may be flushed, and all coordinates are 0", b)
    model = interpolator(np.zeros(5), "float32", 16, 16)
    model["attention.W_O"][0, 0, 0] = 2.0**127
    b = everywhere(model, "float32", "float32", constant(0), 3.5, 1)
    yield Counterexample("a channel that nobody reads", "it overflows, and zero times infinity is NaN", b)
    model = interpolator(np.full(5, 2.0**110), "float32", 2.0**20, 2.0**20)
    b = everywhere(model, "float32", "float32", constant(2.0**130), 3.5, 2.0**115)
    yield Counterexample("answers that overflow", "a hat of 2^20 times 2^110 is infinite in float32", b)
    model = interpolator([1, 1], "float64", 1, 2.0**-1024)
    b = everywhere(model, "float64", "real", constant(600), 0.9, 1)
    yield Counterexample("a grid that no float reaches", "the answer is 1, but cells are 2^1024 wide", b)
