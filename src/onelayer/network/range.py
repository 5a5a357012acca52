"""Which inputs a model can take: those for which no value of the forward pass leaves the range of its dtype.

Up to some size of its components no input can do that, whatever the order of summation; sizes are read off the
weights once. Larger inputs are run with an eye on every value, and only those that overflow are called so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer.network.forward import forward
from onelayer.network.weights import Array, Attention, Grouped, Layer, Transformer

#: Bytes of the largest values of one block of sequences that are watched.
WATCHED_BYTES = 1 << 24
#: Sums over keys have at most this many terms.
MOST_KEYS = 2.0**24
#: Exponents of two among which the safe size is searched for.
LOWEST, HIGHEST = -2100, 2100
#: A weight is compared as if it were no larger: its inverse is a number.
LARGEST_READING = 2.0**1000


def safe_sizes(model: Transformer) -> Array:
    """[d] Tokens whose components are no larger keep every value of the forward pass finite."""
    unit = 1.0 / _largest_reading(model)
    largest = float(np.finfo(model.dtype).max)
    readout = [_Sums.of(layer) for layer in model.readout[1:]]
    low, high = LOWEST, HIGHEST  # unit * 2^low is safe or nothing is; unit * 2^high is not
    while high - low > 1:
        middle = (low + high) // 2
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            sizes = np.ldexp(unit, middle)
            safe = np.max(sizes) <= largest and _largest_value(model, sizes, readout) <= largest / 4
        low, high = (middle, high) if safe else (low, middle)
    with np.errstate(under="ignore"):
        return np.asarray(np.ldexp(unit, low))


def watch_range(model: Transformer, X: Array, lengths: Array | None = None) -> tuple[Array, Array]:
    """Outputs [N, n, q] of the dense network, and which sequences [N] keep every value finite."""
    widths = [layer.width for layer in (*model.feedforward, *model.readout)]
    widest = max([X.shape[1], *X.shape[2:], *model.attention.W_Q.shape[1:2], *widths])
    step = max(1, WATCHED_BYTES // (model.dtype.itemsize * X.shape[1] * widest))
    outputs, finite = [], []
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        watch = _Watch(len(X[rows]))
        with np.errstate(all="ignore"):
            out = forward(model, X[rows], None if lengths is None else lengths[rows], watch)
        watch("output", out)
        outputs.append(out)
        finite.append(watch.finite)
    return np.concatenate(outputs), np.concatenate(finite)


class _Watch:
    """Sees every value of a forward pass and keeps nothing but which sequences stayed finite."""

    def __init__(self, count: int) -> None:
        self.finite = np.ones(count, bool)

    def __call__(self, name: str, value: Array) -> None:
        # A logit of minus infinity is one that is masked, or so far below the largest that its weight is 0.
        fine = value < np.inf if name.endswith(".logits") else np.isfinite(value)
        self.finite &= fine.reshape(len(value), -1).all(axis=1)


def _largest_reading(model: Transformer) -> Array:
    """[d] The largest weight with which a component is read, so that components of any scale can be compared."""
    a, e = model.attention, model.embedding
    readers = [W.transpose(1, 0, 2).reshape(W.shape[1], -1) for W in (a.W_Q, a.W_K, a.W_V)]
    if model.feedforward:
        readers = [_weights_by_input(model.feedforward[0])]
    elif model.readout:
        readers.append(_weights_by_input(model.readout[0]))
    reading = np.max([np.abs(W.astype(np.float64)).max(axis=1) for W in readers], axis=0)
    if e is not None and e.lift is not None:
        with np.errstate(over="ignore"):
            reading = (np.abs(e.lift.astype(np.float64)) * reading).max(axis=1)
    return np.where(reading > 0, np.minimum(reading, LARGEST_READING), 1.0)


def _weights_by_input(layer: Layer) -> Array:
    """Weights [inputs, outputs of an input]."""
    return layer.weight.reshape(-1, layer.weight.shape[-1])


@dataclass(frozen=True)
class _Sums:
    """Of a layer's outputs: the sums of the positive and of the negative weights they are made with, and biases."""

    positive: Array
    negative: Array
    bias: Array

    @staticmethod
    def of(layer: Layer) -> _Sums:
        positive, negative = (
            part(layer.weight, 0).sum(axis=-2, dtype=np.float64).ravel() for part in (np.maximum, np.minimum)
        )
        return _Sums(positive, negative, layer.bias.astype(np.float64))

    def bounds(self, low: float, high: float) -> tuple[float, float, float]:
        """What inputs between low and high become, and the largest partial sum on the way."""
        size = max(abs(low), abs(high)) * (self.positive - self.negative) + np.abs(self.bias)
        lowest = low * self.positive + high * self.negative + self.bias
        highest = high * self.positive + low * self.negative + self.bias
        return float(lowest.min()), float(highest.max()), float(size.max())


