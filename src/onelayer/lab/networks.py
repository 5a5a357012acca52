"""Transformers to be trained: the data of a task, the shape of a model, its parameters by name, its forward pass.

A layer is h + attention(h), then h + feed-forward(h) with ReLU, as in docs/notation.md but for the 1/sqrt(s) of
ordinary practice: under Adam, whose steps do not know the size of a weight, it decides how fast logits may grow.
Without it (``scaled=False``) the initial queries are that much smaller instead. Layer norm only if asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, MissingExtraError, OptionError

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]
Scope = Literal["token", "sequence", "last"]
#: classes: logits, cross-entropy. digits: the same for each digit of a class. numbers: the class itself is the
#: output. reals: within a tolerance.
Kind = Literal["classes", "digits", "numbers", "reals"]


def framework() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("Training", "torch", "train") from None
    return torch


@dataclass(frozen=True)
class Shape:
    """An architecture. ``rank`` makes W_Q, W_K and W_V products of two factors; None leaves them full."""

    width: int
    hidden: int = 0  # units of each feed-forward part; 0: there is none
    layers: int = 1
    heads: int = 1
    size: int = 0  # of a head; 0: width / heads
    rank: int | None = None
    attention: Literal["softmax", "hardmax"] = "softmax"  # hardmax is trained straight through
    norm: bool = False  # layer norm before each part
    positions: bool = False
    scaled: bool = True  # logits over sqrt(s)

    @property
    def head_size(self) -> int:
        return self.size or max(1, self.width // self.heads)


@dataclass(frozen=True)
class Task:
    """Tokens [N, n, d] or ids [N, n], and answers: [N, n] or [N] classes, [N, n, q] or [N, q] digits or reals."""

    tokens: Array
    answers: Array
    kind: Kind = "classes"
    scope: Scope = "token"
    lengths: Array | None = None
    tolerance: float = 0.0  # how far reals may be off and still be right

    def __post_init__(self) -> None:
        expected = self.tokens.shape[:2] if self.scope == "token" else self.tokens.shape[:1]
        if self.answers.shape[: len(expected)] != expected:
            needs, found = f"answers of shape {expected}", f"answers of shape {self.answers.shape}"
            raise DataError("lab", needs, found, "Give one per token, or one per sequence.")

    @property
    def outputs(self) -> int:
        """Width of a model's last layer."""
        if self.kind == "classes":
            return int(self.answers.max()) + 1
        if self.kind == "digits":
            return int(self.answers.shape[-1]) * (int(self.answers.max()) + 1)
        return 1 if self.kind == "numbers" else int(self.answers.shape[-1])

    @property
    def vocabulary(self) -> int | None:
        return int(self.tokens.max()) + 1 if self.tokens.ndim == 2 else None


