"""TransformerLens: a model with a hook point at every value of its forward pass, named after blocks and gadgets.

    hooked = to_transformer_lens(model)
    tokens = hooked.to_tokens([["river", "bank"]])
    logits, cache = hooked.run_with_cache(tokens)
    cache["blocks.0.attn.hook_pattern"]                    # [batch, head, query, key]
    hooked.unit_names("readout.plateaus.hook_1")           # what every unit of that layer is

TransformerLens 4 has no HookedTransformer, and its bridges wrap architectures with normalisation, a scaled softmax
and one hidden layer after it. This network has none of these, so it is a `HookedRootModule`, which TransformerLens
keeps for networks of one's own: `run_with_cache`, `run_with_hooks`, `add_hook` and its module `patching` work.
Axes are those of TransformerLens: [batch, place, head, component] for queries, keys, values, z and result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from onelayer.compile.logits import with_logits
from onelayer.errors import MissingExtraError, OptionError
from onelayer.gadgets.gadget import Words
from onelayer.gadgets.stacks import STACKS
from onelayer.model import Model

try:
    import torch
    from torch import Tensor, nn
    from transformer_lens import HookedRootModule, TransformerBridgeConfig
    from transformer_lens.hook_points import HookPoint
except ImportError as missing:
    raise MissingExtraError("to_transformer_lens", "transformer_lens", "lens") from missing

from onelayer.export.torch import to_torch

#: Values of the attention by the names that TransformerLens gives them; those with heads before places are turned.
ATTENTION = {
    "queries": "hook_q",
    "keys": "hook_k",
    "values": "hook_v",
    "averages": "hook_z",
    "written": "hook_result",
    "logits": "hook_attn_scores",
    "pattern": "hook_pattern",
}
SQUARE = ("logits", "pattern")


def to_transformer_lens(model: Model) -> HookedOneLayer:
    """The model with hook points. Classes come out as logits (`with_logits`); the weights are the same bits."""
    if model.transformer.repeat > 1 or model.transformer.further:
        needs, found = "a model of one layer, for hook points", "it has loops or several layers"
        raise OptionError("data", needs, found, "Hook the modules of to_torch(model).")
    return HookedOneLayer(model if model.form.classes is None else with_logits(model))


class HookedOneLayer(HookedRootModule):  # type: ignore[misc]
    """`to_torch(model)` with a hook point at every value."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model, self.net = model, to_torch(model)
        self.net.requires_grad_(False)
        self.cfg = _config(model)
        self.mod_dict: dict[str, nn.Module] = {}
        self.hook_dict: dict[str, Any] = {}
        self._values: dict[str, str] = {}  # by which name a trace keeps what a hook sees
        self._hook_attention()
        self.eval()
        for stack in STACKS:
            for name, value, place in self._layers(stack):
                self._hook_layer(name, value, getattr(self.net, stack), place)

    def forward(self, tokens: Any, lengths: Tensor | None = None, attention_mask: Tensor | None = None) -> Tensor:
        """Outputs [batch, place, q]; logits where answers are classes. Words are looked up first."""
        found: Tensor = self.net(self.to_tokens(tokens), lengths, attention_mask)
        return found

    def to_tokens(self, X: Any) -> Tensor:
        """Ids of words, or vectors; a tensor is taken as it is."""
        return X if isinstance(X, Tensor) else torch.tensor(self.model.read(X).tokens)

    def unit_names(self, hook: str) -> Words:
        """What every unit that passes a hook point means, in words."""
        if hook not in self._values:
            known = ", ".join(self._values)
            raise OptionError("inspect", f"a hook point with named units: {known}", f"it is {hook}", "Choose one.")
        return self.model.unit_names(self._values[hook])

    def _point(self, name: str, value: str = "") -> Any:
        point = HookPoint()
        point.name = name
        self.hook_dict[name] = self.mod_dict[name] = point
        if value:
            self._values[name] = value
        return point

    def _hook_attention(self) -> None:
        net, after = self.net, partial(_after, turned=False)
        if net.embedding is not None:
            after(net.embedding, self._point("hook_embed", "embedded"))
        after(net.stream, self._point("blocks.0.hook_resid_pre"))
        for value, name in ATTENTION.items():
            _after(getattr(net.attention, value), self._point(f"blocks.0.attn.{name}"), value not in SQUARE)
        after(net.attention, self._point("blocks.0.hook_attn_out", "context"))
        after(net.context, self._point("blocks.0.hook_resid_post", "context"))

    def _layers(self, stack: str) -> Iterator[tuple[str, str, int]]:
        """Every layer of a stack: its hook point, value and place. A second gadget of a kind is numbered."""
        seen: dict[str, int] = {}
        for part in self.model.parts[stack]:
            kind, first = part.covered.kind, part.covered.start
            seen[kind] = seen.get(kind, 0) + 1
            gadget = kind if seen[kind] == 1 else f"{kind}{seen[kind]}"
            for place in range(first, part.covered.stop):
                yield f"{stack}.{gadget}.hook_{place - first}", f"{stack}.{place}", place

    def _hook_layer(self, name: str, value: str, layers: Any, place: int) -> None:
        """What a layer gives after its ReLU is what the next one takes."""
        point = self._point(name, value)
        if place + 1 < len(layers):
            layers[place + 1].register_forward_pre_hook(lambda _module, given: (point(given[0]), *given[1:]))
        else:
            _after(layers[place], point, turned=False)


def _after(module: nn.Module, point: Callable[[Tensor], Tensor], turned: bool) -> None:
    """Let what a module gives pass a hook point, if need be with places before heads."""

    def see(_module: nn.Module, _given: Any, out: Tensor) -> Tensor:
        return point(out.transpose(1, 2)).transpose(1, 2) if turned else point(out)

    module.register_forward_hook(see)


def _config(model: Model) -> Any:
    """Sizes, as the functions of `transformer_lens.patching` ask for them."""
    a, e = model.transformer.attention, model.transformer.embedding
    places = 0 if e is None or e.positions is None else len(e.positions)
    return TransformerBridgeConfig(
        d_model=int(a.W_Q.shape[1]),
        d_head=a.head_size,
        n_layers=1,
        n_heads=a.heads,
        n_ctx=places or 1 << 20,  # without positions, any number
        d_vocab=model.transformer.vocabulary_size or -1,
        d_vocab_out=model.transformer.output_width,
        attn_only=True,
        act_fn="relu",
        normalization_type=None,
        model_name="onelayer",
    )
