"""A model as an ONNX file of standard operators: one initialiser per weight, with the weight's name and bytes.

    inputs   tokens [N, n, d] in the model's dtype, or ids [N, n] int64; and, where there is padding, lengths [N]
             int64, each from 1 to n, or (as asked for) attention_mask [N, n] int64 with a 1 at every token
    output   outputs [N, n, q]; rows of padding mean nothing

`asked = model.ask(X)` has the tokens and lengths that go in, and `model.answers(outputs, asked)` is what
`model.predict(X)` gives.

What the numbers mean is in the file: names of tokens and classes, digests and claims of the certificate in its
metadata (`meaning_of`), and in the names of nodes the gadgets that they belong to.

Nothing is folded or re-associated, so that the initialisers are the tensors that a certificate talks about.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from onelayer.errors import MissingExtraError, OptionError
from onelayer.export.meaning import PREFIX, meaning_of
from onelayer.export.whole_file import write_whole
from onelayer.gadgets.stacks import Covered
from onelayer.network.layers import LARGE_BLOCK
from onelayer.network.weights import Attention, Grouped, Layer, Transformer

if TYPE_CHECKING:
    from onelayer.model import Model

try:
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    raise MissingExtraError("to_onnx", "onnx", "onnx") from missing

#: Opset 21 and its IR version, which onnxruntime reads from 1.20 on.
OPSET, IR_VERSION = 21, 10
#: A protobuf message ends at 2 GB; some of it is kept for the graph itself.
LARGEST, FOR_THE_GRAPH = (1 << 31) - 1, 1 << 20
MOST_LOOPS, MOST_PIVOTS = 1024, 128
#: How padding is given: a length of every sequence, or a mask with a 1 at every token.
Padding = Literal["lengths", "attention_mask"]


def to_onnx(model: Model | Transformer, path: str | os.PathLike[str], padding: Padding = "lengths") -> Path:
    """Write the model to one file; whatever happens, the path holds the old file, the new one, or nothing.

    ``padding`` names the second input, that nobody has to give: without it, all places are tokens. With a mask,
    padding may be on either side.
    """
    if padding not in get_args(Padding):
        needs = f"padding among {', '.join(get_args(Padding))}"
        raise OptionError("data", needs, f"padding={padding!r}", "Choose one of them.")
    transformer = model if isinstance(model, Transformer) else model.transformer
    size = sum(array.nbytes for _, array in transformer.tensors())
    if size + FOR_THE_GRAPH > LARGEST:
        raise OptionError(
            "data",
            "less than 2 GB of weights, since ONNX keeps a model in one protobuf message",
            f"this model has {size / 1e9:.2f} GB",
            "Use `save`, which has no such limit, or memorise with fewer plateaus or in float32.",
        )
    refuse_unwritable(transformer)
    made = build(transformer, padding, () if isinstance(model, Transformer) else model.gadgets)
    if not isinstance(model, Transformer):
        meaning = meaning_of(model)
        helper.set_model_props(made, meaning)
        made.doc_string = f"{meaning[PREFIX + 'model']}. {meaning[PREFIX + 'reading']}"
    content = made.SerializeToString()
    return write_whole(path, content)


def refuse_unwritable(model: Transformer) -> None:
    """A graph has no loop but is written out: of a layer, and of the elimination that solves a mesa head."""
    sizes = [layer.attention.head_size for layer in model.layers if layer.attention.kind == "mesa"]
    if max(sizes, default=0) > MOST_PIVOTS:
        needs = f"keys of at most {MOST_PIVOTS} numbers: the solve is written out, pivot by pivot"
        raise OptionError("mesa", needs, f"they have {max(sizes)}", "Export to PyTorch, which solves at once.")
    if (loops := sum(layer.repeat for layer in model.layers)) > MOST_LOOPS:
        needs, found = f"at most {MOST_LOOPS} loops, which ONNX writes out one by one", f"there are {loops:,}"
        raise OptionError("data", needs, found, "Export to PyTorch, or take fewer steps.")


def build(model: Transformer, padding: Padding = "lengths", gadgets: Sequence[Covered] = ()) -> onnx.ModelProto:
    """The graph `one-layer/1` of docs/certificate-v2.md as an ONNX model; gadgets give its nodes their names."""
    dtype = helper.np_dtype_to_tensor_dtype(model.dtype)
    ids = model.vocabulary_size is not None
    tokens = (
        helper.make_tensor_value_info("tokens", onnx.TensorProto.INT64, ["N", "n"])
        if ids
        else helper.make_tensor_value_info("tokens", dtype, ["N", "n", model.token_width])
    )
    # An input that has an initialiser need not be given. This one fits any number of sequences, so its axes must
    # not be named as those of the tokens are.
    axes = ["lengths_N"] if padding == "lengths" else ["mask_N", "mask_n"]
    second = helper.make_tensor_value_info(padding, onnx.TensorProto.INT64, axes)
    unpadded = numpy_helper.from_array(np.full([1] * len(axes), np.iinfo(np.int64).max), padding)
    outputs = helper.make_tensor_value_info("outputs", dtype, ["N", "n", model.output_width])
    nodes = Nodes(model.dtype, gadgets)
    nodes.add("Identity", forward(nodes, model, padding), name="outputs")
    initialisers = [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in model.tensors()]
    graph = helper.make_graph(nodes.list, "one-layer", [tokens, second], [outputs], [*initialisers, unpadded])
    return helper.make_model(
        graph,
        producer_name="onelayer",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )


class Nodes:
    """The nodes of a graph in order. A value is known by its name; constants are nodes, not initialisers."""

    def __init__(self, dtype: np.dtype[Any], gadgets: Sequence[Covered] = ()) -> None:
        self.dtype, self.gadgets, self.part = dtype, gadgets, "tokens"
        self.list: list[onnx.NodeProto] = []
        self.layer = self.loop = ""  # before the names of a layer's weights, and of a loop's values

    def add(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or f"{kind}_{len(self.list)}"
        self.list.append(helper.make_node(kind, list(inputs), [name], f"{self.part}/{name}", **attributes))
        return name

    def enter(self, part: str) -> None:
        """Nodes from here on belong to this part, and are named after it."""
        self.part = part

    def enter_layer(self, stack: str, layer: int) -> None:
        """They belong to a layer of a stack, and to the gadget which that layer is a part of."""
        own = [g.kind for g in self.gadgets if not self.layer and g.stack == stack and g.start <= layer < g.stop]
        self.enter("/".join([f"{self.layer}{stack}", *own, f"{layer}"]))

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"Constant_{len(self.list)}"
        return self.add("Constant", name=name, value=numpy_helper.from_array(np.asarray(value, dtype), name))

    def unsqueeze(self, x: str, *axes: int) -> str:
        return self.add("Unsqueeze", x, self.constant(axes))

    def reshape(self, x: str, *last: int) -> str:
        """Keep the axes of sequences and tokens (a 0 copies an axis) and give the last one a new shape."""
        return self.add("Reshape", x, self.constant([0, 0, *last]))


def forward(g: Nodes, model: Transformer, padding: Padding) -> str:
    length = g.add("Shape", "tokens", start=1, end=2)  # [n] as a list of one number
    order = g.add("Range", g.constant(0), g.add("Squeeze", length), g.constant(1))  # 0 .. n-1
    places = order
    if padding == "lengths":
        inside = g.add("Less", order, g.unsqueeze("lengths", 1), name="inside")  # [N, n], or [1, n] without lengths
    else:
        zero, shape = g.constant(0), g.add("Shape", "tokens", start=0, end=2)
        here = g.add("Not", g.add("Equal", "attention_mask", zero))
        inside = g.add("Expand", here, shape, name="inside")
        counted = g.add("CumSum", g.add("Cast", inside, to=onnx.TensorProto.INT64), g.constant(1))
        places = g.add("Max", g.add("Sub", counted, g.constant(1)), zero)  # from the first token on, [N, n]
    g.enter("embedding")
    h = embed(g, model, places, inside)
    for place, layer in enumerate(model.layers):
        g.layer = f"{place}." if place else ""
        g.enter(f"{g.layer}attention")
        mask, keys = visible(g, layer.attention, h, order, inside)
        for loop in range(layer.repeat):
            g.loop = f"loop{loop}." if loop else ""
            h = stack(g, "feedforward", layer.feedforward, h)
            g.enter(f"{g.layer}attention")
            h = g.add("Add", h, attention(g, layer.attention, h, mask, keys))
    g.loop = ""
    return stack(g, "readout", model.last_readout, h)


def embed(g: Nodes, model: Transformer, places: str, inside: str) -> str:
    e = model.embedding
    # Attention gives padding the weight 0, but 0 times NaN is NaN, and an id may be out of the table.
    if e is not None and e.table is not None:
        h = g.add("Gather", "embedding.table", g.add("Where", inside, "tokens", g.constant(0)))
    else:
        h = g.add("Where", g.unsqueeze(inside, 2), "tokens", g.constant(0, g.dtype))
        if e is not None:
            h = g.add("MatMul", h, "embedding.lift")
    if e is not None and e.bias is not None:
        h = g.add("Add", h, "embedding.bias")
    if e is not None and e.positions is not None:  # gathered, not sliced: a sequence that is too long is an error
        h = g.add("Add", h, g.add("Gather", "embedding.positions", places))
    return h


def visible(g: Nodes, a: Attention, h: str, places: str, inside: str) -> tuple[str, str]:
    """Which keys a query may see, a mask that broadcasts to [N, H, query, key]; and their number, if it matters."""
    mask = g.unsqueeze(inside, 1, 2)
    asking = g.unsqueeze(places, 1)
    if a.causal or a.window is not None:
        mask = g.add("And", mask, g.add("LessOrEqual", places, asking))
    if a.window is not None:
        mask = g.add("And", mask, g.add("Less", g.add("Sub", asking, places), g.constant(a.window)))
    if a.context is not None:
        flag = g.add("Gather", h, g.constant(a.context), axis=2)
        keys = g.add("Not", g.add("Equal", flag, g.constant(0, g.dtype)))
        mask = g.add("And", mask, g.unsqueeze(keys, 1, 2))
    if not a.mean and a.context is None and a.window is None:
        return mask, ""
    ones = g.add("Cast", mask, to=helper.np_dtype_to_tensor_dtype(g.dtype))
    return mask, g.add("ReduceSum", ones, g.constant([-1]))


def attention(g: Nodes, a: Attention, h: str, mask: str, keys: str) -> str:
    """What the heads add to the residual stream; heads are an axis of their own, [N, H, n, s]."""
    one, own = g.unsqueeze(h, 1), f"{g.layer}attention"
    q, k, v = (g.add("MatMul", one, f"{own}.W_{letter}") for letter in "QKV")
    if a.b_Q is not None:
        q = g.add("Add", q, g.unsqueeze(f"{own}.b_Q", 1))
    if a.b_K is not None:
        k = g.add("Add", k, g.unsqueeze(f"{own}.b_K", 1))
    if a.kind == "mesa":
        return _write_averages(g, solve(g, a, q, k, v, mask, own), own)
    # Not Transpose and MatMul: onnxruntime 1.20 fuses the two into an operator that it has in float32 only.
    logits = g.add("Einsum", q, k, equation="nhqs,nhks->nhqk")
    if a.kind in ("linear", "relu"):
        weights = g.add("Relu", logits) if a.kind == "relu" else logits
        averages = g.add("MatMul", g.add("Where", mask, weights, g.constant(0, g.dtype)), v)
        averages = g.add("Div", averages, g.add("Max", keys, g.constant(1, g.dtype))) if a.mean else averages
        return _write_averages(g, averages, own)
    logits = g.add("Where", mask, logits, g.constant(-np.inf, g.dtype), name=f"{g.layer}{g.loop}logits")
    if a.kind == "softmax":
        name = f"{g.layer}{g.loop}attention"
        averages = g.add("MatMul", g.add("Softmax", logits, axis=-1, name=name), v)
    else:  # the largest logits share the mass equally
        last = g.constant([-1])
        top = g.add("Equal", logits, g.add("ReduceMax", logits, last))
        weights = g.add("Cast", top, to=helper.np_dtype_to_tensor_dtype(g.dtype))
        averages = g.add("Div", g.add("MatMul", weights, v), g.add("ReduceSum", weights, last))
    if keys:  # a query may see none
        zero = g.constant(0, g.dtype)
        averages = g.add("Where", g.add("Greater", keys, zero), averages, zero)
    return _write_averages(g, averages, own)


def solve(g: Nodes, a: Attention, q: str, k: str, v: str, mask: str, own: str) -> str:
    """q (sum k^T k + ridge I)^-1 sum k^T v for every query, by elimination: the matrix is positive definite, so no
    pivot is 0. [M | c] loses column after column: A - A_i x row / A_ii, and the row is put back."""
    size = a.head_size
    seen = g.add("Cast", mask, to=helper.np_dtype_to_tensor_dtype(g.dtype))
    length = g.add("Shape", q, start=2, end=3)
    shape = g.add("Concat", g.add("Shape", q, start=0, end=1), g.constant([1]), length, length, axis=0)
    every = g.add("Expand", seen, shape)  # [N, 1, query, key]
    gram = g.add("Einsum", every, k, k, equation="nxqk,nhks,nhkt->nhqst")
    cross = g.add("Einsum", every, k, v, equation="nxqk,nhks,nhkv->nhqsv")
    ridge = g.add("Mul", g.unsqueeze(f"{own}.ridge", 1, 2, 3), g.constant(np.eye(size), g.dtype))
    A = g.add("Concat", g.add("Add", gram, ridge), cross, axis=-1)  # [N, H, query, s, s + values]
    for i in range(size):
        at = g.constant([i])
        column, line = g.add("Gather", A, at, axis=-1), g.add("Gather", A, at, axis=-2)
        line = g.add("Div", line, g.add("Gather", column, at, axis=-2))
        kept = g.add("Sub", column, g.constant(np.eye(size)[:, i : i + 1], g.dtype))
        A = g.add("Sub", A, g.add("Mul", kept, line))
    found = g.add("Slice", A, g.constant([size]), g.constant([size + a.W_V.shape[2]]), g.constant([4]))
    return g.add("Einsum", q, found, equation="nhqs,nhqsv->nhqv")


def _write_averages(g: Nodes, averages: str, own: str) -> str:
    return g.add("ReduceSum", g.add("MatMul", averages, f"{own}.W_O"), g.constant([1]), keepdims=0)


def stack(g: Nodes, name: str, layers: Sequence[Layer], h: str) -> str:
    for i, layer in enumerate(layers):
        if i:
            h = g.add("Relu", h)
        g.enter_layer(name, i)
        own = f"{g.layer}{name}.{i}"
        h = write_grouped(g, own, layer, h) if isinstance(layer, Grouped) else g.add("MatMul", h, f"{own}.weight")
        h = g.add("Add", h, f"{own}.bias", name=f"{g.loop}{own}")
    return h


def write_grouped(g: Nodes, name: str, layer: Grouped, h: str) -> str:
    """Products with each group's block, then sums over its inputs.

    onnxruntime has no Conv in float64, and sums over the last axis ten times faster than over another.
    """
    groups, inputs, outputs = layer.weight.shape
    if inputs > LARGE_BLOCK:  # all products at once would not fit into memory
        split = g.add("Transpose", g.reshape(h, groups, inputs), perm=[0, 2, 1, 3])
        sums = g.add("Transpose", g.add("MatMul", split, f"{name}.weight"), perm=[0, 2, 1, 3])
        return g.reshape(sums, groups * outputs)
    weight = g.add("Transpose", f"{name}.weight", perm=[0, 2, 1])
    products = g.add("Mul", g.reshape(h, groups, 1, inputs), weight)  # [N, n, groups, outputs, inputs]
    return g.reshape(g.add("ReduceSum", products, g.constant([-1]), keepdims=0), groups * outputs)
