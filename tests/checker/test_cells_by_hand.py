"""Claims about functions on cells, by hand: which cells are stored, and every term of an error."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import factorial, inf, nextafter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import TINY, UP, Ball, exact
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions import cells
from onelayer_checker.functions.cells import Assumed, Cells, Errors, find_cells
from onelayer_checker.functions.targets import Program, bounds, read_program
from tests.checker.counted import counted
from tests.checker.drawn import numbers

ASSUMED = Assumed(1.0, 0.0, True)
UNORDERED = SimpleNamespace(causal=False, tensors={})
ORDERED = SimpleNamespace(causal=False, tensors={"embedding.positions": np.zeros((1, 1))})
CAUSAL = SimpleNamespace(causal=True, tensors={})


def program(n: int, outputs: list[int], *lines: list[Any], d: int = 1, q: int = 1, per: str = "token") -> Program:
    """A target whose first lines are the components of its tokens."""
    listed = [["x", k, c] for k in range(n) for c in range(d)] + list(lines)
    entry = {"n": n, "d": d, "per": per, "components": q, "lines": listed, "outputs": outputs}
    return read_program(entry, "target")


def claimed(target: Any, type_: str = "sup_error", arith: str = "real", **numbers: float) -> Any:
    return Claim(type_, arith, "token", numbers, target)


def find(tokens: Any, network: Any = UNORDERED, target: Any = ASSUMED, **numbers: float) -> Cells:
    x = np.asarray(tokens, np.float64)
    return find_cells(network, claimed(target, **({"radius": 0.25, "low": -1.0, "high": 4.0} | numbers)), x)


def test_targets_are_programs_or_assumptions() -> None:
    entry = {"n": 1, "d": 1, "per": "token", "components": 1, "lines": [["x", 0, 0]], "outputs": [0]}
    assert cells.read_target(entry, "target") == program(1, [0])
    known = {"lipschitz": (2.0).hex(), "error": (0.5).hex(), "symmetric": False}
    assert cells.read_target(known, "target") == Assumed(2.0, 0.5, False)
    zero = known | {"lipschitz": (0.0).hex(), "error": (0.0).hex(), "symmetric": True}
    assert cells.read_target(zero, "target") == Assumed(0.0, 0.0, True)
    minus = (-0.5).hex()
    bad: list[Any] = [known | {"lipschitz": minus}, known | {"error": minus}, known | {"symmetric": 1}]
    bad += [known | {"more": 1}, {"lipschitz": known["lipschitz"]}, ["lines"], "lines", None]
    for entry in bad:
        with pytest.raises(Malformed):
            cells.read_target(entry, "target")


def test_cells_lie_inside_the_box() -> None:
    """To the last bit: the first and the last of three centres, of which the others are far from the ends."""
    tokens, edges = [[[0.0]], [[1.0]], [[3.0]]], {"low": -0.25, "high": 3.25}
    assert find(tokens, **edges).count == 3
    for moved in ({"low": nextafter(-0.25, 0)}, {"high": nextafter(3.25, 0)}, {"radius": nextafter(0.25, 1)}):
        with pytest.raises(Malformed, match="leave the box"):
            find(tokens, **edges | moved)
    alone = {"radius": 0.0, "low": 1.0}
    assert find([[[1.0]]], **alone, high=nextafter(1.0, 2)).side == 0
    with pytest.raises(Malformed, match="leave the box"):
        find([[[1.0]]], **alone, high=1.0)  # a box that is a point


def test_cells_are_apart() -> None:
    """The smallest gap, less what the difference of two centres may be rounded by; there may be no gap at all."""
    most = (1 - 2.0**-50) / 2
    box = {"low": -4.0, "high": 9.0}
    for tokens in ([[[0.0]], [[1.0]], [[4.0]]], [[[0.0]], [[3.0]], [[4.0]]]):
        assert find(tokens, radius=most, **box).count == 3
        for radius in (nextafter(most, 1), 0.5, 0.75):
            with pytest.raises(Malformed, match="overlap"):
                find(tokens, radius=radius, **box)
    assert find([[[1.0]]], radius=3.0, **box).count == 1
    assert find([[[0.0]], [[2.0**-4]]], radius=2.0**-6, **box).count == 2
    with pytest.raises(Malformed, match="overlap"):
        find([[[0.0]], [[2.0**-4]]], radius=2.0**-5, **box)


@pytest.mark.parametrize(("N", "n", "d"), [(2, 3, 1), (3, 1, 2), (2, 2, 2)])
def test_counting_is_paid_for_before_it_is_done(N: int, n: int, d: int) -> None:
    tokens = np.arange(float(N * n * d)).reshape(N, n, d)
    with counted() as lines:
        find(tokens, high=64.0)
    assert lines[0] == ("counting cells exactly", N * n * (200.0 + n) + 300.0 * (n * d) ** 2, 0.0, 0.0)


def test_no_sequence_of_cells_is_stored_twice() -> None:
    """In no order, where orders are not told apart; tokens are the same if all their components are."""
    swapped = [[[0.0], [1.0]], [[1.0], [0.0]]]
    for network in (ORDERED, CAUSAL):
        assert find(swapped, network).count == 2
    crossed = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]
    assert find(crossed).count == 4
    for tokens, network in ((swapped, UNORDERED), ([swapped[0]] * 2, ORDERED), ([swapped[0]] * 2, CAUSAL)):
        with pytest.raises(Malformed, match="stored twice"):
            find(tokens, network)
    with pytest.raises(Malformed, match="stored twice"):
        find([crossed[0], crossed[0][::-1]])


def test_which_orders_are_compared() -> None:
    """All, unless the network or the target makes them one; of an assumption it must be a part."""
    plain, symmetric = program(2, [0, 0]), program(2, [0, 1])
    one, both = [(0, 1)], [(0, 1), (1, 0)]
    tokens, far = [[[0.0], [1.0]]], {"low": -1.0, "high": 2.0}
    for network, target, orders in (
        (UNORDERED, plain, both),
        (UNORDERED, symmetric, one),
        (UNORDERED, ASSUMED, one),
        *((ordered, t, one) for ordered in (ORDERED, CAUSAL) for t in (plain, symmetric, ASSUMED)),
        (ORDERED, Assumed(1.0, 0.0, False), one),
        (CAUSAL, Assumed(1.0, 0.0, False), one),
    ):
        assert find(tokens, network, target, **far).orders == orders
    with pytest.raises(Malformed, match="symmetric"):
        find(tokens, UNORDERED, Assumed(1.0, 0.0, False), **far)


def test_no_more_than_six_tokens_have_all_their_orders_compared() -> None:
    for n in (6, 7):
        tokens, box = np.arange(float(n)).reshape(1, n, 1), {"low": -1.0, "high": 9.0}
        first, symmetric = program(n, [0] * n), program(n, list(range(n)))
        for network, target in ((UNORDERED, symmetric), (UNORDERED, ASSUMED), (ORDERED, first), (CAUSAL, first)):
            assert find(tokens, network, target, **box).orders == [tuple(range(n))]
        if n == 6:
            assert find(tokens, UNORDERED, first, **box).orders == list(permutations(range(6)))
        else:
            with pytest.raises(Malformed, match="too many orders"):
                find(tokens, UNORDERED, first, **box)


def test_orders_that_differ_are_counted() -> None:
    """Against all orders, written down: of tokens that occur once, or more often, next to each other or not."""
    for row in ([0, 1, 2], [1, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1], [2, 2, 1, 1], [2, 0, 1, 0]):
        n, tokens = len(row), np.array(row, float).reshape(1, -1, 1)
        different = len(set(permutations(row)))
        for target, orders in ((ASSUMED, 1), (program(n, [0] * n), factorial(n))):
            found = find(tokens, UNORDERED, target)
            assert (found.count, len(found.orders)) == (different, orders), row
            assert found.weight.tolist() == [different / orders * UP]
        for network in (ORDERED, CAUSAL):
            ordered = find(tokens, network)
            assert (ordered.count, ordered.weight.tolist()) == (1, [UP])
    several = find([[[0.0], [0.0], [1.0]], [[2.0], [1.0], [0.0]], [[2.0], [2.0], [2.0]]])
    assert several.count == 10
    assert several.weight.tolist() == [3 * UP, 6 * UP, UP]


def test_of_many_tokens_there_may_be_more_orders_than_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 200
    found = find(np.arange(float(n)).reshape(1, n, 1), high=float(n))
    assert found.count == factorial(n)
    assert found.weight.tolist() == [inf]
    for many, weight in ((2**1000 - 2**900, 2.0**1000 * UP), (2**1000, inf)):
        monkeypatch.setattr(cells, "factorial", lambda _, many=many: many)
        found = find([[[0.0], [1.0]]])
        assert (found.count, found.weight.tolist()) == (many, [weight])


def test_how_far_a_point_may_be_from_what_is_stored() -> None:
    """The ends of the box and the middles of gaps, if all cells are stored; else any stored point may be far."""
    for at, low, high, nearest in (
        ([0.0, 1.0, 4.0], -1.0, 5.0, 1.5),
        ([0.0, 1.0, 4.0], -2.0, 5.0, 2.0),
        ([0.0, 1.0, 4.0], -0.5, 6.5, 2.5),
        ([0.0, 3.0, 4.0], -0.25, 4.5, 1.5),
        ([1.0], 0.75, 1.375, 0.375),
        ([1.0], -1.0, 1.25, 2.0),
    ):
        for n, d in ((1, 1), (2, 1), (1, 2)):
            tokens = np.array(list(product(at, repeat=n * d))).reshape(-1, n, d)
            box = {"low": low, "high": high, "radius": 0.125}
            assert find(tokens, ORDERED, **box).nearest == nearest * UP
            if len(at) > 1 and n * d > 1:
                assert find(tokens[:-1], ORDERED, **box).nearest == (high - low) * UP
    # As many as two centres have of one component, of one token, of a token's component: not of all.
    for shape, count in (((2, 1), 2), ((1, 2), 2), ((2, 2), 2), ((2, 2), 4)):
        tokens = np.array(list(product([0.0, 1.0], repeat=shape[0] * shape[1]))).reshape(-1, *shape)
        assert find(tokens[-count:], ORDERED, low=-1.0, high=2.0).nearest == 3 * UP
    assert find([[[0.0]], [[1.0]]], low=-3.0, high=2.0).side == Fraction(1, 10)
    assert find([[[0.0]], [[1.0]]], low=-3.0, high=2.0, radius=0.125).side == Fraction(1, 20)


def stored(tokens: Any, answers: Any = None) -> Any:
    x = np.asarray(tokens, np.float32)
    y = np.zeros((x.shape[0] * x.shape[1], 1)) if answers is None else np.asarray(answers, np.float64)
    return SimpleNamespace(tokens=x, answers=y, which=np.arange(len(y)))


def of_orders(orders: list[tuple[int, ...]], N: int = 1, **others: Any) -> Cells:
    return Cells(orders, np.full(N, UP), **{"count": N, "side": Fraction(1, 4), "nearest": 1.0, **others})


def check_errors(found: Errors, low: Any, high: Any, m: Any, r: Any) -> None:
    """Every term of both bounds, of every token; the largest component counts."""
    for i, k in np.ndindex(m.shape[:2]):
        upper, lower = [], []
        for c in range(m.shape[2]):
            a, b, value, radius = low[i, k, c], high[i, k, c], m[i, k, c], r[i, k, c]
            upper.append((max(b - value, value - a) * UP + radius) * UP + TINY)
            lower.append((max(a - value, value - b) / UP - radius) / UP - TINY)
        assert (found.upper[i, k], found.lower[i, k]) == (max(upper), max(lower))


@pytest.mark.parametrize("radius", [0.0, 0.1])
@pytest.mark.parametrize("per", ["token", "sequence"])
def test_errors_of_a_program(radius: float, per: str) -> None:
    """In every order, with the network's answers moved likewise; an answer for a sequence is one of every token."""
    N, n, d, q = 3, 2, 2, 2
    tokens = numbers(0, N, n, d)
    outputs = [4, 1, 3, 0] if per == "token" else [4, 1]
    target = program(n, outputs, ["mul", 0, 2], d=d, q=q, per=per)
    out = Ball(numbers(1, N, n, q), np.abs(numbers(2, N, n, q)) / 64)
    data, orders = stored(tokens), [(0, 1), (1, 0)]
    listed = list(cells.errors(target, of_orders(orders, N), out, data, radius))
    assert [found.rows for found in listed] == [slice(0, 1 << 15)] * 2
    for order, found in zip(orders, listed, strict=True):
        x = data.tokens.astype(np.float64)[:, list(order)].reshape(N, -1)
        low, high = bounds(target, np.nextafter(x - radius, -inf), np.nextafter(x + radius, inf))
        answer = [np.broadcast_to(end.reshape(N, -1, q), (N, n, q)) for end in (low, high)]
        check_errors(found, *answer, out.m[:, list(order)], out.r[:, list(order)])


