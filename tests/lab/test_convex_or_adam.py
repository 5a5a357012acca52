"""Adam against the convex fit: a small loss alone is not the layer that made the answers."""

from __future__ import annotations

from typing import Any

import pytest

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import convex_or_adam


def seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "seed": seed} for row in rows for seed in range(5)]


@pytest.mark.parametrize(
    ("loss", "apart", "answer", "counts"),
    [
        (1e-9, 0.01, "yes", "5 of 5 runs; 5 of these have"),
        (1e-9, 0.2, "no", "5 of 5 runs; 0 of these have"),
        (1e-2, 0.01, "no", "0 of 5 runs; 0 of these have"),
    ],
)
def test_it_takes_the_loss_and_the_coefficients(loss, apart, answer, counts) -> None:
    usual = {"scale": 1.0, "heads": 2, "least": 0.01, "convex": 1e-30, "convex_apart": 1e-9}
    rows = seeds([{**usual, "loss": loss, "apart": apart, "ended_by": "plateau"}])
    found = judge(convex_or_adam, rows)
    assert found.answer == answer
    assert counts in found.says
