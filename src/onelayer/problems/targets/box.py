"""Where a bound on the error of an approximation holds: a box, or the cells in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.equality import EqualByContent

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Box(EqualByContent):
    """Where to look: components in [low, high], within ``radius`` of one of the ``centres`` if there are any."""

    n: int
    d: int
    low: Any  # a number, or one for each component
    high: Any
    dtype: np.dtype[Any]
    centres: Array
    radius: float = np.inf
    distinct: bool = False  # tokens of one sequence must lie in different cells

    @staticmethod
    def of_sides(n: int, sides: tuple[tuple[float, float], ...], dtype: np.dtype[Any]) -> Box:
        """All of a box, with an end of its own for each component only where they differ."""
        ends: Any = sides[0] if len(set(sides)) == 1 else [np.array(end) for end in zip(*sides, strict=True)]
        return Box(n, len(sides), ends[0], ends[1], dtype, np.empty(0))

    @property
    def sides(self) -> tuple[tuple[float, float], ...]:
        """Low and high of each component."""
        ends = (np.broadcast_to(end, self.d).tolist() for end in (self.low, self.high))
        return tuple((float(a), float(b)) for a, b in zip(*ends, strict=True))

    def admit(self, X: Array) -> Array:
        """The nearest sequences that are allowed, and numbers of the dtype."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        if self.centres.size:
            middles = (self.centres[1:] + self.centres[:-1]) / 2
            near = self.centres[np.searchsorted(middles, X)]
            low, high = np.maximum(low, near - self.radius), np.minimum(high, near + self.radius)
        rounded = np.clip(X, low, high).astype(self.dtype)
        rounded = np.where(rounded < low, np.nextafter(rounded, self.dtype.type(np.inf)), rounded)
        return np.where(rounded > high, np.nextafter(rounded, self.dtype.type(-np.inf)), rounded)

    def holds(self, X: Array) -> Array:
        """Which of the admitted sequences count, [B]."""
        if not self.distinct:
            return np.ones(len(X), bool)
        cells = np.searchsorted((self.centres[1:] + self.centres[:-1]) / 2, X)
        same = (cells[:, :, None] == cells[:, None]).all(axis=3)
        return np.asarray(same.sum(axis=(1, 2)) == self.n)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Half of them anywhere, half with components at the ends of cells or equal to each other."""
        X = rng.uniform(self.low, self.high, (count, self.n, self.d))
        half = X[count // 2 :]
        chosen = rng.random(half.shape) < 0.5
        if self.centres.size:
            ends = np.concatenate([self.centres - self.radius, self.centres + self.radius])
            half[chosen] = rng.choice(ends, int(chosen.sum()))
        else:
            upper = rng.random(half.shape) < 0.5
            half[chosen] = np.where(upper, self.high, np.broadcast_to(self.low, half.shape))[chosen]
        same = rng.random(len(half)) < 0.2
        half[same] = half[same][:, :1]
        return self.admit(X)

    def to_json(self) -> dict[str, Any]:
        centres = {"dtype": str(self.centres.dtype), "values": [float(x).hex() for x in self.centres]}
        numbers: dict[str, Any] = {"radius": float(self.radius).hex()}
        for name in ("low", "high"):
            end = np.asarray(getattr(self, name), np.float64)
            numbers[name] = [float(x).hex() for x in end] if end.ndim else float(end).hex()
        shape = {"n": self.n, "d": self.d, "dtype": str(self.dtype), "distinct": self.distinct}
        return shape | numbers | {"centres": centres}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Box:
        radius = float.fromhex(entry["radius"])
        low, high = (
            np.array([float.fromhex(x) for x in entry[name]])
            if isinstance(entry[name], list)
            else float.fromhex(entry[name])
            for name in ("low", "high")
        )
        listed = [float.fromhex(x) for x in entry["centres"]["values"]]
        centres = np.array(listed, np.dtype(entry["centres"]["dtype"]))
        return Box(entry["n"], entry["d"], low, high, np.dtype(entry["dtype"]), centres, radius, entry["distinct"])
