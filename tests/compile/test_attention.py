"""Linear attention fitted to sequences: the global minimum, whether it is the only one, and equal layers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import onelayer
from onelayer import DataError, HypothesisError, OptionError, equivalent, fit_attention, identify
from onelayer.export import bundle
from onelayer.learners.cubic import network
from onelayer_checker import Report, check
from onelayer_checker.core.files import CERTIFICATE, DATA
from onelayer_checker.looped.definite import least_eigenvalue


def layer(heads: Any, Z: np.ndarray) -> np.ndarray:
    return sum(np.einsum("bi,bij->bj", np.einsum("bi,bni->bn", Z[:, -1] @ Q, Z), Z) @ V for V, Q in heads)


def drawn(d: int, heads: int, N: int = 300, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = [(rng.normal(size=(d, d)), rng.normal(size=(d, d))) for _ in range(heads)]
    Z = rng.normal(size=(N, 8, d))
    return truth, Z, layer(truth, Z)


def tables(B: int, unit: bool, rng: np.random.Generator, k: int = 2) -> np.ndarray:
    """Associative tables: k rows of keys and values, and a query; orthogonal ones do not determine a layer."""
    M = rng.normal(size=(2, B, k, k))
    K, V = np.linalg.qr(M)[0] if unit else M
    Z = np.zeros((B, k + 1, 2 * k))
    Z[:, :k, :k], Z[:, :k, k:] = K, V
    Z[:, k, :k] = K[np.arange(B), rng.integers(k, size=B)]
    Z[:, k, k:] = rng.normal(size=(B, k))
    return Z


@pytest.mark.parametrize(("d", "heads"), [(2, 1), (4, 1), (3, 2)])
def test_a_layer_is_found_again_and_proved_to_be_the_only_one(d: int, heads: int, tmp_path: Path) -> None:
    truth, Z, Y = drawn(d, heads)
    model = fit_attention(Z, Y)
    assert model.ledger.number("error") <= 1e-25
    longer = np.random.default_rng(1).normal(size=(20, 40, d))
    wanted = layer(truth, longer)
    assert np.abs(model.predict(longer) - wanted).max() <= 2e-14 * np.abs(wanted).max()
    assert model.verify(require=["identifies"]).result == "VERIFIED"
    assert onelayer.load(model.save(tmp_path / "model")) == model
    few = fit_attention(Z, Y, heads="fewest", certify=False)
    assert few.ledger.number("heads") == heads < model.ledger.number("heads")
    np.testing.assert_allclose(few.predict(longer), wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())


def test_noise_leaves_the_least_squares_error() -> None:
    _, Z, Y = drawn(2, 1)
    Y = Y[:, 0] + 0.1 * np.random.default_rng(2).normal(size=len(Z))
    model = fit_attention(Z, Y, certify=False)
    j, k = np.triu_indices(2)
    H = ((Z.swapaxes(1, 2) @ Z)[:, j, k][:, :, None] * Z[:, -1][:, None, :]).reshape(len(Z), -1)
    rest = np.linalg.lstsq(H, Y, rcond=None)[1][0] / len(Z)
    assert model.ledger.number("error") == pytest.approx(rest, rel=1e-9)
    assert model.predict(Z).shape == (len(Z),)


def test_orthogonal_tables_leave_a_second_layer_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    memory = [(np.diag([0.0, 0, 1, 1]), np.diag([1.0, 1, 0, 0]))]
    Z = tables(400, True, rng)
    model = fit_attention(Z, layer(memory, Z))
    assert model.certificate is not None
    (claim,) = model.certificate.claims
    assert claim["type"] == "ambiguous"
    assert model.verify(require=["ambiguous"]).result == "VERIFIED"
    eps, delta = (float.fromhex(claim[name]) for name in ("eps", "delta"))
    assert eps < 1e-10
    assert delta > 0.1
    found = identify(Z)
    assert not found
    assert found.witness is not None
    zero = network([(np.zeros((4, 1)), np.eye(4))])
    assert not equivalent(zero, found.witness.transformer)
    known = identify(tables(400, False, rng))
    assert known
    assert 0 < known.bound <= known.eigenvalue


def changed(model: onelayer.Model, data: dict[str, np.ndarray] | None = None, **claim: Any) -> Report:
    assert model.certificate is not None
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE])
    certificate["claims"] = [model.certificate.claims[0] | {k: v.hex() for k, v in claim.items()}]
    if data is not None:
        files[DATA] = save({**load(files[DATA]), **data})
        certificate["files"][DATA] = {"sha256": hashlib.sha256(files[DATA]).hexdigest(), "bytes": len(files[DATA])}
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


def test_claims_that_are_a_little_too_good_are_not_proved() -> None:
    _, Z, Y = drawn(2, 1, N=50)
    model = fit_attention(Z, Y)
    mu = model.ledger.number("eigenvalue")
    assert changed(model, mu=mu * (1 + 1e-9)).result == "UNKNOWN"
    assert changed(model, mu=mu / 2).result == "VERIFIED"
    assert changed(model, mu=0.0).result == "UNKNOWN"
    assert changed(model, {"tokens": np.pad(Z, ((0, 0), (0, 0), (0, 2)))[:5]}).result == "UNKNOWN"  # too few
    assert changed(model, {"tokens": np.full((50, 8, 4), np.nan)}).result == "MALFORMED"
    assert changed(model, {"tokens": np.full((50, 8, 4), 1e30)}).result == "MALFORMED"
    assert changed(model, {"tokens": np.ones((50, 8, 3))}).result == "MALFORMED"
    assert changed(model, {"other.W_Q": np.ones((1, 4, 4)), "more": np.ones(1)}).result == "MALFORMED"


def test_a_second_layer_that_does_not_fit_or_does_not_differ_is_not_one() -> None:
    Z = tables(60, True, np.random.default_rng(0))
    model = fit_attention(Z, Z[:, -1, :1])
    assert model.certificate is not None
    data = model.certificate.data
    assert changed(model).result == "VERIFIED"
    assert changed(model, eps=0.0).result == "UNKNOWN"
    assert changed(model, delta=1e3).result == "UNKNOWN"
    same = {f"other.{n}": getattr(model.transformer.attention, n) for n in ("W_Q", "W_K", "W_V", "W_O")}
    assert changed(model, same).result == "UNKNOWN"
    assert changed(model, {"other.W_V": data["other.W_V"][::-1].copy()}).result == "UNKNOWN"
    assert changed(model, {"at": data["tokens"][:1]}).result == "UNKNOWN"
    assert changed(model, {"other.W_O": data["other.W_O"][:1]}).result == "MALFORMED"


def test_eigenvalues_are_bounded_from_below_and_nearly_met() -> None:
    rng = np.random.default_rng(0)
    for p in (1, 3, 20):
        B = rng.normal(size=(p, 2 * p))
        A = B @ B.T
        true = float(np.linalg.eigvalsh(A)[0])
        assert true * (1 - 1e-6) <= least_eigenvalue(A, np.zeros_like(A)) <= true
        assert least_eigenvalue(A, np.full_like(A, true / p)) <= 1e-9  # it may be singular within the radius
        assert least_eigenvalue(A - 2 * true * np.eye(p), np.zeros_like(A)) <= -true * (1 - 1e-9)
    assert least_eigenvalue(np.full((2, 2), np.nan), np.zeros((2, 2))) == -np.inf
    assert least_eigenvalue(np.eye(2), np.full((2, 2), np.inf)) == -np.inf


def test_layers_that_are_the_same_function() -> None:
    truth, _, _ = drawn(2, 2)
    (V, Q), other = truth
    net = network(truth)
    assert equivalent(net, network([other, (V, Q)]))
    assert equivalent(net, network([(2 * V, Q / 2), other]))
    assert equivalent(net, network([(V / 2, Q), (V / 2, Q), other]))
    off = V.copy()
    off[0, 0] = np.nextafter(off[0, 0], 9)
    found = equivalent(net, network([(off, Q), other]))
    assert not found
    assert found.at is not None
    assert found.apart is not None
    assert 0 < abs(found.apart) < 1e-12
    biased = replace(net, readout=(replace(net.readout[0], bias=np.ones(2)),))
    assert equivalent(net, biased).apart == -1
    with pytest.raises(OptionError, match="the same width"):
        equivalent(net, network([(np.eye(3), np.eye(3))]))
    with pytest.raises(HypothesisError, match="one layer of linear attention"):
        equivalent(net, onelayer.learner("gd", d=2, certify=False))


@pytest.mark.parametrize(
    ("Z", "Y", "words"),
    [
        (np.ones((5, 3, 2)), np.ones(5), r"at least 6 sequences for d=2.*there are 5.*Add sequences"),
        (np.ones((5, 3)), np.ones(5), r"Z has shape \(5, 3\)"),
        (np.ones((9, 3, 2)), np.ones(5), "an answer Y"),
        (np.full((9, 3, 2), np.nan), np.ones(9), "sequence 0 has NaN"),
        (np.ones((9, 3, 2)), np.full(9, np.inf), "answer 0 has NaN or infinity"),
        ([["a"]], [1], "numbers"),
        (np.ones((9, 3, 40)), np.ones(9), r"d=40 has 32,800.*Use d <= 19"),
    ],
)
def test_what_cannot_be_fitted_is_refused(Z: Any, Y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        fit_attention(Z, Y)


def test_options_and_widths_are_checked() -> None:
    _, Z, Y = drawn(2, 1, N=20)
    with pytest.raises(OptionError, match="svd, fewest"):
        fit_attention(Z, Y, heads="most")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="tokens of 2 components"):
        fit_attention(Z, Y, certify=False).predict(np.ones((1, 3, 5)))
