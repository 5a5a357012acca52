"""Tokens that carry the weights w of a linear model: the form of Bai et al. 2023, for ridge, lasso and logistic.

Tokens [x, y, w, 1, flag]. A head has queries made of w and 1, keys of x, y and 1, and values made of x, written
to w. A last layer, in which every token sees itself only, multiplies w with x and writes <w, x> to the y of a
query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.learners.built import Head, Setting, layer, unit
from onelayer.network import Transformer
from onelayer.network.weights import Kind
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Array, write

Stack = Sequence[tuple[Array, Array]]


@dataclass(frozen=True)
class Layout:
    """Where a token of d components has what."""

    d: int

    @property
    def x(self) -> list[int]:
        return list(range(self.d))

    @property
    def y(self) -> int:
        return self.d

    @property
    def w(self) -> list[int]:
        return list(range(self.d + 1, 2 * self.d + 1))

    @property
    def one(self) -> int:
        return 2 * self.d + 1

    @property
    def flag(self) -> int:
        return 2 * self.d + 2

    @property
    def width(self) -> int:
        return 2 * self.d + 3

    def head(self, sign: float, weight: float, of_y: float, knot: float = 0.0, slope: float = 1.0) -> Head:
        """Adds weight times kind(sign (slope <w, x> + of_y y - knot)) x to w."""
        n, d = self.width, self.d
        Q, K = np.zeros((n, d + 2)), np.zeros((n, d + 2))
        Q[self.w, range(d)], Q[self.one, d], Q[self.one, d + 1] = sign * slope, sign * of_y, -sign * knot
        K[self.x, range(d)], K[self.y, d], K[self.one, d + 1] = 1.0, 1.0, 1.0
        return Q, K, unit(n, *self.x, scale=weight), unit(n, *self.w).T

    def shrink(self, weight: float) -> Head:
        """Adds weight times w to w; every token holds the same w."""
        one = unit(self.width, self.one)
        return one, one, unit(self.width, *self.w, scale=weight), unit(self.width, *self.w).T


def network(
    setting: Setting,
    heads: Sequence[Head],
    kind: Kind,
    steps: int,
    feedforward: Stack = (),
    readout: Stack | None = None,
) -> Transformer:
    """The block in a loop, and the layer that multiplies; it has the same feed-forward part."""
    at = Layout(setting.d)
    product = (unit(at.width, *at.w), unit(at.width, *at.x), unit(at.width, at.one), unit(at.width, at.y).T)
    answer = readout or [(unit(at.width, at.y), np.zeros(1))]
    last = layer(setting, [product], "linear", feedforward=feedforward, readout=answer, causal=True, window=1)
    names = (*(f"x{i}" for i in range(at.d)), "y", *(f"w{i}" for i in range(at.d)), "one", "flag")
    return layer(
        setting,
        heads,
        kind,
        feedforward=feedforward,
        repeat=steps,
        channels=names,
        further=(last,),
        context=at.flag,
        mean=True,
    )


def algorithm(
    d: int,
    steps: int,
    term: Callable[..., Any],
    step: Callable[..., Any],
    answer: Callable[..., Any],
) -> Algorithm:
    """The state is what tokens carry as w."""
    return Algorithm(
        d,
        1,
        d,
        steps,
        (0.0,) * d,
        "mean",
        term=write(term, s=d, x=d, y=1),
        step=write(step, s=d, m=d),
        answer=write(answer, s=d, x=d),
        example=write(lambda s, x, y: [*x, *y, *s, 1.0, 1.0], s=d, x=d, y=1),
        query=write(lambda s, x: [*x, 0.0, *s, 1.0, 0.0], s=d, x=d),
    )


def one_output(setting: Setting, name: str) -> None:
    if setting.outputs != 1:
        needs, remedy = "one output, whose weights a token carries", "Build one learner for each output."
        raise HypothesisError(name, needs, f"outputs={setting.outputs}", remedy)
