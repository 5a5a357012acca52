"""From a learner to its certificate, and the certificate in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from safetensors.numpy import save as save_tensors

from onelayer.certificates.certificate import Certificate
from onelayer.certificates.folder import MODEL
from onelayer.certificates.names import name_tensors
from onelayer.errors import HypothesisError
from onelayer.network import Transformer, structure
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Script
from onelayer_checker import check

#: Components of a script that are written out in words.
SHOWN = 3
GATHERED = {
    "mean": "m = the mean of {term} over the examples",
    "sum": "m = the sum of {term} over the examples",
    "solve": "m = the ridge solution of the examples' keys and values {term}",
    "softmax": "m = the average of {term} over the examples with weights softmax({logit})",
}


def prove(
    transformer: Transformer, algorithm: Algorithm, further: Sequence[dict[str, Any]] = ()
) -> Certificate | None:
    """The claim that the network is the algorithm, and further ones where they are proved too; None if it takes too
    long to decide.

    A claim that is refuted is an error of whoever built the weights, and said with the prompt that shows it.
    """
    equals = {"type": "equals", "arith": "real", "scope": "token", "target": algorithm.to_json()}
    graph = structure.graph(transformer)
    unproved = Certificate((equals, *further), {}, (), name_tensors(transformer, "token"), graph)
    weights = save_tensors({name: np.ascontiguousarray(a) for name, a in transformer.tensors()})
    report = check({MODEL: weights, **unproved.files(weights)}, memory=float("inf"))
    if report.result == "UNKNOWN":
        return prove(transformer, algorithm) if further else None
    if report.result != "VERIFIED":
        found = report.why or "; ".join(judged.verdict.why for judged in report.claims)
        raise HypothesisError("learner", "weights that are the algorithm", found, "Report this as a bug.")
    said = tuple(f"{judged.claim}: {judged.verdict.outcome}, {judged.verdict.why}" for judged in report.claims)
    return replace(unproved, verdicts=said)


def with_rounding(
    transformer: Transformer, algorithm: Algorithm, proof: Certificate, box: dict[str, float]
) -> tuple[Certificate, float]:
    """The certificate with the claim `rounds` for a box, and its bound; if there is none, as it was."""
    claim = {"type": "rounds", "arith": str(transformer.dtype)}
    whole, bound = _with_bound(transformer, algorithm, proof, claim, box)
    return (proof if whole is None else whole), bound


def prove_near(
    transformer: Transformer, algorithm: Algorithm, box: dict[str, float]
) -> tuple[Certificate | None, float]:
    """The claim `attends` for a box, and its bound; None and infinite if there is none."""
    unproved = Certificate((), {}, (), name_tensors(transformer, "token"), structure.graph(transformer))
    return _with_bound(transformer, algorithm, unproved, {"type": "attends", "arith": "real"}, box)


def _with_bound(
    transformer: Transformer, algorithm: Algorithm, proof: Certificate, claim: dict[str, Any], box: dict[str, float]
) -> tuple[Certificate | None, float]:
    """The certificate with one claim more, and the bound of that; None and infinite if it is not proved."""
    weights = save_tensors({name: np.ascontiguousarray(a) for name, a in transformer.tensors()})
    bound, claimed = float(np.finfo(np.float64).max), float("inf")
    for _ in range(2):  # once to hear what can be proved, once to prove that
        entry = claim | {"scope": "token", "target": algorithm.to_json()}
        entry |= {name: float(value).hex() for name, value in (box | {"bound": bound}).items()}
        whole = replace(proof, claims=(*proof.claims, entry))
        report = check({MODEL: weights, **whole.files(weights)}, memory=float("inf"))
        if report.result != "VERIFIED":
            return None, float("inf")
        bound, claimed = report.claims[-1].verdict.value, bound
    said = tuple(f"{judged.claim}: {judged.verdict.outcome}, {judged.verdict.why}" for judged in report.claims)
    return replace(whole, verdicts=said), claimed


def prove_of_data(transformer: Transformer, claim: dict[str, str], data: dict[str, Any]) -> Certificate | None:
    """A claim about a layer and stored sequences, at their last tokens; None if it is not proved."""
    entry = {"type": claim["type"], "arith": "real", "scope": "last", **claim}
    held = {name: np.ascontiguousarray(a) for name, a in data.items()}
    unproved = Certificate((entry,), held, (), name_tensors(transformer, "last"), structure.graph(transformer))
    weights = save_tensors({name: np.ascontiguousarray(a) for name, a in transformer.tensors()})
    report = check({MODEL: weights, **unproved.files(weights)}, memory=float("inf"))
    if report.result != "VERIFIED":
        return None
    said = tuple(f"{judged.claim}: {judged.verdict.outcome}, {judged.verdict.why}" for judged in report.claims)
    return replace(unproved, verdicts=said)


def algorithm_in_words(certificate: dict[str, Any]) -> list[str]:
    """What the claim `equals` says, written out."""
    targets = [c["target"] for c in certificate["claims"]]
    a = Algorithm.from_json(targets[0])
    more = ", ..." if len(a.start) > SHOWN else ""
    start = "0" if not any(a.start) else ", ".join(f"{value!r}" for value in a.start[:SHOWN]) + more
    logit = "" if a.logit is None else _write_script(a.logit)
    asked = "at every query x" if a.query is not None else "at every token, from those it sees"
    times = "once" if a.steps == 1 else f"{a.steps:,} times"
    return [
        *(
            ["The claims are about several algorithms; this is the first:"]
            if targets != targets[:1] * len(targets)
            else []
        ),
        f"Begin with a state s of {len(a.start):,} numbers, {start}. Then {times}: "
        + GATHERED[a.gather].format(term=_write_script(a.term), logit=logit)
        + f"; s becomes {_write_script(a.step)}.",
        f"The answer {asked} is {_write_script(a.answer)}.",
        f"An example is the token {_write_script(a.example)} at the start"
        + ("." if a.query is None else f", a query the token {_write_script(a.query)}."),
        "Numbers in these lines have six digits; the certificate has all of them, and all components.",
    ]


def _write_script(script: Script) -> str:
    """The first components of a script as formulas."""
    parts = [script.formula(k, 80) for k in range(min(len(script.outputs), SHOWN))]
    if None in parts:
        return f"({len(script.outputs):,} numbers, {len(script.lines):,} lines in the certificate)"
    more = f", ... {len(script.outputs):,} numbers" if len(script.outputs) > SHOWN else ""
    whole = ", ".join(str(part) for part in parts) + more
    return f"({whole})" if len(script.outputs) > 1 else whole
