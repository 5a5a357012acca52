"""What is read of a formula, and what its lines are said to be: ranges and polynomials, by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.functions.formulas import Formula, Meaning, Undefined, number, read_formula

LINES: list[list[Any]] = [["x", 0], ["y", 1], ["const", (0.5).hex()], ["mul", 0, 1], ["mean", 3], ["exp", 4]]


def entry(**more: Any) -> dict[str, Any]:
    box = [[(0.0).hex(), (1.0).hex()], [(-1.0).hex(), (2.0).hex()]]
    target = {"d": 2, "tokens": 5, "per": "token", "box": box, "lines": LINES, "outputs": [5], "meant": [5]}
    return target | {"planned": [5], "stages": [[0], [1, 2]]} | more


def read(**more: Any) -> Formula:
    return read_formula(entry(**more), "target")


def test_a_formula_is_read() -> None:
    found = read(outputs=[0, 5], meant=[1, 5], planned=[2, 4])
    assert (found.d, found.tokens, found.per, found.box) == (2, 5, "token", ((0.0, 1.0), (-1.0, 2.0)))
    assert found.lines[2:4] == (("const", Fraction(1, 2)), ("mul", 0, 1))
    assert (found.outputs, found.meant, found.planned, found.stages) == ((0, 5), (1, 5), (2, 4), ((0,), (1, 2)))
    assert read(tokens=1 << 20, per="sequence").tokens == 1 << 20
    assert read(lines=[["x", 0], ["ratio", -3, 7]], outputs=[1], meant=[1], planned=[1], stages=[]).lines[1] == (
        "const",
        Fraction(-3, 7),
    )
    least = read(
        d=1, tokens=1, box=[hexed(0, 1)], lines=[["ratio", 3, 1]], outputs=[0], meant=[0], planned=[0], stages=[]
    )
    assert (least.d, least.tokens, least.lines) == (1, 1, (("const", Fraction(3)),))
    wide = 1000
    assert read(d=wide, box=[[(0.0).hex(), (1.0).hex()]] * wide).d == wide
    assert len(read(lines=[["x", 0]] * 2000).lines) == 2000
    far = [[(-(2.0**500)).hex(), (2.0**500).hex()]] * 2
    assert read(box=far).box[0] == (-(2.0**500), 2.0**500)


def hexed(*ends: float) -> list[str]:
    return [float(end).hex() for end in ends]


@pytest.mark.parametrize(
    "wrong",
    [
        {"d": 0},
        {"d": 1.0},
        {"d": True},
        {"d": 1001, "box": [hexed(0, 1)] * 1001},
        {"tokens": 0},
        {"tokens": (1 << 20) + 1},
        {"tokens": "3"},
        {"per": "word"},
        {"box": [hexed(0, 1)]},
        {"box": (hexed(0, 1), hexed(0, 1))},
        {"box": [hexed(0, 1), hexed(0, 1, 2)]},
        {"box": [hexed(0, 1), "01"]},
        {"box": [hexed(0, 1), hexed(1, 1)]},
        {"box": [hexed(0, 1), hexed(2, 1)]},
        {"box": [hexed(0, 1), hexed(0, 2.0**501)]},
        {"box": [hexed(-(2.0**501), 1), hexed(0, 1)]},
        {"lines": [], "outputs": [], "meant": [], "planned": [], "stages": []},
        {"lines": [], "stages": [[]]},
        {"lines": [["x", 0]] * 2001},
        {"lines": tuple(LINES)},
        {"outputs": [6]},
        {"outputs": [-1]},
        {"outputs": [5.0]},
        {"outputs": [True]},
        {"outputs": 5},
        {"outputs": [], "meant": [], "planned": []},
        {"outputs": [5, 5]},
        {"meant": [5, 5]},
        {"planned": []},
        {"stages": {}},
        {"stages": [[6]]},
        {"stages": [[0, 6]]},
        {"stages": [0]},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_formula_is_malformed(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed) as refused:
        read(**wrong)
    assert refused.value.gate == "claim" or wrong == {"more": 1}


@pytest.mark.parametrize(
    "line",
    [
        [],
        "x0",
        5,
        {"x": 0},
        [0],
        [["x"], 0],
        ["x"],
        ["x", 2],
        ["x", -1],
        ["x", 0, 0],
        ["y", True],
        ["const"],
        ["const", 1, 1],
        ["ratio", 1, 0],
        ["ratio", 1, -2],
        ["ratio", 1],
        ["ratio", 1.0, 2],
        ["ratio", 1, 2, 3],
        ["tan", 0],
        ["neg", 6],
        ["neg", 0, 1],
        ["add", 0],
        ["add", 0, 6],
        ["add", 0, 1.0],
        ["mean", 0, 1],
        ["average", 0],
        ["largest", 0, 1],
    ],
    ids=str,
)
def test_what_is_no_line_is_malformed(line: Any) -> None:
    with pytest.raises(Malformed):
        read(lines=[*LINES, line])


def test_a_line_may_name_every_line_before_it() -> None:
    more = [["neg", 5], ["add", 6, 5], ["average", 7, 6], ["largest", 8], ["hypot", 9, 0], ["y", 1]]
    assert read(lines=LINES + more).lines[-2] == ("hypot", 9, 0)


def test_the_two_floats_around_a_number() -> None:
    for c in (Fraction(1, 3), Fraction(-1, 3), Fraction(10**40, 7), Fraction(1, 10**320)):
        (low,), (high,) = number(c)
        assert Fraction(float(low)) < c < Fraction(float(high))
        assert high - low <= 2.0**-49 * abs(float(c)) + 2.0**-998
    assert [float(end[0]) for end in number(Fraction(3, 4))] == [0.75, 0.75]
    assert [end.tolist() for end in number(Fraction(10**400))] == [[-np.inf], [np.inf]]


def last(k: int) -> dict[str, list[int]]:
    return {"outputs": [k], "meant": [k], "planned": [k]}


def meaning(*lines: list[Any]) -> Meaning:
    with np.errstate(all="ignore"):
        return Meaning(read(lines=list(lines), stages=[], **last(len(lines) - 1)))


def ends(m: Meaning, k: int) -> tuple[float, float]:
    return float(m.ranges[k][0][0]), float(m.ranges[k][1][0])


def test_ranges_by_hand() -> None:
    m = meaning(["x", 0], ["x", 1], ["y", 1], ["mean", 2], ["largest", 2], ["average", 0, 2], ["neg", 1])
    assert [ends(m, k) for k in range(7)] == [(0, 1), *[(-1, 2)] * 5, (-2, 1)]
    m = meaning(["x", 0], ["x", 1], ["mul", 1, 1], ["mul", 0, 1], ["relu", 1], ["abs", 1], ["sub", 1, 0])
    for k, (low, high) in {2: (0, 4), 3: (-1, 2), 4: (0, 2), 5: (0, 2), 6: (-2, 2)}.items():
        found = ends(m, k)
        assert low - 1e-12 <= found[0] <= low + 1e-12
        assert high - 1e-12 <= found[1] <= high + 1e-12


def test_lines_with_the_same_polynomial_share_the_narrowest_range() -> None:
    """x - x^2 by itself may be -1 to 1; as 1/4 - (x - 1/2)^2 it is 0 to 1/4."""
    loose = [["x", 0], ["mul", 0, 0], ["sub", 0, 1]]
    half = [["const", (0.5).hex()], ["sub", 0, 3], ["mul", 4, 4], ["const", (0.25).hex()], ["sub", 6, 5]]
    m = meaning(*loose, *half, ["neg", 2], ["sub", 0, 1])
    assert ends(m, 2) == pytest.approx((-1, 1))
    assert ends(m, 7) == pytest.approx((0, 0.25), abs=1e-12)
    assert ends(m, 9) == pytest.approx((0, 0.25), abs=1e-12)
    assert ends(m, 8) == pytest.approx((-1, 1))  # of a polynomial that no line with a better range has


def test_what_is_not_defined_on_the_whole_box_is_no_line() -> None:
    for op, of in (("log", 0), ("sqrt", 1), ("log", 1)):
        with pytest.raises(Undefined, match=f"line 2, {op}"):
            meaning(["x", 0], ["x", 1], [op, of])
    with pytest.raises(Undefined, match="line 1, div"):
        meaning(["x", 0], ["div", 0, 0])
    meaning(["x", 0], ["sqrt", 0])
    far = [["x", 0], ["mul", 0, 0], ["const", (2.0**100).hex()], ["neg", 2]]  # up to 2^1000
    for k in (2, 3):  # no number above, or none below
        with np.errstate(all="ignore"), pytest.raises(Undefined, match="line 4, mul"):
            Meaning(read(lines=[*far, ["mul", 1, k]], box=[hexed(0, 2.0**500), hexed(0, 1)], stages=[], **last(4)))


def test_powers_term_by_term() -> None:
    """Of a component in [-1, 2]: powers of an atom, times numbers."""
    m = meaning(["x", 1], ["x", 0])
    for power, (low, high) in {1: (-1, 2), 2: (0, 4), 3: (-4, 8), 4: (0, 16), 5: (-16, 32)}.items():
        p = {((0, power),): Fraction(3), (): Fraction(1, 2)}
        found = [float(end[0]) for end in m.enclose(p)]
        assert found == pytest.approx([3 * low + 0.5, 3 * high + 0.5])
        assert [end.shape for end in m.enclose(p)] == [(1,), (1,)]
    assert [float(end[0]) for end in m.enclose({((0, 1), (1, 2)): Fraction(-1)})] == pytest.approx([-2, 1])
    assert [float(end[0]) for end in m.enclose({})] == [0, 0]


def test_atoms_that_no_line_has() -> None:
    """Functions, averages and maxima of polynomials are enclosed, not only those of lines."""
    m = meaning(["x", 0], ["y", 1])
    A, x, y = m.algebra, m.normal(0), m.normal(1)
    twice = {next(iter(x)): Fraction(2)}
    for p, low, high in (
        (A.exp(twice), 1, np.exp(2)),
        (A.relu({**y, (): Fraction(1)}), 0, 3),
        (A.average(x, y), -1, 2),
        (A.average({}, {((1, 2),): Fraction(1)}), 0, 4),
        (m.largest({((1, 1),): Fraction(3)}), -3, 6),
        (A.quotient({(): Fraction(1)}, {**x, (): Fraction(1)}), 0.5, 1),
    ):
        assert [float(end[0]) for end in m.enclose(p)] == pytest.approx([low, high]), p
    assert A.needs(*m.largest({((1, 1),): Fraction(3)})) == {"pool"}
    assert A.needs(*m.largest({((0, 1), (1, 1)): Fraction(3)})) == {"x", "pool"}
    assert m.largest(y) != m.largest({((1, 1),): Fraction(3)})


SWAPPED = [
    ["x", 0],
    ["sin", 0],
    ["y", 0],
    ["sin", 2],
    ["mean", 2],
    ["add", 0, 2],
    ["neg", 4],
    ["const", (2.0).hex()],
]


def test_the_same_function_of_the_other_token() -> None:
    m = meaning(*SWAPPED, ["mul", 7, 1])
    assert m.normal(0, swapped=True) == m.normal(2) != m.normal(0)
    assert m.normal(1, swapped=True) == m.normal(3) != m.normal(1)
    assert m.normal(8, swapped=True) == {next(iter(m.normal(3))): Fraction(2)}
    assert m.normal(7, swapped=True) == m.normal(7)
    with pytest.raises(Undefined, match="another token"):
        m.normal(5, swapped=True)
    with pytest.raises(Undefined, match="average over all"):
        m.normal(6, swapped=True)


def test_each_operation_has_its_polynomial() -> None:
    m = meaning(
        ["x", 0], ["x", 1], *([op, 0, 1] for op in ("add", "sub", "mul", "min", "max", "hypot")), ["abs", 1]
    )
    A, x, y = m.algebra, ((0, 1),), ((1, 1),)
    difference = {x: Fraction(1), y: Fraction(-1)}
    ((positive, one),) = A.relu(difference).items()
    assert one == 1
    assert m.normal(2) == {x: 1, y: 1}
    assert m.normal(3) == difference
    assert m.normal(4) == {((0, 1), (1, 1)): 1}
    assert m.normal(5) == {x: 1, positive: -1}
    assert m.normal(6) == {y: 1, positive: 1}
    assert m.normal(7) == A.function("sqrt", {((0, 2),): Fraction(1), ((1, 2),): Fraction(1)})
    assert m.normal(8) == {next(iter(A.relu({y: Fraction(1)}))): 2, y: -1}
    m = meaning(
        ["x", 0], ["exp", 0], ["div", 0, 1], ["neg", 0], ["y", 1], ["mean", 4], ["average", 4, 4], ["largest", 4]
    )
    A, x, y = m.algebra, m.normal(0), m.normal(4)
    assert m.normal(2) == A.quotient(x, A.exp(x))
    assert m.normal(3) == {((0, 1),): -1}
    assert m.normal(5) == A.average({}, y)
    assert m.normal(6) == A.average(y, y) != A.average({}, y)
    assert A.needs(*m.normal(7)) == {"pool"}
    assert m.normal(7) == m.largest(y)


def test_lines_that_are_multiples_of_each_other_up_to_a_constant() -> None:
    two, three = (["const", float(c).hex()] for c in (2, 3))
    m = meaning(["x", 0], two, three, ["mul", 0, 1], ["add", 3, 2], ["x", 1], ["add", 0, 5], ["add", 4, 5])
    assert m.find_relation(4, 0) == (2, 3)
    assert m.find_relation(0, 4) == (Fraction(1, 2), Fraction(-3, 2))
    assert m.find_relation(4, 4) == (1, 0)
    for k, other in ((0, 5), (6, 0), (7, 6), (6, 7), (1, 2), (0, 2), (2, 0)):
        assert m.find_relation(k, other) is None, (k, other)
    assert m.without_constant(4) == ({((0, 1),): 2}, 3)
    assert m.without_constant(0) == ({((0, 1),): 1}, 0)


def test_outputs_and_plan_must_agree_and_name_no_other_token() -> None:
    lines = [["x", 0], ["y", 0], ["mean", 1], ["add", 0, 0], ["const", (2.0).hex()], ["mul", 4, 0], ["sub", 1, 1]]

    def why(output: int, meant: int, planned: int, per: str = "token") -> str:
        return read(
            lines=lines, outputs=[output], meant=[meant], planned=[planned], stages=[], per=per
        ).meaning.disagreement()

    assert why(3, 3, 5) == why(2, 2, 2) == why(2, 2, 2, "sequence") == why(6, 6, 6) == why(0, 3, 5) == ""
    assert "another function" in why(3, 3, 0)
    assert "another function" in why(3, 0, 5)
    for case in ((1, 1, 1), (1, 0, 0), (0, 1, 1), (0, 0, 0, "sequence"), (0, 2, 2, "sequence")):
        assert "nobody names" in why(*case), case
