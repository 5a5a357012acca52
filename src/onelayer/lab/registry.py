"""Which experiments there are: the modules of `onelayer.lab.experiments`, and the code behind their rows."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import pkgutil
from importlib.metadata import version
from types import ModuleType
from typing import cast

from onelayer.errors import OptionError
from onelayer.lab import experiments
from onelayer.lab.experiment import Experiment

#: What an experiment says and shows of its rows; they stay the same when it is reworded.
TOLD = {"QUESTION", "HYPOTHESES", "plot", "verdict"}


def names() -> tuple[str, ...]:
    """Every experiment, by the name of its module with dashes."""
    return tuple(sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(experiments.__path__)))


def find(name: str) -> Experiment:
    """The experiment of that name; importing it is cheap, running it may need extras."""
    if name not in names():
        raise OptionError(
            "lab",
            "the name of an experiment",
            f"{name!r} is not one of them",
            f"Choose one of {', '.join(names())}.",
        )
    module = importlib.import_module(f"onelayer.lab.experiments.{name.replace('-', '_')}")
    return cast(Experiment, module)


def fingerprint(name: str) -> str:
    """Of the code that computes an experiment's rows and of the library's version: other code, other rows."""
    digest = hashlib.sha256(version("onelayer").encode())
    for node in ast.parse(inspect.getsource(cast(ModuleType, find(name)))).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        assigned = [part for target in getattr(node, "targets", ()) for part in ast.walk(target)]
        if not {getattr(node, "name", ""), *(getattr(part, "id", "") for part in assigned)} & TOLD:
            digest.update(ast.unparse(node).encode())
    return digest.hexdigest()[:16]
