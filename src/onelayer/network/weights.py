"""The weights of a one-layer Transformer, as frozen arrays with the paper's names.

Tokens are rows: a sequence is [n, d], a batch [N, n, d]. Maps act from the right: y = x W + b.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import PrecisionError

Array = NDArray[Any]
Kind = Literal["softmax", "hardmax", "linear", "relu", "mesa"]


@dataclass(frozen=True)
class Linear:
    """y = x W + b with a full matrix."""

    weight: Array  # [inputs, outputs]
    bias: Array  # [outputs]

    @property
    def width(self) -> int:
        return int(self.weight.shape[1])


@dataclass(frozen=True)
class Grouped:
    """y = x W + b with a block-diagonal matrix, one small block per group (a 1x1 grouped convolution)."""

    weight: Array  # [groups, inputs per group, outputs per group]
    bias: Array  # [groups * outputs per group]

    @property
    def width(self) -> int:
        return int(self.weight.shape[0] * self.weight.shape[2])


Layer = Linear | Grouped


@dataclass(frozen=True)
class Embedding:
    """Tokens into the residual stream: a linear lift of real tokens or a table of token ids, then positions."""

    lift: Array | None = None  # [d, width]
    table: Array | None = None  # [vocabulary, width]
    bias: Array | None = None  # [width]
    positions: Array | None = None  # [longest sequence, width]

    def __post_init__(self) -> None:
        if (self.lift is None) == (self.table is None):
            raise ValueError("an embedding has either a lift (real tokens) or a table (token ids)")


@dataclass(frozen=True)
class Attention:
    """H heads of size s with residual: h + sum_h softmax((h W_Q + b_Q)(h W_K + b_K)^T)(h W_V) W_O.

    There is no 1/sqrt(s): whoever builds the weights has already chosen the temperature. With the logits l_kj of
    query k over the keys j that it sees, a head gives (over no key it is 0)
    softmax  sum_j softmax_j(l_kj) v_j, and hardmax its limit
    linear   sum_j l_kj v_j, and relu sum_j max(l_kj, 0) v_j; with ``mean`` divided by the number of these keys
    mesa     q_k (sum_j k_j^T k_j + ridge I)^-1 sum_j k_j^T v_j, the answer of ridge regression
    """

    W_Q: Array  # [H, width, s]
    W_K: Array  # [H, width, s]
    W_V: Array  # [H, width, values]
    W_O: Array  # [H, values, width]
    b_Q: Array | None = None  # [H, s]
    b_K: Array | None = None  # [H, s]
    ridge: Array | None = None  # [H], positive; mesa only
    kind: Kind = "softmax"
    causal: bool = False
    #: The channel that is not 0 on tokens that may be keys; read once, before the first loop. None: all may be.
    context: int | None = None
    mean: bool = False
    #: How many tokens a token sees, itself and those just before it: with 1, itself only.
    window: int | None = None

    @property
    def heads(self) -> int:
        return int(self.W_Q.shape[0])

    @property
    def head_size(self) -> int:
        return int(self.W_Q.shape[2])

    def check(self) -> None:
        """Shapes that fit together, and options that this kind of attention has."""
        heads, width, size = self.W_Q.shape
        values = self.W_V.shape[-1]
        shapes: dict[str, tuple[int, ...]] = {"W_K": (heads, width, size), "W_V": (heads, width, values)}
        shapes |= {"W_O": (heads, values, width), "b_Q": (heads, size), "b_K": (heads, size), "ridge": (heads,)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(f"attention.{name} has shape {array.shape}, expected {shape}")
        if (self.ridge is not None) != (self.kind == "mesa") or (self.ridge is not None and self.ridge.min() <= 0):
            raise ValueError("mesa attention has a positive ridge for each head, and no other has one")
        if self.mean and self.kind not in ("linear", "relu"):
            raise ValueError(f"only sums are divided by the number of keys; {self.kind} attention has none")
        if self.context is not None and not 0 <= self.context < width:
            raise ValueError(f"there is no channel {self.context} in a stream of width {width}")
        if self.window is not None and (self.window < 1 or self.kind == "mesa"):
            raise ValueError("a window holds at least one token; mesa attention has none")


@dataclass(frozen=True)
class Transformer:
    """embedding -> feed-forward -> one attention layer with residual -> readout.

    A stack applies ReLU after each of its layers except the last. Embedding and both stacks may be absent.
    Feed-forward and attention may be repeated with the same weights, and ``further`` layers may follow: then only
    the first has an embedding, and only the last a readout.
    """

    attention: Attention
    embedding: Embedding | None = None
    feedforward: tuple[Layer, ...] = ()
    readout: tuple[Layer, ...] = ()
    #: Names of residual channels, for the trace and for people.
    channels: tuple[str, ...] = field(default=())
    repeat: int = 1
    further: tuple[Transformer, ...] = ()

    def __post_init__(self) -> None:
        tensors = dict(self.tensors())
        dtypes = {str(a.dtype) for a in tensors.values()}
        if len(dtypes) != 1 or not dtypes <= {"float32", "float64"}:
            raise ValueError(f"all weights must be float32 or all float64, found {sorted(dtypes)}")
        for name, array in tensors.items():
            if not np.isfinite(array).all():
                raise PrecisionError(
                    "memorize",
                    "finite weights",
                    f"the tensor {name} holds NaN or infinity",
                    "Rescale the data or choose another mapping.",
                )
            array.flags.writeable = False
        self._check_shapes()

    def _check_shapes(self) -> None:
        """Every layer must take what the one before it gives."""
        self.attention.check()
        width = int(self.attention.W_Q.shape[1])
        e = self.embedding
        lifted = None if e is None else int((e.table if e.lift is None else e.lift).shape[1])  # type: ignore[union-attr]
        for name in ("bias", "positions"):
            array = None if e is None else getattr(e, name)
            if array is not None and array.shape[-1] != lifted:
                raise ValueError(f"embedding.{name} has width {array.shape[-1]}, expected {lifted}")
        before = _check_stack("feedforward", self.feedforward, lifted)
        if before not in (None, width):
            raise ValueError(f"attention takes width {width}, the layers before it give {before}")
        _check_stack("readout", self.readout, width)
        if self.repeat < 1 or (self.repeat > 1 and before not in (None, width)):
            raise ValueError("a layer is repeated at least once")
        if self.repeat > 1 and self.feedforward and _inputs(self.feedforward[0]) != width:
            raise ValueError("the feed-forward of a loop takes what attention gives")
        for layer in self.further:
            if layer.embedding is not None or layer.further or layer.token_width != width:
                raise ValueError("a further layer takes the stream as it is, and is one layer")
        if self.further and any(layer.readout for layer in self.layers[:-1]):
            raise ValueError("only the last layer has a readout")

    @property
    def layers(self) -> tuple[Transformer, ...]:
        return (self, *self.further)

    @property
    def last_readout(self) -> tuple[Layer, ...]:
        """What turns the stream into outputs, at the end of all layers."""
        return self.layers[-1].readout

    @property
    def output_width(self) -> int:
        readout = self.last_readout
        return readout[-1].width if readout else int(self.attention.W_Q.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.attention.W_Q.dtype

    @property
    def n_parameters(self) -> int:
        """Every stored weight and bias, the zeros of full matrices included."""
        return sum(array.size for _, array in self.tensors())

    @property
    def vocabulary_size(self) -> int | None:
        """How many token ids the model knows, or None for a model of real tokens."""
        table = self.embedding.table if self.embedding is not None else None
        return None if table is None else len(table)

    @property
    def token_width(self) -> int:
        """d, the number of components of a real token."""
        if self.embedding is not None and self.embedding.lift is not None:
            return int(self.embedding.lift.shape[0])
        if self.feedforward and isinstance(self.feedforward[0], Linear):
            return _inputs(self.feedforward[0])
        return int(self.attention.W_Q.shape[1])

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Every array by its dotted name, in a fixed order."""
        if self.embedding is not None:
            for name in ("lift", "table", "bias", "positions"):
                if (array := getattr(self.embedding, name)) is not None:
                    yield f"embedding.{name}", array
        for stack in ("feedforward", "readout"):
            for i, layer in enumerate(getattr(self, stack)):
                yield f"{stack}.{i}.weight", layer.weight
                yield f"{stack}.{i}.bias", layer.bias
        for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "ridge"):
            if (array := getattr(self.attention, name)) is not None:
                yield f"attention.{name}", array
        for i, layer in enumerate(self.further, 1):
            yield from ((f"{i}.{name}", array) for name, array in layer.tensors())

    def with_tensors(self, tensors: Mapping[str, Array]) -> Transformer:
        """The same network with other numbers."""

        def layer(like: Transformer, prefix: str, **more: Any) -> Transformer:
            own = {name.removeprefix(prefix): a for name, a in tensors.items() if name.startswith(prefix)}
            a = like.attention
            options = {"context": a.context, "mean": a.mean, "window": a.window}
            made = Transformer.from_tensors(own, a.kind, a.causal, like.channels, **options)
            return replace(made, repeat=like.repeat, **more)

        further = tuple(layer(like, f"{i}.") for i, like in enumerate(self.further, 1))
        return layer(self, "", further=further)

    @staticmethod
    def from_tensors(
        tensors: Mapping[str, Array],
        kind: Kind = "softmax",
        causal: bool = False,
        channels: tuple[str, ...] = (),
        **options: Any,
    ) -> Transformer:
        """The inverse of ``tensors`` for one layer: one whose weight has three axes is grouped. ``options`` are
        those of attention."""

        def stack(name: str) -> tuple[Layer, ...]:
            layers: list[Layer] = []
            while (weight := tensors.get(f"{name}.{len(layers)}.weight")) is not None:
                bias = tensors[f"{name}.{len(layers)}.bias"]
                layers.append(Linear(weight, bias) if weight.ndim == 2 else Grouped(weight, bias))
            return tuple(layers)

        parts = {name.removeprefix("embedding."): a for name, a in tensors.items() if name.startswith("embedding.")}
        heads: dict[str, Any] = {
            name.removeprefix("attention."): a for name, a in tensors.items() if name.startswith("attention.")
        }
        return Transformer(
            attention=Attention(**heads, kind=kind, causal=causal, **options),
            embedding=Embedding(**parts) if parts else None,
            feedforward=stack("feedforward"),
            readout=stack("readout"),
            channels=channels,
        )


def _inputs(layer: Layer) -> int:
    blocks = layer.weight.shape[0] if isinstance(layer, Grouped) else 1
    return int(blocks * layer.weight.shape[-2])


def _check_stack(name: str, layers: tuple[Layer, ...], width: int | None) -> int | None:
    for i, layer in enumerate(layers):
        takes = _inputs(layer)
        if width not in (None, takes) or layer.bias.shape != (layer.width,):
            raise ValueError(f"{name}.{i} takes width {takes} and gives {layer.bias.shape}, after width {width}")
        width = layer.width
    return width
