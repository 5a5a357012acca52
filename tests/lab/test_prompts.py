"""Training on fresh tasks: the same weights for the same seed, a known minimum, no task seen twice."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from onelayer.lab import endings
from onelayer.lab.prompts import HELD, POINTS, _Candidate, cosine, fresh, given, measure, numbers, search, start

torch.set_num_threads(1)


def draw(generator: torch.Generator) -> torch.Tensor:
    return torch.randn((32, 2), generator=generator)


def loss(weights: dict, tasks: torch.Tensor) -> torch.Tensor:
    """Smallest at w = (1, -2)."""
    return ((tasks @ (weights["w"] - torch.tensor([1.0, -2.0]))) ** 2).mean()


def trained(steps: int, seed: int = 0) -> dict:
    weights = start({"w": ((2,), 0.5)}, seed)
    search(weights, loss, draw, steps, seed)
    return weights


def test_a_known_minimum_is_found_and_repeated() -> None:
    weights = trained(600)
    np.testing.assert_allclose(numbers(weights["w"]), [1, -2], atol=1e-2)
    assert torch.equal(weights["w"], trained(600)["w"])
    assert not torch.equal(trained(3)["w"], trained(3, seed=1)["w"])


def test_tasks_that_measure_are_those_of_no_step() -> None:
    seen = []
    weights = start({"w": ((2,), 0.5)}, 0)

    def noted(generator: torch.Generator) -> torch.Tensor:
        seen.append(draw(generator))
        return seen[-1]

    search(weights, loss, noted, 4, 0, rates=(0.1,), optimisers=("adam",))
    tasks = fresh(draw, 0)
    assert len({float(one[0, 0]) for one in (*seen, tasks)}) == HELD + 4 + 1
    assert measure(given({"w": np.array([1.0, -2.0])}), loss, tasks) == 0
    assert measure(given({"w": np.zeros(2)}), loss, tasks) > 1


def test_a_long_gradient_is_cut() -> None:
    """Adam does not see the size of a gradient, but one task that blows up would drown all others in its means."""
    weights = start({"w": ((2,), 0.5)}, 0)
    lengths = []

    def huge(held: dict, tasks: torch.Tensor) -> torch.Tensor:
        held["w"].register_hook(lambda gradient: lengths.append(float(gradient.norm())))
        return 1e6 * loss(held, tasks)

    one = _Candidate(weights, 0.1, "adam")
    one.step(huge, draw(torch.Generator().manual_seed(0)))
    assert lengths[0] > 1e3
    assert float(one.weights["w"].grad.norm()) == pytest.approx(1.0, rel=1e-3)


def test_the_cosine_does_not_see_size() -> None:
    p = np.arange(6.0).reshape(2, 3)
    assert cosine(p, 3 * p) == pytest.approx(1)
    assert cosine(p, -p) == pytest.approx(-1)


def noisy(weights: dict, tasks: torch.Tensor) -> torch.Tensor:
    """A loss that cannot fall below 1."""
    return loss(weights, tasks) + 1


def test_a_run_says_what_ended_it_and_choosing_costs_one_run() -> None:
    flat = search(start({"w": ((2,), 0.5)}, 0), noisy, draw, 5000, 0)
    assert flat.ended_by == "plateau"
    assert flat.steps < 5000
    assert flat.loss == pytest.approx(1, abs=0.01)
    short = search(start({"w": ((2,), 0.5)}, 0), loss, draw, 40, 0)
    assert (short.ended_by, short.steps) == ("budget", 40)
    assert short.rate == 3e-2  # in so few steps the largest goes furthest
    assert 40 < short.all_steps <= 2 * 40
    curve = json.loads(flat.row["curve"])
    assert len(curve) <= POINTS
    assert curve[0][0] == 0
    assert curve[-1][1] < curve[0][1]


def test_what_is_left_above_a_floor_is_still_learned() -> None:
    """A loss of at least 1, whose last twentieth falls by half a hundredth in every wait, is not at its end."""
    weights = {"w": torch.zeros(2, requires_grad=True)}

    def slow(t: dict, _: object) -> torch.Tensor:
        first, last = t["w"]
        return 1 + (1 - 20 * first).square() + 0.05 * (1 - last).abs()

    run = search(weights, slow, lambda _: None, 3000, 0, rates=(1e-3,), optimisers=("adam",))
    assert run.ended_by == "plateau"
    assert run.loss < 1.002


def test_weights_that_are_kept_are_not_only_lucky() -> None:
    """Answers have noise of variance 1: with few tasks that judge, the best count is the best for their noise."""

    def draw_noisy(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn((16, 8), generator=generator)
        return x, x.sum(1) + torch.randn(16, generator=generator)

    def squares(t: dict, tasks: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return (tasks[0] @ t["w"] - tasks[1]).square().mean()

    off = []
    for seed in range(8):
        weights = start({"w": ((8,), 0.3)}, seed)
        search(weights, squares, draw_noisy, 2000, seed, rates=(0.03,), optimisers=("adam",))
        off.append(((numbers(weights["w"]) - 1) ** 2).sum())
    assert np.mean(off) < 0.016


def test_what_cannot_be_learned_is_no_plateau() -> None:
    """A loss that never fell may fall later: that run is not at its end."""
    constant = search(start({"w": ((2,), 0.5)}, 0), lambda t, _: 0 * t["w"].sum() + 1, draw, 1500, 0)
    assert (constant.ended_by, constant.steps) == ("budget", 1500)


def test_only_runs_at_their_end_say_no() -> None:
    rows = [{"ended_by": "plateau"}, {"ended_by": "budget"}]
    assert endings.answer(rows, [True, True]) == ("yes", "")
    assert endings.answer(rows[:1], [False]) == ("no", "")
    assert endings.answer(rows, [False, False])[0] == "open"
    assert endings.answer(rows, [False, True]) == ("partly", "")
    answer, reason = endings.answer(rows, [True, False])
    assert answer == "open"
    assert "1 was still learning" in reason
    assert endings.learning({})
