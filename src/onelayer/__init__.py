"""onelayer: compile data, or a function, into the explicit weights of a Transformer with one attention layer."""

from __future__ import annotations

from onelayer.certificates.certificate import Certificate
from onelayer.compile.approximate import approximate
from onelayer.compile.memorize import memorize
from onelayer.compile.planning import Plan, plan
from onelayer.compile.text import memorize_text
from onelayer.contexts.boltzmann import boltzmann
from onelayer.errors import DataError, FileError, HypothesisError, OnelayerError, OptionError
from onelayer.measure.survival import cast
from onelayer.model import Model, certify, load, save

#: Names of the first release: there is one kind of model now.
Memory = TextMemory = Approximation = Model
load_text = load

__version__ = "0.1.0"
__all__ = [
    "Approximation",
    "Certificate",
    "DataError",
    "FileError",
    "HypothesisError",
    "Memory",
    "Model",
    "OneLayerMemorizer",
    "OnelayerError",
    "OptionError",
    "Plan",
    "TextMemory",
    "__version__",
    "approximate",
    "boltzmann",
    "cast",
    "certify",
    "load",
    "load_text",
    "memorize",
    "memorize_text",
    "plan",
    "save",
    "to_onnx",
    "to_torch",
]


def __getattr__(name: str) -> object:
    """What needs an extra is imported when it is first asked for."""
    if name == "OneLayerMemorizer":
        from onelayer.sklearn import OneLayerMemorizer

        return OneLayerMemorizer
    if name == "to_torch":
        from onelayer.export.torch import to_torch

        return to_torch
    if name == "to_onnx":
        from onelayer.export.onnx import to_onnx

        return to_onnx
    raise AttributeError(f"module 'onelayer' has no attribute {name!r}")
