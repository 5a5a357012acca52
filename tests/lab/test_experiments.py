"""Every experiment: the same rows for the same seed, a picture, and an answer computed from the rows."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pytest
import torch

from onelayer.errors import DataError
from onelayer.lab import Verdict, corpora, find

torch.set_num_threads(1)

SIZE = {"n": 3, "vocabulary": 5, "sequences": 8}
COSINE = {"target": "polynomial:2", "family": "polynomial", "K": 2, "n": 2}
GENERATED = {"corpus": "", "contents": "", "sentences": 12}
#: The cheapest cases that give a verdict something to say; training is cut to a few steps.
SMALL = {
    "attention-first": [{"cells": 2, "steepness": steepness} for steepness in (10, 20)],
    "memorisation-capacity": [
        {"model": "float32", "size": 2000, "classes": 16, "load": 0.0, "steps": 0},
        {"model": "trained", "size": 600, "classes": 16, "load": 1.0, "steps": 20},
    ],
    "depth": [
        {"task": "memory", "model": "constructed", "layers": 1, "size": 12, "d": 1, "steps": 0},
        {"task": "memory", "model": "trained", "layers": 2, "size": 12, "d": 1, "steps": 10},
        {"task": "standardise", "model": "constructed", "layers": 1, "size": 2, "d": 1, "steps": 0},
        {"task": "standardise", "model": "trained", "layers": 1, "size": 2, "d": 1, "steps": 10},
    ],
    "equivariant-functions": [
        *(
            {"how": how, **COSINE, "asked": asked, "size": None, "steps": 0}
            for how, asked in (("quantise", 0.4), ("positional", 0.1))
        ),
        {"how": "trained", **COSINE, "asked": None, "size": 500, "steps": 10},
    ],
    "duplicates": [
        *(
            {"model": model, "steps": steps, "part": part, "rate": rate, "distance": 1.0, **SIZE}
            for model, steps in (("constructed", 0), ("trained", 10))
            for part, rate in (("repeats", 0.0), ("repeats", 1 / 3), ("similar", 0.0))
        ),
    ],
    "rank": [
        *({"model": "head", "N": 40, "rank": s, "queries": r, "steps": 0} for s in (1, 8) for r in (1, 8)),
        *({"model": "control", "N": 40, "rank": s, "queries": 0, "steps": 0} for s in (1, 8)),
        {"model": "trained", "N": 8, "rank": 1, "queries": 1, "steps": 10},
    ],
    "named-entities": [
        {**GENERATED, "model": "constructed", "rank": 1, "steps": 0},
        {**GENERATED, "model": "trained", "rank": 1, "steps": 10},
        {**GENERATED, "model": "trained", "rank": 32, "steps": 10},
    ],
    "softmax-and-boltzmann": [
        *(
            {"part": part, "levels": 6, "n": 3, "spacing": spacing, "draws": 2, "start": start, "steps": steps}
            for part, spacing, start, steps in (
                ("window", "even", 0.0, 0),
                ("window", "random", 0.0, 0),
                ("lemmas", "random", 0.0, 0),
                ("trained", "even", 1e-7, 20),
                ("trained", "even", 50.0, 20),
            )
        ),
    ],
    "networks-as-sequences": [{"networks": 12}],
    "predictive-coding": [
        {
            "task": task,
            "model": "one layer" if task == "keys" else "two layers",
            "how": how,
            "relaxation": 4 * (how != "backprop"),
            "rate": 0.1 * (how != "backprop"),
            "steps": 3,
        }
        for task in ("keys", "bytes")
        for how in ("backprop", "kl", "gaussian")
    ],
    "learned-loops": [
        {"learner": name, "model": model, "loops": 2, "steps": 4 * (model == "trained"), "batch": 4}
        for name in ("nesterov", "preconditioned")
        for model in ("built", "trained")
    ],
    "gradient-step": [
        {"d": 3, "examples": 4, "model": model, "steps": steps, "batch": 64}
        for model, steps in (("built", 0), ("trained", 5), ("trained", 20))
    ],
    "convex-or-adam": [{"heads": heads, "scale": 0.5, "steps": 5} for heads in (1, 2)],
    "looped-optimum": [
        {"d": 3, "examples": 6, "loops": loops, "start": start, "steps": 5, "batch": 16}
        for loops, start in ((1, "small"), (2, "identity"))
    ],
    "one-step-or-mesa": [
        {"model": kind, "n": 2, "T": 5, "noise": 0.1, "steps": 5, "batch": 8}
        for kind in ("linear", "softmax", "mesa")
    ],
    "recurrence-circuits": [
        {"model": model, "width": 8, "steps": steps, "batch": 8}
        for model, steps in (("built", 0), ("trained", 2), ("trained", 4))
    ],
    "rank-rate": [{"alpha": 1.0, "rank": rank, "steps": 4, "batch": 8} for rank in (1, 2, 4)],
    "in-context-statistics": [
        {"task": task, "model": model, "width": 8, "layers": 1, "steps": 3, "batch": 8}
        for task in ("dense", "sparse", "mixed")
        for model in ("built", "trained")
    ],
    "grading-and-training": [
        {"optimiser": kind, "how": how, "steps": 10}
        for kind in ("sgd", "adam")
        for how in ("none", "exponential", "rates", "standardised")
    ],
    "rank-of-updates": [
        *(
            {"part": part, "deciding": deciding, "rank": rank, "steps": 10}
            for part, deciding, rank in (
                ("trained", 2, 20),
                ("trained", 3, 20),
                ("twin", 2, 1),
                ("built", 3, 2),
                ("digits", 10, 8),
                ("compiled", 0, 0),
            )
        ),
    ],
    "fine-tuning": [
        {"part": part, "noise": noise, "steps": 10}
        for part, noise in (("keep", 0.0), ("change", 0.0), ("return", 0.01))
    ],
    "hidden-collapse": [
        {"model": "constructed", "scaled": False, "rate": 0.0, "width": 16, "steps": 0},
        {"model": "trained", "scaled": True, "rate": 0.01, "width": 16, "steps": 10},
        {"model": "trained", "scaled": False, "rate": 0.1, "width": 16, "steps": 40},
    ],
}


@pytest.mark.parametrize("name", SMALL)
def test_rows_repeat_and_are_judged_and_drawn(name) -> None:
    experiment = find(name)
    assert experiment.QUESTION.endswith("?")
    rows = []
    for case in SMALL[name]:
        assert set(case) == set(experiment.cases("quick")[0])
        first = experiment.run(case, 0)
        assert experiment.run(case, 0) == first
        rows += [{**case, "seed": 0, **row} for row in first]
        experiment.verdict(rows)  # an interrupted run has some of the rows, and a report
        experiment.plot(rows)
    judged = experiment.verdict(rows)
    assert isinstance(judged, Verdict)
    assert judged.findings
    assert all(text.endswith(".") for text in (judged.says, *judged.findings))
    picture = io.BytesIO()
    experiment.plot(rows).savefig(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", SMALL)
def test_presets_are_flat_and_the_full_one_is_larger(name) -> None:
    quick, full = (find(name).cases(preset) for preset in ("quick", "full"))
    assert len(full) >= len(quick)
    assert len({tuple(case.items()) for case in full}) == len(full)


def test_constructed_models_are_exact_in_every_experiment() -> None:
    row = find("named-entities").run(SMALL["named-entities"][0], 1)[0]
    assert row["accuracy"] == row["verified"] == 1
    assert row["word_alone"] < 1.0
    row = find("hidden-collapse").run(SMALL["hidden-collapse"][0], 1)[0]
    assert (row["right"], row["equal_pairs"]) == (64, 0)
    row = find("depth").run(SMALL["depth"][2], 0)[0]
    assert row["error"] <= row["proved"] <= 0.1


def test_the_built_layer_of_patterns_is_right_and_its_lead_is_exact() -> None:
    run, case = find("rank-of-updates").run, {"part": "built", "steps": 0}
    for deciding in (2, 3, 5):
        row = run({**case, "deciding": deciding, "rank": deciding - 1}, 3)[0]
        assert (row["accuracy"], row["head"]) == (1.0, deciding - 1)
        assert row["margin_off"] < 1e-12
    row = run({**case, "part": "compiled", "deciding": 0, "rank": 0}, 3)[0]
    assert row["verified"]
    assert row["removed"] > 0.2
    assert row["smallest 0.2"] > 0  # a plateau of a small class carries an answer as well


def test_more_parameters_hold_more_answers() -> None:
    run = find("memorisation-capacity").run
    case = {"model": "float32", "classes": 16, "load": 0.0, "steps": 0}
    small, large = (run({**case, "size": size}, 0)[0] for size in (2000, 4000))
    assert 0 < small["answers"] < large["answers"]
    assert small["parameters"] <= 2000


SENTENCES = "Jordan I-PER\nruns O\n\nJordan I-LOC\nis O\nhot O\n\nJordan O\nruns O\n\nit O\nruns O\n"


def test_named_entities_are_read_from_a_corpus(tmp_path) -> None:
    """The third sentence contradicts the first: it is left out, and counted."""
    path = tmp_path / "own.conll"
    path.write_text(SENTENCES)
    found, contradictory = corpora.read(path)
    assert found == [(["Jordan", "runs"], [1, 0]), (["Jordan", "is", "hot"], [2, 0, 0]), (["it", "runs"], [0, 0])]
    assert contradictory == 1
    experiment = find("named-entities")
    cases = experiment.of_corpus(experiment.cases("quick"), path)
    assert [(case["model"], case["rank"]) for case in cases] == [
        ("constructed", 1),
        ("trained", 1),
        ("trained", 32),
    ]
    assert {case["contents"] for case in cases} == {corpora.digest(path)}
    path.write_text(SENTENCES + "\nit O\nis O\n")
    assert experiment.of_corpus(cases, path)[0]["contents"] != cases[0]["contents"]
    row = experiment.run({**cases[0], "corpus": str(path)}, 0)[0]
    assert (row["stored"], row["new_sentences"], row["contradictory"], row["accuracy"]) == (3, 1, 1, 1.0)
    path.write_text("it O\n")
    with pytest.raises(DataError, match="two different sentences"):
        experiment.run({**cases[0], "corpus": str(path)}, 0)


def test_what_a_twin_half_knows_is_information_and_what_it_guesses_is_none() -> None:
    """Without steps it holds next to nothing; a few steps on few facts, and it holds some, not yet all."""
    run = find("memorisation-capacity").run
    case = {"model": "trained", "size": 900, "classes": 16, "load": 0.3, "steps": 0}
    nothing = run(case, 0)[0]
    assert nothing["bits_per_parameter"] < 0.05
    some = run({**case, "steps": 60}, 0)[0]
    assert 0.05 < some["bits_per_parameter"] <= 0.3 * 900 / some["parameters"] + 0.01


@pytest.mark.parametrize("s", [1, 2, 5])
def test_the_nearest_pair_is_the_nearest(s: int) -> None:
    points = np.random.default_rng(s).normal(size=(60, s))
    every = [np.abs(a - b).max() for a, b in combinations(points, 2)]
    assert find("rank").nearest_pair(points) == pytest.approx(min(every), abs=1e-15)


def test_random_points_follow_the_law_of_the_nearest_pair() -> None:
    """2 log2(M)/s + log2(span/sigma) - 0.83 - 0.47/s for normal ones is the median over draws.

    The logarithm of an exponential variable has the density ln(2)^2/2 at its median, so that of 30 draws a median
    has a standard error of 0.38/s.
    """
    run = find("rank").run
    for s in (1, 2, 4):
        rows = [
            run({"model": "control", "N": 512, "rank": s, "queries": 0, "steps": 0}, seed)[0] for seed in range(30)
        ]
        off = np.median([row["bits"] - row["law"] - row["spread"] + 0.83 + 0.47 / s for row in rows])
        assert abs(off) < 3 * 0.38 / s


def test_a_flat_readout_gives_no_gradient_and_nothing_moves() -> None:
    row = find("fine-tuning").run({"part": "keep", "noise": 0.0, "steps": 20}, 3)[0]
    assert row["without_gradient"] == row["tensors"]
    assert row["right"] == row["right_before"] == row["answers"]
    moved = find("fine-tuning").run({"part": "return", "noise": 0.01, "steps": 0}, 3)[0]
    assert moved["right"] == moved["right_before"] < moved["answers"]


def test_adam_comes_to_the_proved_gradient_step() -> None:
    """Few components, so that seconds are enough; the twin starts from weights of no structure."""
    case, run = {"d": 2, "examples": 8, "steps": 500, "batch": 256}, find("gradient-step").run
    built, row = (run({**case, "model": model}, 0)[0] for model in ("built", "trained"))
    assert row["cosine"] > 0.99
    assert row["eta"] == pytest.approx(built["eta"], rel=0.05)
    assert built["loss"] * 0.99 < row["loss"] < built["loss"] * 1.02


def test_the_best_loop_is_the_one_that_is_known() -> None:
    """One loop: a = n/(n + d + 1), and the loss is d(d + 1)/(n + d + 1)."""
    row = find("looped-optimum").run(
        {"d": 4, "examples": 10, "loops": 1, "start": "small", "steps": 1, "batch": 8}, 0
    )[0]
    assert row["a"] == pytest.approx(10 / 15, abs=0.02)
    assert row["built"] == pytest.approx(20 / 15, rel=0.05)


def test_a_built_mesa_layer_solves_what_a_step_does_not() -> None:
    row = find("one-step-or-mesa").run(
        {"model": "softmax", "n": 2, "T": 12, "noise": 0.0, "steps": 1, "batch": 8}, 0
    )[0]
    assert row["mesa"] < 0.5 * row["step"] < 0.5 * row["zero"]


def test_least_squares_finds_the_layer_and_heads_enough_come_near_it() -> None:
    run = find("convex-or-adam").run
    few, enough = (run({"heads": heads, "scale": 1.0, "steps": 300}, 0)[0] for heads in (1, 4))
    assert few["convex"] < 1e-20
    assert few["convex_apart"] < 1e-10
    assert enough["loss"] < 0.1 * few["loss"]
