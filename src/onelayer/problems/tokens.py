"""A text as token ids and back: bytes, or byte pairs learned from the text (Hugging Face `tokenizers`)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, MissingExtraError

Array = NDArray[Any]
#: A text, or the file that it is in.
Text = str | bytes | os.PathLike[str]

BYTES = 256
#: Byte-level tokenizers write bytes as letters: printable Latin-1 as it is, the other bytes from U+0100 on.
_PLAIN = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = tuple(b for b in range(BYTES) if b not in _PLAIN)
LETTERS = {**{b: chr(b) for b in _PLAIN}, **{b: chr(BYTES + i) for i, b in enumerate(_OTHERS)}}


def as_bytes(text: Text) -> bytes:
    if isinstance(text, os.PathLike):
        return Path(text).read_bytes()
    return text.encode() if isinstance(text, str) else text


@dataclass(frozen=True)
class ByteTokens:
    """A token is a byte."""

    size: int = BYTES

    def encode(self, text: Text) -> Array:
        return np.frombuffer(as_bytes(text), np.uint8)

    def piece(self, token: int) -> bytes:
        return bytes([token])


@dataclass(frozen=True)
class PairTokens:
    """Bytes, merged in pairs: tokens 0 to 255 are bytes in the order of their letters, each merge may add one."""

    merges: tuple[tuple[int, int], ...]  # pairs of token ids, the first merge first

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Every token in letters."""
        words = sorted(LETTERS.values())
        known = set(words)
        for a, b in self.merges:
            if (word := words[a] + words[b]) not in known:  # "ab" + "c" and "a" + "bc" are one token
                known.add(word)
                words.append(word)
        return tuple(words)

    @property
    def size(self) -> int:
        return len(self.words)

    def encode(self, text: Text) -> Array:
        return np.array(self._tokenizer.encode(_utf8(text)).ids, np.int64)

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    @cached_property
    def _pieces(self) -> list[bytes]:
        byte = {letter: b for b, letter in LETTERS.items()}
        return [bytes(byte[letter] for letter in word) for word in self.words]

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizers = _tokenizers()
        words = self.words
        model = tokenizers.models.BPE(
            vocab={word: i for i, word in enumerate(words)}, merges=[(words[a], words[b]) for a, b in self.merges]
        )
        return _byte_level(tokenizers, model)


Tokens = ByteTokens | PairTokens


def learn_pairs(text: Text, size: int) -> PairTokens:
    """Byte pairs of this text, merged until there are ``size`` tokens or no pair is left."""
    tokenizers = _tokenizers()
    tokenizer = _byte_level(tokenizers, tokenizers.models.BPE())
    letters = sorted(LETTERS.values())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator([_utf8(text)], trainer)
    index = tokenizer.get_vocab()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    learned = PairTokens(tuple((index[a], index[b]) for a, b in merges))
    assert index == {word: i for i, word in enumerate(learned.words)}
    return learned


def ranges(ids: Iterable[int]) -> str:
    """Sorted ids in a line: 0,10,32-126."""
    found = np.unique(np.fromiter(ids, np.int64))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(found) > 1]))
    ends = np.append(starts[1:], len(found)) - 1
    pairs = zip(found[starts].tolist(), found[ends].tolist(), strict=True)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pairs)


def from_ranges(line: str, size: int) -> Array:
    """Which of ``size`` ids are in the line that `ranges` wrote."""
    known = np.zeros(size, bool)
    for a, b in re.findall(r"(\d+)(?:-(\d+))?", line):
        known[int(a) : int(b or a) + 1] = True
    return known


def _utf8(text: Text) -> str:
    try:
        return as_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise DataError(
            "text",
            "a text in UTF-8 for a tokenizer of byte pairs",
            f"byte {error.start} is not ({error.reason})",
            "Leave the tokenizer out: a token is then a byte.",
        ) from None


def _byte_level(tokenizers: Any, model: Any) -> Any:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def _tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise MissingExtraError('tokenizer="bpe"', "tokenizers", "text") from None
    return tokenizers