def test_errors_of_values_that_are_assumed() -> None:
    N, n, q, radius = 3, 2, 2, 0.1
    known = numbers(3, N * n, q)
    known[0, 0] = 0.0
    data = SimpleNamespace(tokens=numbers(4, N, n, 1), answers=known[::-1], which=np.arange(N * n)[::-1])
    out = Ball(known.reshape(N, n, q) + numbers(5, N, n, q) / 64, np.abs(numbers(6, N, n, q)) / 512)
    for lipschitz, error in ((0.75, 0.01), (3.0, 0.0), (0.0, 0.02), (0.0, 0.0)):
        target = Assumed(lipschitz, error, True)
        (found,) = cells.errors(target, of_orders([(0, 1)], N), out, data, radius)
        wide = ((error + lipschitz * radius * UP) * UP + np.abs(known) * 2.0**-50).reshape(N, n, q)
        y = known.reshape(N, n, q)
        check_errors(found, y - wide, y + wide, out.m, out.r)


def test_errors_of_one_answer_are_to_the_last_bit() -> None:
    """Where a product or a difference is not a float; an error may be 0, and is then said to be TINY."""
    one = of_orders([(0,)])
    for m, r in ((0.0, 0.0), (1.0, 0.0), (0.75, 0.1), (5.0, 0.3), (-5.0, 0.3), (-0.75, 0.0)):
        out = Ball(np.full((1, 1, 1), m), np.full((1, 1, 1), r))
        for y in (0.0, 1.0, -1.0, 1 / 3, -3.0):
            (found,) = cells.errors(Assumed(0.0, 0.0, True), one, out, stored([[[0.0]]], [[y]]), 0.0)
            wide = abs(y) * 2.0**-50
            check_errors(found, *(np.full((1, 1, 1), y + s * wide) for s in (-1, 1)), out.m, out.r)
    assert found.upper.shape == (1, 1)


def test_errors_come_in_blocks() -> None:
    for N, n, wanted in (
        (40_000, 2, [(0, 32_768), (32_768, 65_536)]),
        (65_537, 1, [(0, 65_536), (65_536, 131_072)]),
        (2, 65_537, [(0, 1), (1, 2)]),
    ):
        y = np.arange(float(N * n))
        data = stored(np.zeros((N, n, 1)), y[:, None])
        out = exact(np.zeros((N, n, 1)))
        listed = list(cells.errors(Assumed(0.0, 0.0, True), of_orders([tuple(range(n))], N), out, data, 0.0))
        assert [(found.rows.start, found.rows.stop) for found in listed] == wanted
        np.testing.assert_allclose(
            np.concatenate([found.upper for found in listed]).ravel(), y, rtol=1e-11, atol=TINY
        )
