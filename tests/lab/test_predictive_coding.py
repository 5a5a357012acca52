"""What rows of predictive coding say: level, worse, or not known."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from onelayer.lab import find, registry
from onelayer.lab.experiment import Row

CODING: Any = find("predictive-coding")


def row(how: str, seed: int, loss: float, task: str = "bytes", **said: Any) -> Row:
    relaxed = how != "backprop"
    made: Row = {"task": task, "how": how, "relaxation": 4 * relaxed, "rate": 0.1 * relaxed, "steps": 160}
    made |= {"seed": seed, "accuracy": 0.4, "loss": loss, "learning_rate": 0.01, "taken": 160}
    made |= {f"cosine {name}": 1.0 for name in ("W_Q", "W_V", "W_1", "W_2")}
    return made | {"ended_by": "plateau"} | said


def judged(ratio: float, noise: float = 0.0, **said: Any) -> Any:
    rows = [row("backprop", s, 1 + 0.01 * s) for s in range(6)]
    return CODING.verdict(rows + [row("kl", s, ratio * (1 + noise * (-1) ** s), **said) for s in range(6)])


def test_level_and_worse_take_evidence() -> None:
    assert judged(1.02).answer == "yes"
    assert judged(2.0).answer == "no"
    assert judged(1.1).answer == "no"  # a little, and clearly
    assert judged(1.0, noise=0.6).answer == "open"
    assert judged(1.02).answer == judged(1.02, ended_by="budget").answer


def test_runs_that_still_learned_are_not_worse() -> None:
    assert judged(2.0, ended_by="budget").answer == "open"


def test_losses_of_what_both_solved_are_level() -> None:
    rows = [row(how, s, loss, accuracy=1.0) for how, loss in (("backprop", 1e-4), ("kl", 1e-3)) for s in range(6)]
    assert CODING.verdict(rows).answer == "yes"


def test_settings_of_a_seed_are_one_value() -> None:
    """Three settings of each of five seeds: an interval of five values, not of fifteen."""
    rows = [
        row(how, s, loss * (1 + 0.1 * s), rate=rate)
        for s in range(5)
        for how, loss in (("kl", 1.0), ("gaussian", 2.0 + s))
        for rate in (0.1, 0.2, 0.3)
    ]
    found = CODING._gaussian_over_kl(rows)
    assert (found.found.count, found.missing) == (5, 0)
    assert found.found.mean == pytest.approx((2 * 3 * 4 * 5 * 6) ** 0.2)


def test_parts_of_the_text_do_not_meet() -> None:
    numbers, _ = CODING.text()
    ends = [len(numbers) * tenths // 10 for tenths in (0, 8, 9, 10)]
    assert all(b - a > CODING.CONTEXT for a, b in pairwise(ends))

    class Ends:
        """Draws the first and the last that it may."""

        def integers(self, low: int, high: int, count: int) -> Any:
            assert count == 2
            asked.append((low, high - 1))
            return CODING.np.array([low, high - 1])

    asked: list[tuple[int, int]] = []
    for part in (0, 1, 2):
        CODING.draw_bytes(Ends(), 2, part)
        assert ends[part] <= asked[-1][0]
        assert asked[-1][1] + CODING.CONTEXT < ends[part + 1]


def test_a_changed_text_is_other_code(monkeypatch) -> None:
    """Rows stand on the text, and not on statements that may be reworded."""
    found = registry.stands_on(CODING.__name__)
    assert "onelayer.lab.letters" in found
    assert not any(name.startswith(registry.WORDS) for name in found)
    case, code_of = CODING.cases("quick")[0], registry.code_of
    before = registry.fingerprint("predictive-coding", case)

    def reworded(module: str, start: str = "run") -> str:
        code = code_of(module, start)
        return code.replace("tokens", "words") if module == "onelayer.lab.letters" else code

    monkeypatch.setattr(registry, "code_of", reworded)
    registry.forget()
    try:
        assert registry.fingerprint("predictive-coding", case) != before
    finally:
        registry.forget()


def test_where_a_gap_opens_is_said_by_setting() -> None:
    rows = []
    for model, ratio, said in (
        ("one layer", 1.0, {}),
        ("sharper", 2.0, {}),
        ("no hidden units", 0.5, {}),
        ("two layers", 2.0, {"ended_by": "budget"}),
    ):
        for how, loss in (("backprop", 1.0), ("kl", 1.0), ("gaussian", ratio)):
            rows += [row(how, s, loss * (1 + 0.01 * s), model=model, **said) for s in range(5)]
    says = CODING.verdict(rows).says
    for model, word in (
        ("one layer 1", "no gap"),
        ("sharper 2", "a gap"),
        ("no hidden units 0.5", "a gap the other way"),
        ("two layers 2", "open"),
    ):
        assert re.search(rf"bytes, {model} \([^()]*\) \({word}\)", says), says


def test_learning_rates_at_an_end_of_those_tried_are_said() -> None:
    rows = [row("backprop", s, 1.0, at_an_end=int(s == 0), learning_rate=0.1 if s == 0 else 0.01) for s in range(5)]
    assert "was an end of those tried in 1 (0.1: 1)" in CODING.verdict(rows).findings[0]
