"""What a network is besides its tensors, as JSON: kinds of attention, loops, and layers that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onelayer.network.weights import Array, Transformer

#: What a layer of attention says only where it is not as in a plain one.
PLAIN = {"context": None, "mean": False, "window": None}


def describe_structure(model: Transformer) -> dict[str, Any]:
    """Kind of attention and names of channels; loops and further layers where there are any."""
    found: dict[str, Any] = {"attention": _attention(model), "channels": list(model.channels)}
    found |= {"repeat": model.repeat} if model.repeat > 1 else {}
    if model.further:
        further = [_attention(layer) | {"causal": layer.attention.causal} for layer in model.further]
        repeats = [layer.repeat for layer in model.further]
        found["further"] = [{"attention": a, "repeat": r} for a, r in zip(further, repeats, strict=True)]
    return found


def rebuild_network(description: Mapping[str, Any], tensors: Mapping[str, Array], causal: bool) -> Transformer:
    """The network of these tensors."""
    listed = description.get("further", [])
    prefixes = tuple(f"{i}." for i in range(1, len(listed) + 1))
    own = {name: a for name, a in tensors.items() if not name.startswith(prefixes or ("/",))}
    channels = tuple(description["channels"])
    attention = {**description["attention"], "causal": causal}  # which bundles of version 1 have there too
    first = Transformer.from_tensors(own, channels=channels, **attention)
    further = []
    for prefix, entry in zip(prefixes, listed, strict=True):
        part = {name.removeprefix(prefix): a for name, a in tensors.items() if name.startswith(prefix)}
        further.append(replace(Transformer.from_tensors(part, **entry["attention"]), repeat=entry["repeat"]))
    return replace(first, repeat=description.get("repeat", 1), further=tuple(further))


def graph(model: Transformer) -> dict[str, Any]:
    """The network as a certificate of `looped/1` names it."""
    layers = [
        {
            "attention": layer.attention.kind,
            "causal": layer.attention.causal,
            "repeat": layer.repeat,
            **{name: getattr(layer.attention, name) for name in PLAIN},
        }
        for layer in model.layers
    ]
    return {"template": "looped/1", "layers": layers}


def plain_graph(causal: bool) -> dict[str, Any]:
    """The graph of one softmax layer, as `graph` writes it."""
    layer = {"attention": "softmax", "causal": causal, "repeat": 1, **PLAIN}
    return {"template": "looped/1", "layers": [layer]}


def _attention(model: Transformer) -> dict[str, Any]:
    a = model.attention
    special = {name: getattr(a, name) for name, plain in PLAIN.items() if getattr(a, name) != plain}
    return {"kind": a.kind, **special}
