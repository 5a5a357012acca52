"""A model as a plain PyTorch module: the same weights bit for bit, and the same operations.

Nothing is folded, and a bias is added after a sum where the graph `one-layer/1` of docs/certificate-v2.md says so:
on a CPU, with PyTorch's default settings, the module stays within the profile `ieee-any-order/1`.

    net, asked = to_torch(model), model.ask(X)
    outputs = net(torch.from_numpy(asked.tokens))  # pass the lengths too where asked.lengths is not None
    answers = model.answers(outputs.detach().numpy(), asked)  # as model.predict(X) gives them

Padding on either side is given by ``attention_mask`` [N, n], 1 at tokens and 0 at padding, instead of lengths.

Every value of the attention is the output of a module of its own (`net.attention.pattern` are the softmax weights),
so that a forward hook, or nnsight, sees and replaces it.

On gradients. A readout of plateaus, boxes or stored rows is flat around every stored token: there the gradient of
the outputs is exactly 0 from the readout back, in the attention and in the embedding. Only the last layers get one.
Such a module can be run, patched, and trained together with other parameters; gradient descent alone does not move
its attention to other data (a readout that interpolates, as `triangular`, has gradients everywhere).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onelayer.errors import MissingExtraError
from onelayer.network import weights as w
from onelayer.network.formats import FORMATS
from onelayer.network.weights import Array, Transformer

if TYPE_CHECKING:
    from onelayer.model import Model

try:
    import torch
    from torch import Tensor, nn
except ImportError as missing:
    raise MissingExtraError("to_torch", "torch", "torch") from missing

from onelayer.export.casts import NoticesCasts


def to_torch(model: Model | Transformer) -> OneLayer:
    """The model as a module: tokens [N, n, d] (or ids [N, n]) and lengths [N], or an attention_mask [N, n], to
    outputs [N, n, q]. `torch.jit.script` takes it. A model made for 16 bits is one of that dtype. Where a module
    runs in fewer bits than its answers were built for (`net.half()`, autocast, dynamic int8), a `CastWarning` says
    so: `cast` counts what survives."""
    if isinstance(model, Transformer):
        return OneLayer(model)
    net = OneLayer(model.transformer, model.arithmetic)
    return net.to(getattr(torch, model.arithmetic)) if model.arithmetic in FORMATS else net


class OneLayer(NoticesCasts):
    """embedding -> feed-forward -> one attention layer with residual -> readout, as in docs/notation.md."""

    def __init__(self, model: Transformer, arithmetic: str = "") -> None:
        """The arithmetic is that for which the answers were built, if there are any."""
        super().__init__(arithmetic)
        self.embedding = None if model.embedding is None else Embedding(model.embedding)
        self.feedforward = Stack(model.feedforward)
        self.attention = Attention(model.attention)
        self.stream, self.context = Value(), Value()  # before the attention, and after it
        self.readout = Stack(model.readout)
        self.repeat = model.repeat
        self.further = nn.ModuleList(OneLayer(layer) for layer in model.further)

    def forward(
        self, tokens: Tensor, lengths: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Lengths are at least 1; what is at or after a length, or where the mask is 0, is not looked at, and means
        nothing in the output. With a mask, places are counted from the first token that is not padding."""
        if not torch.jit.is_scripting():  # type: ignore[attr-defined]
            self.notice_casts(tokens.device.type, (*self.feedforward, *self.readout))
        inside = inside_of(tokens, lengths, attention_mask)
        if inside is not None:
            # Attention gives padding the weight 0, but 0 times NaN is NaN, and an id may be out of the table.
            tokens = tokens.masked_fill(~(inside if tokens.ndim == 2 else inside[..., None]), 0)
        if self.embedding is None:
            h = tokens.to(self.attention.W_Q.dtype)
        else:
            h = self.embedding(tokens, places_of(tokens, None if attention_mask is None else inside))
        h = self.loop(h, inside)
        for layer in self.further:
            h = layer.loop(h, inside)  # type: ignore[operator]
        return h

    @torch.jit.export
    def loop(self, h: Tensor, inside: Tensor | None) -> Tensor:
        """Feed-forward and attention, as often as they are repeated, and the readout where there is one."""
        mask = self.attention.visible(h, inside)
        for _ in range(self.repeat):
            h = self.stream(self.feedforward(h))
            h = self.context(h + self.attention(h, mask))
        out: Tensor = self.readout(h)
        return out


