"""Attention: the softmax at its extremes, enclosed by Arb, and the sums before and after it, in fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest

from tests.checker import adversary_softmax
from tests.checker.adversary_exact import Edges
from tests.proofs.modules import MODULES, NAMES, run
from tests.proofs.test_balls import encloses, pairs
from tests.proofs.theorems import MODEL, Format, Q, Sum, add_error, exact_sum, growth, nearest

ROUNDS = 60


def arb(x: Fraction):
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def extreme(A, m, r, visible, k: int, sign: int):
    """The largest (sign 1) or least weight of entry k: logits at the ends of their balls, roundings at their worst.

    The argument of exp is rounded A.roundings times, exp is off by A.exp_error, each of n - 1 additions and the
    division by A.u; e^0 of a logit that is known to be the largest is 1, and ones add up without rounding.
    """
    seen = np.flatnonzero(visible)
    ends = {j: arb(Q(m[j])) + arb(Q(r[j])) * (sign if j == k else -sign) for j in seen}
    top = max(ends.values(), key=lambda x: (float(x.mid()), x > 0))
    known, largest, total, own = not r[seen].any(), m[seen].max(), flint.arb(0), flint.arb(0)
    for j in seen:
        turn = sign if j == k else -sign
        t = ends[j] - top
        if known and m[j] == largest:
            e = flint.arb(1)
        else:
            g = arb(growth(int(A.roundings), Q(A.u)))
            e = (t * (1 - turn * g) + turn * flint.arb(A.exp_error)).exp()
        total, own = total + e, e if j == k else own
    additions = 0 if known and (m[seen] == largest).all() else len(seen) - 1
    moved = arb((1 + sign * Q(A.u)) * (1 + growth(additions, Q(A.u))) ** sign)
    return own / total * moved


def check_softmax(m, name: str) -> Counter:
    """Weights of known, near, equal and wide logits; those that are not seen are exactly 0."""
    flint.ctx.prec = 240
    rng = np.random.default_rng([81, len(name)])
    A, seen = m.balls.ARITHMETICS[name], Counter()
    for turn in range(4 * ROUNDS):
        n = int(rng.integers(1, 7))
        x = rng.standard_normal((1, n)) * 10.0 ** rng.uniform(-2, 2.5)
        x = np.where(rng.random((1, n)) < rng.choice([0, 0.5, 1]), x.max(), x)
        r = np.abs(rng.standard_normal((1, n))) * 10.0 ** rng.choice([-300, -14, -6, -1, 0, 1, 3]) * (turn % 4 > 0)
        visible = rng.random((1, n)) < 0.8
        visible[0, rng.integers(n)] = True
        p = m.balls.softmax(m.balls.Ball(x, r), bool(visible.all()) or visible, A)
        for k in range(n):
            if not visible[0, k]:
                assert p.m[0, k] == p.r[0, k] == 0
                seen["masked"] += 1
                continue
            for sign in (-1, 1):
                off = abs(extreme(A, x[0], r[0], visible[0], k, sign) - flint.arb(float(p.m[0, k])))
                assert off <= flint.arb(float(p.r[0, k])), (name, x, r, k, sign)
                seen["wide" if p.r[0, k] > p.m[0, k] else "near"] += 1
    return seen


def network(m, rng, edges: Edges, name: str, heads: int, s: int):
    """Of width 3, reading two numbers per token; without queries, so that averages have equal weights, or with."""
    kind = "float32" if name == "float32" else "float64"
    blind = rng.random() < 0.5
    T = {
        "embedding.lift": edges.array(2, 3, sparse=0.4, kind="mixed"),
        "embedding.bias": edges.array(3, sparse=0.5, kind="whole"),
        "embedding.positions": edges.array(2, 3, sparse=0.5, kind="whole"),
        "attention.W_Q": np.zeros((heads, 3, s)) if blind else rng.standard_normal((heads, 3, s)),
        "attention.W_K": rng.standard_normal((heads, 3, s)),
        "attention.W_V": edges.array(heads, 3, s, sparse=0.5, kind="one"),
        "attention.W_O": edges.array(heads, s, 3, sparse=0.3, kind=str(rng.choice(["one", "whole", "mixed"]))),
        "readout.0.weight": np.eye(3),
        "readout.0.bias": np.zeros(3),
        "readout.1.weight": np.ones((3, 1)),
        "readout.1.bias": np.zeros(1),
    }
    return m.graph.build({key: a.astype(kind) for key, a in T.items()})


def check_sums_around(m, name: str) -> Counter:
    """lifted, read and attend: the stream is one term of the sum of all components of all heads."""
    rng = np.random.default_rng([82, len(name)])
    A, f, edges, seen = m.balls.ARITHMETICS[name], MODEL[name], Edges(name, rng), Counter()
    for _ in range(ROUNDS):
        heads, s = int(rng.integers(1, 6)), int(rng.integers(1, 3))
        net = network(m, rng, edges, name, heads, s)
        T = net.tensors
        tokens = edges.array(2, 2, 2, sparse=0.3, kind=str(rng.choice(["one", "whole", "mixed"])))
        if not all(np.isfinite(a).all() for a in (tokens, *T.values())):
            continue
        h, x = net.lifted(tokens, 0.0, A), tokens.reshape(-1, 2)
        before = m.balls.linear(m.balls.exact(x), T["embedding.lift"], T["embedding.bias"], A)
        for i, j in np.ndindex(4, 3):
            place = (Q(T["embedding.positions"][i % 2, j]), Q(0))
            one = pairs(before, i, j)[0] if before.r[i, j] < np.inf else None
            if one is not None and h.r[i, j] < np.inf:
                exactly = one[1] == 0 and (f.prec is None or exact_sum(f, [one[0], place[0]]))
                assert Q(h.r[i, j]) >= (0 if exactly else add_error(f, one, place)), (name, one, place)
                seen["lifted"] += 1
        stream = m.graph.Stream(net, h.reshape(2, 2, 3), A)
        last, lengths = bool(rng.random() < 0.5), np.full(2, 2)
        y = net.attend(stream, lengths, last)
        averages = (
            net.equal(stream, True, last)
            if net.unseeing(last) and stream.is_calm
            else net.weighed(stream, lengths, True, last)
        )
        for part in "QV":
            read = stream.get(part)
            weights = T[f"attention.W_{part}"].swapaxes(0, 1).reshape(3, -1)
            for i, k, j in np.ndindex(read.m.shape):
                if np.isfinite(h.r[2 * i + k]).all():
                    column = [(Q(w), Q(0)) for w in weights[:, j].tolist()]
                    total = Sum(list(zip(pairs(h, 2 * i + k), column, strict=True)))
                    seen[encloses(name, A, total, read.m[i, k, j], read.r[i, k, j], part)] += 1
        out = T["attention.W_O"].reshape(-1, 3)
        for row in range(len(y.m)):
            i, k = (row, 1) if last else divmod(row, 2)
            at = np.asarray(averages.m)[i, :, 0 if last else k], np.asarray(averages.r)[i, :, 0 if last else k]
            if not (np.isfinite(at[1]).all() and np.isfinite(h.r[2 * i + k]).all()):
                assert np.isinf(y.r[row]).all()
                continue
            aside = [(Q(a), Q(z)) for a, z in zip(at[0].ravel().tolist(), at[1].ravel().tolist(), strict=True)]
            for j in range(3):
                weights = [(Q(w), Q(0)) for w in out[:, j].tolist()]
                total = Sum(list(zip(aside, weights, strict=True)), pairs(h, 2 * i + k, j)[0])
                seen[f"attend, {encloses(name, A, total, y.m[row, j], y.r[row, j], 'attend')}"] += 1
    return seen


CHECKS = {
    check_softmax: {"masked", "wide", "near"},
    check_sums_around: {"lifted", "exact", "ball", "attend, ball"},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_attention_is_enclosed(check, name) -> None:
    seen = run(check, MODULES, name)
    assert set(seen) >= CHECKS[check]
    assert min(seen[kind] for kind in CHECKS[check]) >= 20, seen


def test_exp_is_as_near_as_is_said() -> None:
    adversary_softmax.check_exp(MODULES.balls)


def test_ones_add_up_exactly_only_up_to_the_limit() -> None:
    """Theorem equal_weights, in a format of 6 bits: a loop that adds ones never gets beyond 64."""
    balls, few = MODULES.balls, Format(6, -130)
    A = balls.Arithmetic("six bits", float(few.u), 64.0, 2.0**-125, 2.0**126, 0.0, 3.0)
    for n in (1, 5, 63, 64, 65, 70, 128, 300):
        total = Q(0)
        for _ in range(n):
            total = min(nearest(few, total + 1))
        for weight in nearest(few, 1 / total):
            p = balls.softmax(balls.exact(np.zeros((1, n))), True, A)
            assert p.r[0, 0] == np.inf or abs(weight - Q(p.m[0, 0])) <= Q(p.r[0, 0]), n
        assert n > 64 or total == n
