"""`within`, part by part: which algorithms are steps of ridge regression, which numbers fit, how errors shrink."""

from __future__ import annotations

from fractions import Fraction as F  # noqa: N817  # a table of numbers
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped import limits
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.judge import LoopJudge
from onelayer_checker.looped.limits import BITS, NUMBERS, factor, power, root, unfit, unlike, up, within
from onelayer_checker.looped.network import build
from tests.checker.looped import ETA, LAYER, descent, program, weights

KEEP = 0.75


def const(value: float) -> str:
    return f"const {value.hex()}"


def plain(**changes: Any) -> dict[str, Any]:
    """w <- keep w + eta mean (y - <keep w, x>) x, and the answer <keep w, x>."""
    shrunk = ["s 0", "s 1", "x 0", "x 1", const(KEEP), "mul 0 4", "mul 1 4", "mul 5 2", "mul 6 3", "add 7 8"]
    step = ["s 0", "s 1", "m 0", "m 1", const(ETA), const(KEEP), "mul 0 5", "mul 1 5", "mul 2 4", "mul 3 4"]
    given = {
        "term": program([*shrunk, "y 0", "sub 10 9", "mul 11 2", "mul 11 3"], 12, 13),
        "step": program([*step, "add 6 8", "add 7 9"], 10, 11),
        "answer": program(shrunk, 9),
    }
    return descent(**given | changes)


def late(**changes: Any) -> dict[str, Any]:
    """w <- keep w + eta mean (y - <w, x>) x, and the answer <w, x>."""
    step = ["s 0", "s 1", "m 0", "m 1", const(ETA), const(KEEP), "mul 0 5", "mul 1 5", "mul 2 4", "mul 3 4"]
    return descent(**{"step": program([*step, "add 6 8", "add 7 9"], 10, 11)} | changes)


A, B = 1.25, 0.5


def momentum(**changes: Any) -> dict[str, Any]:
    """One number x: w <- u + eta mean (y - u x) x with u = A w - B w_before, and the answer (A - B) w x."""
    u = ["s 0", "s 1", const(A), const(B), "mul 0 2", "mul 1 3", "sub 4 5"]
    given = {
        "x": 1,
        "m": 1,
        "start": [(0.0).hex()] * 2,
        "term": program([*u, "x 0", "y 0", "mul 6 7", "sub 8 9", "mul 10 7"], 11),
        "step": program([*u, "m 0", const(ETA), "mul 7 8", "add 6 9"], 10, 0),
        "answer": program(["s 0", "x 0", const(A - B), "mul 0 1", "mul 3 2"], 4),
        "example": program(["x 0"], 0),
        "query": program(["x 0"], 0),
    }
    return descent(**given | changes)


def read(entry: dict[str, Any]) -> Algorithm:
    return read_algorithm(entry, "here")


def is_plain(a: dict[str, Any], eta: float = ETA, first: float = KEEP, second: float = 0.0) -> bool:
    return unlike(read(a), F(eta), F(first), F(second), late=False) == ""


def is_late(a: dict[str, Any], eta: float = ETA, first: float = KEEP, second: float = 0.0) -> bool:
    return unlike(read(a), F(eta), F(first), F(second), late=True) == ""


def is_momentum(a: dict[str, Any], eta: float = ETA, first: float = A, second: float = B) -> bool:
    return unlike(read(a), F(eta), F(first), F(second), late=False) == ""


def test_three_forms_are_known_by_their_numbers() -> None:
    assert is_plain(plain())
    assert not is_late(plain())
    assert is_late(late())
    assert not is_plain(late())
    assert is_momentum(momentum())
    above = 1 + 2.0**-40
    for other in ({"eta": ETA * above}, {"first": KEEP * above}, {"second": 2.0**-60}):
        assert not is_plain(plain(), **other)
        assert not is_late(late(), **other)
    for other in ({"eta": ETA * above}, {"first": A * above}, {"second": B * above}):
        assert not is_momentum(momentum(), **other)


