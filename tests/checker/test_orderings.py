"""Programs on simplices, and programs that are symmetric: what is seen in the lines is true of the values."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from onelayer.problems.targets.enclosure import as_checked
from onelayer.problems.targets.expression import read_expression
from onelayer.problems.targets.program import UNARY, Program
from onelayer_checker.functions import simplices, symmetry
from onelayer_checker.functions.ordering import simplify_ordered
from onelayer_checker.functions.targets import bounds

KINKS = [
    "max(y)",
    "max(y) - min(y)",
    "abs(x1 - x2) + abs(x3 - x1)",
    "relu(x1 - x2) - relu(x3 - x2)",
    "max(min(x1, x2), min(x2, x3), min(x1, x3))",
    "abs(x1 - x2)*max(x2, x3) + min(0, x1 - x3)",
    "max(x1 - x2, x2 - x3)",
    "abs(x1 - 0.5) + max(x1, 0.5)",
]


def values(program: Program, lines: tuple, X: np.ndarray) -> np.ndarray:
    """Of the lines as the checker has them, with the library's evaluation."""
    changed = Program(program.n, program.d, lines, program.outputs, program.per, program.components)
    return changed.evaluate(X)


@pytest.mark.parametrize("text", KINKS)
def test_in_an_order_the_values_are_the_same(text: str) -> None:
    _, program = read_expression(text, 3, 1)
    read, rng = as_checked(program), np.random.default_rng(0)
    changed = 0
    for falling in permutations(range(3)):
        decided = read.simplify_ordered(falling)
        X = np.empty((200, 3, 1))
        X[:, list(falling), 0] = -np.sort(-rng.random((200, 3)), axis=1)
        X[:20, falling[0]] = X[:20, falling[1]]  # equal ones belong to both orders
        assert np.allclose(values(program, decided.lines, X), program.evaluate(X), rtol=0, atol=1e-12)
        changed += decided.lines != read.lines
    assert changed == (0 if "0.5" in text or text == "max(x1 - x2, x2 - x3)" else 6)


def test_what_was_decided_has_no_kink_left() -> None:
    """On a box across x1 = x2 the larger of both has the slopes of one of them."""
    read = as_checked(read_expression("max(x1, x2)", 2, 1)[1])
    low, high = np.zeros((1, 2)), np.ones((1, 2))
    both, first = (p.enclose(low, high, True) for p in (read, read.simplify_ordered((0, 1))))
    assert both.slope_low[0, 0].tolist() == [0, 0]
    assert first.slope_low[0, 0].tolist() == first.slope_high[0, 0].tolist() == [1, 0]
    assert bounds(read, low, high)[1] == 1


@pytest.mark.parametrize("text", ["max(x1, x2)", "abs(x1 - x2)", "relu(x2 - x1)", "min(x1, x2) + 0.3*x1"])
def test_bounds_on_simplices_are_not_below_the_error(text: str) -> None:
    """Whatever values the vertices have, the error of the interpolant in a simplex is within the bound."""
    program, rng = read_expression(text, 2, 1)[1], np.random.default_rng(2)
    for _ in range(10):
        F = rng.random((3, 3, 1))
        for cell in np.ndindex(2, 2):
            for order in permutations(range(2)):
                at, bound = np.array([cell]), np.full(1, np.inf)
                low, high = at * 0.5, at * 0.5 + 0.5
                simplices._along(as_checked(program), F, at, order, 0.0, 0.5, low, high, bound, 0.0)
                s = -np.sort(-rng.random((400, 2)), axis=1)[:, np.argsort(order)]  # falls along the order
                corner = [at[0], at[0] + np.eye(2, dtype=int)[order[0]], at[0] + 1]
                weight = np.stack([1 - s[:, order[0]], s[:, order[0]] - s[:, order[1]], s[:, order[1]]], axis=1)
                wanted = weight @ np.array([F[tuple(v)][0] for v in corner])
                X = (at + s)[:, :, None] * 0.5
                error = np.abs(wanted - program.evaluate(X)[:, 0]).max()
                assert error <= bound[0] < np.inf


SYMMETRIC = ["max(y) - x", "x*mean(y**2) + hypot(x, mean(y))", "sum(exp(x*y)*y)/sum(exp(x*y))", "var(y)", "x"]
OTHERS = ["x1 + 2*x2 + x3", "x - x1", "x1*x2 + x3", "max(x1, x2) - x3", "mean(y) + 0.001*x2", "hypot(x1, x2) + x3"]


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("text", SYMMETRIC)
def test_symmetry_is_seen_in_sums_and_products_in_any_order(text: str, n: int) -> None:
    assert as_checked(read_expression(text, n, 1)[1]).symmetric


