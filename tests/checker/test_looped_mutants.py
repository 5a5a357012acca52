"""Deliberately broken copies of the looped ring: each is noticed, by a claim that it proves or no longer proves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onelayer_checker.looped as ring
from onelayer_checker.core.claims import KINDS, Claim
from tests.checker.looped import ETA, INNER, LAYER, descent, program, weights
from tests.checker.mutants import assert_caught, installed

PARTS = ("polynomials", "programs", "near", "network", "algorithms", "witnesses", "lattice", "judge")
SOURCES = {part: (Path(ring.__path__[0]) / f"{part}.py").read_text() for part in PARTS}
ONE = f"const {(1.0).hex()}"


def said(made: Any, tensors: dict[str, np.ndarray], algorithm: Any, **layer: Any) -> str:
    graph = {"template": "looped/1", "layers": [LAYER | layer]}
    target = made.algorithms.read_algorithm(algorithm, "target")
    claim = Claim("equals", "real", "token", {}, target)
    return str(made.judge.equals(made.judge.LoopJudge(made.network.build(tensors, graph)), claim).outcome)


def signed() -> dict[str, np.ndarray]:
    """Two relu heads whose scores add up to that of one linear head."""
    tensors = {n: np.concatenate([a, a]) if n.startswith("attention") else a for n, a in weights().items()}
    tensors["attention.W_Q"][1] *= -2
    tensors["attention.W_V"][1] *= -0.5
    return tensors


def solving(ridge: float = 0.5, **changes: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Ridge regression of tokens [x0, y, o, flag] by one mesa head; x1 is not looked at."""
    e = np.eye(4)
    tensors = {"attention.W_Q": e[None, :, :1], "attention.W_K": e[None, :, :1], "attention.W_V": e[None, :, 1:2]}
    tensors |= {"attention.W_O": e[None, 2:3], "attention.ridge": np.array([ridge])}
    tensors |= {"readout.0.weight": e[:, 2:3], "readout.0.bias": np.zeros(1)}
    zero = f"const {(0.0).hex()}"
    algorithm = descent(
        x=1,
        m=1,
        steps=1,
        start=[(0.0).hex()],
        gather="solve",
        ridge=[(0.5).hex()],
        term=program(["x 0", "y 0"], 0, 1),
        step=program(["m 0"], 0),
        answer=program(["s 0", "x 0", "mul 0 1"], 2),
        example=program(["s 0", "x 0", "mul 0 1", "y 0", ONE], 1, 3, 2, 4),
        query=program(["s 0", "x 0", "mul 0 1", zero], 1, 3, 2, 3),
    )
    return {n: a.copy() for n, a in tensors.items()}, algorithm | changes


MESA = {"attention": "mesa", "mean": False, "repeat": 1}
SOFTMAX = {"attention": "softmax", "mean": False, "repeat": 1}


