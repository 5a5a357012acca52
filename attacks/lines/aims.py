"""Which tests are aimed at which module of the checker: stages, the cheapest first."""

from __future__ import annotations

from attacks.lines.workshop import PACKAGE, Stages

RINGS = ("core", "search", "functions", "arb")
T = "tests/checker"
CELLS, SEARCH, MODELS = f"{T}/test_steps_and_cells.py", f"{T}/test_search.py", f"{T}/test_search_of_models.py"
AIMS: dict[str, Stages] = {
    "core/averages": [[f"{T}/test_averages.py"]],
    "core/balls": [[f"{T}/test_balls.py"], [f"{T}/test_kernel.py::test_the_kernel_encloses"]],
    "core/claims": [[f"{T}/test_claims.py"]],
    "core/classes": [[f"{T}/test_classes.py"]],
    "core/exactness": [[f"{T}/test_exact_sums.py", f"{T}/test_whole_numbers.py"]],
    "core/files": [[f"{T}/test_files.py"]],
    "core/given": [[f"{T}/test_given.py"], [f"{T}/test_meanings.py"]],
    "core/graph": [[f"{T}/test_graph.py"]],
    "core/judge": [[f"{T}/test_judge.py", f"{T}/test_claims.py"]],
    "core/layers": [[f"{T}/test_layers.py"]],
    "core/meaning": [[f"{T}/test_given.py"], [f"{T}/test_meanings.py"]],
    "core/names": [[f"{T}/test_given.py"], [f"{T}/test_meanings.py"]],
    "core/processes": [[f"{T}/test_processes.py"]],
    "core/samples": [[f"{T}/test_samples.py"]],
    "core/separated": [[f"{T}/test_separated.py", f"{T}/test_claims.py"]],
    "core/texts": [[f"{T}/test_given.py"], [f"{T}/test_meanings.py"]],
    "search/builder": [[SEARCH], [MODELS]],
    "search/cells": [[CELLS], [MODELS]],
    "search/operations": [[SEARCH], [MODELS]],
    "search/parts": [[f"{T}/test_parts.py"], [SEARCH], [MODELS]],
    "search/plan": [[SEARCH], [MODELS]],
    "search/stack": [[SEARCH], [MODELS]],
    "search/steps": [[CELLS], [MODELS]],
}


def modules(ring: str | None, name: str | None) -> list[str]:
    """The modules asked for that have aims: of a ring, of a name, or all."""
    listed = [module for module in AIMS if ring is None or module.startswith(f"{ring}/")]
    if name is not None:
        listed = [module for module in listed if name in (module, module.rpartition("/")[2])]
    if not listed:
        raise SystemExit(f"no such module: ring {ring}, module {name}; there are {', '.join(AIMS)}")
    return listed


def unaimed(ring: str) -> list[str]:
    """Modules of a ring at which no tests are aimed."""
    found = [f"{ring}/{path.stem}" for path in sorted((PACKAGE / ring).glob("*.py")) if path.read_text().strip()]
    return [module for module in found if module not in AIMS]
