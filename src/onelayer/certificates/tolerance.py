"""How far a certified answer may be from the stored one, and what is said where that cannot be proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.words import at_most
from onelayer.errors import OptionError, PrecisionError
from onelayer_checker import Claim, Report, Verdict

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]
#: What the checker's own rounding may add to a bound.
SLACK = 1 + 2.0**-30
#: The largest error after which a class is still the nearest whole number.
CLASSES = float(np.nextafter(0.5, 0.0))
#: A bound under which the checker says what it can prove.
LARGEST = float(np.finfo(np.float64).max)


REMEDY = 'Use readout="plateaus", or save without a certificate.'


class Unproved(PrecisionError):
    """The checker could not prove what was to be claimed in this arithmetic."""


def allowed_error(model: Model, answers: Array, tolerance: float | None) -> float:
    """Classes must be told apart. Of real answers it is what was asked for; else what rounding them to the model's
    dtype costs, or the error that an interpolating readout has."""
    if model.form.classes is not None:
        if tolerance is not None:
            found = f"the answers are {len(model.form.classes)} classes, and tolerance={tolerance}"
            raise OptionError("memorize", "real answers for a tolerance", found, "Leave it out.")
        return CLASSES
    if tolerance is not None and not (isinstance(tolerance, float | int) and 0 <= tolerance < np.inf):
        needs = "a tolerance that is a number of at least 0"
        raise OptionError("memorize", needs, f"tolerance={tolerance!r:.40}", "Give a number such as 1e-6.")
    dtype = model.transformer.dtype
    rounding = float(np.abs(answers - answers.astype(dtype)).max())
    most = SLACK * max(rounding, model.interface.error_upper) if tolerance is None else float(tolerance)
    with np.errstate(over="ignore"):
        apart = float((answers.max(axis=0) - answers.min(axis=0)).max())
    if 0 < apart <= 2 * most:
        needs = "answers that are further apart than twice their error"
        found = f"they spread over {apart:.3g} and may be off by {most:.3g}: a constant would do"
        if tolerance is not None:
            raise OptionError("memorize", needs, found, f"Give a tolerance below {apart / 2:.3g}.")
        raise PrecisionError("memorize", needs, found, 'Use dtype="float64".')
    return most


def prove_claims(report: Report, claims: Sequence[Claim], wrong: Callable[[], str]) -> list[tuple[Claim, Verdict]]:
    """The claims with the error, or margin, that was certain instead of the one asked for; an error where none is.

    ``wrong`` names the first answer that the model, when it is asked, does not give; empty if it gives them all.
    """
    found = {}
    for claim in sorted(claims, key=lambda claim: claim.arith == "real"):  # which others may imply
        found[claim.arith] = verdict = report.judge(claim)
        if verdict.outcome != "proved":
            raise _unproved_error(report, claims, claim, verdict, wrong())
    # The comparisons that proved the bound prove the largest error, which is not above it.
    return [
        (replace(claim, numbers=dict.fromkeys(claim.numbers, found[claim.arith].value)), found[claim.arith])
        for claim in claims
    ]


def _unproved_error(
    report: Report, claims: Sequence[Claim], claim: Claim, verdict: Verdict, wrong: str
) -> Unproved:
    if wrong:
        needs, remedy = "the answers that the model gives", "Certify the data that it memorised."
        return Unproved("memorize", needs, f"the first wrong answer: {wrong}", remedy)
    if claim.type == "argmax":
        found = f"it says {verdict.outcome}: {verdict.why}"
        return Unproved("memorize", f"logits whose largest the checker can prove in {claim.arith}", found, REMEDY)
    loose = [report.judge(replace(other, numbers={"eps": LARGEST})) for other in claims]
    best = at_most(max(bound.value for bound in loose))
    could = all(bound.outcome == "proved" for bound in loose)
    remedy = REMEDY
    if could and claim.numbers["eps"] != CLASSES:
        remedy = f"Pass tolerance={best} if that is enough. {remedy}"
    return Unproved(
        "memorize",
        f"answers that the checker can prove to within {claim.numbers['eps']:.3g} in {claim.arith}",
        f"it says {verdict.outcome}: {verdict.why}{f'; it can prove {best}' if could else ''}",
        remedy,
    )
