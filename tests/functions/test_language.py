"""Every word of the language of formulas is compiled, proved and kept, and a mistake in it has a mark below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onelayer import OptionError, approximate
from onelayer.problems.targets.expression import LANGUAGE, read_expression

Array = NDArray[Any]
TOLERANCE, N = 0.05, 3


def mean(x: Array) -> Array:
    return x.mean(axis=1, keepdims=True)


def attend(x: Array, logits: Array) -> Array:
    """Averages over tokens with weights softmax(logits [B, n, n])."""
    weights = np.exp(logits)
    return weights @ x / weights.sum(axis=2, keepdims=True)


#: word -> (formula, width of a token, options, the same in NumPy over tokens x [B, n, d], the same with a mistake,
#: what is marked in it)
WORDS: dict[str, tuple[str, int, dict[str, Any], Callable[[Array], Array], str, str]] = {
    "log": ("log(0.5 + mean(y))", 1, {}, lambda x: np.log(0.5 + x.mean(axis=1)), "1 + log(x, 2)", "log(x, 2)"),
    "tanh": ("tanh(x - mean(y))", 1, {}, lambda x: np.tanh(x - mean(x)), "x + tanh()", "tanh()"),
    "sigmoid": (
        "sigmoid(4*x - 2)",
        1,
        {},
        lambda x: 1 / (1 + np.exp(2 - 4 * x)),
        "x*sigmoid(4, x)",
        "sigmoid(4, x)",
    ),
    "softmax": (
        "softmax(2*x*y, y)",
        1,
        {},
        lambda x: attend(x, 2 * x * x.transpose(0, 2, 1)),
        "softmax(2*x, y)",
        "2*x",
    ),
    "std": ("std(y)", 1, {}, lambda x: x.std(axis=1), "std(x)", "x"),
    "var": ("var(y)", 1, {}, lambda x: x.var(axis=1), "x - var(mean(y))", "mean(y)"),
    "dot": (
        "dot(x, mean(y))",
        2,
        {},
        lambda x: (x * mean(x)).sum(axis=2, keepdims=True),
        "1 + dot(x, y)",
        "y",
    ),
    "norm": (
        "norm(x - mean(y))",
        2,
        {},
        lambda x: np.linalg.norm(x - mean(x), axis=2, keepdims=True),
        "x[0] + norm(x, x)",
        "norm(x, x)",
    ),
    "clip": (
        "clip(2*x, 0.2, mean(y))",
        1,
        {},
        lambda x: np.minimum(np.maximum(2 * x, 0.2), mean(x)),
        "x*clip(x, 1)",
        "clip(x, 1)",
    ),
    "x**0.5": ("x**0.5", 1, {}, np.sqrt, "x**0.5.5", "."),
    "x**3": ("x**3", 1, {}, lambda x: x**3, "x ^ 3", "x ^ 3"),
    "2**x": ("2**x", 1, {}, lambda x: 2**x, "x + (-2)**x", "(-2)**x"),
    "pi": ("sin(pi*x)", 1, {}, lambda x: np.sin(np.pi * x), "sin(Pi*x)", "Pi"),
    "e": ("e**-mean(y)", 1, {}, lambda x: np.exp(-x.mean(axis=1)), "x*E", "E"),
    "vectors of 2": (
        "softmax(dot(x, y), y)",
        2,
        {},
        lambda x: attend(x, x @ x.transpose(0, 2, 1)),
        "softmax(dot(x, y), y[2])",
        "2",
    ),
    "vectors of 3": ("x - mean(y)", 3, {}, lambda x: x - mean(x), "x[0] - mean(y)[0]", "mean(y)[0]"),
    "several outputs": (
        "x**2, mean(y), max(y)",
        1,
        {},
        lambda x: np.concatenate([x**2, 0 * x + mean(x), 0 * x + x.max(axis=1, keepdims=True)], axis=2),
        "x, (x, mean(y))",
        "(x, mean(y))",
    ),
    "a box per component": (
        "x[0]*mean(y[1])",
        2,
        {"low": [0, -1], "high": [2, 0.5]},
        lambda x: x[:, :, :1] * mean(x[:, :, 1:]),
        "x[0]*y[1]",
        "y[1]",
    ),
    "relative tolerance": ("100*x**2", 1, {"relative": True}, lambda x: 100 * x**2, "100x**2", "0"),
}


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_compiled_and_proved_and_kept(word: str) -> None:
    text, d, options, wanted, *_ = WORDS[word]
    model = approximate(text, n=N, d=d, tolerance=TOLERANCE, **options)
    function: Any = model.interface
    assert (model.proved, function.construction) == (True, "formula")
    assert model.error_bound <= TOLERANCE * (100 if "relative" in options else 1)
    X = function.box.draw(np.random.default_rng(1), 1000)
    found = np.abs(model.predict(X).astype(np.float64) - wanted(X.astype(np.float64)))
    assert found.max() <= model.error_bound


@pytest.mark.parametrize("word", WORDS)
def test_a_mistake_in_every_word_has_a_mark_below_it(word: str) -> None:
    *_, mistaken, marked = WORDS[word]
    with pytest.raises(OptionError) as refused:
        read_expression(mistaken, N, WORDS[word][1])
    line, mark = str(refused.value).split("\n")[-2:]
    at = mark.index("^")
    assert line[at : at + mark.count("^")] == marked


def test_what_a_refusal_lists_is_tested() -> None:
    elsewhere = "x y inside sum mean max min logits values x1 x2 n numbers abs sqrt exp sin cos relu hypot It has"
    listed = LANGUAGE.replace("(", " ").replace(")", " ").replace(",", " ").replace(".", " ").split()
    named = {word for word in listed if word.isalnum()} - set(elsewhere.split())
    assert named <= set(WORDS)
