"""What one layer of linear attention says of a network that was not run: will its answers survive in float16?

With a constant query the layer reads the second moments of the tokens of `encode`. What it says is linear in them,
and it was fitted by one regularised solve to compiled networks whose answers were counted in float16. Its numbers
are in hints.json, written by `python -m benchmarks hints`, with the share of networks that it was right about
without having been fitted to them. It is a guess; `cast` measures.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.measure.encoding import COMPONENTS, KINDS, encode
from onelayer.network import Transformer

Array = NDArray[Any]
FILE = Path(__file__).with_name("hints.json")
#: Left out of what is read: from them the number of parameters could be added up.
HIDDEN = ("size", "log2 size")
READ = [i for i, name in enumerate(COMPONENTS) if name not in HIDDEN]


@dataclass(frozen=True)
class Hint:
    """A guess, and how often such guesses were right."""

    survives: bool
    right: float  # share of networks that it was not fitted to
    networks: int  # how many that were

    def __str__(self) -> str:
        said = "likely to survive" if self.survives else "likely to lose answers"
        return (
            f"{said} in float16 (guessed by one layer of attention from the network's tensors, right for "
            f"{100 * self.right:.0f}% of {self.networks:,} networks); `onelayer cast` counts"
        )


@dataclass(frozen=True)
class Fit:
    """A linear map of standardised second moments, and the networks that it may be asked about."""

    mean: list[float]
    spread: list[float]
    weights: list[float]
    offset: float
    kinds: list[str]  # of tensors that occurred
    largest: int  # parameters of the largest network
    right: float
    networks: int

    def says(self, features: Array) -> float:
        """The share of networks like this one that survive, as a line sees it: above a half means yes."""
        standard = (features - np.array(self.mean)) / np.array(self.spread)
        return float(standard @ np.array(self.weights) + self.offset)

    def write(self, path: Path) -> None:
        entries = asdict(self)
        for name in ("mean", "spread", "weights"):
            entries[name] = [float(f"{x:.7g}") for x in entries[name]]
        path.write_text(json.dumps(entries) + "\n", encoding="utf-8")


def second_moments(tokens: Array) -> Array:
    """What a head with a constant query may sum: products of two components over all tokens, each pair once."""
    seen = tokens[:, READ]
    found: Array = (seen.T @ seen)[np.triu_indices(len(READ))]
    return found


@cache
def read_fit() -> Fit:
    return Fit(**json.loads(FILE.read_text(encoding="utf-8")))


def foretell(network: Transformer) -> Hint | None:
    """A guess about float16; None for networks unlike those that were fitted: larger, or of other tensors."""
    fit = read_fit()
    if network.n_parameters > fit.largest:
        return None
    tokens = encode(network)
    kinds = {KINDS[int(token[: len(KINDS)].argmax())] for token in tokens}
    if not kinds <= set(fit.kinds):
        return None
    return Hint(fit.says(second_moments(tokens)) > 0.5, fit.right, fit.networks)
