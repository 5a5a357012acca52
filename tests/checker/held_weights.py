"""Networks by hand whose tokens hold the weights of a loop, for tests of how it rounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.claims import Claim
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.floats import FLOATS, Floats
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.rounding import Shape
from tests.checker.looped import INNER, LAYER, descent, program

ONE, NOTHING, HALF = (f"const {value.hex()}" for value in (1.0, 0.0, 0.5))
ETA = 0.25
SINGLE = Floats(*FLOATS["float32"])
#: Channels of a token: x, y, the flag of examples, 1, and w.
X, Y, FLAG, UNIT, W = [0, 1], 2, 3, 4, [5, 6]
EXAMPLE, QUERY = [*INNER, "y 0", ONE], [*INNER, NOTHING, ONE]
E7 = np.eye(7)


def read(**changes: Any) -> Algorithm:
    own = {"example": program(EXAMPLE, 2, 3, 7, 8, 8, 0, 1), "query": program(QUERY, 2, 3, 7, 7, 8, 0, 1)}
    return read_algorithm(descent(**own | changes), "here")


def head(score: dict[int, tuple[int, float]], value: dict[int, tuple[int, float]]) -> Any:
    """Products of channels that make a score, and which channels are written, from which, times what."""
    Q, K, V, O = np.zeros((7, 4)), np.zeros((7, 4)), np.zeros((7, 2)), np.zeros((2, 7))
    for at, (asking, (key, weight)) in enumerate(score.items()):
        Q[asking, at], K[key, at] = 1.0, weight
    for at, (to, (key, weight)) in enumerate(value.items()):
        V[key, at], O[at, to] = weight, 1.0
    return Q, K, V, O


def step(eta: float = ETA, a: float = -1.0, b: float = 1.0, c: float = 0.0) -> Any:
    """a <w, x> + b y + c, times eta x."""
    score = {W[0]: (X[0], a), W[1]: (X[1], a), UNIT: (Y, b), FLAG: (UNIT, 0.0)}
    Q, K, V, O = head(score, {W[0]: (X[0], eta), W[1]: (X[1], eta)})
    K[UNIT, 2] += c
    return Q, K, V, O


def shrinking(share: float) -> Any:
    return head({UNIT: (UNIT, 1.0)}, {W[0]: (W[0], -share), W[1]: (W[1], -share)})


def cutting(threshold: Any, copied: float = 1.0) -> dict[str, Any]:
    """A hidden layer of every channel and its opposite, less a threshold where w is."""
    bias = np.zeros(7)
    bias[W] = -np.asarray(threshold)
    found = {"feedforward.0.weight": np.concatenate([E7, -E7], axis=1), "feedforward.0.bias": np.tile(bias, 2)}
    return found | {"feedforward.1.weight": copied * np.concatenate([E7, -E7]), "feedforward.1.bias": np.zeros(7)}


def network(*heads: Any, kind: str = "linear", dtype: str = "float64", repeat: int = 3, **more: Any) -> Network:
    """A loop, and a layer in which <w, x> is added to y."""
    parts = [np.stack(part) for part in zip(*(heads or (step(),)), strict=True)]
    held = {f"attention.W_{name}": part for name, part in zip("QKVO", parts, strict=True)} | more
    last = head({W[0]: (X[0], 1.0), W[1]: (X[1], 1.0)}, {Y: (UNIT, 1.0)})
    held |= {f"1.attention.W_{name}": part[None] for name, part in zip("QKVO", last, strict=True)}
    held |= {"1.readout.0.weight": E7[:, [Y]], "1.readout.0.bias": np.zeros(1)}
    loop = LAYER | {"attention": kind, "context": FLAG, "repeat": repeat}
    itself = LAYER | {"context": None, "mean": False, "window": 1, "repeat": 1}
    return build({k: a.astype(dtype) for k, a in held.items()}, {"template": "looped/1", "layers": [loop, itself]})


def fractions(*numbers: float) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


def shape(*pieces: tuple[float, ...], shrink: float = 0.0, threshold: float = 0.0) -> Shape:
    return Shape([fractions(*piece) for piece in pieces], Fraction(shrink), Fraction(threshold), W)  # type: ignore[misc]


def taking(eta: float) -> dict[str, Any]:
    lines = ["s 0", "s 1", "m 0", "m 1", f"const {eta.hex()}", "mul 2 4", "mul 3 4", "add 0 5", "add 1 6"]
    return {"step": program(lines, 7, 8)}


def claim(a: Algorithm, arith: str = "float32", **numbers: float) -> Claim:
    return Claim("rounds", arith, "token", {"bound": 1.0, "x": 1.0, "y": 1.0, "examples": 10.0} | numbers, a)
