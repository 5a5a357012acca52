"""Merged contexts are counted by rate and by scale, over seeds, and "no" takes runs that were at their end."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onelayer.lab.experiments import hidden_collapse
from onelayer.lab.registry import stands_on
from onelayer.lab.statistics import interval

torch.set_num_threads(1)


def rows_of(
    merges: Any, ended_by: str = "plateau", rates: tuple[float, ...] = (1e-3, 1e-2)
) -> list[dict[str, Any]]:
    """Runs of five seeds, of which those merge contexts that ``merges(scaled, rate, seed)`` says."""
    rows = [
        {"model": "constructed", "scaled": False, "rate": 0.0, "seed": seed, "right": 64, "facts": 64, "exact": 1}
        | {"equal_pairs": 0, "nearest": 0.01, "wrong_and_merged": 0}
        for seed in range(5)
    ]
    for scaled in (True, False):
        for rate in rates:
            for seed in range(5):
                pairs = int(merges(scaled, rate, seed))
                said = {"model": "trained", "scaled": scaled, "rate": rate, "seed": seed, "right": 64 - pairs}
                said |= {
                    "facts": 64,
                    "exact": int(not pairs),
                    "equal_pairs": pairs,
                    "nearest": 0.0 if pairs else 0.1,
                }
                rows.append(said | {"wrong_and_merged": pairs, "ended_by": ended_by})
    return rows


def test_merges_are_counted_by_scale_and_rate_with_intervals_over_seeds() -> None:
    found = hidden_collapse.verdict(rows_of(lambda scaled, rate, seed: not scaled and rate > 1e-3 and seed < 3))
    assert found.answer == "partly"
    assert "3 of 20 runs of Adam ended with contexts equal bit for bit, all of them without" in found.says
    assert "at rates up to 0.001 0 of 10 did, and 0 of 5 (0 to 43%) seeds had such a run." in found.says
    scaled, unscaled = found.findings[:2]
    assert "0 of 5 (0 to 43%) at 0.001, 0 of 5 (0 to 43%) at 0.01" in scaled
    assert "0 of 5 (0 to 43%) at 0.001, 3 of 5 (23 to 88%) at 0.01" in unscaled


def test_an_interval_counts_seeds_and_not_the_runs_of_one_seed() -> None:
    """Seed 0 merges contexts at both scales: one seed of five."""
    found = hidden_collapse.verdict(rows_of(lambda _, rate, seed: seed == 0 and rate == 1e-3))
    assert found.answer == "yes"
    assert "at rates up to 0.001 2 of 10 did, and 1 of 5 (4 to 62%) seeds had such a run." in found.says
    assert "with 1/sqrt(s) 1 of 5 (4 to 62%), in 1 of 5 runs; without it 1 of 5" in found.findings[2]


def test_built_and_trained_layers_have_the_same_statistics_over_seeds() -> None:
    """Rates of one seed are one value: of seed 0 all answers but ten are right at both, of the others all are."""
    rows = rows_of(lambda *_: False)
    for row in rows:
        if row["model"] == "trained":
            row |= {"right": 54 if row["seed"] == 0 else 64, "nearest": 0.1 if row["rate"] > 1e-3 else 0.001}
    found = hidden_collapse.verdict(rows)
    assert f"right: {interval([54, 64, 64, 64, 64])}" in found.findings[0]
    (nearest,) = [text for text in found.findings if text.startswith("Constructed")]
    assert "two is 0.01 (" in nearest
    assert "0.01 at least. Trained, in the 20 of 20 runs where none are merged: 0.01 (" in nearest
    assert nearest.endswith("over seeds and 0.001 at least.")


@pytest.mark.parametrize(("ended_by", "answer"), [("plateau", "no"), ("all right", "no"), ("budget", "open")])
def test_no_takes_runs_that_were_at_their_end(ended_by: str, answer: str) -> None:
    assert hidden_collapse.verdict(rows_of(lambda *_: False, ended_by)).answer == answer


def test_without_a_rate_that_people_use_nothing_is_answered() -> None:
    assert hidden_collapse.verdict(rows_of(lambda *_: False, rates=(1e-2,))).answer == "open"


def test_training_goes_on_until_the_loss_has_stopped_falling() -> None:
    """At this rate contexts merge; the run is at its end long before its steps are spent, and says so."""
    case = {"model": "trained", "scaled": False, "rate": 0.1, "width": 16, "steps": 4000}
    (row,) = hidden_collapse.run(case, 0)
    assert row["ended_by"] == "plateau"
    assert row["taken"] < 4000
    assert row["equal_pairs"] > 0


def test_trained_rows_do_not_stand_on_the_compiler() -> None:
    name = hidden_collapse.computes({"model": "trained"}).__name__
    assert "onelayer.compile.memorize" not in stands_on(hidden_collapse.__name__, name)
