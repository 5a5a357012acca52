"""How near a looped network comes to ridge regression: bounds that hold, and claims that are a little too good."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer.certificates.algorithms import algorithm_in_words, prove
from onelayer.export import bundle
from onelayer.interfaces import Examples
from onelayer_checker import check
from onelayer_checker.core.files import CERTIFICATE
from onelayer_checker.looped.limits import factor, power, root

FORMS: dict[str, dict[str, Any]] = {
    "plain": {"steps": 200},
    "accelerated": {"tolerance": 1e-3},
    "published": {"steps": 200, "form": "published"},
}


def made(form: str, **more: Any) -> onelayer.Model:
    return onelayer.learner("ridge", **{"d": 3, "penalty": 0.2} | FORMS[form] | more)


def changed(model: onelayer.Model, **numbers: float) -> Any:
    """The verdict on its claim `within` with other numbers."""
    assert model.certificate is not None
    claim = next(c for c in model.certificate.claims if c["type"] == "within")
    entry = claim | {name: float(value).hex() for name, value in numbers.items()}
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE]) | {"claims": [entry]}
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


@pytest.mark.parametrize("form", FORMS)
def test_the_bound_is_proved_and_never_broken(form: str) -> None:
    model, rng = made(form), np.random.default_rng(0)
    assert model.verify(require=["within real"]).result == "VERIFIED"
    assert 0 < model.error_bound < 0.01
    penalty, worst = model.ledger.number("penalty"), 0.0
    for _ in range(300):
        N = int(rng.integers(1, 8))
        X, queries = rng.choice([-1.0, 1.0, 0.25], (N, 3)), rng.choice([-1.0, 1.0], (8, 3))
        y = rng.choice([-1.0, 1.0], N)
        v = np.linalg.solve(X.T @ X / N + penalty * np.eye(3), X.T @ y / N)
        worst = max(worst, float(np.abs(model.predict(X, y, queries) - queries @ v).max()))
    assert 0 < worst <= model.error_bound + 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["bound", "x", "y", "eta", "a", "b"])
def test_a_claim_that_is_a_little_too_good_is_not_proved(form: str, name: str) -> None:
    model = made(form)
    assert model.certificate is not None
    claim = next(c for c in model.certificate.claims if c["type"] == "within")
    value = float.fromhex(claim[name])
    better = value * 0.99 if name == "bound" else value * 1.02 if name in ("x", "y") else np.nextafter(value, 9.0)
    report = changed(model, **{name: float(better)})
    assert report.result == "UNKNOWN", report.claims
    assert changed(model).result == "VERIFIED"


def test_other_forms_of_the_algorithm_are_not_taken_for_it() -> None:
    assert changed(made("plain"), late=1.0).result == "UNKNOWN"
    assert changed(made("published"), late=0.0).result == "UNKNOWN"
    lasso = onelayer.learner("lasso", d=3, penalty=0.2)
    assert lasso.certificate is not None
    claim = {"type": "within", "arith": "real", "scope": "token", "target": lasso.certificate.claims[0]["target"]}
    claim |= {name: (1.0).hex() for name in ("bound", "x", "y", "eta", "a", "late")} | {"b": (0.0).hex()}
    files = bundle.files(lasso)
    certificate = json.loads(files[CERTIFICATE]) | {"claims": [claim]}
    assert check(files | {CERTIFICATE: json.dumps(certificate).encode()}).result == "UNKNOWN"


def test_without_a_penalty_or_with_large_steps_nothing_is_claimed() -> None:
    assert onelayer.learner("ridge", d=3).error_bound == np.inf
    assert onelayer.learner("ridge", d=3, penalty=0.1, eta=0.6).error_bound == np.inf
    assert onelayer.learner("nesterov", d=3, penalty=0.1, momentum=0.1).error_bound == np.inf


def test_inputs_outside_the_box_of_a_bound_are_refused() -> None:
    model = made("accelerated")
    X, y, queries = np.zeros((2, 3)), np.zeros(2), np.zeros((1, 3))
    for at, words in (
        (X, "example 1 has 2.4 at component 2"),
        (y, "answer 1 has 2.4"),
        (queries, "query 0 has 2.4"),
    ):
        given = [a.copy() for a in (X, y, queries)]
        which = next(i for i, a in enumerate((X, y, queries)) if a is at)
        given[which][-1, ...] = np.where(np.arange(3) == 2, 2.4, 0)[: given[which][-1].size] if which != 1 else 2.4
        with pytest.raises(onelayer.DataError, match=f"{words}.*Rescale, or compile with"):
            model.predict(*given)


def test_roots_and_powers_are_rounded_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        value, n = Fraction(float(rng.uniform(0, 1))), int(rng.integers(1, 60))
        assert root(value) ** 2 >= value
        assert root(value) ** 2 <= value + Fraction(1, 2**200)
        assert power(value, n) >= value**n
        assert power(value, n) <= value**n + Fraction(1, 2**400)
        a, b = float(rng.uniform(0, 1)), float(rng.uniform(0, 1))
        if a * a <= 4 * b:
            e, before = 1.0, 1.0
            t = float(rng.uniform(0, 1))
            for _ in range(n):
                e, before = t * (a * e - b * before), e
            assert abs(e) <= float(factor(Fraction(a), Fraction(b), n)) + 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["compact", "published"])
@pytest.mark.parametrize("d", [1, 2, 5, 7])
def test_every_penalty_has_its_bound(d: int, form: str, dtype: str) -> None:
    """Whatever eta and the penalty are, what shrinks is exact, and the claim is proved."""
    for penalty in (0.01, 0.1, 0.37, 3.0):
        model = onelayer.learner("ridge", d=d, penalty=penalty, form=form, dtype=dtype, steps=30)
        assert np.isfinite(model.error_bound), penalty
        assert abs(model.ledger.number("penalty") / penalty - 1) < 1e-2


def test_errors_that_are_tiny_are_proved_too() -> None:
    model = onelayer.learner("ridge", d=2, penalty=2.0, steps=5000)
    assert 0 < model.error_bound < 1e-70
    assert model.verify(require=["within", "equals"]).result == "VERIFIED"


def test_a_bound_is_not_said_to_be_proved_by_both_engines() -> None:
    """The lattice decides identities: it knows nothing of contractions and their roots."""
    report = check(bundle.files(made("plain", d=1)), engine="both")
    assert report.result == "VERIFIED"
    assert [(judged.claim.type, judged.engine) for judged in report.claims] == [
        ("equals", "both"),
        ("within", "numpy"),
    ]


def test_what_is_claimed_of_the_published_form_is_exact() -> None:
    """1 - shrink must be a float, or the claim is about another step than that of the weights."""
    for d, penalty in ((12, 0.1), (3, 0.3), (1, 7.0)):
        model = onelayer.learner("ridge", d=d, penalty=penalty, form="published", steps=5)
        assert model.verify(require=["equals", "within"]).result == "VERIFIED"
        assert model.error_bound < np.inf


def test_a_bound_that_is_not_proved_does_not_cost_the_proof_of_the_algorithm() -> None:
    model = made("plain")
    assert model.certificate is not None
    equals, within = model.certificate.claims
    better = within | {"bound": (1e-9).hex()}
    proof = prove(model.transformer, model.interface_as(Examples, "test").algorithm, [better])
    assert proof is not None
    assert proof.claims == (equals,)


def test_a_bound_alone_is_explained_with_its_algorithm() -> None:
    model = made("plain")
    assert model.certificate is not None
    equals, within = model.certificate.claims
    alone = replace(model, certificate=replace(model.certificate, claims=(within,)))
    assert alone.verify().result == "VERIFIED"
    assert "Begin with a state s of 3 numbers, 0." in alone.explain()
    assert "the answer at every query is that of the algorithm, and within" in alone.explain()
    nothing = within | {"a": (0.5).hex(), "b": (0.5).hex()}
    assert (
        "+ inf |v|^2/2"
        in replace(model, certificate=replace(model.certificate, claims=(equals, nothing))).explain()
    )


def test_a_start_is_not_shown_as_shorter_than_it_is() -> None:
    model = made("plain", d=4)
    assert model.certificate is not None
    target = model.certificate.claims[0]["target"] | {"start": [float(i == 3).hex() for i in range(4)]}
    claims = [model.certificate.claims[0] | {"target": target}, *model.certificate.claims]
    words = " ".join(algorithm_in_words({"claims": claims}))
    assert "a state s of 4 numbers, 0.0, 0.0, 0.0, ..." in words
    assert "about several algorithms; this is the first" in words


def test_a_box_is_not_rounded_to_a_larger_one_in_words() -> None:
    words = made("plain", high=0.99999999, low=-0.5).explain()
    assert "components up to 0.9999999899" in words
