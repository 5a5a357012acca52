"""`minimises`: one linear attention layer against all others, over random tasks; every moment is a rational
number.

A task: w with independent normal components of variance `weight`; x_1, ..., x_N and a query X with independent
components, uniform on [-half, half]; y_i = <w, x_i> + normal noise of variance `noise`. The risk is E (answer -
<w, X>)^2 / 2.

Decides: the risk of the network is at most `value`, and at most `gap` above that of every function sum_i sum_jkl
p_jkl z_ij z_ik X_l with z_i = (x_i, y_i): of every linear attention layer, whatever the number of its heads. The
risk is a convex quadratic function of p; if a multiple c p of the network's p makes its gradient zero, c p is a
minimum, and both risks are computed. Queries enter by E X_l X_m = 0 for l != m only, so that each l stands alone:
with P_l the quadratic form of z that X_l is multiplied with, the gradient at (j, k, l) is, but for a factor,
share (N E[P_l(z) z_j z_k] + N (N - 1) E[P_l(z) z'_j z'_k]) - N E[w_l z_j z_k], z' being another example of the
task.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.judge import OWN, LoopJudge, equals
from onelayer_checker.looped.network import Network, total
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero

NUMBERS = frozenset({"examples", "half", "weight", "noise", "value", "gap"})


class Moments:
    """Expectations of polynomials in the variables of a task: x, w, noise e; and x', e' of another example."""

    def __init__(self, d: int, half: Fraction, weight: Fraction, noise: Fraction) -> None:
        self.ring, self.half = Ring(), half
        self.variance = {"w": weight, "e": noise, "f": noise}
        x, self.w, (e,), u, (f,) = (
            self.ring.variables(g, n) for g, n in zip("xweuf", (d, d, 1, d, 1), strict=True)
        )
        self.z = [*x, total(p * q for p, q in zip(self.w, x, strict=True)) + e]
        self.other = [*u, total(p * q for p, q in zip(self.w, u, strict=True)) + f]

    def expect(self, p: Poly) -> Fraction:
        found = Fraction(0)
        for monomial, c in p.terms.items():
            product = Fraction(c)
            for letter, power in Counter(monomial).items():
                product *= self.moment(letter, power)
            found += product
        return found / (1 << p.e)

    def moment(self, letter: int, power: int) -> Fraction:
        """E of a power: half^k / (k + 1) for even k, and (k - 1) (k - 3) ... 1 variance^(k/2)."""
        name = self.ring.names[letter]
        assert name is not None  # no form has absolute values
        if power % 2:
            return Fraction(0)
        if name[0] in "xu":
            return self.half**power / (power + 1)
        return self.variance[name[0]] ** (power // 2) * int(np.prod(range(1, power, 2), dtype=object))


def minimises(found: object, claim: Claim) -> Verdict:
    verdict = equals(found, claim)
    if verdict.outcome != "proved" or not isinstance(found, LoopJudge):
        return verdict
    n = {name: Fraction(value) for name, value in claim.numbers.items()}
    a, loop = claim.target, found.network.loop
    plain = (loop.repeat, loop.kind, loop.causal, a.panel) == (1, "linear", False, None)
    if not plain or (a.y, len(a.answer.outputs)) != (1, 1):
        return Verdict("undecided", "only one loop of linear attention with one answer has a convex risk", np.inf)
    N = n["examples"]
    if N.denominator != 1 or N < 1:
        return Verdict("undecided", f"{float(N):g} is no number of examples", np.inf)
    moments = Moments(a.x, n["half"], n["weight"], n["noise"])
    forms = quadratic_forms(found.network, a, moments)
    if forms is None:
        return Verdict("undecided", "the answer is not a sum of cubic terms z_j z_k X_l", np.inf)
    scale, risk, least = compare_risks(moments, forms, int(N), Fraction(1, int(N)) if loop.mean else Fraction(1))
    if scale is None:
        return Verdict("undecided", "no multiple of the layer has a gradient of zero", np.inf)
    words = f"risk {float(risk):.9g}, the least is {float(least):.9g} at {float(scale):.17g} times its weights"
    if risk <= n["value"] and risk - least <= n["gap"]:
        return Verdict("proved", words, claim.numbers["gap"])
    return Verdict("refuted", words, np.inf)


def quadratic_forms(network: Network, a: Algorithm, moments: Moments) -> list[Any] | None:
    """P_l for every component of the query, as polynomials of a task; None if the answer has other terms, or is not
    linear in what examples add to a query."""
    ring = Ring()
    sizes = zip("Xxymn", (a.x, a.x, 1, network.loop.width, network.loop.width), strict=True)
    X, x, y, m, n = (list[Any](ring.variables(group, count)) for group, count in sizes)
    loop, start = network.loop, list(a.start)
    asking = loop.before(a.token("query", start, X, []))

    def after(*added: list[Any]) -> Any:
        """What is read off the query once this was added to it."""
        return network.answer([total(column) for column in zip(asking, *added, strict=True)])[0]

    if not is_zero(after(m, n) - after(m) - after(n)):
        return None
    answer = after(loop.add_key(asking, loop.before(a.token("example", start, x, y))))
    forms: list[Any] = [0] * a.x
    for monomial, c in answer.terms.items() if isinstance(answer, Poly) else ():
        names = [ring.names[letter] for letter in monomial]
        queries = [name[1] for name in names if name is not None and name[0] == "X"]
        others = [name for name in names if name is not None and name[0] != "X"]
        if (len(queries), len(others), len(names)) != (1, 2, 3):
            return None
        product: Any = Fraction(c, 1 << answer.e)
        for group, i in others:
            product = moments.z[i if group == "x" else a.x] * product
        forms[queries[0]] = forms[queries[0]] + product
    return forms


def compare_risks(
    moments: Moments, forms: list[Any], N: int, share: Fraction
) -> tuple[Fraction | None, Fraction, Fraction]:
    """The multiple of the layer that has no gradient (None if none has), the layer's risk, and the multiple's."""
    d, E, z, other = len(forms), moments.expect, moments.z, moments.other
    pairs = [(j, k) for j in range(d + 1) for k in range(j, d + 1)]
    same, apart = ({(j, k): v[j] * v[k] for j, k in pairs} for v in (z, other))
    scale, crossed, squared = None, Fraction(0), Fraction(0)
    for w, form in zip(moments.w, forms, strict=True):
        form = w * 0 if isinstance(form, int) else form
        for pair in pairs:
            pull = share * (N * E(form * same[pair]) + N * (N - 1) * E(form * apart[pair]))
            wanted = N * E(w * same[pair])
            scale = wanted / pull if scale is None and pull != 0 else scale
            if (scale or 0) * pull != wanted:
                return None, Fraction(0), Fraction(0)
        crossed += share * N * E(w * form)
        squared += share**2 * (N * E(form * form) + N * (N - 1) * E(form * rename_example(moments, form)))
    if scale is None:
        return None, Fraction(0), Fraction(0)
    variance = moments.half**2 / 3
    whole = d * moments.variance["w"]
    risk, least = (variance / 2 * (whole - 2 * c * crossed + c * c * squared) for c in (Fraction(1), scale))
    return scale, risk, least


def rename_example(moments: Moments, form: Poly) -> Poly:
    """The same form of another example: its x and e become x' and e'."""
    groups = {"x": "u", "e": "f"}
    at = {name: letter for letter, name in enumerate(moments.ring.names)}
    names = moments.ring.names
    swap = {i: at[(groups.get(n[0], n[0]), n[1])] for i, n in enumerate(names) if n is not None}
    return Poly(form.ring, {tuple(sorted(swap[i] for i in k)): c for k, c in form.terms.items()}, form.e)


OWN["minimises"] = minimises
KINDS |= {"minimises": Kind(NUMBERS, minimises, read_algorithm)}
