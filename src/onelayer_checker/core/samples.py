"""The data of a certificate: sequences and their answers, checked against the specification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.files import Malformed, shown
from onelayer_checker.core.graph import Network


@dataclass(frozen=True, eq=False)
class Data:
    tokens: Array
    lengths: Array
    answers: Array
    which: Array  # the row of answers that each sample has
    strangers: Data | None = None  # sequences that are not stored, and the default as their only answer

    def take(self, sequences: Array) -> Data:
        """Only these sequences, with their answers; and of the strangers, these."""
        which = self.which
        if len(which) == len(self.lengths):
            which = which[sequences]
        elif which.size:  # an answer per token
            start = np.cumsum(self.lengths) - self.lengths
            which = np.concatenate([which[start[i] : start[i] + self.lengths[i]] for i in sequences])
        return Data(self.tokens[sequences], self.lengths[sequences], self.answers, which)


def read_data(tensors: dict[str, Array], network: Network) -> Data:
    """Check the data against the specification and against the network."""
    tokens, rest = _tokens(tensors)
    answers, table = tensors.get("answers"), network.tensors.get("embedding.table")
    optional = {"lengths", "which", "strangers", "default"}
    if answers is None or not set(rest) <= {"answers"} | optional or ("strangers" in rest) != ("default" in rest):
        found = shown(sorted(tensors), 200)
        raise Malformed("data", f"data must hold tokens (or stream and window) and answers, holds {found}")
    if 0 in tokens.shape or 0 in answers.shape or answers.ndim != 2 or answers.dtype != np.float64:
        raise Malformed("data", f"tokens have shape {tokens.shape}, answers {answers.shape} of {answers.dtype}")
    N, n = tokens.shape[:2]
    lengths = _whole(rest.get("lengths", np.full(N, n, np.int64)), (N,), 1, n, "lengths")
    which = rest.get("which", np.arange(len(answers)))
    which = _whole(which, (which.size,), 0, len(answers) - 1, "which")
    if answers.shape[1] not in (1, network.readout.outputs):  # one: a class, which may have an output of its own
        raise Malformed("data", f"answers have {answers.shape[1]} components, the network gives another number")
    strangers = None
    for part, ids in ((tokens, tensors.get("stream", tokens)), *((rest[k],) * 2 for k in rest if k == "strangers")):
        _check_tokens(part, network)
        if table is not None and (ids.min() < 0 or ids.max() >= len(table)):
            raise Malformed("data", f"a token id is outside the table of {len(table)}")
    if "strangers" in rest:
        unknown, default = rest["strangers"], rest["default"]
        if unknown.dtype != tokens.dtype or default.shape != answers.shape[1:] or default.dtype != np.float64:
            raise Malformed("data", "strangers must be like tokens, and the default like an answer")
        full = np.full(len(unknown), unknown.shape[1], np.int64)
        strangers = Data(unknown, full, default[None], np.zeros(0, np.int64))
    return Data(tokens, lengths, answers, which, strangers)


def _tokens(tensors: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The sequences, which may be given as the windows of a stream, and the other tensors."""
    rest = dict(tensors)
    if "tokens" in rest:
        return rest.pop("tokens"), rest
    stream, window = rest.pop("stream", np.zeros(0)), rest.pop("window", np.zeros(0))
    fits = stream.dtype == window.dtype == np.int64 and stream.ndim == 1 and window.shape == (1,)
    if not fits or not 1 <= window[0] <= len(stream):
        raise Malformed("data", "there must be tokens, or a stream of ids and the size of a window of it")
    return np.lib.stride_tricks.sliding_window_view(stream, int(window[0])), rest


def _check_tokens(tokens: Array, network: Network) -> None:
    table, positions = (network.tensors.get(f"embedding.{name}") for name in ("table", "positions"))
    if (table is not None) != (tokens.dtype == np.int64) or tokens.ndim != (2 if table is not None else 3):
        raise Malformed("data", "token ids go with a table, real tokens without one")
    if 0 in tokens.shape or (positions is not None and len(positions) < tokens.shape[1]):
        raise Malformed("data", f"there are fewer positions than the {tokens.shape[1]} tokens of a sequence")
    first = network.tensors.get("embedding.lift")
    if first is not None:
        takes = len(first)
    elif network.feedforward.layers:
        takes = network.feedforward.layers[0].inputs
    else:
        takes = network.tensors["attention.W_Q"].shape[1]
    if table is None and tokens.shape[2] != takes:
        raise Malformed("data", f"tokens have {tokens.shape[2]} components, the network takes {takes}")


def _whole(a: Array, shape: tuple[int, ...], low: int, high: int, name: str) -> Array:
    if a.dtype != np.int64 or a.shape != shape or a.min() < low or a.max() > high:
        raise Malformed("data", f"{name} must be {shape[0]} whole numbers between {low} and {high}")
    return a
