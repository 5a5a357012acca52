"""Heads that were trained from several starts: what is said of them follows from where they end."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from onelayer.contexts.boltzmann import boltzmann
from onelayer.lab import find
from onelayer.lab.ended_temperatures import describe_trained, draw_trained, say_where_apart, say_where_they_end
from onelayer.lab.experiment import Row
from onelayer.lab.experiments import softmax_and_boltzmann
from onelayer.lab.pictures import figure
from onelayer.lab.registry import stands_on
from onelayer.lab.statistics import interval
from onelayer.lab.temperatures import add_query, of_head, start_head
from onelayer.lab.trained import Budget, Net, contexts, train
from onelayer.lab.trained_temperatures import SHAPE, task_of, train_from

MODULE = "onelayer.lab.experiments.softmax_and_boltzmann"


def row(start: float, beta: float, right: float, ended_by: str, seed: int = 0) -> Row:
    edges = {"hot_edge": 0.003, "cold_edge": 18.0, "inside": 0.003 <= beta <= 18.0}
    about = {"part": "trained", "start": start, "seed": seed, "levels": 8, "n": 3, "spacing": "even"}
    path = json.dumps([[0, start], [20, beta]])
    return {**about, "beta": beta, "accuracy": right, "ended_by": ended_by, "path": path, **edges}


INSIDE = [row(1e-7, 2.0, 1.0, "all right"), row(50.0, 9.0, 1.0, "all right")]
OUTSIDE = [row(50.0, 240.0, 0.75, "budget", 1), row(50.0, 30.0, 1.0, "all right", 2)]


def test_sizes_are_not_pooled() -> None:
    """A size at which nothing is told apart is not hidden by others of the same spacing."""
    shares = {"cold": (1.0, 0.9, 0.1), "window": (0.2, 0.9, 0.1), "none": (0.4, 0.3, 0.0), "all": (1.0, 1.0, 0.6)}
    found = {name: {2.0**k: interval([one]) for k, one in enumerate(some)} for name, some in shares.items()}
    said = say_where_apart(
        {
            (12, 3, "even"): found["window"],
            (12, 3, "random"): found["cold"],
            (12, 6, "random"): found["cold"],
            (24, 3, "random"): found["none"],
            (6, 3, "random"): found["all"],
        }
    )
    assert "in a window only, neither too hot nor too cold with even levels (3 of 12);" in said
    assert "unless they are too cold with random levels (3 of 12, 6 of 12);" in said
    assert "at no temperature tried with random levels (3 of 24);" in said
    assert said.endswith("at all temperatures tried with random levels (3 of 6).")
    assert say_where_apart({}) == "No window was measured."


def test_heads_that_end_outside_are_counted_and_whether_they_learned() -> None:
    assert "end between the edges, wherever they started; 2 of 2 give all" in say_where_they_end(INSIDE)
    said = say_where_they_end(INSIDE + OUTSIDE)
    assert "2 of 4 end outside, and 1 of these gives all answers; 2 of the 2 that end between do." in said
    said = say_where_they_end([*INSIDE, OUTSIDE[0]])
    assert "1 of 3 end outside, and none of these gives all answers; 2 of the 2 that end between do." in said
    assert say_where_they_end(OUTSIDE[:1]).endswith("none of these gives all answers.")
    assert say_where_they_end([]) == ""
    hot, cold = describe_trained(INSIDE + OUTSIDE)
    assert hot.startswith("Heads that start at 1e-07, outside, end at 2")
    assert "1 of 1 inside the window" in hot
    assert (
        "1 of 3 inside the window of float32, 0.003 to 18; all answers learned by 1 of 1 that ended inside" in cold
    )
    assert "1 of 2 that ended outside; what ended them: all right 2, budget 1." in cold


def test_the_hypothesis_is_judged() -> None:
    verdict = find("softmax-and-boltzmann").verdict
    assert verdict(INSIDE).answer == "yes"
    judged = verdict(INSIDE + OUTSIDE)
    assert judged.answer == "partly"
    assert "need not end between" in judged.says


def test_every_path_is_drawn_in_the_window() -> None:
    _, (axes,) = figure()
    draw_trained(axes, INSIDE + OUTSIDE)
    ends = [line.get_ydata()[-1] for line in axes.get_lines() if len(line.get_ydata())]
    assert ends == [2.0, 9.0, 240.0, 30.0]
    assert [line.get_linestyle() for line in axes.get_lines() if len(line.get_ydata())] == ["-", "-", ":", "-"]


@pytest.mark.parametrize("start", [1e-7, 50.0])
def test_a_head_is_watched_from_its_start(start: float) -> None:
    levels, sets = add_query(6, np.array([[0, 1], [0, 4], [2, 3], [1, 4]]))
    found: dict[str, Any] = train_from(start, levels, sets, 40, 0)
    path = json.loads(found["path"])
    assert path[0] == [0, pytest.approx(start, rel=1e-3)]
    assert path[-1] == [found["taken"], pytest.approx(found["beta"], rel=1e-3)]
    assert found["ended_by"] in ("all right", "budget")


def test_the_temperature_is_that_of_the_weights_that_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the best ones, to which a run goes back that its budget ended."""
    levels, sets = add_query(6, np.array(list(combinations(range(6), 3))))
    ends = []

    def kept(*given: Any) -> Any:
        ends.append(train(*given))
        start_head(ends[-1].net, 0.5, 7.0)
        return ends[-1]

    monkeypatch.setattr("onelayer.lab.trained_temperatures.train", kept)
    found = train_from(1.0, levels, sets, 20, 0)
    assert found["beta"] == pytest.approx(7.0)
    assert json.loads(found["path"])[-1] == [ends[-1].steps, 7.0]


