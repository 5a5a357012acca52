"""From a plan to a model: built, proved, refined where the plan was too hopeful, and tried to be broken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.certificate import Certificate
from onelayer.certificates.functions import bound_of, prove
from onelayer.compile.asked import written_as_python
from onelayer.compile.construction import CONSTRUCTIONS, Built, Request
from onelayer.errors import HypothesisError, PrecisionError
from onelayer.interfaces import Function
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant, Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.network.blocks import evaluate
from onelayer.problems.targets import Target

Array = NDArray[Any]
#: More levels are tried this often when the proved bound misses the tolerance that the plan promised.
REPAIRS = 5
#: Numbers in the sequences on which a new model is tried.
QUICK_NUMBERS = 1 << 17
#: Relative, of the target's own values: what an error found may exceed a bound by.
ROUNDING = 1e-9


def finish_model(request: Request, made: Made, plans: list[Plan]) -> Model:
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
        assumes=target_assumption(request.target, certificate),
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
        if written_as_python(request.target):
            other = "It varies more than samples showed: pass its Lipschitz constant, or a larger tolerance."
        raise PrecisionError("approximate", f"a model within {request.tolerance:g}", found, other)
    return replace(model, interface=replace(function, measured_error=measured))


def target_assumption(target: Target, certificate: Certificate | None) -> str:
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
class Made:
    plan: Plan
    built: Built
    certificate: Certificate | None
    bound: float
    kept: bool  # the tolerance: proved, or measured where there was nothing to prove

    def shortfall(self, request: Request) -> str:
        """Why the tolerance was not kept."""
        if self.certificate is None:
            return "nothing was proved"
        return proved_too_little(request, self.bound, self.bound - bound_of(self.certificate, "real"))


def proved_too_little(request: Request, bound: float, rounding: float) -> str:
    """Rounding is named, since its bound grows with the number of tokens and a larger model does not lower it."""
    of = f"rounding in {request.dtype} of {request.target.n:,} tokens, summed in any order"
    return f"the checker proved {bound:.3g}, of which {max(rounding, 0.0):.3g} is {of}"


def build_and_refine(request: Request, plan: Plan, tries: int | None = None) -> Made:
    """Build, prove, and refine where the plan was too hopeful."""
    construction = CONSTRUCTIONS[plan.construction]
    for _ in range(tries or REPAIRS):
        request.say(f"building {plan}")
        built = construction.build(request, plan.levels)
        request.say("asking the checker")
        certificate = prove(built.transformer, built.tensors, built.entries, request.tolerance, lambda *_: None)
        bound = np.inf if certificate is None else bound_of(certificate, request.dtype.name)
        if built.entries:
            kept = certificate is not None and bound <= request.tolerance
        else:  # nothing to prove: as well as it can be measured
            kept = _measure_error(request, built) <= request.tolerance
        if kept:
            break
        share = np.nan if certificate is None else _left_by_rounding(certificate, bound, request.tolerance)
        levels = construction.finer(plan.levels, share)
        if levels == plan.levels:
            break
        plan = replace(plan, levels=levels)
    return Made(plan, built, certificate, bound, kept)


def _left_by_rounding(certificate: Certificate, bound: float, tolerance: float) -> float:
    """The share of the error in real numbers with which, rounding being what it is, the tolerance would be kept."""
    real = bound_of(certificate, "real")
    return (tolerance - (bound - real)) / real


def _measure_error(request: Request, built: Built) -> float:
    """The largest error that is found as hard as the final figure is looked for."""
    target = request.target

    def error(X: Array) -> Array:
        found = built.form.decode(evaluate(built.transformer, X), None).astype(np.float64)
        return np.asarray(np.abs(found - target.evaluate(X.astype(np.float64))).reshape(len(X), -1).max(axis=1))

    return largest_error(error, built.box, QUICK_NUMBERS // (target.n * target.d), request.seed)[0]


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
