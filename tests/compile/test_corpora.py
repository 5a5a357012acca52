"""Sentences with a label a word, as corpora have them, by the default call: every label is right, and proved."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import HypothesisError, memorize
from onelayer.problems.tables import read_table

LABELS = np.array(["O", "O", "O", "O", "I-PER", "I-LOC", "I-ORG", "I-MISC"])


def corpus(sentences: int, words: int, longest: int, seed: int = 0) -> str:
    """Lines of a word and a label: words as frequent as Zipf has it, lengths of up to 144, a few of the longest."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, words + 1) ** 1.1
    lengths = np.clip(rng.lognormal(3.0, 0.6, sentences).astype(int), 1, 144)
    lengths[::97] = longest
    drawn = ((rng.choice(words, k, p=share / share.sum()), rng.choice(LABELS, k)) for k in lengths)
    return "\n".join("".join(f"w{w} {label}\n" for w, label in zip(*row, strict=True)) for row in drawn)


@pytest.mark.parametrize(("sentences", "words", "longest"), [(700, 5_000, 144), (700, 500, 400)])
def test_a_corpus_is_stored_and_proved_by_the_default_call(tmp_path, sentences, words, longest) -> None:
    path = tmp_path / "corpus.conll"
    path.write_text(corpus(sentences, words, longest))
    table = read_table(path)
    assert table.lengths.max() == longest
    model = memorize(table.X, table.Y, lengths=table.lengths, positions=True)
    assert model.ledger["certified"] is True, model.ledger.meaning("certified")
    assert model.ledger["dtype"] == "float32"
    answers = model.predict(table.X, table.lengths)
    for given, wanted, length in zip(answers, table.Y, table.lengths, strict=True):
        assert list(given[:length]) == list(wanted[:length])


def test_words_of_a_large_vocabulary_cost_two_numbers(tmp_path) -> None:
    """Padding does not count: a table of codes would have eight numbers a word."""
    path = tmp_path / "corpus.conll"
    path.write_text(corpus(900, 20_000, 144))
    table = read_table(path)
    model = memorize(table.X, table.Y, lengths=table.lengths, positions=True, certify=False)
    V = len(model.interface.vocabulary)
    assert V > 4096
    assert dict(model.transformer.tensors())["embedding.table"].shape == (V, 2)


def test_as_bags_a_corpus_contradicts_itself_and_the_error_says_how_often(tmp_path) -> None:
    path = tmp_path / "corpus.conll"
    path.write_text(corpus(100, 300, 144))
    table = read_table(path)
    with pytest.raises(HypothesisError) as refused:
        memorize(table.X, table.Y, lengths=table.lengths)
    assert "contexts have more than one answer, the first: sequence 0 has tokens" in refused.value.found
    assert "positions=True if the order matters (no conflict is left then)" in refused.value.remedy
    settled = memorize(table.X, table.Y, lengths=table.lengths, on_conflict="vote", certify=False)
    assert settled.ledger["conflicts"] > 100


def test_long_bags_of_words_are_packed() -> None:
    """Sums over a thousand places are narrow: what stays of a token is so, too, or contexts share cells."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1_000, (16, 1_024))
    Y = np.take_along_axis(rng.integers(0, 256, (16, 1_000)), X, axis=1)
    model = memorize(X, Y, certify=False)
    assert (model.predict(X) == Y).all()
    assert (model.ledger["readout"], model.ledger["dtype"]) == ("packed", "float32")