@pytest.mark.parametrize("seed", [0, 1])
def test_without_attention_sets_of_equal_means_have_one_answer(seed: int) -> None:
    """W_Q = W_K = 0 gives no gradient to either, and contexts are means: one answer for each mean, and no more."""
    levels, sets = add_query(6, np.array(list(combinations(range(6), 3))))
    task = task_of(levels, sets, seed)
    net = Net(SHAPE, task, seed)
    for name in ("0.W_Q", "0.W_K"):
        net.tensors[name].data.zero_()
    ended = train(net, task, Budget(steps=400, check=20), 1e-2, seed)
    assert of_head(ended.net, 0.5) == 0
    by_mean: dict[int, list[int]] = {}
    for total, answer in zip(sets.sum(axis=1), task.answers, strict=True):
        by_mean.setdefault(int(total), []).append(int(answer))
    most = sum(max(Counter(answers).values()) for answers in by_mean.values())
    assert len(by_mean) == 10
    assert ended.right <= most < len(sets)


def test_the_answer_is_a_function_of_one_weighted_mean() -> None:
    """At the query a network sees the head's context, and beside it only what all sequences share."""
    levels, sets = add_query(6, np.array(list(combinations(range(6), 3))))
    task = task_of(levels, sets, 0)
    net = Net(SHAPE, task, 0, "float64")
    start_head(net, 0.5, 3.0)
    seen = contexts(net, task.tokens)[:, -1]
    values = [boltzmann(sign * 3.0 * levels[sets]) * sign for sign in (1.0, -1.0)]
    left = [np.linalg.lstsq(np.stack([v, np.ones(len(v))], 1), seen, rcond=None)[1].sum() for v in values]
    assert min(left) < 1e-20 < max(left)


def test_rows_stand_on_the_code_of_their_own_part() -> None:
    parts = {case["part"]: case for case in find("softmax-and-boltzmann").cases("full")}
    computes = softmax_and_boltzmann.computes
    window, trained, lemmas = (
        stands_on(MODULE, computes(parts[p]).__name__) for p in ("window", "trained", "lemmas")
    )
    assert "onelayer.lab.trained" in trained - window - lemmas
    assert "onelayer.lab.lemma_bounds" in lemmas - window - trained
    assert "onelayer.lab.temperatures" in (window & trained) - lemmas
    assert "onelayer.lab.ended_temperatures" not in window | trained | lemmas
