"""Claims about formulas: honest ones are proved, forged ones are not, and what they rest on agrees with numbers."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from attacks.bundle import Bundle, read
from attacks.forged_formulas import HEAD, X, about, endless_formulas, false_formulas, make_bundle, of_formula, one
from onelayer import approximate
from onelayer_checker import check
from onelayer_checker.functions import jets
from onelayer_checker.functions.formulas import BINARY, UNARY, Meaning, Undefined, read_formula

TEXT = "x*exp(-mean((x-y)**2))"


@cache
def honest() -> Bundle:
    model = approximate(TEXT, n=3, tolerance=0.05, construction="formula")
    with tempfile.TemporaryDirectory() as folder:
        return read(model.save(Path(folder) / "bundle"))


def test_the_honest_bundle_is_verified() -> None:
    assert check(honest().files()).result == "VERIFIED"


@pytest.mark.parametrize(
    ("text", "d"),
    [("softmax(dot(x, y), y)", 2), ("softmax(-2*norm(x - y)**2, y[0]*y[1])", 2), ("max(sin(3*y)) - x", 1)],
)
def test_other_honest_bundles_are_verified(text: str, d: int, tmp_path: Path) -> None:
    model = approximate(text, n=3, d=d, tolerance=0.05, construction="formula", dtype="float64")
    assert check(read(model.save(tmp_path / "bundle")).files()).result == "VERIFIED"


@pytest.mark.parametrize("forgery", list(of_formula(honest())), ids=lambda forgery: forgery.name)
def test_forgeries_are_refused(forgery) -> None:
    forged = honest().copy()
    forgery.change(forged)
    report = check(forged.files())
    assert (report.result, report.gate) == (forgery.result, forgery.gate), report


@pytest.mark.parametrize("example", list(false_formulas()), ids=lambda example: example.name)
def test_false_claims_are_not_proved(example) -> None:
    assert check(example.bundle.files()).result == "UNKNOWN"


@pytest.mark.parametrize("example", list(endless_formulas()), ids=lambda example: example.name)
def test_claims_without_end_are_ended(example) -> None:
    assert check(example.bundle.files()).result in ("UNKNOWN", "MALFORMED")


@pytest.mark.parametrize(
    ("bound", "lines", "stages", "head"),
    [
        (0.255, [X, ["mul", 0, 0]], [[0], [0]], {}),
        (1e-9, [X, ["y", 0], ["mean", 1], ["add", 0, 2]], [[3], [3]], HEAD),
        (1e-9, [X, ["y", 0], ["mean", 0], ["mean", 1], ["add", 2, 3]], [[4], [4]], HEAD),
        (0.18, [X, ["y", 0], ["largest", 1], ["add", 0, 2]], [[3], [3]], HEAD | {"W_K": [[[8]]], "b_Q": [[1]]}),
    ],
)
def test_the_same_networks_with_true_claims_are_proved(bound, lines, stages, head) -> None:
    layers = [([[1]], [0]), ([[1]], [0])]
    assert (
        check(make_bundle("float64", layers, about("real", bound, lines, stages), **head).files()).result
        == "VERIFIED"
    )


def meaning(lines: list[list[object]], box: tuple[float, float] = (0.25, 2.0)) -> Meaning:
    ends = [[float(end).hex() for end in box]] * 2
    entry = {
        "d": 2,
        "tokens": 3,
        "per": "token",
        "box": ends,
        "lines": lines,
        "outputs": [0],
        "meant": [0],
        "planned": [0],
    }
    return Meaning(read_formula(entry | {"stages": []}, "target"))


def values(m: Meaning, tokens: np.ndarray) -> list[np.ndarray]:
    """Lines at sequences [B, n, 2], [B, n, n]."""
    ops = {"neg": np.negative, "relu": lambda a: np.maximum(a, 0), "add": np.add, "sub": np.subtract}
    ops |= {"mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum}
    found: list[np.ndarray] = []
    for op, *of in m.formula.lines:
        if op in ("x", "y"):
            t = tokens[:, :, None, of[0]] if op == "x" else tokens[:, None, :, of[0]]
        elif op == "const":
            t = np.full((1, 1, 1), float(of[0]))
        elif op == "mean":
            t = found[of[0]].mean(axis=2, keepdims=True)
        else:
            t = ops.get(op, getattr(np, op, None))(*(found[i] for i in of))
        found.append(np.broadcast_to(t, (len(tokens), *2 * (tokens.shape[1],))))
    return found


def at_numbers(m: Meaning, p: dict, tokens: np.ndarray) -> np.ndarray:
    """A polynomial of the algebra at the same places."""
    shape = len(tokens), *2 * (tokens.shape[1],)

    def atom(k: int) -> np.ndarray:
        name, *rest = m.algebra.atoms[k]
        if name in ("x", "y"):
            t = tokens[:, :, None, rest[0]] if name == "x" else tokens[:, None, :, rest[0]]
        elif name == "average":
            w = np.exp(at_numbers(m, dict(rest[0]), tokens))
            v = at_numbers(m, {rest[1]: Fraction(1)}, tokens)
            t = (w * v).sum(axis=2, keepdims=True) / w.sum(axis=2, keepdims=True)
        else:
            inner = at_numbers(m, dict(rest[0]), tokens)
            t = (
                1 / inner
                if name == "recip"
                else np.maximum(inner, 0)
                if name == "relu"
                else getattr(np, name)(inner)
            )
        return np.broadcast_to(t, shape)

    total = np.zeros(shape)
    for monomial, c in p.items():
        total = total + float(c) * np.prod([atom(k) ** power for k, power in monomial] or [np.ones(shape)], axis=0)
    return total


def random_lines(rng: np.random.Generator) -> list[list[object]]:
    lines: list[list[object]] = [["x", 0], ["y", 0], ["y", 1], one(float(rng.integers(-8, 9)) / 4), ["x", 1]]
    for _ in range(12):
        op = str(rng.choice(["neg", "abs", "exp", "sin", "tanh", "mean", "mean", *BINARY, "mul", "div", "relu"]))
        of = rng.integers(0, len(lines), 2 if op in BINARY else 1)
        lines.append([op, *map(int, of)])
    return lines


def test_polynomials_and_ranges_agree_with_numbers() -> None:
    """Random formulas: each line equals its polynomial at random tokens, and lies in its range."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(150):
        lines = random_lines(rng)
        while True:
            try:
                with np.errstate(all="ignore"):
                    m = meaning(lines)
                break
            except Undefined:
                lines = lines[:-1]
        tokens = rng.uniform(0.25, 2.0, (4, 3, 2))
        for k, value in enumerate(values(m, tokens)):
            scale = 1 + np.abs(value).max()
            if scale < 1e8:
                wanted = at_numbers(m, m.normal(k), tokens)
                np.testing.assert_allclose(wanted, value, rtol=1e-6, atol=1e-6 * scale)
                low, high = m.ranges[k]
                assert (value >= low - 1e-9 * scale).all()
                assert (value <= high + 1e-9 * scale).all()
                seen += 1
    assert seen > 1000