def inside_of(tokens: Tensor, lengths: Tensor | None, attention_mask: Tensor | None) -> Tensor | None:
    """Which of the places are tokens, [N, n]; None if all are."""
    if attention_mask is not None:
        if lengths is not None or attention_mask.shape != tokens.shape[:2]:
            raise ValueError(
                "[tokens] need lengths [N] or an attention_mask [N, n] with a 1 or 0 for each; give one."
            )
        return attention_mask != 0
    if lengths is None:
        return None
    if lengths.ndim != 1 or len(lengths) != len(tokens):
        raise ValueError("[tokens] need one length for each sequence; a mask [N, n] is given as attention_mask=.")
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]


def places_of(tokens: Tensor, inside: Tensor | None) -> Tensor:
    """The place of every token in its sequence, [n] or [N, n]; that of padding is a place that exists."""
    if inside is None:
        return torch.arange(tokens.shape[1], device=tokens.device)
    return (inside.long().cumsum(1) - 1).clamp(min=0)


class Value(nn.Identity):
    """A value of the forward pass that has a name, so that hooks can see it and put another in its place."""


class Embedding(nn.Module):
    """A linear lift of real tokens, or a table of token ids; then a bias and positions."""

    def __init__(self, e: w.Embedding) -> None:
        super().__init__()
        # The bias is kept out of the linear layer, whose kernels may add it inside the sum of products.
        self.lift = None if e.lift is None else _linear(e.lift)
        self.table = None if e.table is None else _table(e.table)
        self.bias = None if e.bias is None else _parameter(e.bias)
        self.positions = None if e.positions is None else _table(e.positions)

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        if self.lift is None:
            assert self.table is not None
            h = self.table(tokens)
        else:
            h = self.lift(tokens.to(self.lift.weight.dtype))
        if self.bias is not None:
            h = h + self.bias
        if self.positions is not None:  # looked up, not sliced: a sequence that is too long is an IndexError
            h = h + self.positions(places)
        out: Tensor = h
        return out


