"""Loops whose numbers are trained: the same as the compiled networks, and their best is the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from onelayer.lab import find, loops, prompts
from onelayer.lab.experiment import judge
from onelayer.lab.experiments import learned_loops
from onelayer.lab.registry import stands_on
from onelayer.learners.registry import LEARNERS

torch.set_num_threads(1)

#: Which experiment says whether training finds a learner. A learner that is added needs one.
ANSWERS = {
    "gd": "gradient-step",
    "preconditioned": "learned-loops",
    "whitening": "learned-loops",
    "nesterov": "learned-loops",
    "logistic": "learned-loops",
    "ridge": "in-context-statistics",
    "lasso": "in-context-statistics",
    "selection": "in-context-statistics",
    "mesa": "one-step-or-mesa",
    "causal_step": "one-step-or-mesa",
    "recurrence": "recurrence-circuits",
    "kernel": "rank-rate",
}


def test_every_learner_is_asked_whether_training_finds_it() -> None:
    assert ANSWERS.keys() == LEARNERS.keys()
    assert all(find(name).QUESTION for name in set(ANSWERS.values()))
    assert {name for name, answer in ANSWERS.items() if answer == "learned-loops"} == set(learned_loops.KINDS)
    assert set(learned_loops.KINDS) == loops.LOOPS.keys()


@pytest.mark.parametrize("name", ["gradient-step", "learned-loops", "recurrence-circuits", "in-context-statistics"])
def test_rows_of_trained_models_do_not_stand_on_the_compiler(name) -> None:
    experiment = find(name)
    for case in experiment.cases("full"):
        start = experiment.computes(case).__name__
        found = stands_on(experiment.__name__, start)
        assert ("onelayer.compile.learner" in found) == (case["model"] == "built")
        assert any(each.startswith("onelayer_checker") for each in found) == (case["model"] == "built")


NUMBERS = {
    "nesterov": {"eta": 1.7, "a": 1.5, "b": 0.53},
    "preconditioned": {"A": 0.5 * np.eye(loops.d) + 0.1},
    "whitening": {"eta": 2.0, "gamma": 0.3},
    "logistic": {"eta": 5.0, "shrink": 0.04},
}


@pytest.mark.parametrize("name", learned_loops.KINDS)
def test_what_is_trained_is_the_compiled_network(name) -> None:
    numbers = {key: np.asarray(value) for key, value in NUMBERS[name].items()}
    given = tuple(part.double() for part in prompts.fresh(loops.tasks(name, 64), 0))
    found = loops.loss_of(name, 3)({key: torch.tensor(value) for key, value in numbers.items()}, given)
    model = learned_loops.compiled(name, 3, numbers)
    assert learned_loops._error(model, given) == pytest.approx(float(found), rel=1e-6)


@pytest.mark.parametrize("name", learned_loops.KINDS)
def test_no_numbers_nearby_are_better_than_those_that_are_settled_on(name) -> None:
    given = tuple(part.double() for part in prompts.fresh(loops.tasks(name, 256), 0))
    loss, found = loops.loss_of(name, 5), loops.settle(name, 5, given)
    least = float(loss({key: torch.tensor(value) for key, value in found.items()}, given))
    for key in found:
        for factor in (0.9, 0.99, 1.01, 1.1):
            moved = {each: torch.tensor(value * (factor if each == key else 1)) for each, value in found.items()}
            assert float(loss(moved, given)) > least


def test_tasks_have_the_variances_that_are_said_and_labels_follow_their_probability() -> None:
    x, y, w, _ = (part.numpy() for part in prompts.fresh(loops.tasks("nesterov", 4000), 0))
    np.testing.assert_allclose(x.var(axis=(0, 1)), loops.VARIANCES, rtol=0.03)
    assert (y - np.einsum("bnd,bd->bn", x, w)).std() == pytest.approx(loops.NOISE, rel=0.02)
    x, y, w, _ = (part.numpy() for part in prompts.fresh(loops.tasks("logistic", 4000), 0))
    p = 1 / (1 + np.exp(-np.einsum("bnd,bd->bn", x, w)))
    likely = (p > 0.7) & (p < 0.8)
    assert y[likely].mean() == pytest.approx(p[likely].mean(), abs=0.02)


def rows(ratio: float, number: float, ended_by: str = "plateau") -> list[dict[str, Any]]:
    found = []
    for seed in range(5):
        usual = {"learner": "whitening", "loops": 5, "seed": seed}
        found.append({**usual, "model": "built", "loss": 0.1, "default": 0.5, "numbers": "[2.0, 1.0]"})
        twin = {"loss": 0.1 * ratio * (1 + 0.001 * seed), "default": None, "numbers": f"[{number}, 1.0]"}
        found.append({**usual, "model": "trained", **twin, "ended_by": ended_by})
    return found


@pytest.mark.parametrize(
    ("ratio", "number", "ended_by", "answer"),
    [
        (1.01, 2.01, "plateau", "yes"),
        (1.01, 3.0, "plateau", "partly"),
        (1.2, 2.01, "plateau", "no"),
        (1.2, 2.01, "budget", "open"),
    ],
)
def test_loops_are_judged_by_their_loss_and_their_numbers(ratio, number, ended_by, answer) -> None:
    found = judge(learned_loops, rows(ratio, number, ended_by))
    assert found.answer == answer
    assert "cost 5 (" in found.findings[0]
    assert judge(learned_loops, [row for row in rows(1.0, 2.0) if row["model"] == "built"]).answer == "open"


@pytest.mark.parametrize(("ended_by", "answer"), [("plateau", "no"), ("budget", "open")])
def test_one_loop_that_is_as_good_by_chance_does_not_make_an_answer(ended_by, answer) -> None:
    """As good, with other numbers, in one run of five: the rest say no, or may still come to it."""
    found = rows(1.2, 3.0, ended_by)
    found[1]["loss"] = 0.1
    says = judge(learned_loops, found)
    assert says.answer == answer
    assert "in 1 of 5 runs, in all runs of 0 of 1 loops" in says.says
    assert judge(learned_loops, rows(1.0, 3.0, ended_by)).answer == "partly"


def test_the_part_of_a_matrix_that_is_not_symmetric() -> None:
    assert learned_loops.skew("[1, 0, 0, 1]") == 0
    assert learned_loops.skew("[0, 1, -1, 0]") == pytest.approx(1)


def test_matrices_that_miss_only_for_want_of_symmetry_are_said() -> None:
    found = []
    for seed in range(5):
        usual = {"learner": "preconditioned", "loops": 5, "seed": seed, "loss": 0.1, "ended_by": "plateau"}
        found.append({**usual, "model": "built", "default": 0.5, "numbers": "[1.0, 0.0, 0.0, 1.0]"})
        twin = "[1.0, 0.3, -0.3, 1.0]" if seed else "[2.0, 0.3, -0.3, 2.0]"
        found.append({**usual, "model": "trained", "default": None, "numbers": twin})
    says = judge(learned_loops, found).says
    assert "further off in runs of: preconditioned 5." in says
    assert "its symmetric part is within 10% in 4 of these 5." in says
    assert "antisymmetric" not in judge(learned_loops, rows(1.0, 3.0)).says
    assert "further off" not in judge(learned_loops, rows(1.0, 2.01)).says
