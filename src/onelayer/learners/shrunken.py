"""Residuals that a linear feed-forward layer shrinks and extrapolates, and linear attention moves: the compact
block of ridge regression, plain and accelerated.

Tokens [x, y, r, p, flag] with r = y - <w, x>, p the residual of the state before. With u = a w - b w_before, the
block is w <- u + eta mean_i (y_i - <u, x_i>) x_i, and the answer (a - b) <w, x>. Its fixed point is the minimiser
of mean (y - <u, x>)^2 / 2 + penalty |u|^2 / 2 with penalty = (1 - (a - b)) / ((a - b) eta). a and b are multiples
of a power of two, so that 1 - a + b, with which y comes in, is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer.learners.built import Setting, layer, unit
from onelayer.network import Transformer
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import dot, write

#: a and b are multiples of 2^-GRID.
GRID = {"float32": 20, "float64": 40}


@dataclass(frozen=True)
class Shrinking:
    """u = a w - b w_before."""

    eta: float
    a: float
    b: float

    @property
    def keep(self) -> float:
        return self.a - self.b

    @property
    def penalty(self) -> Fraction:
        """Exactly, of the mean loss."""
        keep = Fraction(self.a) - Fraction(self.b)
        return (1 - keep) / (keep * Fraction(self.eta))

    @staticmethod
    def of(setting: Setting, eta: float, penalty: float, accelerated: bool) -> Shrinking:
        """Shrinking by 1/(1 + eta penalty); accelerated with the b = a^2/4 that is fastest."""
        unit_ = 2.0 ** -GRID[setting.dtype]
        keep = 1 / (1 + eta * penalty)
        if not accelerated:
            return Shrinking(eta, float(max(unit_, np.floor(keep / unit_) * unit_)), 0.0)
        root = np.sqrt(1 - keep)
        a = float(np.floor(2 * (1 - root) / unit_) * unit_)
        return Shrinking(eta, a, float(np.ceil(a * a / 4 / unit_) * unit_))


def network(setting: Setting, given: Shrinking, steps: int) -> Transformer:
    d, q, memory = setting.d, setting.outputs, given.b != 0
    x, y, r = list(range(d)), list(range(d, d + q)), list(range(d + q, d + 2 * q))
    p = list(range(d + 2 * q, d + 3 * q)) if memory else []
    width = d + (3 if memory else 2) * q + 1
    W = np.zeros((width, width))
    W[x, x] = W[y, y] = W[-1, -1] = 1.0
    W[r, r], W[y, r] = given.a, 1 - given.a + given.b
    if memory:
        W[p, r], W[r, p] = -given.b, 1.0
    head = (unit(width, *x), unit(width, *x), unit(width, *r, scale=-given.eta), unit(width, *r).T)
    names = [f"x{i}" for i in range(d)] + [f"{c}{i}" for c in ("yrp" if memory else "yr") for i in range(q)]
    return layer(
        setting,
        [head],
        "linear",
        feedforward=[(W, np.zeros(width))],
        readout=[(unit(width, *r, scale=-given.keep), np.zeros(q))],
        repeat=steps,
        channels=(*names, "flag"),
        context=width - 1,
        mean=True,
    )


def algorithm(setting: Setting, given: Shrinking, steps: int) -> Algorithm:
    """The state is w, and the w before it where b is not 0."""
    d, q, memory = setting.d, setting.outputs, given.b != 0
    one = q * d
    size = one * (2 if memory else 1)

    def shrunk(s: list[Any]) -> list[Any]:
        if not memory:
            return [w * given.a for w in s]
        return [w * given.a - v * given.b for w, v in zip(s[:one], s[one:], strict=True)]

    def predict(w: list[Any], x: list[Any]) -> list[Any]:
        return [dot(w[j * d : (j + 1) * d], x) for j in range(len(w) // d)]

    def term(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        return [(v - p) * u for v, p in zip(y, predict(shrunk(s), x), strict=True) for u in x]

    def step(s: list[Any], m: list[Any]) -> list[Any]:
        return [u + g * given.eta for u, g in zip(shrunk(s), m, strict=True)] + (s[:one] if memory else [])

    def example(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        both = y * (2 if memory else 1)
        return [*x, *y, *(v - p for v, p in zip(both, predict(s, x), strict=True)), 1.0]

    def query(s: list[Any], x: list[Any]) -> list[Any]:
        return [*x, *([0.0] * q), *(-p for p in predict(s, x)), 0.0]

    return Algorithm(
        d,
        q,
        one,
        steps,
        (0.0,) * size,
        "mean",
        term=write(term, s=size, x=d, y=q),
        step=write(step, s=size, m=one),
        answer=write(lambda s, x: [p * given.keep for p in predict(s[:one], x)], s=size, x=d),
        example=write(example, s=size, x=d, y=q),
        query=write(query, s=size, x=d),
    )
