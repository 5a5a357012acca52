"""The gradient step: the answer says what counts as the constructed layer."""

from __future__ import annotations

from typing import Any

import pytest

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import gradient_step


def seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "seed": seed} for row in rows for seed in range(5)]


@pytest.mark.parametrize(
    ("cosine", "loss", "answer"), [(0.995, 1.005, "yes"), (0.98, 1.005, "no"), (0.995, 1.02, "no")]
)
def test_the_answer_has_the_rule_that_it_is_judged_by(cosine, loss, answer) -> None:
    usual = {"d": 2, "examples": 4, "eta": 1.0, "ended_by": "plateau"}
    built = {**usual, "model": "built", "steps": 0, "loss": 1.0, "cosine": None}
    rows = seeds([built, {**usual, "model": "trained", "steps": 9, "loss": loss, "cosine": cosine}])
    found = judge(gradient_step, rows)
    assert found.answer == answer
    assert "(cosine of coefficients above 0.99, loss below 1.01 times its)" in found.says
