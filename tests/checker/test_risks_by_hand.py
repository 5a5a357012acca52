"""Risks of linear attention layers: every moment, form and verdict beside what paper and pencil give."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.judge import OWN, LoopJudge
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.polynomials import is_zero
from onelayer_checker.looped.risks import Moments, compare_risks, minimises, quadratic_forms, rename_example
from tests.checker.looped import INNER, LAYER, descent, program, weights

ONCE = LAYER | {"repeat": 1}
ITSELF = ONCE | {"context": None, "mean": False, "window": 1}
ONE, NOTHING = f"const {(1.0).hex()}", f"const {(0.0).hex()}"
NO_BEST: Any = (None, 0, 0)
HALF, WEIGHT, NOISE = Fraction(3, 2), Fraction(5), Fraction(7, 4)


def odd(k: int) -> int:
    """(k - 1) (k - 3) ... 1"""
    return 1 if k < 2 else (k - 1) * odd(k - 2)


def of_x(k: int) -> Fraction:
    return Fraction(0) if k % 2 else HALF**k / (k + 1)


def normal(k: int, variance: Fraction) -> Fraction:
    return Fraction(0) if k % 2 else odd(k) * variance ** (k // 2)


def test_each_variable_has_the_moments_of_its_distribution() -> None:
    m = Moments(2, HALF, WEIGHT, NOISE)
    names = [("x", 0), ("x", 1), ("w", 0), ("w", 1), ("e", 0), ("u", 0), ("u", 1), ("f", 0)]
    assert m.ring.names == names
    of: dict[str, Any] = {"x": of_x, "u": of_x, "w": lambda k: normal(k, WEIGHT)}
    of |= dict.fromkeys("ef", lambda k: normal(k, NOISE))
    for letter, (group, _) in enumerate(names):
        assert [m.moment(letter, k) for k in range(9)] == [of[group](k) for k in range(9)]
    x, w = m.z[0], m.w[1]
    assert (
        m.expect(x * x * w * w * w * w * Fraction(3, 8) + 11 - x) == of_x(2) * 3 * WEIGHT**2 * Fraction(3, 8) + 11
    )


def test_answers_are_those_of_their_examples() -> None:
    m = Moments(2, HALF, WEIGHT, NOISE)
    (x0, x1, y), (u0, u1, z), w = m.z, m.other, m.w
    assert abs(x0).terms.keys() == {(8,)}  # a letter without a name stays away
    e, f = y - x0 * w[0] - x1 * w[1], z - u0 * w[0] - u1 * w[1]
    assert (e.terms, f.terms) == ({(4,): 1}, {(7,): 1})
    form = x0 * y * Fraction(3, 4) - x1 * x1 + y * y + w[1] * e + 5
    other = u0 * z * Fraction(3, 4) - u1 * u1 + z * z + w[1] * f + 5
    assert is_zero(rename_example(m, form) - other)


def shared(a: tuple[int, int], b: tuple[int, int] = (0, 0), w: int = 0) -> Fraction:
    """E w^k x^a y^b x'^c y'^d of one variable, y being w x + e."""
    total = Fraction(0)
    for i, j in product(range(a[1] + 1), range(b[1] + 1)):
        part = comb(a[1], i) * comb(b[1], j) * normal(w + i + j, WEIGHT) * of_x(a[0] + i) * of_x(b[0] + j)
        total += part * normal(a[1] - i, NOISE) * normal(b[1] - j, NOISE)
    return total


PAIRS = [(2, 0), (1, 1), (0, 2)]  # x x, x y, y y


def solve(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """By Cramer's rule."""

    def det(m: list[list[Fraction]]) -> Fraction:
        (a, b, c), (d, e, f), (g, h, i) = m
        return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)

    swapped = [[[r if k == c else v for k, v in enumerate(row)] for row, r in zip(rows, right, strict=True)]
               for c in range(3)]  # fmt: skip
    return [det(m) / det(rows) for m in swapped]


def gram(N: int, share: Fraction) -> tuple[list[list[Fraction]], list[Fraction]]:
    def of(p: tuple[int, int], q: tuple[int, int]) -> Fraction:
        return share * N * (shared((p[0] + q[0], p[1] + q[1])) + (N - 1) * shared(p, q))

    return [[of(p, q) for q in PAIRS] for p in PAIRS], [N * shared(p, w=1) for p in PAIRS]