def smoothing(**changes: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Averages of y with weights softmax(x q), on the tokens of `solving`."""
    tensors, algorithm = solving()
    del tensors["attention.ridge"]
    more = {"gather": "softmax", "ridge": [], "term": program(["y 0"], 0), "answer": program(["s 0"], 0)}
    more["example"] = program(["s 0", "x 0", "y 0", ONE], 1, 2, 0, 3)
    more["query"] = program(["s 0", "x 0", f"const {(0.0).hex()}"], 1, 2, 0, 2)
    more["logit"] = program(["x 0", "q 0", "mul 0 1", "add 2 1"], 3)  # and what all keys share
    return tensors, algorithm | more | changes


def summing(term: int) -> dict[str, Any]:
    """Sums instead of means; with 1 added to each term and taken off the sum it is another function."""
    lines = [*INNER, "y 0", "sub 7 6", "mul 8 2", "mul 8 3", ONE, "add 9 11", "add 10 11"]
    steps = ["s 0", "s 1", "m 0", "m 1", f"const {ETA.hex()}", ONE, "sub 2 5", "sub 3 5"]
    at = (6, 7) if term == 12 else (2, 3)
    steps += [f"mul {at[0]} 4", f"mul {at[1]} 4", "add 0 8", "add 1 9"]
    return descent(gather="sum", term=program(lines, term, term + 1), step=program(steps, 10, 11))


def wide() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Gradient descent on tokens with a fifth channel that nobody reads, and that holds |x0|."""
    tensors = {}
    for name, a in weights().items():
        axis = {"attention.W_O": 2, "readout.0.weight": 0, "readout.0.bias": None}.get(name, 1)
        tensors[name] = a if axis is None else np.pad(a, [(0, int(i == axis)) for i in range(a.ndim)])
    example = program([*INNER, "y 0", "sub 7 6", ONE, "abs 2"], 2, 3, 8, 9, 10)
    query = program([*INNER, "neg 6", f"const {(0.0).hex()}", "abs 2"], 2, 3, 7, 8, 9)
    return tensors, descent(example=example, query=query)


def right(made: Any) -> None:
    assert said(made, weights(), descent()) == "proved"
    assert said(made, signed(), descent(), attention="relu") == "proved"
    assert said(made, *solving(), **MESA) == "proved"
    assert said(made, *smoothing(), **SOFTMAX) == "proved"
    assert said(made, weights(), summing(9), mean=False) == "proved"


def wrong_weights(made: Any) -> None:
    assert said(made, weights(float(np.nextafter(ETA, 1))), descent()) == "refuted"
    off = signed()
    off["attention.W_V"][1] *= -1
    assert said(made, off, descent(), attention="relu") == "refuted"
    assert said(made, weights(), descent(), attention="relu") == "refuted"
    read = weights()
    read["readout.0.weight"] *= 2
    assert said(made, read, descent()) == "refuted"
    biased = weights() | {"readout.0.bias": np.ones(1)}
    assert said(made, biased, descent()) == "refuted"
    assert said(made, weights(ETA / 2), summing(9), mean=False) == "refuted"
    asked = weights()
    asked["attention.W_Q"][0, 3, 0] = 1.0  # only examples, whose flag is 1, see others with it
    assert said(made, asked, descent()) == "refuted"
    moved = weights()
    moved["attention.W_O"][0, 0, 0] = 1.0  # examples move too, and are keys in the next loop
    assert said(made, moved, descent()) == "refuted"


def wrong_ways_of_looking(made: Any) -> None:
    assert said(made, weights(), descent(steps=2)) != "proved"
    assert said(made, weights(), descent(), causal=True) != "proved"
    assert said(made, weights(), descent(), context=None) != "proved"
    assert said(made, weights(), descent(gather="sum")) != "proved"
    assert said(made, weights(), descent(), mean=False) != "proved"
    added, both = program(["s 0", "m 0", "add 0 1"], 2), program(["s 0", "y 0", "add 0 1"], 2)
    tensors, algorithm = smoothing(steps=2, step=added, term=both)  # a key's value holds its own state
    tensors["attention.W_V"][0, 2] = 1.0
    assert said(made, tensors, algorithm, **SOFTMAX | {"repeat": 2}) != "proved"


def wrong_terms(made: Any) -> None:
    term = program([*INNER, "y 0", "sub 7 6", "mul 8 2", "mul 8 3", "mul 9 9", "mul 10 10"], 9, 10, 11, 12)
    lines = ["s 0", "s 1", "m 0", "m 1", "m 2", "m 3", f"const {ETA.hex()}", "mul 2 6", "mul 3 6", "add 0 7"]
    lines += ["add 1 8", "mul 2 2", "sub 4 11", "add 9 12", "mul 3 3", "sub 5 14", "add 10 15"]
    variance = descent(m=4, term=term, step=program(lines, 13, 16))
    assert said(made, weights(), variance) != "proved"
    assert said(made, weights(), summing(12), mean=False) != "proved"
    assert said(made, *solving(0.25), **MESA) != "proved"
    assert said(made, *solving(term=program(["x 0", "y 0", "add 0 0"], 2, 1)), **MESA) != "proved"
    logit = program(["x 0", "q 0", "mul 0 1", "add 2 0"], 3)  # what differs from key to key
    assert said(made, *smoothing(logit=logit), **SOFTMAX) != "proved"
    assert said(made, *smoothing(term=program(["x 0"], 0)), **SOFTMAX) != "proved"
    drift = ["s 0", "s 1", "m 0", "m 1", f"const {ETA.hex()}", ONE, "mul 2 4", "mul 3 4", "add 0 6", "add 1 7"]
    drifting = descent(gather="sum", step=program([*drift, "add 8 5", "add 9 5"], 10, 11))
    assert said(made, weights(), drifting, mean=False) != "proved"
    twice = program([*INNER, "y 0", "sub 7 6", "sub 8 6", "mul 9 2", "mul 9 3"], 10, 11)  # right in the start state
    assert said(made, weights(), descent(term=twice)) != "proved"
    square = program([*INNER, "mul 2 2", "sub 7 2", "add 6 8"], 9)  # x^2 - x is not 0
    assert said(made, weights(), descent(answer=square)) != "proved"
    later = program([*INNER, "s 0", "mul 7 7", "add 6 8"], 9)  # right at the start only
    assert said(made, weights(), descent(answer=later)) != "proved"


def wrong_starts(made: Any) -> None:
    query = program([*INNER, "neg 6", ONE], 2, 3, 7, 8)
    assert said(made, weights(), descent(query=query)) != "proved"
    flagged = program([*INNER, "y 0", "sub 7 6"], 2, 3, 8, 7)
    assert said(made, weights(), descent(example=flagged)) != "proved"
    assert said(made, *wide()) != "proved"


CHECKS = (right, wrong_weights, wrong_ways_of_looking, wrong_terms, wrong_starts)
MUTANTS = [
    ("polynomials", "sign = common if listed[0][1] > 0 else -common", "sign = common"),
    ("polynomials", "{(self._absolute[key],): common}", "{(self._absolute[key],): 1}"),
    ("polynomials", "(c << shift)", "c"),
    ("polynomials", "terms, self.e + other.e)", "terms, self.e)"),
    ("polynomials", "tuple(sorted(k + l)) if k and l", "tuple(sorted({*k, *l})) if k and l"),
    ("polynomials", "return not u.terms if isinstance(u, Poly)", "return True if isinstance(u, Poly)"),
    ("polynomials", "return (u + abs(u)) * Fraction(1, 2)", "return abs(u)"),
    ("programs", '"sub": operator.sub', '"sub": lambda a, b: b - a'),
    ("network", 'relu(score) if self.kind == "relu" else score', "score"),
    ("network", "update = [a + b for a, b in zip(update, written, strict=True)]", "update = written"),
    ("network", "return total((bias, *(", "return total((0, *("),
    ("network", "h = layer([relu(u) for u in h] if i else h)", "h = layer(h) if i else h"),
    ("algorithms", "if loop.repeat != a.steps:", "if False:"),
    (
        "algorithms",
        '(loop.causal or loop.kind == "softmax") and loop.repeat > 1',
        'loop.kind == "softmax" and loop.repeat > 1',
    ),
    (
        "algorithms",
        '(loop.causal or loop.kind == "softmax") and loop.repeat > 1',
        "loop.causal and loop.repeat > 1",
    ),
    ("algorithms", "loop.context is None and a.query is not None", "False"),
    (
        "algorithms",
        "return panels.unlike(network, a) if alike == a.gather",
        "return panels.unlike(network, a) if True",
    ),
    ("algorithms", "state = v.s if loop.repeat > 1 else list(a.start)", "state = list(a.start)"),
    ("algorithms", '["query"] if last else ["example", "query"]', '["query"]'),
    ("algorithms", 'yield "affine", [p - q - r + t', 'yield "affine", [p - p'),
    ("algorithms", 'yield "step", _apart(asking, nothing)', 'yield "step", [0]'),
    (
        "algorithms",
        'yield "step", [p - q + r for p, q, r in zip(added',
        'yield "step", [p - p for p, q, r in zip(added',
    ),
    ("algorithms", 'yield "step", [p + q - r', 'yield "step", [p - p'),
    ("algorithms", "[head.ridge - r for head", "[r - r for head"),
    ("algorithms", "return [(p - f) - (q - g)", "return [0 * (p - f)"),
    ("algorithms", "return [(p - f) - (q - g)", "return [(p - f)"),
    (
        "algorithms",
        'yield "answer", _apart(network.answer(asked)',
        'yield "answer", [] and _apart(network.answer(asked)',
    ),
    ("algorithms", "asked = a.token(a.asked, v.s, v.X, v.Y)", "asked = a.token(a.asked, list(a.start), v.X, v.Y)"),
    ("judge", '(not fixed or is_zero(flag) == (name == "example"))', "not fixed"),
    ("judge", '(not fixed or is_zero(flag) == (name == "example"))', '(is_zero(flag) == (name == "example"))'),
    ("judge", "isinstance(u, Poly) and not u.is_polynomial", "False"),
    ("judge", "if not why:\n        steps", "if True:\n        steps"),
]


@pytest.fixture(autouse=True)
def _claims_as_they_were() -> Any:
    """A copy of the ring adds its claims; the checker's own come back."""
    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)


def test_the_ring_itself_passes_every_check(monkeypatch) -> None:
    made = installed(monkeypatch, SOURCES, "looped")
    for check in CHECKS:
        check(made)


@pytest.mark.parametrize(
    ("part", "old", "new"), MUTANTS, ids=[f"{i} {part}" for i, (part, *_) in enumerate(MUTANTS)]
)
def test_a_broken_copy_is_noticed(monkeypatch, part: str, old: str, new: str) -> None:
    assert SOURCES[part].count(old) == 1
    sources = SOURCES | {part: SOURCES[part].replace(old, new)}
    assert_caught(CHECKS, installed(monkeypatch, sources, "mutant"), TypeError, ValueError, ZeroDivisionError)
