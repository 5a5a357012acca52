"""Both edges of the window of temperatures, derived, against what softmax heads do."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from onelayer.contexts.boltzmann import boltzmann
from onelayer.lab import temperatures
from onelayer.lab.trained import Net, Shape, Task, framework


def smallest_gap(levels: np.ndarray, sets: np.ndarray, beta: float) -> float:
    values = np.sort(boltzmann(beta * levels[sets]) / beta)
    return float(np.diff(values).min() / np.ptp(values))


@pytest.mark.parametrize(("count", "n"), [(6, 3), (8, 3), (7, 2)])
@pytest.mark.parametrize("bits", [14, 20])
def test_sets_are_told_apart_between_the_edges_and_not_far_outside(count: int, n: int, bits: int) -> None:
    levels, sets = np.linspace(0, 1, count), np.array(list(combinations(range(count), n)))
    hot, cold = temperatures.edges(levels, sets, bits)
    assert 0 < hot < cold
    assert smallest_gap(levels, sets, 4 * hot) > 2.0**-bits > smallest_gap(levels, sets, hot / 4)
    assert smallest_gap(levels, sets, 0.7 * cold) > 2.0**-bits > smallest_gap(levels, sets, 1.5 * cold)


def test_other_means_need_no_temperature() -> None:
    levels = np.array([0.0, 0.1, 0.31, 0.72, 1.0])
    sets = np.array(list(combinations(range(5), 2)))
    hot, _ = temperatures.edges(levels, sets, 20)
    assert hot == 0
    assert smallest_gap(levels, sets, 1e-4) > 2.0**-20


def test_the_temperature_of_a_head_is_the_slope_of_its_logits() -> None:
    torch = framework()
    levels = np.array([0.0, 0.5, 1.0])
    net = Net(Shape(6), Task(levels[None, :, None], np.zeros(1, int), scope="sequence"), 3, "float64")
    h = net.embed(torch.from_numpy(levels[None, :, None]))
    q, k = (h @ net.factor(0, name)[0] for name in ("W_Q", "W_K"))
    logits = (q @ k.transpose(-1, -2))[0].detach().numpy() / 6**0.5
    slopes = logits[:, 2] - logits[:, 0]
    assert temperatures.of_head(net, levels) == pytest.approx(np.abs(slopes).mean(), rel=1e-9)
