"""Does training find it? The mathematics behind three experiments, and their verdicts on rows that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer.lab.experiment import judge
from onelayer.lab.experiments import (
    convex_or_adam,
    in_context_statistics,
    looped_optimum,
    one_step_or_mesa,
    rank_rate,
    recurrence_circuits,
)
from onelayer.lab.statistics import geometric, interval


def seeds(rows: list[dict[str, Any]], count: int = 5) -> list[dict[str, Any]]:
    """The same rows for every seed, a little apart."""
    return [
        {**row, "seed": seed, **{k: v * (1 + 0.01 * seed) for k, v in row.items() if isinstance(v, float)}}
        for row in rows
        for seed in range(count)
    ]


# recurrence-circuits


def test_series_follow_their_recurrence() -> None:
    """s'' = s' + (s' - s)^2/(s - s_before), whatever a and b are; rotations keep |a| = 1 in two dimensions."""
    s = recurrence_circuits.series(np.random.default_rng(0), 200, 0.6, 0.9)
    d = np.diff(s, axis=1)
    np.testing.assert_allclose(d[:, 2:] * d[:, :-2], d[:, 1:-1] ** 2, atol=1e-9)
    steep = np.abs(d[:, 1:] / d[:, :-1])
    assert 0.6 - 1e-6 < steep.min() < 0.65
    assert 0.85 < steep.max() < 0.9 + 1e-6
    turned = recurrence_circuits.series(np.random.default_rng(0), 200, order=2)
    middle = (turned[:, 2:] + turned[:, :-2]) / turned[:, 1:-1]
    assert np.ptp(middle, axis=1).max() < 1e-6 * np.abs(middle).max()
    assert np.abs(middle).max() <= 2 + 1e-9


def test_the_built_layer_knows_what_comes_next() -> None:
    rng = np.random.default_rng(3)
    for how in ({}, {"low": 1.0, "high": 1.3}, {"order": 2}):
        s = recurrence_circuits.series(rng, 100, **how)
        off = recurrence_circuits._built(s, how.get("order", 1)) - s[:, -1]
        assert np.median(np.abs(off)) < 1e-9


def test_attention_is_read_as_it_is_said() -> None:
    n = 5
    uniform = np.full((7, 2, n, n), 1 / n)
    assert recurrence_circuits.copying(uniform) == pytest.approx(1 / n)
    own = uniform.copy()
    own[:, 1, -1] = np.eye(n)[-1]
    assert recurrence_circuits.copying(own) == 1
    s = np.random.default_rng(0).normal(size=(7, n))
    logits = np.zeros((7, 2, n, n))
    logits[:, 0, -1, :-1], logits[:, 1, -1, :-1] = [sign * np.abs(s[:, :-1] - s[:, -1:]) for sign in (-1, 2)]
    weights = np.exp(logits)
    assert recurrence_circuits.similarity([weights[:, :1]], s) == pytest.approx(1)
    assert recurrence_circuits.similarity([uniform, weights], s) == pytest.approx(-1)


@pytest.mark.parametrize(("errors", "answer"), [((0.1, 1e-4), "yes"), ((1e-4, 0.1), "no")])
def test_only_the_longest_training_answers_for_the_recurrence(errors, answer) -> None:
    usual = {f"{kind}{name}": 0.5 for kind in ("error", "copied") for name in ("", "_beyond", "_order2")}
    usual |= {"first_copies": 0.2, "similar": -0.3, "ended_by": "plateau", "model": "trained"}
    given = [{**usual, "steps": steps, "error": off} for steps, off in zip((10, 100), errors, strict=True)]
    rows = seeds([{**usual, "model": "built", "steps": 0, "error": 1e-11}, *given])
    assert judge(recurrence_circuits, rows).answer == answer
    mixed = [{**row, "error": 1e-4 if row["seed"] else 0.1} for row in rows]
    assert judge(recurrence_circuits, mixed).answer == "partly"
    assert judge(recurrence_circuits, [row for row in rows if row["seed"] < 4]).answer == "open"
    learning = judge(recurrence_circuits, [{**row, "ended_by": "budget"} for row in rows])
    assert learning.answer == ("yes" if answer == "yes" else "open")
    assert ("still learning" in learning.says) == (answer == "no")


# rank-rate


@pytest.mark.parametrize("alpha", [0.75, 1.5])
def test_the_first_terms_are_the_nearest_logits_of_their_rank(alpha) -> None:
    U, V = rank_rate.singular(alpha, rank_rate.TERMS)
    left, s, right = np.linalg.svd(U @ V.T)
    k = np.arange(1, rank_rate.TERMS + 1)
    np.testing.assert_allclose(s[: len(k)] / rank_rate.PLACES, k**-alpha, rtol=1e-9)
    P, Q = rank_rate.singular(alpha, 5)
    np.testing.assert_allclose(P @ Q.T, (left[:, :5] * s[:5]) @ right[:5], atol=1e-9)
    assert rank_rate._apart(P @ Q.T, U @ V.T) == pytest.approx(
        (k[5:] ** (-2 * alpha)).sum() / (k ** (-2 * alpha)).sum()
    )


def test_all_terms_are_the_smoother_itself() -> None:
    row = rank_rate.run({"alpha": 1.0, "rank": rank_rate.TERMS, "steps": 1, "batch": 4}, 0)[0]
    assert row["built"] < 1e-12 < row["loss"]
    few = rank_rate.run({"alpha": 1.0, "rank": 2, "steps": 1, "batch": 4}, 0)[0]
    assert few["mean"] > few["built"] > 1e-4


@pytest.mark.parametrize(("ratios", "answer"), [((0.5, 1.0), "yes"), ((0.5, 2.0), "partly"), ((1.5, 2.0), "no")])
def test_heads_are_as_near_as_their_mean_squares_say(ratios, answer) -> None:
    usual = {"mean": 1.0, "logits": 0.1, "built_logits": 0.1, "cosine": 0.9, "built": 0.01, "ended_by": "plateau"}
    rows = seeds([{**usual, "rank": 2 + i, "loss": 0.01 * ratio} for i, ratio in enumerate(ratios)])
    found = judge(rank_rate, [{**row, "alpha": 1.0} for row in rows])
    assert found.answer == answer
    assert f"in {5 * sum(r < 1.1 for r in ratios)} of 10" in found.says
    assert f"more than that in {5 * sum(r < 0.9 for r in ratios)}." in found.says


# in-context-statistics


def test_tasks_have_the_noise_and_the_zeros_that_are_said() -> None:
    rng = np.random.default_rng(0)
    for task, (small, large) in in_context_statistics.NOISE.items():
        x, y, w = in_context_statistics.tasks(rng, task, 4000)
        noise = y - np.einsum("bnd,bd->bn", x, w)
        assert np.sqrt((noise**2).mean()) == pytest.approx(np.sqrt((small**2 + large**2) / 2), rel=0.05)
        assert np.abs(x).max() <= 1
        zeros = (w == 0).sum(axis=1)
        assert set(zeros) == {in_context_statistics.d - in_context_statistics.SPARSE if task == "sparse" else 0}


def test_the_ridge_that_is_built_is_the_best_estimate_of_a_normal_w() -> None:
    """With w of variance 1: (X^T X + sigma^2)^-1 X^T y."""
    x, y, _ = in_context_statistics.tasks(np.random.default_rng(1), "dense", 20)
    sigma, d = in_context_statistics.NOISE["dense"][0], in_context_statistics.d
    best = np.linalg.solve(x.swapaxes(1, 2) @ x + sigma**2 * np.eye(d), np.einsum("bnd,bn->bd", x, y)[..., None])
    units = np.broadcast_to(np.eye(d), (20, d, d))
    found = in_context_statistics.build("dense", 0).predict(x, y, units)
    off = np.abs(found - best[..., 0])
    assert np.median(off) < 1e-4
    assert off.max() < 0.05  # 300 loops, and prompts that are nearly singular


def test_the_lasso_has_zeros_and_is_better_than_least_squares_where_w_is_sparse() -> None:
    x, y, w = in_context_statistics.tasks(np.random.default_rng(1), "sparse", 200)
    units = np.broadcast_to(np.eye(in_context_statistics.d), (200, w.shape[1], w.shape[1]))
    found = in_context_statistics.build("sparse", 0).predict(x, y, units)
    least = np.einsum("bdn,bn->bd", np.linalg.pinv(x), y)
    assert ((found - w) ** 2).mean() < 0.8 * ((least - w) ** 2).mean()
    assert 0.3 < (found == 0)[w == 0].mean() < 1
    assert (found == 0)[w != 0].mean() < 0.05


@pytest.mark.parametrize(
    ("ratios", "answer"), [((1.0, 1.0, 0.9), "yes"), ((1.2, 1.2, 0.9), "partly"), ((1.2, 1.3, 1.1), "no")]
)
def test_every_task_counts_for_the_statistics(ratios, answer) -> None:
    usual = {"width": 8, "layers": 1, "steps": 3, "least_squares": 0.2, "nothing": 1.0, "ended_by": "plateau"}
    usual |= dict.fromkeys(("zeros", "unused"), 0.5)
    rows = seeds(
        [
            {**usual, "task": task, "model": model, "loss": loss}
            for task, r in zip(in_context_statistics.NOISE, ratios, strict=True)
            for model, loss in (("built", 0.1), ("trained", 0.1 * r))
        ]
    )
    found = judge(in_context_statistics, rows)
    assert found.answer == answer
    assert "mixed in 5 of 5" in found.says or answer == "no"


# looped-optimum, one-step-or-mesa, convex-or-adam: one draw of a seed counts once


@pytest.mark.parametrize(
    ("good", "ended_by", "answer"),
    [(5, "budget", "partly"), (5, "plateau", "partly"), (4, "budget", "open"), (4, "plateau", "no")],
)
def test_layers_as_good_are_part_of_the_optimum_where_all_runs_of_a_start_are(good, ended_by, answer) -> None:
    """Of two starts one has losses of the best, with other matrices, in ``good`` of five runs."""
    usual = {"d": 2, "examples": 4, "loops": 1, "more_loops": 0.5, "symmetric": 1.5, "built": 1.0, "a": 0.5}
    usual |= {"trained_a": 0.5, "off": 0.3, "skew": 0.0, "u": 0.0, "ended_by": ended_by, "batch": 8, "steps": 9}
    rows = seeds([{**usual, "start": start, "loss": 2.0} for start in ("identity", "small")])
    for row in [row for row in rows if row["start"] == "small"][:good]:
        row["loss"] = 1.0
    found = judge(looped_optimum, rows)
    assert found.answer == answer
    assert f"in {good} of 10 runs, in all runs of {int(good == 5)} of 2 settings" in found.says


def test_tasks_that_runs_share_are_counted_once() -> None:
    """Three starts, or kinds, on the same tasks are one draw of them: five seeds are five, not fifteen."""
    usual = {"d": 2, "examples": 4, "loops": 1, "loss": 1.0, "more_loops": 0.5, "symmetric": 1.5, "built": 1.0}
    usual |= {"a": 0.5, "trained_a": 0.5, "off": 0.3, "skew": 0.2, "u": 0.0, "ended_by": "plateau"}
    rows = seeds([{**usual, "start": start} for start in looped_optimum.STARTS])
    found = judge(looped_optimum, rows)
    assert f"best a is {interval(row['a'] for row in rows[:5])} with" in found.findings[0]
    assert "not symmetric in 15" in found.says
    assert "by more than 5% in 15" in found.says
    usual = {"n": 2, "noise": 1, "loss": 1.0, "step": 1.0, "mesa": 0.5, "zero": 2.0, "cosine": 0.9}
    rows = seeds([{**usual, "model": kind, "ended_by": "plateau"} for kind in one_step_or_mesa.KINDS])
    assert f"step {interval(row['step'] for row in rows[:5])}," in judge(one_step_or_mesa, rows).findings[0]
    usual = {"scale": 1, "least": 0.01, "loss": 1.0, "convex": 1e-30, "apart": 0.1, "convex_apart": 1e-9}
    rows = seeds([{**usual, "heads": heads, "ended_by": "plateau"} for heads in (1, 2, 4)])
    found = judge(convex_or_adam, rows)
    assert f"eigenvalue {geometric(row['least'] for row in rows[:5])} of" in found.findings[0]
    assert "for 5 of 5 data" in found.says
