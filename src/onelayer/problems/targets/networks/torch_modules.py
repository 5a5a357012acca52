"""A PyTorch module as a formula: its graph by torch.fx, its operations by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import fx, nn

from onelayer.errors import OptionError
from onelayer.problems.targets.expression import JUMPS
from onelayer.problems.targets.networks import operations as ops
from onelayer.problems.targets.networks.products import softmax
from onelayer.problems.targets.networks.torch_functions import FUNCTIONS
from onelayer.problems.targets.networks.values import Tensor, Unsupported

SUPPORTED = (
    "Linear, ReLU, LeakyReLU, Tanh, Sigmoid, SiLU, Softplus, Softmax, Identity, Dropout (eval), LayerNorm, "
    "MultiheadAttention and TransformerEncoderLayer (batch_first, ReLU), "
    "Sequential and modules made of these; +, -, *, /, @, matmul, softmax, "
    "scaled_dot_product_attention, mean, sum, amax, transpose, permute, view, reshape, flatten, chunk, split"
)


def numbers(value: Any) -> Any:
    return value.detach().cpu().double().numpy() if isinstance(value, torch.Tensor) else value


def read_module(module: Any, given: Tensor) -> Tensor:
    """What the module makes of tokens [B, n, d]."""
    if isinstance(module, HANDLED):
        found = _called(module, [given], {}, type(module).__name__)
        return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]
    try:
        graph = fx.symbolic_trace(module)
    except Exception as error:
        needs, found = "a module whose graph torch.fx can trace", f"{type(module).__name__}: {error}"
        raise OptionError("network", needs, found, "Write it without branches that depend on values.") from error
    return _Interpreter(graph, given).read()


class _Interpreter:
    def __init__(self, module: fx.GraphModule, given: Tensor) -> None:
        self.module, self.given = module, given
        self.known: dict[fx.Node, Any] = {}

    def read(self) -> Tensor:
        inputs = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        if len([node for node in inputs if not node.args]) != 1:
            needs, found = "a module of one input", f"its inputs are {[node.name for node in inputs]}"
            raise OptionError("network", needs, found, "Wrap it in a module that takes tokens [B, n, d].")
        for node in self.module.graph.nodes:
            if node.op == "output":
                found = self._value(node.args[0])
                found = found[0] if isinstance(found, tuple | list) and len(found) == 1 else found
                if not isinstance(found, Tensor):
                    raise refused("output", f"a {type(found).__name__}")
                return found
            try:
                self.known[node] = self._of(node)
            except Unsupported as why:
                raise refused(f"{node.name} ({_name(node)})", str(why)) from why
        raise AssertionError("a graph without an output")

    def _value(self, given: Any) -> Any:
        return fx.node.map_arg(given, lambda node: self.known[node])

    def _of(self, node: fx.Node) -> Any:
        args, options = self._value(node.args), self._value(node.kwargs)
        if node.op == "placeholder":
            return self.given if not node.args else node.args[0]
        if node.op == "get_attr":
            found: Any = self.module
            for part in str(node.target).split("."):
                found = getattr(found, part)
            return numbers(found)
        if node.op == "call_module":
            return _called(self.module.get_submodule(str(node.target)), list(args), dict(options), node.name)
        if node.op == "call_function" and node.target is getattr:
            return _attribute(*args)
        if not _holds_tensor((args, options)):
            return _plain(node.target, args, options)
        name = _name(node).strip("_")
        if name in JUMPS:
            raise Unsupported("it jumps, and every Transformer is continuous")
        if name not in FUNCTIONS:
            raise Unsupported("no such operation")
        return FUNCTIONS[name](*args, **options)


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def refused(where: str, what: str) -> OptionError:
    needs = "operations that are formulas of one attention layer"
    return OptionError("network", needs, f"{where}: {what}", f"It has {SUPPORTED}.")


def _holds_tensor(given: Any) -> bool:
    if isinstance(given, tuple | list):
        return any(map(_holds_tensor, given))
    return any(map(_holds_tensor, given.values())) if isinstance(given, dict) else isinstance(given, Tensor)


def _plain(target: Any, args: Any, options: Any) -> Any:
    """Of numbers alone, such as sizes."""
    if not callable(target):
        raise Unsupported(f"{target} of numbers")
    return target(*args, **options)


def _attribute(t: Any, name: str) -> Any:
    if name == "shape" and isinstance(t, Tensor):
        return t.axes
    if name in ("T", "mT") and isinstance(t, Tensor):
        return t.swapped(-1, -2)
    raise Unsupported(f"the attribute {name}")


HANDLED = (
    nn.Linear,
    nn.ReLU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.SiLU,
    nn.Softplus,
    nn.Softmax,
    nn.Identity,
    nn.Dropout,
    nn.Flatten,
    nn.LayerNorm,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
)
SIMPLE = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.SiLU: "silu", nn.Identity: "identity"}


def _called(module: nn.Module, args: list[Any], options: dict[str, Any], where: str) -> Any:
    t = args[0] if args else next(iter(options.values()))
    try:
        return _module(module, t, args, options)
    except Unsupported as why:
        raise refused(f"{where} ({type(module).__name__})", str(why)) from why


def _module(module: nn.Module, t: Tensor, args: list[Any], options: dict[str, Any]) -> Any:
    kind = type(module)
    if kind in SIMPLE:
        return ops.unary(SIMPLE[kind], t)
    if isinstance(module, nn.Linear):
        return ops.affine(t, numbers(module.weight), numbers(module.bias))
    if isinstance(module, nn.LeakyReLU):
        return ops.leaky(module.negative_slope, t)
    if isinstance(module, nn.Softplus) and module.beta == 1:
        return ops.unary("softplus", t)
    if isinstance(module, nn.Softmax):
        return softmax(t, -1 if module.dim is None else module.dim)
    if isinstance(module, nn.Dropout):
        if module.training and module.p > 0:
            raise Unsupported("dropout in training; call eval() first")
        return t
    if isinstance(module, nn.MultiheadAttention):
        return _multihead(module, args, options)
    if isinstance(module, nn.TransformerEncoderLayer):
        return _encoder(module, t)
    if isinstance(module, nn.LayerNorm):
        if len(module.normalized_shape) != 1:
            raise Unsupported("normalisation over several axes")
        return ops.normalised(t, numbers(module.weight), numbers(module.bias), module.eps)
    raise Unsupported("no such operation")


def _encoder(module: nn.TransformerEncoderLayer, t: Tensor) -> Tensor:
    if module.activation not in (nn.functional.relu, torch.relu) and not isinstance(module.activation, nn.ReLU):
        raise Unsupported("an activation other than ReLU")
    if module.training and any(part.p > 0 for part in (module.dropout, module.dropout1, module.dropout2)):
        raise Unsupported("dropout in training; call eval() first")

    def attended(h: Tensor) -> Tensor:
        found: Tensor = _multihead(module.self_attn, [h, h, h], {})[0]
        return found

    def fed(h: Tensor) -> Tensor:
        found: Tensor = _module(module.linear2, ops.unary("relu", _module(module.linear1, h, [], {})), [], {})
        return found

    for part, norm in ((attended, module.norm1), (fed, module.norm2)):
        if module.norm_first:
            t = ops.binary("add", t, part(_module(norm, t, [], {})))
        else:
            t = _module(norm, ops.binary("add", t, part(t)), [], {})
    return t


def _multihead(module: nn.MultiheadAttention, args: list[Any], options: dict[str, Any]) -> Any:
    """(attended, None): weights are not given back."""
    q, k, v = [*args, *(options[name] for name in ("query", "key", "value") if name in options)][:3]
    ops.refuse_causal(options.get("is_causal"), options.get("attn_mask"))
    if options.get("key_padding_mask") is not None:
        raise Unsupported("a padding mask")
    if not module.batch_first:
        raise Unsupported("tokens first; use batch_first=True")
    if not module._qkv_same_embed_dim or module.bias_k is not None or module.add_zero_attn:
        raise Unsupported("queries, keys and values of other sizes, or a bias among the keys")
    if module.training and module.dropout > 0:
        raise Unsupported("dropout in training; call eval() first")
    W, e = numbers(module.in_proj_weight), module.embed_dim
    b = np.zeros(3 * e) if module.in_proj_bias is None else numbers(module.in_proj_bias)
    parts = [ops.affine(x, W[i * e : i * e + e], b[i * e : i * e + e]) for i, x in enumerate((q, k, v))]
    heads = [ops.many_heads(part, module.num_heads) for part in parts]
    together = ops.one_vector(ops.attention(heads[0], heads[1], heads[2]))
    return ops.affine(together, numbers(module.out_proj.weight), numbers(module.out_proj.bias)), None
