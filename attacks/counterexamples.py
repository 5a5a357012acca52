"""False claims that look provable: each fits a gap through which a checker with a smaller ball would let it.

Every claim is false of some evaluation that section 4 of the specification allows; ``why`` says of which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attacks.bundle import Bundle

Tensors = dict[str, Any]
IDENTITY: Tensors = {"readout.1.weight": [[1]], "readout.1.bias": [0]}
COPY: Tensors = {"readout.0.weight": [[1]], "readout.0.bias": [0]}


@dataclass(frozen=True)
class Counterexample:
    name: str
    why: str
    bundle: Bundle


def claim(type: str, arith: str, **numbers: float) -> dict[str, str]:
    return {"type": type, "arith": arith, "scope": "token"} | {k: float(x).hex() for k, x in numbers.items()}


def real_names(positions: bool, scope: str) -> dict[str, Any]:
    """Names where there is nothing to name: tokens and answers are reals."""
    return {"format": "onelayer-names/1", "scope": scope, "causal": False, "positions": positions} | dict.fromkeys(
        ("tokens", "pieces", "answers")
    )


def bundle(dtype: str, model: Tensors, tokens: Any, answers: Any, *claims: dict[str, str]) -> Bundle:
    """A bundle around weights written by hand; attention that is not given is zero, of rank 1."""
    width, rank = len(model["readout.0.weight"]), np.shape(model.get("attention.W_K", [[[0]]]))[-1]
    zero: Tensors = {f"attention.W_{name}": np.zeros((1, width, rank)) for name in "QKV"}
    zero["attention.W_O"] = np.zeros((1, rank, width))
    certificate = {
        "format": "onelayer-certificate/2",
        "graph": {"template": "one-layer/1", "attention": "softmax", "causal": False},
        "profile": "ieee-any-order/1",
        "files": {},
        "claims": list(claims),
        "producer": {"name": "attacks", "version": "0"},
    }
    weights = {name: np.asarray(a, dtype) for name, a in (zero | model).items()}
    data = {"tokens": np.asarray(tokens, dtype), "answers": np.asarray(answers, np.float64).reshape(-1, 1)}
    return Bundle(
        certificate,
        weights,
        data,
        {},
        names=real_names("embedding.positions" in model, claims[0]["scope"] if claims else "token"),
    )


def counterexamples() -> Iterator[Counterexample]:
    for make in (_logits, _biases, _heads, _overflow, _flushed_operands, _plateaus, _exact):
        yield from make()


def _logits() -> Iterator[Counterexample]:
    """Logits whose balls are wider than 10^5, or infinite."""
    one_value = {"readout.0.weight": [[0], [1]], "readout.0.bias": [0], **IDENTITY}
    model = {
        "attention.W_Q": [[[2**40, 2**21, 2**40], [0, 0, 0]]],
        "attention.W_K": [[[0, 0.5, 0], [2**35, 1, -(2**35)]]],
        "attention.W_V": [[[0, 0, 0], [1, 0, 0]]],
        "attention.W_O": [[[0, 1], [0, 0], [0, 0]]],
        **one_value,
    }
    claims = [claim("memorizes", a, eps=2**-10) for a in ("real", "float64")]
    why = "the second logit is 2^21, twice the first, but its sum passes 2^75: the answer is 1"
    yield Counterexample("logits that cancel", why, bundle("float64", model, [np.eye(2)], [0, 1.5], *claims))
    apart = claim("separated", "real", r=2, delta=1.25)
    why = "the coordinates are 1 and 1.5"
    yield Counterexample("coordinates nearer", why, bundle("float64", model, [np.eye(2)], [0, 1.5], apart))
    model = {
        "attention.W_Q": np.full((1, 2, 2), 2.0**65),
        "attention.W_K": [[[0, 2.0**-45], [2.0**65, -(2.0**66)]]],
        "attention.W_V": [[[0, 0], [1, 0]]],
        "attention.W_O": [[[0, 1], [0, 0]]],
        **one_value,
    }
    b = bundle("float32", model, [np.eye(2)], [0, 1], claim("memorizes", "float32", eps=2**-10))
    yield Counterexample("logits that overflow", "2^130 - 2^131 is NaN in float32", b)
    model = {
        "attention.W_K": [[[1], [0]]],
        "attention.W_V": [[[0], [1]]],
        "attention.W_O": [[[0, 1]]],
        "attention.b_Q": [[2**24]],
        **one_value,
        "readout.0.bias": [8],
    }
    tokens = [[[0, 0], [-1, 100]]]
    b = bundle("float64", model, tokens, [8, 108], claim("robust", "real", radius=0.625, eps=2))
    yield Counterexample("a box of logits", "-0.5 and -0.45 are in it, and there the first answer is 108", b)


def _biases() -> Iterator[Counterexample]:
    """Sums that begin with the bias, 1, and lose each of many terms 2^-25 to rounding in float32."""
    width = 4098
    query, key, value, first = (np.zeros((width, 2)) for _ in range(4))
    query[2:, 0], key[0], value[1, 0], first[1, 0] = 2.0**-25, [128, -128], 1, 1
    model = {
        "attention.W_Q": query[None],
        "attention.b_Q": np.ones((1, 2)),
        "attention.W_K": key[None],
        "attention.W_V": value[None],
        "attention.W_O": value.T[None],
        "readout.0.weight": first[:, :1],
        "readout.0.bias": [0],
        **IDENTITY,
    }
    tokens = np.ones((1, 2, width))
    tokens[0, 0, :2] = 0
    logit = 128 * (width - 2) * 2.0**-25  # of the second token, for each query; of the first, 0
    weight = 1 / (1 + np.exp(-logit))
    b = bundle("float32", model, tokens, [weight, 1 + weight], claim("memorizes", "float32", eps=2**-12))
    yield Counterexample("a query that begins with its bias", "the query is 1, and the weight 1/2", b)
    terms = 1024
    model = {
        "readout.0.weight": np.full((1, terms), 2.0**-25),
        "readout.0.bias": np.zeros(terms),
        "readout.1.weight": np.ones((1, terms, 1)),
        "readout.1.bias": [1],
    }
    b = bundle("float32", model, [[[1]]], [1 + terms * 2.0**-25], claim("memorizes", "float32", eps=2**-20))
    yield Counterexample("a block that begins with its bias", "the answer is 1", b)


def adding_ones(many: int) -> Iterator[tuple[str, Tensors]]:
    """Networks whose heads, or the components of one head, each add the second channel of a token to the first."""
    for name, heads, rank in (("heads", many, 1), ("components", 1, many)):
        value, out, aside = np.zeros((heads, 2, rank)), np.zeros((heads, rank, 2)), np.zeros((heads, 2, rank))
        value[:, 1], out[..., 0] = 1, 1
        model = {"attention.W_Q": aside, "attention.W_K": aside, "attention.W_V": value, "attention.W_O": out}
        yield name, model | {"readout.0.weight": [[1], [0]], "readout.0.bias": [0], **IDENTITY}


def _heads() -> Iterator[Counterexample]:
    """A residual stream of 2^24 to which 64 heads, or 64 components of one head, add 1 each in float32."""
    many = 64
    for name, model in adding_ones(many):
        answer, why = [2.0**24 + many], "added one after the other to the stream, each is lost: the answer is 2^24"
        b = bundle("float32", model, [[[2.0**24, 1]]], answer, claim("memorizes", "float32", eps=8))
        yield Counterexample(f"{name} that are added one by one", why, b)


def _overflow() -> Iterator[Counterexample]:
    model = {"attention.W_V": [[[2.0**100]]], **COPY, **IDENTITY}
    b = bundle("float32", model, [[[2.0**50]]], [2.0**50], claim("memorizes", "float32", eps=1))
    yield Counterexample("zero times infinity", "the value is infinite, W_O is 0, the answer NaN", b)
    n = 64
    model = {"attention.W_V": [[[2.0**103]]], "attention.W_O": [[[2.0**-103]]], **COPY, **IDENTITY}
    b = bundle(
        "float32", model, np.full((1, n, 1), 2.0**20), [2.0**21] * n, claim("memorizes", "float32", eps=2**7)
    )
    yield Counterexample("averages normalised late", "64 values of 2^123 are infinite before the division", b)


def _flushed_operands() -> Iterator[Counterexample]:
    """Subnormal operands, flushed to zero before a large number meets them."""
    nearly = claim("memorizes", "float32", eps=2**-20)
    model = {**COPY, "readout.1.weight": [[[2.0**-127]]], "readout.1.bias": [0]}
    b = bundle("float32", model, [[[2.0**120]]], [2.0**-7], nearly)
    yield Counterexample("a subnormal weight in a block", "the answer is 0", b)
    model = {"feedforward.0.weight": [[[2.0**120]]], "feedforward.0.bias": [0], **COPY, **IDENTITY}
    b = bundle("float32", model, [[[2.0**-127]]], [2.0**-7], nearly)
    yield Counterexample("a subnormal token in a block", "the answer is 0", b)
    model = {**COPY, "readout.1.weight": [[0]], "readout.1.bias": [2.0**-1060]}
    b = bundle("float64", model, [[[1]]], [2.0**-1060], claim("memorizes", "float64", eps=0))
    yield Counterexample("a subnormal bias", "the answer is 0", b)


def _trapezoid(stack: str, start: int, up: float, bias: float, down: float, other: float, value: float) -> Tensors:
    """One group on one coordinate: units relu(up t + bias) and relu(-down t + other)."""
    layers = [([[up, -down]], [bias, other]), (np.full((1, 2, 1), -1), [1]), ([[value]], [0])]
    return {
        f"{stack}.{start + i}.{part}": array
        for i, layer in enumerate(layers)
        for part, array in zip(("weight", "bias"), layer, strict=True)
    }


def _plateaus() -> Iterator[Counterexample]:
    """Trapezoids whose edge lies beyond a number that may be flushed."""
    exactly = claim("memorizes", "float32", eps=0)
    model = {**COPY, **_trapezoid("readout", 1, 0, 0, 2.0**-127, 2.0**-6, 5)}
    b = bundle("float32", model, [[[1.5 * 2.0**121]]], [5], exactly)
    yield Counterexample("a subnormal slope", "without it the unit is 2^-6 and the answer 4.92", b)
    for sign, units in (("negative", (2.0**119, 2.0**-8, 0, 0)), ("positive", (0, 0, 2.0**119, 2.0**-8))):
        model = {**_trapezoid("feedforward", 0, *units, 5), **COPY, **IDENTITY}
        token = (1 if sign == "positive" else -1) * 1.5 * 2.0**-127
        b = bundle("float32", model, [[[token]]], [5], claim("memorizes", "float32", eps=2**-10))
        yield Counterexample(f"a {sign} subnormal token on a plateau", "at 0 the answer is 4.98", b)
    model = {**COPY, **_trapezoid("readout", 1, 1, -4, 1, 0.25, 2.0**-1060)}
    b = bundle("float64", model, [[[1]]], [2.0**-1060], claim("memorizes", "float64", eps=0))
    yield Counterexample("a subnormal value", "the answer is 0", b)
    model = {
        "readout.0.weight": [[0]],
        "readout.0.bias": [1.5 * 2.0**-127],
        **_trapezoid("readout", 1, 0, 0, 2.0**119, 2.0**-8, 5),
    }
    b = bundle("float32", model, [[[1]]], [5], exactly)
    yield Counterexample("a subnormal coordinate", "at 0 the answer is 4.98", b)
    c, slopes = 64, np.zeros((64, 2, 64, 2))
    slopes[range(c), 0, range(c), 0], slopes[0, 1, 0, 1] = 1, -1
    bias = np.zeros((2, c, 2))
    bias[1, 0, 1] = 1
    model = {
        "readout.0.weight": np.eye(c),
        "readout.0.bias": np.zeros(c),
        "readout.1.weight": slopes.reshape(c, -1),  # group 0 ends along every coordinate; group 1 is on from 1
        "readout.1.bias": bias.ravel(),
        "readout.2.weight": np.full((2, 2 * c, 1), -1),
        "readout.2.bias": [1, 1],
        "readout.3.weight": [[3], [5]],
        "readout.3.bias": [0],
    }
    b = bundle("float32", model, np.full((1, 1, c), 2.0**122), [5], exactly)
    yield Counterexample("units that overflow", "64 units of 2^122 are infinite in float32", b)
    exactly = claim("memorizes", "float64", eps=0)
    cells = [(4, -4, 0, 0), (4, -12, -4, 8), (4, -12, -4, 8), (0, 0, -4, 16)]  # up to 1, from 2 to 3, from 4 on
    b = bundle("float64", COPY | _cells(cells, [1, 5, 5, 9]), [[[2.5]]], [5], exactly)
    yield Counterexample("a cell that is written twice", "both are on, and the answer is 10", b)
    cells = [(0.25, -0.25, 0, 0), (4, -36, -4, 8), (0, 0, -4, 40)]  # up to 1, from 2 to 9, from 10 on
    b = bundle("float64", COPY | _cells(cells, [8, 5, 9]), [[[3]]], [5], exactly)
    yield Counterexample(
        "a ramp that reaches into a plateau", "the first cell is still on by half: the answer is 9", b
    )


def _cells(units: list[tuple[float, float, float, float]], values: list[float]) -> Tensors:
    """Cells along one coordinate, two units each, slope and bias; and what they add to the answer."""
    table = np.array(units, np.float64).reshape(-1, 2, 2)
    return {
        "readout.1.weight": table[:, :, 0].reshape(1, -1),
        "readout.1.bias": table[:, :, 1].ravel(),
        "readout.2.weight": np.full((len(table), 2, 1), -1),
        "readout.2.bias": np.ones(len(table)),
        "readout.3.weight": np.array(values)[:, None],
        "readout.3.bias": [0],
    }


def _exact() -> Iterator[Counterexample]:
    """Sums that look as if nothing were rounded."""

    def build_sum(x: list[float], weights: list[float], answer: float) -> Bundle:
        first = {"readout.0.weight": np.array(weights)[:, None], "readout.0.bias": [0]}
        return bundle("float32", first | IDENTITY, [[x]], [answer], claim("memorizes", "float32", eps=0))

    b = build_sum([2.0**24, 1, 2.0**24], [1, 1, -1], 1)
    yield Counterexample("whole numbers beyond the mantissa", "2^24 + 1 is 2^24 in float32, the answer 0", b)
    b = build_sum([1, 2.0**-30], [1, 1], 1 + 2.0**-30)
    yield Counterexample("two terms", "1 + 2^-30 is 1 in float32", b)
    x = 1 + 2.0**-20
    b = build_sum([x], [x], x * x)
    yield Counterexample("a product that rounds", "(1 + 2^-20)^2 has 41 bits", b)
    tiny = 2.0**-600
    first = {"feedforward.0.weight": [[tiny]], "feedforward.0.bias": [0]}
    model = first | {"feedforward.1.weight": [[2.0**600]], "feedforward.1.bias": [0], **COPY}
    model |= {"readout.1.weight": [[2.0**400]], "readout.1.bias": [0]}
    b = bundle("float64", model, [[[tiny]]], [0], claim("memorizes", "real", eps=0))
    yield Counterexample("a product below all floats", "the answer is 2^-200", b)
    model = {"attention.W_Q": [[[0], [1]]], "attention.W_K": [[[0], [2.0**-70]]], "attention.W_V": [[[1], [0]]]}
    model |= {"attention.W_O": [[[1, 0]]], "readout.0.weight": [[1], [0]], "readout.0.bias": [0], **IDENTITY}
    claims = [claim("memorizes", "real", eps=0)]
    b = bundle("float64", model, [[[1, 0], [3, 1]]], [3, 5], *claims)
    yield Counterexample("an average near a whole number", "at the second token it is 2 + 2^-71 or so", b)
    rows = _trapezoid("readout", 1, 1, -4, 1, 0.25, 1)
    rows["readout.3.bias"] = [2.0**-30]
    b = bundle("float32", COPY | rows, [[[1]]], [1 + 2.0**-30], claim("memorizes", "float32", eps=0))
    yield Counterexample("a row and a bias", "1 + 2^-30 is 1 in float32", b)
    rows = _trapezoid("readout", 1, 1, -4, 1, 0.25, 2.0**24)
    rows["readout.3.bias"] = [1]
    b = bundle("float32", COPY | rows, [[[1]]], [2.0**24 + 1], claim("memorizes", "float32", eps=0))
    yield Counterexample("a row and a bias beyond the mantissa", "2^24 + 1 is 2^24 in float32", b)
    slopes = np.zeros((2, 1, 4))
    slopes[0, 0, :2], slopes[1, 0, 2] = (1, -1), 2.0**-1000
    model = {"readout.0.weight": np.eye(2), "readout.0.bias": [0, 0], "readout.1.weight": slopes.reshape(2, -1)}
    model |= {"readout.1.bias": [-4, 0.25, 2.0**100, 0], "readout.2.weight": np.full((1, 4, 1), -1)}
    model |= {"readout.2.bias": [1], "readout.3.weight": [[5]], "readout.3.bias": [0]}
    b = bundle("float64", model, np.ones((1, 1, 2)), [5], claim("memorizes", "real", eps=0))
    yield Counterexample("a unit that is always on", "its edge is at -2^1100; the answer is 0", b)
    third = (2**53 + 1) // 3
    model = COPY | {"readout.1.weight": [[1, 0, 1, 0]], "readout.1.bias": [-4, 0, -4, 0]}
    model |= {"readout.2.weight": np.full((2, 2, 1), -1), "readout.2.bias": [1, 1]}
    layers = [([[third], [third]], third), ([[2.0**-53]], 0), ([[1]], -1), ([[1000 * 2.0**53]], 0)]
    for i, (weight, bias) in enumerate(layers, start=3):
        model |= {f"readout.{i}.weight": weight, f"readout.{i}.bias": [bias]}
    b = bundle("float64", model, [[[1]]], [0], claim("memorizes", "real", eps=0))
    yield Counterexample(
        "two rows and a bias beyond the mantissa", "they add up to 2^53 + 1, the answer is 1000", b
    )
    yield from _far_away()


def _far_away() -> Iterator[Counterexample]:
    """Numbers near the ends of the range, met by cells and by exact sums."""
    cell = _trapezoid("readout", 1, 1, -4, 1, 0.25, 5)
    wide = {"readout.0.weight": np.diag([1, 2.0**100]), "readout.0.bias": [0, 0]}
    wide |= cell | {"readout.1.weight": np.concatenate([cell["readout.1.weight"], np.zeros((1, 2))])}
    b = bundle("float32", wide, [[[1, 2.0**100]]], [5], claim("memorizes", "float32", eps=0))
    yield Counterexample("a coordinate that no cell reads", "it is infinite, and the units NaN", b)
    slopes, biases = np.zeros((1, 512)), np.zeros(512)
    slopes[0, :256], slopes[0, 256], biases[256] = 1, -1, 1
    model = COPY | {"readout.1.weight": slopes, "readout.1.bias": biases}
    model |= {"readout.2.weight": np.full((2, 256, 1), -1), "readout.2.bias": [1, 1]}
    model |= {"readout.3.weight": [[3], [5]], "readout.3.bias": [0]}
    b = bundle("float32", model, [[[2.0**121]]], [5], claim("memorizes", "float32", eps=0))
    yield Counterexample("many units along one coordinate", "256 times 2^121 is infinite in float32", b)
    tiny, huge = 2.0**-600, 2.0**600
    carry = {"readout.1.weight": [[1, -1, 1, 0]], "readout.1.bias": [4, 0.25, 0, 0], "readout.2.bias": [1, 0]}
    carry |= {"readout.2.weight": [[[-1], [-1]], [[tiny], [0]]], "readout.3.weight": [[1], [tiny]]}  # no cell is on
    carry |= {"readout.3.bias": [0], "readout.4.weight": [[huge]], "readout.4.bias": [0]}
    carry |= {"readout.5.weight": [[huge]], "readout.5.bias": [0]}
    b = bundle("float64", COPY | carry, [[[1]]], [0], claim("memorizes", "real", eps=0))
    yield Counterexample("a carried product below all floats", "the answer is 1", b)
    for of, group, bias, last in (("weight", 2.0**124, 0, 2.0**-127), ("operand", 0, 2.0**-127, 2.0**124)):
        carry |= {"readout.2.weight": [[[-1], [-1]], [[group], [0]]], "readout.2.bias": [1, bias]}
        carry |= {"readout.3.weight": [[1], [last]], "readout.4.weight": [[8]], "readout.5.weight": [[1000]]}
        b = bundle("float32", COPY | carry, [[[1]]], [1000], claim("memorizes", "float32", eps=0))
        yield Counterexample(f"a subnormal {of} of a carried product", "it may be flushed, and the answer is 0", b)
    chain = {
        "readout.0.weight": [[tiny]],
        "readout.0.bias": [0],
        "readout.1.weight": [[huge]],
        "readout.1.bias": [0],
    }
    chain |= {
        "readout.2.weight": [[1]],
        "readout.2.bias": [-1],
        "readout.3.weight": [[huge]],
        "readout.3.bias": [0],
    }
    b = bundle("float64", chain, [[[1]]], [0], claim("robust", "real", radius=tiny, eps=0))
    yield Counterexample("a radius below all floats", "at 1 + 2^-600 the answer is 1", b)
