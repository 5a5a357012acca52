"""From a construction to claims about a function, as the checker judges them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.certificate import Certificate, Progress, judge_claims
from onelayer.certificates.names import name_tensors
from onelayer.network import Transformer
from onelayer.problems.targets import Target
from onelayer.problems.targets.enclosure import as_checked
from onelayer_checker import Claim

Array = NDArray[Any]
LARGEST = 2.0**900
#: The share of the tolerance that is small enough for a bound on the whole box.
ENOUGH = 0.125
#: Where it sees no symmetry, the checker looks at all orders of up to this many tokens; of more, it assumes it.
MOST_TOKENS = 6


def as_entry(target: Target, value_error: float) -> dict[str, Any] | None:
    """The target as a certificate names it: a program, or what is assumed of it; None if nothing is known.

    Of a program the checker sees the symmetry in its lines, or looks at all orders of a sequence, or assumes it,
    where there are too many.
    """
    program = target.program
    if program is not None and (
        target.kind == "ordered" or target.n <= MOST_TOKENS or as_checked(program).symmetric
    ):
        return program.to_json()
    if target.lipschitz is None:
        return None
    symmetric = target.kind != "ordered"
    return {"lipschitz": target.lipschitz.hex(), "error": value_error.hex(), "symmetric": symmetric}


def prove(
    transformer: Transformer,
    tensors: dict[str, Array],
    entries: tuple[dict[str, Any], ...],
    tolerance: float,
    progress: Progress,
) -> Certificate | None:
    """The claims, each with the smallest bound that the checker finds; None if it proves or is asked none.

    Claims about the whole box are proved only as far as they must be: within the tolerance.
    """
    if not entries:
        return None
    loose = []
    for entry in entries:
        claim = Claim.read({**entry, "bound": LARGEST.hex()})
        everywhere = claim.type == "sup_error_everywhere"
        loose.append(replace(claim, numbers=claim.numbers | {"bound": tolerance if everywhere else LARGEST}))
    names = name_tensors(transformer, loose[0].scope)
    report = judge_claims(
        transformer, tensors, names, [{**entry, "bound": LARGEST.hex()} for entry in entries], progress, []
    )
    claims: list[dict[str, Any]] = []
    verdicts: list[str] = []
    for entry, claim in zip(entries, loose, strict=True):
        wanted = replace(claim, numbers=claim.numbers | {"bound": report.least_bound(claim, ENOUGH * tolerance)})
        verdict = report.judge(wanted)
        if verdict.outcome != "proved":
            return None
        # The largest error that was certain is a bound that is proved by the same comparisons.
        bound = verdict.value
        if wanted.type == "lp_error":
            bound = float(np.nextafter(bound ** (1 / wanted.numbers["p"]), np.inf)) * (1 + 2.0**-30)
        claims.append({**entry, "bound": bound.hex()})
        claim = replace(wanted, numbers=wanted.numbers | {"bound": bound})
        verdicts.append(f"{claim}: {verdict.outcome}, {verdict.why}")
    return Certificate(tuple(claims), tensors, tuple(verdicts), names)


def bound_of(certificate: Certificate, arith: str) -> float:
    """The bound in the sup norm."""
    kinds = ("sup_error", "sup_error_everywhere", "formula_error")
    found = [c for c in certificate.claims if c["type"] in kinds and c["arith"] == arith]
    return float.fromhex(str(found[0]["bound"]))
