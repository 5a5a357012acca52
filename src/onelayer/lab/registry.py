"""Which experiments there are: the modules of `onelayer.lab.experiments`, and the code behind their rows."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, PathFinder
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
#: Who does the work: rows are the same wherever they are computed.
WORKERS = {"onelayer.sharded.workers"}
#: A package that only tells: statements in words.
WORDS = "onelayer.statements"


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
    return _digest(cast(ModuleType, experiment).__name__, start)


@cache
def _digest(module: str, start: str) -> str:
    """Of all code that ``start`` of an experiment stands on: settings that are computed alike share it."""
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


def forget() -> None:
    """What was read of sources: for whoever changes them while this runs."""
    for remembered in (_digest, _spec, _statements, _reached, _checker):
        remembered.cache_clear()


@cache
def _spec(module: str) -> ModuleSpec | None:
    """Where a module lies, or nothing if there is none of that name. Unlike `find_spec`, this imports nothing."""
    parent = module.rpartition(".")[0]
    if not parent:
        return importlib.util.find_spec(module)
    above = _spec(parent)
    if above is None or above.submodule_search_locations is None:
        return None
    places = getattr(sys.modules.get(parent), "__path__", above.submodule_search_locations)
    return PathFinder.find_spec(module, places)


@dataclass(frozen=True)
class Statement:
    """Of a module: its code, which an import has none of, and the modules of the library that it imports."""

    code: str | None
    imports: frozenset[str]


def _body(module: str) -> list[ast.stmt]:
    """A module's statements without docstrings."""
    spec = _spec(module)
    loader = spec.loader if spec else None
    source = loader.get_source(module) if isinstance(loader, InspectLoader) else None
    tree = ast.parse(source or "")
    for node in [*_walk(tree)]:
        for block in _blocks(node):
            block[:] = [ast.Pass() if _is_words(inside) else inside for inside in block]
    return tree.body


def _is_words(node: ast.AST) -> bool:
    """Whether a statement is a string that stands for itself, as a docstring does."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@cache
def _statements(module: str) -> list[Statement]:
    """What each statement of a module does; its tree is not kept, which would slow every later one down."""
    imports = (ast.Import, ast.ImportFrom)
    return [
        Statement(None if isinstance(node, imports) else ast.unparse(node), _imported_by(node))
        for node in _body(module)
    ]


def code_of(module: str, start: str = COMPUTES) -> str:
    """What a module does, without docstrings, comments and imports; of an experiment, what ``start`` uses."""
    return "\n".join(each.code for each in _used(module, start) if each.code is not None)


def _used(module: str, start: str) -> list[Statement]:
    """The statements of a module that count: of an experiment those that ``start`` uses, of others all."""
    found = _statements(module)
    own = module.startswith(f"{experiments.__name__}.")
    return [found[index] for index in _reached(module, start)] if own else found


@cache
def _reached(module: str, start: str) -> list[int]:
    """Of a module's statements those that ``start`` uses, by what it names and what that names in turn.

    A statement that gives nothing a name may do anything, so it is one of them, with what it names.
    """
    body = _body(module)
    names = [_names(node, ast.Store) for node in body]
    reached = {index for index, given in enumerate(names) if start in given or not given}
    waiting = list(reached)
    while waiting:
        used = _names(body[waiting.pop()], ast.Load)
        new = {index for index, given in enumerate(names) if given & used} - reached
        reached |= new
        waiting += new
    return sorted(reached)


def _names(node: ast.stmt, how: type[ast.expr_context]) -> set[str]:
    """The names that a statement gives (Store), or those that it uses anywhere within (Load)."""
    if how is ast.Store and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if how is ast.Store and isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, how)}


def imported(module: str, start: str = COMPUTES) -> frozenset[str]:
    """The modules of the library that a module imports when it is imported or run.

    Those that only tell, or share out work, are left out.
    """
    return frozenset[str]().union(*(each.imports for each in _used(module, start)))


def _imported_by(statement: ast.stmt) -> frozenset[str]:
    """What a statement imports, as `imported` says."""
    found: set[str] = set()
    for node in _walk(statement, types=False):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Of a package only the modules that are named: what else it brings along does not compute rows.
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {full if _is_ours(full) and _spec(full) else node.module for full in inside}
    beside = TELLING | WORKERS
    ours = {name for name in found if _is_ours(name) and name not in beside and not name.startswith(WORDS)}
    ours |= _checker() if CHECKER in ours else frozenset()
    return frozenset(name for name in ours - LIBRARY if _spec(name))


@cache
def _checker() -> frozenset[str]:
    """All of the checker: it finds the rings that a claim needs by itself, and verdicts are in rows."""
    spec = _spec(CHECKER)
    places = spec.submodule_search_locations if spec else None
    return frozenset(found.name for found in pkgutil.walk_packages(places, f"{CHECKER}."))


def _walk(node: ast.AST, *, types: bool = True) -> Iterator[ast.AST]:
    """A statement and those within it, however deep; without ``types`` not what is for type checkers only."""
    yield node
    if not types and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    for block in _blocks(node):
        for inside in block:
            yield from _walk(inside, types=types)


def _blocks(node: ast.AST) -> list[list[ast.AST]]:
    """The statements that a node holds, or what holds them in turn; expressions, most of a tree, hold none."""
    held = (getattr(node, name, None) for name in ("body", "orelse", "finalbody", "handlers", "cases"))
    return [block for block in held if isinstance(block, list)]


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in LIBRARY
