"""Heads average what is there; they store nothing.

Statement  on sequences of equal tokens every layer of softmax or hardmax attention is one affine map, whatever its
           queries, keys and biases, causal or not.
Gives      a quarter of a target's second difference as error of every model with an affine readout.
Rests on   nothing: the average of equal values is that value, for any weights of the average.
Why        "attention routes each region to its output value" needs a nonlinear readout or appended tokens.
Differs    stated with the constant; a readout with one ReLU ends it. Sums in place of averages (linear, relu,
           mesa), windows, flagged keys, loops and further layers are not covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.errors import HypothesisError
from onelayer.impossible.collision import Target, has_positions, has_token_ids, refuse, stream
from onelayer.network import Transformer
from onelayer.network.blocks import apply_stack
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["constant_outputs"]
Array = NDArray[Any]


@dataclass(frozen=True)
class OnALine:
    """Three sequences of equal tokens x, (x + y)/2 and y."""

    first: Array  # [n, d]
    middle: Array
    last: Array

    def error_lower(self, target: Target) -> float:
        """With outputs a, (a + b)/2, b the errors e satisfy f(x) - 2 f(m) + f(y) = e_x - 2 e_m + e_y."""
        f, g, h = (np.asarray(target(Z), np.float64) for Z in (self.first, self.middle, self.last))
        quarter = float(np.abs(f - 2 * g + h).max()) / 4
        rounding = float(np.finfo(np.float64).eps) * float((np.abs(f) + 2 * np.abs(g) + np.abs(h)).max())
        return max(0.0, quarter - rounding)


def hypotheses(model: Transformer) -> None:
    """Refuse a model that is not affine in a single token, or whose equal tokens do not stay equal."""
    parts = (
        ("a feed-forward stack before attention", bool(model.feedforward)),
        ("a readout of several layers", len(model.last_readout) > 1),
        ("token ids", has_token_ids(model)),
        ("positions", has_positions(model)),
    )
    needs = "an affine embedding and an affine readout around one layer that averages, without positions"
    refuse("constant_outputs", needs, model, parts, "Leave it out to see the limit.")


def witness(x: ArrayLike, y: ArrayLike, n: int = 2) -> OnALine:
    """n equal tokens x, then their middle with y, then y."""
    a, b = np.atleast_1d(np.asarray(x, np.float64)), np.atleast_1d(np.asarray(y, np.float64))
    if a.shape != b.shape or a.ndim != 1 or (a == b).all() or not np.isfinite(np.abs(a) + np.abs(b)).all():
        raise HypothesisError(
            "constant_outputs", "two different finite tokens of one width", f"got {a} and {b}", "Choose others."
        )
    middle = a / 2 + b / 2
    if any(2 * Fraction(m) != Fraction(s) + Fraction(t) for m, s, t in zip(middle, a, b, strict=True)):
        raise HypothesisError(
            "constant_outputs", "tokens whose middle is exact", f"got {a} and {b}", "Round them to fewer bits."
        )
    return OnALine(*(np.tile(token, (n, 1)) for token in (a, middle, b)))


def conclusion(model: Transformer, token: ArrayLike) -> Array:
    """The output [q] at a sequence of equal tokens, without running attention: h (1 + sum W_V W_O), then readout.

    The weights of a head are not negative and add up to 1, so its average of n equal values is that value.
    """
    hypotheses(model)
    h = stream(model, np.atleast_2d(np.asarray(token, np.float64)))
    update = sum(h @ model.attention.W_V[i] @ model.attention.W_O[i] for i in range(model.attention.heads))
    context = h + update
    output: Array = (apply_stack(model.readout, context) if model.readout else context)[0]
    return output
