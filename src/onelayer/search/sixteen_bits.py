"""What data must be to be stored in 16 bits: numbers of the format, few enough classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError, OptionError, PrecisionError
from onelayer.network.formats import Format
from onelayer.problems.answers import Answers
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]
WIDER = 'Use dtype="float32".'


def refuse_beyond(
    small: Format, sequences: Sequences, answers: Answers, default: Array | None, logits: bool, positions: bool
) -> None:
    """Raise where the format does not hold the data, naming the first place; nothing is rounded for a person."""
    if answers.form.classes is None:
        raise HypothesisError("planes", f"answers that are classes in {small.name}", "they are real numbers", WIDER)
    if len(answers.form.classes) > small.whole:
        needs = f"at most {small.whole:,} classes in {small.name}, whose numbers it holds"
        raise PrecisionError("memorize", needs, f"there are {len(answers.form.classes):,}", WIDER)
    for wish, given in (("a default", default is not None), ("logits", logits)):
        if given:
            raise OptionError("memorize", f"no {wish.split()[-1]} in {small.name}", f"{wish} was asked for", WIDER)
    if not sequences.is_real:
        return
    remedy = f"Round the tokens to {small.name} first: the model then stores what was rounded."
    _refuse_tokens(
        sequences.tokens, small.holds(sequences.tokens), f"tokens that are numbers of {small.name}", remedy
    )
    if positions:  # places are added to tokens, and what is flushed then is no longer told from what is rounded
        tokens = sequences.tokens
        size, least = np.abs(tokens), 2.0 ** (small.lowest + 2)
        needs = f"tokens that are 0 or at least {least:.3g} in {small.name}, where the order matters"
        _refuse_tokens(tokens, (size == 0) | (size >= least), needs, "Set what is so small to 0.")


def _refuse_tokens(tokens: Array, right: Array, needs: str, remedy: str) -> None:
    if right.all():
        return
    i, k, c = np.unravel_index(int(np.argmin(right)), right.shape)
    found = f"sequence {i}, token {k}, component {c} is {float(tokens[i, k, c])!r}"
    raise PrecisionError("memorize", needs, found, remedy)