def judged_form(p: list[Fraction], N: int, share: Fraction) -> Any:
    """What is said of p0 x x + p1 x y + p2 y y, times a number that makes its coefficients whole."""
    whole = int(np.prod([u.denominator for u in p], dtype=object))
    m = Moments(1, HALF, WEIGHT, NOISE)
    x, y = m.z
    form = sum((f * int(u * whole) for u, f in zip(p, (x * x, x * y, y * y), strict=True)), x * 0)
    return whole, compare_risks(m, [form], N, share)


@pytest.mark.parametrize(("N", "mean"), [(1, True), (3, True), (3, False)])
def test_only_without_any_gradient_is_a_layer_the_best(N: int, mean: bool) -> None:
    """One variable, and all three coefficients: the minimum itself, and points with one component of a gradient."""
    share = Fraction(1, N) if mean else Fraction(1)
    rows, wanted = gram(N, share)
    best = solve(rows, wanted)
    assert best[0] == best[2] == 0 != best[1]
    whole, (scale, risk, least) = judged_form(best, N, share)
    assert scale == Fraction(1, whole)
    crossed = share * N * best[1] * shared((1, 1), w=1)
    squared = share * rows[1][1] * best[1] ** 2
    assert least == of_x(2) / 2 * (WEIGHT - 2 * crossed + squared)
    assert risk == of_x(2) / 2 * (WEIGHT - 2 * whole * crossed + whole**2 * squared) > least
    for at in (0, 2):
        right = [w + (i == at) for i, w in enumerate(wanted)]
        assert judged_form(solve(rows, right), N, share)[1] == NO_BEST
    aside = [wanted[0], wanted[1] + 1, wanted[2]]  # another multiple
    whole, (scale, *_) = judged_form(solve(rows, aside), N, share)
    assert scale == wanted[1] / aside[1] / whole


def closed(d: int, N: int, c: Fraction, share: Fraction, half: Fraction, W: Fraction, s: Fraction) -> Any:
    """Of P_l = c y x_l, by its closed form."""
    v, q = half**2 / 3, half**4 / 5
    A = W * (q + (d - 1) * v * v) + s * v + (N - 1) * W * v * v
    scale = W * v / (share * c * A)

    def risk(c: Fraction) -> Fraction:
        return v / 2 * d * (W - 2 * share * N * c * W * v + share**2 * c * c * N * A)

    return scale, risk(c), risk(scale * c)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    "numbers", [(HALF, WEIGHT, NOISE), (HALF, Fraction(0), NOISE), (HALF, WEIGHT, Fraction(0))]
)
@pytest.mark.parametrize(("N", "share"), [(1, Fraction(1)), (4, Fraction(1, 4)), (4, Fraction(1))])
def test_steps_of_gradient_descent_have_a_closed_form(d: int, numbers: Any, N: int, share: Fraction) -> None:
    m, c = Moments(d, *numbers), Fraction(3, 8)
    forms = [x * m.z[d] * c for x in m.z[:d]]
    assert compare_risks(m, forms, N, share) == closed(d, N, c, share, *numbers)
    if numbers[1]:
        for at in range(d):
            lame = [0 if i == at else form for i, form in enumerate(forms)]
            assert compare_risks(m, lame, N, share) == NO_BEST
            lopsided = [form * (2 if i == at else 1) for i, form in enumerate(forms)]
            assert (compare_risks(m, lopsided, N, share)[0] is None) == (d > 1)
    else:
        assert compare_risks(m, [0] * d, N, share) == NO_BEST


def layer(change: dict[str, Any] | None = None, further: tuple[Any, ...] = (), **tensors: Any) -> Network:
    held = weights() | {k.replace("__", "."): np.asarray(a, np.float64) for k, a in tensors.items()}
    return build(held, {"template": "looped/1", "layers": [ONCE | (change or {}), *further]})


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**{"steps": 1} | changes), "here")


def forms(network: Network, **changes: Any) -> Any:
    return quadratic_forms(network, read(**changes), Moments(2, HALF, WEIGHT, NOISE))


