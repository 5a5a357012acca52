"""Programs of algorithms, line by line: what is read, what is run, what it is said to cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.polynomials import Ring
from onelayer_checker.looped.programs import MOST_LINES, OF_KERNELS, Program, read_program
from tests.checker.counted import counted

GROUPS = {"x": 3, "s": 10**8}


def read(lines: Any, *outputs: Any) -> Program:
    return read_program({"lines": lines, "outputs": list(outputs)}, GROUPS, "here")


@pytest.mark.parametrize(
    ("word", "value"), [("add", 4), ("sub", 10), ("mul", -21), ("max", 7), ("min", -3), ("neg", -7), ("abs", 7)]
)
def test_every_word_does_what_it_says(word: str, value: int) -> None:
    arguments = "0" if word in ("neg", "abs") else "0 1"
    x = [Fraction(7), Fraction(-3)]
    assert read(["x 0", "x 1", f"{word} {arguments}"], 2).run({"x": x}) == [value]
    (found,) = read(["x 0", "x 1", f"{word} {arguments}"], 2).run({"x": list(Ring().variables("x", 2))})
    assert len(found.terms) == {"max": 3, "min": 3, "add": 2, "sub": 2}.get(word, 1)
    for wrong in ("0 1 0", "0 1" if word in ("neg", "abs") else "0", ""):
        with pytest.raises(Malformed, match=r"here.lines\[2\] is no line"):
            read(["x 0", "x 1", f"{word} {wrong}".strip()], 2)
    assert read(["x 0", "abs 0", "neg 0"], 1, 2).run({"x": [Fraction(-2)]}) == [2, 2]
    assert read(["x 1", "x 0", "max 0 1", "min 0 1"], 2, 3).run({"x": x}) == [7, -3]


def test_outputs_are_lines_in_any_order_and_constants_are_exact() -> None:
    program = read([f"const {(0.1875).hex()}", "x 2", "s 999999"], 2, 0, 0, 1)
    groups = {"x": [1, 2, 3], "s": {999_999: Fraction(5)}}
    assert program.run(groups) == [5, Fraction(3, 16), Fraction(3, 16), 3]  # type: ignore[arg-type]
    assert program.lines[0] == ("const", Fraction(3, 16))


def test_a_kernel_may_have_exp_and_others_may_not() -> None:
    class Grown(int):
        def exp(self) -> int:
            return self + 1

    entry = {"lines": ["x 0", "exp 0", "neg 1"], "outputs": [1, 2]}
    program = read_program(entry, GROUPS, "here", OF_KERNELS)
    assert program.run({"x": [Grown(4)]}) == [5, -5]
    assert program.varies == (True, True)
    with pytest.raises(Malformed, match="is no line"):
        read_program(entry, GROUPS, "here")


def test_a_sum_grows_only_if_nobody_else_reads_its_first_part() -> None:
    lines = ["x 0", "x 1", "mul 0 1", "add 2 0", "add 3 1", "add 4 4", "add 0 1", "mul 0 0", "add 7 1", "add 1 7"]
    program = read(lines, 5, 8)
    assert program.grown == {3, 4}  # 4 is read twice by 5, 0 is a variable, 7 is read by 9 too
    x, y = Ring().variables("x", 2)
    found = program.run({"x": [x, y]})
    assert [p.terms for p in found] == [{(0, 1): 2, (0,): 2, (1,): 2}, {(0, 0): 1, (1,): 1}]
    assert (x.terms, y.terms) == ({(0,): 1}, {(1,): 1})
    assert read(["x 0", "neg 0", "add 1 0"], 1, 2).grown == frozenset()  # it is an output
    assert read(["x 0", "neg 0", "add 1 0"], 2).grown == {2}
    assert read(["x 0", "neg 0", "sub 1 0", "const 0x1.0000000000000p+0", "add 3 2"], 2, 4).grown == frozenset()
    assert program.run({"x": [Fraction(2), Fraction(3)]}) == [22, 7]
    mixed = read(["x 0", "x 1", "neg 0", "add 2 1"], 3)
    assert mixed.grown == {3}
    assert mixed.run({"x": [Fraction(2), y]})[0].terms == {(1,): 1, (): -2}
    assert mixed.run({"x": [y, Fraction(2)]})[0].terms == {(1,): -1, (): 2}


def test_what_reads_a_variable_varies() -> None:
    lines = [f"const {(1.0).hex()}", "x 0", "add 0 0", "add 0 1", "add 1 0", "neg 2", "mul 3 2"]
    assert read(lines, *range(7)).varies == (False, True, False, True, True, False, True)


@pytest.mark.parametrize(
    "line",
    [
        "x 3", "x -1", "x 00", "x", "x 0 1", "y 0", "s 0000001",
        "s 1000000", "s 9999999", "add 1 0", "add 0 1", "add 0 00",
        "neg 1", "const",
        " ".join(["const", 1.0.hex(), 1.0.hex()]), "const 0.1", "x ²", "x ٣", "x +1", "x 1_0", " x 0", "x  0", "",
        3, None, ["x", "0"], "exp 0",
    ],
)  # fmt: skip
def test_what_is_no_line_is_refused(line: Any) -> None:
    with pytest.raises(Malformed):
        read(["x 0", line], 0)


@pytest.mark.parametrize("outputs", [[], [2], [-1], [True], [0.0], ["0"], [0, 2], [None], 0, "0"])
def test_outputs_that_name_no_line_are_refused(outputs: Any) -> None:
    with pytest.raises(Malformed, match="outputs"):
        read_program({"lines": ["x 0", "x 1"], "outputs": outputs}, GROUPS, "here")
    assert read(["x 0"], 0).outputs == (0,)
    assert read(["x 0", "x 1"], 1, 1).outputs == (1, 1)


def test_programs_have_limits() -> None:
    for lines, outputs in (([], [0]), ("x 0", [0]), (["x 0"] * (MOST_LINES + 1), [0]), (["x 0"], [0] * 20_001)):
        with pytest.raises(Malformed, match="must have 1 to 20000 lines and outputs"):
            read_program({"lines": lines, "outputs": outputs}, GROUPS, "here")
    assert len(read(["x 0"] * 20_000, *[0] * 20_000).lines) == 20_000
    for entry in ({"lines": ["x 0"]}, {"lines": ["x 0"], "outputs": [0], "more": 1}, None):
        with pytest.raises(Malformed):
            read_program(entry, GROUPS, "here")


def test_numbers_are_charged_by_their_digits_and_polynomials_for_their_terms() -> None:
    x, y = Ring().variables("x", 2)
    with counted() as spent:
        read(["x 0", "x 1", "mul 0 1"], 2).run({"x": [Fraction(5), Fraction(3, 4)]})
    assert spent == [("operations on numbers", 500 + 10 * 9 + 81 / 100, 0, 0)]  # 101/1, 11/100
    with counted() as spent:
        read(["x 0", "x 1", "add 0 1"], 2).run({"x": [x + y, x]})
    assert [line for line in spent if line[0] == "lines of a program"] == [
        ("lines of a program", 0, 0, 120.0),
        ("lines of a program", 0, 0, 60.0),
        ("lines of a program", 0, 0, 120.0),
    ]
    assert not [line for line in spent if line[0] == "operations on numbers"]
    for pair in ([x, Fraction(3)], [Fraction(3), x]):
        with counted() as spent:
            read(["x 0", "x 1", "add 0 1"], 2).run({"x": pair})
        assert [line for line in spent if line[0] == "operations on numbers"] == [
            ("operations on numbers", 500 + 10 * 3 + 9 / 100, 0, 0)
        ]