def test_each_part_of_an_algorithm_counts() -> None:
    other = unlike(read(plain(start=[(0.0).hex(), (1.0).hex()])), F(ETA), F(KEEP), F(0), late=False)
    assert other == "the algorithm has judges, or another state, start or mean than ridge regression"
    part = program(["x 0"], 0)
    judged = {"judge": part, "weigh": part, "judged": part, "either": program(["x 0"], 0, 0)}
    reading = program([*plain()["answer"]["lines"], "v 0", "sub 10 10", "add 9 11"], 12)
    assert unlike(read(plain(**judged, answer=reading)), F(ETA), F(KEEP), F(0), late=False) == other
    assert not is_plain(plain(gather="sum"))
    assert not is_late(momentum(), second=B)
    swapped = program(["s 0", "s 1", "x 0", "x 1", "mul 0 3", "mul 1 2", "add 4 5"], 6)
    assert not is_plain(plain(answer=swapped))
    assert not is_late(late(answer=swapped))
    assert not is_late(late(query=None))
    wrong = unlike(read(late(answer=swapped)), F(ETA), F(KEEP), F(0), late=True)
    assert wrong == "the algorithm is not a step of ridge regression"
    squared = [*plain()["step"]["lines"][:10], "mul 2 2", "mul 2 3", "sub 10 11", "add 6 8", "add 7 9"]
    assert is_plain(plain(step=program([*squared], 13, 14)))
    curved = [*squared, "add 13 12"]  # m0^2 - m0 m1 more: not affine
    assert not is_plain(plain(step=program(curved, 15, 14)))
    kept = momentum()["step"]["lines"]
    assert not is_momentum(momentum(step=program(kept, 10, 1)))  # the state before is not kept
    assert not is_momentum(momentum(answer=program(["s 0", "x 0", "mul 0 1"], 2)))
    assert not is_momentum(momentum(answer=program(["s 1", "x 0", const(A - B), "mul 0 1", "mul 3 2"], 4)))


def test_a_step_that_is_no_mean_is_not_taken_for_one() -> None:
    """The variance of terms is 0 for one example: it commutes there, and is another algorithm from two on."""
    lines = [*late()["step"]["lines"], "mul 2 2", "sub 12 12", "mul 3 3", "sub 12 14"]
    assert is_late(late(step=program([*lines, "add 10 13"], 16, 11)))
    assert not is_late(late(step=program([*lines, "add 10 15"], 16, 11)))
    term = late()["term"]["lines"]
    more = program([*term, "mul 9 9"], 9, 10, 11)
    step = [*late()["step"]["lines"], "m 2", "mul 2 2", "sub 12 13", "add 10 14"]
    assert unlike(read(late(m=3, term=more, step=program(step, 15, 11))), F(ETA), F(KEEP), F(0), late=True) == (
        "the algorithm has judges, or another state, start or mean than ridge regression"
    )


def two_outputs() -> dict[str, Any]:
    """The late form for one number x and two answers, of which each has a weight of its own."""
    return descent(
        x=1,
        y=2,
        term=program(["s 0", "s 1", "x 0", "y 0", "y 1", "mul 0 2", "mul 1 2", "sub 3 5", "sub 4 6",
                      "mul 7 2", "mul 8 2"], 9, 10),
        step=late()["step"],
        answer=program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2"], 3, 4),
        example=program(["x 0"], 0),
        query=program(["x 0"], 0),
    )  # fmt: skip


