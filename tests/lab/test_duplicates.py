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
