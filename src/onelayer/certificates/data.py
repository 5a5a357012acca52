"""The data of a certificate, as the checker reads it: tokens or the windows of a stream, and rows of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.interfaces import NextToken
from onelayer.problems.answers import Answers, in_classes_of
from onelayer.problems.sequences import Sequences
from onelayer.problems.tokens import Text
from onelayer.problems.windows import read_windows

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]
#: Unknown sequences that a model with a default is tried on.
STRANGERS = 256


def of_answers(model: Model, sequences: Sequences, answers: Answers) -> dict[str, Array]:
    """The data as the model sees it: tokens in its dtype (or ids), answers as rows of numbers, unknown inputs."""
    tokens = sequences.tokens.astype(model.transformer.dtype, copy=False) if sequences.is_real else sequences.tokens
    rows = in_classes_of(model.form, answers)
    if answers.form.classes is not None and (rows < 0).any():
        unknown = answers.form.classes[int(answers.rows[int(np.argmax(rows[:, 0] < 0)), 0])]
        needs, found = "answers that the model knows", f"{unknown!r} is not one of its classes"
        raise DataError("memorize", needs, found, "Certify its own data.")
    data = {"tokens": np.ascontiguousarray(tokens), "answers": np.ascontiguousarray(rows)}
    if sequences.lengths is not None:
        data["lengths"] = sequences.lengths
    return data | _strangers(model, sequences)


def of_text(interface: NextToken, text: Text) -> dict[str, Array]:
    """For every window of a text, the distribution of what follows it."""
    wanted = read_windows(interface.encode(text), interface.context, interface.tokens.size)
    return {
        "stream": np.ascontiguousarray(wanted.stream[:-1]),
        "window": np.array([interface.context]),
        "answers": np.asarray(wanted.distributions, np.float64),
        "which": np.asarray(wanted.answers[wanted.group], np.int64),
    }


def _strangers(model: Model, sequences: Sequences) -> dict[str, Array]:
    """Sequences put together of stored tokens at random that get the default, all tokens of them."""
    if model.interface.default is None:
        return {}
    default = np.array(model.interface.default, np.float64)
    rng = np.random.default_rng(0)
    n = sequences.n if sequences.lengths is None else int(sequences.lengths.min())
    at = rng.integers(0, sequences.N, (STRANGERS, n)), rng.integers(0, n, (STRANGERS, n))
    tokens = sequences.tokens[at]
    outputs = model.outputs(Sequences(tokens, None, sequences.vocabulary))
    rejected = (outputs == default.astype(outputs.dtype)).all(axis=(1, 2))
    if not rejected.any():
        return {}
    kept = tokens[rejected].astype(model.transformer.dtype) if sequences.is_real else tokens[rejected]
    return {"strangers": np.ascontiguousarray(kept), "default": default}
