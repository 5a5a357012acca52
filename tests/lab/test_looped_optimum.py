"""Looped attention: what counts as the best multiple of the identity is said."""

from __future__ import annotations

from typing import Any

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import looped_optimum


def seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "seed": seed} for row in rows for seed in range(5)]


def test_the_answer_says_its_margins_and_one_loop_is_no_loops() -> None:
    usual = {"d": 2, "examples": 4, "start": "small", "loss": 0.5, "more_loops": 0.5, "symmetric": 0.5}
    usual |= {"built": 1.0, "a": 0.5, "trained_a": 0.5, "off": 0.01, "skew": 0.0, "u": 0.0, "ended_by": "plateau"}
    found = judge(looped_optimum, seeds([{**usual, "loops": loops} for loops in (1, 3)]))
    assert found.answer == "yes"
    assert "(loss within 5% or below) in 10 of 10 runs" in found.says
    assert "are it (A within 10%, |u| below 0.05) in 10 runs." in found.says
    assert any(text.startswith("4 examples, 1 loop: ") for text in found.findings)
    assert any(text.startswith("4 examples, 3 loops: ") for text in found.findings)
