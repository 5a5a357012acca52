"""What only some models can do: texts go on, functions have targets and bounds, stored answers have bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onelayer.errors import OptionError
from onelayer.gadgets.stacks import Parts
from onelayer.gadgets.windows import WindowModel, find_windows
from onelayer.interfaces import Answers, Examples, Function, NextToken
from onelayer.interfaces.next_token import Prompt
from onelayer.ledger import Ledger
from onelayer.network.formats import FORMATS
from onelayer.network.weights import Array, Transformer
from onelayer.problems.answers import in_classes_of, read_answers
from onelayer.problems.scopes import at_answers, in_places
from onelayer.problems.sequences import Sequences
from onelayer.problems.targets import Target

Kind = TypeVar("Kind", bound=Answers)


class Abilities:
    """What an interface brings to its model; any other model refuses in a line that says which models can."""

    transformer: Transformer
    interface: Answers
    ledger: Ledger

    if TYPE_CHECKING:  # these are the model's own

        @property
        def parts(self) -> Parts: ...

        @property
        def n_parameters(self) -> int: ...

        def predict(self, X: Any) -> Any: ...

        def ask(self, X: Any, lengths: Any = None) -> Sequences: ...

        def outputs(self, sequences: Sequences) -> Array: ...

    def interface_as(self, kind: type[Kind], what: str) -> Kind:
        """The interface, if it is of this kind; else an error that says which models have ``what``."""
        if isinstance(self.interface, kind):
            return self.interface
        found = f"this model {self.interface.says}"
        raise OptionError(
            "data", f"a model that {kind.says}, for {what}", found, f"`{what}` belongs to such models."
        )

    @property
    def bits_per_parameter(self) -> float:
        """Information in the stored answers over stored numbers; a float32 cannot hold more than 32."""
        if self.interface.stored_bits is None:
            needs, found = "stored answers, for bits_per_parameter", f"this model {self.interface.says}"
            raise OptionError("data", needs, found, "Ask a model that `memorize` or `memorize_text` made.")
        return self.interface.stored_bits / self.n_parameters

    @property
    def arithmetic(self) -> str:
        """The format in which the model is made to run: its dtype or, if it was made for 16 bits, one of these."""
        asked = self.ledger.get("dtype")
        return str(asked if asked in FORMATS else self.transformer.dtype)

    @property
    def has_logits(self) -> bool:
        """Whether the network gives a number for each class; the largest is the answer."""
        classes = self.interface.form.classes
        return classes is not None and self.transformer.output_width == len(classes) > 1

    def logits(self, X: Any, lengths: Any = None) -> Array:
        """One number for each class, in the order of ``form.classes``: [N, n, C], or [N, C] for one answer each."""
        if (
            not self.has_logits and len(self.interface.form.classes or ()) != 1
        ):  # of one class its number, 0, is one
            needs, found = "a model with logits", f"this model {self.interface.says} and has none"
            remedy = "Make it with memorize(..., logits=True), or of a model of classes with with_logits(model)."
            raise OptionError("data", needs, found, remedy)
        sequences, scope = self.ask(X, lengths), self.interface.form.scope
        out = self.outputs(sequences)
        return out if scope == "token" else at_answers(out, scope, sequences.lengths)

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Probabilities of the classes, the softmax of `logits`; of a text, of the token after each window."""
        if isinstance(self.interface, NextToken):
            sequences = self.ask(X, lengths)
            return at_answers(self.outputs(sequences), "last", sequences.lengths)
        return np.exp(log_softmax(self.logits(X, lengths)))

    def log_prob(self, X: Any, Y: Any = None, lengths: Any = None) -> Array:
        """The log of the probability that the model gives each answer of Y, in its shape (0 at padding); or, of a
        model of a text, each token of the text X after the window before it. An unknown class has -inf."""
        if isinstance(self.interface, NextToken) and Y is None:
            with np.errstate(divide="ignore"):
                return np.log(self.interface.follow_up(self.windows, X))
        given = log_softmax(self.logits(X, lengths))
        sequences, form = self.ask(X, lengths), self.interface.form
        rows = in_classes_of(form, read_answers(Y, sequences, form.scope))[:, 0].astype(np.int64)
        flat = at_answers(given, "token", sequences.lengths) if form.scope == "token" else given
        found = np.where(rows < 0, -np.inf, flat[np.arange(len(rows)), rows])
        return in_places(found, sequences.N, sequences.n, sequences.lengths) if form.scope == "token" else found

    @property
    def target(self) -> Target:
        """The function that the model stands for."""
        return self.interface_as(Function, "target").target

    @property
    def error_bound(self) -> float:
        """Proved, on the box but for `interface.left_out`, or to a learner's limit; infinite if nothing is."""
        if isinstance(self.interface, Examples):
            return self.interface.error_bound
        return self.interface_as(Function, "error_bound").error_bound

    @property
    def measured_error(self) -> float:
        """The largest error that was found by trying to break the bound."""
        return self.interface_as(Function, "measured_error").measured_error

    @property
    def budget(self) -> Ledger:
        """Where the error comes from; the entries add up to the bound."""
        return self.interface_as(Function, "budget").budget

    def errors(self, X: Any) -> Array:
        """|model - target| at sequences [B, n, d], in the largest component, [B]."""
        wanted = self.target.evaluate(np.asarray(X, np.float64))
        found = self.predict(X).astype(np.float64)
        return np.asarray(np.abs(found - wanted).reshape(len(X), -1).max(axis=1))

    @cached_property
    def windows(self) -> WindowModel:
        """The evaluator of a model of a text, whose answers are those of the network."""
        text, found = self.interface_as(NextToken, "windows"), find_windows(self.transformer, self.parts["readout"])
        if found is None or found.context != text.context:
            needs, other = "a model that memorize_text made", "its layers are others"
            raise OptionError("text", needs, other, "Give a model of memorize_text.")
        return found

    def next_distribution(self, prompt: Prompt) -> Array:
        """Probabilities [V] of the next token after the last tokens of a prompt, as the network gives them."""
        return self.interface_as(NextToken, "next_distribution").next_distribution(self.windows, prompt)

    def stream(self, prompt: Prompt, length: int, *, sampled: bool = False, seed: int = 0) -> Iterator[bytes]:
        """What follows the prompt, token by token."""
        text = self.interface_as(NextToken, "stream")
        return map(text.tokens.piece, text.follow(self.windows, prompt, length, sampled, seed))

    def generate(self, prompt: Prompt, length: int, *, sampled: bool = False, seed: int = 0) -> bytes:
        """Up to ``length`` tokens (bytes, unless there is a tokenizer) that follow the prompt.

        A prompt of at least ``context`` tokens that is a passage of the text is continued as the text goes on, and
        no further than to its end; a shorter one is read as the beginning of the text. Made with ``false_hits``,
        the model also stops where the text is left: nothing follows a prompt that is not stored.
        """
        self.interface_as(NextToken, "generate")
        return b"".join(self.stream(prompt, length, sampled=sampled, seed=seed))


def log_softmax(logits: Array) -> Array:
    """In float64, whatever the logits are."""
    below = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)))
