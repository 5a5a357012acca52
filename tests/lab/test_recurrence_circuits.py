"""Recurrences: a layer that is built for another order is another layer."""

from __future__ import annotations

from typing import Any

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import recurrence_circuits


def seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "seed": seed} for row in rows for seed in range(5)]


def test_the_layer_of_order_2_is_said_to_be_another_one() -> None:
    usual = {f"{kind}{name}": 0.5 for kind in ("error", "copied") for name in ("", "_beyond", "_order2")}
    usual |= {"first_copies": 0.2, "similar": -0.3, "ended_by": "plateau"}
    given = [{**usual, "model": model, "steps": steps} for model, steps in (("built", 0), ("trained", 9))]
    beyond, second = judge(recurrence_circuits, seeds(given)).findings[1:3]
    assert "another layer, compiled with order=2 for such series" in second
    assert "another layer" not in beyond
