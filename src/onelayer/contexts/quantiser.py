"""Real tokens to 0/1 features: one saturating step per threshold, decided exactly because inputs are exact.

A threshold sits in a gap between two values that the data takes; relu(1 - relu(1 + s*start - s*x)) is exactly 0 up
to `start` and exactly 1 from `start + 1/s` on, in any order of evaluation, since s is a power of two. In a narrow
gap the ramp lies between two neighbouring numbers of the format, and 1 + s*start is a whole number: nothing is
rounded, so that tokens one unit in the last place apart are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.steps import Steps
from onelayer.network import Linear
from onelayer.network.blocks import over_threads
from onelayer.problems.blocks import blocks, column_bounds

Array = NDArray[Any]

#: A ramp takes at most a quarter of a gap of more units in the last place than this, and one of a narrower gap.
LEAST_GAP_IN_ULPS = 32
#: Neighbours on either side of a quantile among which the widest gap is taken.
NEIGHBOURS = 256
#: Quantiles of more numbers than this are those of an evenly spaced sample; on either side of each, this many
#: values of the data are then looked at, or fewer, if all of them together were not a fraction of the sample.
SAMPLE, NEIGHBOURS_OF_MANY = 1 << 19, 1 << 15
#: Components are looked up together while their levels have at most this many combinations: a table in cache.
COMBINATIONS = 1 << 12
#: So few cuts of a component are compared with one by one; more are bisected.
FEW_CUTS = 16
#: Blocks of tokens that are looked through column by column.
COLUMN_BYTES = 1 << 20


@dataclass(frozen=True)
class Quantiser:
    """K steps: step k is exactly 0 while component[k] is at most start[k], exactly 1 from start[k] + 1/slope[k]
    on."""

    d: int
    component: Array
    slope: Array
    start: Array
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        return len(self.component)

    def steps(self, carried: int) -> Steps:
        """From d components, and ``carried`` more channels that are passed on, to K steps and those channels."""
        bias = (1.0 + self.slope * self.start).astype(self.dtype)
        passed = np.eye(self.d + carried, carried, -self.d, dtype=self.dtype)
        return Steps(self.component, self.slope.astype(self.dtype), bias, passed)

    def features(self, tokens: Array, codes: Linear) -> Array:
        """codes(steps(tokens)) for tokens [T, d] that lie on no ramp, on every core; whole numbers are exact."""
        out = np.empty((len(tokens), codes.width), codes.weight.dtype)
        lookups = self._lookups(codes)

        def run(rows: Any) -> None:
            columns = np.ascontiguousarray(tokens[rows].T)
            out[rows] = lookups[0](columns)
            for lookup in lookups[1:]:
                out[rows] += lookup(columns)

        over_threads(run, [slice(a, a + 16384) for a in range(0, len(tokens), 16384)])
        return out

    def marks(self, tokens: Array) -> Array:
        """[T] a hash of the steps of each token, a whole number below 2^53."""
        codes = np.random.default_rng(0).integers(0, 1 << 53, (self.count, 1)) / max(1, self.count)
        return self.features(tokens, Linear(np.rint(codes), np.zeros(1)))[:, 0]

    def levels(self, tokens: Array) -> Array:
        """[T, d] how many steps of each component are reached."""
        found = np.zeros(tokens.shape, np.int32)
        for i in np.unique(self.component):
            found[:, i] = np.searchsorted(self.start[self.component == i].astype(self.dtype), tokens[:, i])
        return found

    def _lookups(self, codes: Linear) -> list[_Lookup]:
        """Tables for groups of components; the first one holds the bias, too."""
        found: list[_Lookup] = []
        for i in np.unique(self.component):
            steps = self.component == i
            levels = np.concatenate(
                [np.zeros((1, codes.width)), np.cumsum(codes.weight[steps], axis=0, dtype=float)]
            )
            cuts = self.start[steps].astype(self.dtype)
            if found and len(found[-1].table) * len(levels) <= COMBINATIONS:
                found[-1] = found[-1].join(int(i), cuts, levels)
            else:
                first = codes.bias if not found else np.zeros(codes.width)
                found.append(_Lookup([], first[None].astype(np.float64)).join(int(i), cuts, levels))
        return [_Lookup(lookup.cuts, lookup.table.astype(codes.weight.dtype)) for lookup in found]


@dataclass(frozen=True)
class _Lookup:
    """The part of a code that a few components decide, by the combination of their levels."""

    cuts: list[tuple[int, Array]]  # components, and where their steps lie
    table: Array  # [combinations, s]

    def join(self, component: int, cuts: Array, levels: Array) -> _Lookup:
        """With one more component, whose levels [L, s] add to the code."""
        table = (self.table[:, None] + levels).reshape(-1, levels.shape[1])
        return _Lookup([*self.cuts, (component, cuts)], table)

    def __call__(self, columns: Array) -> Array:
        """Parts [T, s] for components [d, T]."""
        index = np.zeros(columns.shape[1], np.min_scalar_type(len(self.table)))
        for i, cuts in self.cuts:
            index *= index.dtype.type(len(cuts) + 1)
            if len(cuts) > FEW_CUTS:
                index += np.searchsorted(cuts, columns[i]).astype(index.dtype)
                continue
            level = np.zeros(len(index), np.uint8)
            for cut in cuts:
                level += columns[i] > cut
            index += level
        part: Array = self.table.take(index, axis=0)
        return part


def quantise(tokens: Array, levels: int, dtype: np.dtype[Any], used: Array | None = None) -> Quantiser:
    """At most ``levels`` levels for each component of tokens [T, d], at quantiles, each cut in a wide gap.

    ``used`` are the tokens whose quantiles count; any others repeat some of them.
    """
    d, T = tokens.shape[1], len(tokens) if used is None else len(used)
    cuts: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0))] * d
    many = T * d > SAMPLE
    windows = _windows(tokens, used, levels) if many else []
    near = _values_within(tokens, windows) if many else []

    def run(component: Any) -> None:
        i = component.start
        if many:
            cuts[i] = _cuts_within(near[i], *windows[i])
        else:
            cuts[i] = _cuts(np.sort(tokens[:, i] if used is None else tokens[used, i]), levels)

    over_threads(run, [slice(i, i + 1) for i in range(d)])
    if not any(len(low) for low, _ in cuts):  # all tokens are one: a step that is 0 for it
        top = 2.0 * float(np.abs(tokens[:, 0]).max()) + 1.0
        return Quantiser(d, np.zeros(2, np.intp), np.ones(2), np.full(2, top), dtype)
    low, high = (np.concatenate([cut[side] for cut in cuts]).astype(np.float64) for side in (0, 1))
    component = np.repeat(np.arange(d), [len(cut[0]) for cut in cuts])
    return _with_cuts(d, component, *_ramps(low, high, dtype), dtype)


def told_apart(quantiser: Quantiser, tokens: Array, used: Array | None) -> Quantiser:
    """With further steps, so that any two different tokens [T, d] differ in some step.

    Tokens of equal steps are sorted; where two neighbours first differ, a step ends at the value of the second. If
    two of them first differ in a component, then so do two neighbours between them.
    """
    own = tokens if used is None else tokens[used]
    words = np.unique(own[_alike(quantiser, own)] + 0.0, axis=0)  # no negative zero
    levels = quantiser.levels(words)
    order = np.lexsort((*words.T[::-1], *levels.T))
    words, levels = words[order], levels[order]
    same = np.flatnonzero((levels[1:] == levels[:-1]).all(axis=1))
    if not same.size:
        return quantiser
    component = (words[same] != words[same + 1]).argmax(axis=1)
    high = words[same + 1, component]
    component, high = (x.ravel() for x in np.hsplit(np.unique(np.stack([component, high], axis=1), axis=0), 2))
    high = high.astype(quantiser.dtype)
    below = np.nextafter(high, quantiser.dtype.type(-np.inf)).astype(np.float64)
    slope, start = _ramps(below, high.astype(np.float64), quantiser.dtype)
    component = np.concatenate([quantiser.component, component])
    slope, start = np.concatenate([quantiser.slope, slope]), np.concatenate([quantiser.start, start])
    return _with_cuts(quantiser.d, component, slope, start, quantiser.dtype)


def _alike(quantiser: Quantiser, tokens: Array) -> Array:
    """Which tokens may have the steps of another."""
    _, kind, counts = np.unique(quantiser.marks(tokens), return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[kind] > 1)


def _ramps(low: Array, high: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Slopes and starts of steps between two values each."""
    slope = np.exp2(np.ceil(np.log2(4.0 / (high - low))))
    start = ((low + high) / 2 - 0.5 / slope).astype(dtype).astype(np.float64)
    size = np.maximum(np.abs(low), np.abs(high)).astype(dtype)
    narrow = high - low <= LEAST_GAP_IN_ULPS * np.spacing(size).astype(np.float64)
    below = np.nextafter(high.astype(dtype), dtype.type(-np.inf)).astype(np.float64)
    return np.where(narrow, 1.0 / (high - below), slope), np.where(narrow, below, start)


