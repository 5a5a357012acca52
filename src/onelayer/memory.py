"""What `memorize` returns: the weights, the ledger of constants, and answers in the form they were given."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from onelayer.data.answers import AnswerForm
from onelayer.data.sequences import Sequences, read_sequences
from onelayer.errors import HypothesisError
from onelayer.ledger import Ledger
from onelayer.model.fast import find_search
from onelayer.model.forward import Stacks, forward
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

        An input that is not stored gets the default, if one was given, but for a small share of false hits. Without
        one it gets the answer of the stored context whose coordinate is nearest (rank 1); 0, the first class, when
        it lies outside every stored box; any class at all with retrieval. Entries at padding mean nothing.
        ``path`` chooses between the dense network and a search that gives the same answers; "auto" searches
        where it can.
        """
        sequences = self.read(X, lengths)
        return self.form.decode(self.outputs(sequences, path), sequences.lengths)

    def outputs(self, sequences: Sequences, path: Path = "auto") -> Array:
        """What the network's last layer gives, [N, n, q]."""
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
        return forward(self.transformer, sequences.tokens, sequences.lengths, stacks)

    def trace(self, X: Any, lengths: Any = None) -> Trace:
        """Run a small batch and keep every intermediate value."""
        sequences = self.read(X, lengths)
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

    def read(self, X: Any, lengths: Any = None) -> Sequences:
        """Check inputs against what the model knows: token width, vocabulary, number of places."""
        sequences = read_sequences(X, lengths, self._index, real=self.vocabulary is None)
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
