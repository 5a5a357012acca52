"""Twins say what ended them, curves do not hide each other, and trained rows do not stand on the compiler."""

from __future__ import annotations

from typing import Any

from onelayer.lab.experiments import duplicates
from onelayer.lab.registry import stands_on


def rows_of() -> list[dict[str, Any]]:
    """Every mapping recalls everything at three rates; two of three twins were cut."""
    common = {"part": "repeats", "distance": 1.0, "n": 10, "sequences": 40, "refused": "", "why": "", "recall": 1.0}
    rows = [
        {**common, "model": "constructed", "steps": 0, "mapping": mapping, "dtype": dtype, "rate": rate, "seed": 0}
        | {"bits": 20.0, "gap": 1.0, "rank": 1}
        for mapping in duplicates.MAPPINGS
        for dtype in duplicates.DTYPES
        for rate in (0.0, 0.3, 0.6)
    ]
    return rows + [
        {
            **common,
            "model": "trained",
            "steps": 900,
            "mapping": "trained",
            "dtype": "float32",
            "rate": rate,
            "seed": 0,
        }
        | {"bits": None, "ended_by": ended}
        for rate, ended in ((0.0, "budget"), (0.3, "plateau"), (0.6, "budget"))
    ]


def test_what_twins_recall_says_what_ended_them() -> None:
    found = duplicates.verdict(rows_of()).findings[-1]
    assert "ended by: budget 2, plateau 1." in found
    assert "In 2 of 3" in found


def test_no_two_curves_of_a_panel_lie_on_each_other() -> None:
    left, middle, *_ = duplicates.plot(rows_of()).axes
    for axes in (left, middle):
        drawn = [tuple(line.get_xdata()) for line in axes.get_lines() if line.get_marker() in duplicates.MARKS]
        assert len(drawn) >= 4
        assert len(set(drawn)) == len(drawn)
        marks = [line.get_marker() for line in axes.get_lines() if line.get_marker() in duplicates.MARKS]
        assert len(set(marks)) == len(marks)


def test_trained_rows_do_not_stand_on_the_compiler() -> None:
    name = duplicates.computes({"model": "trained"}).__name__
    seen = stands_on(duplicates.__name__, name)
    assert "onelayer.lab.trained" in seen
    assert "onelayer.compile.memorize" not in seen


def test_a_mapping_that_recalls_all_at_no_distance_is_named() -> None:
    def row(mapping: str, dtype: str, distance: float, seed: int, recall: float) -> dict[str, Any]:
        said = {"part": "similar", "mapping": mapping, "dtype": dtype, "distance": distance, "seed": seed}
        return said | {"recall": recall, "bits": None, "refused": "" if recall == 1 else mapping, "rate": 0.0}

    rows = [
        row("temperature", "float32", t, seed, float(t == 1 and seed < 3)) for t in (1.0, 0.1) for seed in range(5)
    ]
    rows += [row("lattice", "float32", t, seed, float(t == 1)) for t in (1.0, 0.1) for seed in range(5)]
    rows += [row("lattice", "float64", t, seed, 1.0) for t in (1.0, 1e-12) for seed in range(5)]
    said = duplicates._distances(rows)[-1]
    assert "temperature float32 nowhere (3 of 5 at 1; else refused by temperature); " in said
    assert "lattice float32 1 (below, refused by lattice); lattice float64 1e-12." in said
