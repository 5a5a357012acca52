"""Which samples no equivariant network can tell apart: equal tokens in equal company, compared exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.graph import Network

if TYPE_CHECKING:
    from onelayer_checker.core.samples import Data


def same_class(data: Data, network: Network, scope: str, i: Array, k: Array, j: Array, l: Array) -> Array:
    """Whether token k of sequence i and token l of sequence j are in one class, for arrays of such pairs."""
    ordered = "embedding.positions" in network.tensors
    tokens = data.tokens if data.tokens.ndim == 3 else data.tokens[:, :, None]
    result = np.ones(len(i), bool)
    if scope != "sequence":
        result &= (tokens[i, k] == tokens[j, l]).all(axis=1)
        if ordered:
            result &= k == l
    result &= data.lengths[i] == data.lengths[j]
    for p in np.flatnonzero(result & (i != j)):
        n = data.lengths[i[p]]
        x, y = tokens[i[p], :n], tokens[j[p], :n]
        result[p] = np.array_equal(x, y) if ordered else np.array_equal(_sorted(x), _sorted(y))
    return result


def _sorted(x: Array) -> Array:
    """Rows in lexicographic order: equal if and only if the multisets of rows are; -0 and 0 are one number."""
    return x[np.lexsort(x.T[::-1])]
