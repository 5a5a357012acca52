"""What rounding does to a learner: a bound for all prompts of a box, in any order of sums; and claims beyond it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import onelayer
from onelayer import to_onnx, to_torch
from onelayer.export import bundle
from onelayer_checker import Report, check
from onelayer_checker.core.files import CERTIFICATE
from onelayer_checker.looped.floats import Floats, Known

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ridge": ("ridge", {"form": "published", "penalty": 0.1}),
    "lasso": ("lasso", {"penalty": 0.05}),
    "lasso, compact": ("lasso", {"penalty": 0.05, "form": "compact"}),
    "logistic": ("logistic", {"penalty": 0.5, "knots": 9}),
    "gd": ("gd", {}),
    "ridge, compact": ("ridge", {"penalty": 0.1}),
}
MODELS: dict[tuple[str, str], onelayer.Model] = {}


def made(case: str, dtype: str) -> onelayer.Model:
    name, options = CASES[case]
    if (case, dtype) not in MODELS:
        MODELS[case, dtype] = onelayer.learner(name, d=3, steps=8, dtype=dtype, examples=20, **options)
    return MODELS[case, dtype]


def changed(model: onelayer.Model, target: dict[str, Any] | None = None, **numbers: Any) -> Report:
    assert model.certificate is not None
    own = next(c for c in model.certificate.claims if c["type"] == "rounds")
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE])
    more = {k: v if isinstance(v, str) else float(v).hex() for k, v in numbers.items()}
    certificate["claims"] = [own | more | {"target": own["target"] | (target or {})}]
    return check(files | {CERTIFICATE: json.dumps(certificate).encode()})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_the_bound_is_proved_and_holds_in_every_order_and_program(case: str, dtype: str, tmp_path: Path) -> None:
    """Fifty orders of examples and components, in NumPy, PyTorch and ONNX Runtime, against reals in fractions."""
    model, rng = made(case, dtype), np.random.default_rng(0)
    bound = model.interface.rounding_bound
    assert 0 < bound < (0.2 if dtype == "float32" else 1e-8)
    assert model.verify(require=["rounds"]).result == "VERIFIED"
    X, queries = (rng.uniform(-1, 1, (n, 3)).astype(dtype) for n in (20, 2))
    y = (rng.uniform(-1, 1, 20) > 0) if case == "logistic" else rng.uniform(-1, 1, 20)
    y = y.astype(dtype)
    exact = wanted(model, X, y, queries)
    orders = np.stack([rng.permutation(20) for _ in range(50)])
    tasks = model.interface.tasks(*(np.asarray(part, np.float64) for part in (X[orders], y[orders], queries)))
    tokens, lengths = model.interface.prompts(tasks, dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(model, tmp_path / "m.onnx").read_bytes(), options)
    with torch.no_grad():
        found = [to_torch(model)(torch.from_numpy(tokens)).numpy(), model.predict(*(X[orders], y[orders], queries))]
    found += session.run(["outputs"], {"tokens": tokens, "lengths": lengths})
    answers = [part if part.ndim == 2 else part[:, 20:, 0] for part in found]
    assert all(part.shape == (50, 2) and part.dtype == dtype for part in answers)
    apart = [
        abs(Fraction(float(a)) - e) for part in answers for row in part for a, e in zip(row, exact, strict=True)
    ]
    assert 0 < max(apart) <= bound


def wanted(model: onelayer.Model, X: np.ndarray, y: np.ndarray, queries: np.ndarray) -> list[Fraction]:
    """The algorithm in fractions, rounded to 2^-200 after each step: far finer than any float."""
    a, s = model.interface.algorithm, [Fraction(0)] * 3
    rows = [([Fraction(float(v)) for v in x], [Fraction(float(t))]) for x, t in zip(X, y, strict=True)]

    def run(script: Any, **groups: Any) -> list[Fraction]:
        values: list[Any] = []
        for line in script.lines:
            word, *at = line.split(" ")
            if word == "const":
                values.append(Fraction(float.fromhex(at[0])))
            elif word in groups:
                values.append(groups[word][int(at[0])])
            else:
                u = [values[int(i)] for i in at]
                values.append({"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
                               "max": max, "neg": lambda a: -a}[word](*u))  # fmt: skip
        return [values[i] for i in script.outputs]

    for _ in range(a.steps):
        terms = [run(a.term, s=s, x=x, y=t) for x, t in rows]
        m = [sum(column) / len(rows) for column in zip(*terms, strict=True)]
        s = [Fraction(round(v * 2**200), 2**200) for v in run(a.step, s=s, m=m)]
    return [run(a.answer, s=s, x=[Fraction(float(v)) for v in q])[0] for q in queries]


@pytest.mark.parametrize("case", CASES)
def test_a_claim_that_is_too_good_is_not_proved(case: str) -> None:
    model = made(case, "float32")
    bound = model.interface.rounding_bound
    assert changed(model, bound=bound * 0.999).result == "UNKNOWN"
    assert changed(model, x=1.01).result == "UNKNOWN"
    assert changed(model, examples=21).result == "UNKNOWN"
    assert changed(model, y=1.1).result == "UNKNOWN"
    assert changed(model, examples=19).result == "VERIFIED"
    assert changed(model, examples=0.5).result == "UNKNOWN"
    assert changed(model, examples=2.0**40).result == "UNKNOWN"
    assert changed(model, x=2.0).result == "UNKNOWN"  # steps of this size may diverge there
    assert changed(model, arith="real").result == "MALFORMED"
    assert changed(model, arith="float64").result == "UNKNOWN"  # the weights are float32


def test_larger_steps_and_other_forms_are_not_proved() -> None:
    for name, options in (("nesterov", {}), ("mesa", {}), ("kernel", {}), ("whitening", {})):
        model = onelayer.learner(name, d=2, dtype="float32", examples=10, **options)
        assert model.interface.rounding_bound == np.inf
        assert model.proved
    with pytest.raises(onelayer.OptionError, match="examples from 1"):
        onelayer.learner("lasso", d=2, examples=0)


def test_a_weight_that_is_off_is_refuted_before_rounding_is_asked_for() -> None:
    model = made("lasso", "float32")
    tensors = {name: a.copy() for name, a in model.transformer.tensors()}
    tensors["attention.W_V"][0, 0, 0] *= 2
    assert replace(model, transformer=model.transformer.with_tensors(tensors)).verify().result == "NOT VERIFIED"


def test_sums_and_products_in_floats_stay_within_their_bounds() -> None:
    rng, floats = np.random.default_rng(0), Floats(Fraction(1, 2**24), Fraction(1, 2**149), 2**120)
    for _ in range(300):
        values = (rng.standard_normal(int(rng.integers(1, 9))) * 2.0 ** rng.integers(-40, 40)).astype(np.float32)
        terms = [Known(abs(Fraction(float(v)))) for v in values]
        total = np.float32(0)
        for v in rng.permutation(values):
            total = np.float32(total + v)
        off = abs(Fraction(float(total)) - sum(Fraction(float(v)) for v in values))
        assert off <= floats.summed(terms, products=False).off
        a, b = (Fraction(float(v)) for v in (values[0], values[-1]))
        product = Fraction(float(np.float32(values[0]) * np.float32(values[-1])))
        assert abs(product - a * b) <= floats.times(Known(abs(a)), Known(abs(b))).off
    assert floats.gamma(1 << 10) > Fraction(1, 2**14)


def test_it_is_kept_with_the_model_and_said_in_words(tmp_path: Path) -> None:
    model = made("ridge", "float32")
    assert onelayer.load(model.save(tmp_path / "m")) == model
    assert "numbers of that arithmetic" in model.explain()
    tight = replace(model, interface=replace(model.interface, rounding_bound=1e-12))
    assert tight.interface.unclaimed(model.certificate.claims)  # type: ignore[union-attr]
