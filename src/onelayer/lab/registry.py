"""Which experiments there are: the modules of `onelayer.lab.experiments`, and the code behind their rows."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.abc import InspectLoader
from importlib.metadata import version
from types import ModuleType
from typing import cast

from onelayer.errors import OptionError
from onelayer.lab import experiments
from onelayer.lab.experiment import Experiment

#: What an experiment says and shows of its rows, and which it asks for; a row stays the same when these change.
TOLD = {"QUESTION", "HYPOTHESES", "EARLIER", "cases", "plot", "verdict"}
#: Where code lies that may change rows, and what of it only judges and draws them.
LIBRARY = {"onelayer", "onelayer_checker"}
TELLING = {f"onelayer.lab.{name}" for name in ("experiment", "statistics", "pictures", "report")}
TELLING |= {"onelayer.measure.pictures"}


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
    """Of the code that computes an experiment's rows and of the library's version: other code, other rows.

    The code is the experiment's own, without what only tells, and that of every module of the library that it
    imports, directly or not; comments, docstrings and imports do not count.
    """
    module = cast(ModuleType, find(name)).__name__
    seen, waiting = {module}, [module]
    while waiting:
        for found in imported(waiting.pop()) - seen:
            seen.add(found)
            waiting.append(found)
    digest = hashlib.sha256(version("onelayer").encode())
    for each in sorted(seen):
        digest.update(each.encode() + code_of(each).encode())
    return digest.hexdigest()[:16]


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    loader = spec.loader if spec else None
    source = loader.get_source(module) if isinstance(loader, InspectLoader) else None
    return ast.parse(source or "")


@cache
def code_of(module: str) -> str:
    """What a module does, without docstrings, comments, imports, and what an experiment only tells."""
    told = TOLD if module.startswith(f"{experiments.__name__}.") else set()
    kept = []
    for node in _tree(module).body:
        assigned = [part for target in getattr(node, "targets", ()) for part in ast.walk(target)]
        names = {getattr(node, "name", ""), *(getattr(part, "id", "") for part in assigned)}
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not names & told:
            kept.append(_Bare().visit(copy.deepcopy(node)))
    return "\n".join(ast.unparse(node) for node in kept)


class _Bare(ast.NodeTransformer):
    """Takes strings away that stand for themselves."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


@cache
def imported(module: str) -> frozenset[str]:
    """The modules of the library that a module imports when it is imported or run, but for those that only tell."""
    found: set[str] = set()
    for node in _walk(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Of a package only the modules that are named: what else it brings along does not compute rows.
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {full if _is_ours(full) and _is_module(full) else node.module for full in inside}
    ours = {name for name in found if _is_ours(name) and name not in TELLING}
    return frozenset(name for name in ours - LIBRARY if _is_module(name))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but what is for type checkers only."""
    yield node
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in LIBRARY


def _is_module(name: str) -> bool:
    """Whether the name is one of a module, not of something in a module."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
