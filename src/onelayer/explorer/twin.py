"""The trained twin of a race, for the page: where its attention puts the same contexts, and which it has merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onelayer.errors import DataError
from onelayer.explorer.samples import Samples
from onelayer.network.weights import Array

#: Merged pairs that a page lists.
MOST_PAIRS = 200


def read_twin(race: Mapping[str, Any], samples: Samples) -> tuple[dict[str, Any], Array]:
    """What `onelayer race --json` printed about the same sequences: facts, and a coordinate of every token."""
    try:
        trained, merged = race["trained"], race["merged"]
        facts = {name: int(trained[name]) for name in ("right", "answers", "parameters", "steps")}
        pairs = [[*map(_place, (m["a"], m["b"])), float(m["distance"])] for m in merged[:MOST_PAIRS]]
        line = np.array(race["contexts"], np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise _refuse("what `onelayer race DATA --json` prints", f"{error!r:.80} was met in it") from None
    wanted = samples.total, samples.tokens.shape[1]
    if line.shape != wanted or not np.isfinite(line).all():
        found = f"it has contexts of shape {line.shape}, and the sequences are {wanted[0]} of {wanted[1]} tokens"
        raise _refuse("a race on the sequences of the page", found)
    return {**facts, "merged": pairs, "pairs": len(merged)}, line


def _place(place: Any) -> list[int]:
    """Sequence and token."""
    i, k = place
    return [int(i), 0 if k is None else int(k)]


def _refuse(needs: str, found: str) -> DataError:
    return DataError("data", needs, found, "Run `onelayer race` on the same data, and give what it prints.")
