"""From a function to one layer: `approximate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from onelayer.compile import continuous, formula, positional, quantise
from onelayer.compile.asked import request_for, written_as_python
from onelayer.compile.construction import CONSTRUCTIONS, Request
from onelayer.compile.making import Made, build_and_refine, finish_model, proved_too_little
from onelayer.errors import HypothesisError, OptionError
from onelayer.interfaces import Function
from onelayer.interfaces.plan import Plan
from onelayer.model import Model
from onelayer.problems.targets import Kind

#: These modules register what "auto" compares.
OURS = (formula, quantise, positional, continuous)
#: A constant that is proposed is larger than the steepest slope seen by this factor.
STEEPER = 1.05
#: What helps where rounding in float32 takes more than a formula may cost.
DOUBLE = "Use float64, or a larger tolerance."


def approximate(
    target: Any,
    *,
    n: int,
    d: int = 1,
    low: float | Sequence[float] = 0.0,
    high: float | Sequence[float] = 1.0,
    tolerance: float,
    relative: bool = False,
    construction: str = "auto",
    allow_unproved: bool = False,
    lipschitz: float | None = None,
    kind: Kind | None = None,
    components: int | None = None,
    dtype: DTypeLike = "float32",
    seed: int = 0,
    on_step: Callable[[str], None] | None = None,
) -> Model:
    """Compile a continuous function of n tokens in [low, high]^d into a one-layer Transformer. No training.

    target        a name (`onelayer targets` lists them), an expression such as "x - mean(y)", or a function of
                  sequences [B, n, d] that returns [B, n, q] or [B, q]
    low, high     ends of the box: a number, or one for each component of a token
    tolerance     how far the model may be from it, in the largest component
    relative      the tolerance is a share of the range of the target's values on the box, of each output
    construction  "formula", "quantise", "published" (the paper's own form), "positional", "continuous", or "auto":
                  the formula compiled line by line if it is proved, else the smallest of the others that is
    allow_unproved  return a model even if nothing was proved; without it, that is an error
    lipschitz     of a function, in the largest component: what a proof for it assumes
    kind          of a function: "equivariant", "invariant" or "ordered"
    components    of a function: q, if it cannot be seen
    dtype         in which the model runs
    seed          same target and seed, same weights
    on_step       called with a line of text at each stage

    Raises HypothesisError before any work if the tolerance is out of reach (with what it would take, and what can
    be reached), if the target jumps or is undefined somewhere (with the place), and if nothing could be proved.
    """
    say = on_step or (lambda _: None)
    box: dict[str, Any] = {"n": n, "d": d, "low": low, "high": high, "tolerance": tolerance, "relative": relative}
    known: dict[str, Any] = {"lipschitz": lipschitz, "kind": kind, "components": components}
    request = request_for(target, **box, **known, dtype=dtype, seed=seed, say=say)
    if construction != "auto":
        return proved_or_raise(request, build(request, choose(request, construction)), allow_unproved)
    made, why = _at_once(request)
    if made is not None and made.kept:
        return finish_model(request, made, [made.plan])
    try:
        model = build(request, choose(request, construction))
    except HypothesisError as refusal:
        if written_as_python(request.target):
            raise
        found = f"{refusal.found}; {why}"
        if made is not None and request.dtype == np.float32:
            raise HypothesisError(refusal.subject, refusal.needs, found, DOUBLE) from refusal
        raise refusal.having_found(found) from refusal
    return proved_or_raise(request, model, allow_unproved)


def proved_or_raise(request: Request, model: Model, allow_unproved: bool) -> Model:
    """The model, unless nothing was proved of it and unproved models are not allowed."""
    function = model.interface_as(Function, "approximate")
    if allow_unproved or function.error_bound <= request.tolerance:
        return model
    found = f"the checker proved none of the {model.n_parameters:,} parameters by {function.construction}"
    if np.isfinite(function.error_bound):
        found = proved_too_little(request, function.error_bound, function.budget.number("floating_point"))
    remedy = "Use float64 or a larger tolerance, or pass allow_unproved=True for a model that is only measured."
    if written_as_python(request.target) and request.target.lipschitz is None:
        slope = 0.0 if request.target.steepest is None else request.target.steepest
        found = f"nothing is known of {request.target.name!r} but its values"
        remedy = (
            f"Pass lipschitz={slope * STEEPER:.4g} if that is true (the steepest seen was {slope:.4g}), write it "
            "as a formula, or pass allow_unproved=True for a model that is only measured."
        )
    found += f"; the largest error measured is {model.measured_error:.3g}"
    raise HypothesisError("approximate", f"a proof that the error is at most {request.tolerance:g}", found, remedy)


def _at_once(request: Request) -> tuple[Made | None, str]:
    """By a construction that no other is compared with where it is proved; or what was made, and why it is not."""
    why, short = list[str](), None
    for name, kind in CONSTRUCTIONS.items():
        if not kind.at_once:
            continue
        try:
            made = build_and_refine(request, kind.plan(request))
        except HypothesisError as refusal:
            why.append(f"{name}: {refusal.found}")
            continue
        if made.kept:
            return made, ""
        short = made
        why.append(f"{name}: {made.shortfall(request)}")
    return short, "; ".join(why)


def choose(request: Request, construction: str) -> list[Plan]:
    """What was asked for, or all that were compared; the best first: with a proof, then the fewest parameters."""
    if construction not in construction_names():
        known = ", ".join(construction_names())
        raise OptionError("approximate", f"a construction among {known}", f"{construction!r}", "Choose one.")
    request.say("planning: how fine the cells must be")
    compared = _compare(request) if construction == "auto" else [CONSTRUCTIONS[construction].plan(request)]
    if not any(plan.reachable for plan in compared):
        raise _out_of_reach(request, compared)
    return sorted(compared, key=lambda plan: (not plan.reachable, not plan.provable, plan.parameters))


def construction_names() -> list[str]:
    return ["auto", *CONSTRUCTIONS]


def _compare(request: Request) -> list[Plan]:
    """Every construction that this target admits."""
    plans: list[Plan] = []
    refusals = []
    for kind in CONSTRUCTIONS.values():
        try:
            found = kind.worth_comparing(request, plans) if kind.automatic else None
        except HypothesisError as refusal:
            refusals.append(refusal)
        else:
            plans += [] if found is None else [found]
    if not plans:
        raise refusals[0]
    return plans


def _out_of_reach(request: Request, compared: list[Plan]) -> HypothesisError:
    best = min(plan.error for plan in compared)
    coarser = f"a tolerance of about {best:.2g}, for " if np.isfinite(best) else ""
    return HypothesisError(
        "approximate",
        "a tolerance that this machine can reach",
        f"{request.tolerance:g} would take " + "; or ".join(map(str, compared)),
        f"Ask for {coarser}fewer tokens, or for a smaller box.",
    )


def build(request: Request, plans: list[Plan]) -> Model:
    """By the first plan that the checker then agrees to; if there is none, by the first."""
    reachable = [plan for plan in plans if plan.reachable]
    made = build_and_refine(request, reachable[0])
    for plan in reachable[1:]:
        if made.kept or not plan.provable:
            break
        again = build_and_refine(request, plan)
        made = again if again.kept else made
    return finish_model(request, made, plans)
