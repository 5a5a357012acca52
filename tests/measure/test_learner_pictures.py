"""Every learner can be drawn; the bound that is drawn is the claim at the last loop."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.measure.learner_pictures import answers_by_loop, bounds_by_loop, prompt, states_by_loop
from tests.learners.test_learners import CASES, made


@pytest.mark.parametrize("case", CASES)
def test_every_learner_is_drawn(case: str) -> None:
    figure = made(case).plot()
    assert len(figure.axes) == (1 if case in ("mesa", "kernel", "causal_step", "recurrence") else 2)
    assert all(len(axes.lines) >= 2 for axes in figure.axes[:1])


def test_the_state_is_that_which_answers() -> None:
    learner = made("gd").interface
    given = prompt(learner)
    states = states_by_loop(learner, given)
    assert states.shape == (learner.algorithm.steps + 1, 3)
    np.testing.assert_allclose(
        given[2] @ states[-1], made("gd").predict(given[0], given[1][:, 0], given[2]), atol=1e-12
    )


def test_the_bound_beside_the_loops_is_the_claim_at_the_last() -> None:
    model = made("ridge, accelerated")
    at, answers = answers_by_loop(model, prompt(model.interface))
    bounds = bounds_by_loop(model, at)
    assert at[-1] == model.transformer.repeat
    assert bounds is not None
    np.testing.assert_allclose(bounds[-1], model.error_bound)
    limit = answers[-1]
    assert (np.abs(answers - limit).max(axis=1) <= bounds + model.error_bound).all()
    assert bounds_by_loop(made("gd"), [1]) is None
