"""Networks that others made, as formulas: a PyTorch module, an ONNX file, an MLPRegressor of scikit-learn.

The formula is that of the weights in real arithmetic. What is no formula of one attention layer is refused with the
name of the operation.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onelayer.errors import FileError, MissingExtraError, OptionError
from onelayer.problems.targets.networks.outputs import outputs_of, placed_outputs
from onelayer.problems.targets.networks.values import Tensor, Unsupported, placed_tokens, tokens
from onelayer.problems.targets.pooled import Pooled, PooledBuilder
from onelayer.problems.targets.program import Program


def kind_of(target: Any) -> str | None:
    """torch, onnx, perceptron; None if it is no network."""
    if isinstance(target, str | os.PathLike):
        return "onnx" if str(target).endswith(".onnx") else None
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(target).__mro__}
    if "torch.nn.modules.module.Module" in names:
        return "torch"
    if any(name.startswith("onnx.") and name.endswith("ModelProto") for name in names):
        return "onnx"
    return "perceptron" if any(name.endswith(".MLPRegressor") for name in names) else None


def name_of(target: Any) -> str:
    return Path(target).name if isinstance(target, str | os.PathLike) else type(target).__name__


def read_network(target: Any, n: int, d: int) -> Pooled:
    """The formula that a network is."""
    builder = PooledBuilder(n, d)
    lines, per = outputs_of(_tensor(target, tokens(builder)))
    return builder.build(lines, "token" if per == "token" else "sequence", not builder.counts)


def network_program(target: Any, n: int, d: int, per_token: bool) -> Program:
    """The program that a network is for sequences of n tokens; of any number of layers, with or without places."""
    builder = PooledBuilder(n, d)
    lines, per = placed_outputs(_tensor(target, placed_tokens(builder)), per_token)
    return builder.program(lines, "token" if per == "token" else "sequence")


def _tensor(target: Any, given: Tensor) -> Tensor:
    """What the network makes of tokens."""
    d = given.builder.d
    try:
        return _read(target, given)
    except Unsupported as why:
        needs, found = f"a network of tokens with {d} components", f"{name_of(target)}: {why}"
        raise OptionError("network", needs, found, "Give d= as wide as its tokens are.") from why
    except RecursionError:
        found = f"{name_of(target)} is nested too deep"
        raise OptionError("network", "a smaller network", found, "Take fewer layers.") from None


def _read(target: Any, given: Tensor) -> Tensor:
    kind = kind_of(target)
    if kind == "perceptron":
        from onelayer.problems.targets.networks.perceptrons import read_perceptron

        return read_perceptron(target, given)
    if kind == "torch":
        from onelayer.problems.targets.networks.torch_modules import read_module

        return read_module(target, given)
    try:
        from onelayer.problems.targets.networks.onnx_files import read_file, read_graph
    except ImportError as missing:
        raise MissingExtraError("a network", "onnx", "onnx") from missing
    if isinstance(target, str | os.PathLike):
        if not Path(target).is_file():
            raise FileError("file", "an ONNX file", f"{target} is not there", "Check the path.")
        target = read_file(Path(target))
    return read_graph(target, given)