def test_forms_are_read_off_the_weights() -> None:
    """A query is read as 3 X_0 - X_1 and as X_1 / 2, a key as its x and y; values are -y / 4 and -x_1 / 4."""
    Q = [[[3.0, 0], [-1, 0.5], [0, 0], [0, 0]]]
    K = [[[1.0, 0], [0, 1], [0, 2], [0, 0]]]
    V = [[[0.0, 0], [0, -0.25], [-0.25, 0], [0, 0]]]
    O = [[[0.0, 0, 1, 0], [0, 0, 1, 0]]]
    net = layer(attention__W_Q=Q, attention__W_K=K, attention__W_V=V, attention__W_O=O)
    moments = Moments(2, HALF, WEIGHT, NOISE)
    found = quadratic_forms(net, read(), moments)
    x0, x1, y = moments.z
    value = (y + x1) * Fraction(1, 4)
    wanted = [x0 * 3 * value, ((x1 + y * 2) * Fraction(1, 2) - x0) * value]
    assert found is not None
    assert all(is_zero(p - q) for p, q in zip(found, wanted, strict=True))
    assert forms(layer(attention__W_V=np.zeros((1, 4, 1)))) == [0, 0]
    assert forms(layer(readout__0__weight=np.zeros((4, 1)))) == [0, 0]


def changed(name: str, index: tuple[int, ...], value: float = 1.0) -> np.ndarray:
    a = weights()[name].copy()
    a[index] = value
    return a


EXAMPLE, QUERY = (descent()[name]["lines"] for name in ("example", "query"))


@pytest.mark.parametrize(
    ("tensors", "changes"),
    [
        ({"readout__0__bias": [1.0]}, {}),  # an answer without examples
        ({"attention__W_K": changed("attention.W_K", (0, 3, 0))}, {}),  # X_0 y
        ({"attention__W_V": changed("attention.W_V", (0, 3, 0))}, {}),  # X_l x_l
        ({"attention__b_Q": [[1.0, 0.0]]}, {}),  # x_0 y
        ({}, {"query": program([*QUERY, "mul 2 2"], 9, 3, 7, 8)}),  # X_0 X_0 x_0 y
        ({}, {"example": program([*EXAMPLE, "mul 2 2"], 10, 3, 8, 9)}),  # X_0 x_0 x_0 y
        ({}, {"example": program([*EXAMPLE, "abs 2"], 10, 3, 8, 9)}),  # X_0 |x_0| y
        ({}, {"example": program([*EXAMPLE, "abs 2", "mul 8 2"], 10, 3, 11, 9)}),  # X_0 |x_0| x_0 y
        (
            {"attention__W_V": [[[0.0], [0.0], [0.0], [1.0]]]},
            {"query": program([*QUERY, "mul 2 2", "mul 3 3"], 9, 10, 7, 8)},
        ),  # X_l X_l x_l
    ],
    ids=range(9),
)
def test_other_terms_have_no_form(tensors: dict[str, Any], changes: dict[str, Any]) -> None:
    assert forms(layer(**tensors), **changes) is None


def test_what_is_not_the_sum_over_examples_has_no_form() -> None:
    """A further layer adds the square of r times itself: with two examples there are mixed terms."""
    r = np.eye(4)[None, :, 2:3]
    held = {k.replace("readout", "1.readout"): a for k, a in weights().items()}
    further = {f"1.attention.W_{n}": r for n in "QKV"} | {"1.attention.W_O": r.swapaxes(1, 2)}
    graph = {"template": "looped/1", "layers": [ONCE, ITSELF]}
    assert forms(build(held | further, graph)) is None
    idle = further | {"1.attention.W_V": 0 * r}
    assert [form.terms for form in forms(build(held | idle, graph))] == [form.terms for form in forms(layer())]


