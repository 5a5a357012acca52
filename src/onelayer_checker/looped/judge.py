"""Judging claims about looped networks: `equals`, `selects`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict, kind_of
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.names import Names
from onelayer_checker.looped import lattice, panels
from onelayer_checker.looped.algorithms import Algorithm, Values, fit, identities, read_algorithm, starts, structure
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero, nonzero_point
from onelayer_checker.looped.witnesses import prompts, tells_apart

NONE: dict[tuple[str, int], int] = {}


@dataclass(frozen=True, eq=False)
class LoopJudge:
    """Judges claims about one looped network; few of them are about data."""

    network: Network
    tensors: dict[str, Array] = field(default_factory=dict)  # the weights as they are stored
    data: dict[str, Array] = field(default_factory=dict)  # sequences, of claims that are about some
    known: list[tuple[Algorithm, Verdict]] = field(default_factory=list)  # what was said of `equals`

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.network.dtype

    @property
    def readout(self) -> Array:
        """The weight of the last layer."""
        return np.asarray(self.tensors["readout.0.weight"], np.float64)

    def judge(self, claim: Claim) -> Verdict:
        self.fits(claim)
        return kind_of(claim.type).judge(self, claim)

    def fits(self, claim: Claim) -> None:
        scope = "token" if claim.type in OWN else "last" if claim.type in OF_DATA else None
        scope = "token" if claim.type in IN_FLOATS else scope
        if claim.scope != scope or (claim.arith == "real") == (claim.type in IN_FLOATS):
            raise Malformed(
                "claim", f"{claim.type} ({claim.arith}, per {claim.scope}) is not about a looped network"
            )

    def decide(self, claim: Claim, both: bool) -> tuple[str, Verdict]:
        """The verdict, and whose it is; with ``both`` the lattice must agree where it can tell."""
        first = self.judge(claim)
        if not both:
            return "numpy", first
        if claim.type != "equals" or structure(self.network, claim.target):
            return "numpy", replace(first, why=f"{first.why} (the lattice judges identities only)")
        second, how = lattice.decide(self.network, claim.target)
        if second is None:
            return "numpy", replace(first, why=f"{first.why} ({how})")
        if first.outcome == "proved" and not second:
            raise Contradiction(f"normal forms say {first.outcome} ({first.why}); {how}")
        return "both", replace(first, why=f"{first.why}; {how}")


def read_loop(
    weights: dict[str, Array], data: dict[str, Array], graph: Any, names: Names | None, claims: list[Claim]
) -> LoopJudge:
    """A judge of the network; data beside it is refused, unless a claim is about it, and names of other things."""
    network = build(weights, graph)
    scope = "last" if any(claim.type in OF_DATA for claim in claims) else "token"
    wanted = () if scope == "token" else ("tokens", "at", *(f"other.W_{name}" for name in "QKVO"))
    if (
        names is None
        or (names.tokens, names.answers, names.scope) != (None, None, scope)
        or set(data) - set(wanted)
    ):
        raise Malformed("names", "a looped network has no data, and real tokens and answers")
    if names.causal != network.loop.causal or names.positions:
        raise Malformed("names", "causal or positions are not those of the network")
    return LoopJudge(network, weights, data)


class Contradiction(OSError):
    """Two engines exclude each other: the checker is wrong, or the machine is unfit."""

    gate = "agreement"


def equals(found: object, claim: Claim) -> Verdict:
    """Whether the network is the algorithm, for every prompt: all identities, or a prompt that tells them apart."""
    if not isinstance(found, LoopJudge):
        raise Malformed("claim", "equals is about looped networks")
    for algorithm, verdict in found.known:
        if algorithm == claim.target:
            return verdict
    verdict = _equals(found.network, claim.target)
    found.known.append((claim.target, verdict))
    return verdict


def _equals(network: Network, a: Algorithm) -> Verdict:
    fit(network, a)
    why, point, count = _fails(network, a)
    if not why:
        steps = f"{a.steps} step{'s' if a.steps > 1 else ''}"
        words = f"{count} identities of polynomials: {steps}, for every number of examples"
        return Verdict("proved", words, 0.0)
    witness = tells_apart(network, a, prompts(a, point))
    if witness:
        return Verdict("refuted", f"{witness} ({why})", np.inf)
    return Verdict("undecided", f"{why}; no prompt was found that tells them apart", np.inf)


def _fails(network: Network, a: Algorithm) -> tuple[str, dict[tuple[str, int], int], int]:
    """Why the network may not be the algorithm, and where; empty if it is, with the number of identities."""
    ring = Ring()
    v = Values(**{group: list(ring.variables(group, count)) for group, count in Values.sizes(a).items()})
    why = structure(network, a) or unmarked(network, a, v)
    if why:
        return why, NONE, 0
    for name, flag, judges in panels.flags(network, a, v):
        fixed = not isinstance(flag, Poly) or set(flag.terms) <= {()}
        if not fixed or is_zero(flag) == judges:
            return f"flags: that of judges must be a number on the {name}, not 0 on judges only", NONE, 0
    count = 0
    for rule, parts in identities(network, a, v):
        for at, difference in enumerate(parts):
            count += 1
            if not is_zero(difference):
                plain = isinstance(difference, Poly) and difference.is_polynomial
                point = nonzero_point(difference) if plain else NONE
                return f"{rule}: component {at} differs", point, count
    return "", NONE, count


def unmarked(network: Network, a: Algorithm, v: Values) -> str:
    """Why the tokens of the start do not say which of them are keys; empty if they do."""
    for name, token, flag in starts(network, a, v):
        if any(isinstance(u, Poly) and not u.is_polynomial for u in token):
            return f"start: the {name} is no polynomial of x and y"
        fixed = not isinstance(flag, Poly) or set(flag.terms) <= {()}
        if network.loop.context is not None and (not fixed or is_zero(flag) == (name == "example")):
            return f"start: the flag of the {name} must be a number, 0 on queries only"
    return ""


def selects(found: object, claim: Claim) -> Verdict:
    """Whether the answer is one of two, that which the judges found better, wherever they tell them apart."""
    verdict = equals(found, claim)
    if verdict.outcome != "proved":
        return verdict
    delta = claim.numbers["delta"]
    why = panels.missing(claim.target, delta, claim.numbers["reach"])
    if why:
        return Verdict("undecided", why, np.inf)
    return Verdict("proved", f"{verdict.why}; the better of two, if mean squares are {delta:g} apart", delta)


#: Claims about floats; all others are about reals.
IN_FLOATS: dict[str, Callable[[object, Claim], Verdict]] = {}
#: Claims about stored sequences, at their last token; those of OWN are about every prompt.
OF_DATA: dict[str, Callable[[object, Claim], Verdict]] = {}
OWN: dict[str, Callable[[object, Claim], Verdict]] = {"equals": equals, "selects": selects}
KINDS |= {"equals": Kind(frozenset(), equals, read_algorithm)}
KINDS |= {"selects": Kind(frozenset({"delta", "reach"}), selects, read_algorithm)}
