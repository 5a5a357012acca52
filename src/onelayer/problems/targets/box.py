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
    low: float
    high: float
    dtype: np.dtype[Any]
    centres: Array
    radius: float = np.inf
    distinct: bool = False  # tokens of one sequence must lie in different cells

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
        ends = np.array([self.low, self.high])
        if self.centres.size:
            ends = np.concatenate([self.centres - self.radius, self.centres + self.radius])
        chosen = rng.random(half.shape) < 0.5
        half[chosen] = rng.choice(ends, int(chosen.sum()))
        same = rng.random(len(half)) < 0.2
        half[same] = half[same][:, :1]
        return self.admit(X)

    def to_json(self) -> dict[str, Any]:
        centres = {"dtype": str(self.centres.dtype), "values": [float(x).hex() for x in self.centres]}
        numbers = {name: float(getattr(self, name)).hex() for name in ("low", "high", "radius")}
        shape = {"n": self.n, "d": self.d, "dtype": str(self.dtype), "distinct": self.distinct}
        return shape | numbers | {"centres": centres}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Box:
        low, high, radius = (float.fromhex(entry[name]) for name in ("low", "high", "radius"))
        listed = [float.fromhex(x) for x in entry["centres"]["values"]]
        centres = np.array(listed, np.dtype(entry["centres"]["dtype"]))
        return Box(entry["n"], entry["d"], low, high, np.dtype(entry["dtype"]), centres, radius, entry["distinct"])
