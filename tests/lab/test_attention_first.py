"""What rows of attention first say: falls are compared seed by seed, and no measured error may pass its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer.lab.experiment import Verdict
from onelayer.lab.experiments import attention_first

#: Errors of a seed with few and with many heads, by how much they spread over seeds.
SPREAD = (0.0, 0.05, -0.05, 0.1, -0.1)


def judged(few: float, many: float, noise: float = 0.0, **more: Any) -> Verdict:
    """Two layers of one code on five draws of points, which they share; ``noise`` is what they do not share."""
    usual = {"cells": 2, "decoded": 0.9, "proved": None, "ideal": 0.1, "difference_alone": 0.4, "worse": 0.3}
    rows = []
    for seed, spread in enumerate(SPREAD):
        for heads, error in ((245, few), (737, many)):
            own = noise * (-1) ** seed if heads == 737 else 0.0
            found = {"steepness": heads, "heads": heads, "seed": seed, "error": error * (1 + spread + own)}
            rows.append({**usual, **found, **more})
    return attention_first.verdict(rows)


@pytest.mark.parametrize(
    ("many", "noise", "answer", "falls"),
    [(0.25, 0.0, "yes", 1), (0.29, 0.0, "yes", 1), (0.29, 0.2, "partly", 0), (0.31, 0.0, "partly", 0)],
)
def test_errors_fall_if_those_of_the_same_points_do(many: float, noise: float, answer: str, falls: int) -> None:
    found = judged(0.3, many, noise)
    assert found.answer == answer
    assert f"in {falls} of 1 codes" in found.says


def test_what_is_no_better_than_the_difference_alone_is_no_yes() -> None:
    assert judged(0.5, 0.4).answer == "partly"
    assert judged(0.5, 0.5).answer == "open"


def test_a_measured_error_above_its_proved_bound_is_said_loudly() -> None:
    fine = judged(0.3, 0.25, worse=0.3, proved=0.35)
    assert fine.answer == "yes"
    assert "ABOVE" not in " ".join((fine.says, *fine.findings))
    broken = judged(0.3, 0.25, worse=0.36, proved=0.35)
    assert broken.answer == "open"
    assert broken.says.startswith("Measured errors are ABOVE the proved bound for 2 cells with 245 heads, 2 cells")
    told = [text for text in broken.findings if "in 5 of 5 draws of points it is above that" in text]
    assert len(told) == 2
    assert all("ABOVE the proved bound, more than chance explains." in text for text in told)


def test_a_bound_that_is_attained_is_not_broken_by_chance() -> None:
    """Draws about the bound itself, their mean a little above it; and draws that are clearly above it."""
    rng = np.random.default_rng(0)
    broken = []
    for _ in range(100):
        draws = 0.35 * (1 + 0.01 * rng.standard_normal(5))
        said, found = attention_first._against_bound([{"worse": worse, "proved": 0.35} for worse in draws])
        higher = int((draws > 0.35).sum())
        assert ("as chance explains" in said) == (higher > 0 and not found)
        broken.append(found)
    assert sum(broken) <= 2
    clearly = 0.38 * (1 + 0.01 * rng.standard_normal(5))
    assert attention_first._against_bound([{"worse": worse, "proved": 0.35} for worse in clearly])[1]


def test_the_errors_that_are_said_divide() -> None:
    """Errors that spread widely: their geometric mean, not the arithmetic one, is the ratio times the other."""
    usual: dict[str, Any] = {
        "cells": 2,
        "decoded": 0.9,
        "proved": None,
        "ideal": 0.1,
        "difference_alone": 0.4,
        "worse": 0.3,
    }
    few: list[dict[str, Any]] = [
        {**usual, "steepness": 20, "heads": 245, "seed": s, "error": 0.3 * 2.0 ** (s % 3)} for s in range(6)
    ]
    many = [{**row, "steepness": 80, "heads": 737, "error": row["error"] / 3} for row in few]
    said = attention_first.verdict(few + many).says
    assert f"for {attention_first.TARGET}" in said
    assert "to 0.2, which is 0.5 (" in said
    assert "alone leaves, 0.4. At best they are 2 to 2 times" in said
