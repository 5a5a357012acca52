"""When a run is at its end: on curves that are known, and what a task leaves to learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer.lab import trained
from onelayer.lab.plateaus import FALLS, Patience, Scale
from onelayer.lab.trained import Budget, Net, Run, Shape, Task, Training, train_tuned

LN2 = math.log(2)
#: As the twins of 8,000 weights and two classes are trained.
BUDGET = Budget(steps=20000, check=100, patience=8, rates=(1e-3,), optimisers=("adam",))
TWO = Task(np.arange(25000)[:, None] // 13 ** np.arange(4) % 13, np.arange(100_000).reshape(25000, 4) % 2)
Curve = Callable[[int], float]


class Told(Training):
    """A run whose loss is told by its step and its rate, whatever its weights are."""

    def _advance(self) -> None:
        self.step += 1


def follow(monkeypatch: pytest.MonkeyPatch, curve: Curve, budget: Budget = BUDGET, task: Task = TWO) -> Run:
    run = Told(Net(Shape(2), task), task, budget, 1e-3)
    answers = TWO.answers.size

    def judge(*_: object) -> Run:
        return Run(run.net, 0.0, 0, answers // 2, answers, curve(run.step))

    monkeypatch.setattr(trained, "_judge_run", judge)
    return run.go(budget.steps)


def noise(step: int, size: float) -> float:
    return float(np.random.default_rng(step).normal(0, size))


def flat_then_falls(step: int) -> float:
    """Flat within noise of the constant answer for 9,000 steps, then down to 0.4, where it stays."""
    fallen = 1 - math.exp(-max(0, step - 9000) / 1000)
    return LN2 + abs(noise(step, 1e-4)) - (LN2 - 0.4) * fallen


def test_a_curve_that_is_flat_at_the_constant_answer_is_not_at_its_end_before_it_falls(monkeypatch) -> None:
    run = follow(monkeypatch, flat_then_falls, replace(BUDGET, steps=30000))
    assert run.loss == pytest.approx(0.4, abs=1e-3)
    assert run.steps > 13000
    assert run.ended_by == "plateau"


def test_what_never_learns_is_ended_by_its_budget_and_says_so(monkeypatch) -> None:
    run = follow(monkeypatch, lambda step: LN2 + abs(noise(step, 1e-4)))
    assert (run.steps, run.ended_by, run.ended) == (BUDGET.steps, "budget", False)


def test_slow_learning_near_the_constant_answer_is_learning(monkeypatch) -> None:
    """What is learned grows by a tenth every 1,000 steps; of the loss this is far less than a hundredth."""
    run = follow(monkeypatch, lambda step: LN2 - 0.002 * 1.1 ** (step / 1000))
    assert run.ended_by == "budget"


@pytest.mark.parametrize("level", [0.02, 0.35, LN2 - 0.01])
def test_a_curve_that_has_stopped_is_at_its_end(monkeypatch, level) -> None:
    run = follow(monkeypatch, lambda step: level + (1.0 - level) * math.exp(-step / 200))
    assert run.ended_by == "plateau"
    assert run.steps < BUDGET.steps / 2


@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_a_noisy_curve_that_has_stopped_is_at_its_end(monkeypatch, size) -> None:
    run = follow(monkeypatch, lambda step: 0.35 + abs(noise(step, size)))
    assert run.ended_by == "plateau"


def test_a_noisy_curve_that_falls_slowly_is_not(monkeypatch) -> None:
    """As the fourth root of the steps, which is by 1% whenever they grow by 4%."""
    run = follow(monkeypatch, lambda step: 0.6 * (1 + step / 500) ** -0.25 + abs(noise(step, 1e-3)))
    assert run.ended_by == "budget"


def test_a_power_of_the_steps_is_never_called_flat() -> None:
    """As steps^-0.15: a hundredth in 7% more steps, which is longer than any fixed wait at last."""
    patience = Patience(Scale(LN2, 0.0, 100_000), 800, 5)
    halved = []
    for step in range(0, 200_000, 100):
        loss = 0.6 * (1 + step / 500) ** -0.15
        patience.is_best(loss)
        halved += [step] if patience.halves(step, loss) else []
    assert max(halved, default=0) < 2000
    assert not patience.flat


def test_the_rate_stays_as_it_is_as_long_as_nothing_is_learned() -> None:
    patience = Patience(Scale(LN2, 0.0, 100_000), 800, 5)
    for step in range(0, 20_000, 100):
        loss = LN2 + abs(noise(step, 1e-4)) + 0.1 * (step == 0)
        patience.is_best(loss)
        assert not patience.halves(step, loss)
    assert any(patience.halves(step, 2.0) for step in range(20_000, 30_000, 100))


def test_where_answers_contradict_each_other_nothing_can_be_learned_and_patience_decides(monkeypatch) -> None:
    task = Task(np.zeros((8, 1), int), np.array([[0], [1]] * 4))
    run = follow(monkeypatch, lambda step: LN2 + 0.1 * math.exp(-step / 100), task=task)
    assert run.ended_by == "plateau"


def test_a_rate_at_which_the_loss_explodes_is_halved_though_nothing_was_learned(monkeypatch) -> None:
    task, budget = TWO, replace(BUDGET, steps=2000)
    run = Told(Net(Shape(2), task), task, budget, 1e-3)
    monkeypatch.setattr(
        trained, "_judge_run", lambda *_: Run(run.net, 0, 0, 0, 64, 0.8 if not run.step else math.nan)
    )
    run.go(budget.steps)
    assert run.factor == 1 / 4


def test_all_answers_right_is_an_end_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr(trained, "_judge_run", lambda *_: Run(None, 0, 0, 64, 64, 0.1))
    run = Told(Net(Shape(2), TWO), TWO, BUDGET, 1e-3).go(10)
    assert (run.ended_by, run.ended) == ("all right", True)


def tuned(
    monkeypatch: pytest.MonkeyPatch, curves: dict[float, Curve], budget: Budget
) -> tuple[Run, dict[float, int]]:
    """Which rate is chosen among runs of known curves, and how far each was followed."""
    far: dict[float, int] = {}

    class Compared(Told):
        def _advance(self) -> None:
            super()._advance()
            far[self.rate] = self.step

    runs: dict[int, Compared] = {}
    make = Compared.__init__

    def remember(self: Compared, net: object, *rest: object) -> None:
        make(self, net, *rest)  # type: ignore[arg-type]
        runs[id(net)] = self

    monkeypatch.setattr(Compared, "__init__", remember)
    monkeypatch.setattr(trained, "Training", Compared)

    def judge(_: object, net: object, *__: object) -> Run:
        mine = runs[id(net)]
        return Run(net, 0.0, 0, 0, 100_000, curves[mine.rate](mine.step))

    monkeypatch.setattr(trained, "_judge_run", judge)
    budget = replace(budget, rates=tuple(curves), optimisers=("adam",))
    return train_tuned(Shape(2), TWO, budget), far


def late(start: int) -> Curve:
    """Noise above the constant answer, below which no ignorance comes, until a step; then a fall."""
    return lambda step: LN2 + abs(noise(step + start, 1e-3)) - 0.3 * (1 - math.exp(-max(0, step - start) / 500))


def test_no_rate_is_given_up_before_losses_differ_by_more_than_their_noise(monkeypatch) -> None:
    curves = {1e-4: late(9000), 3e-4: late(5000), 1e-3: late(3000), 3e-3: late(1000)}
    for order in (list(curves), list(curves)[::-1]):
        run, far = tuned(monkeypatch, {rate: curves[rate] for rate in order}, replace(BUDGET, short=0.02))
        assert run.rate == 3e-3
        assert run.by_noise is False
        assert far[1e-4] < 4000


def test_what_is_chosen_by_noise_is_chosen_late_and_says_so(monkeypatch) -> None:
    curves = {1e-4: late(10**6), 3e-4: late(10**6 + 1), 1e-3: late(10**6 + 2), 3e-3: late(10**6 + 3)}
    run, far = tuned(monkeypatch, curves, replace(BUDGET, short=0.02))
    assert run.by_noise is True
    assert sum(far.values()) - max(far.values()) <= BUDGET.steps


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_few_steps_are_an_end_as_well(monkeypatch, steps) -> None:
    curves = {rate: late(10**6) for rate in (1e-4, 1e-3, 1e-2)}
    run, _ = tuned(monkeypatch, curves, replace(BUDGET, steps=steps))
    assert run.steps <= max(1, steps)


def test_rates_that_differ_at_once_are_given_up_at_once(monkeypatch) -> None:
    curves: dict[float, Curve] = {
        rate: lambda step, to=to: to + (LN2 - to) * math.exp(-step / 100)
        for rate, to in ((1e-4, 0.6), (3e-4, 0.5), (1e-3, 0.3), (3e-3, 0.4))
    }
    run, far = tuned(monkeypatch, curves, replace(BUDGET, short=0.02))
    assert run.rate == 1e-3
    assert far[1e-4] == far[3e-4] == 400


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30))
def test_the_constant_answer_and_the_best_one_have_the_losses_of_their_definitions(rows) -> None:
    tokens, answers = (np.array(column) for column in zip(*rows, strict=True))
    found = Scale.of(Task(tokens[:, None], answers[:, None]))

    def entropy(values: np.ndarray) -> float:
        shares = np.bincount(values) / len(values)
        return -sum(p * math.log(p) for p in shares if p)

    best = sum(entropy(answers[tokens == t]) * (tokens == t).mean() for t in set(tokens.tolist()))
    assert found.constant == pytest.approx(entropy(answers), abs=1e-12)
    assert found.least == pytest.approx(best, abs=1e-12)
    reals = Scale.of(Task(tokens[:, None, None].astype(float), answers[:, None, None].astype(float), "reals"))
    assert reals.constant == pytest.approx(answers.var() / 2, abs=1e-12)
    inside = sum(answers[tokens == t].var() * (tokens == t).mean() for t in set(tokens.tolist())) / 2
    assert reals.least == pytest.approx(inside, abs=1e-12)


def test_places_of_a_sequence_and_padding_are_told_apart() -> None:
    tokens, answers = np.array([[7, 7], [7, 5]]), np.array([[0, 1], [0, 9]])
    found = Scale.of(Task(tokens, answers, lengths=np.array([2, 1])))
    assert (found.answers, found.least) == (3, 0.0)
    assert found.constant == pytest.approx(math.log(3) - 2 / 3 * LN2)
    whole = Scale.of(Task(tokens, np.array([0, 1]), scope="sequence"))
    assert (whole.answers, whole.least, whole.constant) == (2, 0.0, pytest.approx(LN2))
    twice = Scale.of(Task(np.array([[7, 3], [7, 5]]), np.array([0, 1]), scope="sequence", lengths=np.array([1, 1])))
    assert twice.least == pytest.approx(LN2)


@given(st.floats(1e-6, LN2 - 1e-4), st.integers(100, 10**6))
def test_a_fall_is_a_share_of_what_is_learned_or_left_whichever_is_less(loss, answers) -> None:
    scale = Scale(LN2, 0.0, answers)
    if not scale.is_learned(loss):
        assert answers * (LN2 - loss) <= 1.93
        return
    assert scale.smallest_fall(loss) == pytest.approx(FALLS * min(loss, LN2 - loss))
