"""The checker's modules. A check takes them as an argument, so that a broken copy can be checked, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from onelayer_checker.core import averages, balls, exactness, graph, layers
from onelayer_checker.search import builder, cells, operations, parts, plan, stack, steps, sums, wholes

#: In an order in which they can be loaded.
LOADED = (
    balls,
    exactness,
    averages,
    layers,
    graph,
    steps,
    cells,
    wholes,
    parts,
    sums,
    operations,
    builder,
    plan,
    stack,
)
MODULES = SimpleNamespace(**{module.__name__.rpartition(".")[2]: module for module in LOADED})
SOURCES = {name: Path(module.__file__).read_text() for name, module in vars(MODULES).items()}
NAMES = ("real", "float64", "float32")


def run(check: Callable[..., Counter], modules: SimpleNamespace, name: str) -> Counter:
    """What a check saw. Overflow and NaN are results here, as they are while claims are judged."""
    with np.errstate(all="ignore"):
        return check(modules, name)
