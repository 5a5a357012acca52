"""Folders about looped networks that ask for years of work, or whose verdict would be about something else."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker import Report
from tests.checker.looped import INNER, LAYER, descent, judged, outcome, program, weights

HALF_MORE, LEAST = f"const {(1.5).hex()}", f"const {(5e-324).hex()}"
ITSELF = {"attention": "linear", "causal": True, "context": None, "mean": False, "window": 1, "repeat": 1000}
#: Operations: what is not begun must be refused by this already.
FEW = 1e8


def squares(lines: list[str], count: int) -> list[str]:
    """These lines, and then the square of the last one, its square, and so on."""
    return [*lines, *(f"mul {i} {i}" for i in range(len(lines) - 1, len(lines) - 1 + count))]


def asked(report: Report) -> str:
    """What the first claim would take; it must be undecided for that reason."""
    assert report.result == "UNKNOWN", report
    said, why = outcome(report)
    assert said == "undecided"
    assert "--budget" in why or "--memory" in why, why
    return why


# Numbers without letters: a program of a few lines makes them longer than any memory


def test_squares_of_a_constant_are_not_begun() -> None:
    lines = squares([HALF_MORE], 60)
    assert "numbers" in asked(judged(weights(), descent(answer=program(lines, 60)), budget=FEW))


def test_a_power_of_two_that_no_shift_can_hold_is_not_begun() -> None:
    """x - x + 2^-1074 is a polynomial of one term, whose squares stay short until something is added to them."""
    lines = squares(["x 0", "sub 0 0", LEAST, "add 1 2"], 40)
    lines.append(f"add {len(lines) - 1} 0")
    assert "sums" in asked(judged(weights(), descent(answer=program(lines, len(lines) - 1)), budget=FEW))


def test_a_flag_that_no_number_can_hold_is_not_written_out() -> None:
    lines = squares([*INNER, "neg 6", "x 0", "sub 8 8", LEAST, "add 9 10"], 60)
    query = program(lines, 2, 3, 7, len(lines) - 1)
    asked(judged(weights(), descent(query=query), budget=FEW))


def test_prompts_are_not_run_through_a_program_that_has_no_end() -> None:
    """The numbers of steps differ, so that no identity is looked at, and prompts are tried at once."""
    lines = squares(["x 0", HALF_MORE, "add 0 1"], 60)
    assert "numbers" in asked(judged(weights(), descent(steps=2, answer=program(lines, 62)), budget=FEW))


def test_a_further_layer_in_a_loop_is_not_followed_without_end() -> None:
    """Every loop cubes a channel that holds a number: 3^1000 digits."""
    flag = np.eye(4)[None, :, 3:]
    tensors = {name.replace("readout", "1.readout"): a for name, a in weights().items()}
    tensors |= {f"1.attention.W_{name}": flag.copy() for name in "QKV"}
    tensors |= {"1.attention.W_O": flag.swapaxes(1, 2).copy()}
    tensors |= {"1.feedforward.0.weight": np.eye(4), "1.feedforward.0.bias": np.array([0, 0, 0, 0.3])}
    assert "numbers" in asked(judged(tensors, descent(), [LAYER, ITSELF], budget=FEW))


def test_lines_that_are_kept_are_counted_in_bytes() -> None:
    """Sums are cheap, and each of them is kept until the program ends."""
    lines = ["s 0", "s 1", "x 0", "x 1", "add 0 1", "add 4 2", "add 5 3", HALF_MORE, "add 6 7"]
    lines = squares(lines, 4)
    lines += [f"add {i} 7" for i in range(len(lines) - 1, len(lines) + 400)]
    report = judged(weights(), descent(answer=program(lines, len(lines) - 1)), memory=1e7)
    assert "--memory" in asked(report)


def test_a_difference_beyond_the_floats_is_a_refutation() -> None:
    """Not a machine that is unfit: the words give a power of two, the numbers that were compared are exact."""
    said, why = outcome(judged(weights(1e300), descent()))
    assert said == "refuted", why
    assert "the network gives 2^" in why or "the network gives -2^" in why


@pytest.mark.parametrize("engine", ["numpy", "both"])
def test_the_degree_of_what_cancels_is_not_counted_out(engine: str) -> None:
    """(x - x)^(2^8000) is 0, and a bound on its degree has no use for a lattice."""
    lines = [*INNER, "sub 2 2", *(f"mul {i} {i}" for i in range(7, 8007)), "add 6 8007"]
    report = judged(weights(), descent(answer=program(lines, 8008)), engine=engine)
    assert report.result == "VERIFIED", report.why
    assert report.claims[0].engine == "numpy"


# Verdicts about something else


def mesa(sign: float) -> dict[str, np.ndarray]:
    """Keys of one number, values of two: tokens [x, y0, y1, p0, p1, flag], the answer is written to p."""
    unit = np.eye(6)
    return {
        "attention.W_Q": sign * unit[None, :, :1],
        "attention.W_K": sign * unit[None, :, :1],
        "attention.W_V": unit[None, :, 1:3].copy(),
        "attention.W_O": unit[None, 3:5].copy(),
        "attention.ridge": np.ones(1),
        "readout.0.weight": unit[:, 3:5].copy(),
        "readout.0.bias": np.zeros(2),
    }


def solving() -> dict[str, object]:
    zero, one = f"const {(0.0).hex()}", f"const {(1.0).hex()}"
    return {
        "x": 1,
        "y": 2,
        "m": 2,
        "steps": 1,
        "start": [(0.0).hex()] * 2,
        "gather": "solve",
        "ridge": [(1.0).hex()],
        "logit": None,
        "term": program(["x 0", "y 0", "y 1"], 0, 1, 2),
        "step": program(["m 0", "m 1"], 0, 1),
        "answer": program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2"], 3, 4),
        "example": program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2", "y 0", "y 1", one], 2, 5, 6, 3, 4, 7),
        "query": program(["s 0", "s 1", "x 0", "mul 0 2", "mul 1 2", zero], 2, 5, 5, 3, 4, 5),
    }


@pytest.mark.parametrize(("sign", "said"), [(1.0, "proved"), (-1.0, "undecided")])
def test_the_same_function_by_other_keys_is_not_refuted(sign: float, said: str) -> None:
    """Keys and queries of the other sign: the identities fail, the answers are equal. Three numbers are a key and
    two values, or two keys and a value; a prompt that is run with the wrong ones would tell them apart."""
    layer = LAYER | {"attention": "mesa", "mean": False, "repeat": 1, "context": 5}
    found, why = outcome(judged(mesa(sign), solving(), [layer]))
    assert found == said, why
