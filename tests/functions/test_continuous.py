"""Random heads and fitted units: equivariant, continuous, and near the function where a narrow stream cannot be."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import onelayer
from onelayer.compile import continuous as compiler
from onelayer.compile.construction import Request
from onelayer.errors import HypothesisError
from onelayer.functions import continuous
from onelayer.functions.continuous import STATEMENT, Domain
from onelayer.impossible import narrow_stream
from onelayer.network.blocks import evaluate
from onelayer.problems.targets import resolve
from onelayer.readouts import ridges

CUBIC = "x + (2 * x - sum(y))**3"


def request(name: str, n: int, d: int, low: float, high: float, tolerance: float, dtype="float64") -> Request:
    target = resolve(name, n=n, d=d, low=low, high=high)
    return Request(target, ((low, high),) * target.d, tolerance, np.dtype(dtype), 0, lambda _: None)


@pytest.mark.parametrize(
    ("name", "n", "d", "tolerance"),
    [("softmax", 2, 1, 0.02), ("max", 3, 1, 0.05), ("standardise", 2, 1, 0.1), ("mean", 2, 2, 0.001)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_and_symmetry(name: str, n: int, d: int, tolerance: float, dtype: str) -> None:
    asked = request(name, n, d, 0.0, 1.0, tolerance, dtype)
    plan = compiler.plan(asked)
    assert plan.reachable
    built = compiler.build(asked, plan.levels)
    model = built.transformer
    assert model.dtype == dtype
    assert model.n_parameters == plan.parameters
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (5000, n, d)).astype(dtype)
    order = rng.permutation(n)
    out, reordered = evaluate(model, X), evaluate(model, X[:, order])
    rounding = 1e-3 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(reordered, out[:, order], atol=rounding)
    wanted = asked.target.evaluate(X.astype(np.float64))
    if asked.target.per == "sequence":
        np.testing.assert_allclose(out, np.broadcast_to(out[:, :1], out.shape), atol=rounding)
        wanted = wanted[:, None]
    assert np.abs(out - wanted).max() < tolerance


def test_the_cubic_is_met_better_than_any_narrow_layer_can() -> None:
    asked = request(CUBIC, 2, 1, -1.0, 1.0, 0.1)
    X = np.random.default_rng(6).uniform(-1, 1, (20_000, 2, 1))
    np.testing.assert_allclose(asked.target.evaluate(X)[:2], [narrow_stream.target(x) for x in X[:2]], atol=1e-12)
    plan = compiler.plan(asked)
    model = compiler.build(asked, plan.levels).transformer
    assert np.abs(evaluate(model, X) - asked.target.evaluate(X)).max() < 0.8 * float(narrow_stream.ERROR_LOWER)


def test_order_is_refused_by_name() -> None:
    asked = request("x1 - 2 * x2", 2, 1, 0.0, 1.0, 0.1)
    assert asked.target.kind == "ordered"
    with pytest.raises(HypothesisError, match=r"\[continuous\].*depends on their order"):
        compiler.plan(asked)
    with pytest.raises(HypothesisError, match="depends on their order"):
        compiler.build(asked, 16)


def test_out_of_reach_is_said_without_all_the_work() -> None:
    said: list[str] = []
    plan = compiler.plan(replace(request("standardise", 2, 1, 0.0, 1.0, 1e-7), say=said.append))
    assert not plan.reachable
    assert [line for line in said if "fitting" in line] == [f"fitting {compiler.FEWEST} units"]
    assert plan.levels > compiler.MOST_UNITS  # what it would take
    assert plan.error > 1e-7
    assert "units" in str(plan)


def test_what_can_be_proved() -> None:
    assert compiler.plan(request("mean", 3, 1, 0.0, 1.0, 0.1)).provable
    asked = request("mean", 2, 2, 0.0, 1.0, 0.1)
    assert not compiler.plan(asked).provable
    assert compiler.build(asked, 16).entries == ()


def test_far_boxes_and_seeds() -> None:
    found = continuous.choose(
        resolve("max", n=2, d=1, low=99, high=101).evaluate,
        Domain(2, 1, 99.0, 101.0, np.dtype("float64")),
        "sequence",
    )
    first, again = continuous.construct(found, 24), continuous.construct(found, 24)
    assert first.error < 0.02
    for (_, a), (_, b) in zip(first.transformer.tensors(), again.transformer.tensors(), strict=True):
        assert np.array_equal(a, b)


def test_more_units_are_better() -> None:
    found = continuous.choose(
        resolve(CUBIC, n=2, d=1, low=-1, high=1).evaluate, Domain(2, 1, -1.0, 1.0, np.dtype("float64")), "token"
    )
    few, many = (continuous.construct(found, units).error for units in (16, 128))
    assert many < few / 3


def test_a_linear_function_needs_no_units() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 4)) + 3
    F = Z @ rng.normal(size=(4, 2)) + 5
    made = ridges.fit(Z, F, (Z, F), 4, rng)
    assert np.abs(made(Z) - F).max() < 1e-3
    assert made.weight.shape == (4, 6)


def test_what_does_not_vary_is_not_read() -> None:
    rng = np.random.default_rng(1)
    Z = np.hstack([rng.normal(size=(500, 2)), np.full((500, 1), 7.0)])
    made = ridges.fit(Z, Z[:, :1] ** 2, (Z, Z[:, :1] ** 2), 16, rng)
    assert (made.weight[2] == 0).all()


def test_statement() -> None:
    assert STATEMENT.rests_on == ("temperature_heads",)


def test_the_cubic_is_proved_where_no_narrow_layer_can_be(tmp_path) -> None:
    model = onelayer.approximate(
        CUBIC, n=2, d=1, low=-1.0, high=1.0, tolerance=0.12, construction="continuous", dtype="float64"
    )
    assert model.proved
    assert model.measured_error <= model.error_bound <= 0.12 < float(narrow_stream.ERROR_LOWER)
    assert [c["type"] for c in model.certificate.claims] == ["sup_error_everywhere"] * 2
    assert model.interface.left_out == 0
    model.save(tmp_path / "cubic")
    ran = subprocess.run([sys.executable, "-m", "onelayer_checker", str(tmp_path / "cubic")], capture_output=True)
    assert ran.stdout.decode().splitlines()[-1] == "VERIFIED"
