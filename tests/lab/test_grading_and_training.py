"""What rows of grading say: pairs by seed, and runs that did not arrive."""

from __future__ import annotations

from typing import Any

import pytest

from onelayer.lab import find
from onelayer.lab.experiment import Row
from onelayer.lab.experiments import grading_and_training as module

GRADING: Any = find("grading-and-training")


def row(kind: str, how: str, seed: int, taken: int, reached: bool = True) -> Row:
    made: Row = {"optimiser": kind, "how": how, "steps": 200, "seed": seed, "taken": taken, "accuracy": 1.0}
    made |= {"reached": int(reached), "ended_by": "all right" if reached else "budget", "learning_rate": 1.0}
    return made | {"at_an_end": 0, "apart": 0.0 if how == "rates" else None}


def judged(rival: int, graded: int, noise: float = 0.0, **said: Any) -> Any:
    rows = [row("sgd", "standardised", s, rival + s, **said) for s in range(6)]
    rows += [row("sgd", "exponential", s, round((graded + s) * (1 + noise * (-1) ** s))) for s in range(6)]
    return GRADING.verdict(rows)


def test_no_takes_evidence_and_runs_that_say_something() -> None:
    assert judged(100, 50).answer == "yes"
    assert judged(50, 100).answer == "no"
    assert judged(100, 101).answer == "no"  # at best a little faster
    assert judged(100, 100, noise=0.5).answer == "open"  # nothing is known
    rows = [row("sgd", how, s, 200, reached=False) for how in ("standardised", "linear") for s in range(6)]
    assert GRADING.verdict(rows).answer == "open"  # neither arrived


def test_faster_and_not_faster_have_one_margin() -> None:
    """A few steps fewer, however sure, are not faster; on both sides it is the same share that counts."""
    assert judged(100, 97).answer == "no"
    assert judged(1000, 790).answer == "yes"
    assert judged(1000, 805).answer == "no"
    assert judged(1000, 800, noise=0.05).answer == "open"
    assert judged(200, 190, reached=False).answer == "open"  # how many steps the rival needs is not known
    assert judged(1000, 500, reached=False).answer == "yes"  # many more, in any case
    assert "1 of 1 comparisons of grades with standardising have clearly less than 0.8" in judged(1000, 790).says


def arrived(none: bool, right: bool) -> str:
    rows = [row("sgd", "none", s, 200 if not none else 150, reached=none) for s in range(5)]
    rows += [row("sgd", "exponential", s, 200 if not right else 100, reached=right) for s in range(5)]
    found: str = GRADING.verdict(rows + [row("sgd", "standardised", s, 90) for s in range(5)]).says
    return found


def test_a_run_that_never_arrived_gives_a_limit_of_the_factor() -> None:
    assert "sgd 1.5 (" in arrived(True, True)
    assert "never arrived" not in arrived(True, True)
    assert "sgd at least 2 (" in arrived(False, True)
    assert "where of 5 runs each without grades 5 never arrived and count at their limit." in arrived(False, True)
    assert "sgd at most 0.75 (" in arrived(True, False)
    assert "where of 5 runs each with them 5 never" in arrived(True, False)
    assert "sgd cannot be compared." in arrived(False, False)


def test_each_optimiser_has_its_own_factor() -> None:
    rows = [row(k, "none", s, steps) for k, steps in (("sgd", 160), ("adam", 40)) for s in range(5)]
    rows += [
        row(k, how, s, 20) for k in ("sgd", "adam") for how in ("exponential", "standardised") for s in range(5)
    ]
    says = GRADING.verdict(rows).says
    assert "sgd 8 (" in says
    assert "adam 2 (" in says


def test_plain_training_is_no_way_of_grading() -> None:
    """It is compared with standardising, and said, but not counted among the grades."""
    rows = [row("sgd", how, s, 100 if how == "none" else 20) for how in module.WAYS for s in range(5)]
    found = GRADING.verdict(rows)
    assert "0 of 4 comparisons of grades" in found.says
    assert any("none over standardised" in text for text in found.findings)


@pytest.mark.parametrize("how", ["standardised", "exponential"])
def test_rates_are_searched_in_the_same_way_and_cut_where_they_cannot_win(how: str, monkeypatch) -> None:
    asked: list[tuple[float, int]] = []

    def train(*given):
        rate, steps = given[4:6]
        asked.append((rate, steps))
        arrives = {1.0: 60, 3.0: 40}.get(rate, 10**6)
        return module.Taken(arrives if arrives <= steps else None, 0.5, {})

    monkeypatch.setattr(module, "train_graded", train)
    found = GRADING.run({"optimiser": "sgd", "how": how, "steps": 200}, 0)[0]
    assert (found["taken"], found["learning_rate"], found["at_an_end"]) == (40, 3.0, 0)
    assert [rate for rate, _ in asked] == list(module.RATES["sgd"])
    assert all(steps < 60 for rate, steps in asked if rate > 1)
