"""Claims about functions, added to the core's: sup_error, lp_error, sup_error_everywhere and formula_error."""

from __future__ import annotations

import numpy as np

from onelayer_checker.core.balls import joined
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import BLOCK
from onelayer_checker.core.judge import Judge
from onelayer_checker.functions import branch, hats, means, pooled
from onelayer_checker.functions.cells import find_cells, judge, judge_everywhere, read_target
from onelayer_checker.functions.formulas import read_formula
from onelayer_checker.functions.targets import Program

#: How far above an error that is reached a bound may stay, and how many boxes a smaller one is worth.
SLACK, BOXES = 0.15, 1 << 17
LARGEST = 2.0**1000
BOX = frozenset({"radius", "low", "high", "bound"})


def fits(found: Judge, claim: Claim) -> None:
    """Refuse a claim about another function than the network could be."""
    data = found.data
    whole = data.tokens.dtype != np.int64 and (data.lengths == data.tokens.shape[1]).all()
    if not whole or claim.scope == "last":
        raise Malformed("claim", f"{claim.type} is about all tokens of full sequences of real tokens")
    if isinstance(claim.target, Program):
        f, (n, d), q = claim.target, data.tokens.shape[1:], data.answers.shape[1]
        if (f.n, f.d, f.components, f.per) != (n, d, q, claim.scope):
            raise Malformed("claim", "the target takes or gives other numbers than the network")


def _too_wide(claim: Claim) -> bool:
    """The width of a box, and what lies a rounding beyond its ends, must be numbers too."""
    return max(abs(claim.numbers[end]) for end in ("low", "high")) > LARGEST


def _on_cells(found: Judge, claim: Claim) -> Verdict:
    """Of the balls around the stored sequences."""
    fits(found, claim)
    if _too_wide(claim):
        return Verdict("undecided", f"the box reaches beyond {LARGEST:.3g}", np.inf)
    if (layer := _of_whole_box(found, claim)) is not None:
        find_cells(found.network, claim, found.data.tokens)
        return means.judge(found.network, layer, claim, found.memo)
    samples = found.samples(claim.A, claim.scope, claim.numbers["radius"])
    readout, data = found.network.readout, found.data
    step = max(1, BLOCK // readout.widest)
    starts = range(0, len(samples.i), step)
    out = joined([readout.apply(samples.t[a : a + step], claim.A) for a in starts], axis=0)
    found.compare_ways(samples, claim.A)
    return judge(claim, found.network, data, out.reshape(*data.tokens.shape[:2], -1))


def _of_whole_box(found: Judge, claim: Claim) -> means.Layer | None:
    """The layer, where a mean is not read off cells: they are points, and it can be bounded on all of the box."""
    if claim.type != "lp_error" or claim.numbers["radius"] != 0 or not isinstance(claim.target, Program):
        return None
    return means.recognise(found.network, claim.target)


def _least_mean(found: Judge, claim: Claim, enough: float) -> float:  # noqa: ARG001
    """Of cells, what they prove is known at once."""
    fits(found, claim)
    layer = None if _too_wide(claim) else _of_whole_box(found, claim)
    if layer is None:
        return claim.numbers["bound"]
    return means.least_bound(found.network, layer, claim, found.memo)


def _everywhere(found: Judge, claim: Claim) -> Verdict:
    fits(found, claim)
    if _too_wide(claim):
        return Verdict("undecided", f"the box reaches beyond {LARGEST:.3g}", np.inf)
    return judge_everywhere(claim, found.network)


def _least_bound(found: Judge, claim: Claim, enough: float) -> float:
    """Where boxes are halved, what is proved without a bound in mind; hats are proved in one go."""
    fits(found, claim)
    target, (low, high) = claim.target, (claim.numbers[side] for side in ("low", "high"))
    if not isinstance(target, Program) or hats.recognise(found.network.readout.layers) is not None:
        return claim.numbers["bound"]
    problem = branch.Problem(found.network, target, low, high)
    key = ("least bound", target, low, high)
    if key not in found.memo:
        found.memo[key] = branch.smallest_bound(problem, SLACK, BOXES, enough)
    return float(min(claim.numbers["bound"], (found.memo[key] + problem.rounding(claim.A)) * (1 + 2.0**-30)))


KINDS |= {
    "sup_error": Kind(BOX | {"measure"}, _on_cells, read_target),
    "lp_error": Kind(BOX | {"p"}, _on_cells, read_target, _least_mean),
    "sup_error_everywhere": Kind(BOX - {"radius"}, _everywhere, read_target, _least_bound),
    "formula_error": Kind(frozenset({"bound"}), pooled.judge, read_formula),
}
