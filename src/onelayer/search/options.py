"""Refusing options that are unknown or contradict each other, before any work."""

from __future__ import annotations

from typing import get_args

import numpy as np

from onelayer.contexts import published
from onelayer.errors import HypothesisError, OptionError
from onelayer.readouts import packed, retrieval
from onelayer.search.problem import Mapping, Problem, Readout

MAX_RANK = 64
#: Readouts of one coordinate.
ON_A_LINE = ("plateaus", "triangular", "bits")


def check_wishes(problem: Problem) -> None:
    """Refuse options that are unknown or contradict each other."""
    mapping, rank, readout = problem.mapping, problem.rank, problem.readout
    if mapping not in get_args(Mapping):
        raise OptionError(
            "memorize",
            f"a mapping among {', '.join(get_args(Mapping))}",
            f"mapping={mapping!r}",
            "Choose one of them.",
        )
    if readout not in get_args(Readout):
        raise OptionError(
            "memorize",
            f"a readout among {', '.join(get_args(Readout))}",
            f"readout={readout!r}",
            "Choose one of them.",
        )
    if rank is not None and (type(rank) is not int or not 1 <= rank <= MAX_RANK):
        needs = f"a whole rank of at least 1 and at most {MAX_RANK}"
        raise OptionError("memorize", needs, f"rank={rank!r}", "Leave it out to have it chosen.")
    if readout in ON_A_LINE and rank is not None and rank > 1:
        raise OptionError(
            readout, "one coordinate, that is rank 1", f"rank={rank} was asked for", 'Use readout="boxes".'
        )
    if problem.default is not None and readout not in ("auto", "table"):
        raise OptionError(
            readout, "a readout that knows what is stored", "a default was given", 'Use readout="table".'
        )
    if mapping == "lattice" and readout not in ("auto", "table", "retrieval", "packed"):
        raise OptionError(
            "lattice",
            "a readout of several coordinates",
            f"readout={readout!r}",
            'Use "table", "retrieval" or "packed".',
        )
    needed = {"retrieval": retrieval.COORDINATES, "packed": packed.COORDINATES}.get(readout, 0)
    if needed and (mapping not in ("auto", "lattice") or (rank or 9) < needed):
        raise OptionError(
            readout,
            f"lattice coordinates, at least {needed} of them",
            f"mapping={mapping!r}, rank={rank}",
            'Use mapping="lattice" and leave the rank out.',
        )
    if readout == "bits" and problem.answers.form.classes is None:
        raise HypothesisError("bits", "classes", "the answers are real numbers", 'Use readout="table".')
    if (readout == "boxes" and mapping == "lattice") or (
        readout == "table" and mapping != "lattice" and (rank or 1) > 1
    ):
        raise OptionError(readout, "other coordinates", f"mapping={mapping!r}", 'Use mapping="lattice".')
    if mapping == "published":
        raise _beyond_floats(problem)
    if mapping == "rank_one" and rank not in (None, 1):
        raise OptionError("rank_one", "rank 1", f"rank={rank} was asked for", "Leave the rank out.")
    if readout == "boxes" and (rank == 1 or mapping == "rank_one"):
        raise OptionError("boxes", "a rank of at least 2", "rank 1 was asked for", 'Use readout="plateaus".')


def _beyond_floats(problem: Problem) -> HypothesisError:
    """The published constants on this data, and why they cannot be weights."""
    s = problem.sequences
    separation = published.hypotheses(s.tokens if s.is_real else s.tokens[:, :, None] + 1.0, s.lengths)
    return HypothesisError(
        "theorem_2",
        f"{published.bits_needed(separation):,} bits of precision on this data",
        f"{problem.dtype} has {np.finfo(problem.dtype).nmant + 1}, and the promised gap is "
        f"10^{published.log10_delta(separation):,.0f}",
        'Run `onelayer theorem` to see it in ball arithmetic, or use mapping="temperature".',
    )