def test_three_examples_may_add_what_two_do_not() -> None:
    """A further layer adds the determinant of the sum of z z^T, z = (x_0, x_1, y): 0 for one and two examples."""
    z, entries = np.eye(10)[:3], np.eye(10)[4:]  # (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)
    Q, K, V, O = np.zeros((4, 10, 2)), np.zeros((4, 10, 2)), np.zeros((4, 10, 3)), np.zeros((4, 3, 10))
    Q[0], K[0], V[0, :, 0], O[0, 0] = z[:2].T, z[:2].T, -z[2] / 4, z[2]
    for i, at in ((0, 0), (1, 3), (2, 5)):
        K[i + 1, :, 0], V[i + 1, :, : 3 - i], O[i + 1, : 3 - i] = z[i], z[i:].T, entries[at : at + 3 - i]
    tensors: dict[str, Any] = {f"attention.W_{n}": a for n, a in zip("QKVO", (Q, K, V, O), strict=True)}
    tensors |= {"attention.b_Q": np.array([[0.0, 0], [1, 0], [1, 0], [1, 0]])}
    a, b, c, d, e, f = entries
    minors = [(d, e, f, -e, a), (b, c, -f, e, b), (b, c, e, -d, c)]
    tensors |= {"1.attention.W_Q": np.array([np.stack(m[:2], 1) for m in minors])}
    tensors |= {"1.attention.W_K": np.array([np.stack(m[2:4], 1) for m in minors])}
    tensors |= {
        "1.attention.W_V": np.array([m[4][:, None] for m in minors]),
        "1.attention.W_O": np.array([z[2:]] * 3),
    }
    tensors |= {"1.readout.0.weight": -z[2:].T, "1.readout.0.bias": np.zeros(1)}
    net = build(tensors, {"template": "looped/1", "layers": [ONCE | {"mean": False}, ITSELF]})
    a = read(
        gather="sum",
        example=program([*EXAMPLE, NOTHING], 2, 3, 8, 9, *[10] * 6),
        query=program(QUERY, 2, 3, 7, *[8] * 7),
    )
    asking = a.token("query", [0, 0], [1, 1], [])
    seen = [([1, 0], 0), ([0, 1], 0), ([1, 1], 2)]
    added = [net.loop.add_key(asking, a.token("example", [0, 0], x, [y])) for x, y in seen]
    given = [net.answer([sum(column) for column in zip(asking, *added[:k], strict=True)])[0] for k in range(4)]
    assert given == [0, 0, 0, 1 - 4]  # y <x, X> / 4, and the determinant
    assert quadratic_forms(net, a, Moments(2, HALF, WEIGHT, NOISE)) is None


ETA = 2.0**-7
#: With half = 15, weight 1, noise 90, two variables and one example: E x^2 = 75, and the least risk is 75 * 3/4.
NUMBERS = {"examples": 1.0, "half": 15.0, "weight": 1.0, "noise": 90.0}
RISK = 75 * (1 - 2 * ETA * 75 + ETA**2 * 75 * 300)
GAP = RISK - 75 * 0.75


def eta(value: float) -> dict[str, Any]:
    step = ["s 0", "s 1", "m 0", "m 1", f"const {value.hex()}", "mul 2 4", "mul 3 4", "add 0 5", "add 1 6"]
    return {"steps": 1, "step": program(step, 7, 8)}


def verdict(network: Network, algorithm: Algorithm, **numbers: float) -> Verdict:
    held = NUMBERS | {"value": RISK, "gap": GAP} | numbers
    return minimises(LoopJudge(network), Claim("minimises", "real", "token", held, algorithm))


def test_the_risk_and_the_gap_are_proved_up_to_the_last_bit() -> None:
    net, a = build(weights(ETA), {"template": "looped/1", "layers": [ONCE]}), read(**eta(ETA))
    scale, risk, least = closed(2, 1, Fraction(ETA), Fraction(1), Fraction(15), Fraction(1), Fraction(90))
    assert (risk, risk - least) == (Fraction(RISK), Fraction(GAP))
    found = verdict(net, a)
    assert (found.outcome, found.value) == ("proved", GAP)
    assert found.why == f"risk {RISK:.9g}, the least is 56.25 at {float(scale):.17g} times its weights"
    assert verdict(net, a, gap=2 * GAP).value == 2 * GAP
    for change in ({"value": np.nextafter(RISK, 0)}, {"gap": np.nextafter(GAP, 0)}, {"noise": 91.0}):
        refused = verdict(net, a, **change)
        assert (refused.outcome, refused.value) == ("refuted", np.inf)
    for count in (0.0, 0.5, 1.5):
        refused = verdict(net, a, examples=count, value=1e9, gap=1e9)
        assert (refused.outcome, refused.value) == ("undecided", np.inf)
        assert refused.why == f"{count:g} is no number of examples"
    other = verdict(net, read(**eta(ETA * 2)))
    assert other.outcome == "refuted"
    assert "the network gives" in other.why
    with pytest.raises(Malformed):
        minimises(object(), Claim("minimises", "real", "token", NUMBERS, a))


@pytest.mark.parametrize(("N", "mean"), [(2, True), (4, False)])
def test_more_examples_are_averaged_or_summed(N: int, mean: bool) -> None:
    net = build(weights(ETA), {"template": "looped/1", "layers": [ONCE | {"mean": mean}]})
    a = read(**eta(ETA), gather="mean" if mean else "sum")
    share = Fraction(1, N) if mean else Fraction(1)
    _, risk, least = closed(2, N, Fraction(ETA), share, Fraction(15), Fraction(1), Fraction(90))
    words = f"risk {float(risk):.9g}, the least is {float(least):.9g} at "
    assert verdict(net, a, examples=float(N)).why.startswith(words)


