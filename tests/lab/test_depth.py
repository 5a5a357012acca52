"""One constructed layer against depths: pair by pair, with equal parameters, and fair to runs that were cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onelayer.lab.experiments import depth
from onelayer.lab.registry import stands_on

torch.set_num_threads(1)


def row(model: str, seed: int, error: float, **more: Any) -> dict[str, Any]:
    said = {"task": "polynomial:3", "model": model, "layers": 1, "size": 2, "d": 1, "seed": seed, "accuracy": None}
    said |= {"parameters": 767, "error": error, "mean_error": error / 3, "ended_by": "plateau"}
    return said | more


def rows_of(error: float, **more: Any) -> list[dict[str, Any]]:
    """One constructed model for all seeds, and twins of about this error."""
    built = [row("constructed", seed, 0.02) for seed in range(5)]
    return built + [row("trained", seed, error * (1 + 0.1 * seed), **more) for seed in range(5)]


def test_a_model_that_is_the_same_for_all_seeds_has_no_interval() -> None:
    found = depth.verdict(rows_of(0.2)).findings[0]
    assert "constructed 0.02 (the same for all seeds) (767 (the same for all seeds) parameters)" in found
    assert "trained over constructed" in found


@pytest.mark.parametrize(
    ("error", "ended_by", "answer"),
    [
        (0.2, "plateau", "yes"),
        (0.2, "budget", "open"),
        (0.001, "plateau", "no"),
        (0.001, "budget", "no"),
        (0.017, "plateau", "open"),
    ],
)
def test_a_twin_that_was_cut_may_be_better_and_is_never_worse(error: float, ended_by: str, answer: str) -> None:
    assert depth.verdict(rows_of(error, ended_by=ended_by)).answer == answer


@pytest.mark.parametrize(
    ("error", "mean", "answer"),
    [(0.2, 0.2, "yes"), (0.2, 0.001, "partly"), (0.001, 0.2, "partly"), (0.001, 0.0001, "no")],
)
def test_the_answer_takes_the_largest_error_and_the_mean_one(error: float, mean: float, answer: str) -> None:
    rows = rows_of(error)
    for each in rows:
        if each["model"] == "trained":
            each["mean_error"] = mean * (1 + 0.1 * each["seed"])
    found = depth.verdict(rows)
    assert found.answer == answer
    better, worse = found.says.split(" and clearly worse ")
    assert better.endswith(f"in {int(error > 0.02)} of 1 by largest error, {int(mean > 0.01)} of 1 by mean error")
    assert worse == f"in {int(error < 0.02)} of 1 by largest error, {int(mean < 0.01)} of 1 by mean error."


def test_a_mean_error_that_is_as_good_as_the_twins_is_no_yes() -> None:
    rows = rows_of(0.2)
    for each in rows:
        if each["model"] == "trained":
            each["mean_error"] = 0.02 / 3 * (1 + 0.1 * (each["seed"] - 2))
    assert depth.verdict(rows).answer == "partly"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ({"worse"}, "no"),
        ({"worse", "cut"}, "open"),
        ({"worse", "neither", "cut"}, "open"),
        ({"worse", "equal"}, "partly"),
        ({"better", "cut"}, "partly"),
        ({"better", "equal"}, "yes"),
        ({"neither", "cut"}, "open"),
    ],
)
def test_only_what_speaks_for_the_constructed_layer_makes_a_part_of_it(words: set[str], answer: str) -> None:
    assert depth._answer(words) == answer


def test_twins_that_recall_all_as_well_are_exactly_as_good() -> None:
    rows = [{**each, "task": "memory", "accuracy": 1.0} for each in rows_of(0.2)]
    found = depth.verdict(rows)
    assert found.answer == "yes"
    assert "exactly as good, seed by seed, in 1 of 1 by accuracy." in found.says
    cut = [{**each, "ended_by": "budget"} for each in rows]
    assert depth.verdict(cut).answer == "open"


def test_an_error_of_zero_has_no_ratio_and_is_counted() -> None:
    rows = rows_of(0.2)
    rows[-1] |= {"error": 0.0}
    assert "(1 left out)" in depth.verdict(rows).findings[0]


def test_twins_of_other_sizes_are_counted() -> None:
    rows = rows_of(0.2)
    rows[-1] |= {"parameters": 720}
    said = [text for text in depth.verdict(rows).findings if text.startswith("Twins have")]
    assert said == [
        "Twins have 0.939 to 1.000 times the parameters of the constructed layer; 1 of 5 are off by more than 2%."
    ]


def test_twins_have_the_parameters_that_the_constructed_layer_has() -> None:
    case = {"task": "polynomial:3", "model": "trained", "layers": 4, "size": 2, "d": 1, "steps": 1}
    (twin,) = depth.run(case, 0)
    assert abs(twin["parameters"] / depth.FUNCTIONS["polynomial:3", 2, 1] - 1) <= depth.EQUAL
    (built,) = depth.run({**case, "task": "memory", "model": "constructed", "size": 24, "steps": 0}, 0)
    (twin,) = depth.run({**case, "task": "memory", "size": 24}, 0)
    assert abs(twin["parameters"] / built["parameters"] - 1) <= depth.EQUAL


def test_the_number_of_parameters_is_that_of_what_is_compiled() -> None:
    case = {"task": "standardise", "model": "constructed", "layers": 1, "size": 2, "d": 1, "steps": 0}
    first, second = (depth.run(case, seed) for seed in (0, 1))
    assert first == second
    assert first[0]["parameters"] == depth.FUNCTIONS["standardise", 2, 1]


def test_every_function_of_the_presets_has_its_number_of_parameters() -> None:
    for preset in ("quick", "full"):
        for case in depth.cases(preset):  # type: ignore[arg-type]
            assert case["task"] == "memory" or (case["task"], case["size"], case["d"]) in depth.FUNCTIONS


def test_rows_of_trained_functions_do_not_stand_on_the_compiler() -> None:
    name = depth.computes({"task": "standardise", "model": "trained"}).__name__
    seen = stands_on(depth.__name__, name)
    assert "onelayer.lab.functions" in seen
    assert not {"onelayer.compile.approximate", "onelayer.compile.memorize"} & seen
