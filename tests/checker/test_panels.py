"""Examples that judge: the better of two learners, and networks and claims that only look like it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer.export import bundle
from onelayer_checker import Report, check
from onelayer_checker.core.files import CERTIFICATE
from onelayer_checker.looped.panels import gate, is_power_of_two

MODEL = onelayer.learner("selection", d=2, steps=2, penalties=(0.1, 1.0), delta=2.0**-4)


def judged(target: dict[str, Any] | None = None, model: onelayer.Model = MODEL, **claim: Any) -> Report:
    """The verdict on `equals`, or another claim, with parts of the algorithm or of the graph replaced."""
    assert model.certificate is not None
    own = next(c for c in model.certificate.claims if c["type"] == claim.get("type", "equals"))
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE])
    certificate["graph"] = claim.pop("graph", certificate["graph"])
    certificate["claims"] = [own | {"target": own["target"] | (target or {})} | claim]
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


def said(report: Report) -> tuple[str, str]:
    return (
        (report.claims[0].verdict.outcome, report.claims[0].verdict.why) if report.claims else (report.result, "")
    )


def program(name: str) -> dict[str, Any]:
    assert MODEL.certificate is not None
    return dict(MODEL.certificate.claims[0]["target"][name])


def with_weight(name: str, index: tuple[int, ...], value: float) -> onelayer.Model:
    tensors = {key: a.copy() for key, a in MODEL.transformer.tensors()}
    tensors[name][index] = value
    return replace(MODEL, transformer=MODEL.transformer.with_tensors(tensors))


def test_both_claims_are_proved() -> None:
    assert MODEL.verify(require=["equals", "selects"]).result == "VERIFIED"
    assert judged().result == judged(type="selects").result == "VERIFIED"


def test_the_better_learner_answers_wherever_judges_tell_them_apart() -> None:
    """Against both learners by themselves, on the examples that do not judge."""
    rng, far = np.random.default_rng(0), 0
    alone = [onelayer.learner("ridge", d=2, steps=2, penalty=p, certify=False) for p in (0.1, 1.0)]
    for _ in range(300):
        X, queries = rng.uniform(-1, 1, (8, 2)), rng.uniform(-1, 1, (3, 2))
        y = np.clip(X @ rng.uniform(-1, 1, 2) * rng.integers(2) + rng.uniform(-1, 1, 8), -1, 1)
        V = [((m.predict(X[:6], y[:6], X[6:]) - y[6:]) ** 2).mean() for m in alone]
        p = [m.predict(X[:6], y[:6], queries) for m in alone]
        found = MODEL.predict(X, y, queries)
        if abs(V[0] - V[1]) >= 2.0**-4:
            far += 1
            np.testing.assert_allclose(found, p[int(V[1] < V[0])], atol=1e-12)
        assert (found <= np.maximum(*p) + 1e-12).all()
        assert (found >= np.minimum(*p) - 1e-12).all()
    assert far > 20


PLACES = [(name, i) for name, a in MODEL.transformer.tensors() for i in np.ndindex(a.shape) if a[i]]
#: A channel that is 0 whenever it is read, or not read any more.
SAME = {("feedforward.0.weight", (i, i)) for i in (5, 6, 8, 9)}


@pytest.mark.parametrize(
    ("name", "index"), [p for p in PLACES if p not in SAME and "readout.1" not in p[0]][::2], ids=str
)
def test_every_weight_matters_to_the_last_bit(name: str, index: tuple[int, ...]) -> None:
    """One ulp off: refuted with a prompt that has judges."""
    old = dict(MODEL.transformer.tensors())[name][index]
    outcome, why = said(judged(model=with_weight(name, index, float(np.nextafter(old, 9.0)))))
    assert outcome == "refuted", why
    assert "judges x = " in why
    assert "apart by" in why


def test_a_unit_of_the_gate_that_is_off_is_not_proved() -> None:
    """One sign of one answer: a prompt that shows it has several examples, which nobody looks for."""
    assert said(judged(model=with_weight("1.readout.1.weight", (3, 1), -1.5)))[0] != "proved"


def test_judges_that_are_keys_of_the_loop_are_refused() -> None:
    lines = program("judge")
    lines["outputs"] = [*lines["outputs"][:-2], lines["outputs"][-1], lines["outputs"][-1]]  # both flags are 1
    outcome, why = said(judged({"judge": lines}))
    assert outcome == "refuted", why
    assert "flag" in why


def test_a_flag_of_judges_on_other_tokens_is_refused() -> None:
    for name in ("example", "query"):
        lines = program(name)
        one = lines["outputs"][-3]
        lines["outputs"] = [*lines["outputs"][:-1], one]
        outcome, why = said(judged({name: lines}))
        assert outcome != "proved"
        assert "flag" in why
    lines = program("judge")
    lines["outputs"] = [*lines["outputs"][:-1], lines["outputs"][2]]  # y: a judge with y = 0 would not be seen
    outcome, why = said(judged({"judge": lines}))
    assert outcome != "proved"
    assert "flag" in why


def test_a_variance_of_judges_is_refused() -> None:
    """v_0 - v_0^2 + ... is 0 for one judge only: what is judged must be affine in the mean."""
    lines = program("judged")
    at = lines["outputs"][5]
    assert lines["lines"][at] == "v 0"
    more = [
        *lines["lines"],
        f"mul {at} {at}",
        f"sub {at} {len(lines['lines'])}",
        f"add {at} {len(lines['lines']) + 1}",
    ]
    outputs = [*lines["outputs"][:5], len(more) - 1, *lines["outputs"][6:]]
    outcome, why = said(judged({"judged": {"lines": more, "outputs": outputs}}))
    assert outcome != "proved"
    assert "affine" in why or "panel" in why


def test_other_sums_of_judges_and_other_answers_are_refused() -> None:
    half = program("weigh")
    half["outputs"] = half["outputs"][::-1]
    assert said(judged({"weigh": half}))[0] == "refuted"
    swapped = program("either")
    swapped["outputs"] = swapped["outputs"][::-1]
    assert said(judged({"either": swapped}))[0] == "proved"  # `equals` does not say between whom
    assert said(judged({"either": swapped}, type="selects"))[0] == "undecided"
    assert (
        said(judged({"answer": program("either") | {"outputs": program("either")["outputs"][:1]}}))[0] == "refuted"
    )


@pytest.mark.parametrize(
    "change", [{"delta": 2.0**-5}, {"delta": 2.0**-3}, {"delta": 0.05}, {"reach": 1.0}, {"reach": 100.0}], ids=str
)
def test_another_gap_or_reach_is_not_proved(change: dict[str, float]) -> None:
    outcome, why = said(judged(type="selects", **{name: value.hex() for name, value in change.items()}))
    assert outcome == "undecided", why


@pytest.mark.parametrize(
    "change",
    [
        {"repeat": 2},
        {"causal": True},
        {"window": 1},
        {"context": None},
        {"context": 99},
        {"attention": "softmax", "mean": False},
        {"attention": "mesa", "mean": False},
    ],
    ids=str,
)
def test_other_layers_of_judges_are_malformed(change: dict[str, Any]) -> None:
    assert MODEL.certificate is not None
    graph = json.loads(json.dumps(MODEL.certificate.graph))
    graph["layers"][1] |= change
    assert judged(graph=graph).result == "MALFORMED"


def test_sums_of_judges_and_judges_on_one_side_are_not_proved() -> None:
    assert MODEL.certificate is not None
    graph = json.loads(json.dumps(MODEL.certificate.graph))
    graph["layers"][1] |= {"mean": False}
    assert said(judged(graph=graph))[0] == "refuted"
    target = dict(MODEL.certificate.claims[0]["target"])
    for name in ("judge", "weigh", "judged", "either"):
        lacking = {key: value for key, value in target.items() if key != name}
        assert check_target(lacking).result == "MALFORMED"
    plain = onelayer.learner("ridge", d=2, steps=2, penalty=0.1)
    assert plain.certificate is not None
    outcome, why = said(judged(target, model=plain))
    assert outcome != "proved", why


def check_target(target: dict[str, Any]) -> Report:
    assert MODEL.certificate is not None
    files = bundle.files(MODEL)
    certificate = json.loads(files[CERTIFICATE])
    certificate["claims"] = [MODEL.certificate.claims[0] | {"target": target}]
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


def test_either_gives_two() -> None:
    both = program("either")
    assert judged({"either": both | {"outputs": both["outputs"][:1]}}).result == "MALFORMED"


def test_a_gate_in_fractions() -> None:
    for p, q in ((Fraction(1), Fraction(-2)), (Fraction(0), Fraction(3)), (Fraction(5, 3), Fraction(5, 3))):
        assert gate(p, q, [Fraction(0), Fraction(1, 8)], Fraction(1, 8), Fraction(3)) == p
        assert gate(p, q, [Fraction(1, 8), Fraction(0)], Fraction(1, 8), Fraction(3)) == q
        assert min(p, q) <= gate(p, q, [Fraction(1, 32), Fraction(0)], Fraction(1, 8), Fraction(3)) <= max(p, q)
    assert (
        gate(Fraction(0), Fraction(4), [Fraction(0), Fraction(1)], Fraction(1, 8), Fraction(3)) == 1
    )  # beyond the reach
    assert is_power_of_two(0.25)
    assert not any(map(is_power_of_two, (0.0, 0.75, -1.0)))


def test_one_example_cannot_both_teach_and_judge() -> None:
    with pytest.raises(onelayer.DataError, match=r"\[selection\] needs examples to learn from.*one example"):
        MODEL.predict([[1.0, 0.0]], [1.0], [[0.0, 1.0]])