def test_layers_without_a_convex_risk_are_undecided() -> None:
    words = "only one loop of linear attention with one answer has a convex risk"
    many = {"value": 1e9, "gap": 1e9}
    twice = verdict(build(weights(), {"template": "looped/1", "layers": [LAYER]}), read(steps=3), **many)
    causal = verdict(layer({"causal": True}), read(), **many)
    readout = np.eye(4)[:, 2:3] @ [[-1.0, -1.0]]
    both = layer(readout__0__weight=readout, readout__0__bias=np.zeros(2))
    double = verdict(both, read(answer=program(INNER, 6, 6)), **many)
    wide = verdict(layer(), read(y=2), **many)
    for found in (twice, causal, double, wide):
        assert (found.outcome, found.why, found.value) == ("undecided", words, np.inf)
    found = verdict(layer(readout__0__bias=[1.0]), read(answer=program([*INNER, ONE, "add 6 7"], 8)), **many)
    assert (found.outcome, found.value) == ("undecided", np.inf)
    assert found.why == "the answer is not a sum of cubic terms z_j z_k X_l"
    tilted = weights() | {"attention.W_Q": np.eye(4)[None, :, :2] * [1.0, 2.0]}
    term = [*INNER, "y 0", "sub 7 6", "mul 8 2", "add 3 3", "mul 8 10"]
    lopsided = verdict(
        build(tilted, {"template": "looped/1", "layers": [ONCE]}), read(term=program(term, 9, 11)), **many
    )
    assert (lopsided.outcome, lopsided.value) == ("undecided", np.inf)
    assert lopsided.why == "no multiple of the layer has a gradient of zero"


def test_relu_attention_has_no_convex_risk() -> None:
    """Whatever is said of the algorithm."""
    net, a = layer({"attention": "relu"}), read()
    judge = LoopJudge(net, known=[(a, Verdict("proved", "for a test", 0.0))])
    found = minimises(judge, Claim("minimises", "real", "token", NUMBERS | {"value": 1e9, "gap": 1e9}, a))
    assert found.why == "only one loop of linear attention with one answer has a convex risk"


def test_judges_are_no_part_of_a_task() -> None:
    """After the loop a layer with judges doubles what was found: the risk is not that of the loop."""
    wide = {k: np.concatenate([a, np.zeros((1, 1, a.shape[2]))], axis=1) for k, a in weights(ETA).items()
            if k in ("attention.W_Q", "attention.W_K", "attention.W_V")}  # fmt: skip
    r = np.eye(5)[2:3]
    further = {f"1.attention.W_{n}": np.zeros((1, 5, 1)) for n in "QKV"} | {"1.attention.W_O": np.zeros((1, 1, 5))}
    tensors = (
        wide | further | {"attention.W_O": r[None], "1.readout.0.weight": -r.T, "1.readout.0.bias": np.zeros(1)}
    )
    tensors |= {"1.feedforward.0.weight": np.diag([1.0, 1, 2, 1, 1]), "1.feedforward.0.bias": np.zeros(5)}
    net = build(tensors, {"template": "looped/1", "layers": [ONCE, ONCE | {"context": 4}]})
    doubled = [*INNER, "neg 6", NOTHING, "add 7 7", "add 6 6"]
    a = read(
        **eta(ETA), example=program([*INNER, "y 0", "sub 7 6", ONE, NOTHING], 2, 3, 8, 9, 10),
        query=program(doubled, 2, 3, 7, 8, 8), answer=program(doubled, 10),
        judge=program([*INNER, "y 0", "sub 7 6", NOTHING, ONE], 2, 3, 8, 9, 10), weigh=program(["y 0"], 0),
        judged=program(doubled, 2, 3, 9, 8, 8), either=program(["x 0"], 0, 0),
    )  # fmt: skip
    found = verdict(net, a)
    assert (found.outcome, found.value) == ("undecided", np.inf)
    assert found.why == "only one loop of linear attention with one answer has a convex risk"


def test_the_kind_is_known_by_name() -> None:
    kind = KINDS["minimises"]
    assert kind.numbers == {"examples", "half", "weight", "noise", "value", "gap"}
    assert (kind.judge, kind.read_target, OWN["minimises"]) == (minimises, read_algorithm, minimises)