def test_each_answer_has_weights_of_its_own() -> None:
    assert is_late(two_outputs())
    assert not is_late(two_outputs() | {"answer": program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2"], 4, 3)})
    assert not is_late(two_outputs() | {"answer": program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2"], 3, 3)})


def test_an_answer_that_is_missing_is_no_answer() -> None:
    one = two_outputs() | {"answer": program(["s 0", "x 0", "mul 0 1"], 2)}
    other = "the algorithm has judges, or another state, start or mean than ridge regression"
    assert unlike(read(one), F(ETA), F(KEEP), F(0), late=True) == other
    assert unlike(read(momentum()), F(ETA), F(A), F(B), late=True) == other


def two_by_two(extra: list[str], added: int) -> dict[str, Any]:
    """The late form for two numbers x and two answers, with something added to the first weight."""
    s, x, y, m = ([f"{g} {i}" for i in range(n)] for g, n in (("s", 4), ("x", 2), ("y", 2), ("m", 4)))
    term = [*s, *x, *y]  # 0-3, 4-5, 6-7
    for j in (0, 1):
        at = len(term)
        term += [f"mul {2 * j} 4", f"mul {2 * j + 1} 5", f"add {at} {at + 1}", f"sub {6 + j} {at + 2}"]
        term += [f"mul {at + 3} 4", f"mul {at + 3} 5"]
    step = [*s, *m, const(ETA), const(KEEP)]  # 0-3, 4-7, 8, 9
    for i in range(4):
        at = len(step)
        step += [f"mul {i} 9", f"mul {4 + i} 8", f"add {at} {at + 1}"]
    first = len(step) + len(extra)
    step += [*extra, f"add 12 {added}"]
    answer = [*s, *x, "mul 0 4", "mul 1 5", "add 6 7", "mul 2 4", "mul 3 5", "add 9 10"]
    return descent(
        y=2,
        m=4,
        start=[(0.0).hex()] * 4,
        term=program(term, 12, 13, 18, 19),
        step=program(step, first, 15, 18, 21),
        answer=program(answer, 8, 11),
    )


def test_a_determinant_of_means_is_no_step() -> None:
    """The terms of one example have rank 1, so that of one example is 0; that of two is not."""
    assert is_late(two_by_two([const(0.0)], 22))
    assert not is_late(two_by_two(["mul 4 7", "mul 5 6", "sub 22 23"], 24))
    assert not is_late(two_by_two(["mul 4 7"], 22))


def numbers(**changes: float) -> dict[str, F]:
    given = {"eta": 0.25, "a": 0.75, "b": 0.0, "x": 1.0, "late": 0.0, "y": 1.0} | changes
    return {name: F(value) for name, value in given.items()}


def test_numbers_must_make_errors_shrink() -> None:
    a, tiny = read(plain()), 2.0**-40
    none = "there is no penalty, or nothing is left of the state"
    assert unfit(a, numbers()) == ""
    assert unfit(a, numbers(eta=0.5)) == ""  # eta B^2 = 1
    assert unfit(a, numbers(eta=0.5 + tiny)) == "eta B^2 = 1 is too large"
    assert unfit(a, numbers(eta=0.125, x=2.0)) == ""
    assert unfit(a, numbers(eta=0.125 + tiny, x=2.0)).endswith("is too large")
    assert unfit(a, numbers(eta=0.375, late=1.0)) == ""  # eta B^2 = a
    assert unfit(a, numbers(eta=0.375 + tiny, late=1.0)) == "eta B^2 = 0.75 is too large"
    for wrong in ({"a": 1.0}, {"a": 0.0}, {"a": 1.5}, {"a": -0.5}, {"eta": 0.0}, {"eta": -0.25}):
        assert unfit(a, numbers(**wrong)) == none
    assert unfit(a, numbers(a=1.25, b=0.5)) == ""
    assert unfit(a, numbers(a=1.5, b=1.0)) == ""
    assert unfit(a, numbers(a=1.75, b=1.0 + tiny)) == none
    assert unfit(a, numbers(a=1.0, b=0.25)) == ""  # a^2 = 4 b
    assert unfit(a, numbers(a=1.0 + tiny, b=0.25)) == "the momentum is too small: a^2 > 4 b"
    for first, second in ((1.5, 0.5625), (0.5, 0.0625)):
        assert unfit(a, numbers(a=first, b=second)) == ""
        assert unfit(a, numbers(a=first, b=second - tiny)) == "the momentum is too small: a^2 > 4 b"
    assert unfit(a, numbers(a=0.5, b=0.5)) == none
    assert unfit(a, numbers(a=1.75, b=0.75)) == none
    assert unfit(a, numbers(a=0.25, b=-0.5)) == "the momentum is too small: a^2 > 4 b"


def test_what_is_left_of_an_error() -> None:
    assert factor(F(1, 2), F(0), 3) == F(1, 8)
    assert factor(F(1, 2), F(0), 1) == F(1, 2)
    for steps in (1, 2, 3, 10):
        r = F(1, 2)
        wanted = r**steps * (steps + 1 + r * steps)
        found = factor(F(3, 4), F(1, 4), steps)
        assert wanted <= found <= wanted + F(steps + 2, 2**500)


@pytest.mark.parametrize("value", [F(0), F(1, 4), F(2), F(10**40, 3), F(1, 3), F(1, 2**600), F(5, 2**1100)])
def test_roots_are_above_and_near(value: F) -> None:
    found = root(value)
    assert found * found >= value
    less = max(found - F(1, 2**BITS), F(0))
    assert less * less <= up(value)
    assert up(value) >= value
    assert up(value) - value < F(1, 2**BITS)
    assert up(value).denominator <= 2**BITS


def test_bits_are_many_and_powers_are_above_and_near() -> None:
    assert BITS == 512
    for base, n in ((F(1, 3), 5), (F(2, 3), 64), (F(7, 5), 9), (F(1, 3), 1), (F(1, 3), 2)):
        assert base**n <= power(base, n) <= base**n + F(1, 2**480)
    assert power(F(1, 2), 300) == F(1, 2**300)
    assert power(F(1, 3), 10**9) > 0  # rounded up, and at once
    assert power(F(7), 0) == 1


def test_a_network_that_is_not_the_algorithm_has_no_bound() -> None:
    network = build(weights(), {"template": "looped/1", "layers": [LAYER]})
    given = {"bound": 1e9, "x": 1.0, "y": 1.0, "eta": ETA, "a": KEEP, "b": 0.0, "late": 1.0}
    claim = Claim("within", "real", "token", given, read(late()))
    assert within(LoopJudge(network, weights()), claim).outcome == "refuted"
    with pytest.raises(Malformed):
        within(None, claim)


def test_bounds_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """a^L y B / (2 sqrt(penalty)), B = sqrt(2) x: squares are compared, so the bound is exact."""
    seen = []

    def proved(found: object, claim: Claim) -> Any:
        seen.append((found, claim))
        return Verdict("proved", "for a test", 0.0)

    monkeypatch.setattr(limits, "equals", proved)
    given = {"x": 1.0, "y": 2.0, "eta": ETA, "a": KEEP, "b": 0.0, "late": 0.0}

    def verdict(entry: dict[str, Any], bound: float, **changes: float) -> Verdict:
        return within("found", Claim("within", "real", "token", given | {"bound": bound} | changes, read(entry)))

    def exact(penalty: F, left: F, y: F, square: F) -> float:
        return float(root(left**2 * y**2 * square / (4 * penalty)))

    penalty = F(1, 4) / (F(3, 4) * F(1, 4))
    bound = exact(penalty, F(27, 64), F(2), F(2))
    fine = verdict(plain(), bound * (1 + 1e-15))
    assert (fine.outcome, fine.value) == ("proved", bound * (1 + 1e-15))
    assert fine.why == "3 steps leave 0.422 of the first error, penalty 1.33333"
    less = verdict(plain(), bound * (1 - 1e-15))
    assert (less.outcome, less.value) == ("undecided", np.inf)
    assert less.why == f"3 steps leave 0.422 of the first error, penalty 1.33333: within {bound:.6g}"
    penalty = F(1, 4) / F(1, 4)
    bound = exact(penalty, F(27, 64), F(2), F(2))
    assert verdict(late(), bound * (1 + 1e-15), late=1.0).outcome == "proved"
    assert verdict(late(), bound * (1 - 1e-15), late=1.0).outcome == "undecided"
    assert verdict(late(), bound * (1 + 1e-15)).why == "the algorithm is not a step of ridge regression"
    assert verdict(two_outputs(), 27 / 64, late=1.0).outcome == "proved"  # exactly
    assert verdict(two_outputs(), np.nextafter(27 / 64, 0), late=1.0).outcome == "undecided"
    penalty = F(1, 4) / (F(3, 4) * F(1, 4))
    bound = exact(penalty, factor(F(A), F(B), 3), F(1), F(1, 4))
    more = {"a": A, "b": B, "x": 0.5, "y": 1.0}
    assert verdict(momentum(), bound * (1 + 1e-15), **more).outcome == "proved"
    assert verdict(momentum(), bound * (1 - 1e-15), **more).outcome == "undecided"
    large = verdict(plain(), 9.0, x=2.0)
    assert (large.outcome, large.value) == ("undecided", np.inf)
    assert large.why == "eta B^2 = 2 is too large"
    assert seen[0][0] == "found"
    unproved = Verdict("undecided", "for a test", np.inf)
    monkeypatch.setattr(limits, "equals", lambda *_: unproved)
    assert verdict(plain(), 1e9) is unproved


def test_the_claim_has_its_numbers() -> None:
    assert {"bound", "x", "y", "eta", "a", "b", "late"} == NUMBERS
    assert limits.OWN["within"] is within
    kind = KINDS["within"]
    assert (kind.numbers, kind.judge, kind.read_target) == (NUMBERS, within, read_algorithm)
