"""What every learner is made of: the network, the algorithm that it is to be, and the constants that went in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError, OptionError
from onelayer.ledger import Constant
from onelayer.network import Attention, Linear, Transformer
from onelayer.network.weights import Kind, Layer
from onelayer.problems.algorithms import Algorithm

Array = NDArray[Any]
Head = tuple[Array, Array, Array, Array]  # W_Q, W_K, W_V, W_O
Reads = Literal["examples", "series"]


@dataclass(frozen=True)
class Setting:
    """What was asked for, of whatever learner: sizes, box, steps or tolerance, dtype."""

    d: int
    outputs: int
    low: float
    high: float
    steps: int | None
    tolerance: float | None
    dtype: str
    largest: float = 1.0  # answer, in magnitude

    @property
    def reach(self) -> float:
        """The largest component of an example, in magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def norm_squared(self) -> float:
        """B^2, the largest |x|^2 in the box."""
        return self.d * self.reach**2

    def round(self, value: float) -> float:
        """The nearest number of the dtype, which is what the weights hold."""
        return float(np.dtype(self.dtype).type(value))


@dataclass(frozen=True)
class Limit:
    """What the steps tend to, as the claim `within` names it: the ridge estimate of shrink and eta."""

    eta: float
    a: float  # what is stepped from is a times the state less b times the one before
    b: float
    late: bool = False  # the gradient is taken at the state itself, not at what is stepped from


@dataclass(frozen=True)
class Risk:
    """Over which tasks a layer is best, as the claim `minimises` names it, and by how little it is not."""

    examples: int
    half: float  # components of x are uniform on [-half, half]
    weight: float  # variance of the components of w, which are normal
    noise: float  # variance of what is added to y
    value: float
    gap: float


@dataclass(frozen=True)
class Built:
    """A learner before anything is proved of it."""

    transformer: Transformer
    algorithm: Algorithm
    constants: tuple[Constant, ...]
    says: str  # which algorithm it is, in a few words
    reads: Reads = "examples"
    limit: Limit | None = None
    risk: Risk | None = None
    labels: bool = False  # y must be 0 or 1
    lags: int = 1  # of a series: this many values before the one that is asked for
    affine: bool = False
    judges: float = 0.0  # the share of the examples that judge
    selects: tuple[float, float] | None = None  # delta and reach, as the claim names them


def unit(width: int, *channels: int, scale: float = 1.0) -> Array:
    """[width, channels] A matrix that selects channels."""
    chosen = np.zeros((width, len(channels)))
    chosen[list(channels), range(len(channels))] = scale
    return chosen


def layer(
    setting: Setting,
    heads: Sequence[Head],
    kind: Kind,
    *,
    feedforward: Sequence[tuple[Array, Array]] = (),
    readout: Sequence[tuple[Array, Array]] = (),
    repeat: int = 1,
    channels: tuple[str, ...] = (),
    further: tuple[Transformer, ...] = (),
    ridge: float | None = None,
    **options: Any,
) -> Transformer:
    """A layer of these heads in the dtype; smaller heads are filled up with zeros."""

    def stack_weights(at: int) -> Array:
        parts = [head[at] for head in heads]
        shape = tuple(max(part.shape[axis] for part in parts) for axis in range(2))
        padded = np.zeros((len(parts), *shape))
        for whole, part in zip(padded, parts, strict=True):
            whole[: part.shape[0], : part.shape[1]] = part
        return padded.astype(setting.dtype)

    def stack(layers: Sequence[tuple[Array, Array]]) -> tuple[Layer, ...]:
        return tuple(Linear(W.astype(setting.dtype), b.astype(setting.dtype)) for W, b in layers)

    W_Q, W_K, W_V, W_O = (stack_weights(at) for at in range(4))
    ridges = None if ridge is None else np.full(len(heads), ridge, setting.dtype)
    attention = Attention(W_Q, W_K, W_V, W_O, ridge=ridges, kind=kind, **options)
    return Transformer(attention, None, stack(feedforward), stack(readout), channels, repeat, further)


def steps_of(setting: Setting, name: str) -> int:
    """How many steps were asked for, by a learner that proves no tolerance."""
    if setting.tolerance is not None:
        needs = "a number of steps: no number of them is enough for all examples of a box"
        remedy = f'Give steps= instead, or use learner("ridge", penalty=..., tolerance={setting.tolerance:g}).'
        raise HypothesisError(name, needs, f"tolerance={setting.tolerance:g}", remedy)
    return 20 if setting.steps is None else setting.steps


def step_size(setting: Setting, name: str, eta: float | None, most: float, reason: str) -> float:
    """The step size that was asked for, or half of the largest; one that may diverge is refused."""
    if eta is None:
        return setting.round(most / 2)
    eta = positive(name, "eta", eta)
    if eta > most:
        found = f"B^2 = d max(|low|, |high|)^2 = {setting.norm_squared:g}; eta={eta:g}"
        needs = f"a step size of at most {reason} = {most:.6g}, or some examples of the box make it diverge"
        raise HypothesisError(name, needs, found, f"Use eta <= {most:.6g}, or leave it out.")
    return setting.round(eta)


def positive(name: str, what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < float(value) < np.inf:
        raise OptionError(name, f"{what} > 0", f"{what}={value!r:.40}", "Give a positive number.")
    return float(value)
