"""Softmax heads that are kernel smoothers up to a bound: prompts never break it; forgeries are not proved."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import onelayer
from onelayer.certificates.folder import MODEL
from onelayer.compile.attend import _read_kernel
from onelayer.export import bundle
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.looped.judge import LoopJudge
from onelayer_checker.looped.network import build
from onelayer_checker.looped.patches import Patch, bilinear, coordinates

KERNELS = {"laplace": "-4*abs(u - v)", "decay": "4*exp(-3*abs(u - v))"}
BOUNDS = {"laplace": 0.12, "decay": 0.35}
MODELS: dict[str, onelayer.Model] = {}


def made(name: str) -> onelayer.Model:
    if name not in MODELS:
        MODELS[name] = onelayer.attend(KERNELS[name], rank=16, knots=33)
    return MODELS[name]


def judged(
    model: onelayer.Model, weights: dict[str, Any] | None = None, target: Any = None, **numbers: float
) -> Verdict:
    """What is said of its claim with other weights, another algorithm or other numbers."""
    assert model.certificate is not None
    files = bundle.files(model)
    tensors = load_tensors(files[MODEL]) | (weights or {})
    (entry,) = model.certificate.claims
    changed = entry | {k: float(v).hex() for k, v in numbers.items()} | {"target": entry["target"] | (target or {})}
    network = build(load_tensors(save_tensors(tensors)), model.certificate.graph)
    return LoopJudge(network, tensors).judge(Claim.read(changed))


def off(model: onelayer.Model, X: Any, y: Any, queries: Any) -> Any:
    """How far answers [tasks, queries] are from the smoother's, computed without the library."""
    rho = model.interface.algorithm.logit.run({"q": [queries[..., None]], "x": [X[:, None, :]]})[0]
    weights = np.exp(rho - rho.max(axis=-1, keepdims=True))
    wanted = (weights * y[:, None, :]).sum(axis=-1) / weights.sum(axis=-1)
    return np.abs(model.predict(X[..., None], y, queries[..., None]) - wanted)


@pytest.mark.parametrize("name", KERNELS)
def test_the_bound_is_proved_and_neither_chance_nor_climbing_breaks_it(name: str) -> None:
    model, rng = made(name), np.random.default_rng(0)
    assert model.verify(require=["attends real"]).result == "VERIFIED"
    assert 0 < model.error_bound < BOUNDS[name]
    worst = 0.0
    for n, tasks in ((1, 100), (2, 2000), (5, 2000), (40, 800), (4096, 2)):  # ten queries each: 49,020 answers
        X, queries = rng.uniform(0, 1, (tasks, n)), rng.uniform(0, 1, (tasks, 10))
        worst = max(worst, float(off(model, X, rng.choice([-1.0, 1.0], (tasks, n)), queries).max()))
    X, queries, y = rng.uniform(0, 1, (64, 2)), rng.uniform(0, 1, (64, 1)), np.tile([-1.0, 1.0], (64, 1))
    best = off(model, X, y, queries)[:, 0]
    for step in range(40):  # of 64 climbers: 2,560 answers
        scale = 0.3 * 0.9**step
        near = (
            np.clip(X + rng.normal(0, scale, X.shape), 0, 1),
            np.clip(queries + rng.normal(0, scale, (64, 1)), 0, 1),
        )
        found = off(model, near[0], y, near[1])[:, 0]
        better = found > best
        X[better], queries[better], best[better] = near[0][better], near[1][better], found[better]
    assert worst <= model.error_bound
    assert model.error_bound / 5 < best.max() <= model.error_bound


@pytest.mark.parametrize("name", KERNELS)
def test_a_claim_that_is_a_little_too_good_is_not_proved(name: str) -> None:
    model = made(name)
    assert judged(model).outcome == "proved"
    for numbers in (
        {"bound": model.error_bound * (1 - 1e-9)},
        {"y": 1 + 1e-9},
        {"high": 1.25},
        {"low": -0.25},
        {"low": 1.0},
        {"low": 2.0},
        {"high": 1e300},
    ):
        assert judged(model, **numbers).outcome == "undecided", numbers


def test_another_kernel_or_other_weights_are_not_proved() -> None:
    model = made("laplace")
    for kernel in ("-4.1*abs(u - v)", "-4*abs(u - 1.01*v)", "4*abs(u - v)"):
        assert judged(model, target={"logit": _read_kernel(kernel).to_json()}).outcome == "undecided", kernel
    shifted = judged(model, target={"logit": _read_kernel("-4*abs(u - v) + 3*u**2").to_json()}, bound=0.13)
    assert shifted.outcome == "proved"  # softmax does not see what all keys share
    tensors = load_tensors(bundle.files(model)[MODEL])
    for key, at in (("W_V", (0, 1, 0)), ("W_O", (0, 0, 2)), ("W_K", (0, 19, 0)), ("W_Q", (0, 3, 0))):
        other = tensors[f"attention.{key}"].copy()
        assert other[at] == 1
        other[at] = np.nextafter(1, 2) if key in ("W_V", "W_O") else 1.05
        assert judged(model, {f"attention.{key}": other}).outcome == "undecided", key
    keys = tensors["attention.W_K"].copy()
    keys[0, 1, 0] = 2.0**-60  # a key that reads y
    assert judged(model, {"attention.W_K": keys}, bound=2.0).why == "keys depend on y"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("term", "the algorithm is not an average of y"),
        ("answer", "the algorithm is not an average of y"),
        ("logit", "the kernel reads more"),
        ("query", "start: the flag of the query"),
        ("example", "the token of the example is not affine"),
    ],
)
def test_another_algorithm_is_no_smoother(script: str, why: str) -> None:
    """Even with a bound that every average keeps."""
    model = made("laplace")
    assert model.certificate is not None
    own = model.certificate.claims[0]["target"][script]
    lines, outputs = list(own["lines"]), list(own["outputs"])
    if script in ("term", "answer"):
        lines += ["const 0x1.8000000000000p+0", f"mul {outputs[0]} {len(lines)}"]
        outputs = [len(lines) - 1]
    elif script == "logit":
        lines += ["y 0", f"add {outputs[0]} {len(lines)}"]
        outputs = [len(lines) - 1]
    elif script == "query":
        lines += ["const 0x1.0000000000000p+0"]
        outputs[-1] = len(lines) - 1
    else:
        lines += ["x 0", f"mul {len(lines)} {len(lines)}"]
        outputs[0] = len(lines) - 1
    verdict = judged(model, target={script: {"lines": lines, "outputs": outputs}}, bound=2.0)
    assert verdict.outcome == "undecided"
    assert verdict.why.startswith(why)


