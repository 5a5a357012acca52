"""The searched head with a constant query: one context number for the whole sequence.

Statement  with a query bias the logits are beta y_j for every token, so all tokens read the same average.
Gives      N contexts instead of nN; one answer per sequence needs N plateaus; zero tokens are no obstacle.
Rests on   lemma_g, applied to one temperature instead of one per query.
Why        a zero token asks no question in a bias-free head (zero_token); a bias asks it for everyone.
Differs    from Theorem 2 by the query bias.
"""

from __future__ import annotations

import numpy as np

from onelayer.contexts.head import ContextMap, build_head
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.stream import Stream
from onelayer.contexts.temperature import TEMPERATURES
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["shared_query"]


def construct(
    sequences: Sequences, stream: Stream, rank: int, seed: int, attempt: int, per_sequence: bool = False
) -> ContextMap:
    """The attempt-th candidate; with one answer per sequence the coordinates are the contexts alone."""
    rng = np.random.default_rng([seed, rank, attempt, 2])
    draw = stream.draw(rank, rng, attempt, coded=not per_sequence)
    spread, size = float(np.std(draw.keys)), float(np.abs(draw.keys).max())
    beta = TEMPERATURES[attempt // 2 % len(TEMPERATURES)] / (spread if spread > 2.0**-40 * size else size or 1.0)
    return build_head(draw, sequences, beta, shared=True, per_sequence=per_sequence)


@mapping
class SharedQuery(ContextMapping):
    name, order, shares = "shared_query", 2, True

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        return construct(
            wanted.sequences, wanted.stream, wanted.rank, wanted.seed, wanted.attempt, wanted.per_sequence
        )
