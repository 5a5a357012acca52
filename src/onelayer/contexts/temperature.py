"""The searched head: a random direction and a moderate temperature, one rank-1 softmax head without biases.

Statement  all but finitely many temperatures give different contexts different softmax averages (Lemma G).
Gives      logits beta y_j y_k over y = <v, x>; repeated tokens are allowed; the gap is measured on the data.
Rests on   lemma_g; the direction only has to be injective on the tokens, which a random one is.
Why        the published temperature makes every average equal to the largest level up to 10^-978.
Differs    from Theorem 2 in the constants only: same architecture, beta searched instead of prescribed.
"""

from __future__ import annotations

import numpy as np

from onelayer.contexts.head import ContextMap, build_head
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.stream import Stream
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["temperature"]

#: Temperatures in units of the keys' mean square, tried in turn: warm enough to see all tokens, cold enough to
#: see which.
TEMPERATURES = (1.0, 0.5, 2.0, 0.25)


def construct(sequences: Sequences, stream: Stream, rank: int, seed: int, attempt: int) -> ContextMap:
    """The attempt-th candidate; the same seed gives the same candidates."""
    rng = np.random.default_rng([seed, rank, attempt, 1])
    draw = stream.draw(rank, rng, attempt, coded=True)
    mean_square = float(np.einsum("ij,ij->", draw.keys, draw.keys)) / draw.keys.size  # BLAS would start threads
    beta = TEMPERATURES[attempt // 2 % len(TEMPERATURES)] / (mean_square if mean_square > 0 else 1.0)
    return build_head(draw, sequences, beta, shared=False, per_sequence=False)


@mapping
class Temperature(ContextMapping):
    name, order = "temperature", 1

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        return construct(wanted.sequences, wanted.stream, wanted.rank, wanted.seed, wanted.attempt)
