"""Fine-tuning: every rate gets its chance, and a run that was cut is no evidence that Adam cannot."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onelayer.lab.experiments import fine_tuning

torch.set_num_threads(1)


def row(part: str, seed: int, right: int = 48, before: int = 30, **more: Any) -> dict[str, Any]:
    said = {"part": part, "noise": 0.01 * (part == "return"), "steps": 10, "seed": seed, "answers": 48}
    said |= {"tensors": 13, "without_gradient": 13 if part == "keep" else 0, "right": right, "right_before": before}
    said |= {"first": 1, "others_lost": 48 - right, "rate": 1e-3, "ended_by": "plateau"}
    return said | more


def rows_of(**returned: Any) -> list[dict[str, Any]]:
    kept = [row("keep", seed, before=48, ended_by="all right") for seed in range(5)]
    changed = [row("change", seed, before=47, right=47, first=0) for seed in range(5)]
    return kept + changed + [row("return", seed, **{"right": 40, **returned}) for seed in range(5)]


def mixed(ended: str) -> list[dict[str, Any]]:
    """Three of the runs that did not come back ended so; no change of an answer did."""
    return [{**r, "ended_by": ended} if r["part"] == "return" and r["seed"] < 3 else r for r in rows_of()]


def test_rows_say_what_ended_a_run_and_at_which_rate() -> None:
    (made,) = fine_tuning.run({"part": "change", "noise": 0.0, "steps": 30}, 0)
    assert made["rate"] in fine_tuning.RATES
    assert made["ended_by"] in ("all right", "plateau", "budget")
    kept = fine_tuning.run({"part": "keep", "noise": 0.0, "steps": 5}, 0)
    assert [each["rate"] for each in kept] == list(fine_tuning.RATES)
    assert all(each["right"] == 48 for each in kept)


def test_the_best_of_the_rates_changes_an_answer_and_loses_none() -> None:
    """Steps enough for seed 0; at a rate of 3e-4 alone they are not."""
    (made,) = fine_tuning.run({"part": "change", "noise": 0.0, "steps": 400}, 0)
    assert (made["right_before"], made["right"], made["first"], made["others_lost"]) == (47, 48, 1, 0)
    assert made["ended_by"] == "all right"


@pytest.mark.parametrize(
    ("ended", "word"), [("plateau", "Hypothesis 2 is borne out"), ("budget", "Hypothesis 2 is open")]
)
def test_runs_that_the_budget_ended_do_not_say_that_adam_never_comes_back(ended: str, word: str) -> None:
    found = fine_tuning.verdict(rows_of(ended_by=ended))
    assert any(text.startswith(word) for text in found.findings)
    assert ("Still learning when" in found.says) == (ended == "budget")
    assert ("3 of the 5 that did not come back" in fine_tuning.verdict(mixed(ended)).says) == (ended == "budget")


def test_no_is_not_said_where_training_was_cut() -> None:
    cut = [row("keep", seed, right=40, ended_by="budget") for seed in range(5)]
    cut += [row(part, seed, right=40, ended_by="budget") for part in ("change", "return") for seed in range(5)]
    assert fine_tuning.verdict(cut).answer == "open"
    assert fine_tuning.verdict([{**each, "ended_by": "plateau"} for each in cut]).answer == "no"


def test_a_run_that_came_back_is_counted_among_those_that_were_hurt() -> None:
    rows = rows_of()
    rows[-1] |= {"right": 48}
    rows.append(row("return", 5, before=48))  # noise had not hurt this one
    found = fine_tuning.verdict(rows)
    assert "1 of 5 runs that noise had hurt came back" in found.says
    assert "Hypothesis 2 is not borne out: 1 of 5 runs that noise had hurt came back." in found.findings


@pytest.mark.parametrize(("losing", "word"), [(5, "borne out"), (1, "not borne out"), (0, "not borne out")])
def test_a_change_costs_others_only_if_every_change_does(losing: int, word: str) -> None:
    rows = [row for row in rows_of() if row["part"] != "change"]
    rows += [row("change", seed, before=47, right=48 - (seed < losing)) for seed in range(5)]
    (third,) = [text for text in fine_tuning.verdict(rows).findings if text.startswith("Hypothesis 3")]
    assert third.startswith(f"Hypothesis 3 is {word}: the change cost other answers in {losing} of 5 (")


def test_rates_of_one_seed_are_no_trials_of_their_own() -> None:
    rows = rows_of() + [row("keep", seed, before=48, rate=1e-2) for seed in range(5)]
    assert "Kept in 10 of 10 runs, at every rate by 5 of 5 (57 to 100%) seeds;" in fine_tuning.verdict(rows).says
    rows[-1] |= {"right": 40}
    assert "Kept in 9 of 10 runs, at every rate by 4 of 5 (38 to 96%) seeds;" in fine_tuning.verdict(rows).says
