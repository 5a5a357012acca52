"""`attends`: how far a softmax head is from the kernel smoother that it is to be, for every prompt of a box.

The algorithm must be a smoother: examples have one number x, its answer is the average of y with weights
softmax(rho), rho being its logit. The network must be a softmax head that averages y exactly; its logit l(u, v) may
differ from rho(u, v) at a query u and an example v.

Decides: for every number of examples, all x and queries in [low, high] and all |y_c| <= y, no component of the
output is farther from the smoother's than `bound`. Let l - rho lie in [c(u) - eps, c(u) + eps] for every v.
Softmax does not see c(u). The difference of two averages is linear in the y, so it is largest where each is -y
or y; then it is 2 y (sigma(z + t) - sigma(z)), sigma the logistic function of the logarithm z of the ratio of
the weights of both halves, and |t| <= 2 eps: at most 2 y tanh(eps / 2) <= y eps, however many examples there
are.

Why cells are enough: the feed-forward part has one hidden layer, so queries and keys are affine in x between
the places where a neuron's sign changes, which are rationals, and l is bilinear on a cell between them: the four
corners determine it. rho is computed on the same cell as a bilinear function and a radius (`patches.py`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.algorithms import Algorithm, Values, fit, read_algorithm, structure
from onelayer_checker.looped.definite import gamma
from onelayer_checker.looped.judge import OWN, LoopJudge, unmarked
from onelayer_checker.looped.network import Network
from onelayer_checker.looped.patches import Patch, bilinear, coordinates
from onelayer_checker.looped.polynomials import Ring, is_zero, nearest
from onelayer_checker.looped.programs import OF_KERNELS

NUMBERS = frozenset({"bound", "low", "high", "y"})
#: Places at which signs of neurons change beyond which nothing is begun.
MOST_KNOTS = 1024
#: More than what rounding a number of moderate size, or a few of them, may change it by, as a share.
SLACK = 1 + 2.0**-48
#: Queries and keys up to which what their products lose by underflow is less than what is added for it.
MOST = 1e20


def attends(found: object, claim: Claim) -> Verdict:
    if not isinstance(found, LoopJudge):
        raise Malformed("claim", "attends is about looped networks")
    network, a, n = found.network, claim.target, claim.numbers
    fit(network, a)
    why = unlike(network, a)
    if not why and not n["low"] < n["high"]:
        why = "the box is empty"
    if why:
        return Verdict("undecided", why, np.inf)
    knots = {
        name: signs(network, a, name, Fraction(n["low"]), Fraction(n["high"])) for name in ("query", "example")
    }
    if max(map(len, knots.values())) > MOST_KNOTS:
        return Verdict("undecided", f"more than {MOST_KNOTS:,} places where a neuron begins", np.inf)
    eps = apart(network, a, knots["query"], knots["example"])
    near = min(eps, 2.0) * n["y"] * SLACK
    rank = len(network.loop.heads[0].query.bias)
    words = f"logits of rank {rank} are within {eps:.6g} of the kernel's, for every number of examples"
    if near <= n["bound"]:
        return Verdict("proved", words, near)
    return Verdict("undecided", f"{words}: answers within {near:.6g}", np.inf)


def unlike(network: Network, a: Algorithm) -> str:
    """Why the algorithm is no smoother, or the network none but for its logits; empty if both are."""
    loop = network.loop
    plain = a.query is not None and a.panel is None and not network.after and len(loop.heads) == 1
    if not plain or a.gather != "softmax" or a.x != 1 or a.m != a.y or len(loop.feedforward) not in (0, 2):
        return "only one softmax head over one hidden layer is compared with a smoother of one number"
    ring = Ring()
    v = Values(**{group: list(ring.variables(group, count)) for group, count in Values.sizes(a).items()})
    why = structure(network, a) or unmarked(network, a, v)
    if why:
        return why
    start: list[Any] = list(a.start)
    answers = a.answer.run({"s": a.step.run({"s": start, "m": v.m}), "x": v.X})
    if any(not is_zero(p - q) for p, q in zip([*a.terms(start, v.x, v.y), *answers], [*v.y, *v.m], strict=True)):
        return "the algorithm is not an average of y"
    assert a.logit is not None
    if any(word in ("s", "y") for word, *_ in a.logit.lines):
        return "the kernel reads more than a query and an example"
    head, nothing = loop.heads[0], [0] * a.y
    key, bare = (loop.before(a.token("example", start, v.x, y)) for y in (v.y, nothing))
    asking = loop.before(a.token("query", start, v.X, nothing))
    if any(not is_zero(p - q) for p, q in zip(head.value(key), v.y, strict=True)):
        return "the head's values are not y"
    if any(not is_zero(p - q) for p, q in zip(head.key(key), head.key(bare), strict=True)):
        return "keys depend on y"
    after = [p + q for p, q in zip(asking, head.out(v.m), strict=True)]
    if any(not is_zero(p - q) for p, q in zip(network.answer(after), v.m, strict=True)):
        return "what is read off a query is not what the head averaged"
    for name in ("example", "query"):
        first, second, token = (a.token(name, start, [x], nothing) for x in (0, 1, v.X[0]))
        if any(not is_zero(t - p - (q - p) * v.X[0]) for p, q, t in zip(first, second, token, strict=True)):
            return f"the token of the {name} is not affine in x"
    return ""


def signs(network: Network, a: Algorithm, name: str, low: Fraction, high: Fraction) -> list[Fraction]:
    """The ends of the box, and the places between them where the sign of a neuron changes."""
    found = {low, high}
    if network.loop.feedforward:
        neurons = network.loop.feedforward[0]
        at, one = (neurons(a.token(name, list(a.start), [Fraction(x)], [0] * a.y)) for x in (0, 1))
        places = (Fraction(-p) / (q - p) for p, q in zip(at, one, strict=True) if p != q)
        found |= {place for place in places if low < place < high}
    return sorted(found)


def apart(network: Network, a: Algorithm, queries: list[Fraction], keys: list[Fraction]) -> float:
    """At least the eps of the proof."""
    head, size = network.loop.heads[0], len(network.loop.heads[0].query.bias)
    spend("features at knots", 3e3 * (len(queries) + len(keys)) * weights(network), kept=64.0 * size * len(keys))
    spend("cells", 1e3 * len(queries) * len(keys), kept=2e3 * len(queries) * len(keys))
    asked = features(network, a, "query", queries, head.query)
    held = features(network, a, "example", keys, head.key)
    if not max(np.abs(asked).max(), np.abs(held).max()) <= MOST:
        return np.inf
    radius = (np.abs(asked) @ np.abs(held).T) * gamma(size + 8) + 2.0**-1000
    u, v = coordinates(queries, keys)
    assert a.logit is not None
    with np.errstate(all="ignore"):  # what overflows is not finite
        (rho,) = a.logit.run({"x": [v], "q": [u]})
        off = bilinear(asked @ held.T, radius) - rho
        shared = Patch(0.0, -off.b.mean(axis=1, keepdims=True), 0.0, 0.0, 0.0)  # c(u) may be any function of u
        low, high = (off + shared).range()
        eps = float((high.max(axis=1) - low.min(axis=1)).max()) / 2 * SLACK + 2.0**-1000
    return eps if np.isfinite(eps) else np.inf


def weights(network: Network) -> int:
    """How many there are on the way to queries and keys."""
    head = network.loop.heads[0]
    parts = (*network.loop.feedforward, head.query, head.key)
    return sum(len(column) + 1 for part in parts for column in part.columns)


def features(network: Network, a: Algorithm, name: str, places: list[Fraction], read: Any) -> Array:
    """[places, rank] Queries or keys, computed exactly and rounded once."""
    tokens = (a.token(name, list(a.start), [x], [0] * a.y) for x in places)
    return np.array([[nearest(Fraction(u)) for u in read(network.loop.before(token))] for token in tokens])


def read_smoother(entry: Any, where: str) -> Algorithm:
    """An algorithm whose kernel may have exp."""
    return read_algorithm(entry, where, OF_KERNELS)


OWN["attends"] = attends
KINDS |= {"attends": Kind(NUMBERS, attends, read_smoother)}
