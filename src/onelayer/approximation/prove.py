"""From a construction to claims about a function, as the checker judges them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certify.certificate import Certificate
from onelayer.model import Transformer
from onelayer.targets import Target
from onelayer_checker import branch, hats
from onelayer_checker.claims import Claim, Judge, Progress, read_claim
from onelayer_checker.data import read_data
from onelayer_checker.functions import MOST_TOKENS
from onelayer_checker.network import Network, build
from onelayer_checker.targets import Program

Array = NDArray[Any]
LARGEST = 2.0**900
#: Where the checker halves boxes for a smaller bound: how far above an error it may stay, how many boxes that is
#: worth, and the share of the tolerance that is small enough.
SLACK, BOXES, ENOUGH = 0.15, 1 << 17, 0.125


def as_entry(target: Target, value_error: float) -> dict[str, Any] | None:
    """The target as a certificate names it: a program, or what is assumed of it; None if nothing is known.

    Of a program the checker looks at all orders of a sequence, or, where there are too many, assumes its symmetry.
    """
    if target.program is not None and (target.kind == "ordered" or target.n <= MOST_TOKENS):
        return target.program.to_json()
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
    network = build({name: np.asarray(array) for name, array in transformer.tensors()})
    judge = Judge(network, read_data(tensors, network), progress)
    claims: list[dict[str, Any]] = []
    verdicts: list[str] = []
    read = [read_claim({**entry, "bound": LARGEST.hex()}, f"claims[{i}]") for i, entry in enumerate(entries)]
    for entry, claim, wanted in zip(entries, read, _wanted(network, read, tolerance), strict=True):
        loose = replace(claim, numbers={**claim.numbers, "bound": wanted})
        verdict = judge.judge(loose)
        if verdict.outcome != "proved":
            return None
        # The largest error that was certain is a bound that is proved by the same comparisons.
        bound = verdict.value
        if loose.type == "lp_error":
            bound = float(np.nextafter(bound ** (1 / loose.numbers["p"]), np.inf)) * (1 + 2.0**-30)
        claims.append({**entry, "bound": bound.hex()})
        claim = replace(loose, numbers={**loose.numbers, "bound": bound})
        verdicts.append(f"{claim}: {verdict.outcome}, {verdict.why}")
    return Certificate(tuple(claims), tensors, tuple(verdicts))


def _wanted(network: Network, claims: list[Claim], tolerance: float) -> Iterator[float]:
    """The bounds that the checker is asked for. Where it halves boxes, about the smallest that it can prove."""
    real: float | None = None
    for claim in claims:
        low, high = claim.numbers["low"], claim.numbers["high"]
        if claim.type != "sup_error_everywhere":
            yield LARGEST
        elif not isinstance(claim.target, Program) or hats.recognise(network.readout.layers) is not None:
            yield tolerance
        else:
            problem = branch.Problem(network, claim.target, low, high)
            real = branch.smallest_bound(problem, SLACK, BOXES, ENOUGH * tolerance) if real is None else real
            yield min(tolerance, (real + problem.rounding(claim.arith)) * (1 + 2.0**-30))


def bound_of(certificate: Certificate, arith: str) -> float:
    """The bound in the sup norm."""
    found = [c for c in certificate.claims if c["type"].startswith("sup_error") and c["arith"] == arith]
    return float.fromhex(str(found[0]["bound"]))
