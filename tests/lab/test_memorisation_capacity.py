"""What is said of capacity from rows: what a twin was given and what ended it limit what may be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer.lab import find
from onelayer.lab.experiment import Row, Verdict

CAPACITY: Any = find("memorisation-capacity")


def row(model: str, seed: int, bits: float, **said: Any) -> Row:
    made: Row = {"model": model, "size": 2000, "classes": 16, "load": 0.0, "steps": 0, "seed": seed}
    made |= {"parameters": 2000, "answers": 100, "bits": 2000 * bits, "bits_per_parameter": bits}
    made |= {"layers": 2, "width": 9} | dict.fromkeys(("taken", "by_noise", "ended", "ended_by"))
    if model == "trained":
        made |= {"load": 2.0, "steps": 100, "taken": 100, "by_noise": 0, "ended": 1, "ended_by": "plateau"}
    return made | said


def test_digits_are_the_answers_and_every_size_has_a_twin_for_many_classes() -> None:
    answers = np.arange(4096).reshape(8, 512)
    found = CAPACITY.digits(answers, 4096)
    assert found.shape == (8, 512, 3)
    assert set(found.ravel()) == set(range(16))
    assert (found @ (1, 16, 256) == answers).all()
    twins = [case for case in CAPACITY.cases("full") if case["model"] == "trained"]
    assert {(case["size"], case["classes"]) for case in twins} >= {(size, 4096) for size in (2000, 8000, 32000)}
    (trained,) = CAPACITY.run({**twins[0], "classes": 256, "load": 0.2, "steps": 1500}, 0)
    assert trained["ended_by"] == "all right"
    assert trained["bits"] == pytest.approx(8 * trained["answers"], rel=0.1)


def judged(constructed: float, trained: float, **said: Any) -> Verdict:
    rows = [row("float32", s, constructed + 0.01 * s) for s in range(5)]
    return CAPACITY.verdict(rows + [row("trained", s, trained + 0.01 * s, **said) for s in range(5)])


def test_only_twins_that_had_stopped_learning_hold_less() -> None:
    assert judged(3.0, 1.0).answer == "yes"
    assert judged(1.0, 3.0).answer == "no"
    assert judged(3.0, 1.0, ended_by="budget").answer == "open"
    assert judged(1.0, 3.0, ended_by="budget").answer == "no"  # more steps would not make it less
    assert "still learning in 5 of 5 runs" in judged(3.0, 1.0, ended_by="budget").findings[0]


def test_a_twin_that_held_all_it_was_given_may_hold_more() -> None:
    found = judged(3.0, 1.9, ended_by="all right")
    assert found.answer == "open"
    assert "given 2 bits a parameter, held all that it was given in 5 of 5 runs" in found.findings[0]
    assert "held all that they were given" in found.says


def test_a_larger_load_tells_whether_the_smaller_one_was_the_limit() -> None:
    """Of two loads the better one counts; it was the limit only if no larger one was tried."""
    rows = [row("float32", s, 3 + 0.01 * s) for s in range(5)]
    rows += [row("trained", s, 1.9 + 0.01 * s, ended_by="all right") for s in range(5)]
    rows += [row("trained", s, 1.5, load=4.0) for s in range(5)]
    assert CAPACITY.verdict(rows).answer == "yes"
    assert CAPACITY.verdict([{**r, "ended_by": "budget"} if r["load"] == 4 else r for r in rows]).answer == "open"
    longer = [row("trained", s, 1.6, load=4.0, steps=400) for s in range(5)]
    cut = [{**r, "ended_by": "budget"} if r["load"] == 4 else r for r in rows]
    assert CAPACITY.verdict(cut + longer).answer == "yes"


def test_bits_of_twins_have_an_interval_over_seeds_not_over_settings() -> None:
    """Two settings that differ by far more than seeds do."""
    rows = [row("float32", s, 9.0) for s in range(5)] + [row("trained", s, 1 + 0.01 * s) for s in range(5)]
    rows += [{**r, "size": 8000, "bits_per_parameter": r["bits_per_parameter"] + 1} for r in rows]
    assert "twins hold 1.52 ± 0.02 bits" in CAPACITY.verdict(rows).says


def test_no_curve_hides_another() -> None:
    rows = [row(model, s, 2.0) for model in ("float32", "float64", "trained") for s in range(5)]
    (axes,) = CAPACITY.plot(rows).axes
    places = [tuple(curve.get_xdata()) for curve in axes.lines if len(curve.get_xdata()) == 1]
    assert len(set(places)) >= 3


@pytest.mark.parametrize(("more", "told"), [(0.0, "in 0 of 5"), (1.0, "in 5 of 5")])
def test_what_a_longer_mantissa_holds_is_compared_pair_by_pair(more: float, told: str) -> None:
    rows = [row("float32", s, 3.0 + s) for s in range(5)] + [row("float64", s, 3.0 + s + more) for s in range(5)]
    (said,) = (text for text in CAPACITY.verdict([*rows, row("trained", 0, 1.0)]).findings if "mantissa" in text)
    assert f"float64 holds more bits a parameter than float32 {told} pairs of setting and seed" in said
    assert ("against the hypothesis" in said) == (more == 0)
