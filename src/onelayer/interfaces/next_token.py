"""A model of a text: a window of tokens goes in, the distribution of the token that follows comes out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, OptionError
from onelayer.gadgets.windows import WindowModel
from onelayer.interfaces.answers import Answers
from onelayer.network import Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.sequences import Sequences
from onelayer.problems.tokens import ByteTokens, PairTokens, Text, Tokens
from onelayer.problems.windows import pad_start

Array = NDArray[Any]
Prompt = Text | Sequence[int] | Array


@dataclass(frozen=True, kw_only=True)
class NextToken(Answers):
    """The tokens of a text, and how much of it the model sees at a time."""

    kind: ClassVar[str] = "next_token"
    says: ClassVar[str] = "continues a text"
    proved_by: ClassVar[str] = "Make one: model = model.certify(text)."

    context: int
    tokens: Tokens = field(default_factory=ByteTokens)
    alphabet: tuple[int, ...] = ()  # ids of the tokens that occur in the text

    def describe(self) -> str:
        return f"next {'byte' if isinstance(self.tokens, ByteTokens) else 'token'}, context {self.context}"

    def read(
        self, transformer: Transformer, X: Any, lengths: Any = None, unseen: Literal["refuse", "mark"] = "refuse"
    ) -> Sequences:
        if isinstance(X, str | bytes):
            needs, found = f"windows of {self.context} token ids, [N, {self.context}]", "X is a text"
            raise DataError("text", needs, found, "Use `generate` or `next_distribution`, which take one.")
        return super().read(transformer, X, lengths, unseen)

    def encode(self, prompt: Prompt) -> Array:
        """Token ids of a text; ids are taken as they are."""
        if isinstance(prompt, str | bytes | os.PathLike):
            return self.tokens.encode(prompt)
        return np.asarray(prompt, np.int64).reshape(-1)

    def decode(self, ids: Sequence[int] | Array) -> bytes:
        """The text of token ids."""
        return b"".join(self.tokens.piece(int(token)) for token in ids)

    def window(self, prompt: Prompt) -> Array:
        """The last tokens of a prompt, behind start tokens if it is short; unless the model knows what is not
        stored, they must occur in the text."""
        ids, n, V = self.encode(prompt), self.context, self.tokens.size
        for at in range(max(0, len(ids) - n), len(ids)):
            token = int(ids[at])
            if token in self._known or (self.default is not None and 0 <= token < V):
                continue
            shown = f" ({self.tokens.piece(token)!r})" if 0 <= token < V else ""
            ends = " that begins and ends where its tokens do" if isinstance(self.tokens, PairTokens) else ""
            raise DataError(
                "text",
                "a prompt of tokens that occur in the text",
                f"token {at} of the prompt has the id {token}{shown}, which does not",
                f"Give a passage of the text{ends}.",
            )
        return pad_start(ids[-n:], n, V)[-n:]

    def as_given(self, data: Any) -> Any:
        """A str is the path of a file, or the text itself."""
        is_text = isinstance(data, str) and not os.path.isfile(data)
        return data.encode(errors="surrogatepass") if is_text else data

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(self.alphabet)

    def knows(self, window: Array) -> bool:
        """Whether all tokens of a window occur in the text, or stand before it."""
        return all(token in self._known or token == self.tokens.size for token in window.tolist())

    def next_distribution(self, windows: WindowModel, prompt: Prompt) -> Array:
        """Probabilities [V] of the next token; zeros where the text ends, or is known to be left."""
        window = self.window(prompt)
        if not self.knows(window):
            return np.zeros_like(windows.distributions[0])
        return np.asarray(windows.distributions[windows.next_class(window)])

    def follow_up(self, windows: WindowModel, text: Prompt) -> Array:
        """[N] the probability of each token of a text, after the window before it."""
        ids = self.encode(text)
        found = np.empty(len(ids), np.float64)
        for rows, classes in windows.classes(pad_start(ids, self.context, self.tokens.size)):
            found[rows] = windows.distributions[classes, ids[rows]]
        return found

    def follow(self, windows: WindowModel, prompt: Prompt, length: int, sampled: bool, seed: int) -> Iterator[int]:
        """Token ids that follow, one at a time: the likeliest (of equals the smallest id), or sampled. There are
        fewer than ``length`` where the text ends, or where it is left and the model knows what is not stored."""
        if length < 0:
            raise OptionError("text", "a length of at least 0", f"length={length}", "Choose another length.")
        if sampled and seed < 0:
            raise OptionError("text", "a seed of at least 0", f"seed={seed}", "Choose another seed.")
        window, rng, nothing = self.window(prompt), np.random.default_rng(seed), windows.nothing
        likeliest, distributions = windows.likeliest, windows.distributions

        def choose(at: int) -> int | None:
            if at == nothing:
                return None
            return _sample(distributions[at], rng) if sampled else likeliest[at]

        return islice(windows.following(window, choose), length if self.knows(window) else 0)

    def to_json(self) -> dict[str, Any]:
        merges = [list(pair) for pair in self.tokens.merges] if isinstance(self.tokens, PairTokens) else None
        own = {"context": self.context, "merges": merges, "alphabet": list(self.alphabet)}
        return super().to_json() | own

    @classmethod
    def from_json(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> NextToken:
        merges = entry["merges"]
        tokens: Tokens = ByteTokens() if merges is None else PairTokens(tuple((a, b) for a, b in merges))
        if tokens.size != form.width:
            raise ValueError(f"the model has {form.width} tokens and its tokenizer {tokens.size}")
        common = cls.common(entry, form, vocabulary)
        return cls(**common, context=entry["context"], tokens=tokens, alphabet=tuple(entry["alphabet"]))


def _sample(given: Array, rng: np.random.Generator) -> int:
    up_to = np.cumsum(np.maximum(given, 0), dtype=np.float64)
    return int(np.searchsorted(up_to, rng.random() * up_to[-1], side="right"))
