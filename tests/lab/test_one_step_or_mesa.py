"""Linear attention and mesa layers: only runs that were asked tell why something was not found."""

from __future__ import annotations

from typing import Any

import pytest

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import one_step_or_mesa


def rows_of(cosine: float, mesa_loss: float, **ended: str) -> list[dict[str, Any]]:
    """Five seeds of all kinds; ``ended`` says of a kind what ended its runs."""
    usual = {"n": 2, "noise": 0.1, "step": 1.0, "mesa": 0.5, "zero": 2.0}
    return [
        {**usual, "model": kind, "seed": seed, "ended_by": ended.get(kind, "plateau")}
        | {"loss": mesa_loss if kind == "mesa" else 1.0, "cosine": cosine if kind == "linear" else None}
        for kind in one_step_or_mesa.KINDS
        for seed in range(5)
    ]


@pytest.mark.parametrize(
    ("cosine", "mesa", "ended", "answer"),
    [
        (0.99, 0.5, {"mesa": "budget", "linear": "budget"}, "yes"),
        (0.9, 0.5, {"mesa": "budget"}, "partly"),
        (0.9, 0.5, {"linear": "budget"}, "open"),
        (0.99, 1.5, {}, "partly"),
        (0.99, 1.5, {"mesa": "budget"}, "open"),
        (0.9, 1.5, {"softmax": "budget"}, "no"),
        (0.9, 1.5, {"mesa": "budget"}, "open"),
    ],
)
def test_only_runs_that_speak_against_it_leave_the_answer_open(cosine, mesa, ended, answer) -> None:
    assert judge(one_step_or_mesa, rows_of(cosine, mesa, **ended)).answer == answer


def test_the_reason_counts_the_runs_that_were_asked() -> None:
    """Mesa layers that are better and still learning are no reason; linear ones without the coefficients are."""
    says = judge(one_step_or_mesa, rows_of(0.9, 0.5, mesa="budget")).says
    assert "in 0 of 5 (0 to 43%) runs, and all 5 without had stopped learning; a trained" in says
    assert "still learning" not in says
    says = judge(one_step_or_mesa, rows_of(0.9, 0.5, linear="budget")).says
    assert "and 5 of the 5 without were still learning" in says
    assert "5 of 5 mesa layers were still" in judge(one_step_or_mesa, rows_of(0.9, 1.5, mesa="budget")).says
