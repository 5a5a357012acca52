"""What seeds say together: means, ratios and shares with 95% confidence intervals, and comparisons pair by pair.

Differences have Student's interval; ratios have it on the scale of logarithms (`geometric`), where it cannot reach
below zero; counts of successes have Wilson's (`share`), which is not empty at 0 or at all. The unit of an interval
is the seed: rows of the same seed are averaged first (`interval_of`, `geometric_of`). A value that no mean can hold
(none, not a number, a logarithm of zero) is left out, and counted: what is printed says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onelayer.lab.experiment import FEWEST_SEEDS, Row

#: Student's t, two-sided 95%, for 1, 2, ... degrees of freedom; beyond, a series around the normal quantile.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
NORMAL = 1.959964
#: Relative: what is less apart is equal.
ROUNDING = 1e-9
#: A factor from which on its size says nothing more.
FAR = 100.0


def short(value: float, digits: int) -> str:
    """This many digits, and all of those before the point: no powers of ten where a person would write none."""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def student(degrees: int) -> float:
    """The quantile of Student's t, two-sided 95%."""
    if degrees <= len(STUDENT):
        return STUDENT[degrees - 1]
    z = NORMAL  # Cornish and Fisher; off by less than 1e-3 from 15 degrees on
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def _dropped(count: int) -> str:
    return f" ({count} left out)" if count else ""


@dataclass(frozen=True)
class Interval:
    """A mean of ``count`` values, and where the true one lies with 95% confidence; unknown for a single value.

    Unknown is NaN, with which every comparison is false: a single seed is never clearly better.
    """

    mean: float
    half: float
    count: int
    dropped: int = 0  # values that are no numbers

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def __str__(self) -> str:
        if self.count < 2:
            return short(self.mean, 4) + _dropped(self.dropped)
        half = self.half if not self.half <= ROUNDING * abs(self.mean) else 0.0
        return f"{short(self.mean, 4)} ± {short(half, 2)}{_dropped(self.dropped)}"


