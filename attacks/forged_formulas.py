"""Forgeries of bundles that claim something about a formula, and networks by hand that look like one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attacks.bundle import Bundle
from attacks.counterexamples import Counterexample, Tensors, bundle
from attacks.forged_functions import Change, causal, claims, times, weight
from attacks.forgeries import Forgery

Target = dict[str, Any]


def edit_target(change: Any) -> Change:
    """Edits the target of every claim."""
    return claims(lambda claim: change(claim["target"]))


def _refused_forgery(name: str, why: str, change: Change, result: str = "UNKNOWN", gate: str = "") -> Forgery:
    return Forgery(name, why, result, gate, change)


def _put(target: Target, field: str, at: int, value: Any) -> None:
    target[field][at] = value


def _opposite(target: Target) -> None:
    """The other sign in the first difference that the target itself makes."""
    at = next(k for k, line in enumerate(target["lines"]) if line[0] == "sub")
    target["lines"][at] = ["add", *target["lines"][at][1:]]


def _other_lines(target: Target, stage: list[int]) -> None:
    """The same lines for other numbers; where there is one, that of an output."""
    stage[:] = stage[::-1] if len(stage) > 1 else target["planned"]


def _bias(name: str, by: float) -> Change:
    return weight(name, lambda a: a.__setitem__(len(a) // 2, a[len(a) // 2] + by))


def of_formula(base: Bundle) -> Iterator[Forgery]:
    """Of x exp(-mean((x - y)^2)), whose plan has squares before attention and in the readout."""
    target = base.certificate["claims"][0]["target"]
    last = len(target["stages"]) - 1
    yield _refused_forgery("tighter", "nothing says that the error is that small", times("bound", 0.9))
    yield _refused_forgery("one sign", "the weights compute another function", edit_target(_opposite))
    yield _refused_forgery(
        "wider box", "blocks end where the range did", edit_target(lambda t: _put(t, "box", 0, _box(-1, 2)))
    )
    yield _refused_forgery(
        "moved box", "blocks lie elsewhere", edit_target(lambda t: _put(t, "box", 0, _box(1, 2)))
    )
    for i, name in enumerate(sorted(n for n in base.model if n.endswith("bias") and base.model[n].size > 3)):
        yield _refused_forgery(f"corner {i}", "a corner is elsewhere", _bias(name, 0.25))
    for name in sorted(base.model):
        if np.abs(base.model[name]).max() > 0:
            yield _refused_forgery(f"{name} changed", "the largest weight counts", weight(name, _larger))
    yield _refused_forgery(
        "planned", "the plan is another function", edit_target(lambda t: _put(t, "planned", 0, 0))
    )
    yield _refused_forgery(
        "both planned",
        "outputs and plan agree, the weights do not",
        edit_target(lambda t: (_put(t, "planned", 0, 0), _put(t, "meant", 0, 0), _put(t, "outputs", 0, 0))),
    )
    yield _refused_forgery(
        "meant otherwise",
        "what is meant and planned is far from the output",
        edit_target(lambda t: (_put(t, "planned", 0, 0), _put(t, "meant", 0, 0))),
    )
    yield _refused_forgery(
        "another output", "the output is far from what is meant", edit_target(lambda t: _put(t, "outputs", 0, 0))
    )
    for i in range(last + 1):
        yield _refused_forgery(
            f"stage {i}",
            "numbers stand for other lines",
            edit_target(lambda t, i=i: _other_lines(t, t["stages"][i])),
        )
        yield _refused_forgery(
            f"no stage {i}", "a layer has no lines", edit_target(lambda t, i=i: t["stages"].pop(i))
        )
    yield _refused_forgery("short stage", "a number has no line", edit_target(lambda t: t["stages"][last].pop()))
    yield _refused_forgery("sequence", "it depends on x", _per_sequence, "UNKNOWN")
    yield _refused_forgery("causal", "averages end at the token", causal, "MALFORMED", "claim")
    for name, value in (("d", 2), ("tokens", 0), ("tokens", True), ("box", []), ("per", "last"), ("stages", 3)):
        yield _refused_forgery(
            f"{name} {value}",
            "no such formula",
            edit_target(lambda t, n=name, v=value: t.update({n: v})),
            "MALFORMED",
            "claim",
        )
    for name, line in (
        ("itself", ["neg", len(target["lines"])]),
        ("no operation", ["tan", 0]),
        ("no component", ["x", 1]),
        ("over zero", ["ratio", 1, 0]),
        ("too few", ["add", 0]),
    ):
        yield _refused_forgery(
            name, "no such line", edit_target(lambda t, v=line: t["lines"].append(v)), "MALFORMED", "claim"
        )


def _per_sequence(b: Bundle) -> None:
    claims(lambda claim: (claim.update(scope="sequence"), claim["target"].update(per="sequence")))(b)
    assert b.names is not None
    b.names["scope"] = "sequence"
    b.data["answers"] = b.data["answers"][: len(b.data["tokens"])]


def _larger(a: np.ndarray) -> None:
    at = np.unravel_index(int(np.abs(a).argmax()), a.shape)
    a[at] *= 1.25


def _box(low: float, high: float) -> list[str]:
    return [float(low).hex(), float(high).hex()]


def about(arith: str, bound: float, lines: list[list[Any]], stages: list[list[int]], **more: Any) -> dict[str, Any]:
    """A claim about the last line, per token, of sequences of up to 4 tokens in [0, 1]."""
    k = len(lines) - 1
    target = {"d": 1, "tokens": 4, "per": "token", "box": [_box(0, 1)], "lines": lines, "outputs": [k]}
    target |= {"meant": [k], "planned": [k], "stages": stages} | more
    return {
        "type": "formula_error",
        "arith": arith,
        "scope": "token",
        "bound": float(bound).hex(),
        "target": target,
    }


def one(value: float) -> list[Any]:
    return ["const", float(value).hex()]


X: list[Any] = ["x", 0]


def make_bundle(dtype: str, layers: list[tuple[Any, Any]], claim: dict[str, Any], **more: Any) -> Bundle:
    model: Tensors = {f"readout.{i}.weight": W for i, (W, _) in enumerate(layers)}
    model |= {f"readout.{i}.bias": b for i, (_, b) in enumerate(layers)}
    model |= {f"attention.{name}": a for name, a in more.items()}
    return bundle(dtype, model, [[[0.5]]], [0.0], claim)


HEAD = {"W_Q": [[[0]]], "W_K": [[[0]]], "W_V": [[[1]]], "W_O": [[[1]]]}


def faint_averages() -> Counterexample:
    """A second difference of averages, 2^390 times, whose error is a product of numbers of which one underflows: at
    three tokens with y_0 = 0, 0, 2^-370 and y_2 = 0, 0, 2^500 the network answers 4.85, and the target is 0.11."""
    s, w, faint = 2.0**-170, 2.0**390, (2.0**-171, 2.0**-157)
    terms = [(s, w), (2 * s, -2 * w), (3 * s, w), faint, (-faint[0], -faint[1])]
    lines: list[list[Any]] = [["x", 0], ["x", 1], ["x", 2], ["x", 3], ["y", 0], ["y", 1], ["y", 2]]

    def put(*line: Any) -> int:
        lines.append(list(line))
        return len(lines) - 1

    v = put("add", 5, put("mul", put(*one(2.0**196)), 6))
    means = put("mul", put("mean", 4), put("mean", v))
    covariance = put("sub", put("mean", put("mul", 4, v)), means)
    target = put("add", 3, put("mul", put(*one(2 * faint[0] * faint[1])), covariance))
    parts = [
        put("mul", put(*one(weight / 2.0**70)), put("average", put("mul", put(*one(tilt)), 4), v))
        for tilt, weight in terms
    ]
    plan = parts[0]
    for part in parts[1:]:
        plan = put("add", plan, part)
    plan = put("add", 3, put("mul", put(*one(2.0**70)), plan))  # so late that no line overflows
    heads = np.zeros((4, len(terms), 4))  # of queries, keys, values and outputs
    heads[1, :, 0], heads[3, :, 3] = np.array(terms).T
    heads[2, :, 1], heads[2, :, 2] = 1, 2.0**196
    model: Tensors = {f"attention.W_{name}": W[:, :, None] for name, W in zip("QKV", heads, strict=False)}
    model |= {"attention.W_O": heads[3][:, None], "attention.b_Q": np.ones((len(terms), 1))}
    model |= {"readout.0.weight": np.array([[0, 0], [0, 0], [0, 0], [1, -1]], float), "readout.0.bias": np.zeros(2)}
    model |= {"readout.1.weight": np.array([[1.0], [-1.0]]), "readout.1.bias": np.zeros(1)}
    box = [_box(0, 2.0**-370), _box(0, 1), _box(0, 2.0**500), _box(0, 1)]
    named = {"outputs": [target], "meant": [plan], "planned": [plan]}
    claim = about("real", 1e-9, lines, [[0, 1, 2, plan], [plan]], d=4, box=box, **named)
    made = bundle("float64", model, [[[0.0] * 4]], [0.0], claim)
    return Counterexample("averages whose error underflows", "faint powers times huge weights are not 0", made)


def false_formulas() -> Iterator[Counterexample]:
    """Each claim is false, or true of another arithmetic."""
    yield faint_averages()
    square = [X, ["mul", 0, 0]]
    chord = [([[1]], [0]), ([[1]], [0])]
    yield Counterexample(
        "between corners",
        "x^2 and its chord x agree at 0 and at 1, and are 1/4 apart between",
        make_bundle("float64", chord, about("real", 0.24, square, [[0], [0]])),
    )
    yield Counterexample(
        "a kink between corners",
        "|x - 1/2| and the constant 1/2 agree at both ends",
        make_bundle(
            "float64",
            [([[0]], [1]), ([[0.5]], [0])],
            about("real", 0.4, [X, one(0.5), ["sub", 0, 1], ["abs", 2]], [[0], [1]]),
        ),
    )
    tiny = [([[1]], [0]), ([[2.0**-130]], [0]), ([[2.0**126]], [0])]
    yield Counterexample(
        "subnormal slope",
        "2^-130 may be flushed to 0: then x/16 is answered with 0",
        make_bundle("float32", tiny, about("float32", 0.05, [X, one(1 / 16), ["mul", 0, 1]], [[0], [0], [0]])),
    )
    yield Counterexample(
        "a pole that cancels",
        "x/x has no value at 0",
        make_bundle("float64", [([[0]], [1]), ([[1]], [0])], about("real", 0.1, [X, ["div", 0, 0]], [[0], [1]])),
    )
    yield Counterexample(
        "a root of what may be negative",
        "sqrt(x - 1/2)^2 has no value below 1/2",
        make_bundle(
            "float64",
            [([[1]], [0]), ([[1]], [-0.5])],
            about("real", 0.1, [X, one(0.5), ["sub", 0, 1], ["sqrt", 2], ["mul", 3, 3]], [[0], [2]]),
        ),
    )
    mean = [X, ["y", 0], ["mean", 1], ["add", 0, 2]]
    yield Counterexample(
        "a mean that is not read",
        "x + mean(y) is not x + mean(y)/2",
        make_bundle(
            "float64",
            [([[1]], [0]), ([[1]], [0])],
            about("real", 0.4, mean, [[3], [3]]),
            **HEAD | {"W_V": [[[0.5]]]},
        ),
    )
    yield Counterexample(
        "a free y",
        "y is no token of which anybody spoke",
        make_bundle("float64", chord, about("real", 2.0, [X, ["y", 0]], [[0], [0]])),
    )
    largest = [X, ["y", 0], ["largest", 1], ["add", 0, 2]]
    yield Counterexample(
        "not sharp enough",
        "with logits 8 y the average of 4 tokens may be more than 1/20 below the largest",
        make_bundle(
            "float64",
            [([[1]], [0]), ([[1]], [0])],
            about("real", 0.05, largest, [[3], [3]]),
            **HEAD | {"W_K": [[[8]]], "b_Q": [[1]]},
        ),
    )
    yield Counterexample(
        "the smallest",
        "with logits -1000 y it is the smallest",
        make_bundle(
            "float64",
            [([[1]], [0]), ([[1]], [0])],
            about("real", 0.5, largest, [[3], [3]]),
            **HEAD | {"W_K": [[[-1000]]], "b_Q": [[1]]},
        ),
    )
    many = about("float32", 1e-6, mean, [[3], [3]])
    many["target"]["tokens"] = 1 << 16
    yield Counterexample(
        "many tokens",
        "65,536 terms, each rounded as often as that, are further off than 1e-6",
        make_bundle("float32", [([[1]], [0]), ([[1]], [0])], many, **HEAD),
    )
    large = about("float32", 2.0**122, mean, [[3], [3]], box=[_box(0, 2.0**122)])
    large["target"]["tokens"] = 1 << 10
    yield Counterexample(
        "sums that overflow",
        "1,024 tokens of 2^122 add up to more than float32 holds before they are divided",
        make_bundle("float32", [([[1]], [0]), ([[1]], [0])], large, **HEAD),
    )
    # 9: the same function as 6, r = relu(2 x - 1) - x, with a narrower range; 13 and 16: r + r^2/1000.
    twice = [X, one(2), one(1), ["mul", 0, 1], ["sub", 3, 2], ["relu", 4], ["sub", 5, 0]]
    twice += [["sub", 0, 2], ["neg", 0], ["max", 7, 8], one(0.001), ["mul", 9, 9], ["mul", 11, 10], ["add", 9, 12]]
    twice += [["mul", 6, 6], ["mul", 14, 10], ["add", 6, 15]]
    yield Counterexample(
        "a chord to where the line never is",
        "r is in [-1/2, 0]; beyond, to the end of its own range, r + r^2/1000 was cut to the range of 13: 0.47 off",
        make_bundle(
            "float64",
            [
                ([[1, 1]], [-0.5, 0]),
                ([[2, 2], [-1, -1]], [2, -0.875]),
                ([[0.53125], [0.5]], [-1.53125]),
            ],
            about("real", 0.2, twice, [[0], [0], [6]]),
        ),
    )
    yield Counterexample(
        "infinity times zero",
        "mean(2^990 y) in two ways differs by 2^937 in float64, 2^100 times that is infinite, and infinity less "
        "infinity is no number; an error that was none was not the largest",
        _make_overflowing_bundle(),
    )


def _make_overflowing_bundle() -> Bundle:
    """1/2, and 0 as the difference of two units that overflow, with weights whose slack is rounded to 0."""
    large, least, part = 2.0**990, 2.0**-1074, 2.0**990 * (2 / 3)
    lines, layers = [X, one(2.0**100), ["mul", 0, 1], one(0.5), one(0)], [([[2.0**100] * 2], [0, 0])]
    layers.append(([[0, least], [0, -least]], [0.5, 0]))
    heads = {"W_Q": [[[0, 0]]] * 2, "W_K": [[[0, 0]]] * 2, "W_V": [[[large, 0]], [[large - part, part]]]}
    heads["W_O"] = [[[1], [0]], [[-1], [-1]]]
    claim = about("float64", 0.001, lines, [[0], [2]], outputs=[3, 4], meant=[3, 4], planned=[3, 4])
    made = make_bundle("float64", layers, claim, **heads)
    made.data["answers"] = np.zeros((1, 2))
    return made


def endless_formulas() -> Iterator[Counterexample]:
    """Claims that took forever, or ended the checker with an exception: they are refused, or left undecided."""
    chord = [([[1]], [0]), ([[1]], [0])]
    squares = [X, *(["mul", k, k] for k in range(45))]
    yield Counterexample(
        "a power of 2^45",
        "squares of squares",
        make_bundle("float64", chord, about("real", 0.5, squares, [[0], [0]])),
    )
    sines = [X, *(["sin", k] for k in range(1500))]
    yield Counterexample(
        "1,500 sines",
        "each of the one before",
        make_bundle("float64", chord, about("real", 2.0, sines, [[0], [0]])),
    )
    doubled = [X, ["y", 0], ["mean", 1], ["add", 0, 2], ["add", 0, 3], *(["add", k, k] for k in range(4, 54))]
    heads = {"W_Q": [[[0], [0]]], "W_K": [[[0], [0]]], "W_V": [[[1], [0]]], "W_O": [[[0, 1]]]}
    both = make_bundle(
        "float64",
        [([[1, 0], [0, 1]], [0, 0]), ([[2.0**49], [2.0**49]], [0])],
        about("real", 0.5, doubled, [[0, 0], [0, 3], [0, 3]]),
        **heads,
    )
    both.model["embedding.lift"] = np.ones((1, 2))
    yield Counterexample("doubled 50 times", "a sum of 2^50 terms, all alike", both)
    largest = [X, ["y", 0], ["largest", 1], ["add", 0, 2]]
    for name, w in (("sharper than any number", 1e300), ("less sharp than any number", 1e-300)):
        head = HEAD | {"W_K": [[[w]]], "b_Q": [[w]]}
        yield Counterexample(
            name,
            "logits are multiplied by what no number of float64 is",
            make_bundle("float64", chord, about("real", 0.05, largest, [[3], [3]]), **head),
        )
