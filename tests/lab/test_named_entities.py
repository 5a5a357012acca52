"""Words in sentences: what is computed of a corpus, what its rows stand on, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from onelayer.lab import corpora, find, registry
from onelayer.lab.experiment import Row, judge
from onelayer.lab.statistics import interval

torch.set_num_threads(1)
ENTITIES: Any = find("named-entities")
KINDS = (("constructed", 1), ("trained", 1), ("trained", 32))


def row(model: str, rank: int, seed: int, **said: Any) -> Row:
    made: Row = {"corpus": "", "contents": "", "sentences": 40, "model": model, "rank": rank, "steps": 10}
    made |= {"seed": seed, "stored": 40, "words": 200 + seed, "vocabulary": 50, "contradictory": 0}
    made |= {"parameters": 900, "taken": 10, "ended_by": "all right", "verified": None, "accuracy": 1.0}
    if model == "constructed":
        made |= {"ended_by": None, "verified": 1}
    made |= {"word_alone": 0.9, "new_sentences": 20, "accuracy_on_new": 0.8, "word_alone_on_new": 0.7 + 0.02 * seed}
    made |= {"accuracy_on_known": 0.95, "word_alone_on_known": 0.9 + 0.01 * seed, "unknown": 0.14 + 0.01 * seed}
    return made | said


def rows(**of_rank_one: Any) -> list[Row]:
    made = [row(model, rank, s) for model, rank in KINDS for s in range(5)]
    return [r | of_rank_one if r["model"] == "trained" and r["rank"] == 1 else r for r in made]


def test_a_part_of_the_settings_says_nothing_of_the_others() -> None:
    for model, rank in KINDS:
        some = [r for r in rows() if (r["model"], r["rank"]) == (model, rank)]
        found = ENTITIES.verdict(some)
        assert found.answer == "open"
        assert "nan" not in "".join(found.findings)
        (left, _) = ENTITIES.plot(some).axes
        assert len(left.get_legend().get_texts()) == 2  # the model, and the most frequent label


def test_the_most_frequent_label_has_one_value_a_seed() -> None:
    """All models of a seed see the same sentences."""
    told = "".join(ENTITIES.verdict(rows()).findings)
    assert f"0.9 ± 0, {interval(0.7 + 0.02 * s for s in range(5))} held out" in told
    assert f"{interval(200 + s for s in range(5))} words" in told


def test_held_out_words_are_compared_with_the_most_frequent_label_by_seed() -> None:
    """Both depend on the seed, their difference does not."""
    given = [{**r, "accuracy_on_new": r["word_alone_on_new"] + 0.01} for r in rows()]
    (said,) = (text for text in ENTITIES.verdict(given).findings if text.startswith("trained, rank 1"))
    assert "0.01 ± 0 above the most frequent label" in said


def test_held_out_words_that_occur_in_the_given_sentences_are_compared_by_themselves() -> None:
    """A model that is below the most frequent label of all held-out words may be above it of those it can know."""
    given = [{**r, "accuracy_on_new": r["word_alone_on_new"] - 0.02} for r in rows()]
    given = [{**r, "accuracy_on_known": r["word_alone_on_known"] + 0.03} for r in given]
    found = ENTITIES.verdict(given).findings
    for model in ("constructed, rank 1", "trained, rank 1", "trained, full rank"):
        (said,) = (text for text in found if text.startswith(model))
        assert "0.02 ± 0 below the most frequent label; of held-out words that occur" in said
        assert "0.03 ± 0 above the most frequent label, seed by seed." in said
    (usual,) = (text for text in found if text.startswith("The most frequent label"))
    known, unknown = (interval(start + 0.01 * s for s in range(5)) for start in (0.9, 0.14))
    assert f"{known} of held-out words that occur in the given sentences" in usual
    assert f"a share of {unknown}, it calls 'other'" in usual


def test_words_that_do_not_occur_are_counted_by_hand() -> None:
    stored: Any = [(["Ford", "met", "Anna"], [1, 0, 1]), (["Ford", "left"], [1, 0])]
    new: Any = [(["Ford", "sued", "Anna"], [3, 0, 1]), (["Lima", "met"], [2, 0])]

    def predict(sentences: list[list[str]]) -> Any:
        return [[3, 1, 1], [0, 0]] if sentences == [words for words, _ in new] else [[1, 0, 1], [1, 0]]

    found = ENTITIES._row(stored, new, predict, {})
    assert found["unknown"] == 2 / 5  # sued, Lima
    assert (found["accuracy_on_new"], found["accuracy_on_known"]) == (3 / 5, 1.0)
    assert (found["word_alone_on_new"], found["word_alone_on_known"]) == (3 / 5, 2 / 3)
    strangers: Any = [(["Oslo"], [2])]
    alone = ENTITIES._row(stored, strangers, lambda sentences: [[0, 0, 0]] * len(sentences), {})
    assert (alone["unknown"], alone["accuracy_on_known"], alone["word_alone_on_known"]) == (1.0, None, None)


def test_rows_of_earlier_code_say_what_they_know() -> None:
    new = ("accuracy_on_known", "word_alone_on_known", "unknown")
    earlier = [{name: value for name, value in r.items() if name not in new} for r in rows()]
    said = "".join(ENTITIES.verdict(earlier).findings)
    assert "that occur" not in said
    assert "nan" not in said


def test_steps_that_are_spent_are_no_no() -> None:
    assert ENTITIES.verdict(rows()).answer == "yes"
    flat = ENTITIES.verdict(rows(accuracy=0.9, ended_by="plateau"))
    assert flat.answer == "partly"
    cut = ENTITIES.verdict(rows(accuracy=0.9, ended_by="budget"))
    assert cut.answer == "open"
    assert "still learning" in cut.says
    wrong = [r | ({"verified": 0} if r["model"] == "constructed" else {}) for r in rows()]
    assert ENTITIES.verdict(wrong).answer == "partly"
    assert judge(ENTITIES, [r for r in rows() if r["seed"] == 0 or r["rank"] == 1]).answer == "open"


def test_trained_rows_do_not_stand_on_the_compiler() -> None:
    for model, stands in (("trained", False), ("constructed", True)):
        start = ENTITIES.computes({"model": model}).__name__
        found = registry.stands_on(ENTITIES.__name__, start)
        assert any(name.startswith(("onelayer.compile", "onelayer_checker")) for name in found) is stands
        assert ("onelayer.lab.trained" in found) is not stands


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A file in CoNLL's form of sixty sentences."""
    path = tmp_path_factory.mktemp("corpus") / "small.conll"
    sentences = corpora.generate(60, np.random.default_rng(2))
    told = ("\n".join(f"{w} {corpora.LABELS[label]}" for w, label in zip(*each, strict=True)) for each in sentences)
    path.write_text("\n\n".join(told) + "\n")
    return path


def test_a_corpus_is_built_with_a_proof_and_trained_until_all_is_right(corpus) -> None:
    found = []
    for case in ENTITIES.of_corpus(ENTITIES.cases("quick"), corpus):
        case = {**case, "steps": min(case["steps"], 1500)}
        found += [{**case, "seed": 0, **each} for each in ENTITIES.run(case, 0)]
    built, *trained = found
    assert (built["accuracy"], built["verified"], built["rank"]) == (1.0, 1, 1)
    assert (built["stored"], built["new_sentences"]) == (54, 6)
    assert [(r["rank"], r["ended_by"], r["accuracy"]) for r in trained] == [
        (1, "all right", 1),
        (32, "all right", 1),
    ]
    assert len({(r["word_alone"], r["word_alone_on_new"]) for r in found}) == 1
    assert ENTITIES.verdict(found).findings[0].startswith("small.conll: 54 sentences")
