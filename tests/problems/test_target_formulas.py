"""Formulas as text mean what they say, and what cannot be read is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer import OnelayerError, OptionError
from onelayer.problems.targets import resolve
from onelayer.problems.targets.expression import read_expression
from onelayer.problems.targets.formula import formula

rng = np.random.default_rng(7)


def columns(X):
    """x [B, n, 1] and y [B, 1, n] of tokens of width 1, so that formulas in them are formulas in NumPy."""
    return X[:, :, 0][:, :, None], X[:, :, 0][:, None, :]


#: formula -> the same in NumPy
PER_TOKEN = {
    "x": lambda x, _: x,
    "x[0] + 0 * 3": lambda x, _: x,
    "x - mean(y)": lambda x, y: x - y.mean(-1, keepdims=True),
    "sum(exp(-(x - y)**2))": lambda x, y: np.exp(-((x - y) ** 2)).sum(-1, keepdims=True),
    "max(x, 0.5) - min(x, 0.25)": lambda x, _: np.maximum(x, 0.5) - np.minimum(x, 0.25),
    "max(abs(x - y))": lambda x, y: np.abs(x - y).max(-1, keepdims=True),
    "relu(x - 0.5) / n": lambda x, _: np.maximum(x - 0.5, 0) / 4,
    "hypot(x, 1) * sin(pi * x) + cos(+x)": lambda x, _: np.hypot(x, 1) * np.sin(np.pi * x) + np.cos(x),
    "-x**2 + x**-1 - 2**3": lambda x, _: -(x**2) + 1 / x - 8,
    "x * min(max(y), 0.9)": lambda x, y: x * np.minimum(y.max(-1, keepdims=True), 0.9),
}
PER_SEQUENCE = {
    "max(y) - min(y)": lambda X: np.ptp(X, axis=1),
    "mean(y**2) - mean(y)**2": lambda X: X.var(axis=1),
    "sum(y * max(y))": lambda X: X.sum(axis=1) * X.max(axis=1),
    "sqrt(0.01 + sum(abs(y - mean(y))))": lambda X: np.sqrt(
        0.01 + np.abs(X - X.mean(axis=1, keepdims=True)).sum(axis=1)
    ),
    "3": lambda X: np.full((len(X), 1), 3.0),
}


@pytest.mark.parametrize("text", PER_TOKEN)
def test_formulas_per_token(text: str) -> None:
    X = rng.uniform(0.1, 1, (50, 4, 1))
    target = resolve(text, n=4, d=1, low=0.1, high=1.0)
    assert (target.kind, target.per, target.components, target.name) == ("equivariant", "token", 1, text)
    assert np.allclose(target.evaluate(X), PER_TOKEN[text](*columns(X)), rtol=1e-12)


@pytest.mark.parametrize("text", PER_SEQUENCE)
def test_formulas_per_sequence(text: str) -> None:
    X = rng.uniform(0, 1, (50, 4, 1))
    target = resolve(text, n=4, d=1)
    assert (target.kind, target.per, target.components) == ("invariant", "sequence", 1)
    assert np.allclose(target.evaluate(X), PER_SEQUENCE[text](X), rtol=1e-12)


def test_tokens_by_place_make_it_ordered() -> None:
    X = rng.uniform(0, 1, (20, 3, 1))
    target = resolve("x1 * x2 - x3", n=3, d=1)
    assert (target.kind, target.per) == ("ordered", "sequence")
    assert np.allclose(target.evaluate(X), X[:, 0] * X[:, 1] - X[:, 2])
    target = resolve("x + x1", n=3, d=1)
    assert (target.kind, target.per) == ("ordered", "token")
    assert np.allclose(target.evaluate(X), X + X[:, :1])


def test_several_outputs_and_components() -> None:
    X = rng.uniform(0, 1, (20, 3, 2))
    target = resolve("(x[0] - x[1], mean(y[1]))", n=3, d=2)
    assert (target.components, target.per) == (2, "token")
    mean = np.broadcast_to(X[:, :, 1].mean(axis=1)[:, None], (20, 3))
    assert np.allclose(target.evaluate(X), np.stack([X[:, :, 0] - X[:, :, 1], mean], axis=2))


def test_what_is_the_same_is_written_once() -> None:
    _, once = read_expression("exp(x) + 1", 3, 1)
    _, twice = read_expression("(exp(x) + 1, 1 + exp(x))", 3, 1)
    assert once.lines == twice.lines
    _, nothing = read_expression("0 * 5 + x - 0 + (x - x)", 1, 1)
    assert nothing.lines == (("x", 0, 0),)


#: formula -> (n, d, column, part of the message)
REFUSED = {
    "y": (3, 1, 1, "Write sum(...), mean(...)"),
    "x + y": (3, 1, 5, "y inside an aggregate"),
    "sum(x)": (3, 1, 1, "one argument with a y in it"),
    "1 + sum(sum(y))": (3, 1, 5, "one argument with a y in it"),
    "mean(y, x)": (3, 1, 1, "one argument with a y in it"),
    "x[1]": (3, 1, 3, "a component from 0 to 0"),
    "x[-1]": (3, 1, 3, "a component from 0 to 0"),
    "x[True]": (3, 2, 3, "a component from 0 to 1"),
    "2 * x4": (3, 1, 5, "x1 to x3"),
    "x + (-2)**x": (3, 1, 5, "finite numbers"),
    "x**2000": (3, 1, 4, "a whole power"),
    "x + 1/0": (3, 1, 5, "finite numbers"),
    "x + 1e400": (3, 1, 5, "finite numbers"),
    "x + " + "1" + "0" * 400: (3, 1, 5, "finite numbers"),
    "x + sqrt(-1)": (3, 1, 5, "finite numbers"),
    "x +": (3, 1, None, "mistake"),
    "x[0": (3, 1, 2, "mistake"),
    "tan(x)": (3, 1, 1, "functions that it knows"),
    "x + sign(x)": (3, 1, 5, "continuous functions"),
    "floor(3*x)": (3, 1, 1, "continuous functions"),
    "argmax(y)": (3, 1, 1, "continuous functions"),
    "x + z": (3, 1, 5, "names that it knows"),
    "sin(x, x)": (3, 1, 1, "arguments for sin: 1"),
    "max() + x": (3, 1, 1, "arguments for max: one or more"),
    "max(x, key=x)": (3, 1, 1, "language of formulas"),
    "x if x else 1": (3, 1, 1, "continuous functions"),
    "1 + (x > 0.5)": (3, 1, 6, "continuous functions"),
    "x // 2": (3, 1, 1, "max, min, clip or relu"),
    "x and x": (3, 1, 1, "continuous functions"),
    "x + where(x > 0, x, 0)": (3, 1, 5, "max, min, clip or relu"),
    "x - median(y)": (3, 1, 5, "pass 'median' alone"),
    "": (3, 1, None, "it is empty"),
    " ": (3, 1, None, "it is empty"),
    "x²": (3, 1, 2, "invalid character"),
    "[x]": (3, 1, 1, "language of formulas"),
    "(lambda: x)": (3, 1, 2, "language of formulas"),
    "x.real": (3, 1, 1, "language of formulas"),
    "1 + 'a'": (3, 1, 5, "language of formulas"),
    "1 + True": (3, 1, 5, "language of formulas"),
    "x + 1j": (3, 1, 5, "language of formulas"),
    "x % 2": (3, 1, 1, "continuous functions"),
    "().__class__": (3, 1, 1, "language of formulas"),
    "x + (x, x)": (3, 1, 5, "several outputs"),
    "()": (3, 1, 1, "at least one output"),
    "é + x": (3, 1, 1, "names that it knows"),
    "(x - 1) + é": (3, 1, 11, "names that it knows"),
    "-" * 5000 + "x": (3, 1, None, "a formula that can be read"),
    "x" * 10_001 + " + 1": (3, 1, None, "10,000"),
    "+".join(["sin(x)"] * 600): (3, 1, 1, "nested"),
    "x1 + sum(sin(x * y))": (80, 1, None, "at most 10,000 lines"),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_refusals_name_the_place(text: str) -> None:
    n, d, column, message = REFUSED[text]
    with pytest.raises(OptionError) as refused:
        resolve(text, n=n, d=d)
    assert message in str(refused.value)
    assert column is None or f"at column {column}" in str(refused.value)


WORDS = ["x", "y", "x1", "x2", "n", "1", "0.5", "+", "-", "*", "/", "**", "(", ")", ",", "sum(", "max(", "mean("]
WORDS += ["abs(", "sqrt(", "x[0]", "import", "__", ".", "[", "]", ":"]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_text_is_read_or_refused(words: list[str]) -> None:
    try:
        kind, program = read_expression(" ".join(words), 2, 1)
    except OnelayerError:
        return
    assert kind in ("equivariant", "invariant", "ordered")
    assert program.evaluate(np.ones((1, 2, 1))).size == len(program.outputs)


@pytest.mark.parametrize(
    "text", [*PER_TOKEN, *PER_SEQUENCE, "x1 - (x2 - x3)", "x1/(x2/x4)", "(-2)**2 - (-x1)**2", "-(x1*x2)"]
)
def test_a_program_written_as_a_formula_is_the_same_function(text) -> None:
    _, program = read_expression(text, 4, 1)
    X = rng.uniform(0.1, 1, (20, 4, 1))
    values = program.evaluate(X).reshape(20, -1)
    for k, output in enumerate(program.outputs):
        written = formula(program.lines, 1, output, 10_000)
        again = resolve(written, n=4, d=1, low=0.1).evaluate(X).reshape(20, -1)[:, 0] if "x" in written else None
        np.testing.assert_allclose(float(written) if again is None else again, values[:, k], rtol=1e-12)


def test_a_long_formula_is_not_written() -> None:
    _, program = read_expression("sum(exp(y))", 30, 1)
    assert formula(program.lines, 1, program.outputs[0], 80) is None
    _, pair = read_expression("x1[0]*x2[1]", 2, 2)
    assert formula(pair.lines, 2, pair.outputs[0], 80) == "x1[0]*x2[1]"


SHORT = {
    "sigmoid(x)": (1, "1/(1 + exp(-x))"),
    "clip(3*x, 0.2, mean(y))": (1, "min(max(3*x, 0.2), mean(y))"),
    "var(x*y)": (1, "mean((x*y)**2) - mean(x*y)**2"),
    "std(y)": (1, "sqrt(mean((y - mean(y))**2))"),
    "softmax(2*x*y, y)": (1, "sum(exp(2*x*y)*y)/sum(exp(2*x*y))"),
    "mean(dot(x, y))": (2, "x[0]*mean(y[0]) + x[1]*mean(y[1])"),
    "norm(x - mean(y))": (2, "hypot(x[0] - mean(y[0]), x[1] - mean(y[1]))"),
    "mean(norm(x - y)**2)": (2, "mean((x[0] - y[0])**2 + (x[1] - y[1])**2)"),
    "x - mean(y)": (2, "(x[0] - mean(y[0]), x[1] - mean(y[1]))"),
    "softmax(dot(x, y), y)": (2, "(softmax(dot(x, y), y[0]), softmax(dot(x, y), y[1]))"),
    "(x + 0.1)**0.5": (1, "sqrt(x + 0.1)"),
    "(x + 0.1)**-1.5": (1, "1/((x + 0.1)*sqrt(x + 0.1))"),
    "(x + 0.1)**0.3": (1, "exp(0.3*log(x + 0.1))"),
    "(x + 0.1)**(1/2)": (1, "sqrt(x + 0.1)"),
    "(x + 0.1)**(-1/3)": (1, "exp(log(x + 0.1)/(-3))"),
    "(x + 0.1)**mean(y)": (1, "exp(mean(y)*log(x + 0.1))"),
    "2**x + 3**mean(y)": (1, "exp(x*log(2)) + exp(mean(y)*log(3))"),
    "e**2 * x": (1, "exp(2)*x"),
    "e**-x": (1, "exp(-x)"),
}


@pytest.mark.parametrize("text", SHORT)
def test_shorthand_means_what_it_stands_for(text: str) -> None:
    d, written = SHORT[text]
    first, second = (resolve(which, n=3, d=d) for which in (text, written))
    X = np.random.default_rng(0).uniform(0, 1, (20, 3, d))
    for target in (first, second):
        assert target.pooled is not None
        np.testing.assert_allclose(target.evaluate(X), target.pooled.evaluate(X), atol=1e-12)
    np.testing.assert_allclose(first.evaluate(X), second.evaluate(X), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "column"), [("clip(x)", 1), ("1 + dot(x)", 5), ("x*softmax(x*y)", 3), ("x + var(x)", 9), ("x**z", 4)]
)
def test_refusals_of_shorthand_point_at_the_character(text: str, column: int) -> None:
    with pytest.raises(OptionError, match=f"at column {column} of"):
        resolve(text, n=2, d=1)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("x + foo(y)", "foo(y)"),
        ("x + mean(y", "("),
        ("mean(y) + z*2", "z"),
        ("x - y", "y"),
        ("a*x", "a"),
        ("2*std(x)", "x"),
        ("softmax(x, y) + x", "x"),
        ("(x +\n x +* 3)", "*"),
        ("x + " * 40 + "bad(x)", "bad(x)"),
    ],
)
def test_a_mark_stands_under_the_character(text: str, marked: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_expression(text, 2, 1)
    *_, line, mark = str(refused.value).split("\n")
    assert line.strip() in text
    at = mark.index("^")
    assert line[at : at + mark.count("^")] == marked
    assert len(line) <= 102
