"""Layers of heads on two numbers, attention first, written by hand; and what they answer, in long doubles."""

from __future__ import annotations

from typing import Any

import numpy as np

from attacks.bundle import Bundle
from attacks.counterexamples import bundle
from attacks.functions import about
from onelayer_checker.core.graph import Network, build
from onelayer_checker.functions.expansions import Heads, Patches
from onelayer_checker.functions.targets import Program, read_program

Array = np.ndarray
#: x1 + (x1 - x2)^3, at either token.
CUBIC = {
    "n": 2,
    "d": 1,
    "per": "token",
    "components": 1,
    "lines": [
        ["x", 0, 0],
        ["x", 1, 0],
        ["sub", 0, 1],
        ["mul", 2, 2],
        ["mul", 3, 2],
        ["sub", 1, 0],
        ["mul", 5, 5],
        ["mul", 6, 5],
        ["add", 0, 4],
        ["add", 1, 7],
    ],
    "outputs": [8, 9],
}
#: A step of 2 at x = 0 that is as steep as 12 times the difference: two slopes, of which one makes it narrower.
SLOPES, SHIFTS, WEIGHTS = [12.0, 12.0, 6.0, 0.0], [0.5, -0.5, 0.0, 0.25], [2.5, -1.5, -2.25, 0.25]
KNOTS, OUT, CONSTANT = [-1.5, -0.5, -0.25, 0.5, 1.25], [1.5, -2.0, 1.0, 0.75, -1.25], -1.0


def program(entry: dict[str, Any] = CUBIC) -> Program:
    return read_program(entry, "target")


def tensors(
    slopes: Any = SLOPES,
    shifts: Any = SHIFTS,
    weights: Any = WEIGHTS,
    knots: Any = KNOTS,
    out: Any = OUT,
    constant: float = CONSTANT,
) -> dict[str, Array]:
    H = len(slopes)
    one = np.ones((H, 1, 1))
    return {
        "attention.W_Q": np.reshape(slopes, (H, 1, 1)).astype(float),
        "attention.W_K": one,
        "attention.W_V": one,
        "attention.W_O": np.reshape(weights, (H, 1, 1)).astype(float),
        "attention.b_Q": np.reshape(shifts, (H, 1)).astype(float),
        "readout.0.weight": np.ones((1, len(knots))),
        "readout.0.bias": -np.asarray(knots, float),
        "readout.1.weight": np.reshape(out, (-1, 1)).astype(float),
        "readout.1.bias": np.array([constant]),
    }


def network(**parts: Any) -> Network:
    return build(tensors(**parts))


def claimed(model: dict[str, Array], target: Any = CUBIC, dtype: str = "float64", **numbers: Any) -> Bundle:
    given = {"radius": 0.0, "low": -1.0, "high": 1.0, "p": 2.0, "bound": 1.0} | numbers
    arith, scope = given.pop("arith", "real"), target["per"]
    claim = about("lp_error", arith, target, scope, **given)
    middle = (given["low"] + given["high"]) / 2
    return bundle(dtype, model, np.full((1, 2, 1), middle), [0.0] * len(target["outputs"]), claim)


def summed(heads: Heads, x: Array, other: Array) -> Array:
    """S, in long doubles."""
    x, other = x.astype(np.longdouble), other.astype(np.longdouble)
    u = (x[:, None] * heads.slope + heads.shift) * ((x - other) / 2)[:, None]
    return np.asarray(np.tanh(u) @ heads.weight.astype(np.longdouble))


def answers(T: dict[str, Array], x: Array, other: Array) -> Array:
    """Of the token x beside the other one: the layer as it is defined, with a softmax over both."""
    x, other = x.astype(np.longdouble)[:, None], other.astype(np.longdouble)[:, None]
    query = x * T["attention.W_Q"][:, 0, 0] + T["attention.b_Q"][:, 0]
    first = 1 / (1 + np.exp(-query * (x - other)))
    z = x[:, 0] + (first * x + (1 - first) * other) @ T["attention.W_O"][:, 0, 0].astype(np.longdouble)
    hidden = np.maximum(z[:, None] + T["readout.0.bias"], 0)
    return np.asarray(hidden @ T["readout.1.weight"][:, 0].astype(np.longdouble) + T["readout.1.bias"][0])


def mean_on_grid(T: dict[str, Array], target: Any, p: int, low: float, high: float, n: int = 300) -> float:
    """By the middles of cells: about the mean, of which no more than a little can be missed by a fine grid."""
    axis = low + (high - low) * (np.arange(n) + 0.5) / n
    x, other = (a.ravel() for a in np.meshgrid(axis, axis))
    errors = [np.abs(answers(T, a, b) - target(a, b)) for a, b in ((x, other), (other, x))]
    return float((np.maximum(*errors) ** p).mean())


def cubic(x: Array, other: Array) -> Array:
    return np.asarray(x + (x - other) ** 3)


def cell_of(patches: Patches, x: Array) -> Array:
    return np.clip(np.searchsorted(patches.edges, x, "right") - 1, 0, len(patches.edges) - 2)
