"""Every experiment: the same rows for the same seed, a picture, and an answer computed from the rows."""

from __future__ import annotations

import io

import pytest
import torch

from onelayer.lab import Verdict, find

torch.set_num_threads(1)

SIZE = {"n": 3, "vocabulary": 5, "sequences": 8}
COSINE = {"target": "polynomial:2", "family": "polynomial", "K": 2, "n": 2}
#: The cheapest cases that give a verdict something to say; training is cut to a few steps.
SMALL = {
    "memorisation-capacity": [
        {"model": "table", "size": 600, "steps": 0},
        {"model": "trained", "size": 600, "steps": 60},
    ],
    "depth": [
        {"task": "memory", "model": "constructed", "layers": 1, "size": 12, "steps": 0},
        {"task": "memory", "model": "trained", "layers": 2, "size": 12, "steps": 10},
        {"task": "interaction", "model": "constructed", "layers": 1, "size": 2, "steps": 0},
        {"task": "interaction", "model": "trained", "layers": 1, "size": 2, "steps": 10},
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
        *({"model": "constructed", "N": 8, "rank": s, "steps": 0} for s in (1, 2, 4, 8)),
        {"model": "trained", "N": 8, "rank": 1, "steps": 10},
    ],
    "named-entities": [
        {"sentences": 12, "model": "constructed", "rank": 1, "steps": 0},
        {"sentences": 12, "model": "trained", "rank": 1, "steps": 10},
        {"sentences": 12, "model": "trained", "rank": 32, "steps": 10},
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
    assert row["accuracy"] == 1.0
    assert row["word_alone"] < 1.0
    row = find("hidden-collapse").run(SMALL["hidden-collapse"][0], 1)[0]
    assert (row["right"], row["equal_pairs"]) == (64, 0)
    row = find("depth").run(SMALL["depth"][2], 0)[0]
    assert row["error"] <= row["proved"] <= 0.1


def test_more_parameters_hold_more_answers() -> None:
    run = find("memorisation-capacity").run
    small, large = (run({"model": "table", "size": size, "steps": 0}, 0)[0] for size in (600, 1500))
    assert 0 < small["answers"] < large["answers"]
    assert small["parameters"] <= 600
