"""Rows of the window of temperatures: one for each draw, and means over draws for each temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer.lab import find
from onelayer.lab.experiments import softmax_and_boltzmann as window
from onelayer.lab.temperatures import edges

CASE: dict[str, Any] = {"part": "window", "levels": 6, "n": 3, "draws": 3, "start": 0.0, "steps": 0}


def rows_of(spacing: str, seed: int = 2) -> list[dict[str, Any]]:
    case = {**CASE, "spacing": spacing}
    return [{**case, "seed": seed, **row} for row in window.run(case, seed)]


@pytest.mark.parametrize(("spacing", "draws"), [("even", 1), ("random", 3)])
def test_a_row_is_of_a_draw_or_of_a_temperature(spacing: str, draws: int) -> None:
    rows = rows_of(spacing)
    assert len({tuple(row) for row in rows}) == 1  # the same columns
    assert [row["draw"] for row in rows if row["beta"] is None] == list(range(draws))
    assert [row["beta"] for row in rows if row["draw"] is None] == list(window.TRIED)


def test_temperatures_have_the_means_of_their_draws() -> None:
    rng = np.random.default_rng([2, 6, 3])
    sets = window._sets(CASE)
    levels = [np.sort(rng.random(6)) for _ in range(3)]
    found = {row["beta"]: row for row in rows_of("random") if row["draw"] is None}
    for beta in (2.0**-8, 1.0, 16.0, 2.0**10):
        bits = [window._bits(each, sets, beta) for each in levels]
        assert found[beta]["bits"] == pytest.approx(np.mean(bits))
        assert found[beta]["in_float32"] == pytest.approx(np.mean([b <= 22 for b in bits]))
        assert found[beta]["in_float64"] == pytest.approx(np.mean([b <= 51 for b in bits]))
    for row, each in zip((row for row in rows_of("random") if row["beta"] is None), levels, strict=True):
        told = [beta for beta in window.TRIED if window._bits(each, sets, beta) <= 22]
        assert (row["hot_edge"], row["cold_edge"]) == edges(each, sets, 22)
        assert row["coldest"] == max(told)
        assert row["coldest"] < row["cold_edge"] * 1.5


def test_what_is_said_of_the_edges_follows_from_the_draws() -> None:
    rows = [row for seed in range(5) for row in rows_of("random", seed)]
    said = " ".join(find("softmax-and-boltzmann").verdict(rows).findings)
    ratios = [row["cold_edge"] / row["coldest"] for row in rows if row["beta"] is None]
    assert "3 of 6 random levels: the derived cold edge is " in said
    assert f"is {np.exp(np.mean(np.log(ratios))):.3g} (within" in said
    for row in rows:
        row["coldest"] = None if row["beta"] is None and row["seed"] == 0 else row["coldest"]
    assert "(3 left out)" in " ".join(find("softmax-and-boltzmann").verdict(rows).findings)


def test_draws_without_a_hot_edge_are_counted() -> None:
    rows = [row for seed in range(5) for row in rows_of("random", seed)]
    draws = [row for row in rows if row["beta"] is None]
    draws[0]["hot_edge"] = None  # two means nearer than the bits
    apart = sum(row["hot_edge"] == 0 for row in draws)
    said = " ".join(find("softmax-and-boltzmann").verdict(rows).findings)
    assert apart < len(draws) == 15
    assert f"no head is too hot, in {apart} of 15" in said
