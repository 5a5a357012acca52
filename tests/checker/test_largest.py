"""Verdicts about logits: the output of the class leads by the margin in every evaluation, or it is not said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.bundle import Bundle
from attacks.counterexamples import COPY, bundle, claim
from onelayer_checker import check
from onelayer_checker.core import largest, processes
from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, Ball
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Disagreement, Judge
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.core.samples import Data
from onelayer_checker.search.stack import Searched, accelerate

CLASSES = np.arange(4.0)
#: Logit c of class j is 2cj - c^2: the class leads by 1, and its neighbours follow.
PARABOLA = {"readout.1.weight": [2 * CLASSES], "readout.1.bias": -(CLASSES**2)}


def logits(numbers=(0, 1, 2, 3), answers=None, margin=1.0, arith="float32", last=None, names=4, **more) -> Bundle:
    """Tokens are class numbers, and the last layer reads the token."""
    tokens = np.asarray(numbers, float).reshape(-1, 1, 1)
    made = bundle(
        "float64" if arith == "float64" else "float32",
        COPY | (PARABOLA if last is None else last),
        tokens,
        numbers if answers is None else answers,
        claim("argmax", arith, margin=margin) | more,
    )
    made.names = made.names | {"answers": list(range(names))}
    return made


def verdict(made: Bundle, **options) -> tuple[str, str]:
    report = check(made.files(), **options)
    return report.result, report.gate


@pytest.mark.parametrize("arith", ["real", "float32", "float64"])
def test_the_class_leads_by_exactly_the_margin(arith) -> None:
    assert verdict(logits(arith=arith)) == ("VERIFIED", "")
    assert verdict(logits(arith=arith), dense=True) == ("VERIFIED", "")
    assert verdict(logits(arith=arith, margin=np.nextafter(1.0, 2.0)))[0] == "NOT VERIFIED"
    (found,) = check(logits(arith=arith, margin=0.5).files()).claims
    assert found.verdict.value == 1.0
    assert "4 answers, each leads by at least 1" in found.verdict.why


def test_two_outputs_are_enough() -> None:
    last = {"readout.1.weight": [[0, 2]], "readout.1.bias": [0, -1]}
    assert verdict(logits((0, 1), last=last, names=2)) == ("VERIFIED", "")


@pytest.mark.parametrize(
    ("numbers", "answers", "where"),
    [
        ((0, 1, 2, 3), (1, 2, 3, 0), "sequence 0"),  # rolled
        ((0, 1, 2, 3), (0, 2, 1, 3), "sequence 1"),  # two swapped
        ((0, 1, 2, 3), (0, 1, 2, 2), "sequence 3"),
        ((1, 1), (1, 2), "sequence 1"),  # the same input with another class
        ((0, 1, 2, 3), (3, 3, 3, 3), "sequence 0"),
    ],
)
def test_another_class_is_refuted(numbers, answers, where) -> None:
    report = check(logits(numbers, answers, margin=2.0**-1000).files())
    assert report.result == "NOT VERIFIED"
    assert report.claims[0].verdict.why.startswith(where)


def test_equal_logits_do_not_lead() -> None:
    equal = {"readout.1.weight": [[1, 1, 0, 0]], "readout.1.bias": [0, 0, -9, -9]}
    assert verdict(logits([1], [0], margin=2.0**-1000, last=equal))[0] == "NOT VERIFIED"
    assert verdict(logits([1], [0], margin=2.0**-1000, last=equal, arith="real"))[0] == "NOT VERIFIED"


def test_what_overflows_is_open() -> None:
    huge = {"readout.1.weight": [[3e38, 0, 0, 0]], "readout.1.bias": [3e38, 5, 0, 0]}
    assert verdict(logits([1], [0], last=huge))[0] == "UNKNOWN"
    assert verdict(logits([1], [1], last=huge))[0] == "UNKNOWN"
    assert verdict(logits([1], [0], last=huge, arith="real"))[0] == "VERIFIED"


def test_a_large_lead_is_a_number() -> None:
    far = {"readout.1.weight": [[1, -1, 0, 0]], "readout.1.bias": [0, 0, 0, 0]}
    (found,) = check(logits([2.0**990], [0], last=far, arith="float64").files()).claims
    assert (found.verdict.outcome, found.verdict.value) == ("proved", 2.0**990)
    assert verdict(logits([2.0**990], [1], last=far, arith="float64"))[0] == "NOT VERIFIED"


def test_rounding_takes_from_the_margin() -> None:
    """The sum 1 + 2^-25 is 1 or one more unit of float32, by order; in real numbers it leads by 2^-25."""
    last = {"readout.1.weight": [[2.0**-25, 0, 0, 0]], "readout.1.bias": [1, 1, 0, 0]}
    assert verdict(logits([1], [0], last=last, margin=2.0**-26, arith="real"))[0] == "VERIFIED"
    assert verdict(logits([1], [0], last=last, margin=2.0**-26))[0] == "UNKNOWN"
    assert verdict(logits([1], [0], last=last, margin=2.0**-20))[0] == "NOT VERIFIED"


@pytest.mark.parametrize(
    ("forged", "gate"),
    [
        (logits(margin=0.0), "claim"),
        (logits(margin=-1.0), "claim"),
        (logits(names=3), "names"),
        (logits(names=5), "names"),
        (logits([0], [0], last={"readout.1.weight": [[1]], "readout.1.bias": [0]}, names=1), "claim"),
        (logits(eps=(0.0).hex()), "fields"),
    ],
    ids=["margin 0", "margin negative", "too few names", "too many names", "one output", "a field more"],
)
def test_what_says_nothing_is_refused(forged, gate) -> None:
    assert verdict(forged) == ("MALFORMED", gate)


def test_names_are_needed_and_other_claims_are_not_about_classes_with_outputs() -> None:
    nameless = logits()
    nameless.names = nameless.names | {"answers": None}
    assert verdict(nameless) == ("MALFORMED", "names")
    for kind in ("memorizes", "robust", "rejects"):
        numbers = {"eps": 0.25} | ({"radius": 0.0} if kind == "robust" else {})
        other = logits()
        other.certificate["claims"].append(claim(kind, "float32", **numbers))
        other.data |= {"strangers": other.data["tokens"], "default": np.zeros(1)}
        assert verdict(other) == ("MALFORMED", "claim")
    apart = logits()
    apart.certificate["claims"].append(claim("separated", "real", r=8.0, delta=0.5))
    assert verdict(apart)[0] == "VERIFIED"


@pytest.mark.parametrize("answers", [[0.5, 1], [-1, 1], [4, 1], [np.nan, 1]])
def test_answers_are_numbers_of_outputs(answers) -> None:
    for version in (logits([0, 1], answers), logits([0, 1], answers).version_1()):
        assert verdict(version)[0] == "MALFORMED"


def test_answers_with_two_components_are_no_classes() -> None:
    two = {"readout.1.weight": [[1, 0]], "readout.1.bias": [0, 0]}
    wide = logits([0, 1], [0, 1], last=two, names=2).version_1()
    wide.data["answers"] = np.eye(2)
    assert verdict(wide) == ("MALFORMED", "claim")
    wide.data["answers"] = np.zeros((2, 3))
    assert verdict(wide) == ("MALFORMED", "data")


def test_demands_name_the_smallest_margin() -> None:
    honest = logits()
    for required, result in (
        ("argmax", "VERIFIED"),
        ("argmax float32", "VERIFIED"),
        ("argmax float32 1", "VERIFIED"),
        ("argmax float32 0.25", "VERIFIED"),
        ("argmax float32 1.5", "UNKNOWN"),
        ("argmax float64", "UNKNOWN"),
        ("memorizes", "UNKNOWN"),
    ):
        assert check(honest.files(), require=[required]).result == result, required


def test_own_data_is_answered_by_the_claim() -> None:
    X = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    assert check(logits().files(), data=(X, [[0], [1], [2], [3]])).result == "VERIFIED"
    assert check(logits().files(), data=(X, [[0], [1], [3], [2]])).result == "NOT VERIFIED"


def judged(m, r, answers, margin, A=REAL, scope="token", jobs=1):
    """The verdict, given balls of what the last layer reads."""
    network = build({name: np.asarray(a, np.float32) for name, a in weights().items()})
    T = len(m)
    tokens = np.zeros((T, 1, 1), np.float32)
    data = Data(tokens, np.ones(T, np.int64), np.asarray(answers, float)[:, None], np.arange(T))
    judge = Judge(accelerate(network), data, jobs=jobs)
    samples = judge.samples(A, scope)
    judge._samples[A.name, 0.0, scope == "last"] = type(samples)(
        samples.i, samples.k, Ball(np.asarray(m, float)[:, None], np.asarray(r, float)[:, None])
    )
    return judge.judge(Claim("argmax", A.name, scope, {"margin": margin}))


def weights() -> dict:
    zero = {f"attention.W_{name}": np.zeros((1, 1, 1)) for name in "QKVO"}
    return zero | {"readout.0.weight": [[1]], "readout.0.bias": [0]} | PARABOLA


@settings(max_examples=60)
@given(st.integers(0, 3), st.integers(0, 1 << 12), st.integers(0, 3), st.sampled_from([REAL, FLOAT32, FLOAT64]))
def test_no_verdict_says_more_than_fractions_do(j, radius, answer, A) -> None:
    """Over all numbers of the ball, the lead of the class is that of an end: it is linear against each other."""
    r = Fraction(radius, 1 << 13)
    leads = [
        min((2 * answer * t - answer**2) - (2 * c * t - c**2) for c in range(4) if c != answer)
        for t in (max(j - r, Fraction(0)), j + r)
    ]
    least, most = min(leads), max(leads)
    for margin in (2.0**-8, 0.5, 1.0):
        found = judged([j], [float(r)], [answer], margin, A)
        if found.outcome == "proved":
            assert margin <= found.value <= least
        if found.outcome == "refuted":
            assert most < margin or A is not REAL
        if radius == 0:
            assert found.outcome == ("proved" if least >= margin else "refuted")


def test_every_sample_counts_wherever_it_is() -> None:
    numbers = np.tile([0, 1, 2, 3], 50)
    for at in (0, 77, 199):
        wrong = numbers.copy()
        wrong[at] = (wrong[at] + 1) % 4
        found = judged(numbers, np.zeros(200), wrong, 1.0)
        assert (found.outcome, found.why.split(",")[0]) == ("refuted", f"sequence {at}")
    r = np.zeros(200)
    r[150] = 0.4
    assert judged(numbers, r, numbers, 1.0).why.startswith("sequence 150")
    assert (judged(numbers, r, numbers, 1.0).outcome, judged(numbers, r, numbers, 1.0).value) == ("undecided", 0.0)
    wrong = numbers.copy()
    wrong[199] = 0
    assert (judged(numbers, r, wrong, 1.0).outcome, judged(numbers, r, wrong, 1.0).value) == ("refuted", 0.0)


def test_blocks_and_processes_change_nothing(monkeypatch) -> None:
    numbers = np.tile([0, 1, 2, 3], 50)
    wrong = numbers.copy()
    wrong[131] = 0
    for block in (1, 16, 1 << 18):
        monkeypatch.setattr(largest, "BLOCK", block)
        assert judged(numbers, np.zeros(200), numbers, 1.0).value == 1.0
        assert judged(numbers, np.zeros(200), wrong, 1.0).why.startswith("sequence 131")
    monkeypatch.setattr(processes, "LEAST", 1)
    assert judged(numbers, np.zeros(200), numbers, 1.0, jobs=2).value == 1.0
    assert judged(numbers, np.zeros(200), wrong, 1.0, jobs=2).why.startswith("sequence 131")


@pytest.mark.parametrize("scope", ["sequence", "last"])
def test_an_answer_for_each_sequence(scope) -> None:
    honest = logits(scope=scope)
    honest.names["scope"] = scope
    honest.data["tokens"] = np.repeat(honest.data["tokens"], 3, axis=1)
    assert verdict(honest)[0] == "VERIFIED"
    honest.data["answers"] = honest.data["answers"][::-1].copy()
    assert verdict(honest)[0] == "NOT VERIFIED"


def test_an_answer_for_each_token_of_a_sequence() -> None:
    several = logits([0, 1, 2, 3])
    several.data["tokens"] = several.data["tokens"].reshape(2, 2, 1)
    assert verdict(several)[0] == "VERIFIED"
    several.data["answers"][[1, 2]] = several.data["answers"][[2, 1]]
    assert verdict(several)[0] == "NOT VERIFIED"


def test_a_class_may_be_a_pair_of_digits() -> None:
    """Two numbers before the last layer, each with a radius of its own."""
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    last = Layer(2 * pairs.T, -(pairs**2).sum(axis=1))
    for j, pair in enumerate(pairs):
        for r in ([0, 0], [0.25, 0], [0, 0.125]):
            low, high = (2 * pairs @ (pair + side * np.array(r)) - (pairs**2).sum(axis=1) for side in (-1, 1))
            others = np.arange(4) != j
            ((_, least, most),) = largest._leads(last, np.array([[*pair, *r, j, 0]], float), REAL)
            assert 0 <= low[j] - high[others].max() - least < 2.0**-30
            assert 0 <= most - (high[j] - low[others].max()) < 2.0**-30


def test_logits_are_evaluated_once_for_each_class(monkeypatch) -> None:
    asked = []
    apply = Layer.apply
    monkeypatch.setattr(
        Layer, "apply", lambda self, x, A: asked.append((len(x.m), self.bias.size)) or apply(self, x, A)
    )
    numbers = np.tile([0, 1, 2, 3], 50)
    assert judged(numbers, np.zeros(200), numbers, 1.0).outcome == "proved"
    assert [rows for rows, outputs in asked if outputs == 4] == [4]


def test_the_work_is_spent_before_it_is_done() -> None:
    report = check(logits().files(), budget=2000.0)
    assert report.result == "UNKNOWN"


def test_a_search_that_contradicts_the_layers_is_noticed(monkeypatch) -> None:
    monkeypatch.setattr(Stack, "disagrees", lambda *_: np.array([0]))
    with pytest.raises(Disagreement):
        judged([0], [0], [0], 1.0)


def test_all_but_the_last_layer() -> None:
    layers = tuple(Layer(np.ones((1, 1)), np.full(1, float(i))) for i in range(4))
    for stack in (Stack(layers), Searched(layers, True)):
        body, last = stack.cut()
        assert type(body) is type(stack)
        assert (body.layers, last, stack.outputs) == (layers[:3], layers[3], 1)
    assert Searched(layers, True).cut()[0].positive
    assert not Searched(layers, False).cut()[0].positive


def test_ends_of_balls_are_rounded_outward() -> None:
    last = Layer(np.zeros((1, 2)), np.zeros(2))

    class Known(Layer):
        def apply(self, x, A) -> Ball:  # noqa: ARG002
            return Ball(np.array([self.sign * np.array([1.0, 2.0])]), np.array([self.r]))

    for Known.sign, own, lead in ((1, 1, 1), (1, 0, -1), (-1, 1, -1), (-1, 0, 1)):
        for Known.r in ([2.0**-60, 0.0], [0.0, 2.0**-60]):
            rows = np.array([[0.0, 0.0, own, 7.0]])
            ((at, low, high),) = largest._leads(Known(last.weight, last.bias), rows, REAL)
            assert at == 7
            assert low <= lead - Fraction(2) ** -60
            assert high >= lead + Fraction(2) ** -60


def test_the_value_of_a_proof_is_not_above_what_is_proved() -> None:
    for value in (Fraction(1), Fraction(1) - Fraction(2) ** -60, Fraction(1, 3), Fraction(2, 3)):
        found = largest._at_most(value)
        assert Fraction(found) <= value < Fraction(float(np.nextafter(found, 2))) + Fraction(2) ** -52
    assert largest._at_most(Fraction(1)) == 1.0
    for a, b in ((np.inf, 0.0), (0.0, -np.inf), (np.nan, 0.0), (0.0, np.nan)):
        assert largest._difference(a, b) is None
    assert largest._difference(1.0, 2.0**-60) == 1 - Fraction(2) ** -60
