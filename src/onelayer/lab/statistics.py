"""Means over seeds with 95% confidence intervals, and slopes of lines through logarithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.lab.experiment import Row

#: Student's t, two-sided 95%, for 1, 2, ... degrees of freedom; the normal quantile beyond.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
NORMAL = 1.96


@dataclass(frozen=True)
class Interval:
    """A mean of ``count`` values, and where the true one lies with 95% confidence; unknown for a single value."""

    mean: float
    half: float
    count: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.count == 1 else f"{self.mean:.4g} ± {self.half:.2g}"


def interval(values: Iterable[Any]) -> Interval:
    x = np.array([float(value) for value in values])
    if len(x) < 2:
        return Interval(float(x.mean()) if len(x) else np.nan, 0.0, len(x))
    quantile = STUDENT[len(x) - 2] if len(x) - 2 < len(STUDENT) else NORMAL
    return Interval(float(x.mean()), float(quantile * x.std(ddof=1) / np.sqrt(len(x))), len(x))


def grouped(rows: list[Row], by: str | Callable[[Row], Any], value: str) -> dict[Any, Interval]:
    """The interval of a value for each group, groups in order; rows without the value are left out."""
    key = (lambda row: row[by]) if isinstance(by, str) else by
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if row.get(value) is not None:
            groups.setdefault(key(row), []).append(row[value])
    return {group: interval(groups[group]) for group in sorted(groups)}


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Of the least-squares line through (log x, log y)."""
    pairs = [(np.log(a), np.log(b)) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    if len(pairs) < 2:
        return float("nan")
    a, b = np.array(pairs).T
    return float(np.polyfit(a, b, 1)[0])
