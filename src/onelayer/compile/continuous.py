"""`continuous` from a tolerance: how many units a fit needs, and the model with what to prove of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.functions import as_entry
from onelayer.compile.construction import Built, Construction, Request, construction, extrapolate_levels
from onelayer.errors import HypothesisError
from onelayer.functions import continuous
from onelayer.functions.continuous import Continuous, Domain, SampledStream
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

Array = NDArray[Any]

#: Units that are tried, doubling; what a fit may show on samples, of the tolerance that is then to be proved.
FEWEST, MOST_UNITS, SHARE = 16, 512, 0.7
#: Components of all tokens for which branch and bound is of use, and for which it takes seconds.
PROVABLE, QUICKLY = 3, 2
#: Sequences that the certificate stores as examples.
EXAMPLES = 16
#: Measured on two cores: heads and a proof, a fit of this many units, and numbers that it holds.
SECONDS, SECONDS_A_UNIT, NUMBERS_A_UNIT = 3.0, 0.02, 40_000


def worth_a_try(target: Target, fewer_than: float) -> bool:
    """Whether a fit and its proof are a matter of seconds, and may need fewer parameters than ``fewer_than``."""
    known = target.kind != "ordered" and target.program is not None
    return known and target.n * target.d <= QUICKLY and _parameters(target, FEWEST) < fewer_than


def plan(request: Request, fewer_than: float = np.inf) -> Plan:
    """The fewest units, among powers of two, whose error on fresh samples leaves room for a proof; no fit is tried
    that does not have fewer parameters than ``fewer_than``."""
    _needs_symmetry(request)
    request.needs_a_cube("continuous")
    t, units = request.target, FEWEST
    allowed, error = SHARE * request.tolerance, fit_continuous(request, FEWEST).error
    # An error falls like 1/units^2 at best: beyond that no further fit is tried.
    while error > allowed and units < MOST_UNITS and error < allowed * (2 * MOST_UNITS / units) ** 2:
        if _parameters(t, 2 * units) >= fewer_than:
            break
        units *= 2
        error = min(error, fit_continuous(request, units).error)
    if error > allowed:  # what it would take, at best
        units = max(2 * units, extrapolate_levels(units, error, allowed, rate=2))
    return Plan(
        "continuous",
        units,
        error / SHARE,
        cells=0,
        parameters=_parameters(t, units),
        bytes=8.0 * NUMBERS_A_UNIT * units,
        seconds=SECONDS + SECONDS_A_UNIT * units,
        reachable=error <= allowed,
        size=f"{units} units, no cells",
        provable=t.program is not None and t.n * t.d <= PROVABLE,
    )


def _parameters(target: Target, units: int) -> int:
    return continuous.parameters(target.n, target.d, units, target.components)


def build(request: Request, units: int) -> Built:
    """The model and its claims. All of its error is one part: the readout's, which the checker bounds."""
    _needs_symmetry(request)
    made, t = fit_continuous(request, units), request.target
    X = domain(request).draw(EXAMPLES, np.random.default_rng([request.seed, 23])).astype(request.dtype)
    answers = t.evaluate(X.astype(np.float64)).reshape(-1, t.components)
    return Built(
        made.transformer,
        made.gadgets,
        made.form,
        "fit",
        "largest |readout - target|, enclosed on every box of a partition",
        (Constant("left_out", 0.0, "the bound holds on the whole box"),),
        (*made.constants, Constant("sampled_error", made.error, f"largest on {continuous.FRESH:,} fresh samples")),
        Box(t.n, t.d, request.low, request.high, request.dtype, np.empty(0)),
        0.0,
        {"tokens": np.ascontiguousarray(X), "answers": np.ascontiguousarray(answers)},
        _entries(request),
    )


def _entries(request: Request) -> tuple[dict[str, Any], ...]:
    t = request.target
    if t.program is None or t.n * t.d > PROVABLE:
        return ()
    box = {"low": request.low.hex(), "high": request.high.hex(), "target": as_entry(t, 0.0)}
    return tuple(
        {"type": "sup_error_everywhere", "arith": arith, "scope": t.per, **box}
        for arith in ("real", request.dtype.name)
    )


def domain(request: Request) -> Domain:
    return Domain(request.target.n, request.target.d, request.low, request.high, request.dtype)


@lru_cache(maxsize=8)
def fit_continuous(request: Request, units: int) -> Continuous:
    """A plan has made what is then built."""
    request.say(f"fitting {units} units")
    return continuous.construct(heads(request), units)


@lru_cache(maxsize=2)
def heads(request: Request) -> SampledStream:
    request.say("choosing heads")
    return continuous.choose(request.target.evaluate, domain(request), request.target.per, request.seed)


def _needs_symmetry(request: Request) -> None:
    if request.target.kind == "ordered":
        raise HypothesisError(
            "continuous",
            "a target that is equivariant, or invariant, under permutations of the tokens",
            f"{request.target.name!r} depends on their order",
            'Use construction="positional" or "quantise".',
        )


@construction
class ByFit(Construction):
    name, order, automatic = "continuous", 4, True

    @classmethod
    def plan(cls, request: Request) -> Plan:
        return plan(request)

    @classmethod
    def worth_comparing(cls, request: Request, others: Sequence[Plan]) -> Plan | None:
        """A fit costs more than a look at cells: it ends where it would be the larger model."""
        least = min((other.parameters for other in others if other.reachable and other.provable), default=np.inf)
        if not worth_a_try(request.target, least):
            return None
        found = plan(request, least)
        # One that stopped at that size says nothing of what it would reach.
        return found if found.reachable or np.isinf(least) else None

    @classmethod
    def build(cls, request: Request, levels: int) -> Built:
        return build(request, levels)
