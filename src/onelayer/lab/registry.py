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
from onelayer.lab.experiment import Case, Experiment

#: What of an experiment computes rows. Which it asks for and what it says of them may change, a row does not.
COMPUTES = "run"
#: Where code lies that may change rows, and what of it only judges and draws them.
CHECKER = "onelayer_checker"
LIBRARY = {"onelayer", CHECKER}
TELLING = {f"onelayer.lab.{name}" for name in ("endings", "experiment", "statistics", "pictures", "report")}
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


def fingerprint(name: str, case: Case) -> str:
    """Of the code that computes the rows of a setting and of the library's version: other code, other rows.

    The code is that part of the experiment's own which computes them, and every module of the library that this
    part imports, directly or not; comments, docstrings and imports do not count.
    """
    experiment = find(name)
    computes = getattr(experiment, "computes", None)
    start = cast(str, computes(case).__name__) if computes else COMPUTES
    module = cast(ModuleType, experiment).__name__
    digest = hashlib.sha256(version("onelayer").encode())
    for each in sorted(stands_on(module, start)):
        digest.update(each.encode() + code_of(each, start).encode())
    return digest.hexdigest()[:16]


def stands_on(module: str, start: str = COMPUTES) -> set[str]:
    """A module and all others that it imports, directly or not; of an experiment's own, what ``start`` uses."""
    seen, waiting = {module}, [module]
    while waiting:
        new = imported(waiting.pop(), start) - seen
        seen |= new
        waiting += new
    return seen


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    loader = spec.loader if spec else None
    source = loader.get_source(module) if isinstance(loader, InspectLoader) else None
    return ast.parse(source or "")


@cache
def code_of(module: str, start: str = COMPUTES) -> str:
    """What a module does, without docstrings, comments and imports; of an experiment, what ``start`` uses."""
    kept = [node for node in _body(module, start) if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(ast.unparse(_Bare().visit(copy.deepcopy(node))) for node in kept)


def _body(module: str, start: str) -> list[ast.stmt]:
    body = _tree(module).body
    return _reached(body, start) if module.startswith(f"{experiments.__name__}.") else body


def _reached(body: list[ast.stmt], start: str) -> list[ast.stmt]:
    """Of a module's statements those that ``start`` uses, by what it names and what that names in turn.

    A statement that gives nothing a name may do anything, so it is one of them, with what it names.
    """
    names = [_names(node, ast.Store) for node in body]
    reached = {index for index, given in enumerate(names) if start in given or not given}
    waiting = list(reached)
    while waiting:
        used = _names(body[waiting.pop()], ast.Load)
        new = {index for index, given in enumerate(names) if given & used} - reached
        reached |= new
        waiting += new
    return [body[index] for index in sorted(reached)]


def _names(node: ast.stmt, how: type[ast.expr_context]) -> set[str]:
    """The names that a statement gives (Store), or those that it uses anywhere within (Load)."""
    if how is ast.Store and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if how is ast.Store and isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, how)}


class _Bare(ast.NodeTransformer):
    """Takes strings away that stand for themselves."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


@cache
def imported(module: str, start: str = COMPUTES) -> frozenset[str]:
    """The modules of the library that a module imports when it is imported or run, but for those that only tell."""
    found: set[str] = set()
    for node in (inside for statement in _body(module, start) for inside in _walk(statement)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Of a package only the modules that are named: what else it brings along does not compute rows.
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {full if _is_ours(full) and _is_module(full) else node.module for full in inside}
    ours = {name for name in found if _is_ours(name) and name not in TELLING}
    ours |= _checker() if CHECKER in ours else frozenset()
    return frozenset(name for name in ours - LIBRARY if _is_module(name))


@cache
def _checker() -> frozenset[str]:
    """All of the checker: it finds the rings that a claim needs by itself, and verdicts are in rows."""
    spec = importlib.util.find_spec(CHECKER)
    places = spec.submodule_search_locations if spec else None
    return frozenset(found.name for found in pkgutil.walk_packages(places, f"{CHECKER}."))


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
