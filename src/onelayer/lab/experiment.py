"""What an experiment is: one question, one module, rows computed from a case and a seed, a picture, and an answer.

A module of `onelayer.lab.experiments` has
    QUESTION     one sentence that ends with a question mark
    HYPOTHESES   what the theory, or we, expect
    EXTRAS       extras that it needs beside `lab`, for example ("torch",)
    cases(preset)        the settings to look at, each a flat dict; preset is "quick" or "full"
    run(case, seed)      rows, flat dicts of numbers, words and None; the same rows for the same case and seed
    plot(rows)           a matplotlib figure
    verdict(rows)        the answer, with numbers computed from the rows
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from importlib.metadata import version
from types import ModuleType
from typing import Any, Literal, Protocol, cast

from onelayer.errors import HypothesisError

#: What an experiment says and shows of its rows; they stay the same when it is reworded.
TOLD = {"QUESTION", "HYPOTHESES", "plot", "verdict"}
Case = dict[str, Any]
Row = dict[str, Any]
Preset = Literal["quick", "full"]


@dataclass(frozen=True)
class Verdict:
    """A plain answer, and the findings behind it, each a sentence with numbers from the rows."""

    answer: Literal["yes", "no", "partly", "open"]
    says: str
    findings: tuple[str, ...] = ()


class Experiment(Protocol):
    """The names above, as a module has them."""

    __name__: str
    QUESTION: str
    HYPOTHESES: tuple[str, ...]
    EXTRAS: tuple[str, ...]

    def cases(self, preset: Preset) -> list[Case]: ...

    def run(self, case: Case, seed: int) -> list[Row]: ...

    def plot(self, rows: list[Row]) -> Any: ...

    def verdict(self, rows: list[Row]) -> Verdict: ...


def names() -> tuple[str, ...]:
    """Every experiment, by the name of its module with dashes."""
    from onelayer.lab import experiments

    return tuple(sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(experiments.__path__)))


def find(name: str) -> Experiment:
    """The experiment of that name; importing it is cheap, running it may need extras."""
    if name not in names():
        raise HypothesisError(
            "lab", "the name of an experiment", f"{name!r} is none", f"Choose of {', '.join(names())}."
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
