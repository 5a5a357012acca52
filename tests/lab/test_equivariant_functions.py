"""Twins of functions are compared seed by seed with models no larger, and what is left out is counted."""

from __future__ import annotations

from typing import Any

import pytest

from onelayer.lab.experiments import equivariant_functions as experiment
from onelayer.lab.registry import stands_on


def built(target: str, seed: int, cells: int, error: float) -> dict[str, Any]:
    row = {"how": "quantise", "target": target, "family": "polynomial", "K": 2, "n": 2, "seed": seed, "refused": ""}
    row |= {"asked": 0.1, "size": None, "steps": 0, "parameters": 10 * cells, "bound": 1.1 * error}
    return row | {"measured": error, "cells": cells, "levels": round(cells**0.5)}


def twin(target: str, seed: int, size: int, error: float, ended_by: str = "plateau") -> dict[str, Any]:
    row = built(target, seed, 1, error) | {"how": "trained", "size": size, "steps": 600, "parameters": size}
    return row | {"cells": None, "levels": None, "bound": None, "ended_by": ended_by}


def rows_of(power: float = -0.5) -> list[dict[str, Any]]:
    """Two targets, one ten times as hard; each seed has another error, common to both kinds of models."""
    rows = []
    for target, hard in (("polynomial:2", 1.0), ("polynomial:3", 10.0)):
        for seed in range(5):
            own = hard * 2.0**seed
            rows += [built(target, seed, cells, own * cells**power) for cells in (16, 64, 256)]
            rows.append(twin(target, seed, 700, 3 * own * 64**power))
    return rows


def test_twins_are_compared_with_models_no_larger_of_their_own_target_and_seed() -> None:
    """Errors spread by a factor of 160; all ratios are 3, and models of 2,560 parameters are no partners."""
    found, without = experiment.compare(rows_of(), 2, 700)
    assert found.found.mean == pytest.approx(3)
    assert found.found.factor == pytest.approx(1)
    assert (found.found.count, found.missing, without) == (5, 0, 0)
    small = [row for row in rows_of() if row["how"] == "trained" or row["seed"] < 2 or row["cells"] > 100]
    found, without = experiment.compare(small, 2, 700)
    assert (found.found.count, found.missing, without) == (2, 3, 6)
    (told,) = (text for text in experiment.verdict(small).findings if text.startswith("trained"))
    assert "times that of the partner, 2 seeds; 6 of 10 have no partner)" in told
    one = [row for row in small if row["how"] == "trained" or row["seed"] == 0 or row["cells"] > 100]
    assert any("(3 times that of the partner, 1 seed; 8 of 10 have" in t for t in experiment.verdict(one).findings)
    none = [{**row, "parameters": 10**6} if row["how"] != "trained" else row for row in rows_of()]
    (told,) = (text for text in experiment.verdict(none).findings if text.startswith("trained"))
    assert "no constructed model is so small" in told
    assert "nan" not in told


@pytest.mark.parametrize(("power", "answer"), [(-0.5, "yes"), (-0.4, "no")])
def test_powers_that_agree_nowhere_are_a_no(power: float, answer: str) -> None:
    assert experiment.verdict(rows_of(power)).answer == answer


def test_a_power_whose_interval_leaves_the_band_is_not_known() -> None:
    """Powers of two targets on both sides of the theory's: their mean is right, and says little."""
    rows = [row for row in rows_of() if row["how"] != "trained"]
    for row in rows:
        row["measured"] *= row["cells"] ** (0.05 if row["target"] == "polynomial:2" else -0.05)
    found = experiment.verdict(rows)
    assert found.answer == "open"
    assert found.says.startswith("In 0 of 1 settings")
    assert "That is not known, as the interval reaches out of it, for quantise, n = 2." in found.says


def test_without_sizes_enough_nothing_is_answered_and_targets_are_named() -> None:
    few = [row for row in rows_of() if row["cells"] != 64]
    found = experiment.verdict(few)
    assert found.answer == "open"
    assert any("no power of polynomial:2, polynomial:3" in text for text in found.findings)


def test_models_without_an_error_are_counted() -> None:
    rows = rows_of()
    rows[0] |= {"measured": 0.0, "bound": None}
    assert any(text.startswith("1 of 40 models have no error") for text in experiment.verdict(rows).findings)


def test_twins_say_what_ended_them() -> None:
    rows = [row | ({"ended_by": "budget"} if row["how"] == "trained" else {}) for row in rows_of()]
    assert any(
        "Ended by: budget 10" in text and "more may do better" in text for text in experiment.verdict(rows).findings
    )


def test_rows_of_twins_do_not_stand_on_the_compiler() -> None:
    seen = stands_on(experiment.__name__, experiment.computes({"how": "trained"}).__name__)
    assert "onelayer.lab.functions" in seen
    assert "onelayer.compile.approximate" not in seen
