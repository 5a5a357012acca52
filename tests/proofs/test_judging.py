"""A verdict says no more than is true in fractions: errors at eps, distances at delta, numbers near underflow."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from onelayer_checker.core import separated  # noqa: F401  (adds its kind of claim)
from onelayer_checker.core.judge import Judge
from tests.checker.adversary_exact import Edges
from tests.checker.test_judge import Network, claim, data
from tests.proofs.edges import beside, fractions
from tests.proofs.theorems import Q

ROUNDS = 300


def differs(rng, wanted: float, eps: float) -> float:
    """A number about eps, or half of it, beside what is wanted, or one of its neighbours."""
    near = wanted + float(rng.choice([-1, 1])) * eps
    return float(rng.choice(beside("float64", near)))


@pytest.mark.parametrize("block", [1, 3])
def test_answers_are_compared_as_fractions_are(monkeypatch, block) -> None:
    """Proved: all errors are at most eps, at every point of the ball. Refuted: one is larger at every point."""
    monkeypatch.setattr("onelayer_checker.core.judge.BLOCK", block)
    rng, seen = np.random.default_rng([91, block]), Counter()
    edges = Edges("float64", rng)
    for _ in range(ROUNDS):
        eps = float(rng.choice([0.0, 2.0**-3, 0.3, 5e-324, 2.0**-1022, abs(edges.number("mixed"))]))
        wanted = np.array(
            [[edges.number("mixed") if rng.random() < 0.4 else 1.5 for _ in range(2)] for _ in range(3)]
        )
        sort = rng.integers(0, 4, wanted.shape) * (rng.random(wanted.shape) < rng.choice([0.2, 1]))
        about = eps * float(rng.choice([1, 1, 0.5, 1 - 2.0**-38]))
        m = np.array(
            [differs(rng, w, about) if k else w for w, k in zip(wanted.ravel(), sort.ravel(), strict=True)]
        )
        m = m.reshape(wanted.shape)
        off = np.abs(m - wanted)
        r = np.where(sort == 1, np.abs(eps - off), np.where(sort == 2, 5e-324, 0.0))
        with np.errstate(all="ignore"):
            found = Judge(Network(m[:, None], r[:, None]), data(wanted)).judge(claim(eps=eps))
        errors = [abs(a - b) for a, b in zip(fractions(m), fractions(wanted), strict=True)]
        spread = fractions(np.where(np.isfinite(r), r, 0))
        if found.outcome == "proved":
            assert np.isfinite(r).all()
            worst = max(a + b for a, b in zip(errors, spread, strict=True))
            assert worst <= Q(found.value) <= Q(eps)
        elif found.outcome == "refuted":
            assert any(a - b > Q(eps) for a, b in zip(errors, spread, strict=True))
        seen[found.outcome] += 1
    assert min(seen[kind] for kind in ("proved", "refuted", "undecided")) >= 10, seen


def test_contexts_are_as_far_apart_as_fractions_are() -> None:
    """Whole coordinates and others, up to 2^53, a few numbers of float64 beside a distance of delta."""
    rng, seen = np.random.default_rng(92), Counter()
    for _ in range(3 * ROUNDS):
        N, c = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        delta = float(rng.choice([1.0, 0.3, 0.5, 2.0**-1022, 2.0**-40]))
        base = float(rng.choice([0.0, 1.0, 2.0**51, 2.0**52, 2.0**53 - 8]))
        m = base + rng.integers(0, 4, (N, 1, c)) * float(rng.choice([1.0, delta]))
        m = np.array([float(rng.choice(beside("float64", x))) if rng.random() < 0.3 else x for x in m.ravel()])
        m = np.abs(m).reshape(N, 1, c)
        r = np.full((N, 1, c), float(rng.choice([0.0, 0.0, 2.0**-53, 0.25, 5e-324])))
        asked = float(rng.choice(beside("float64", delta * float(rng.choice([1, 0.5])))))
        bound = float(rng.choice([2.0**54, base + 2, base + 4]))
        judge = Judge(Network(m, r), data(np.zeros(N), tokens=np.arange(N).reshape(-1, 1)))
        with np.errstate(all="ignore"):
            found = judge.judge(claim("separated", r=bound, delta=asked))
        gaps = [Q(2) ** 60]
        for i, j in combinations(range(N), 2):
            pairs = zip(fractions(m[i]), fractions(m[j]), fractions(r[i]), fractions(r[j]), strict=True)
            gaps.append(max(abs(x - y) - a - b for x, y, a, b in pairs))
        if found.outcome == "proved":
            assert min(gaps) >= Q(asked), (m, r, asked)
            assert max(x + y for x, y in zip(fractions(m), fractions(r), strict=True)) <= Q(bound)
            assert c > 1 or found.value == np.inf or min(gaps) >= Q(found.value)
        seen[found.outcome] += 1
    assert min(seen[kind] for kind in ("proved", "undecided")) >= 100, seen
