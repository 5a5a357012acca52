"""Labels of words in sentences, as in the paper's experiment with named entities, on sentences of a small grammar.

Words such as "Jordan" or "Ford" are persons, places or organisations depending on their company, so that a word
alone does not tell its label. The grammar is below; nothing is downloaded.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group
from onelayer.problems.sequences import read_sequences

QUESTION = "Does one layer of rank 1 label every word of a corpus right, built and trained?"
HYPOTHESES = (
    "A constructed layer of rank 1 reproduces every label (Theorem 2); the paper trains such layers, and reports "
    "training accuracy only.",
    "What is built knows its corpus and nothing else; what is trained also says something about new sentences.",
)
EXTRAS = ("torch",)
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


def corpus(count: int, rng: np.random.Generator) -> list[tuple[list[str], list[int]]]:
    """Different sentences and the labels of their words."""
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


def cases(preset: Preset) -> list[Case]:
    sizes, steps = ((40, 120), 300) if preset == "quick" else ((40, 120, 400, 1200), 4000)
    models = (("constructed", 1), ("trained", 1), ("trained", 32))
    return [
        {"sentences": N, "model": model, "rank": rank, "steps": steps if model == "trained" else 0}
        for N in sizes
        for model, rank in models
    ]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, case["sentences"], 3])
    sentences = corpus(case["sentences"] + 200, rng)
    stored, others = sentences[: case["sentences"]], sentences[case["sentences"] :]
    known = {word for words, _ in stored for word in words}
    longest = max(len(words) for words, _ in stored)
    new = [(words, labels) for words, labels in others if known >= set(words) and len(words) <= longest]
    predict, parameters, steps = (_construct_model if case["model"] == "constructed" else _train_model)(
        case, seed, stored
    )
    votes: dict[str, Counter[int]] = {}
    for words, labels in stored:
        for word, label in zip(words, labels, strict=True):
            votes.setdefault(word, Counter())[label] += 1
    alone = sum(max(vote.values()) for vote in votes.values()) / sum(vote.total() for vote in votes.values())
    return [
        {
            "words": sum(len(words) for words, _ in stored),
            "vocabulary": len(known),
            "parameters": parameters,
            "taken": steps,
            "accuracy": _accuracy(predict, stored),
            "word_alone": alone,  # the best accuracy of a labelling that does not look at the company
            "new_sentences": len(new),
            "accuracy_on_new": _accuracy(predict, new) if new else None,
        }
    ]


def _accuracy(predict: Any, sentences: list[tuple[list[str], list[int]]]) -> float:
    right = total = 0
    for given, (_, labels) in zip(predict([words for words, _ in sentences]), sentences, strict=True):
        right += sum(int(a) == b for a, b in zip(given, labels, strict=False))
        total += len(labels)
    return right / total


def _construct_model(case: Case, seed: int, stored: Any) -> tuple[Any, int, int]:
    X, Y = [words for words, _ in stored], [labels for _, labels in stored]
    model = memorize(X, Y, positions=True, rank=case["rank"], seed=seed, certify=False)
    return lambda sentences: model.predict(sentences, path="dense"), model.n_parameters, 0


def _train_model(case: Case, seed: int, stored: Any) -> tuple[Any, int, int]:
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, predict, train_tuned

    read = read_sequences([words for words, _ in stored])
    assert read.vocabulary is not None
    index = {word: i for i, word in enumerate(read.vocabulary)}
    labels = np.zeros(read.tokens.shape, np.int64)
    for i, (_, row) in enumerate(stored):
        labels[i, : len(row)] = row
    task = Task(read.tokens, labels, lengths=read.lengths)
    shape = Shape(32, hidden=128, rank=case["rank"], positions=True)
    ended = train_tuned(shape, task, Budget(steps=case["steps"], check=20), seed)

    def answer(sentences: list[list[str]]) -> Any:
        asked = read_sequences(sentences, vocabulary=index)
        return predict(ended.net, asked.tokens, asked.lengths).argmax(-1)

    return answer, count_parameters(shape, task), ended.steps


def _groups(rows: list[Row]) -> dict[str, list[Row]]:
    named = {"constructed, rank 1": [r for r in rows if r["model"] == "constructed"]}
    named["trained, rank 1"] = [r for r in rows if r["model"] == "trained" and r["rank"] == 1]
    return named | {"trained, full rank": [r for r in rows if r["model"] == "trained" and r["rank"] > 1]}


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for name, some in _groups(rows).items():
        style: dict[str, Any] = {"linestyle": "--"} if name.startswith("constructed") else {}
        line(left, interval_by_group(some, "sentences", "accuracy"), name, **style)
        line(right, interval_by_group(some, "sentences", "accuracy_on_new"), name, **style)
    line(left, interval_by_group(rows, "sentences", "word_alone"), "most frequent label of the word", color="grey")
    sizes = sorted({row["sentences"] for row in rows})
    for axes, title in ((left, "the sentences that were given"), (right, "new sentences of the same words")):
        axes.set(xscale="log", xlabel="sentences", ylabel="share of words labelled right", title=title)
        axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        axes.minorticks_off()
        axes.set_ylim(min([0.8, *(row["accuracy_on_new"] or 1.0 for row in rows)]) - 0.02, 1.02)
    left.legend(loc="center left")
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, most = [], max(row["sentences"] for row in rows)
    groups = _groups([row for row in rows if row["sentences"] == most])
    for name, some in groups.items():
        found, new = (interval(r[v] for r in some if r[v] is not None) for v in ("accuracy", "accuracy_on_new"))
        size = interval(row["parameters"] for row in some)
        findings.append(
            f"{most} sentences, {name} ({size} parameters): {found} of the words right, {new} in new sentences."
        )
    alone = interval_by_group(rows, "sentences", "word_alone")[most]
    findings.append(f"The most frequent label of each word, whatever its company, is right for {alone}.")
    if not all(_groups(rows).values()):
        return Verdict("open", "There are not both constructed and trained models.", tuple(findings))
    exact = all(row["accuracy"] == 1.0 for row in _groups(rows)["constructed, rank 1"])
    trained = _groups(rows)["trained, rank 1"]
    learned = sum(row["accuracy"] == 1.0 for row in trained)
    says = (
        f"Built: {'every label of every corpus' if exact else 'not every label'}. Trained at rank 1: all labels in "
        f"{learned} of {len(trained)} runs within {trained[0]['steps']} steps."
    )
    answer: Any = "yes" if exact and learned == len(trained) else "partly" if exact else "no"
    return Verdict(answer, says, tuple(findings))
