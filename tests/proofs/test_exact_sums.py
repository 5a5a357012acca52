"""Where the checker says that a sum is exact, a theorem of ExactSums.v or ExactProducts.v applies, in fractions."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from tests.checker.adversary_exact import Edges, drawn
from tests.proofs import edges as at_edges
from tests.proofs.edges import fractions
from tests.proofs.modules import MODULES, NAMES, run
from tests.proofs.theorems import (
    BINARY64,
    MODEL,
    SUMS,
    Q,
    Term,
    any_order_product_exact,
    exact_sum,
    power,
    signed_product_exact,
    value,
)

ROUNDS = 400


def holds(name: str, terms: list[Term], m: float, seen: Counter) -> None:
    """A theorem applies to the terms, and m is their sum, a number that is neither rounded nor flushed."""
    theorem = exact_sum(SUMS[name], terms)
    assert theorem, (name, terms)
    assert Q(m) == sum(map(value, terms)), (name, terms, m)
    assert SUMS[name].solid(Q(m))
    seen[theorem] += 1


def check_maps(m, name: str) -> Counter:
    """exact_products and whole_products, wherever they say so, and whatever a layer leaves without a radius."""
    rng = np.random.default_rng([41, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Counter()
    for _ in range(ROUNDS):
        n = int(rng.choice([1, 2, 3, 8]))
        x, W, b = (
            np.stack(parts) for parts in zip(*(drawn(rng, edges, n) for _ in range(2)), strict=True)
        )  # two blocks
        radius = (np.abs(x) * 2.0**-10 + rng.integers(0, 2)) * (rng.random(x.shape) < 0.3) * rng.integers(0, 2)
        ball = m.balls.Ball(x, radius)
        exactly = m.exactness.exact_products(ball, W, b, A)
        mid = m.balls.product(x, W) + b
        y = m.layers.Layer(W, b.ravel()).apply(m.balls.Ball(np.hstack([*x]), np.hstack([*radius])), A)
        for g, i, j in np.ndindex(mid.shape):
            terms: list[Term] = [*zip(fractions(x[g, i]), fractions(W[g, :, j]), strict=True), Q(b[g, 0, j])]
            known = not radius[g, i][W[g, :, j] != 0].any()
            if exactly[g, i, j]:
                assert known
                if np.isfinite(mid[g, i, j]) and abs(mid[g, i, j]) < A.big:
                    holds(name, terms, mid[g, i, j], seen)
            if y.r[i, 2 * g + j] == 0:
                assert known
                holds(name, terms, y.m[i, 2 * g + j], seen)
                seen["Layer.apply"] += 1
        for g in range(2):
            check_whole(m, name, m.balls.Ball(x[g], radius[g]), W[g], b[g, 0], seen)
    return seen


def check_whole(m, name: str, x, W, b, seen: Counter) -> None:
    """whole_products, of whole numbers W and b: no radius, and the exact sum in every column."""
    if not all((np.rint(a) == a).all() for a in (W, b)):
        return
    found = m.exactness.whole_products(x, W, b, m.balls.ARITHMETICS[name])
    for i, j in np.ndindex((0, 0) if found is None else found.m.shape):
        terms: list[Term] = [*zip(fractions(x.m[i]), fractions(W[:, j]), strict=True), Q(b[j])]
        assert not x.r[i].any()
        assert signed_product_exact(SUMS[name], terms)
        assert (Q(found.m[i, j]), found.r[i, j]) == (sum(map(value, terms)), 0)
        seen["whole_products"] += 1


def check_numbers(m, name: str) -> Counter:
    """One product of any two numbers at the edges, and one sum; `normal`, `is_power` and `add` for each of them."""
    A, f, seen = m.balls.ARITHMETICS[name], SUMS[name], Counter()
    some = np.array(at_edges.numbers(name))
    pairs = np.array(list(product(some, some)))
    x, w, none = m.balls.exact(pairs[:, None, :1]), pairs[:, 1:, None], np.zeros((len(pairs), 1, 1))
    exactly = m.exactness.exact_products(x, w, none, A).ravel()
    chosen = m.parts.added([], x[:, 0], w, np.zeros(1), A)
    total = m.exactness.add_numbers(m.balls.exact(pairs[:, 0]), pairs[:, 1], A)
    summed = m.balls.add(m.balls.exact(pairs[:, 0]), m.balls.exact(pairs[:, 1]), A)
    for k, (a, b) in enumerate(pairs.tolist()):
        if abs(Q(a) * Q(b)) < Q(A.big):
            alone = m.exactness.exact_products(m.balls.exact(np.array([[a]])), np.array([[b]]), np.zeros(1), A)
            for said in (exactly[k], alone[0, 0], chosen.r[k, 0] == 0):
                if said:
                    holds(name, [(Q(a), Q(b))], a * b, seen)
        for said in (total, summed):
            if said.r[k] == 0:
                holds(name, [Q(a), Q(b)], said.m[k], seen)
                seen["add"] += 1
    for a, sure, is_power in zip(some, m.exactness.normal(some, A), m.balls.is_power(some), strict=True):
        assert not sure or (a != 0 and f.solid(Q(a)) and BINARY64.normal(Q(a)))
        assert is_power == (a == 0 or (power(Q(a)) and BINARY64.normal(Q(a))))
        seen["normal"] += bool(sure)
    return seen


def check_sizes(m, name: str) -> Counter:
    """sums_fit, of sizes that float64 has added up or multiplied, rounded to nearest, around 1/u."""
    rng = np.random.default_rng([42, len(name)])
    A, edges, f, seen = m.balls.ARITHMETICS[name], Edges(name, rng), SUMS[name], Counter()
    limit = 2**f.prec
    for _ in range(4 * ROUNDS):
        terms = [edges.whole() * float(rng.choice([-1, 1])) for _ in range(int(rng.integers(1, 5)))]
        if m.exactness.sums_fit(np.sum(np.abs(terms)), A):
            assert any_order_product_exact(f, fractions(np.array(terms))), terms
            seen["sum"] += 1
        if m.exactness.sums_fit(np.sum(np.abs(terms)), A, np.sum(terms)):
            assert signed_product_exact(f, fractions(np.array(terms))), terms
            seen["signed sum"] += 1
    for count, near in product((1, 2, 3, 5, 7, 3002399751580331), range(-3, 4)):
        part = float((limit + near) // count)
        for off in (-1.0, 0.0, 1.0):
            size = np.float64(count) * (part + off)
            if part + off > 0 and m.exactness.sums_fit(size, A):
                assert any_order_product_exact(f, [(Q(count), Q(part + off))]), (count, part + off)
                seen["product"] += 1
    return seen


def check_rows(m, name: str) -> Counter:
    """`added`: chosen rows, products and a bias, of one term or of whole numbers."""
    rng = np.random.default_rng([43, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Counter()
    for _ in range(2 * ROUNDS):
        rows, i = int(rng.integers(0, 3)), int(rng.integers(0, 3))
        kind = str(rng.choice(["whole", "power", "mixed", "one"]))
        values = [edges.array(1, 2, sparse=0.5, kind=kind) for _ in range(rows)]
        x, W = edges.array(1, i, sparse=0.3, kind=kind), edges.array(i, 2, sparse=0.5)
        b, r = edges.array(2, sparse=0.7, kind=kind), np.zeros((1, i))
        if rng.random() < 0.2:
            r = np.abs(x) * 2.0**-8
        single = [bool(rng.random() < 0.8) for _ in values]
        sizes = [np.abs(v) + (0 if one else 2.0) for v, one in zip(values, single, strict=True)]
        y = m.parts.added(list(zip(values, sizes, single, strict=True)), m.balls.Ball(x, r), W, b, A)
        for j in range(2):
            if y.r[0, j] != 0:
                continue
            assert not r[0][W[:, j] != 0].any()
            terms: list[Term] = [*zip(fractions(x), fractions(W[:, j]), strict=True), Q(b[j])]
            for v, one in zip(values, single, strict=True):
                terms += [(Q(1), Q(v[0, j]))]
                terms += [] if one else [Q(1), Q(-1)]  # many terms, of which only sum and size are known
            holds(name, terms, y.m[0, j], seen)
    return seen


def check_choices(m, name: str) -> Counter:
    """Known.rows, Sums.fit, Sums.exactly: whole rows that no order rounds, alone and together with the others."""
    rng = np.random.default_rng([44, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Counter()
    for turn in range(ROUNDS):
        known, owns, several = [], [], int(rng.integers(1, 3))
        # Every third time, equal parts of a sum of about 1/u: with one more it would be rounded to 1/u.
        part = -(-(2 ** SUMS[name].prec + int(rng.integers(-1, 2))) // (several + 2))
        for by in range(several):
            K = int(rng.integers(1, 4))
            own = edges.array(K, 2, sparse=0.3, kind=str(rng.choice(["whole", "whole", "one", "mixed"])))
            own = np.where(turn % 3 == 0, np.sign(own) * part, own)
            sort = str(rng.choice(["one", "upto", "table"]))
            table = m.balls.exact(edges.array(2, K, sparse=0.4, kind=str(rng.choice(["whole", "one"]))))
            known.append(m.parts.Known(np.arange(K), by, sort, table if sort == "table" else None).rows(own))
            units = np.eye(K + 1, K) if sort == "one" else np.tri(K + 1, K, -1) if sort == "upto" else table.m
            owns.append((own, units))
        for rows, (own, units) in zip(known, owns, strict=True):
            if rows is None:
                continue
            for j, o in np.ndindex(rows.value.shape):
                terms = list(zip(fractions(units[j]), fractions(own[:, o]), strict=True))
                assert Q(rows.value[j, o]) == sum(map(value, terms))
                assert Q(rows.size[j, o]) >= sum(abs(value(t)) for t in terms)
                if not rows.single:
                    assert any_order_product_exact(BINARY64, terms)
                seen["rows"] += 1
        if any(rows is None for rows in known):
            continue
        x, W = edges.array(2, 1, kind="whole"), edges.array(1, 2, kind=str(rng.choice(["whole", "one"])))
        b = edges.array(2, sparse=0.3, kind="whole")
        if turn % 3 == 0:
            x, W, b = np.sign(x), np.sign(W) * part, np.sign(b) * part
        sums = m.sums.Sums.of(known, 0, W, b, [])
        choices = {by: rng.integers(0, len(rows.value), 2) for by, rows in enumerate(known)}
        token = m.parts.Token(choices=choices, unknown=np.zeros(2, bool))
        token.put(0, m.balls.exact(np.abs(x)))
        y, fits = sums.exactly(token, [], A), sums.fit(m.balls.exact(np.abs(x)), np.abs(W).max(), A)
        for t, o in np.ndindex(2, 2):
            terms = [(Q(abs(x[t, 0])), Q(W[0, o])), Q(b[o])]
            for (own, units), j in zip(owns, (choices[by][t] for by in range(len(known))), strict=True):
                terms += zip(fractions(units[j]), fractions(own[:, o]), strict=True)
            if fits:
                assert any_order_product_exact(SUMS[name], terms), (name, terms)
                seen["fit"] += 1
            if y is not None:
                assert signed_product_exact(SUMS[name], terms), (name, terms)
                assert Q(y[t, o]) == sum(map(value, terms))
                seen["exactly"] += 1
    return seen


CHECKS = {
    check_maps: {"any_order_product_exact", "one_term_exact", "whole_products", "Layer.apply"},
    check_numbers: {"any_order_product_exact", "one_term_exact", "normal"},
    check_sizes: {"sum", "signed sum", "product"},
    check_rows: {"any_order_product_exact", "one_term_exact"},
    check_choices: {"rows", "fit", "exactly"},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_theorem_applies_wherever_a_sum_is_called_exact(check, name) -> None:
    seen = run(check, MODULES, name)
    assert set(seen) >= CHECKS[check]
    assert min(seen[name] for name in CHECKS[check]) >= 10, seen
    assert MODEL[name] in (SUMS[name], MODEL["real"])
