"""The data of a certificate, as the checker reads it: tokens or the windows of a stream, and rows of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.interfaces import NextToken
from onelayer.problems import unknown_windows
from onelayer.problems.answers import Answers, in_classes_of
from onelayer.problems.sequences import Sequences
from onelayer.problems.tokens import Text
from onelayer.problems.windows import TextWindows, read_windows

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]
#: Unknown sequences that a model with a default is tried on.
UNKNOWN_INPUTS = 256


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
    return data | _draw_unknown(model, sequences)


def of_text(model: Model, text: Text) -> dict[str, Array]:
    """For every window of a text, the distribution of what follows it; and windows that nothing follows."""
    interface = model.interface_as(NextToken, "of_text")
    wanted = read_windows(interface.encode(text), interface.context, interface.tokens.size)
    data = {
        "stream": wanted.stream[:-1].astype(np.int64),
        "window": np.array([interface.context]),
        "answers": np.asarray(wanted.distributions[:-1], np.float64),
        "which": wanted.which.astype(np.int64),
    }
    unknown = _not_continued(model, wanted)
    if not len(unknown):
        return data
    return data | {"strangers": unknown, "default": np.zeros(interface.tokens.size)}


def _not_continued(model: Model, text: TextWindows) -> Array:
    """The last window, if it occurs once, and if the model knows what is not stored, others that are not: those of
    them that it takes to be followed by nothing."""
    drawn = [text.last[None]] if text.ends else []
    if model.interface.default is not None:
        drawn += unknown_windows.draw(text, UNKNOWN_INPUTS // 2, 0).values()
    if not drawn or model.windows.nothing is None:
        return np.zeros((0, text.context), np.int64)
    windows = np.concatenate(drawn).astype(np.int64)
    classes = model.windows.look_up(model.windows.sums.of_rows(windows))
    return np.asarray(windows[classes == model.windows.nothing])


def _draw_unknown(model: Model, sequences: Sequences) -> dict[str, Array]:
    """Sequences put together of stored tokens at random that get the default, all tokens of them."""
    if model.interface.default is None:
        return {}
    default = np.array(model.interface.default, np.float64)
    rng = np.random.default_rng(0)
    n = sequences.n if sequences.lengths is None else int(sequences.lengths.min())
    at = rng.integers(0, sequences.N, (UNKNOWN_INPUTS, n)), rng.integers(0, n, (UNKNOWN_INPUTS, n))
    tokens = sequences.tokens[at]
    rows = model.rows(Sequences(tokens, None, sequences.vocabulary))
    rejected = (rows == default.astype(rows.dtype)).all(axis=(1, 2))
    if not rejected.any():
        return {}
    kept = tokens[rejected].astype(model.transformer.dtype) if sequences.is_real else tokens[rejected]
    return {"strangers": np.ascontiguousarray(kept), "default": default}