def _largest_value(model: Transformer, sizes: Array, readout: list[_Sums]) -> float:
    """Upper bound on all values of the forward pass, and on their partial sums, for tokens of these sizes."""
    low, high, e = -sizes, sizes, model.embedding
    if e is not None:
        assert e.lift is not None
        high = sizes @ np.abs(e.lift.astype(np.float64))
        for more in (e.bias, e.positions):
            high = (
                high if more is None else high + np.abs(more.astype(np.float64)).reshape(-1, len(high)).max(axis=0)
            )
        low = -high
    largest = [float(high.max())]
    for i, layer in enumerate(model.feedforward):
        low, high, size = _through(layer, low, high)
        largest.append(size)
        if i + 1 < len(model.feedforward):
            low, high = np.maximum(low, 0), np.maximum(high, 0)
    low, high, size = _through_attention(model.attention, low, high)
    largest.append(size)
    if model.readout:
        low, high, size = _through(model.readout[0], low, high)
        largest.append(size)
        lowest, highest = float(low.min()), float(high.max())
        for sums in readout:
            lowest, highest, size = sums.bounds(max(lowest, 0.0), max(highest, 0.0))
            largest.append(size)
    return float(np.max(largest))  # NaN if one of them is, which is not below anything


def _through(layer: Layer, low: Array, high: Array) -> tuple[Array, Array, float]:
    """What a layer makes of inputs between low and high, and the largest partial sum on the way."""
    weight, bias = layer.weight.astype(np.float64), layer.bias.astype(np.float64)
    weight = weight if isinstance(layer, Grouped) else weight[None]  # [groups, inputs, outputs]
    low, high = (h.reshape(len(weight), 1, -1) for h in (low, high))
    positive, negative = np.maximum(weight, 0), np.minimum(weight, 0)
    size = (np.maximum(np.abs(low), np.abs(high)) @ np.abs(weight)).ravel() + np.abs(bias)
    lowest = (low @ positive + high @ negative).ravel() + bias
    highest = (high @ positive + low @ negative).ravel() + bias
    return lowest, highest, float(size.max())


def _through_attention(a: Attention, low: Array, high: Array) -> tuple[Array, Array, float]:
    """The residual stream after attention, and the largest value on the way."""
    h = np.maximum(np.abs(low), np.abs(high))
    q, k, v = (np.einsum("w,hws->hs", h, np.abs(W.astype(np.float64))) for W in (a.W_Q, a.W_K, a.W_V))
    q = q if a.b_Q is None else q + np.abs(a.b_Q)
    k = k if a.b_K is None else k + np.abs(a.b_K)
    update = np.einsum("hs,hsw->w", v, np.abs(a.W_O.astype(np.float64)))
    logits = 2 * (q * k).sum(axis=1)  # one minus the largest
    size = np.max([q.max(), k.max(), logits.max(), MOST_KEYS * v.max(), (h + update).max()])
    return low - update, high + update, float(size)
