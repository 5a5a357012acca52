"""The forward pass, on one screen. `blocks.evaluate` gives the same with bounded memory, on every core.

``see`` is shown every named value of the pass, in order. Each of the three parts may be computed in another way
that gives the same: in blocks, or by a search.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from onelayer.network import loops
from onelayer.network.heads import See, run_head, see_nothing, seen_by
from onelayer.network.layers import apply_layer, by_token
from onelayer.network.weights import Array, Attention, Layer, Transformer

RunStack = Callable[[tuple[Layer, ...], Array], Array]
RunAttention = Callable[[Attention, Array, Array | None], Array]


def forward(
    model: Transformer,
    X: Array,
    lengths: Array | None = None,
    see: See = see_nothing,
    *,
    feedforward: RunStack | None = None,
    attention: RunAttention | None = None,
    readout: RunStack | None = None,
    first: int = 0,
) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n]; rows at or after a length are meaningless. With
    ``first``, only tokens from there on are asked, of one mesa layer."""
    h = embed(model, X)
    see("embedded", h)
    if first:
        return _answer_queries(model, h, seen_by(model.attention, h, lengths), first)
    for place, layer in enumerate(model.layers):
        visible = seen_by(layer.attention, h, lengths)  # read once: no loop changes who may be seen
        here, quick = see, loops.moving(layer) if layer.repeat > 1 and see is see_nothing else None
        if quick is not None and (visible is None or visible.shape[1] == 1):
            h = loops.run(layer, quick, h, visible)
            continue
        for loop in range(layer.repeat):
            here = within(see, f"layer{place}." * (place > 0) + f"loop{loop}." * (layer.repeat > 1))
            if layer.feedforward:
                h = (feedforward or partial(run_stack, see=here, name="feedforward"))(layer.feedforward, h)
            h = h + (attention or partial(run_attention, see=here))(layer.attention, h, visible)
            here("context", h)
    if here is not see:
        see("context", h)
    readout = readout or partial(run_stack, see=see, name="readout")
    return readout(model.last_readout, h) if model.last_readout else h


def _answer_queries(model: Transformer, h: Array, visible: Array | None, first: int) -> Array:
    """One layer without loops whose queries all see the same keys, asked from a token on."""
    a, asking = model.attention, h[:, first:]
    if visible is not None and visible[..., :first].all() and not visible[..., first:].any():
        h, visible = h[:, :first], None  # the others are the keys, and no mask is needed
    found = asking + sum(by_token(run_head(a, i, h, visible, asking=asking), a.W_O[i]) for i in range(a.heads))
    return run_stack(model.readout, found)


def within(see: See, prefix: str) -> See:
    """The same onlooker, which hears of values under longer names."""
    return see if see is see_nothing or not prefix else lambda name, value: see(prefix + name, value)


def embed(model: Transformer, X: Array) -> Array:
    e = model.embedding
    h = X if e is None or e.table is None else e.table[X]
    h = h.astype(model.dtype, copy=False)
    h = h if e is None or e.lift is None else by_token(h, e.lift)
    h = h if e is None or e.bias is None else h + e.bias
    return h if e is None or e.positions is None else h + e.positions[: X.shape[1]]


def run_attention(a: Attention, h: Array, visible: Array | None, see: See = see_nothing) -> Array:
    """What the heads add to the residual stream."""
    update = np.zeros_like(h)
    for i in range(a.heads):
        update += by_token(run_head(a, i, h, visible, see, f"head{i}"), a.W_O[i])
    return update


def run_stack(layers: tuple[Layer, ...], h: Array, see: See = see_nothing, name: str = "stack") -> Array:
    """Linear maps, and ReLU after each but the last."""
    for i, layer in enumerate(layers):
        h = apply_layer(layer, h)
        h = np.maximum(h, 0, out=h) if i + 1 < len(layers) else h
        see(f"{name}.{i}", h)
    return h
