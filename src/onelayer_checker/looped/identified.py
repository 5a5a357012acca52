"""`identifies` and `ambiguous`: whether sequences determine a linear attention layer, or a second one fits too.

One layer of linear attention over all tokens, asked at the last one, is f(Z) = sum p_{jk,l} G_jk z_l with G = sum_i
z_i z_i^T and the last token z: linear in its coefficients p, one for each pair j <= k and each l. Channels that are
0 in all tokens are left out: nothing is said of inputs that have something there.

Decides `identifies {mu}`: the least eigenvalue of the mean of H H^T over the sequences is at least mu > 0, H(Z)
having the numbers G_jk z_l. So two layers that agree on the sequences are the same function: their difference q has
q^T (mean H H^T) q = 0; and two with mean squared errors up to eps differ at Z by at most sqrt(4 eps / mu) |H(Z)|.

Decides `ambiguous {eps, delta}`: the layer and a second one, in the tensors `other.W_*`, differ by at most eps on
all sequences, in every component, and by at least delta in one of them at the input `at`.

Every number is a sum of products of inputs, computed by at most K roundings on the way from an input to it, in any
order: its error is at most gamma(K) times the same sum of magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.definite import gamma, least_eigenvalue
from onelayer_checker.looped.judge import OF_DATA, LoopJudge

OTHER = ("W_Q", "W_K", "W_V", "W_O")
#: Products of features beyond which nothing is begun.
MOST_FEATURES = 4096
#: Magnitudes up to which no product of sums of eight of them overflows; and more than all underflows come to, each
#: of 2^-1074 and multiplied by at most seven of them.
MOST, LOST = 1e20, 1e-150


@dataclass(frozen=True)
class Heads:
    Q: Array
    K: Array
    V: Array
    O: Array


def identifies(found: object, claim: Claim) -> Verdict:
    judge = _judge(found)
    Z = moderate(judge.data["tokens"])
    Z = Z[:, :, (Z != 0).any(axis=(0, 1))]
    N, n, d = Z.shape
    size = d * (d + 1) // 2 * d
    if not 1 <= size <= MOST_FEATURES:
        return Verdict("undecided", f"{size:,} features, at most {MOST_FEATURES:,} are compared", np.inf)
    spend("features of sequences", 4.0 * N * size * (size + n), kept=32.0 * N * size)
    H, magnitude = (features(part) for part in (Z, np.abs(Z)))
    A, radius = H.T @ H / N, magnitude.T @ magnitude / N * (gamma(N + 2 * n + 16) * 1.01) + LOST
    bound = least_eigenvalue(A, radius)
    if claim.numbers["mu"] > 0 and bound >= claim.numbers["mu"]:
        return Verdict("proved", f"{size:,} features of {N:,} sequences, least eigenvalue {bound:.6g}", bound)
    return Verdict("undecided", f"the least eigenvalue is known to be at least {bound:.6g}", np.inf)


def features(Z: Array) -> Array:
    """G_jk z_l for j <= k, [N, pairs * d]."""
    d = Z.shape[2]
    G, (j, k) = Z.swapaxes(1, 2) @ Z, np.triu_indices(d)
    return (G[:, j, k][:, :, None] * Z[:, -1][:, None, :]).reshape(len(Z), -1)


def ambiguous(found: object, claim: Claim) -> Verdict:
    judge = _judge(found)
    if {"at", *(f"other.{name}" for name in OTHER)} - set(judge.data):
        raise Malformed("claim", "there is no second layer, or no input at which it differs")
    mine, R = own(judge), moderate(judge.readout)
    other = Heads(*(moderate(judge.data[f"other.{name}"]) for name in OTHER))
    Q, K, V, O = (getattr(other, name).shape for name in "QKVO")
    if len(Q) != 3 or len(V) != 3 or (K, V[:2], O, Q[1]) != (Q, Q[:2], (Q[0], V[2], Q[1]), len(R)):
        raise Malformed("claim", "the second layer has other shapes")
    apart, error = difference(moderate(judge.data["tokens"]), mine, other, R)
    most = float((np.abs(apart) + error).max())
    there, slack = difference(moderate(judge.data["at"]), mine, other, R)
    least = float((np.abs(there) - slack).max())
    words = f"at most {most:.3g} apart on all sequences, at least {least:.6g} at the given input"
    if most <= claim.numbers["eps"] and least >= claim.numbers["delta"]:
        return Verdict("proved", words, least)
    return Verdict("undecided", words, np.inf)


def difference(Z: Array, first: Heads, second: Heads, R: Array) -> tuple[Array, Array]:
    """What two layers give at the last token, one less the other, and how far that may be off."""
    sizes = [part.shape[2] for heads in (first, second) for part in (heads.Q, heads.V)]
    H, w = len(first.Q) + len(second.Q), Z.shape[2]
    rounded = gamma(Z.shape[1] + 5 * w + sum(sizes) + 2 * H + 32)
    value = (given(Z, first) - given(Z, second)) @ R
    parts = (Heads(*(np.abs(getattr(heads, name)) for name in "QKVO")) for heads in (first, second))
    magnitude = sum(given(np.abs(Z), heads) for heads in parts) @ np.abs(R)
    return value, magnitude * rounded * 1.01 + LOST


def given(Z: Array, heads: Heads) -> Array:
    """What a layer adds to the last token, [N, w]."""
    spend("linear attention", 8.0 * Z.size * heads.Q.size, kept=8.0 * Z.size)
    found = np.zeros((len(Z), Z.shape[2]))
    for Q, K, V, O in zip(heads.Q, heads.K, heads.V, heads.O, strict=True):
        scores = ((Z[:, -1] @ Q)[:, None] @ (Z @ K).swapaxes(1, 2))[:, 0]
        found += (scores[:, None] @ (Z @ V))[:, 0] @ O
    return found


def moderate(Z: Array) -> Array:
    """The same numbers, if none of them is so large that a product might overflow."""
    if Z.dtype != np.float64 or not (np.abs(Z) <= MOST).all():
        raise Malformed("data", "sequences must be float64 numbers of moderate size")
    return Z


def own(judge: LoopJudge) -> Heads:
    return Heads(*(moderate(np.asarray(judge.tensors[f"attention.{name}"], np.float64)) for name in OTHER))


def _judge(found: object) -> LoopJudge:
    """One linear layer over all tokens, and sequences for it."""
    if not isinstance(found, LoopJudge) or "tokens" not in found.data:
        raise Malformed("claim", "there are no sequences")
    loop, Z = found.network.loop, found.data["tokens"]
    plain = (loop.kind, loop.causal, loop.context, loop.mean, loop.repeat) == ("linear", False, None, False, 1)
    alone = plain and not (found.network.after or found.network.panel or loop.feedforward)
    if (
        not alone
        or len(found.network.readout) != 1
        or any(name in found.tensors for name in ("attention.b_Q", "attention.b_K"))
    ):
        raise Malformed("claim", "the layer is not one of linear attention over all tokens")
    for array in (Z, found.data.get("at", Z)):
        if array.ndim != 3 or array.shape[2] != loop.width or 0 in array.shape:
            raise Malformed("data", "sequences must be [N, n, width]")
    return found


READ: dict[str, Any] = {
    "identifies": (frozenset({"mu"}), identifies),
    "ambiguous": (frozenset({"eps", "delta"}), ambiguous),
}
OF_DATA |= {name: judge for name, (_, judge) in READ.items()}
KINDS |= {name: Kind(numbers, judge) for name, (numbers, judge) in READ.items()}
