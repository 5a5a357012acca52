"""Which tests are aimed at which module of the checker: files, the cheapest first."""

from __future__ import annotations

from attacks.lines.workshop import PACKAGE

RINGS = ("core", "search", "functions", "looped", "arb")


def _tests(*names: str) -> list[str]:
    return [f"tests/checker/test_{name.replace('::', '.py::', 1)}{'' if '::' in name else '.py'}" for name in names]


SEARCH = _tests("wholes", "plans", "pairs", "gates", "compared", "search_units", "search", "search_of_models")
AIMS: dict[str, list[str]] = {
    "core/averages": _tests("averages", "sixteen_bits"),
    "core/balls": _tests("balls", "radii", "kernel::test_the_kernel_encloses", "sixteen_bits"),
    "core/budget": _tests("budget"),
    "core/claims": _tests("claims", "sixteen_bits"),
    "core/classes": _tests("classes"),
    "core/exactness": _tests("exact_sums", "whole_numbers", "sixteen_bits"),
    "core/files": _tests("files", "sixteen_bits"),
    "core/given": _tests("own_data", "given"),
    "core/graph": _tests("streams", "graph", "sixteen_bits"),
    "core/judge": _tests("judge", "claims", "largest", "sixteen_bits"),
    "core/largest": _tests("largest"),
    "core/layers": _tests("layers", "largest"),
    "core/meaning": _tests("bounds", "largest"),
    "core/names": _tests("names", "meanings", "largest"),
    "core/processes": _tests("processes"),
    "core/samples": _tests("samples"),
    "core/separated": _tests("separated", "claims"),
    "core/texts": _tests("texts"),
    "looped/algorithms": _tests("algorithms", "identities", "loop_judge"),
    "looped/definite": _tests("definite"),
    "looped/floats": _tests("floats"),
    "looped/identified": _tests("identified"),
    "looped/judge": _tests("loop_judge"),
    "looped/lattice": _tests("lattice"),
    "looped/limits": _tests("ridge_limits"),
    "looped/near": _tests("near"),
    "looped/network": _tests("looped_network"),
    "looped/panels": _tests("panel_units", "panels"),
    "looped/patches": _tests("patches"),
    "looped/polynomials": _tests("polynomials"),
    "looped/programs": _tests("programs"),
    "looped/residuals": _tests("residuals"),
    "looped/risks": _tests("risks_by_hand"),
    "looped/rounding": _tests("loop_shapes", "loop_rounding"),
    "looped/smoothers": _tests("smoothers_by_hand"),
    "looped/witnesses": _tests("witnesses", "prompts"),
    "functions/algebra": _tests("algebra"),
    "functions/blocks": _tests("blocks_by_hand", "blocks::test_a_block_is_as_far_from_its_line_as_is_said"),
    "functions/branch": _tests("branch_by_hand"),
    "functions/cells": _tests("cells_by_hand", "boxes_by_hand"),
    "functions/deviation": _tests("tilted_lines", "deviation"),
    "functions/differences": _tests("blocks_by_hand", "blocks::test_a_block_is_as_far_from_its_line_as_is_said"),
    "functions/expansions": _tests("expansions", "means"),
    "functions/extremes": _tests("extremes", "relaxations"),
    "functions/formulas": _tests("meaning_of_formulas", "tilted_lines"),
    "functions/hats": _tests("copies_by_hand", "hats_by_hand"),
    "functions/hinges": _tests("hinges", "means"),
    "functions/intervals": _tests("intervals", "targets", "jets"),
    "functions/jets": _tests("jets"),
    "functions/means": _tests("means"),
    "functions/norms": _tests("norms"),
    "functions/ordering": _tests("orderings"),
    "functions/pooled": _tests("pooled_by_hand", "pooled"),
    "functions/ramps": _tests("ramps"),
    "functions/relaxations": _tests("relaxation_lines", "relaxations"),
    "functions/rounding": _tests("rounding_by_hand", "pooled_by_hand", "branch"),
    "functions/simplices": _tests("simplices", "orderings"),
    "functions/slopes": _tests("slopes_by_hand"),
    "functions/symmetry": _tests("orderings"),
    "functions/tilted": _tests("tilted", "tilted_lines"),
    "functions/targets": _tests("targets_by_hand", "targets"),
    "search/builder": SEARCH,
    "search/cells": _tests("cells", "decisions", "steps_and_cells", "pairs", "search_of_models"),
    "search/operations": SEARCH,
    "search/parts": _tests("parts") + SEARCH,
    "search/plan": SEARCH,
    "search/stack": [*SEARCH, *_tests("largest")],
    "search/steps": _tests("wholes", "decisions", "steps_and_cells"),
    "search/sums": SEARCH,
    "search/wholes": _tests("wholes"),
}


def modules(ring: str | None, name: str | None) -> list[str]:
    """The modules asked for that have aims: of a ring, of a name, or all."""
    listed = [module for module in AIMS if ring is None or module.startswith(f"{ring}/")]
    if name is not None:
        listed = [module for module in listed if name in (module, module.rpartition("/")[2])]
    if not listed:
        raise SystemExit(f"no such module: ring {ring}, module {name}; there are {', '.join(AIMS)}")
    return listed


def modules_without_aim(ring: str) -> list[str]:
    """Modules of a ring at which no tests are aimed."""
    found = [f"{ring}/{path.stem}" for path in sorted((PACKAGE / ring).glob("*.py")) if path.read_text().strip()]
    return [module for module in found if module not in AIMS]
