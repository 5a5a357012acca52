"""An ONNX graph as a formula: node by node, constants by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from onelayer.errors import FileError, OptionError
from onelayer.problems.targets.networks import operations as ops
from onelayer.problems.targets.networks.products import matrix_product, softmax
from onelayer.problems.targets.networks.values import BATCH, Tensor, Unsupported

Array = NDArray[Any]
UNARY = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Exp": "exp", "Log": "log", "Neg": "neg"}
UNARY |= {"Sqrt": "sqrt", "Abs": "abs", "Identity": "identity", "Softplus": "softplus", "Reciprocal": "reciprocal"}
UNARY |= {"Sin": "sin", "Cos": "cos"}
BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Max": "max", "Min": "min"}
REDUCED = {"ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "max"}


def read_file(path: Path) -> Any:
    try:
        return onnx.load(path)
    except Exception as error:  # protobuf has errors of its own
        needs, found = "an ONNX file that can be read", f"{path}: {error}"
        raise FileError("file", needs, found, "Write it again.") from error


def read_graph(model: Any, given: Tensor) -> Tensor:
    """What the graph makes of tokens [B, n, d]."""
    graph = model.graph
    known: dict[str, Any] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    inputs = [entry.name for entry in graph.input if entry.name not in known]
    if len(inputs) != 1 or len(graph.output) != 1:
        outputs = [entry.name for entry in graph.output]
        needs, found = "a graph of one input and one output", f"inputs {inputs}, outputs {outputs}"
        raise OptionError("network", needs, found, "Export it so that it takes tokens [B, n, d] alone.")
    known[inputs[0]] = given
    for node in graph.node:
        try:
            found = _of(node, [known[name] if name else None for name in node.input])
        except Unsupported as why:
            raise refused(f"{node.name or node.output[0]} ({node.op_type})", str(why)) from why
        known |= zip(node.output, found if isinstance(found, tuple) else (found,), strict=False)
    made = known[graph.output[0].name]
    if not isinstance(made, Tensor):
        raise OptionError("network", "an output that depends on the tokens", "it is constant", "Check the graph.")
    return made


def refused(where: str, what: str) -> OptionError:
    needs = "operations that are formulas of one attention layer"
    return OptionError("network", needs, f"{where}: {what}", f"It has {', '.join(sorted(NODES))}.")


def _of(node: Any, given: list[Any]) -> Any:
    handler = NODES.get(node.op_type)
    if handler is None:
        raise Unsupported("no such operation")
    options = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    if not any(isinstance(value, Tensor) for value in given) and node.op_type in FOLDED:
        return FOLDED[node.op_type](*given, **options)
    return handler(*given, **options)


def _gemm(
    a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
) -> Tensor:
    if transA or not isinstance(a, Tensor) or isinstance(b, Tensor):
        raise Unsupported("a product with the weights on the left")
    W = np.asarray(b, np.float64) if transB else np.asarray(b, np.float64).T
    return ops.affine(a, alpha * W, None if c is None else beta * np.asarray(c, np.float64))


def _matmul(a: Any, b: Any) -> Tensor:
    like = a if isinstance(a, Tensor) else b
    return matrix_product(ops.as_tensor(like, a), ops.as_tensor(like, b))


def _reduce(name: str) -> Callable[..., Tensor]:
    def reduced(
        t: Tensor, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0, **options: Any
    ) -> Tensor:
        axes = options.get("axes", axes)
        if axes is None and noop_with_empty_axes:
            return t
        return ops.over_axes(t, None if axes is None else [int(a) for a in axes], name, bool(keepdims))

    return reduced


def _reshape(t: Tensor, sizes: Any, allowzero: int = 0) -> Tensor:
    listed = [int(s) if not isinstance(s, str) else s for s in sizes]
    return t.reshaped([t.axes[i] if s == 0 and not allowzero else s for i, s in enumerate(listed)])


def _slice(t: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for a, b, k, step in zip(starts, ends, axes, steps, strict=True):
        t = t.taken(int(k), slice(int(a), int(min(b, 1 << 30)), int(step)))
    return t


def _split(t: Tensor, sizes: Any = None, axis: int = 0, num_outputs: int | None = None, **options: Any) -> Any:
    width, k = t.axes[t.axis(axis)], t.axis(axis)
    if not isinstance(width, int):
        raise Unsupported("tokens apart from each other")
    sizes = options.get("split", sizes)
    parts = [width // (num_outputs or 1)] * (num_outputs or 1) if sizes is None else [int(s) for s in sizes]
    ends = np.cumsum([0, *parts])
    return tuple(t.taken(k, slice(int(a), int(b))) for a, b in pairwise(ends))


def _squeeze(t: Tensor, axes: Any = None) -> Tensor:
    for k in sorted((t.axis(int(a)) for a in (() if axes is None else axes)), reverse=True):
        t = t.squeezed(k)
    return t


def _unsqueeze(t: Tensor, axes: Any) -> Tensor:
    for k in sorted(int(a) for a in axes):
        t = t.unsqueezed(k)
    return t


def _shape(t: Any, start: int = 0, end: int | None = None) -> Array:
    axes = t.axes if isinstance(t, Tensor) else np.shape(t)
    return np.array(list(axes)[start:end], object)


def _flatten(t: Tensor, axis: int = 1) -> Tensor:
    if axis != 1 or any(isinstance(a, str) for a in t.axes[1:]):
        raise Unsupported("tokens side by side: a formula knows no places of tokens")
    return t.reshaped([BATCH, -1])


def _gather(data: Any, which: Any, axis: int = 0) -> Any:
    if isinstance(which, Tensor):
        raise Unsupported("numbers of tokens as indices")
    if isinstance(data, Tensor):
        at = np.asarray(which)
        return data.taken(axis, int(at) if at.ndim == 0 else [int(i) for i in at])
    return np.take(np.asarray(data), np.asarray(which, np.int64), axis=axis)


FOLDED: dict[str, Callable[..., Any]] = {
    "Concat": lambda *parts, axis: np.concatenate([np.asarray(p).ravel() for p in parts], axis=axis),
    "Unsqueeze": lambda a, axes: np.expand_dims(a, tuple(int(k) for k in axes)),
    "Squeeze": lambda a, axes=None: np.squeeze(a, None if axes is None else tuple(int(k) for k in axes)),
    "Transpose": lambda a, perm=None: np.transpose(a, perm),
    "Reshape": lambda a, sizes, **_: np.reshape(a, [int(s) for s in sizes]),
    "Identity": lambda a: a,
    "Cast": lambda a, to: a,  # noqa: ARG005
    "Sqrt": lambda a: np.sqrt(np.asarray(a, np.float64)),
    "Mul": lambda a, b: np.asarray(a, np.float64) * np.asarray(b, np.float64),
    "Div": lambda a, b: np.asarray(a, np.float64) / np.asarray(b, np.float64),
}
NODES: dict[str, Callable[..., Any]] = {
    **{name: (lambda t, _op=op: ops.unary(_op, t)) for name, op in UNARY.items()},
    **{name: (lambda a, b, _op=op: ops.binary(_op, a, b)) for name, op in BINARY.items()},
    **{name: _reduce(op) for name, op in REDUCED.items()},
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": lambda t, axis=-1: softmax(t, axis),
    "LeakyRelu": lambda t, alpha=0.01: ops.leaky(alpha, t),
    "Clip": lambda t, low=None, high=None: ops.clipped(low, high, t),
    "Pow": ops.power,
    "Transpose": lambda t, perm=None: t.permuted(list(perm or range(len(t.axes) - 1, -1, -1))),
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Split": _split,
    "Gather": _gather,
    "Shape": _shape,
    "Concat": FOLDED["Concat"],
    "Cast": lambda t, to: t,  # noqa: ARG005
    "Dropout": lambda t, *_, **__: t,
    "Constant": lambda **options: (
        numpy_helper.to_array(options["value"]) if "value" in options else np.asarray(next(iter(options.values())))
    ),
}