def test_jets_contain_values_and_derivatives() -> None:
    rng, step = np.random.default_rng(1), 1e-4
    for op in (*UNARY, *BINARY, "recip"):
        for _ in range(20):
            a, b, c, d = rng.uniform(0.3, 1.5, 4)
            low, width = rng.uniform(0.3, 1.0), rng.choice([0.0, 1e-3, 0.3])

            def jet(s: tuple[np.ndarray, np.ndarray], op=op, a=a, b=b, c=c, d=d) -> jets.Jet:
                first, second = (
                    jets.of_two(
                        "add",
                        jets.of_two("mul", jets.Jet((np.full(1, k),) * 2), jets.Jet(s, jets.ONE), False),
                        jets.Jet((np.full(1, e),) * 2),
                        False,
                    )
                    for k, e in ((a, b), (c, d))
                )
                return jets.of_two(op, first, second, False) if op in BINARY else jets.of_one(op, first)

            def f(s: np.ndarray, op=op, a=a, b=b, c=c, d=d) -> np.ndarray:
                u, v = a * s + b, c * s + d
                plain = {"neg": -u, "relu": np.maximum(u, 0), "recip": 1 / u, "add": u + v, "sub": u - v}
                plain |= {"mul": u * v, "div": u / v, "min": np.minimum(u, v), "max": np.maximum(u, v)}
                return plain[op] if op in plain else getattr(np, op)(u, v) if op in BINARY else getattr(np, op)(u)

            found = jet((np.full(1, low), np.full(1, low + width)))
            s = np.linspace(low, low + width, 9)
            for name, wanted, slack in (
                ("value", f(s), 1e-12),
                ("slope", (f(s + step) - f(s - step)) / (2 * step), 1e-5),
                ("bend", (f(s + step) - 2 * f(s) + f(s - step)) / step**2, 1e-3),
            ):
                below, above = getattr(found, name)
                size = slack * (1 + np.abs(wanted))
                smooth = op not in ("min", "max") or name == "value"
                assert not smooth or ((wanted >= below - size) & (wanted <= above + size)).all(), (op, name)
