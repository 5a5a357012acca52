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
#: Relative: what is less apart is equal.
ROUNDING = 1e-9


def short(value: float, digits: int) -> str:
    """So many digits, and all of those before the point: no powers of ten where a person would write none."""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


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
        if self.count == 1:
            return short(self.mean, 4)
        half = self.half if self.half > ROUNDING * abs(self.mean) else 0.0
        return f"{short(self.mean, 4)} ± {short(half, 2)}"


def interval(values: Iterable[Any]) -> Interval:
    x = np.array([float(value) for value in values])
    if len(x) < 2:
        return Interval(float(x.mean()) if len(x) else np.nan, 0.0, len(x))
    quantile = STUDENT[len(x) - 2] if len(x) - 2 < len(STUDENT) else NORMAL
    return Interval(float(x.mean()), float(quantile * x.std(ddof=1) / np.sqrt(len(x))), len(x))


def interval_by_group(rows: list[Row], by: str | Callable[[Row], Any], value: str) -> dict[Any, Interval]:
    """The interval of a value for each group, groups in order; rows without the value are left out."""
    key = (lambda row: row[by]) if isinstance(by, str) else by
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if row.get(value) is not None:
            groups.setdefault(key(row), []).append(row[value])
    return {group: interval(groups[group]) for group in sorted(groups)}


@dataclass(frozen=True)
class Factor:
    """A geometric mean, and the factor within which the true one lies with 95% confidence."""

    mean: float
    factor: float
    count: int

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.mean:.3g}"
        if self.factor > 100:
            return f"{self.mean:.3g} (too few to say how near)"
        near = f"{100 * (self.factor - 1):.2g}%" if self.factor < 1.1 else f"a factor of {self.factor:.3g}"
        return f"{self.mean:.3g} (within {near})"


def geometric(values: Iterable[Any]) -> Factor:
    """For positive numbers that spread over orders of magnitude."""
    found = interval(np.log([float(value) for value in values]))
    return Factor(float(np.exp(found.mean)), float(np.exp(found.half)), found.count)


def factors(rows: list[Row], by: str, value: str) -> dict[Any, Factor]:
    """Geometric means for each group, groups in order; rows without the value are left out."""
    groups = sorted({row[by] for row in rows if row.get(value) is not None})
    return {g: geometric(r[value] for r in rows if r[by] == g and r.get(value) is not None) for g in groups}


def steepness(x: Iterable[Any], y: Iterable[Any]) -> Interval:
    """The slope of the least-squares line through (x, y) and its 95% interval; unknown for fewer than 3 points."""
    a, b = np.array([float(v) for v in x]), np.array([float(v) for v in y])
    spread = float(((a - a.mean()) ** 2).sum()) if len(a) > 1 else 0.0
    if spread == 0:
        return Interval(np.nan, np.nan, len(a))
    found = float(((a - a.mean()) * (b - b.mean())).sum() / spread)
    if len(a) == 2:
        return Interval(found, np.nan, 2)
    rest = b - b.mean() - found * (a - a.mean())
    quantile = STUDENT[len(a) - 3] if len(a) - 3 < len(STUDENT) else NORMAL
    return Interval(found, float(quantile * np.sqrt((rest**2).sum() / (len(a) - 2) / spread)), len(a))


def exponent(x: Iterable[Any], y: Iterable[Any]) -> Interval:
    """p of the best y = c x^p, with its interval."""
    return steepness(np.log([float(v) for v in x]), np.log([float(v) for v in y]))


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Of the least-squares line through (log x, log y)."""
    pairs = [(np.log(a), np.log(b)) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    if len(pairs) < 2:
        return float("nan")
    a, b = np.array(pairs).T
    return float(np.polyfit(a, b, 1)[0])
