"""The best of all linear attention layers on random tasks: closed forms, sampled tasks, and other layers."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer_checker import check
from onelayer_checker.core.files import CERTIFICATE
from onelayer_checker.looped.risks import Moments


def best(d: int = 3, N: int = 4, half: float = 0.5, **more: Any) -> onelayer.Model:
    return onelayer.learner("gd", d=d, optimal=N, low=-half, high=half, **more)


def judged(model: onelayer.Model, **numbers: float) -> Any:
    assert model.certificate is not None
    claim = next(c for c in model.certificate.claims if c["type"] == "minimises")
    entry = claim | {name: float(value).hex() for name, value in numbers.items()}
    files = onelayer.export.bundle.files(model)
    certificate = json.loads(files[CERTIFICATE]) | {"claims": [entry]}
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


def test_the_published_setting_has_its_published_risk() -> None:
    """d = N = 10, x uniform on [-1/2, 1/2]: eta is 200/33 and the risk 245/1188."""
    model = best(10, 10)
    assert model.ledger.number("eta") == 200 / 33 or abs(model.ledger.number("eta") * 33 / 200 - 1) < 1e-15
    assert abs(model.ledger.number("risk") - 245 / 1188) < 1e-15
    assert model.verify(require=["minimises real"]).result == "VERIFIED"
    assert judged(model, value=245 / 1188 * (1 - 1e-12)).result == "NOT VERIFIED"
    assert "every linear attention layer with any number of heads" in model.explain()


@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize(("d", "N", "half"), [(1, 1, 1.0), (2, 5, 0.5), (3, 2, 2.0)])
def test_the_risk_is_that_of_sampled_tasks(d: int, N: int, half: float, noise: float) -> None:
    model, rng, tasks = best(d, N, half, noise=noise), np.random.default_rng(0), 40_000
    assert model.proved
    w = rng.standard_normal((tasks, d))
    X, queries = rng.uniform(-half, half, (tasks, N, d)), rng.uniform(-half, half, (tasks, 1, d))
    y = np.einsum("bnd,bd->bn", X, w) + np.sqrt(noise) * rng.standard_normal((tasks, N))
    errors = (model.predict(X, y, queries)[:, 0] - np.einsum("bd,bd->b", queries[:, 0], w)) ** 2 / 2
    spread = errors.std() / np.sqrt(tasks)
    assert abs(errors.mean() - model.ledger.number("risk")) < 4 * spread


def test_other_tasks_and_other_layers_are_not_proved() -> None:
    model = best()
    assert judged(model).result == "VERIFIED"
    for change in ({"examples": 5.0}, {"half": 0.25}, {"noise": 1.0}):
        assert judged(model, **change).result == "NOT VERIFIED"  # another multiple would be best
    assert judged(model, weight=4.0, value=9.0, gap=9.0).result == "VERIFIED"
    for change in ({"examples": 0.5}, {"examples": 0.0}):
        assert judged(model, **change).result == "UNKNOWN"
    assert judged(model, gap=0.0).result in ("VERIFIED", "NOT VERIFIED")
    lopsided = onelayer.learner("preconditioned", d=3, A=np.diag([1.0, 1.0, 2.0]), steps=1)
    assert lopsided.certificate is not None
    claim = next(c for c in model.certificate.claims if c["type"] == "minimises")  # type: ignore[union-attr]
    forged = replace(lopsided.certificate, claims=(claim | {"target": lopsided.certificate.claims[0]["target"]},))
    report = replace(lopsided, certificate=forged).verify()
    assert report.result == "UNKNOWN"
    assert "no multiple of the layer" in report.claims[0].verdict.why
    twice = onelayer.learner("gd", d=3, steps=2)
    assert twice.certificate is not None
    forged = replace(twice.certificate, claims=(claim | {"target": twice.certificate.claims[0]["target"]},))
    report = replace(twice, certificate=forged).verify()
    assert report.result == "UNKNOWN"
    assert "one loop" in report.claims[0].verdict.why


def test_moments_are_those_of_the_distributions() -> None:
    half, weight, noise = Fraction(1, 2), Fraction(3), Fraction(1, 4)
    moments, rng = Moments(2, half, weight, noise), np.random.default_rng(0)
    x, y = moments.z[:2], moments.z[2]
    assert moments.expect(x[0] * x[0]) == Fraction(1, 12)
    assert moments.expect(x[0] * x[0] * x[0] * x[0]) == Fraction(1, 80)
    assert moments.expect(moments.w[0] * moments.w[0] * moments.w[0] * moments.w[0]) == 27
    assert moments.expect(y * y) == 2 * 3 * Fraction(1, 12) + Fraction(1, 4)
    assert moments.expect(y * moments.other[2]) == 0
    assert moments.expect(x[0] * y * moments.other[0] * moments.other[2]) == 3 * Fraction(1, 12) ** 2
    samples = 400_000
    w = rng.standard_normal((samples, 2)) * 3**0.5
    a = rng.uniform(-0.5, 0.5, (samples, 2))
    b = (a * w).sum(1) + 0.5 * rng.standard_normal(samples)
    found = a[:, 0] ** 2 * b**4
    assert abs(found.mean() - float(moments.expect(x[0] * x[0] * y * y * y * y))) < 5 * found.std() / samples**0.5


def test_what_has_no_best_layer_is_refused() -> None:
    for more in ({"eta": 0.1}, {"steps": 2}, {"outputs": 2}, {"noise": -1.0}):
        with pytest.raises(onelayer.HypothesisError, match="one step of one output"):
            best(**more)
    with pytest.raises(onelayer.HypothesisError, match="one step of one output"):
        onelayer.learner("gd", d=2, optimal=3, low=0, high=1)
