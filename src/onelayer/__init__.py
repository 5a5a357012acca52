"""onelayer: compile data, or a function, into the explicit weights of a Transformer with one attention layer.

Every public name is imported when it is first asked for, so that `import onelayer` costs nothing.
"""

from __future__ import annotations

import sys
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers and editors, which do not run `__getattr__`
    from onelayer.certificates.certificate import Certificate  # noqa: F401
    from onelayer.compile.approximate import approximate  # noqa: F401
    from onelayer.compile.attend import attend  # noqa: F401
    from onelayer.compile.attention import equivalent, fit_attention, identify  # noqa: F401
    from onelayer.compile.bound import ErrorBound, bound_error  # noqa: F401
    from onelayer.compile.edit import Edit, edit, forget  # noqa: F401
    from onelayer.compile.in_mean import compile_in_mean  # noqa: F401
    from onelayer.compile.learner import learner  # noqa: F401
    from onelayer.compile.logits import with_logits  # noqa: F401
    from onelayer.compile.memorize import memorize  # noqa: F401
    from onelayer.compile.planning import Plan, plan  # noqa: F401
    from onelayer.compile.prune import Pruned, prune  # noqa: F401
    from onelayer.compile.text import memorize_text  # noqa: F401
    from onelayer.contexts.boltzmann import boltzmann  # noqa: F401
    from onelayer.errors import DataError, FileError, HypothesisError, OnelayerError, OptionError  # noqa: F401
    from onelayer.export.onnx import to_onnx  # noqa: F401
    from onelayer.export.torch import to_torch  # noqa: F401
    from onelayer.hf import to_hf  # noqa: F401
    from onelayer.in_context import InContextRegressor  # noqa: F401
    from onelayer.lens import to_transformer_lens  # noqa: F401
    from onelayer.measure.encoding import encode  # noqa: F401
    from onelayer.measure.survival import cast  # noqa: F401
    from onelayer.model import Model, certify, explore, save  # noqa: F401
    from onelayer.network.grading import absorb  # noqa: F401
    from onelayer.sharded.model import ShardedModel, load  # noqa: F401
    from onelayer.sklearn import OneLayerMemorizer  # noqa: F401

    Memory = TextMemory = Approximation = Model
    load_text = load

__version__ = "0.2.0"

#: Where each public name is; and the package without which those of an extra cannot be imported.
_NAMES = {
    "onelayer.certificates.certificate": ("Certificate",),
    "onelayer.compile.approximate": ("approximate",),
    "onelayer.compile.attend": ("attend",),
    "onelayer.compile.attention": ("equivalent", "fit_attention", "identify"),
    "onelayer.compile.bound": ("ErrorBound", "bound_error"),
    "onelayer.compile.edit": ("Edit", "edit", "forget"),
    "onelayer.compile.in_mean": ("compile_in_mean",),
    "onelayer.compile.learner": ("learner",),
    "onelayer.compile.logits": ("with_logits",),
    "onelayer.compile.memorize": ("memorize",),
    "onelayer.compile.planning": ("Plan", "plan"),
    "onelayer.compile.prune": ("Pruned", "prune"),
    "onelayer.compile.text": ("memorize_text",),
    "onelayer.contexts.boltzmann": ("boltzmann",),
    "onelayer.errors": ("DataError", "FileError", "HypothesisError", "OnelayerError", "OptionError"),
    "onelayer.measure.encoding": ("encode",),
    "onelayer.measure.survival": ("cast",),
    "onelayer.model": ("Model", "certify", "explore", "save"),
    "onelayer.network.grading": ("absorb",),
    "onelayer.sharded.model": ("ShardedModel", "load"),
}
_EXTRAS = {
    "onelayer.export.onnx": ("to_onnx", "onnx"),
    "onelayer.export.torch": ("to_torch", "torch"),
    "onelayer.in_context": ("InContextRegressor", "sklearn"),
    "onelayer.sklearn": ("OneLayerMemorizer", "sklearn"),
}
#: Not in `__all__`: their libraries take seconds to import, which `from onelayer import *` must not.
_LARGE = {"to_hf": "onelayer.hf", "to_transformer_lens": "onelayer.lens"}
#: Names of the first release: there is one kind of model now.
_FORMER = {"Approximation": "Model", "Memory": "Model", "TextMemory": "Model", "load_text": "load"}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
_WHERE |= {name: module for module, (name, _) in _EXTRAS.items()} | _LARGE

__all__ = [
    "__version__",
    *(name for names in _NAMES.values() for name in names),
    *(name for name, package in _EXTRAS.values() if find_spec(package)),
    *_FORMER,
]


def __getattr__(name: str) -> object:
    name = _FORMER.get(name, name)
    if name not in _WHERE:
        raise AttributeError(f"module 'onelayer' has no attribute {name!r}")
    found: object = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found  # found without a detour the next time, and not hidden by a module of its name
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_FORMER})


class _Module(ModuleType):
    """nnsight gives every object a method `save`, which a plain module would have before it asks `__getattr__`."""

    @cached_property
    def save(self) -> object:
        return __getattr__("save")


sys.modules[__name__].__class__ = _Module
