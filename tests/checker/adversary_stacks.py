"""An adversary for whole readouts: cells that are searched for, rows that they emit, and what is carried past them.

Networks are drawn around the edges of the format (adversary_exact.py). Where the readout's answer has radius 0, by
search or densely, every machine must compute exactly that answer, layer by layer.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from onelayer_checker.core.balls import exact
from onelayer_checker.core.graph import build
from onelayer_checker.search.stack import accelerate
from tests.checker.adversary_exact import Edges, Machine
from tests.checker.large import ARITHMETICS

Layers = list[tuple[np.ndarray, np.ndarray]]
MACHINES = 6


def cells(rng: np.random.Generator, edges: Edges, c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Units [c, K, size] and biases [K, size] of a row of cells, and a coordinate in one of them or at an edge."""
    K, size = int(rng.integers(1, 4)), int(rng.choice([2, 2, 2, 2, 8]))
    units, bias = np.zeros((c, K, size)), np.zeros((K, size))
    style = int(rng.integers(4))
    slope, start, width = 1.0, 2.0**edges.bits, float(rng.choice([1, 2]))  # whole numbers around 1/u
    if style == 0:  # anywhere
        slope = float(rng.choice([1, 4, edges.power()]))
        start, width = float(rng.choice([0.0, 1.0, edges.power()])), float(rng.choice([1, 2, 8])) / slope
    elif style == 1:  # a coordinate that is subnormal, or nearly
        slope, start = 2.0 ** -(edges.least + 6), 2.0 ** int(edges.least + rng.integers(-4, 3))
        width = 4 / slope
    elif style == 2:  # far away
        slope, start, width = 1.0, 1.0, 2.0 ** int(edges.most - rng.integers(4, 12))
    for j in range(K):  # on from start + j width to half way to the next
        axis = int(rng.integers(c)) if rng.random() < 0.1 else 0
        units[axis, j, 0], units[axis, j, -1] = slope, -slope
        bias[j, 0], bias[j, -1] = -slope * (start + (j + 0.5) * width), slope * (start + j * width)
        units[axis, j, 1:-1], bias[j, 1:-1] = slope, bias[j, 0]
    if rng.random() < 0.5:  # it reaches to the left without end
        units[:, 0, -1], bias[0, -1] = 0, 0
    t = np.abs(edges.array(1, c, sparse=0.3, kind="one"))
    at = start + (int(rng.integers(0, K + 1)) + float(rng.choice([0, 0.25, 0.5, -0.25]))) * width
    t[0, 0] = abs(float(rng.choice([at, start * 1.5, start + 1, edges.power()], p=[0.7, 0.1, 0.1, 0.1])))
    return units, bias, t


def drawn(rng: np.random.Generator, edges: Edges, c: int) -> tuple[Layers, np.ndarray]:
    """A readout after its first layer, and coordinates on one of its plateaus, or near."""
    units, bias, t = cells(rng, edges, c)
    families, size = int(rng.integers(1, 3)), bias.shape[1]
    units, bias = np.tile(units, (1, families, 1)), np.tile(bias, (families, 1))
    groups, tops = np.full((len(bias), size, 1), -1.0), np.ones(len(bias))
    kind, q, terms = str(rng.choice(["whole", "power", "mixed", "long"])), int(rng.integers(1, 3)), families + 1
    rows, last = edges.array(len(bias), q, sparse=0.3, kind=kind), edges.array(q, sparse=0.5, kind=kind)
    if rng.random() < 0.3:  # as many whole numbers as are added, which add up to about 1/u
        part = float(-(-(2**edges.bits + int(rng.integers(-1, 2))) // terms))
        rows, last = np.full_like(rows, part), np.full_like(last, part)
    if rng.random() < 0.5:  # a group of another kind, which carries a number past the cells
        carry, row = np.zeros((c, 1, size)), edges.array(1, q, sparse=0.3)
        factor = np.zeros((1, size, 1))
        carry[0, 0, 0], factor[0, 0, 0] = 1 / float(t[0, 0] or 1), edges.number("power")
        if rng.random() < 0.5:  # a subnormal number that meets a large one
            factor[0, 0, 0], row = (
                2.0 ** int(-2 - edges.least - rng.integers(0, 9)),
                row * 0 + 2.0 ** (edges.least - 1),
            )
            rows *= 0
        units, bias = np.concatenate([units, carry], axis=1), np.concatenate([bias, np.zeros((1, size))])
        groups, tops = np.concatenate([groups, factor]), np.append(tops, edges.array(1, sparse=0.8))
        rows = np.concatenate([rows, row])
    layers = [(units.reshape(c, -1), bias.ravel()), (groups, tops), (rows, last)]
    if rng.random() < 0.3:
        layers.append((edges.array(q, q, sparse=0.5, kind="power"), edges.array(q, sparse=0.8, kind=kind)))
    if edges.name == "float32":
        with np.errstate(over="ignore"):
            layers = [tuple(a.astype(np.float32).astype(np.float64) for a in layer) for layer in layers]
            t = t.astype(np.float32).astype(np.float64)
    return layers, t


def computed(machine: Machine, layers: Layers, t: np.ndarray) -> list[Fraction]:
    """What one machine makes of the coordinates, every stored number a number of the format."""
    x = [Fraction(float(a)) for a in t]
    for i, (W, b) in enumerate(layers):
        W = W.reshape(-1, *W.shape[-2:])
        g, a, z = W.shape
        y = []
        for k in range(g * z):
            inputs = x[k // z * a : k // z * a + a]
            pairs = [(v, Fraction(float(w))) for v, w in zip(inputs, W[k // z, :, k % z], strict=True)]
            y.append(machine.sum(pairs, [Fraction(float(b[k]))]))
        x = [max(v, Fraction(0)) for v in y] if i + 1 < len(layers) else y
    return x


def network(layers: Layers, dtype: str, c: int):
    """A network of which only the readout matters."""
    attention = {f"attention.W_{name}": np.zeros((1, c, 1)) for name in "QKV"} | {
        "attention.W_O": np.zeros((1, 1, c))
    }
    readout = {"readout.0.weight": np.eye(c), "readout.0.bias": np.zeros(c)}
    for i, (W, b) in enumerate(layers, start=1):
        readout |= {f"readout.{i}.weight": W, f"readout.{i}.bias": b}
    return build({name: a.astype(dtype) for name, a in (attention | readout).items()})


def check_readouts(name: str, rounds: int) -> Counter:
    """How many readouts had an exact answer, by search and densely."""
    rng = np.random.default_rng([31, len(name)])
    A, edges, seen = ARITHMETICS[name], Edges(name, rng), Counter()
    for _ in range(rounds):
        c = int(rng.integers(1, 3))
        layers, t = drawn(rng, edges, c)
        if not all(np.isfinite(a).all() for layer in layers for a in layer):
            continue
        plain = network(layers, "float32" if name == "float32" else "float64", c)
        fast = accelerate(plain)
        with np.errstate(all="ignore"):
            found = {"search": fast.readout.apply(exact(t), A), "dense": plain.readout.apply(exact(t), A)}
        seen.update(way for way, y in found.items() if (y.r == 0).any())
        for _ in range((1 if name == "real" else MACHINES) if any((y.r == 0).any() for y in found.values()) else 0):
            values = computed(Machine(name, rng), layers, t[0])
            for way, y in found.items():
                for k in np.flatnonzero(y.r[0] == 0):
                    assert values[k] == Fraction(float(y.m[0, k])), (
                        way,
                        name,
                        float(values[k]),
                        y.m[0, k],
                        layers,
                        t,
                    )
    return seen