def _with_cuts(d: int, component: Array, slope: Array, start: Array, dtype: np.dtype[Any]) -> Quantiser:
    """Steps in the order of components, and along each of them."""
    component = component.astype(np.intp)
    order = np.lexsort((start, component))
    if len(order) == 1:
        order = np.zeros(2, np.intp)  # a lone step looks like a cell to a checker
    return Quantiser(d, component[order], slope[order], start[order], dtype)


def thin_tokens(tokens: Array, used: Array | None, step: int) -> Array:
    """Every step-th of the tokens that are used."""
    return tokens[::step] if used is None else tokens[used[::step]]


def _windows(tokens: Array, used: Array | None, levels: int) -> list[tuple[Array, Array]]:
    """Where to look for gaps in each component, judged by a sample; the extremes always belong to it."""
    d, T = tokens.shape[1], len(tokens) if used is None else len(used)
    sample = thin_tokens(tokens, used, -(-T * d // SAMPLE))
    low, high = column_bounds(tokens)
    sample = np.concatenate([low[None], sample, high[None]])
    neighbours = min(NEIGHBOURS_OF_MANY, SAMPLE // (4 * d * levels))
    reach = max(1, min(len(sample) // (2 * levels), -(-neighbours * len(sample) // T)))
    return [_around_quantiles(np.sort(column), levels, reach) for column in sample.T]


def _around_quantiles(sample: Array, levels: int, reach: int) -> tuple[Array, Array]:
    """Two values of the sorted sample around each quantile, this many places before and after it."""
    S = len(sample)
    quantiles = np.arange(1, levels) * S // levels
    low, high = sample[np.maximum(quantiles - reach, 0)], sample[np.minimum(quantiles + reach, S - 1)]
    distinct = sample[np.append(True, sample[1:] != sample[:-1])]
    repeated = np.searchsorted(distinct, low[low == high])  # only one value near here: its ends, as in `_widest`
    before, after = np.maximum(repeated - 1, 0), np.minimum(repeated + 1, len(distinct) - 1)
    lows = np.concatenate([low[low < high], distinct[before], distinct[repeated]])
    highs = np.concatenate([high[low < high], distinct[repeated], distinct[after]])
    kept = lows < highs
    order = np.argsort(lows[kept], kind="stable")
    return lows[kept][order], highs[kept][order]


def _values_within(tokens: Array, windows: list[tuple[Array, Array]]) -> list[Array]:
    """The distinct values of each component that lie in one of its windows: one pass, block by block."""
    found: list[list[Array]] = [[] for _ in windows]

    def run(rows: Any) -> None:
        columns = np.ascontiguousarray(tokens[rows].T)
        for i, (lows, highs) in enumerate(windows):
            if len(lows):
                found[i].append(columns[i][_inside(columns[i], lows, highs)])

    over_threads(run, list(blocks(tokens, COLUMN_BYTES)))
    return [np.unique(np.concatenate(parts)) if parts else np.empty(0) for parts in found]


def _inside(column: Array, lows: Array, highs: Array) -> Array:
    """Which values lie in one of the windows, whose lows are sorted."""
    if len(lows) > FEW_CUTS:
        at = np.searchsorted(lows, column, side="right") - 1
        return np.asarray((at >= 0) & (column <= np.maximum.accumulate(highs)[at]))
    inside = np.zeros(len(column), bool)
    for low, high in zip(lows, highs, strict=True):
        inside |= (column >= low) & (column <= high)
    return inside


def _cuts_within(values: Array, lows: Array, highs: Array) -> tuple[Array, Array]:
    """The two values on either side of the widest gap in each window, for the sorted values in all of them."""
    gaps = np.diff(values)
    starts, stops = np.searchsorted(values, lows), np.searchsorted(values, highs)
    places = [a + int(np.argmax(gaps[a:b])) for a, b in zip(starts, stops, strict=True)]
    return _beside(values, gaps, np.array(places, np.intp))


def _cuts(values: Array, levels: int) -> tuple[Array, Array]:
    """The two values on either side of each cut, for sorted values."""
    T = len(values)
    gaps = np.diff(values)
    if not gaps.any():
        return values[:0], values[:0]
    quantiles = np.arange(1, levels) * T // levels
    reach = min(NEIGHBOURS, max(1, T // (2 * levels)))
    places = np.arange(T - 1) if levels >= T else _widest(gaps, quantiles, reach)
    return _beside(values, gaps, places)


def _beside(values: Array, gaps: Array, places: Array) -> tuple[Array, Array]:
    """What lies on either side of those gaps that are gaps."""
    places = np.unique(places[gaps[places] > 0])
    return values[places], values[places + 1]


def _widest(gaps: Array, around: Array, reach: int) -> Array:
    """Index of the widest gap within ``reach`` of each place; the whole line where values repeat there."""
    window = np.clip(around[:, None] + np.arange(-reach, reach), 0, len(gaps) - 1)
    best: Array = window[np.arange(len(around)), gaps[window].argmax(axis=1)]
    flat = gaps[best] == 0  # only one value near here: take its ends, which are the nearest real gaps
    if flat.any():
        real = np.flatnonzero(gaps)
        after = np.searchsorted(real, best[flat])
        both = np.concatenate([real[np.maximum(after - 1, 0)], real[np.minimum(after, len(real) - 1)]])
        best = np.concatenate([best[~flat], both])
    return best