def interval(values: Iterable[Any]) -> Interval:
    given = [math.nan if value is None else float(value) for value in values]
    x = np.array([value for value in given if math.isfinite(value)])
    dropped = len(given) - len(x)
    if len(x) < 2:
        return Interval(float(x.mean()) if len(x) else math.nan, math.nan, len(x), dropped)
    half = student(len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return Interval(float(x.mean()), float(half), len(x), dropped)


def by_seed(rows: Iterable[Row], value: str | Callable[[Row], Any]) -> dict[Any, list[float]]:
    """The values of the rows of each seed; rows without a seed stand alone. What is no number is not a number."""
    found: dict[Any, list[float]] = {}
    for index, row in enumerate(rows):
        given = row.get(value) if isinstance(value, str) else value(row)
        seed = row.get("seed", ("alone", index))
        found.setdefault(seed, []).append(math.nan if given is None else float(given))
    return found


def _means(of_seeds: Iterable[list[float]]) -> tuple[list[float], int]:
    """The mean of each seed that has numbers, and how many values are none."""
    numbers, dropped = [], 0
    for values in of_seeds:
        finite = [value for value in values if math.isfinite(value)]
        dropped += len(values) - len(finite)
        numbers += [sum(finite) / len(finite)] if finite else []
    return numbers, dropped


def interval_of(rows: Iterable[Row], value: str | Callable[[Row], Any]) -> Interval:
    """The interval of a value over seeds: several rows of a seed are not independent, and count as their mean."""
    means, dropped = _means(by_seed(rows, value).values())
    return replace(interval(means), dropped=dropped)


def _groups(rows: list[Row], by: str | Callable[[Row], Any], value: str) -> dict[Any, list[Row]]:
    """The rows of each group, groups in order; a group that has no value at all is not there."""
    key = (lambda row: row[by]) if isinstance(by, str) else by
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {
        group: groups[group] for group in sorted(groups) if any(r.get(value) is not None for r in groups[group])
    }


def interval_by_group(rows: list[Row], by: str | Callable[[Row], Any], value: str) -> dict[Any, Interval]:
    """The interval of a value over the seeds of each group, groups in order."""
    return {group: interval_of(some, value) for group, some in _groups(rows, by, value).items()}


@dataclass(frozen=True)
class Factor:
    """A geometric mean, and the factor within which the true one lies with 95% confidence."""

    mean: float
    factor: float
    count: int
    dropped: int = 0  # values that have no logarithm

    @property
    def low(self) -> float:
        return self.mean / self.factor

    @property
    def high(self) -> float:
        return self.mean * self.factor

    def __str__(self) -> str:
        if self.count < 2:
            return f"{self.mean:.3g}{_dropped(self.dropped)}"
        if self.factor > FAR:
            return f"{self.mean:.3g} (within more than a factor of {FAR:g}){_dropped(self.dropped)}"
        if self.factor - 1 <= ROUNDING:
            return f"{self.mean:.3g} (the same for all){_dropped(self.dropped)}"
        near = f"{100 * (self.factor - 1):.2g}%" if self.factor < 1.1 else f"a factor of {self.factor:.3g}"
        return f"{self.mean:.3g} (within {near}){_dropped(self.dropped)}"


def geometric(values: Iterable[Any]) -> Factor:
    """For positive numbers that spread over orders of magnitude, and for ratios."""
    given = [math.nan if value is None else float(value) for value in values]
    found = interval(math.log(value) if value > 0 else math.nan for value in given)
    return Factor(math.exp(found.mean), math.exp(min(found.half, 700.0)), found.count, found.dropped)


def geometric_of(rows: Iterable[Row], value: str | Callable[[Row], Any]) -> Factor:
    """The geometric mean of a value over seeds, of each its own geometric mean."""
    logs = ([math.log(v) if v > 0 else math.nan for v in values] for values in by_seed(rows, value).values())
    means, dropped = _means(logs)
    return replace(geometric(map(math.exp, means)), dropped=dropped)


def factors(rows: list[Row], by: str, value: str) -> dict[Any, Factor]:
    """Geometric means over the seeds of each group, groups in order."""
    return {group: geometric_of(some, value) for group, some in _groups(rows, by, value).items()}


@dataclass(frozen=True)
class Share:
    """Successes of trials, and where their probability lies with 95% confidence (Wilson)."""

    successes: int
    trials: int

    @property
    def mean(self) -> float:
        return self.successes / self.trials if self.trials else math.nan

    @property
    def low(self) -> float:
        return self._end(-1)

    @property
    def high(self) -> float:
        return self._end(1)

    def _end(self, sign: int) -> float:
        if not self.trials:
            return math.nan
        p, t, z = self.mean, self.trials, NORMAL
        found = p + z**2 / (2 * t) + sign * z * math.sqrt(p * (1 - p) / t + z**2 / (4 * t**2))
        return min(1.0, max(0.0, found / (1 + z**2 / t)))

    def __str__(self) -> str:
        low, high = 100 * self.low, 100 * self.high
        digits = 0 if f"{low:.0f}" != f"{high:.0f}" else 1
        return f"{self.successes} of {self.trials} ({low:.{digits}f} to {high:.{digits}f}%)"


def share(happened: Iterable[Any]) -> Share:
    """Of yes and no, one a run: answers of one run are not independent, and are no trials."""
    found = [bool(value) for value in happened]
    return Share(sum(found), len(found))


def tally(words: Iterable[Any]) -> str:
    """How often each occurs, the most frequent first."""
    found = Counter("not recorded" if word is None else str(word) for word in words)
    return ", ".join(f"{word} {many}" for word, many in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True)
class Paired:
    """One kind of model against another on the same data and seed; ``missing`` seeds have only one of them."""

    found: Interval | Factor
    missing: int

    @property
    def above(self) -> bool:
        """Clearly: the whole interval, of enough pairs, lies above what would be no difference."""
        return self.found.count >= FEWEST_SEEDS and self.found.low > self._equal

    @property
    def below(self) -> bool:
        return self.found.count >= FEWEST_SEEDS and self.found.high < self._equal

    @property
    def _equal(self) -> float:
        return 1.0 if isinstance(self.found, Factor) else 0.0

    def __str__(self) -> str:
        return f"{self.found}{f', {self.missing} without a partner' if self.missing else ''}"


def paired(first: dict[Any, Any], second: dict[Any, Any], ratio: bool = False) -> Paired:
    """first - second, or first / second, key by key (a key is a seed, or a case and a seed)."""
    both = [key for key in first if key in second]
    missing = len(first) + len(second) - 2 * len(both)
    if ratio:
        return Paired(geometric(_quotient(first[key], second[key]) for key in both), missing)
    pairs = ((first[key], second[key]) for key in both)
    return Paired(interval(None if a is None or b is None else a - b for a, b in pairs), missing)


def over(rows: Iterable[Row], first: str, second: str) -> Paired:
    """One value of a run over another of the same run."""
    return Paired(geometric(_quotient(row[first], row[second]) for row in rows), 0)


def _quotient(a: Any, b: Any) -> float:
    """A zero on either side has no logarithm: the pair is left out and counted."""
    return math.nan if a is None or b is None or b == 0 else float(a) / float(b)


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
    return Interval(found, float(student(len(a) - 2) * np.sqrt((rest**2).sum() / (len(a) - 2) / spread)), len(a))


def exponent(x: Iterable[Any], y: Iterable[Any]) -> Interval:
    """p of the best y = c x^p, with its interval."""
    return steepness(np.log([float(v) for v in x]), np.log([float(v) for v in y]))
