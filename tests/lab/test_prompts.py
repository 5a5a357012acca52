"""Training on fresh tasks: the same weights for the same seed, a known minimum, no task seen twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onelayer.lab.prompts import cosine, fit, fresh, given, measure, numbers, start

torch.set_num_threads(1)


def draw(generator: torch.Generator) -> torch.Tensor:
    return torch.randn((32, 2), generator=generator)


def loss(weights: dict, tasks: torch.Tensor) -> torch.Tensor:
    """Smallest at w = (1, -2)."""
    return ((tasks @ (weights["w"] - torch.tensor([1.0, -2.0]))) ** 2).mean()


def trained(steps: int, seed: int = 0) -> dict:
    weights = start({"w": ((2,), 0.5)}, seed)
    fit(weights, loss, draw, steps, 0.05, seed)
    return weights


def test_a_known_minimum_is_found_and_repeated() -> None:
    weights = trained(300)
    np.testing.assert_allclose(numbers(weights["w"]), [1, -2], atol=1e-3)
    assert torch.equal(weights["w"], trained(300)["w"])
    assert not torch.equal(trained(3)["w"], trained(3, seed=1)["w"])


def test_tasks_that_measure_are_those_of_no_step() -> None:
    seen = []
    weights = start({"w": ((2,), 0.5)}, 0)

    def noted(generator: torch.Generator) -> torch.Tensor:
        seen.append(draw(generator))
        return seen[-1]

    fit(weights, loss, noted, 4, 0.1, 0)
    tasks = fresh(draw, 0)
    assert len({float(one[0, 0]) for one in (*seen, tasks)}) == 5
    assert measure(given({"w": np.array([1.0, -2.0])}), loss, tasks) == 0
    assert measure(given({"w": np.zeros(2)}), loss, tasks) > 1


def test_a_long_gradient_is_cut() -> None:
    """Adam does not see the size of a gradient, but one task that blows up would drown all others in its means."""
    weights = start({"w": ((2,), 0.5)}, 0)
    lengths = []

    def huge(held: dict, tasks: torch.Tensor) -> torch.Tensor:
        held["w"].register_hook(lambda gradient: lengths.append(float(gradient.norm())))
        return 1e6 * loss(held, tasks)

    fit(weights, huge, draw, 1, 0.1, 0)
    assert lengths[0] > 1e3
    assert float(weights["w"].grad.norm()) == pytest.approx(1.0, rel=1e-3)


def test_the_cosine_does_not_see_size() -> None:
    p = np.arange(6.0).reshape(2, 3)
    assert cosine(p, 3 * p) == pytest.approx(1)
    assert cosine(p, -p) == pytest.approx(-1)
