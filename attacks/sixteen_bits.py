"""False claims in float16 and bfloat16: each is true of wider numbers, or of one order of summation only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attacks.counterexamples import COPY, IDENTITY, Counterexample, Tensors, adding_ones, bundle, claim

#: Significant bits, the exponent of the least normal number, and that of the first power of two that is infinite.
FORMATS = {"float16": (11, -14, 16), "bfloat16": (8, -126, 128)}


def sixteen_bit_claims() -> Iterator[Counterexample]:
    for arith, (bits, least, first) in FORMATS.items():
        yield from _sums(arith, bits)
        yield from _attention(arith, bits, first)
        yield from _ends(arith, bits, least, first)


def _of(arith: str, name: str, why: str, model: Tensors, tokens: object, answers: object, eps: float = 0):
    b = bundle("float32", model, tokens, answers, claim("memorizes", arith, eps=eps))
    return Counterexample(f"{name}, in {arith}", why, b)


def _sums(arith: str, bits: int) -> Iterator[Counterexample]:
    def of(name: str, why: str, x: list[float], weights: list[float], answer: float) -> Counterexample:
        first = {"readout.0.weight": np.array(weights)[:, None], "readout.0.bias": [0]}
        return _of(arith, name, why, first | IDENTITY, [[x]], [answer])

    top, small, x = 2.0**bits, 2.0 ** -(bits + 1), 1 + 2.0 ** -(bits // 2 + 1)
    yield of(
        "whole numbers beyond the mantissa", f"{top:g} + 1 is {top:g}, the answer 0", [top, 1, top], [1, 1, -1], 1
    )
    yield of("two terms", "the second is lost", [1, small], [1, 1], 1 + small)
    yield of("a product that rounds", "it has more bits than the format", [x], [x], x * x)
    terms = 1 << bits
    model = {"readout.0.weight": np.full((1, terms), small), "readout.0.bias": np.zeros(terms)}
    model |= {"readout.1.weight": np.ones((1, terms, 1)), "readout.1.bias": [1]}
    why = "added to the bias one by one each is lost: the answer is 1"
    yield _of(arith, "a block that begins with its bias", why, model, [[[1]]], [1.5], 2**-10)


def _attention(arith: str, bits: int, first: int) -> Iterator[Counterexample]:
    many = 64
    for name, model in adding_ones(many):
        why, top = "added one after the other to the stream, each is lost", 2.0**bits
        yield _of(arith, f"{name} that are added one by one", why, model, [[[top, 1]]], [top + many], 8)
    model = {"attention.W_V": [[[2.0 ** (first - 2)]]], **COPY, **IDENTITY}
    yield _of(
        arith, "zero times infinity", "the value is infinite, W_O is 0, the answer NaN", model, [[[16]]], [16], 1
    )
    scale = 2.0 ** (first - 6)
    model = {"attention.W_V": [[[scale]]], "attention.W_O": [[[1 / scale]]], **COPY, **IDENTITY}
    why = "64 values are infinite before the division"
    tokens = np.full((1, many, 1), 16.0)
    yield _of(arith, "averages normalised late", why, model, tokens, [32.0] * many, 1)


def _ends(arith: str, bits: int, least: int, first: int) -> Iterator[Counterexample]:
    below, back = 2.0 ** (least - 1), 2.0 ** (1 - least - 1)
    model = {**COPY, "readout.1.weight": [[[below]]], "readout.1.bias": [0]}
    yield _of(arith, "a subnormal weight", "it may be flushed: the answer is 0", model, [[[back]]], [0.5], 2**-6)
    model = {"feedforward.0.weight": [[[back]]], "feedforward.0.bias": [0], **COPY, **IDENTITY}
    yield _of(arith, "a subnormal token", "it may be flushed: the answer is 0", model, [[[below]]], [0.5], 2**-6)
    half = 2.0 ** (first - 1)
    model = {"readout.0.weight": [[1], [1], [-1]], "readout.0.bias": [0], **IDENTITY}
    yield _of(arith, "a sum that overflows", "its first two terms are infinite", model, [[[half] * 3]], [half])
    model = {**COPY, "readout.1.weight": [[1]], "readout.1.bias": [0]}
    answer = 2.0**bits + 1
    yield _of(arith, "an answer between two numbers", "none is it", model, [[[answer - 1]]], [answer])
