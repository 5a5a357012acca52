"""What rows about networks say: pairs by seed, and evidence for both answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_equal

from onelayer.compile.memorize import memorize
from onelayer.lab import find, graph_twins
from onelayer.lab.experiment import Row
from onelayer.measure.encoding import encode
from onelayer.network.forward import forward

NETWORKS: Any = find("networks-as-sequences")


def rows(error: float, right: float, noise: float = 0.0) -> list[Row]:
    found = []
    for how in ("attention", "sum"):
        for s in range(6):
            off = noise * (-1) ** s
            made: Row = {"networks": 60, "seed": s, "how": how, "exact": 1, "survive": 0.3, "refused": 1}
            for split in ("", "unseen_"):
                own = (error * (1 + off), right + off) if how == "attention" else (0.1, 0.7)
                made |= {f"{split}relative_error": own[0] + 0.001 * s, f"{split}float16_right": own[1] + 0.001 * s}
                made |= {f"{split}float16_usual": 0.7, f"{split}mean_error": own[0], f"{split}within_tenth": 0.5}
            found.append(made)
    return found


def test_an_answer_takes_evidence_on_both_sides() -> None:
    assert NETWORKS.verdict(rows(0.05, 0.9)).answer == "yes"
    assert NETWORKS.verdict(rows(0.2, 0.6)).answer == "no"
    assert NETWORKS.verdict(rows(0.05, 0.6)).answer == "partly"
    assert NETWORKS.verdict(rows(0.1, 0.7, noise=0.3)).answer == "open"


def test_kinds_that_were_not_seen_are_judged_by_seed_as_well() -> None:
    (said,) = (text for text in NETWORKS.verdict(rows(0.05, 0.9)).findings if "not fitted to" in text)
    assert "one over the other, seed by seed: 0.5" in said


def test_a_picture_has_no_curve_behind_another() -> None:
    left, right = NETWORKS.plot(rows(0.05, 0.7)).axes
    for axes in (left, right):
        places = [round(x, 6) for shown in axes.collections for x in shown.get_offsets()[:, 0]]
        assert len(set(places)) == len(places)


def test_all_readers_read_the_same_networks(monkeypatch: Any) -> None:
    monkeypatch.setattr(NETWORKS, "TREES", 20)
    monkeypatch.setattr(graph_twins, "RATES", (1e-2,))
    found = NETWORKS.run({"networks": 12}, 0)
    assert [row["how"] for row in found] == list(NETWORKS.READERS)
    assert len({row["survive"] for row in found}) == 1
    assert len({row["mean_error"] for row in found}) == len(found)
    assert all(row["exact"] == 1 for row in found)
    assert [row["trainings"] is not None for row in found] == [how in NETWORKS.TWINS for how in NETWORKS.READERS]
    assert all(row["relative_error"] >= 0 for row in found)
    said = NETWORKS.verdict([{"networks": 12, "seed": 0, **row} for row in found]).findings
    assert sum(text.startswith("trees of ") for text in said) == 2
    assert sum("against the fitted layer" in text for text in said) == 2


def test_a_head_of_linear_attention_counts_parameters_at_every_token() -> None:
    model = memorize([[1, 2], [2, 1]], [[3, 4], [5, 6]], positions=True, certify=False)
    tokens = encode(model)
    assert_equal(forward(NETWORKS.counting_layer(), tokens[None]), np.full((1, len(tokens), 1), model.n_parameters))


def test_trained_layers_are_paired_with_the_fitted_one_by_seed() -> None:
    """Errors differ from seed to seed, their ratio does not."""
    given = rows(0.05, 0.9)
    for how in NETWORKS.TWINS:
        for fitted in [row for row in given if row["how"] == "attention"]:
            twin = {**fitted, "how": how, "trainings": 4, "taken": 900, "cut": fitted["seed"] % 2}
            given.append(twin | {"mean_error": 2 * fitted["mean_error"]})
    found = NETWORKS.verdict(given)
    assert (found.answer, found.says) == (
        NETWORKS.verdict(rows(0.05, 0.9)).answer,
        NETWORKS.verdict(rows(0.05, 0.9)).says,
    )
    assert "Of kinds of readouts that were fitted to" in found.says
    assert "Of a kind that was not (table)" in found.says
    for how in NETWORKS.TWINS:
        (said,) = (text for text in found.findings if text.startswith(f"{how} against"))
        assert "mean relative error of sizes 2 " in said
        assert "stopped falling in 21 of 24 trainings" in said


def test_the_answer_says_who_is_nearer_on_a_kind_that_was_not_fitted_to() -> None:
    """There a twin errs a tenth as much; less of anything is not a negative number of more."""
    given = rows(0.05, 0.9)
    for fitted in [row for row in given if row["how"] == "attention"]:
        twin = {**fitted, "how": "trained graph", "trainings": 4, "taken": 900, "cut": 0, "within_tenth": 0.25}
        given.append(twin | {"unseen_mean_error": fitted["unseen_mean_error"] / 10})
    found = NETWORKS.verdict(given)
    assert "clearly smaller there, of trained graph 0.1 (" in found.says
    assert "trained softmax" not in found.says
    (said,) = (text for text in found.findings if text.startswith("trained graph against"))
    assert "within a tenth 0.25 ± 0 less" in said