class Net:
    """embedding -> layers -> linear head; parameters by name, forward pass on one screen."""

    def __init__(self, shape: Shape, task: Task, seed: int = 0, dtype: str = "float32") -> None:
        torch = framework()
        self.shape, self.scope = shape, task.scope
        generator = torch.Generator().manual_seed(seed)
        self.tensors: dict[str, Tensor] = {}
        for name, (size, spread) in _sizes(shape, task).items():
            drawn = torch.randn(size, generator=generator, dtype=torch.float64) * spread
            drawn = drawn + 1.0 if name.endswith("norm") else drawn
            self.tensors[name] = drawn.to(getattr(torch, dtype)).requires_grad_()

    def parameters(self) -> list[Tensor]:
        return list(self.tensors.values())

    def __call__(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Outputs [N, n, q], or [N, q] for one answer per sequence."""
        seen = inside(tokens, lengths)
        h = self.embed(tokens)
        for layer in range(self.shape.layers):
            h = self.attend(h, layer, seen)
            h = self.feed(h, layer)
        h = pool_tokens(h, self.scope, lengths, seen)
        out: Tensor = framework().nn.functional.linear(h, self.tensors["head"].T, self.tensors["head.bias"])
        return out

    def contexts(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The residual stream [N, n, width] after the first attention."""
        return self.attend(self.embed(tokens), 0, inside(tokens, lengths))

    def embed(self, tokens: Tensor) -> Tensor:
        table = self.tensors["embedding"]
        if tokens.ndim == 2:
            # Not table[tokens]: the gradient of that takes far longer.
            h: Tensor = framework().nn.functional.embedding(tokens, table)
        else:
            h = tokens.to(table.dtype) @ table + self.tensors["embedding.bias"]
        places = self.tensors.get("positions")
        return h if places is None else h + places[: tokens.shape[1]]

    def attend(self, h: Tensor, layer: int, seen: Tensor | None) -> Tensor:
        torch = framework()
        x = self._normalise(h, f"{layer}.attention")
        q, k, v = self._project(x, layer)
        logits = q @ k.transpose(-1, -2)
        if self.shape.scaled:
            logits = logits / self.shape.head_size**0.5
        if seen is not None:
            logits = logits.masked_fill(~seen[:, None, None, :], -torch.inf)
        weights = torch.softmax(logits, dim=-1)
        if self.shape.attention == "hardmax":
            top = (logits == logits.amax(-1, keepdim=True)).to(weights.dtype)
            weights = weights + (top / top.sum(-1, keepdim=True) - weights).detach()
        update: Tensor = (weights @ v).transpose(1, 2).flatten(2) @ self.tensors[f"{layer}.W_O"].flatten(0, 1)
        return h + update

    def _project(self, x: Tensor, layer: int) -> Tensor:
        """Queries, keys and values [3, N, H, n, s], by one product for all tokens, heads and kinds."""
        every = [self.factor(layer, name).transpose(0, 1).flatten(1) for name in ("W_Q", "W_K", "W_V")]
        found: Tensor = x @ framework().cat(every, 1)
        return found.view(*x.shape[:2], 3, self.shape.heads, self.shape.head_size).permute(2, 0, 3, 1, 4)

    def factor(self, layer: int, name: str) -> Tensor:
        """W_Q, W_K or W_V of a layer, [H, width, s]; a product if its rank is limited."""
        whole = self.tensors[f"{layer}.{name}"]
        narrow = self.tensors.get(f"{layer}.{name}.narrow")
        return whole if narrow is None else whole @ narrow

    def feed(self, h: Tensor, layer: int) -> Tensor:
        if not self.shape.hidden:
            return h
        torch, t = framework(), self.tensors
        x = self._normalise(h, f"{layer}.feed")
        linear = torch.nn.functional.linear
        units = torch.relu(linear(x, t[f"{layer}.W_1"].T, t[f"{layer}.W_1.bias"]))
        out: Tensor = h + linear(units, t[f"{layer}.W_2"].T, t[f"{layer}.W_2.bias"])
        return out

    def _normalise(self, h: Tensor, name: str) -> Tensor:
        if not self.shape.norm:
            return h
        normed: Tensor = framework().nn.functional.layer_norm(
            h, h.shape[-1:], self.tensors[f"{name}.norm"], self.tensors[f"{name}.norm.bias"]
        )
        return normed


def _sizes(shape: Shape, task: Task) -> dict[str, tuple[tuple[int, ...], float]]:
    """Every parameter: its shape and the standard deviation of its initial values."""
    w, s, H, m, r = shape.width, shape.head_size, shape.heads, shape.hidden, shape.rank
    first = task.vocabulary or task.tokens.shape[-1]
    sizes: dict[str, tuple[tuple[int, ...], float]] = {}
    scale = 0.5**0.5 if shape.positions else 1.0  # token and place together have components of size 1
    sizes["embedding"] = ((first, w), scale if task.vocabulary else float(first) ** -0.5)
    if not task.vocabulary:  # without it a layer norm would leave nothing of a number but its sign
        sizes["embedding.bias"] = ((w,), float(first) ** -0.5)
    if shape.positions:
        sizes["positions"] = ((task.tokens.shape[1], w), scale)
    for layer in range(shape.layers):
        for name in ("W_Q", "W_K", "W_V"):
            spread = (w if shape.scaled or name != "W_Q" else w * s) ** -0.5
            if r is None or r >= min(w, s):
                sizes[f"{layer}.{name}"] = ((H, w, s), spread)
            else:
                sizes[f"{layer}.{name}"] = ((H, w, r), spread)
                sizes[f"{layer}.{name}.narrow"] = ((H, r, s), r**-0.5)
        sizes[f"{layer}.W_O"] = ((H, s, w), (H * s * shape.layers) ** -0.5)
        parts = [f"{layer}.attention"]
        if m:
            sizes[f"{layer}.W_1"], sizes[f"{layer}.W_1.bias"] = ((w, m), (2 / w) ** 0.5), ((m,), 0.0)
            sizes[f"{layer}.W_2"], sizes[f"{layer}.W_2.bias"] = ((m, w), (m * shape.layers) ** -0.5), ((w,), 0.0)
            parts.append(f"{layer}.feed")
        for part in parts if shape.norm else ():
            sizes[f"{part}.norm"], sizes[f"{part}.norm.bias"] = ((w,), 0.0), ((w,), 0.0)
    q = task.outputs
    return sizes | {"head": ((w, q), w**-0.5), "head.bias": ((q,), 0.0)}


def count_parameters(shape: Shape, task: Task) -> int:
    """Every weight and bias, factors as they are stored, without drawing them."""
    return sum(math.prod(size) for size, _ in _sizes(shape, task).values())


def inside(tokens: Tensor, lengths: Tensor | None) -> Tensor | None:
    if lengths is None:
        return None
    return framework().arange(tokens.shape[1]) < lengths[:, None]  # type: ignore[no-any-return]


def pool_tokens(h: Tensor, scope: Scope, lengths: Tensor | None, seen: Tensor | None) -> Tensor:
    """One row per sequence, the mean or that of the last token, where there is one answer per sequence."""
    if scope == "token":
        return h
    if scope == "last":
        return h[:, -1] if lengths is None else h[framework().arange(len(h)), lengths - 1]
    if seen is None or lengths is None:
        return h.mean(1)
    return (h * seen[..., None]).sum(1) / lengths[:, None]


def predict(net: Any, tokens: Array, lengths: Array | None = None) -> Array:
    """Outputs as an array."""
    return _run(net, tokens, lengths)


def contexts(net: Any, tokens: Array, lengths: Array | None = None) -> Array:
    """What the attention of a torch model gives, with its residual, [N, n, width]: what feed-forward parts see."""
    if isinstance(net, Net):
        return _run(net.contexts, tokens, lengths)
    needed = [hasattr(net, name) for name in ("embedding", "feedforward", "attention")]
    if not all(needed):
        raise OptionError("lab", "a trained model, or one of to_torch", f"{type(net)}", "Give outputs instead.")

    def after_attention(ids: Tensor, counts: Tensor | None = None) -> Tensor:
        places = framework().arange(ids.shape[1])
        h = ids.to(net.attention.W_Q.dtype) if net.embedding is None else net.embedding(ids, places)
        h = net.feedforward(h)
        found: Tensor = h + net.attention(h, inside(ids, counts))
        return found

    return _run(after_attention, tokens, lengths)


def has_positions(net: Any) -> bool:
    """Whether the order of the tokens reaches the attention."""
    if isinstance(net, Net):
        return net.shape.positions
    return getattr(getattr(net, "embedding", None), "positions", None) is not None


def _run(function: Callable[..., Tensor], tokens: Array, lengths: Array | None) -> Array:
    torch = framework()
    with torch.no_grad(), one_thread(torch):
        given = torch.from_numpy(np.ascontiguousarray(tokens))
        if lengths is None:
            return np.asarray(function(given).numpy())
        return np.asarray(function(given, torch.from_numpy(lengths)).numpy())


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Sums in one order, so that a seed gives the same weights whatever else the machine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
