"""From a function to one layer: `approximate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from onelayer.certificates.certificate import Certificate
from onelayer.certificates.functions import bound_of, prove
from onelayer.compile import continuous, formula, positional, quantise
from onelayer.compile.construction import CONSTRUCTIONS, Built, Request
from onelayer.errors import HypothesisError, OptionError, PrecisionError
from onelayer.interfaces import Function
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant, Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.problems.targets import Kind, Target, resolve

#: These modules register what "auto" compares.
OURS = (formula, quantise, positional, continuous)
#: Finer cells are tried this often when the proved bound misses the tolerance that the plan promised.
REPAIRS, FINER = 5, 1.15
#: Numbers in the sequences on which a new model is tried.
QUICK_NUMBERS = 1 << 17
#: Relative, of the target's own values: what an error found may exceed a bound by.
ROUNDING = 1e-9


def approximate(
    target: Any,
    *,
    n: int,
    d: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    tolerance: float,
    construction: str = "auto",
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
    tolerance     how far the model may be from it, in the largest component
    construction  "formula", "quantise", "published" (the paper's own form), "positional", "continuous", or "auto":
                  the formula compiled line by line if it is proved, else the smallest of the others that is
    lipschitz     of a function, in the largest component: what a proof for it assumes
    kind          of a function: "equivariant", "invariant" or "ordered"
    components    of a function: q, if it cannot be seen
    dtype         in which the model runs
    seed          same target and seed, same weights
    on_step       called with a line of text at each stage

    Raises HypothesisError before any work if the tolerance is out of reach: with what it would take, and what can
    be reached.
    """
    say = on_step or (lambda _: None)
    request = _request(target, n, d, low, high, tolerance, lipschitz, kind, components, dtype, seed, say)
    if construction != "auto":
        return _build(request, _choose(request, construction))
    made, why = _at_once(request)
    if made is not None:
        return _finished(request, made, [made.plan])
    try:
        return _build(request, _choose(request, construction))
    except HypothesisError as refusal:
        raise refusal.having_found(f"{refusal.found}; {why}") from refusal


def _at_once(request: Request) -> tuple[_Made | None, str]:
    """By a construction that no other is compared with where it is proved; or why there is no such."""
    why = []
    for name, kind in CONSTRUCTIONS.items():
        if not kind.at_once:
            continue
        try:
            made = _repaired(request, kind.plan(request))
        except HypothesisError as refusal:
            why.append(f"{name}: {refusal.found}")
            continue
        if made.kept:
            return made, ""
        why.append(f"{name}: the tolerance was not proved")
    return None, "; ".join(why)


def _request(
    target: Any,
    n: int,
    d: int,
    low: float,
    high: float,
    tolerance: float,
    lipschitz: float | None,
    kind: Kind | None,
    components: int | None,
    dtype: DTypeLike,
    seed: int,
    say: Callable[[str], None],
) -> Request:
    """Check everything that can be checked without building anything."""
    if not all(isinstance(x, Real) for x in (low, high, tolerance)) or not all(
        isinstance(x, Integral) for x in (n, d)
    ):
        given = f"n={n!r}, d={d!r}, low={low!r}, high={high!r}, tolerance={tolerance!r}"
        raise OptionError("approximate", "whole n and d, numbers for the rest", given, "Give them so.")
    if not (np.isfinite([low, high]).all() and low < high):
        given, remedy = f"low={low}, high={high}", "Give finite ends, the smaller as low."
        raise OptionError("approximate", "a box with low < high", given, remedy)
    if not 0 < tolerance < np.inf:
        raise OptionError("approximate", "a tolerance above 0", f"tolerance={tolerance}", "Give, say, 0.05.")
    if type(seed) is not int or seed < 0:
        raise OptionError("approximate", "a whole seed of at least 0", f"seed={seed!r}", "Give 0, 1, 2, ...")
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise OptionError("approximate", "dtype float32 or float64", f"dtype {number}", "Change it.")
    low, high = (float(np.asarray(edge, number)) for edge in (low, high))  # what the model can be asked about
    found = resolve(target, n=n, d=d, low=low, high=high, lipschitz=lipschitz, kind=kind, components=components)
    return Request(found, low, high, float(tolerance), number, seed, say)


def _choose(request: Request, construction: str) -> list[Plan]:
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


def _build(request: Request, plans: list[Plan]) -> Model:
    """By the first plan that the checker then agrees to; if there is none, by the first."""
    reachable = [plan for plan in plans if plan.reachable]
    made = _repaired(request, reachable[0])
    for plan in reachable[1:]:
        if made.kept or not plan.provable:
            break
        again = _repaired(request, plan)
        made = again if again.kept else made
    return _finished(request, made, plans)