class Attention(nn.Module):
    """sum over heads of softmax((h W_Q + b_Q)(h W_K + b_K)^T)(h W_V) W_O; no 1/sqrt(s), and no residual here.

    With hardmax, the largest logits share the mass equally, and no gradient reaches queries and keys.
    """

    def __init__(self, a: w.Attention) -> None:
        super().__init__()
        self.W_Q, self.W_K, self.W_V, self.W_O = (_parameter(W) for W in (a.W_Q, a.W_K, a.W_V, a.W_O))
        self.b_Q = None if a.b_Q is None else _parameter(a.b_Q)  # [H, s]
        self.b_K = None if a.b_K is None else _parameter(a.b_K)
        self.ridge = None if a.ridge is None else _parameter(a.ridge)
        self.kind, self.causal, self.context, self.window, self.mean = a.kind, a.causal, a.context, a.window, a.mean
        self.queries, self.keys, self.values = Value(), Value(), Value()  # [N, H, n, s]
        self.logits, self.pattern = Value(), Value()  # [N, H, query, key]; a mesa head has none
        self.averages, self.written = Value(), Value()  # [N, H, n, values] and [N, H, n, width]

    def visible(self, h: Tensor, inside: Tensor | None) -> Tensor | None:
        """Which keys a query sees, as a mask that broadcasts to [N, H, query, key]; ``inside`` [N, n] says which
        are tokens, not padding."""
        n, mask = h.shape[1], None if inside is None else inside[:, None, None, :]
        if self.causal or self.window is not None:
            seen = torch.ones(n, n, dtype=torch.bool, device=h.device).tril()
            if self.window is not None:
                seen = seen.triu(1 - self.window)
            mask = seen if mask is None else mask & seen
        if self.context is not None:
            keys = (h[..., self.context] != 0)[:, None, None, :]
            mask = keys if mask is None else mask & keys
        return mask

    def forward(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the heads add to h [N, n, width]."""
        one = h[:, None]
        q, k, v = one @ self.W_Q, one @ self.W_K, self.values(one @ self.W_V)
        q = self.queries(q if self.b_Q is None else q + self.b_Q[:, None])
        k = self.keys(k if self.b_K is None else k + self.b_K[:, None])
        if self.kind == "mesa":
            averages = self.solved(q, k, v, mask)
        else:
            logits = self.logits(self.scores(q, k, mask))
            averages = self.pattern(self.weights(logits, mask)) @ v
            if self.mean:
                count = torch.tensor(h.shape[1]) if mask is None else mask.sum(-1, keepdim=True)
                averages = averages / count.clamp(min=1).to(v.dtype)
            if self.kind == "hardmax":
                averages = averages / self.tied(logits).sum(-1, keepdim=True)
            if mask is not None and (self.context is not None or self.window is not None):  # it may see no key
                averages = averages.masked_fill(~mask.any(-1, keepdim=True), 0)
        written: Tensor = self.written(self.averages(averages) @ self.W_O)
        return written.sum(1)

    def scores(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """[N, H, query, key]; where softmax must not look, minus infinity."""
        logits = q @ k.transpose(-1, -2)
        if mask is None or self.kind == "linear" or self.kind == "relu":
            return logits
        return logits.masked_fill(~mask, float("-inf"))

    def weights(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """What the values are multiplied with; those of hardmax are divided by their number after the sum."""
        if self.kind == "softmax":
            return torch.softmax(logits, dim=-1)
        if self.kind == "hardmax":
            return self.tied(logits)
        weights = torch.relu(logits) if self.kind == "relu" else logits
        return weights if mask is None else weights.masked_fill(~mask, 0)

    def tied(self, logits: Tensor) -> Tensor:
        return (logits == logits.amax(-1, keepdim=True)).to(self.W_Q.dtype)

    def solved(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """q_k (sum_j k_j^T k_j + ridge I)^-1 sum_j k_j^T v_j over the visible keys."""
        assert self.ridge is not None
        shrunk = self.ridge[:, None, None, None] * torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        ones = torch.ones(1, dtype=k.dtype, device=k.device) if mask is None else mask.to(k.dtype)
        seen = ones.expand(len(k), 1, -1 if ones.ndim > 1 and ones.shape[-2] > 1 else 1, k.shape[2])
        gram = torch.einsum("nhqk,nhks,nhkt->nhqst", seen.expand(-1, k.shape[1], -1, -1), k, k) + shrunk
        cross = torch.einsum("nhqk,nhks,nhkt->nhqst", seen.expand(-1, k.shape[1], -1, -1), k, v)
        found: Tensor = (q[..., None, :] @ torch.linalg.solve(gram, cross))[..., 0, :]
        return found


class Stack(nn.ModuleList):
    """Layers with ReLU after each of them but the last."""

    def __init__(self, layers: tuple[w.Layer, ...]) -> None:
        super().__init__(
            Grouped(layer) if isinstance(layer, w.Grouped) else _linear(layer.weight, layer.bias)
            for layer in layers
        )

    def forward(self, h: Tensor) -> Tensor:
        for i, layer in enumerate(self):
            h = layer(torch.relu(h) if i else h)
        return h


class Grouped(nn.Module):
    """y = x W + b with a block-diagonal W, one small block per group.

    nn.Conv1d(groups=K) computes the same, but loops over the groups: 100 times slower, 10 s for a million of them.
    """

    def __init__(self, layer: w.Grouped) -> None:
        super().__init__()
        self.weight, self.bias = _parameter(layer.weight), _parameter(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        groups, inputs = self.weight.shape[0], self.weight.shape[1]
        sums = torch.einsum("...gi,gio->...go", torch.unflatten(x, -1, (groups, inputs)), self.weight)
        return sums.flatten(-2) + self.bias


def _parameter(array: Array) -> nn.Parameter:
    return nn.Parameter(torch.tensor(np.ascontiguousarray(array)))  # a copy: training must not reach the model


def _linear(weight: Array, bias: Array | None = None) -> nn.Linear:
    """On the device "meta" a layer draws no random numbers, so the caller's generator stays where it was."""
    inputs, outputs = weight.shape
    layer = nn.Linear(inputs, outputs, bias=bias is not None, device="meta")
    layer.weight = _parameter(weight.T)
    if bias is not None:
        layer.bias = _parameter(bias)
    return layer


def _table(rows: Array) -> nn.Embedding:
    count, width = rows.shape
    table = nn.Embedding(count, width, device="meta")
    table.weight = _parameter(rows)
    return table
