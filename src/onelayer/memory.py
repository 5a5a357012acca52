"""What `memorize` returns: the weights, the ledger of constants, and answers in the form they were given."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from onelayer.data.answers import AnswerForm
from onelayer.data.blocks import blocks
from onelayer.data.sequences import Sequences, read_sequences
from onelayer.errors import HypothesisError
from onelayer.ledger import Ledger
from onelayer.model.fast import find_search
from onelayer.model.forward import Stacks, forward
from onelayer.model.range import safe_sizes, watched
from onelayer.model.trace import Trace, trace
from onelayer.model.weights import Array, Transformer

Path = Literal["auto", "dense", "fast"]


@dataclass(frozen=True)
class Memory:
    """A one-layer Transformer that reproduces stored answers."""

    transformer: Transformer
    ledger: Ledger
    form: AnswerForm
    vocabulary: tuple[Hashable, ...] | None = None

    @property
    def n_parameters(self) -> int:
        return self.transformer.n_parameters

    @property
    def bits_per_parameter(self) -> float:
        """Information in the stored answers over stored numbers; a float32 cannot hold more than 32."""
        return float(str(self.ledger["stored_bits"])) / self.n_parameters

    def __repr__(self) -> str:
        kind = "reals" if self.form.classes is None else f"{len(self.form.classes)} classes"
        rank, dtype = self.transformer.attention.head_size, self.transformer.dtype
        where = "at the last token" if self.form.scope == "last" else f"per {self.form.scope}"
        return f"<Memory: rank {rank}, {self.n_parameters:,} parameters, {dtype}, {kind} {where}>"

    def predict(self, X: Any, lengths: Any = None, *, path: Path = "auto") -> Any:
        """Answers for sequences, stored or not, in the form in which Y was given.

        An input that is not stored gets the default, if one was given, but for the share of false hits that the
        ledger bounds and measures. Without a default it gets the answer of the stored context whose coordinate is
        nearest (rank 1); 0, the first class, when it lies outside every stored box; any class at all with
        retrieval.

        A token that the vocabulary does not have makes its whole sequence unknown, since attention sees it from
        every other token: all of them get the default. Without a default, an error lists such tokens. The same
        holds for numbers so large that a value of the forward pass leaves the range of the model's dtype: the
        default for all tokens of that sequence, or an error that names it.

        Entries at padding mean nothing. ``path`` chooses between the dense network and a search that gives the same
        answers; "auto" searches where it can.
        """
        sequences = self.ask(X, lengths)
        return self.form.decode(self.outputs(sequences, path), sequences.lengths)

    def outputs(self, sequences: Sequences, path: Path = "auto") -> Array:
        """What the network's last layer gives, [N, n, q]; the default, or an error, where `predict` says so."""
        if path not in get_args(Path):
            raise HypothesisError(
                "memorize", f"a path among {get_args(Path)}", f"path={path!r}", "Choose one of them."
            )
        stacks = None if path == "dense" else self.searches
        if path == "fast" and not any(self.searches.values()):
            raise HypothesisError(
                "plateaus",
                "a readout of enough plateaus for a search to pay off",
                "this model's readout is small or of another kind",
                'Use path="auto" or path="dense".',
            )
        far = self._far(sequences)
        if not far.any():
            out = forward(self.transformer, sequences.tokens, sequences.lengths, stacks)
            return self._settled(out, sequences)
        watching = self._watched(sequences, far)
        out = np.empty((sequences.N, *watching.shape[1:]), watching.dtype)
        out[far] = watching
        if not far.all():
            near, lengths = ~far, sequences.lengths
            lengths = None if lengths is None else lengths[near]
            out[near] = forward(self.transformer, sequences.tokens[near], lengths, stacks)
        return self._settled(out, sequences)

    def answers(self, outputs: Any, sequences: Sequences) -> Any:
        """Answers from what an exported model computed for sequences that `ask` read, as `predict` gives them."""
        out, far = np.array(outputs), self._far(sequences)
        if far.any():
            out[far] = np.where(np.isfinite(self._watched(sequences, far)), out[far], np.nan)
        return self.form.decode(self._settled(out, sequences), sequences.lengths)

    def _watched(self, sequences: Sequences, some: Array) -> Array:
        """Outputs of some sequences, not a number for those of which some value is not finite."""
        lengths = None if sequences.lengths is None else sequences.lengths[some]
        out, finite = watched(self.transformer, sequences.tokens[some], lengths)
        return np.where(finite[:, None, None], out, np.nan).astype(out.dtype)

    def _far(self, sequences: Sequences) -> Array:
        """[N] Which sequences are too large for it to be sure that they do not overflow."""
        far = np.zeros(sequences.N, bool)
        if not sequences.is_real:
            return far
        low, high = sequences.low, sequences.high
        if low is None or high is None or (np.maximum(np.abs(low), np.abs(high)) > self._safe_sizes).any():
            for rows in blocks(sequences.tokens):
                far[rows] = np.any(np.abs(sequences.tokens[rows]) > self._safe_sizes, axis=(1, 2))
        return far

    @cached_property
    def _safe_sizes(self) -> Array:
        return safe_sizes(self.transformer)

    def _settled(self, out: Array, sequences: Sequences) -> Array:
        """The default for sequences that have no answer, or an error."""
        finite = np.isfinite(out)
        valid = sequences.valid()
        bad = np.zeros(sequences.N, bool) if sequences.unknown is None else sequences.unknown.copy()
        if not finite.all():
            lost = np.any(~finite, axis=2)
            bad |= np.any(lost if valid is None else lost & valid, axis=1)
        if bad.any():
            if "default" not in self.ledger:
                raise self._out_of_range(sequences, int(np.argmax(bad)))
            out[bad] = np.array(self.ledger["default"], out.dtype)
        return out

    def _out_of_range(self, sequences: Sequences, i: int) -> HypothesisError:
        """Names the component that is furthest beyond what is safe, of a sequence that overflows."""
        needs = f"inputs for which no value of the forward pass leaves the range of {self.transformer.dtype}"
        found = f"sequence {i} has one that does"
        if sequences.is_real:
            length = sequences.n if sequences.lengths is None else int(sequences.lengths[i])
            with np.errstate(all="ignore"):
                beyond = np.abs(sequences.tokens[i, :length].astype(np.float64)) / self._safe_sizes
            k, c = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            found = f"sequence {i}, token {k}, component {c} is {float(sequences.tokens[i, k, c]):.6g}"
            found += f", and that component is safe up to {self._safe_sizes[c]:.3g}"
        remedy = "Rescale that sequence or leave it out, or memorise with default=, which it then gets."
        return HypothesisError("data", needs, found, remedy)

    def trace(self, X: Any, lengths: Any = None) -> Trace:
        """Run a small batch and keep every intermediate value."""
        sequences = self.read(X, lengths)
        with np.errstate(all="ignore"):  # a trace may show where a value overflows
            return trace(self.transformer, sequences.tokens, sequences.lengths)

    @cached_property
    def searches(self) -> Stacks:
        return {
            "feedforward": find_search(self.transformer.feedforward),
            "readout": find_search(self.transformer.readout),
        }

    @cached_property
    def _index(self) -> dict[Hashable, int] | None:
        return None if self.vocabulary is None else {token: i for i, token in enumerate(self.vocabulary)}

    def ask(self, X: Any, lengths: Any = None) -> Sequences:
        """As `read`; but with a default, sequences with unseen tokens are not refused, only marked as unknown."""
        return self._read(X, lengths, "mark" if "default" in self.ledger else "refuse")

    def read(self, X: Any, lengths: Any = None) -> Sequences:
        """Check inputs against what the model knows: token width, vocabulary, number of places."""
        return self._read(X, lengths, "refuse")

    def _read(self, X: Any, lengths: Any, unseen: Literal["refuse", "mark"]) -> Sequences:
        sequences = read_sequences(X, lengths, self._index, real=self.vocabulary is None, unseen=unseen)
        model = self.transformer
        if self.vocabulary is None and sequences.d != model.token_width:
            raise HypothesisError(
                "data",
                f"tokens of {model.token_width} components, as memorised",
                f"X has tokens of {sequences.d}",
                "Give X as it was given to memorize.",
            )
        places = None if model.embedding is None else model.embedding.positions
        if places is not None and sequences.n > len(places):
            raise HypothesisError(
                "positions",
                f"sequences of at most {len(places)} tokens, as memorised",
                f"X has {sequences.n} places",
                "Shorten X, or memorise again with longer sequences.",
            )
        return sequences
