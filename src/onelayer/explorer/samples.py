"""The sequences that a page shows: those that the certificate is about, or those of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.measure.gaps import stored_samples
from onelayer.network.weights import Array
from onelayer.problems.sequences import Sequences

if TYPE_CHECKING:
    from onelayer.model import Model

#: Numbers, ids or components of tokens, of all samples of a page; a server gives the others.
MOST_NUMBERS = 1 << 16


@dataclass(frozen=True)
class Samples:
    """Some of the sequences, from the first on."""

    tokens: Array  # [N, n] ids, or [N, n, d]
    lengths: Array | None
    total: int  # of all

    def to_json(self, add: Callable[[Array], dict[str, Any]]) -> dict[str, Any]:
        lengths = None if self.lengths is None else add(self.lengths.astype(np.int32))
        kind = np.int32 if self.tokens.dtype.kind in "iu" else np.float64
        return {"tokens": add(self.tokens.astype(kind)), "lengths": lengths, "total": self.total}

    def rows(self, start: int, stop: int) -> Samples:
        lengths = None if self.lengths is None else self.lengths[start:stop]
        return Samples(self.tokens[start:stop], lengths, self.total)


def samples_of(model: Model, given: Sequences | None) -> Samples:
    """All that are given, or else stored."""
    found = given
    if given is None and model.interface.kind == "answers":  # others store none, or those of a text
        found = stored_samples(model)
    if found is None:
        d = () if model.interface.vocabulary is not None else (model.transformer.token_width,)
        return Samples(np.zeros((0, 0, *d)), None, 0)
    return Samples(np.asarray(found.tokens), found.lengths, found.N)


def some(samples: Samples) -> Samples:
    """As many as a page can carry."""
    each = max(1, int(np.prod(samples.tokens.shape[1:])))
    return samples.rows(0, max(1, MOST_NUMBERS // each))
