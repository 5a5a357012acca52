"""A text by heart: next-token models of one layer, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.certify.certificate import Certificate, certify_data
from onelayer.certify.names import tokens_of
from onelayer.constructions import text as construction
from onelayer.data.tokens import BYTES, ByteTokens, PairTokens, Text, Tokens, from_ranges, learn_pairs, ranges
from onelayer.data.windows import padded, read_windows
from onelayer.errors import HypothesisError
from onelayer.export.bundle import load
from onelayer.ledger import Constant, Ledger
from onelayer.memory import Memory
from onelayer.model.windows import WindowModel, find_windows

Array = NDArray[Any]
Prompt = Text | Sequence[int] | Array
Step = Callable[[str], None]

CONTEXT, VOCABULARY = 128, 512
#: A distribution for each token and each token in it: the readout grows with the square of the vocabulary.
LARGEST_VOCABULARY = 1 << 14


def memorize_text(
    text: Text,
    context: int = CONTEXT,
    seed: int = 0,
    *,
    tokenizer: Literal["bpe"] | None = None,
    vocabulary_size: int | None = None,
    on_step: Step | None = None,
) -> TextMemory:
    """Compile a text into a one-layer Transformer that says what follows each of its windows. No training.

    text            str (read as UTF-8) or bytes
    context         tokens in a window; before the text a start token stands as often as needed
    seed            same text and seed, same weights
    tokenizer       None: a token is a byte. "bpe": byte pairs learned from the text (extra `text`)
    vocabulary_size tokens of the tokenizer at most, 512 if not given
    on_step         called with a line of text at each stage

    A window that occurs with one continuation gives it the probability 1; one that occurs with several gives the
    distribution of what follows it in the text. How many there are is in the ledger (``ambiguous_windows``). What
    the model says after a window that is not in the text means nothing.

    >>> model = memorize_text("to be, or not to be, that is the question", context=8)
    >>> model.generate("to be, o", 6)
    b'r not '
    """
    say = on_step or (lambda _: None)
    _check_wishes(text, seed, tokenizer, vocabulary_size)
    construction.hypotheses(context)
    say("splitting the text into tokens")
    size = VOCABULARY if vocabulary_size is None else vocabulary_size
    tokens: Tokens = ByteTokens() if tokenizer is None else learn_pairs(text, size)
    ids = tokens.encode(text)
    if len(ids) < 2:
        raise HypothesisError(
            "text", "a text of at least 2 tokens", f"the text has {len(ids)}", "Give a longer text."
        )
    say(f"comparing {len(ids):,} windows of {context} tokens")
    memory = construction.construct(read_windows(ids, int(context), tokens.size), seed, say)
    lines = [Constant("alphabet", ranges(ids), "ids of the tokens that occur in the text")]
    if isinstance(tokens, PairTokens):
        flat = tuple(token for pair in tokens.merges for token in pair)
        lines.append(Constant("merges", flat, "pairs of ids that the tokenizer merges, the first merge first"))
    return TextMemory(replace(memory, ledger=Ledger((*memory.ledger.lines, *lines))), tokens)


def load_text(path: str | os.PathLike[str]) -> TextMemory:
    """Read a folder that `save(path, model.memory)` or `onelayer memorize-text` wrote."""
    return TextMemory.of(load(path))


def python_reference() -> str:
    """The language reference that comes with Python (`help("topics")`), its topics in order, NUL between them."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise HypothesisError(
            "text", "the module pydoc_data of a full Python", "there is none", "Give a text of your own."
        ) from None
    return "\x00".join(topics[name] for name in sorted(topics))


@dataclass(frozen=True)
class TextRecall:
    """How many windows of a text are answered as the text goes on; a distribution must be equal to the bit."""

    certain: int  # different windows with one continuation
    certain_right: int
    ambiguous: int  # different windows with several
    ambiguous_right: int
    first_wrong: str = ""

    @property
    def perfect(self) -> bool:
        return self.certain == self.certain_right and self.ambiguous == self.ambiguous_right

    def __str__(self) -> str:
        return (
            f"{self.certain_right:,} of {self.certain:,} windows with one continuation reproduced, "
            f"{self.ambiguous_right:,} of {self.ambiguous:,} with several give its distribution"
        )


