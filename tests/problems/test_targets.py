"""Targets: the zoo is as symmetric and as steep as it says; functions of any other sort are read or refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from onelayer import DataError, HypothesisError, OnelayerError, OptionError
from onelayer.problems.targets import ZOO, Builder, Program, names, resolve
from onelayer.problems.targets.slopes import lipschitz
from onelayer_checker.functions.targets import bounds, read_program

NAMES = [*names(), "polynomial:7", "random:9"]
SHAPES = [(3, 1, 0.0, 1.0), (2, 2, -1.0, 0.5), (5, 1, 2.0, 7.0)]


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng([17, *seed])


def column(X):
    return X.mean(axis=1, keepdims=True), X.std(axis=1, keepdims=True)


def attention(X):
    scores = X @ X.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights @ X / weights.sum(axis=2, keepdims=True)


def others(X, pair, reduce):
    """reduce over k != j of pair(x_j - x_k)."""
    n = X.shape[1]
    pairs = pair(X[:, :, None] - X[:, None])
    return np.stack([reduce(np.delete(pairs[:, j], j, axis=1), axis=1) for j in range(n)], axis=1)[:, :, None]


REFERENCE = {
    "sort": lambda X: np.sort(X, axis=1).reshape(len(X), -1),
    "max": lambda X: X.max(axis=1),
    "median": lambda X: np.median(X, axis=1),
    "mean": lambda X: X.mean(axis=1),
    "range": lambda X: np.ptp(X, axis=1),
    "gap": lambda X: np.diff(np.sort(X, axis=1)[:, -2:], axis=1)[:, 0],
    "variance": lambda X: X.var(axis=1),
    "standardise": lambda X: (X - column(X)[0]) / (0.1 + column(X)[1]),
    "softmax": lambda X: np.exp(X) / np.exp(X).sum(axis=1, keepdims=True),
    "attention": attention,
    "nearest": lambda X: others(X, lambda r: np.abs(r).max(axis=-1), np.min),
    "interaction": lambda X: others(X, lambda r: np.exp(-(r**2).sum(axis=-1)), np.sum),
    "moving_average": lambda X: np.stack(
        [X[:, max(j - 1, 0) : j + 2].mean(axis=1) for j in range(X.shape[1])], axis=1
    ),
    "reversal": lambda X: X[:, ::-1],
    "polynomial": lambda X: np.polynomial.chebyshev.chebval(2 * X.mean(axis=1) - 1, [0, 0, 0, 1]),
    "polynomial:7": lambda X: np.polynomial.chebyshev.chebval(2 * X.mean(axis=1) - 1, [0] * 7 + [1]),
}


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize(("n", "d", "low", "high"), SHAPES)
def test_names_mean_what_they_say(name: str, n: int, d: int, low: float, high: float) -> None:
    X = rng(n, d).uniform(low, high, (200, n, d))
    target = resolve(name, n=n, d=d, low=low, high=high)
    assert np.allclose(target.evaluate(X), REFERENCE[name](X), rtol=1e-9, atol=1e-9)
    assert target.says


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "d", "low", "high"), SHAPES)
def test_symmetry_and_shape(name: str, n: int, d: int, low: float, high: float) -> None:
    target = resolve(name, n=n, d=d, low=low, high=high)
    X = rng(n, d).uniform(low, high, (100, n, d))
    values = target.evaluate(X)
    assert values.shape == (100, n, target.components)[:: 1 if target.per == "token" else 2]
    assert (target.kind == "invariant") <= (target.per == "sequence")
    assert (target.kind == "equivariant") <= (target.per == "token")
    for _ in range(5):
        order = rng(n).permutation(n)
        moved = target.evaluate(X[:, order])
        if target.kind != "ordered":
            assert np.allclose(moved, values[:, order] if target.per == "token" else values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "d", "low", "high"), SHAPES)
def test_no_pair_is_steeper_than_the_constant(name: str, n: int, d: int, low: float, high: float) -> None:
    """Pairs far apart, close together, and close to sequences of equal tokens, where kinks are."""
    target = resolve(name, n=n, d=d, low=low, high=high)
    draw = rng(n, d, len(name))
    a = draw.uniform(low, high, (10_000, n, d))
    a[::3] = a[::3, :1] + 1e-3 * draw.standard_normal((len(a[::3]), n, d))
    step = draw.choice([-1.0, 1.0], a.shape) * draw.choice([1e-6, 1e-3, 0.1, 1.0], (len(a), 1, 1))
    a, b = np.clip(a, low, high), np.clip(a + step, low, high)
    change = np.abs(target.evaluate(b) - target.evaluate(a)).reshape(len(a), -1).max(axis=1)
    moved = np.abs(b - a).reshape(len(a), -1).max(axis=1)
    constants = [target.lipschitz, lipschitz(target.program, low, high)]
    constants += [ZOO[name].lipschitz(n, d, low, high)] if name in ZOO else []
    for constant in constants:
        assert constant is None or (change <= constant * moved + 1e-9 * (1 + change)).all()
    assert target.lipschitz is not None
    assert target.lipschitz < np.inf


def test_constants_are_not_far_from_the_truth() -> None:
    for text, truth in (
        ("max(y)", 1),
        ("max(y) - min(y)", 2),
        ("x**2", 2),
        ("sin(3*x)", 3),
        ("hypot(x, 1)", 0.7072),
    ):
        assert truth * 0.999 <= resolve(text, n=3, d=1).lipschitz <= truth * 1.02
    assert resolve("sqrt(x)", n=2, d=1).lipschitz is None
    for text in ("1 / (x - 0.123)", "abs(x - 0.312) / (x - 0.312)"):
        with pytest.raises(HypothesisError, match="a divisor is 0 there"):
            resolve(text, n=2, d=1)
    assert resolve("sqrt(x)", n=2, d=1, low=0.25).lipschitz == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_encloses_what_the_library_evaluates(name: str) -> None:
    target = resolve(name, n=3, d=1)
    program = read_program(json.loads(json.dumps(target.program.to_json())), "target")
    low = rng(3).uniform(0, 1, (300, 3))
    high = np.minimum(low + 10.0 ** rng(4).uniform(-6, 0, (300, 1)), 1)
    x = low + (high - low) * rng(5).random((300, 3))
    below, above = bounds(program, low, high)
    values = target.evaluate(x[:, :, None]).reshape(300, -1)
    assert (below - 1e-12 <= values).all()
    assert (values <= above + 1e-12).all()


def test_programs_survive_json() -> None:
    for name in NAMES:
        program = ZOO[name.split(":")[0]].program(3, 2)
        text = json.dumps(program.to_json())
        assert not re.search(r"\d\.\d*[,\]]", text)  # no floats
        assert Program.from_json(json.loads(text)) == program


def test_evaluation_in_blocks(monkeypatch) -> None:
    program, X = ZOO["standardise"].program(4, 2), rng(6).random((301, 4, 2))
    whole = program.evaluate(X)
    monkeypatch.setattr("onelayer.problems.targets.program.MOST_HELD", 500)
    assert np.array_equal(program.evaluate(X), whole)
    assert program.evaluate(X[:0]).shape == (0, 4, 2)
    with pytest.raises(DataError, match=r"sequences of shape \[B, 4, 2\]"):
        program.evaluate(X[:, :3])


def test_builders_share_lines_and_fold_constants() -> None:
    b = Builder(2, 1)
    x, y = b.x(0), b.x(1)
    assert x + y == y + x
    assert x - y != y - x
    assert (x * 1 + 0) / 1 - 0 == x
    assert b.value(x - x) == 0
    assert b.value(2 * b.const(3) ** 2 - 1 / b.const(4)) == 17.75
    assert b.value(x**0) == 1
    program = b.program([x * y + 2], "sequence")
    assert program.lines == (("x", 0, 0), ("x", 1, 0), ("const", 2.0), ("mul", 0, 1), ("add", 2, 3))


BAD_PROGRAMS = {
    "a forward reference": ((("add", 0, 1), ("x", 0, 0)), (0,), "sequence"),
    "an unknown operation": ((("x", 0, 0), ("pow", 0, 0)), (1,), "sequence"),
    "a token that is not there": ((("x", 5, 0),), (0,), "sequence"),
    "an infinite constant": ((("const", float("inf")),), (0,), "sequence"),
    "a reference that is true": ((("x", 0, 0), ("abs", False)), (1,), "sequence"),
    "no output for a token": ((("x", 0, 0),), (0,), "token"),
    "an output that is not there": ((("x", 0, 0),), (1,), "sequence"),
    "an unknown scope": ((("x", 0, 0),), (0,), "last"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_bad_programs_are_refused(name: str) -> None:
    lines, outputs, per = BAD_PROGRAMS[name]
    with pytest.raises(OptionError, match="straight-line program"):
        Program(2, 1, lines, outputs, per, 1)


def test_programs_are_as_symmetric_as_their_values() -> None:
    assert resolve(ZOO["softmax"].program(3, 1), n=3, d=1).kind == "equivariant"
    assert resolve(ZOO["max"].program(3, 1), n=3, d=1).kind == "invariant"
    assert resolve(ZOO["reversal"].program(3, 1), n=3, d=1).kind == "ordered"
    with pytest.raises(HypothesisError, match=r"'program' to be equivariant; with the tokens of .* in the order"):
        resolve(ZOO["reversal"].program(3, 1), n=3, d=1, kind="equivariant")
    with pytest.raises(OptionError, match="it is for n=3, d=1"):
        resolve(ZOO["max"].program(3, 1), n=4, d=1)


def test_python_functions() -> None:
    X = rng(8).random((10, 3, 2))
    target = resolve(lambda X: X - X.mean(axis=1, keepdims=True), n=3, d=2, kind="equivariant", lipschitz=2.0)
    assert (target.components, target.per, target.program, target.lipschitz) == (2, "token", None, 2.0)
    assert np.allclose(target.evaluate(X), X - X.mean(axis=1, keepdims=True))
    target = resolve(lambda X: X.max(axis=(1, 2)), n=3, d=2, kind="invariant")
    assert (target.components, target.per, target.lipschitz) == (1, "sequence", None)
    assert target.evaluate(X).shape == (10, 1)
    target = resolve(lambda X: X[:, :, 0], n=3, d=2, kind="equivariant")
    assert target.evaluate(X).shape == (10, 3, 1)
    target = resolve(lambda X: X[:, 0], n=3, d=2, kind="ordered", components=2)
    assert (target.per, target.components) == ("sequence", 2)


def one_sequence(X):
    assert X.ndim == 2, "a matrix, please"
    return X.max(axis=0)


REFUSED = {
    "no kind": (lambda X: X, {}, "Pass kind="),
    "a wrong kind": (lambda X: X, {"kind": "symmetric"}, "a kind among equivariant"),
    "one sequence at a time": (
        one_sequence,
        {"kind": "invariant"},
        r"np.stack\(\[one_sequence\(x\) for x in X\]\)",
    ),
    "a batch taken for a sequence": (
        lambda X: X - X.mean(axis=0),
        {"kind": "equivariant"},
        "other values in a batch than alone",
    ),
    "it raises": (lambda X: X[:, :, 7], {"kind": "ordered"}, "raises IndexError"),
    "a shape that does not fit": (lambda X: X[:3], {"kind": "equivariant"}, "turns shape"),
    "a shape of another kind": (lambda X: X, {"kind": "invariant"}, "Change the kind, or the shape"),
    "not finite": (lambda X: np.where(X > 0.5, np.nan, X), {"kind": "equivariant"}, "finite values on the box"),
    "not finite either": ("sqrt(x - 2)", {}, "finite values on the box"),
    "not equivariant": (lambda X: X[:, ::-1], {"kind": "equivariant"}, "in the order"),
    "not invariant": (lambda X: X[:, 0], {"kind": "invariant"}, 'Use kind="ordered"'),
    "steeper than it says": (lambda X: 3 * X, {"kind": "equivariant", "lipschitz": 2.0}, "Pass at least 3"),
    "a negative constant": (lambda X: 0 * X, {"kind": "equivariant", "lipschitz": -1.0}, "Lipschitz constant"),
    "other components": (lambda X: X, {"kind": "equivariant", "components": 3}, "components=3, it is 1"),
    "a kind that it does not have": ("sort", {"kind": "equivariant"}, "it is 'invariant'"),
    "an empty box": ("sort", {"low": 1.0}, "a box low < high"),
    "a name nearly right": ("standardize", {}, "Did you mean 'standardise'"),
    "a name unknown": ("zzz", {}, "Names: attention, "),
    "a number for a name without": ("sort:3", {}, "no number after 'sort'"),
    "a number that is none": ("polynomial:x", {}, "a whole number from 1 to 9999"),
    "a number too large": ("polynomial:9999", {}, "at most 10,000 lines"),
    "too few tokens": ("gap", {"n": 1}, "at least 2 tokens"),
    "a regressor": (GradientBoostingRegressor(), {}, r"lambda X: model.predict\(X.reshape"),
    "neither": (3.5, {}, "a name, a formula, a program, a network or a Python function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    target, options, message = REFUSED[name]
    with pytest.raises(OnelayerError, match=message):
        resolve(target, **{"n": 3, "d": 1, **options})