def test_patches_enclose_functions_at_random_points_of_cells() -> None:
    rng = np.random.default_rng(1)
    places = [Fraction(k, 7) for k in range(-7, 8)], [Fraction(k * k, 25) for k in range(6)]
    u, v = coordinates(*places)
    third = Fraction(1, 3)
    functions: list[Any] = [
        lambda u, v: abs(u - v),
        lambda u, v: u * v * third - v + 2,
        lambda u, v: 1 - abs(u * u - v) * abs(v - third) * u,
        lambda u, v: abs(abs(u) - abs(v - 1) * 2) - u * u * u,
    ]
    for f in functions:
        found: Patch = f(u, v)
        low, high = found.range()
        assert float((high - low).max()) < 3
        for _ in range(200):
            i, j = int(rng.integers(14)), int(rng.integers(5))
            s, t = (Fraction(float(x)) for x in rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 2))
            first, second = (
                (p[k] * (1 - w) + p[k + 1] * (1 + w)) / 2 for p, k, w in zip(places, (i, j), (s, t), strict=True)
            )
            exact = f(first, second)
            a, b, c, d, r = (Fraction(float(part[i, j])) for part in (found.a, found.b, found.c, found.d, found.r))
            assert abs(exact - (a + b * s + c * t + d * s * t)) <= r
            assert low[i, j] <= exact <= high[i, j]


def test_patches_enclose_exponentials() -> None:
    """Against forty decimals, at random points, corners and edges of cells; small and large exponents."""
    rng, places = (
        np.random.default_rng(3),
        ([Fraction(k, 3) for k in range(-3, 4)], [Fraction(k, 2) for k in range(4)]),
    )
    u, v = coordinates(*places)
    getcontext().prec = 40
    functions: list[tuple[Any, float]] = [
        (lambda u, v: -3 * abs(u - v), 2.0),
        (lambda u, v: u * v * 5 - 7, 1.0),
        (lambda u, v: u * 600 + v - v, 1e261),
        (lambda u, v: u * v - v * u - 1000, 1e-290),
    ]
    for f, widest in functions:
        with np.errstate(all="ignore"):  # as whoever asks does
            found = f(u, v).exp()
        assert float(np.max(found.r)) < widest
        for _ in range(100):
            i, j = int(rng.integers(6)), int(rng.integers(3))
            s, t = (Fraction(float(x)) for x in rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], 2))
            first, second = (
                (p[k] * (1 - w) + p[k + 1] * (1 + w)) / 2 for p, k, w in zip(places, (i, j), (s, t), strict=True)
            )
            exponent = Fraction(f(first, second))
            exact = Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
            a, b, c, d, r = (
                Fraction(float(np.broadcast_to(part, (6, 3))[i, j]))
                for part in (found.a, found.b, found.c, found.d, found.r)
            )
            assert abs(exact - (a + b * s + c * t + d * s * t)) <= r
    narrow = coordinates([Fraction(1), Fraction(1) + Fraction(1, 2**30)], places[1])[0].exp()
    assert float(narrow.r.max()) < 1e-12  # nearly a number
    with np.errstate(all="ignore"):
        assert not np.isfinite((u * 800).exp().r).all()


def test_what_is_known_at_corners_is_bilinear_between_them() -> None:
    rng = np.random.default_rng(2)
    corners, radius = rng.normal(size=(3, 4)), np.full((3, 4), 0.125)
    found = bilinear(corners, radius)
    for s, i in ((-1, 0), (1, 1)):
        for t, j in ((-1, 0), (1, 1)):
            value = found.a + found.b * s + found.c * t + found.d * s * t
            assert np.allclose(value, corners[i : 2 + i, j : 3 + j], atol=1e-15)
    assert ((found.r >= 0.125) & (found.r < 0.1251)).all()


def test_a_model_that_promises_more_than_its_claim_is_refused() -> None:
    model = made("laplace")
    claims = model.certificate.claims if model.certificate else ()
    assert model.interface.unclaimed(claims) == ""
    for change in ({"error_bound": model.error_bound / 2}, {"low": -1.0}, {"high": 2.0}, {"largest": 2.0}):
        assert replace(model.interface, **change).unclaimed(claims)