@pytest.mark.parametrize("text", OTHERS)
def test_what_depends_on_the_order_is_not_called_symmetric(text: str) -> None:
    assert not as_checked(read_expression(text, 3, 1)[1]).symmetric


def test_random_programs_that_are_called_symmetric_are() -> None:
    rng, seen = np.random.default_rng(1), 0
    for _ in range(3000):
        lines: list[tuple] = [("x", j, 0) for j in range(3)] + [("const", 2.0)]
        for _ in range(rng.integers(1, 5)):
            op = str(rng.choice(["add", "mul", "min", "max", "sub", "abs", "hypot"]))
            lines.append((op, *rng.integers(len(lines), size=1 if op in UNARY else 2).tolist()))
        per = "token" if rng.random() < 0.5 else "sequence"
        outputs = tuple(rng.integers(len(lines), size=3 if per == "token" else 1).tolist())
        program = Program(3, 1, tuple(lines), outputs, per, 1)
        if not as_checked(program).symmetric:
            continue
        seen += len(lines) > 4
        X = rng.random((5, 3, 1))
        for order in permutations(range(3)):
            moved, own = program.evaluate(X[:, order]), program.evaluate(X)
            assert np.allclose(moved, own[:, order] if per == "token" else own)
    assert seen > 20


def test_variables_of_several_components_have_places_of_their_own() -> None:
    """Four variables of two tokens, and of each two of them the larger and the smaller."""
    variables = tuple(("x", j, c) for j in (0, 1) for c in (0, 1))
    asked = [(a, b) for a in range(4) for b in range(4) if a != b]
    given = variables + tuple((op, a, b) for a, b in asked for op in ("max", "min"))
    for falling in permutations(range(4)):
        lines = simplify_ordered(given, 2, falling)
        for k, (a, b) in enumerate(asked):
            more, less = sorted((a, b), key=falling.index)
            assert lines[4 + 2 * k : 6 + 2 * k] == (variables[more], variables[less])


def test_differences_and_zero_are_decided_on_either_side() -> None:
    zero, first, second = ("const", 0.0), ("x", 0, 0), ("x", 1, 0)
    given = (first, second, ("sub", 0, 1), zero, ("max", 3, 2), ("max", 2, 3), ("min", 3, 2), ("min", 2, 3))
    rising, falling = (simplify_ordered(given, 1, order) for order in ((1, 0), (0, 1)))
    assert falling[4:] == (given[2], given[2], zero, zero)
    assert rising[4:] == (zero, zero, given[2], given[2])


def test_what_is_no_difference_of_variables_is_left() -> None:
    zero = ("const", 0.0)
    more = (("max", 0, 2), ("max", 2, 0), ("add", 0, 1), ("max", 5, 0), ("max", 0, 5), ("abs", 0), ("abs", 5))
    given = (("x", 0, 0), ("x", 1, 0), zero, *more)
    assert simplify_ordered(given, 1, (0, 1)) == simplify_ordered(given, 1, (1, 0)) == given


def asked_of(n: int, d: int, more: tuple, outputs: tuple[int, ...], per_token: bool) -> bool:
    variables = tuple(("x", j, c) for j in range(n) for c in range(d))
    return symmetry.is_symmetric(n, variables + more, outputs, per_token)


def test_a_difference_of_two_tokens_is_not_symmetric() -> None:
    assert not asked_of(2, 1, (("sub", 0, 1),), (2,), False)
    assert asked_of(2, 1, (("add", 0, 1),), (2,), False)


def test_several_outputs_of_each_token_move_together() -> None:
    squares = tuple(("mul", k, k) for k in range(3))
    assert asked_of(3, 1, squares, (0, 3, 1, 4, 2, 5), True)
    assert not asked_of(3, 1, squares, (0, 3, 1, 4, 5, 2), True)


def test_differences_are_not_grouped() -> None:
    """(a - b) - c of one token, and c - (d - a) of the other: with them exchanged they look alike if flattened."""
    more = (("sub", 0, 1), ("sub", 4, 2), ("sub", 3, 0), ("sub", 2, 6))
    assert not asked_of(2, 2, more, (5, 7), True)


def test_beyond_so_many_parts_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """x1 + x2 + x3 has two parts, then three."""
    said: list[tuple] = []
    monkeypatch.setattr(symmetry, "spend", lambda *given: said.append(given))
    for most in (5, 4):
        monkeypatch.setattr(symmetry, "MOST_PARTS", most)
        assert asked_of(3, 1, (("add", 0, 1), ("add", 3, 2)), (4,), False) == (most == 5)
    assert said == [("symmetry of a program", 15_000.0)] * 2
