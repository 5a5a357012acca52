"""onelayer: compile data, or a function, into the explicit weights of a Transformer with one attention layer."""

from __future__ import annotations

from onelayer.approximation import Approximation, approximate
from onelayer.casting import cast
from onelayer.certify.certificate import Certificate, certify
from onelayer.constructions.contexts.boltzmann import boltzmann
from onelayer.constructions.memorization import memorize
from onelayer.errors import HypothesisError
from onelayer.export.bundle import load, save
from onelayer.memory import Memory
from onelayer.planning import Plan, plan
from onelayer.text import TextMemory, load_text, memorize_text

__version__ = "0.1.0"
__all__ = [
    "Approximation",
    "Certificate",
    "HypothesisError",
    "Memory",
    "OneLayerMemorizer",
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
