"""Enclosures of targets contain what they should, broken ones are caught, and malformed programs are refused."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from onelayer.problems.targets import ZOO
from onelayer.problems.targets.program import BINARY, UNARY
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions import intervals, targets
from tests.checker import enclosures, mutants

SOURCES = {module.__name__.split(".")[-1]: Path(module.__file__).read_text() for module in (intervals, targets)}

#: (module, what is broken, the code, what replaces it)
MUTANTS = [
    (
        "intervals",
        "no outward rounding below",
        "np.fmax(np.subtract(low, w, out=w), -np.inf)",
        "np.fmax(low, -np.inf)",
    ),
    ("intervals", "no outward rounding above", "np.fmin(np.add(high, v, out=v), np.inf)", "np.fmin(high, np.inf)"),
    ("intervals", "NaN is a number", "np.fmax(np.subtract(low, w, out=w), -np.inf)", "np.subtract(low, w, out=w)"),
    ("intervals", "products do not underflow", "return out(low, high, TINY)", "return out(low, high)"),
    ("intervals", "two products of four", "if a[0] is not a[1]:", "if False:"),
    ("intervals", "a point is what has equal shape", "if a[0] is not a[1]:", "if a[0].shape != a[1].shape:"),
    (
        "intervals",
        "quotients by an interval around 0",
        "open_ = ~((b[0] > 0) | (b[1] < 0))",
        "open_ = b[0] == b[1] + 1",
    ),
    ("intervals", "quotients of two ends", "[x / y for x in a for y in b]", "[x / y for x, y in zip(a, b)]"),
    ("intervals", "negation keeps the order", "return -a[1], -a[0]", "return -a[0], -a[1]"),
    ("intervals", "sizes are those of the ends", "(a[0] <= 0) & (a[1] >= 0), 0.0,", "(a[0] > a[1]), 0.0,"),
    ("intervals", "squares are not rounded", "low, high = out(x * x, y * y, TINY)", "low, high = x * x, y * y"),
    ("intervals", "squares may be negative", "return np.maximum(low, 0.0), high", "return low, high"),
    ("intervals", "roots are not rounded", "out(np.sqrt(a[0]), np.sqrt(a[1]))", "(np.sqrt(a[0]), np.sqrt(a[1]))"),
    (
        "intervals",
        "roots of negative numbers",
        "np.where(a[0] >= 0, low, -np.inf), np.where(a[0] >= 0, high, np.inf)",
        "np.fmax(low, 0.0), high",
    ),
    ("intervals", "exp is exact", "e * (1 - 32 * U), e * (1 + 32 * U) + TINY", "e * 1.0, e * 1.0 + TINY"),
    ("intervals", "exp does not underflow", "e * (1 + 32 * U) + TINY", "e * (1 + 32 * U)"),
    ("intervals", "exp of the size", "np.where(x > 0, inverse[1], above)", "above"),
    ("intervals", "one word of pi", "r -= k * HALF_PI_LOW", "r -= 0.0"),
    ("intervals", "sin of degree 11", "for i in range(9))", "for i in range(6))"),
    ("intervals", "cos of degree 12", "for i in range(10))", "for i in range(7))"),
    ("intervals", "no quarter turns", "quarter & 2, -value, value", "quarter & 2, value, value"),
    ("intervals", "sin is exact", "np.minimum(first, last) - 16 * U", "np.minimum(first, last) + 0 * U"),
    ("intervals", "no maximum inside", "top = ~near | (2 * np.floor(t / 2) >= s)", "top = ~near"),
    ("intervals", "no minimum inside", "bottom = ~near | (2 * np.floor((t - 1) / 2) + 1 >= s)", "bottom = ~near"),
    ("intervals", "maxima at odd places", "2 * np.floor(t / 2) >= s", "2 * np.floor((t - 1) / 2) + 1 >= s"),
    ("intervals", "far away is known", "near = (a[0] >= -1000) & (a[1] <= 1000)", "near = a[0] <= a[1]"),
    ("targets", "slopes of a quotient without its value", "(g, minus(value))", "(g, MINUS)"),
    ("targets", "slopes of a quotient multiply", "divide(ONE, b)))", "b))"),
    ("targets", "slopes of a product swapped", "_combine((f, b), (g, a))", "_combine((f, a), (g, b))"),
    ("targets", "slopes of a difference add", "(f, ONE), (g, MINUS)", "(f, ONE), (g, ONE)"),
    ("targets", "slopes of a square halved", "(2 * a[0], 2 * a[1])", "a"),
    ("targets", "slopes of cos are those of sin", "wave(a, turn + 1)", "wave(a, 1)"),
    ("targets", "slopes of |x| at a kink", "np.where(a[0] >= 0, 1.0, -1.0)", "np.where(a[1] > 0, 1.0, -1.0)"),
    ("targets", "slopes of a root without the half", "divide(HALF, value)", "divide(ONE, value)"),
    (
        "targets",
        "slopes of hypot not at a kink",
        "np.maximum(x, -1.0), np.minimum(y, 1.0)",
        "np.maximum(x, 0.0), y",
    ),
    ("targets", "slopes of hypot of the other", "_combine((f, v), (g, w))", "_combine((f, w), (g, v))"),
    ("targets", "the first always wins", "np.where(first, p, np.where(second, q, both))", "np.where(second, q, p)"),
    (
        "targets",
        "the wrong one wins",
        "_choose(a[0] >= b[1], b[0] >= a[1], f, g)",
        "_choose(b[0] >= a[1], a[0] >= b[1], f, g)",
    ),
    ("targets", "a winner by its middle", "_choose(a[1] <= b[0],", "_choose(a[1] <= b[1],"),
    ("targets", "a missing slope is not 0", "g.get(v, ZERO)", "g.get(v, ONE)"),
    ("targets", "the unknown is forgotten", "| (a[0] == -np.inf) | (b[0] == -np.inf)", ""),
    ("targets", "the unknown has slopes", "slopes[0, lost], slopes[1, lost] = -np.inf, np.inf", "pass"),
    ("targets", "every product is a square", 'op == "mul" and arguments[0] == arguments[1]', 'op == "mul"'),
    ("targets", "no product is a square", 'op == "mul" and arguments[0] == arguments[1]', "False"),
    (
        "targets",
        "half the radius",
        "radius = np.maximum(b - c, c - a) * UP",
        "radius = np.maximum(b - c, c - a) * 0.5",
    ),
    ("targets", "a radius of 0", "radius = np.maximum(b - c, c - a) * UP + TINY", "radius = 0 * (b - a)"),
    ("targets", "the least slope counts", "steepest = np.maximum(", "steepest = np.minimum("),
    ("targets", "values at the wrong centre", "enclose(program, c, c, False)", "enclose(program, a, a, False)"),
    ("targets", "lines forgotten too early", "if last[i] == k:", "if last[i] >= k:"),
]


@pytest.mark.parametrize("check", enclosures.CHECKS, ids=lambda check: check.__name__)
def test_enclosures_contain(check) -> None:
    check(targets)


def test_mutants_are_of_this_code() -> None:
    assert all(SOURCES[module].count(old) >= 1 for module, _, old, _ in MUTANTS)


@pytest.mark.parametrize(("module", "name", "old", "new"), MUTANTS, ids=[name for _, name, _, _ in MUTANTS])
def test_a_broken_enclosure_is_caught(module: str, name: str, old: str, new: str, monkeypatch) -> None:
    sources = {**SOURCES, module: SOURCES[module].replace(old, new)}
    mutants.assert_caught(enclosures.CHECKS, mutants.installed(monkeypatch, sources, name).targets, KeyError)


def test_it_knows_the_operations_of_the_library() -> None:
    assert {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2)} == targets.ARGUMENTS


def test_boxes_must_be_boxes() -> None:
    p = enclosures.program(targets, [("x", 0, 0)], 1)
    for low, high in ((1.0, 0.0), (np.nan, 1.0), (0.0, np.inf), (-np.inf, 0.0)):
        with pytest.raises(ValueError, match="finite and in order"):
            targets.enclose(p, np.array([[low]]), np.array([[high]]), False)


def test_blocks_do_not_matter(monkeypatch) -> None:
    p = targets.read_program(ZOO["standardise"].program(3, 1).to_json(), "target")
    low = np.random.default_rng(0).random((500, 3))
    whole, bounds = targets.enclose(p, low, low + 0.1, True), targets.bounds(p, low, low + 0.1)
    monkeypatch.setattr(targets, "BLOCK", 7)
    parts = targets.enclose(p, low, low + 0.1, True)
    assert all(np.array_equal(getattr(whole, name), getattr(parts, name)) for name in vars(whole))
    assert np.array_equal(bounds, targets.bounds(p, low, low + 0.1))


GOOD = {
    "n": 2,
    "d": 1,
    "per": "token",
    "components": 1,
    "lines": [["x", 0, 0], ["x", 1, 0], ["const", "0x1.8000000000000p-3"], ["add", 0, 1], ["mul", 2, 3]],
    "outputs": [4, 3],
}
#: (path into the program, what stands there instead)
BAD = {
    "a field is missing": (("per",), None),
    "n is 0": (("n",), 0),
    "n is true": (("n",), True),
    "n is text": (("n",), "2"),
    "d is negative": (("d",), -1),
    "n is beyond reach": (("n",), 10**6),
    "per is unknown": (("per",), "last"),
    "per is a list": (("per",), ["token"]),
    "components do not fit": (("components",), 2),
    "no lines": (("lines",), []),
    "lines are a word": (("lines",), "add"),
    "too many lines": (("lines",), [["x", 0, 0]] * 10_001),
    "too many outputs": (("outputs",), [0] * 10_001),
    "an output beyond the lines": (("outputs", 0), 5),
    "a negative output": (("outputs", 0), -1),
    "an output that is true": (("outputs", 0), True),
    "one output too few": (("outputs",), [4]),
    "an unknown operation": (("lines", 3, 0), "pow"),
    "an operation that is no word": (("lines", 3, 0), ["add"]),
    "an empty line": (("lines", 3), []),
    "a line that is no list": (("lines", 3), {"add": 1}),
    "a reference to itself": (("lines", 3, 1), 3),
    "a forward reference": (("lines", 3, 1), 4),
    "a negative reference": (("lines", 3, 1), -1),
    "a reference that is true": (("lines", 3, 1), True),
    "one argument too few": (("lines", 3), ["add", 0]),
    "one argument too many": (("lines", 3), ["abs", 0, 1]),
    "a token that is not there": (("lines", 1, 1), 2),
    "a component that is not there": (("lines", 1, 2), 1),
    "a constant that is a number": (("lines", 2, 1), 1),
    "a constant that is NaN": (("lines", 2, 1), "nan"),
    "a constant that is infinite": (("lines", 2, 1), "inf"),
    "a constant that overflows": (("lines", 2, 1), "0x1.0000000000000p+1024"),
    "a constant in decimals": (("lines", 2, 1), "0.1875"),
    "two constants": (("lines", 2), ["const", "0x1.0000000000000p+0", "0x1.0000000000000p+0"]),
}


def test_a_program_is_read_as_it_is() -> None:
    p = targets.read_program(GOOD, "target")
    assert (p.n, p.d, p.per, p.components, p.outputs) == (2, 1, "token", 1, (4, 3))
    assert p.lines[2:4] == (("const", 0.1875), ("add", 0, 1))


@pytest.mark.parametrize("name", BAD)
def test_malformed_programs_are_refused(name: str) -> None:
    entry, (path, value) = copy.deepcopy(GOOD), BAD[name]
    place = entry
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(Malformed) as refused:
        targets.read_program(entry, "claims[0].target")
    assert refused.value.gate in ("claim", "fields", "number")
    assert "claims[0].target" in str(refused.value)


@pytest.mark.parametrize("entry", [None, [], "x", 3, {}])
def test_what_is_no_object_is_refused(entry) -> None:
    with pytest.raises(Malformed):
        targets.read_program(entry, "target")