@dataclass(frozen=True)
class TextMemory:
    """A next-token model and its tokens. ``memory`` is what `save`, `to_torch` and `to_onnx` take."""

    memory: Memory
    tokens: Tokens

    @staticmethod
    def of(memory: Memory) -> TextMemory:
        """A model of a text from what `load` returns; its tokens are in the ledger."""
        ledger = memory.ledger
        tokens = tokens_of(ledger) if memory.form.scope == "last" else None
        if tokens is None:
            raise _not_a_text("it answers otherwise than by the next token of a text")
        if tokens.size != memory.form.width or tokens.size != ledger["start_token"]:
            raise _not_a_text(f"it has {memory.form.width} tokens and its tokenizer {tokens.size}")
        return TextMemory(memory, tokens)

    @property
    def context(self) -> int:
        return int(str(self.memory.ledger["context"]))

    def __repr__(self) -> str:
        ledger, what = self.memory.ledger, "bytes" if isinstance(self.tokens, ByteTokens) else "tokens"
        return (
            f"<TextMemory: {ledger['windows']:,} {what}, context {self.context}, {ledger['ambiguous_windows']:,} "
            f"ambiguous windows, {self.memory.n_parameters:,} parameters>"
        )

    @cached_property
    def windows(self) -> WindowModel:
        """The evaluator, whose answers are those of the network."""
        found = find_windows(self.memory.transformer)
        if found is None or found.context != self.context:
            raise _not_a_text("its layers are not those that memorize_text writes")
        return found

    def encode(self, prompt: Prompt) -> Array:
        """Token ids of a text; ids are taken as they are."""
        if isinstance(prompt, str | bytes):
            return self.tokens.encode(prompt)
        return np.asarray(prompt, np.int64).reshape(-1)

    def window(self, prompt: Prompt) -> Array:
        """The last tokens of a prompt, behind start tokens if it is short; they must occur in the text."""
        ids, n, V = self.encode(prompt), self.context, self.tokens.size
        known = from_ranges(str(self.memory.ledger["alphabet"]), V)
        for at in range(max(0, len(ids) - n), len(ids)):
            token = int(ids[at])
            if 0 <= token < V and known[token]:
                continue
            shown = f" ({self.tokens.piece(token)!r})" if 0 <= token < V else ""
            ends = " that begins and ends where its tokens do" if isinstance(self.tokens, PairTokens) else ""
            raise HypothesisError(
                "text",
                "a prompt of tokens that occur in the text",
                f"token {at} of the prompt has the id {token}{shown}, which does not",
                f"Give a passage of the text{ends}.",
            )
        return padded(ids, n, V)[-n:]

    def decode(self, ids: Sequence[int] | Array) -> bytes:
        return b"".join(self.tokens.piece(int(token)) for token in ids)

    def next_distribution(self, window: Prompt) -> Array:
        """Probabilities [V] of the next token after the last tokens of a prompt, as the network gives them."""
        given: Array = self.windows.distributions[self.windows.next_class(self.window(window))]
        return given

    def stream_ids(self, prompt: Prompt, length: int, *, sampled: bool = False, seed: int = 0) -> Iterator[int]:
        """Token ids that follow, one at a time: the likeliest (of equals the smallest id), or sampled."""
        if length < 0:
            raise HypothesisError("text", "a length of at least 0", f"length={length}", "Choose another length.")
        if sampled and seed < 0:
            raise HypothesisError("text", "a seed of at least 0", f"seed={seed}", "Choose another seed.")
        return self._follow(self.window(prompt), length, sampled, seed)

    def stream(self, prompt: Prompt, length: int, *, sampled: bool = False, seed: int = 0) -> Iterator[bytes]:
        """What follows the prompt, token by token."""
        return map(self.tokens.piece, self.stream_ids(prompt, length, sampled=sampled, seed=seed))

    def generate(self, prompt: Prompt, length: int, *, sampled: bool = False, seed: int = 0) -> bytes:
        """``length`` tokens (bytes, unless there is a tokenizer) that follow the prompt.

        A prompt of at least ``context`` tokens that is a passage of the text is continued as the text goes on; a
        shorter one is read as the beginning of the text.
        """
        return b"".join(self.stream(prompt, length, sampled=sampled, seed=seed))

    def windows_right(self, text: Text) -> TextRecall:
        """Ask for what follows every window of this text, and compare with what does."""
        wanted = read_windows(self.encode(text), self.context, self.tokens.size)
        model = self.windows
        classes = model.classes(wanted.stream)[wanted.first]
        K = len(wanted.distributions)
        pairs, which = np.unique(classes * K + wanted.answers, return_inverse=True)
        same = (model.distributions[pairs // K] == wanted.distributions[pairs % K]).all(axis=1)
        right = same[which.reshape(-1)]
        several = wanted.ambiguous
        first = "" if right.all() else f"the window before token {wanted.first[np.argmin(right)]}"
        return TextRecall(
            int((~several).sum()), int(right[~several].sum()), int(several.sum()), int(right[several].sum()), first
        )

    def certify(self, text: Text) -> Certificate:
        """Ask the checker to prove, for every window of the text, the distribution of what follows it."""
        wanted = read_windows(self.tokens.encode(text), self.context, self.tokens.size)
        data = {
            "stream": np.ascontiguousarray(wanted.stream[:-1]),
            "window": np.array([self.context]),
            "answers": np.asarray(wanted.distributions, np.float64),
            "which": np.asarray(wanted.answers[wanted.group], np.int64),
        }
        return certify_data(self.memory, data, wrong=lambda: self.windows_right(text).first_wrong)

    def _follow(self, window: Array, length: int, sampled: bool, seed: int) -> Iterator[int]:
        n, model = self.context, self.windows
        likeliest = self._likeliest
        rng = np.random.default_rng(seed)
        stream = np.concatenate([window, np.zeros(length, np.int64)])
        for i in range(length):
            at = model.next_class(stream[i : i + n])
            token = _sample(model.distributions[at], rng) if sampled else likeliest[at]
            stream[i + n] = token
            yield token

    @cached_property
    def _likeliest(self) -> list[int]:
        tokens: list[int] = self.windows.distributions.argmax(axis=1).tolist()
        return tokens


def _sample(given: Array, rng: np.random.Generator) -> int:
    up_to = np.cumsum(np.maximum(given, 0), dtype=np.float64)
    return int(np.searchsorted(up_to, rng.random() * up_to[-1], side="right"))


def _check_wishes(text: Any, seed: int, tokenizer: str | None, vocabulary_size: int | None) -> None:
    if not isinstance(text, str | bytes):
        raise HypothesisError("text", "a text as str or bytes", f"it is {type(text).__name__}", "Convert it.")
    if not len(text):
        raise HypothesisError("text", "a text of at least 2 tokens", "the text is empty", "Give a longer text.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise HypothesisError("text", "a whole number from 0 on as seed", f"seed={seed!r}", "Choose another seed.")
    if tokenizer not in (None, "bpe"):
        raise HypothesisError("text", 'tokenizer None or "bpe"', f"tokenizer={tokenizer!r}", "Choose one of them.")
    if vocabulary_size is None:
        return
    if tokenizer is None:
        raise HypothesisError(
            "text",
            "a tokenizer for a vocabulary of a chosen size",
            f"vocabulary_size={vocabulary_size} while a token is a byte",
            'Use tokenizer="bpe".',
        )
    if not BYTES < vocabulary_size <= LARGEST_VOCABULARY:
        raise HypothesisError(
            "text",
            f"a vocabulary of more than {BYTES} and at most {LARGEST_VOCABULARY:,} tokens",
            f"vocabulary_size={vocabulary_size}",
            f"Choose a size such as {VOCABULARY}.",
        )


def _not_a_text(found: str) -> HypothesisError:
    return HypothesisError("text", "a model that memorize_text made", found, "Give a folder of memorize-text.")
