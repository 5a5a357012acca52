"""From a construction to claims about a function, as the checker judges them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certify.certificate import Certificate
from onelayer.model import Transformer
from onelayer.targets import Target
from onelayer_checker.claims import Judge, Progress, read_claim, read_data
from onelayer_checker.network import build

Array = NDArray[Any]
LARGEST = 2.0**900


def as_entry(target: Target, value_error: float) -> dict[str, Any] | None:
    """The target as a certificate names it: a program, or what is assumed of it; None if nothing is known."""
    if target.program is not None:
        return target.program.to_json()
    if target.lipschitz is None:
        return None
    symmetric = target.kind != "ordered"
    return {"lipschitz": target.lipschitz.hex(), "error": value_error.hex(), "symmetric": symmetric}


def prove(
    transformer: Transformer, tensors: dict[str, Array], entries: tuple[dict[str, Any], ...], progress: Progress
) -> Certificate | None:
    """The claims, each with the smallest bound that the checker can prove; None as soon as it proves none, or is asked none."""
    if not entries:
        return None
    network = build({name: np.asarray(array) for name, array in transformer.tensors()})
    judge = Judge(network, read_data(tensors, network), progress)
    claims: list[dict[str, Any]] = []
    verdicts: list[str] = []
    for i, entry in enumerate(entries):
        loose = read_claim({**entry, "bound": LARGEST.hex()}, f"claims[{i}]")
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


def bound_of(certificate: Certificate, kind: str, arith: str) -> float:
    """The bound of the claim of this kind."""
    found = [c for c in certificate.claims if (c["type"], c["arith"]) == (kind, arith)]
    return float.fromhex(str(found[0]["bound"]))
