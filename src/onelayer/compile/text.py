"""A text by heart: next-token models of one layer, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from onelayer.certificates.data import of_text
from onelayer.compile import next_token as construction
from onelayer.compile.prove import ASK, certify_model, without_proof
from onelayer.compile.unknown_windows import unknown_windows
from onelayer.errors import DataError, FileError, OptionError
from onelayer.interfaces import NextToken
from onelayer.ledger import Ledger
from onelayer.measure.recall import recall
from onelayer.model import Model
from onelayer.problems.answers import AnswerForm
from onelayer.problems.tokens import BYTES, ByteTokens, Text, Tokens, learn_pairs
from onelayer.problems.windows import TextWindows, read_windows

Step = Callable[[str], None]

CONTEXT, VOCABULARY = 128, 512
#: A distribution for each token and each token in it: the readout grows with the square of the vocabulary.
LARGEST_VOCABULARY = 1 << 14
#: A proof is tried without being asked for, for texts of up to this many tokens.
MOST_PROVED = 1 << 22


def memorize_text(
    text: Text,
    context: int = CONTEXT,
    seed: int = 0,
    *,
    tokenizer: Literal["bpe"] | None = None,
    vocabulary_size: int | None = None,
    false_hits: float | None = None,
    certify: bool | None = None,
    on_step: Step | None = None,
) -> Model:
    """Compile a text into a one-layer Transformer that says what follows each of its windows. No training.

    text            str (read as UTF-8) or bytes, or a path: the bytes of that file
    context         tokens in a window; before the text a start token stands as often as needed
    seed            same text and seed, same weights
    tokenizer       None: a token is a byte. "bpe": byte pairs learned from the text (extra `text`)
    vocabulary_size tokens of the tokenizer at most, 512 if not given
    false_hits      the share of windows not in the text that may be continued all the same; without it, all are
    certify         True: prove it; False: do not; None: where that costs at most a few times the build
    on_step         called with a line of text at each stage

    A window that occurs with one continuation gives it the probability 1; one that occurs with several gives the
    distribution of what follows it in the text. How many there are is in the ledger (``ambiguous_windows``). The
    last window, if it occurs once, gives no token any probability: a recital stops where the text ends.

    With ``false_hits``, every answer is stored with a fingerprint of its window, and a window that is not in the
    text gives no token any probability either, but for about that share of them, which the ledger states and
    measures. Without it, what the model says after such a window means nothing.

    >>> model = memorize_text("to be, or not to be, that is the question", context=8)
    >>> model.generate("to be, o", 6)
    b'r not '
    >>> model.generate("the ques", 100)
    b'tion'
    """
    say = on_step or (lambda _: None)
    _check_options(text, seed, tokenizer, vocabulary_size, false_hits)
    construction.hypotheses(context)
    say("splitting the text into tokens")
    size = VOCABULARY if vocabulary_size is None else vocabulary_size
    tokens: Tokens = ByteTokens() if tokenizer is None else learn_pairs(text, size)
    ids = tokens.encode(text)
    if len(ids) < 2:
        found = f"the text has {len(ids)}" if len(ids) else "the text is empty"
        raise DataError("text", "a text of at least 2 tokens", found, "Give a longer text.")
    say(f"comparing {len(ids):,} windows of {context} tokens")
    windows = read_windows(ids, int(context), tokens.size)
    transformer, gadgets, ledger = construction.construct(windows, seed, say, false_hits)
    interface = _interface_of(windows, tokens, ledger, knows_stored=false_hits is not None)
    model = Model(transformer, interface, ledger, gadgets=gadgets)
    if false_hits is not None:
        model = model.with_notes(*unknown_windows(model, windows, seed))
    if certify is None and len(ids) > MOST_PROVED:
        return without_proof(model, f"a proof about {len(ids):,} windows takes long. {ASK}")
    return certify_model(model, certify, lambda: of_text(model, text), lambda: recall(model, text).first_wrong, say)


def _interface_of(windows: TextWindows, tokens: Tokens, ledger: Ledger, knows_stored: bool) -> NextToken:
    return NextToken(
        form=AnswerForm("last", None, tokens.size, ragged=False),
        vocabulary=tuple(range(tokens.size + 1)),
        default=(0.0,) * tokens.size if knows_stored else None,
        stored_bits=ledger.number("stored_bits"),
        context=windows.context,
        tokens=tokens,
        alphabet=tuple(windows.occurring.tolist()),
    )


def python_reference() -> str:
    """The language reference that comes with Python (`help("topics")`), its topics in order, NUL between them."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise FileError(
            "text", "the module pydoc_data of a full Python", "there is none", "Give a text of your own."
        ) from None
    return "\x00".join(topics[name] for name in sorted(topics))


def _check_options(
    text: Any, seed: int, tokenizer: str | None, vocabulary_size: int | None, false_hits: float | None
) -> None:
    if not isinstance(text, str | bytes | os.PathLike):
        raise DataError("text", "a text as str or bytes, or a path", f"it is {type(text).__name__}", "Convert it.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise OptionError("text", "a whole number from 0 on as seed", f"seed={seed!r}", "Choose another seed.")
    if false_hits is not None and not (isinstance(false_hits, int | float) and 0 < false_hits < 1):
        needs = "false_hits between 0 and 1"
        raise OptionError("text", needs, f"false_hits={false_hits!r}", "Give a share such as 1e-3.")
    if tokenizer not in (None, "bpe"):
        raise OptionError("text", 'tokenizer None or "bpe"', f"tokenizer={tokenizer!r}", "Choose one of them.")
    if vocabulary_size is None:
        return
    if tokenizer is None:
        raise OptionError(
            "text",
            "a tokenizer for a vocabulary of a chosen size",
            f"vocabulary_size={vocabulary_size} while a token is a byte",
            'Use tokenizer="bpe".',
        )
    if not BYTES < vocabulary_size <= LARGEST_VOCABULARY:
        raise OptionError(
            "text",
            f"a vocabulary of more than {BYTES} and at most {LARGEST_VOCABULARY:,} tokens",
            f"vocabulary_size={vocabulary_size}",
            f"Choose a size such as {VOCABULARY}.",
        )
