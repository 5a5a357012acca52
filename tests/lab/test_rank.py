"""Heads are compared with their values without attention seed by seed; equal points are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer.lab.experiments import rank
from onelayer.lab.registry import stands_on

SIZES, LAWS = (64, 1024), {64: 6.0, 1024: 10.0}


def measured(more: dict[int, float], seeds: int = 5) -> list[dict[str, Any]]:
    """Kinds of ranks 1 and 8, whose bits follow the law; heads need so many ``more`` at each rank than the control,
    which needs one more than points."""
    rows = []
    for model, queries in (("head", 1), ("head", 8), ("control", 0), ("points", 0)):
        for N in SIZES:
            for s in (1, 8):
                for seed in range(seeds):
                    law = 2 * LAWS[N] / s
                    drawn = 0.5 * ((seed * 7 + N) % 5)  # common to all kinds of a seed
                    bits = law + 3.0 + drawn + (more.get(s, 0.0) + 0.01 * seed if model == "head" else 0.02)
                    bits -= model == "points"
                    row = {"model": model, "N": N, "rank": s, "queries": queries, "seed": seed, "gap": 1e-3}
                    rows.append(row | {"bits": bits, "law": law, "spread": 3.0, "b": None})
    return rows


def trained(recall: dict[int, dict[int, float]], ended_by: str = "plateau") -> list[dict[str, Any]]:
    """By rank and bits a weight, the same for five seeds; recall that is not given is whole."""
    about = {"model": "trained", "N": 48, "ended_by": ended_by}
    return [
        {
            **about,
            "parameters": 3000 + 50 * r,
            "rank": r,
            "queries": r,
            "seed": seed,
            "b": b,
            "accuracy": found.get(b, 1.0),
        }
        for r, found in recall.items()
        for seed in range(5)
        for b in (*rank.ROUNDED, 32)
    ]


def test_a_head_that_needs_more_bits_at_one_rank_is_found_pair_by_pair() -> None:
    """What both share is five times as large as the difference, and the slopes are those of the law."""
    rows = measured({8: 0.4})
    found = rank.verdict(rows)
    assert found.answer == "partly"
    assert "2 are clearly apart in bits beyond log2(span/sigma): 0.4" in found.says
    assert "; and 2 with that term." in found.says
    assert "0.4 ± 0.02 at rank 8 (head, queries of rank 1)" in found.says
    assert rank.compare_bits(rows, "head, queries of rank 8", rank.CONTROL, 8).above
    assert not rank.compare_bits(rows, "head, queries of rank 8", rank.CONTROL, 1).above


def test_the_same_bits_at_every_rank_are_a_yes() -> None:
    assert rank.verdict(measured({})).answer == "yes"


def test_what_is_apart_by_its_span_alone_is_counted_beside_the_law() -> None:
    """More bits and as much more span: the law holds, and a head needs more bits all the same."""
    rows = measured({8: 0.4})
    for row in rows:
        row["spread"] += 0.4 if row["model"] == "head" and row["rank"] == 8 else 0.0
    for row in rows:
        row["bits"] -= 0.01 * row["seed"] if row["model"] == "head" else 0.02
    found = rank.verdict(rows)
    assert found.answer == "yes"
    assert "0 are clearly apart in bits beyond log2(span/sigma), and 2 with that term." in found.says


def test_what_the_values_cost_is_a_finding_of_its_own() -> None:
    """A control that is apart from points leaves the answer alone: it says nothing of attention."""
    found = rank.verdict(measured({}))
    assert any(
        "values without attention, bits more than points drawn at random" in text
        and "beyond log2(span/sigma): 1 ± 0 at rank 1, 1 ± 0 at rank 8" in text
        for text in found.findings
    )
    assert found.answer == "yes"
    assert f"for {rank.POINTS}" in found.says


def test_a_head_that_attends_to_its_first_token_is_the_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of a setting have the same tokens and the same W_V, whatever the rank of the queries."""
    first = np.zeros((16, 1, rank.n))
    first[..., 0] = 1.0
    monkeypatch.setattr(rank, "softmax", lambda _: first)
    case = {"N": 16, "rank": 4}
    control = rank.place({**case, "model": "control", "queries": 0}, 3)
    for r in (1, 8):
        np.testing.assert_allclose(rank.place({**case, "model": "head", "queries": r}, 3), control)
    points = rank.place({**case, "model": "points", "queries": 0}, 3)
    assert np.abs(points - control).max() > 0.1
    assert np.abs(rank.place({**case, "model": "control", "queries": 0}, 4) - control).max() > 0.1


def test_rows_without_random_points_have_a_verdict() -> None:
    rows = [row for row in measured({}) if row["model"] != "points"]
    assert rank.verdict(rows).answer == "yes"
    assert rank.verdict([row for row in rows if row["model"] == "head"]).answer == "open"


def test_sizes_of_one_seed_are_no_more_pairs() -> None:
    found = rank.compare_bits(measured({8: 0.4}), "head, queries of rank 1", rank.CONTROL, 8)
    assert (found.found.count, found.missing) == (5, 0)
    without = [row for row in measured({8: 0.4}) if row["model"] == "head" or row["seed"] < 3]
    found = rank.compare_bits(without, "head, queries of rank 1", rank.CONTROL, 8)
    assert (found.found.count, found.missing) == (3, 2)


def test_equal_points_are_counted() -> None:
    rows = measured({})
    rows[0] |= {"gap": 0.0, "bits": None}
    found = [text for text in rank.verdict(rows).findings if "two points are equal" in text]
    assert len(found) == 1
    assert found[0].startswith("In 1 of 80 draws")
    assert "head, queries of rank 1 of rank 1, 64 contexts 1" in found[0]


def test_the_fewest_bits_are_those_from_which_on_recall_is_kept() -> None:
    """At 4 bits it is kept by luck, and lost again at 5; shares are of what the model had."""
    lucky = trained({1: {2: 0.1, 3: 0.5, 4: 0.8, 5: 0.5, 32: 0.8}})
    assert set(rank.fewest_bits(lucky).values()) == {6}
    assert set(rank.fewest_bits(trained({1: dict.fromkeys(rank.ROUNDED, 0.5)})).values()) == {None}


def test_ranks_are_compared_by_the_bits_that_keep_recall() -> None:
    few, many = dict.fromkeys(range(2, 4), 0.2), dict.fromkeys(range(2, 7), 0.2)
    found = rank.verdict(measured({}) + trained({1: many, 16: few}))
    assert (
        "rank 1 (3,050 parameters) take 7 ± 0 bits each and those of rank 16 (3,800 parameters) 4 ± 0" in found.says
    )
    assert "4 ± 0: pair by pair 3 ± 0 more" in found.says
    cut = rank.verdict(measured({}) + trained({1: many, 16: few}, "budget"))
    assert any("more may do better" in text for text in cut.findings)


def test_the_full_preset_looks_at_a_million_contexts_where_it_can() -> None:
    most = {s: max(case["N"] for case in rank.cases("full") if case["rank"] == s) for s in (1, 2, 4, 8)}
    assert most == {1: 10**6, 2: 10**6, 4: 10**6, 8: 65536}


@pytest.mark.parametrize(("model", "there"), [("head", False), ("trained", True)])
def test_only_trained_rows_stand_on_training(model: str, there: bool) -> None:
    name = rank.computes({"model": model}).__name__
    assert ("onelayer.lab.trained" in stands_on(rank.__name__, name)) == there
