"""Sentences with a label a word: a person's own file in CoNLL's form, or sentences of a small grammar.

Words such as "Jordan" or "Ford" are persons, places or organisations depending on their company, so that a word
alone does not tell its label. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from onelayer.problems.tables import read_table

#: A sentence: its words, and the number of each one's label.
Sentence = tuple[list[str], list[int]]
LABELS = ("other", "person", "place", "organisation")
AMBIGUOUS = ["Jordan", "Paris", "Sydney", "Austin", "Lincoln", "Washington", "Chelsea", "Ford", "Amazon", "Phoenix"]
WORDS = {
    "person": [*AMBIGUOUS, "Anna", "Boris", "Clara", "Dmitri", "Elena", "Farid"],
    "place": [*AMBIGUOUS, "Berlin", "Lagos", "Lima", "Oslo", "Quito", "Tokyo"],
    "organisation": [*AMBIGUOUS, "Acme", "Globex", "Initech", "Unesco", "Umbrella", "Vandelay"],
}
#: A word in angle brackets is drawn; every other word is itself.
TEMPLATES = (
    "<person> lives in <place>",
    "<person> works for <organisation> in <place>",
    "<organisation> opened an office in <place>",
    "<person> of <organisation> visited <place> today",
    "<organisation> sued <organisation>",
    "<place> welcomed <person>",
    "the mayor of <place> met <person>",
    "<person> met the mayor of <place>",
    "<person> joined <organisation> after years in <place>",
    "shares of <organisation> fell in <place>",
    "<person> and <person> left <organisation>",
    "trains from <place> to <place> were late",
)


def generate(count: int, rng: np.random.Generator) -> list[Sentence]:
    """Different sentences of the grammar and the labels of their words."""
    found: dict[tuple[str, ...], list[int]] = {}
    while len(found) < count:
        words, labels = [], []
        for part in TEMPLATES[rng.integers(len(TEMPLATES))].split():
            kind = part.strip("<>")
            drawn = part != kind
            words.append(str(rng.choice(WORDS[kind])) if drawn else part)
            labels.append(LABELS.index(kind) if drawn else 0)
        found.setdefault(tuple(words), labels)
    return [(list(words), labels) for words, labels in found.items()]


def read(path: Path) -> tuple[list[Sentence], int]:
    """The different sentences of a file, and how many were left out: equal words with other labels came before.

    Label 0 is the most frequent one, as words that are no name are in every corpus of names.
    """
    records = list(read_table(path).records())
    frequent = Counter(str(label) for record in records for label in record["answers"]).most_common()
    number = {label: i for i, (label, _) in enumerate(frequent)}
    found: dict[tuple[str, ...], list[int]] = {}
    contradictory = 0
    for record in records:
        words, labels = tuple(map(str, record["tokens"])), [number[str(label)] for label in record["answers"]]
        contradictory += found.setdefault(words, labels) != labels
    return [(list(words), labels) for words, labels in found.items()], contradictory


def digest(path: Path) -> str:
    """Of a file's contents: rows belong to the sentences, not to the name of their file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def frequent_labels(sentences: list[Sentence]) -> dict[str, int]:
    """The most frequent label of every word, whatever its company."""
    votes: dict[str, Counter[int]] = {}
    for words, labels in sentences:
        for word, label in zip(words, labels, strict=True):
            votes.setdefault(word, Counter())[label] += 1
    return {word: vote.most_common(1)[0][0] for word, vote in votes.items()}
