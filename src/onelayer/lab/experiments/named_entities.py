"""Labels of words in sentences, as in the paper's experiment with named entities.

On a corpus of one's own (`lab run named-entities --corpus FILE`, CoNLL), else on sentences of a small grammar,
which the answer then says. A tenth of the sentences is held out. Some of their words do not occur in the sentences
that were given: what is said of them is no knowledge (the most frequent label says "other", a trained model has an
embedding that no step moved), so held-out words that do occur are also counted by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.errors import DataError
from onelayer.lab import corpora
from onelayer.lab.corpora import Sentence
from onelayer.lab.endings import Answer, of_settings
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, interval_by_group, interval_of, paired, tally

QUESTION = "Does one layer of rank 1 label every word of a corpus right, built and trained?"
HYPOTHESES = (
    "A constructed layer of rank 1 reproduces every label, proved (Theorem 2); the paper trains such layers, and "
    "reports training accuracy only.",
    "What is built knows its corpus and nothing else; what is trained also says something about new sentences.",
)
EARLIER = Earlier(
    "of a toy",
    "40 and 120 sentences of twelve templates, three seeds, training cut at 300 steps.",
    "a corpus can be given, twins are trained until their loss stops falling, and built labels are proved.",
)
EXTRAS = ("torch",)
#: Share of the sentences that is held out, and the sentences at one step of training.
HELD_OUT, BATCH = 0.1, 32
#: Steps after which the worse half of the rates is given up, and between two counts, at most.
TRIED, COUNTED = 160, 250


def cases(preset: Preset) -> list[Case]:
    sizes, steps = ((40, 120), 400) if preset == "quick" else ((40, 120, 400, 1200), 4000)
    models = (("constructed", 1), ("trained", 1), ("trained", 32))
    return [
        {"corpus": "", "contents": "", "sentences": N, "model": model, "rank": rank}
        | {"steps": steps if model == "trained" else 0}
        for N in sizes
        for model, rank in models
    ]


def of_corpus(given: list[Case], path: Path) -> list[Case]:
    """The same models on all sentences of a file, with sixty times the steps."""
    most = max(case["sentences"] for case in given)
    about = {"corpus": str(path.resolve()), "contents": corpora.digest(path), "sentences": 0}
    return [{**case, **about, "steps": 60 * case["steps"]} for case in given if case["sentences"] == most]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _construct if case["model"] == "constructed" else _train


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _construct(case: Case, seed: int) -> list[Row]:
    stored, new, contradictory = sentences_of(case, seed)
    predict, about = _construct_model(case, seed, stored)
    return [_row(stored, new, predict, {"contradictory": contradictory, **about})]


def _train(case: Case, seed: int) -> list[Row]:
    stored, new, contradictory = sentences_of(case, seed)
    labels = 1 + max(label for _, row in (*stored, *new) for label in row)
    predict, about = _train_model(case, seed, stored, labels)
    return [_row(stored, new, predict, {"contradictory": contradictory, **about})]


def _row(stored: list[Sentence], new: list[Sentence], predict: Callable[[Any], Any], about: Row) -> Row:
    usual = corpora.frequent_labels(stored)
    most_frequent = [[usual.get(word, 0) for word in words] for words, _ in new]
    alone = [[usual[word] for word in words] for words, _ in stored]
    said = predict([words for words, _ in new])
    held_out = [word for words, _ in new for word in words]
    return {
        "stored": len(stored),
        "words": sum(len(words) for words, _ in stored),
        "vocabulary": len(usual),
        **about,
        "accuracy": _accuracy(predict([words for words, _ in stored]), stored),
        "word_alone": _accuracy(alone, stored),  # the best of a labelling that does not look at the company
        "new_sentences": len(new),
        "accuracy_on_new": _accuracy(said, new),
        "word_alone_on_new": _accuracy(most_frequent, new),
        "accuracy_on_known": _accuracy(said, new, usual),
        "word_alone_on_known": _accuracy(most_frequent, new, usual),
        "unknown": sum(word not in usual for word in held_out) / len(held_out),
    }


def sentences_of(case: Case, seed: int) -> tuple[list[Sentence], list[Sentence], int]:
    """Sentences to store, sentences held out, and how many of the file contradict others."""
    rng = np.random.default_rng([seed, case["sentences"], 3])
    contradictory = 0
    if case["corpus"]:
        all_of_them, contradictory = corpora.read(Path(case["corpus"]))
        order = rng.permutation(len(all_of_them))
        all_of_them = [all_of_them[i] for i in order]
    else:
        all_of_them = corpora.generate(round(case["sentences"] / (1 - HELD_OUT)) + 20, rng)
    count = case["sentences"] or len(all_of_them) - max(1, round(HELD_OUT * len(all_of_them)))
    if count < 1:
        raise DataError("lab", "at least two different sentences", f"{len(all_of_them)}", "Give a larger corpus.")
    return all_of_them[:count], all_of_them[count:], contradictory


def _accuracy(given: Any, sentences: list[Sentence], among: Container[str] | None = None) -> float | None:
    """The share of words with the right label, of those ``among`` these if given; unknown if there are none."""
    right = [
        int(label) == wanted
        for labels, (words, all_wanted) in zip(given, sentences, strict=True)
        for label, word, wanted in zip(labels, words, all_wanted, strict=False)
        if among is None or word in among
    ]
    return sum(right) / len(right) if right else None


def _construct_model(case: Case, seed: int, stored: list[Sentence]) -> tuple[Any, Row]:
    """Every label proved by the checker; a sentence that is not stored gets label 0, but for rare false hits."""
    X, Y = [words for words, _ in stored], [labels for _, labels in stored]
    model = memorize(X, Y, positions=True, rank=case["rank"], seed=seed, default=0, certify=True)
    said = {"parameters": model.n_parameters, "taken": 0, **dict.fromkeys(("ended", "ended_by", "by_noise"))}
    said["verified"] = int(model.verify().exit_code == 0)

    def answer(sentences: list[list[str]]) -> Any:
        longest = max(map(len, X))
        cut = model.predict([words[:longest] for words in sentences])
        return [[*row, *[0] * (len(words) - longest)] for row, words in zip(cut, sentences, strict=True)]

    return answer, said


def _train_model(case: Case, seed: int, stored: list[Sentence], labels: int) -> tuple[Any, Row]:
    """A word that does not occur is one token more, whose embedding stays as it was drawn."""
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, predict, train_tuned

    index = {word: i for i, word in enumerate(sorted({word for words, _ in stored for word in words}))}
    longest = max(len(words) for words, _ in stored)

    def numbered(rows: list[list[str]]) -> tuple[Any, Any]:
        tokens = np.full((len(rows), longest), len(index))
        for i, words in enumerate(rows):
            tokens[i, : len(words)] = [index.get(word, len(index)) for word in words[:longest]]
        return tokens, np.array([min(len(words), longest) for words in rows])

    tokens, lengths = numbered([words for words, _ in stored])
    wanted = np.zeros(tokens.shape, np.int64)
    for i, (_, row) in enumerate(stored):
        wanted[i, : len(row)] = row
    wanted[0, -1] = labels - 1 if lengths[0] < longest else wanted[0, -1]  # padding: every label has an output
    task = Task(tokens, wanted, lengths=lengths)
    shape = Shape(32, hidden=128, rank=case["rank"], positions=True)
    check = max(20, min(COUNTED, case["steps"] // 32))  # a count reads the whole corpus
    short = min(0.02, TRIED / case["steps"])
    budget = Budget(steps=case["steps"], batch=BATCH, short=short, check=check, patience=2, halvings=6)
    ended = train_tuned(shape, task, budget, seed)
    said = {"parameters": count_parameters(shape, task), **ended.end}

    def answer(sentences: list[list[str]]) -> Any:
        found = predict(ended.net, *numbered(sentences)).argmax(-1)
        return [[*row, *[0] * (len(words) - longest)] for row, words in zip(found, sentences, strict=True)]

    return answer, {**said, "verified": None}


def _groups(rows: list[Row]) -> dict[str, list[Row]]:
    """The models that there are."""
    named = {"constructed, rank 1": [r for r in rows if r["model"] == "constructed"]}
    named["trained, rank 1"] = [r for r in rows if r["model"] == "trained" and r["rank"] == 1]
    named["trained, full rank"] = [r for r in rows if r["model"] == "trained" and r["rank"] > 1]
    return {name: some for name, some in named.items() if some}


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    looks = {"constructed, rank 1": ("o", "--", 0.97), "trained, rank 1": ("v", "-", 1.0)}
    for name, some in _groups(rows).items():
        marker, style, aside = looks.get(name, ("^", "-", 1.03))
        for axes, value in ((left, "accuracy"), (right, "accuracy_on_new")):
            points = {aside * at: found for at, found in interval_by_group(some, "stored", value).items()}
            line(axes, points, name, marker=marker, linestyle=style)
    usual = {"color": "grey", "linestyle": ":"}
    line(left, interval_by_group(rows, "stored", "word_alone"), "most frequent label of the word", **usual)
    line(right, interval_by_group(rows, "stored", "word_alone_on_new"), "most frequent label", **usual)
    sizes = sorted({row["stored"] for row in rows})
    for axes, title in ((left, "the sentences that were given"), (right, "sentences held out")):
        axes.set(xscale="log", xlabel="sentences", ylabel="share of words labelled right", title=title)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.minorticks_off()
        axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
        axes.set_ylim(min([0.8, *(row["accuracy_on_new"] for row in rows)]) - 0.02, 1.02)
    left.legend(loc="lower left")
    return made


def verdict(rows: list[Row]) -> Verdict:
    most = max(row["stored"] for row in rows)
    largest = [row for row in rows if row["stored"] == most]
    source = Path(largest[0]["corpus"]).name or "generated sentences"
    findings = [
        f"{source}: {most:,} sentences, {interval_of(largest, 'words')} words, "
        f"{interval_of(largest, 'vocabulary')} different ones; {largest[0]['contradictory']} left out because the "
        "same words came with other labels."
    ]
    findings += [_finding(name, some) for name, some in _groups(largest).items()]
    findings.append(_about_words_alone(largest))
    groups = _groups(rows)
    built, trained = groups.get("constructed, rank 1"), groups.get("trained, rank 1")
    if not (built and trained):
        return Verdict("open", "There are not both constructed and trained models of rank 1.", tuple(findings))
    proved = all(row["accuracy"] == 1.0 and row["verified"] for row in built)
    by_size = [[row for row in trained if row["sentences"] == size] for size in {r["sentences"] for r in trained}]
    wrong = [[row for row in some if row["accuracy"] < 1.0] for some in by_size]
    learned, reason = of_settings([(some, not some) for some in wrong])
    says = (
        f"Built: {'every label of every corpus, proved' if proved else 'not every label'} ({source}). Trained at "
        f"rank 1: all labels in {sum(row['accuracy'] == 1.0 for row in trained)} of {len(trained)} runs.{reason}"
    )
    return Verdict(_answer(proved, learned), says, tuple(findings))


def _answer(proved: bool, learned: Answer) -> Answer:
    """To both halves of the question."""
    if learned == "open" or (proved and learned == "yes"):
        return learned
    return "no" if learned == "no" and not proved else "partly"


def _finding(name: str, some: list[Row]) -> str:
    """What a model knows of what it was given, and of new sentences beside the most frequent label."""
    found, new = (interval_of(some, value) for value in ("accuracy", "accuracy_on_new"))
    size, ended = interval_of(some, "parameters"), tally(row.get("ended_by") for row in some)
    how = f", {interval_of(some, 'taken')} steps, ended by: {ended}" if "trained" in name else ""
    if "constructed" in name:
        how = f", all labels VERIFIED in {sum(bool(row['verified']) for row in some)} of {len(some)} runs"
    said = f"{name} ({size} parameters{how}): {found} of the words right, {new} held out, {_beside(some, 'new')}"
    if _knows_which(some):
        known = interval_of(some, "accuracy_on_known")
        said += f"; of held-out words that occur in the given sentences {known} right, {_beside(some, 'known')}"
    return f"{said}, seed by seed."


def _beside(some: list[Row], words: str) -> str:
    """How far a model is above or below the most frequent label, of all held-out words or those that occur."""
    here, usual = ({row["seed"]: row[f"{who}_on_{words}"] for row in some} for who in ("accuracy", "word_alone"))
    more = paired(here, usual).found
    assert isinstance(more, Interval)
    return f"{replace(more, mean=abs(more.mean))} {'above' if more.mean >= 0 else 'below'} the most frequent label"


def _about_words_alone(rows: list[Row]) -> str:
    """The baseline, and what it says of words that it cannot know."""
    alone, unseen = (interval_of(rows, value) for value in ("word_alone", "word_alone_on_new"))
    said = f"The most frequent label of each word, whatever its company: {alone}, {unseen} held out"
    if not _knows_which(rows):
        return f"{said}."
    known, unknown = (interval_of(rows, value) for value in ("word_alone_on_known", "unknown"))
    return (
        f"{said}, {known} of held-out words that occur in the given sentences. The others, a share of {unknown}, "
        "it calls 'other'; a trained model has an embedding for them that no step moved."
    )


def _knows_which(rows: list[Row]) -> bool:
    """Rows of earlier code do not say which held-out words occur in the given sentences."""
    return all(row.get("accuracy_on_known") is not None for row in rows)