def _finished(request: Request, made: _Made, plans: list[Plan]) -> Model:
    """The model with its bound, which is tried to be broken."""
    request.say("trying to break the bound")
    built, certificate, bound = made.built, made.certificate, made.bound
    function = Function(
        form=built.form,
        target=request.target,
        construction=made.plan.construction,
        low=request.low,
        high=request.high,
        tolerance=request.tolerance,
        budget=Ledger(_budget(built, certificate, bound)),
        error_bound=bound,
        left_out=built.left_out,
        measured_error=np.nan,
        samples=QUICK_NUMBERS // (request.target.n * request.target.d),
        box=built.box,
        assumes=assumed(request.target, certificate),
        compared=tuple(plans),
    )
    ledger = Ledger((*_general(request, made.plan, plans), *built.constants))
    model = Model(built.transformer, function, ledger, certificate, built.gadgets)
    measured, where = largest_error(model.errors, function.box, function.samples, request.seed)
    if measured > bound * (1 + ROUNDING):
        raise _contradiction(function, measured, where)
    if measured > request.tolerance * (1 + ROUNDING):
        found = f"at {where.tolist()} the model is off by {measured:.3g} in {request.dtype}"
        other = "Use float64, or a larger tolerance." if request.dtype == np.float32 else "Use a larger tolerance."
        raise PrecisionError("approximate", f"a model within {request.tolerance:g}", found, other)
    return replace(model, interface=replace(function, measured_error=measured))


def assumed(target: Target, certificate: Certificate | None) -> str:
    """What the proof takes for granted of the target; empty if it is enclosed by the checker itself."""
    entries = () if certificate is None else certificate.claims
    if not any("lipschitz" in entry["target"] for entry in entries):
        return ""
    symmetric = "" if target.kind == "ordered" else f" and {target.kind}"
    return f"the target is {target.lipschitz:.6g}-Lipschitz{symmetric}"


def _contradiction(model: Function, measured: float, where: Any) -> HypothesisError:
    """A proof rests on what is assumed of a function: where the model misses its bound, that does not hold."""
    found = f"at {where.tolist()} the model is off by {measured:.6g}; {model.error_bound:.6g} would follow"
    assert model.assumes, f"an error above a proved bound: {found}"
    remedy = "Pass a larger Lipschitz constant, or another kind."
    return HypothesisError("approximate", f"what it assumes: {model.assumes}", found, remedy)


@dataclass(frozen=True)
class _Made:
    plan: Plan
    built: Built
    certificate: Certificate | None
    bound: float
    kept: bool  # the tolerance, or there was nothing to prove


def _repaired(request: Request, plan: Plan) -> _Made:
    """Build, prove, and refine where the plan was too hopeful."""
    for _ in range(REPAIRS):
        request.say(f"building {plan}")
        built = CONSTRUCTIONS[plan.construction].build(request, plan.levels)
        request.say("asking the checker")
        certificate = prove(built.transformer, built.tensors, built.entries, request.tolerance, lambda *_: None)
        bound = np.inf if certificate is None else bound_of(certificate, request.dtype.name)
        kept = not built.entries or (certificate is not None and bound <= request.tolerance)
        if kept:
            break
        plan = replace(plan, levels=max(plan.levels + 1, int(FINER * plan.levels)))
    return _Made(plan, built, certificate, bound, kept)


def _general(request: Request, plan: Plan, compared: list[Plan]) -> list[Constant]:
    others = "; ".join(str(other) for other in compared if other.construction != plan.construction)
    return [
        Constant("target", request.target.name, request.target.says),
        Constant("construction", plan.construction, f"instead of {others}" if others else "no other was planned"),
        Constant("tolerance", request.tolerance, "asked for"),
        Constant("low", request.low, "of every component of a token"),
        Constant("high", request.high, "of every component of a token"),
    ]


def _budget(built: Built, certificate: Certificate | None, bound: float) -> tuple[Constant, ...]:
    """What the checker found beyond the known parts is the construction's own."""
    if certificate is None:
        why = "the checker could not prove it" if built.entries else "nothing is known of the target"
        return (Constant(built.source, np.inf, f"{why}: measured, not proved"), *built.budget)
    rounding = max(bound - bound_of(certificate, "real"), 0.0)
    meaning = "the bound in floating point, in any order of summation, less that in real numbers"
    last = Constant("floating_point", rounding, meaning)
    known = sum(Ledger((*built.budget, last)).number(line.name) for line in (*built.budget, last))
    return (Constant(built.source, max(bound - known, 0.0), built.meaning), *built.budget, last)
