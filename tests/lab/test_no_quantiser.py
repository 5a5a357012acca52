"""Is the quantiser needed: rows repeat, partial rows are judged, and means are over layers."""

from __future__ import annotations

import pytest

from onelayer.lab import find
from onelayer.lab.registry import stands_on

NAME = "no-quantiser"
BASE = {"n": 2, "heads": 2, "d": 1, "channels": 0, "units": 0, "tries": 5, "steps": 0}
CASES = [
    {"part": "narrow", **BASE, "steps": 3},
    {"part": "narrow", **BASE, "n": 3, "d": 2},
    {"part": "zero", **BASE, "n": 3},
    {"part": "fit", **BASE, "units": 8},
    {"part": "fit", **BASE, "channels": 2, "units": 8},
    {"part": "units", **BASE, "heads": 5, "channels": 5, "units": 8},
]


def test_rows_repeat_and_any_of_them_are_judged_and_drawn() -> None:
    experiment, rows = find(NAME), []
    for case in CASES:
        assert set(case) == set(experiment.cases("quick")[0])
        first = experiment.run(case, 0)
        assert experiment.run(case, 0) == first
        experiment.verdict([{**case, "seed": 0, **row} for row in first])
        rows += [{**case, "seed": 0, **row} for row in first]
    judged = experiment.verdict(rows)
    assert "of 5 layers without a query bias" in " ".join(judged.findings)
    assert all("sup" in text for text in judged.findings if text.startswith(("n = ", "Smallest", "Narrow", "Mean")))


def test_the_mean_of_bounds_is_over_layers_and_apart_for_each_shape() -> None:
    """Ten layers of 0.2 and thirty of 0.6 have the mean 0.5; other lengths and widths are another mean."""
    about = {"part": "narrow", "steps": 0, "smallest_bound": 0.15, "climbed_bound": 0.15}
    rows = [
        {
            **about,
            "n": n,
            "d": d,
            "heads": heads,
            "tries": tries,
            "layers": tries,
            "mean_bound": bound,
            "seed": seed,
        }
        for seed in range(5)
        for n, d, heads, tries, bound in ((2, 1, 1, 10, 0.2), (2, 1, 4, 30, 0.6), (3, 2, 4, 10, 0.9))
    ]
    said = " ".join(find(NAME).verdict(rows).findings)
    assert "0.5 ± 0 at n = 2, d = 1, 0.9 ± 0 at n = 3, d = 2" in said


def test_layers_that_climb_are_not_counted_as_random_ones() -> None:
    about = {**BASE, "part": "narrow", "mean_bound": 0.5, "climbed_bound": 0.125, "smallest_bound": 0.132}
    rows = [{**about, "tries": 1000, "steps": 30, "layers": 1030, "seed": seed} for seed in range(5)]
    found = find(NAME).verdict(rows)
    assert "of 5,150 layers" in found.findings[0]
    assert "5,000 random and 150 tried in climbing" in found.findings[0]
    assert any("of the 5,000 random layers alone: 0.132 at n = 2, d = 1" in text for text in found.findings)
    assert found.answer == "open"


def test_what_spare_channels_give_is_said_of_each_length() -> None:
    fits = [(2, 0.04), (2, 0.08), (3, 0.2)]
    about = {**BASE, "channels": 2, "mean_square": 0.01, "lower_bound": None, "scale": 1.0}
    rows = [{**about, "part": "fit", "n": n, "error": e, "units": 256, "seed": 0} for n, e in fits]
    rows += [
        {**about, "part": "units", "n": n, "error": e / u, "units": u, "seed": 0} for n, e in fits for u in (1, 2)
    ]
    said = find(NAME).verdict(rows).says
    assert "it can at n = 2: the best of all fits misses by 0.04 at n = 2 and 0.2 at n = 3; with most units" in said
    assert "0.1 at n = 3 with 2 units, measured." in said


@pytest.mark.parametrize(("part", "own"), [("narrow", "narrow_layers"), ("fit", "spare_channels")])
def test_rows_stand_on_the_code_of_their_own_part(part: str, own: str) -> None:
    experiment = find(NAME)
    module = "onelayer.lab.experiments.no_quantiser"
    used = {case["part"]: stands_on(module, experiment.computes(case).__name__) for case in CASES}
    assert f"onelayer.lab.{own}" in used[part] - used["zero"]
    assert "onelayer.impossible.zero_token" in used["zero"] - used["fit"] - used["narrow"]
