"""Roundings of loops that hold their weights: how far off they may be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped import residuals, rounding
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.floats import FLOATS, Floats, Known, Unlike
from onelayer_checker.looped.judge import IN_FLOATS, LoopJudge
from onelayer_checker.looped.limits import power, root, up
from onelayer_checker.looped.network import Network, affine
from onelayer_checker.looped.polynomials import Ring
from onelayer_checker.looped.rounding import Shape, rounds, shape_of, slopes_of, start
from tests.checker.held_weights import (
    E7,
    ETA,
    SINGLE,
    UNIT,
    W,
    X,
    Y,
    claim,
    cutting,
    fractions,
    network,
    read,
    shape,
    shrinking,
    step,
    taking,
)


def test_multiples_of_a_letter_and_scores() -> None:
    ring = Ring()
    (s0, s1), (x0, x1), (y,) = (ring.variables(group, n) for group, n in (("s", 2), ("x", 2), ("y", 1)))
    letters: list[Any] = [x0, x1]
    share = Fraction(-3, 4)
    assert rounding._multiple([x0 * share, x1 * share], letters) == share
    assert rounding._multiple([x0 - x0, 0], letters) == rounding._multiple([0, 0], letters) == 0
    for other in ([x0, x1 * 2], [x0, 0], [0, x1], [x1, x0], [x0 + 1, x1], [1, 1], [x0 * x0, x1 * x1]):
        assert rounding._multiple(other, letters) is None
    inner = s0 * x0 + s1 * x1
    score = inner * Fraction(3, 8) - y * Fraction(5, 4) + Fraction(7, 2)
    assert rounding._score(score, [s0, s1], [x0, x1], y) == fractions(0.375, -1.25, 3.5)
    assert rounding._score(Fraction(7, 2), [s0, s1], [x0, x1], y) == fractions(0, 0, 3.5)


@pytest.mark.parametrize(
    ("pieces", "bent", "straight"),
    [
        ([(1, -1, -10, -2), (2, -2, -22, 3)], [0, -2, 4], [4, 4, 4]),
        ([(-1, 1, 3, 5)], [-5, 0], [-5, -5]),
        ([(2, 1, 3, 5), (4, 2, 6, 1)], [0, 14], [14, 14]),
        ([(0, 1, 3, 5), (1, 4, 3, 0)], [0], [0]),
        ([(0, 1, 3, 5), (1, 4, 3, 0), (1, 1, 0, 7)], [0, 7], [7, 7]),
    ],
)
def test_slopes_between_bends(pieces: list[tuple[float, ...]], bent: list[int], straight: list[int]) -> None:
    assert slopes_of(shape(*pieces), linear=False) == bent
    assert slopes_of(shape(*pieces), linear=True) == straight


def test_all_pieces_bend_at_one_mixture() -> None:
    with pytest.raises(Unlike, match="pieces of phi bend at different mixtures"):
        slopes_of(shape((1, -1, 0, 1), (1, -2, 0, 1)), linear=False)


@pytest.mark.parametrize(
    ("pieces", "y", "bent", "straight"),
    [
        ([(5, 1, 1, 1), (5, 1, 0, -2)], 1, 1, 2),  # relu(y + 1) - 2 relu(y); 1 - y
        ([(5, 1, -3, 2)], 1, 0, 8),
        ([(5, 1, -3, 2)], 4, 2, 14),
        ([(5, 0, -3, 2), (5, 0, 3, -2)], 4, 6, 12),
        ([(5, -1, 3, -2)], 1, 8, 8),
        ([(5, 4, 4, 1), (5, 4, -1, -3)], 1, 5, 15),  # relu(4 y + 4) - 3 relu(4 y - 1) at 1/4; 7 - 8 y
        ([(5, 1, 4, 1), (5, 1, 2, -3)], 1, 4, 4),  # a bend beyond the box would give 2, and one more 6
    ],
)
def test_the_first_step_is_largest_at_an_end_or_a_bend(
    pieces: list[tuple[float, ...]], y: float, bent: float, straight: float
) -> None:
    assert start(shape(*pieces), Fraction(y), linear=False) == bent
    assert start(shape(*pieces), Fraction(y), linear=True) == straight


@pytest.mark.parametrize(
    ("pieces", "b", "linear", "found"),
    [
        ([(1, -1, 0, -0.25)], 0.25, True, True), ([(1, -1, 0, -0.25)], 0.25, False, True),
        ([(1, -1, 0, -0.25)], 0, True, False), ([(1, -1, 0, -0.25), (0, 5, 3, 0)], 0.25, True, True),
        ([(1, -1, 1, -0.25)], 0.25, True, False), ([(1, -1, -1, -0.25)], 0.25, False, True),
        ([(1, -1, 1, -0.25), (-2, 2, -1, -0.25)], 0.25, True, True),
        ([(1, -1, 1, -0.25), (-2, 2, -1, -0.25)], 0.25, False, False),
        ([(1, -1, 1, -0.25), (1, -1, -1, -0.5)], 0.25, True, False),
        ([(1, -1, 0, -0.25), (0, 0, 0, 1)], 0.25, True, False), ([(1, 1, 0, -0.25)], 0.25, True, False),
        ([(1, -2, 0, -0.25)], 0.25, True, False), ([(1, -1, 0, -0.25), (1, 1, 0, 1)], 0.25, True, False),
    ],
)  # fmt: skip
def test_squares(pieces: list[tuple[float, ...]], b: float, linear: bool, found: bool) -> None:
    assert shape(*pieces).is_square(Fraction(b), linear) is found


B = Fraction(3, 2)


@pytest.mark.parametrize(
    ("own", "L", "linear", "wanted"),
    [
        (shape((1, -1, 0, -0.25)), 7, True, 3 * B / 4 * 7),
        (shape((1, -1, 0, -0.25), shrink=0.5), 1, True, 3 * B / 4),
        (shape((1, -1, 0, -0.25), shrink=0.5), 9, True, Fraction(3) * root(Fraction(1, 2))),
        (shape((1, -1, 0, -1.0), shrink=0.75), 9, True, 3 * root(Fraction(4, 3))),
        (shape((1, -1, 1, -0.25), shrink=0.5), 9, True, Fraction(4) / 4 * B / Fraction(1, 2)),
        (shape((1, -1, 0, -0.25), (1, -1, 0, 0.125), shrink=0.5), 9, False, Fraction(3, 8) * B / Fraction(1, 2)),
        (shape((1, -1, 0, -0.25), (1, -1, -1, -0.125), shrink=0.5), 9, True, Fraction(10, 8) * B * 2),
        (shape((1, -1, 0, -0.25), shrink=0.5), 9, False, Fraction(3, 4) * B * 2),
        (shape((1, -1, 0, -0.25), threshold=0.25), 99, True, Fraction(9, 2) + Fraction(1, 2)),
        (shape((1, -1, 1, -0.25), threshold=0.25), 99, True, B * 99),
        (shape((1, -1, 0, -0.25), shrink=0.5, threshold=0.25), 99, True, Fraction(9, 4)),
        (shape((1, -1, 0, -0.25), shrink=0.125, threshold=0.25), 99, True, Fraction(9, 2) + Fraction(1, 2)),
        (shape((1, 0, 1, 0.125)), 2, False, B / 8 * 2 * power(1 + B * B / 8, 2)),
        (shape((1, 0, 1, 0.125), shrink=0.28125), 2, False, B / 8 * 2 * power(1 + B * B / 8, 2)),
        (shape((1, 0, 1, 0.125), shrink=0.53125), 9, False, B / 8 * 4),
    ],
    ids=range(15),
)
def test_how_large_states_may_be(own: Shape, L: int, linear: bool, wanted: Fraction) -> None:
    """Of two weights, B = 3/2 and |y| <= 3."""
    assert own.largest(2, B, Fraction(3), L, linear) == up(wanted)


def restated(
    net: Network, a: Algorithm, n: dict[str, Fraction], own: Shape, floats: Floats
) -> tuple[Fraction, str]:
    """The bound of the module's docstring."""
    linear, L, B2 = net.loop.kind == "linear", a.steps, 2 * n["x"] * n["x"]
    k = own.shrink + max(Fraction(0), *slopes_of(own, linear)) * B2
    size = own.largest(2, root(B2), n["y"], L, linear)
    loops = Fraction(L) if k == 0 else (power(1 + k, L) - 1) / k
    others = [Known(n["x"]), Known(n["x"]), Known(n["y"]), Known(Fraction(1)), Known(Fraction(1))]
    wide = [Known(size * Fraction(9, 8))] * 2
    after = floats.added(net.loop, floats.before(net.loop, others + wide), int(n["examples"]))
    one = root(2 * max(after[5].off, after[6].off) ** 2)
    h = [*others, *[Known(size, up(one * loops))] * 2]
    for layer in net.after:
        for _ in range(layer.repeat):
            h = floats.added(layer, floats.before(layer, h), 1)
    for part in net.readout:
        h = floats.affine(part, h)
    words = f"{L} loops of at most {float(one):.3g} each, |w| <= {float(size):.3g}, {int(n['examples']):,} examples"
    return max(value.off for value in h), words


BOX = {"x": Fraction(3, 4), "y": Fraction(2), "examples": Fraction(1000)}


@pytest.mark.parametrize(
    "heads",
    [
        {"heads": [step()]}, {"heads": [step(), shrinking(0.125)]}, {"heads": [step()], "more": cutting(0.125)},
        {"heads": [step(), step(eta=0.125, a=1.0, b=-1.0, c=2.0)], "kind": "relu"},
        {"heads": [step(), step(eta=0.125, a=1.0, b=-1.0, c=2.0), shrinking(0.25)], "kind": "relu"},
    ],
    ids=["plain", "shrinking", "cutting", "bent", "all"],
)  # fmt: skip
@pytest.mark.parametrize("twice", [False, True])
def test_the_bound_is_that_of_its_formula(heads: dict[str, Any], twice: bool) -> None:
    net, a = network(*heads["heads"], kind=heads.get("kind", "linear"), **heads.get("more", {})), read()
    if twice:  # read off by three numbers, of which two are not the answer, after the last layer was run twice
        read_off = affine(E7[:, [X[0], Y, W[0]]] * [1, 2, 3], np.zeros(3))
        net = replace(net, after=(replace(net.after[0], repeat=2),), readout=(affine(E7, np.zeros(7)), read_off))
    own = shape_of(net, a)
    assert rounding._followed(net, a, BOX, SINGLE, own) == restated(net, a, BOX, own, SINGLE)


def followed(*heads: Any, kind: str = "linear", x: float = 2.0, y: float = 1.0) -> Fraction:
    net, a = network(*heads, kind=kind), read()
    box = {"x": Fraction(x), "y": Fraction(y), "examples": Fraction(4)}
    return rounding._followed(net, a, box, Floats(*FLOATS["float64"]), shape_of(net, a))[0]


def test_steps_that_are_too_large_are_refused() -> None:
    """B^2 is 8 where x is 2."""
    assert followed() > 0  # eta B^2 = 2
    with pytest.raises(Unlike, match=r"the steps are too large: b B\^2 \+ 2 shrink = 2\.0402"):
        followed(x=2.02)
    assert followed(step(eta=0.125), shrinking(0.5)) > 0  # 1 + 2/2
    with pytest.raises(Unlike, match=r"the steps are too large: b B\^2 \+ 2 shrink = 2\.125"):
        followed(step(eta=0.125), shrinking(0.5625))
    free = step(a=0.0)
    assert followed(free, shrinking(0.9375)) > 0
    for share in (1.0, -0.125):
        with pytest.raises(Unlike, match="the steps are too large"):
            followed(free, shrinking(share))
    growing = step(eta=0.125, a=1.0)
    assert followed(growing, kind="relu") > 0  # g B^2 = 1
    with pytest.raises(Unlike, match=r"the steps are too large: b B\^2 \+ 2 shrink = 0"):
        followed(growing, kind="relu", x=2.01)


class Told(Floats):
    """Roundings of a layer are those that are given: of the channel before w, and of both numbers of w."""

    offs: tuple[Fraction, ...]

    def added(self, layer: Any, h: list[Known], keys: int, held: Any = None) -> list[Known]:  # noqa: ARG002
        return [*h[:UNIT], *(Known(u.size, off) for u, off in zip(h[UNIT:], self.offs, strict=True))]


def told(other: Fraction, own: Fraction, second: Fraction | None = None) -> Told:
    found = Told(*FLOATS["float64"])
    object.__setattr__(found, "offs", (other, own, own if second is None else second))
    return found


def test_roundings_are_small_beside_what_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to an eighth of the largest state; square roots are left out, so that every number is a simple one."""
    monkeypatch.setattr(rounding, "root", lambda value: value)
    net, a, box = network(), read(), {"x": Fraction(1, 2), "y": Fraction(4), "examples": Fraction(4)}
    own, none = shape_of(net, a), Fraction(0)
    size = Fraction(1, 2) * 1 * 3  # |phi(0, y)| B, three times, with B = B^2 = 1/2
    edge = Fraction(1, 4)  # 8 * 3 * 2 edge^2 = 3
    assert own.largest(2, Fraction(1, 2), Fraction(4), 3, True) == size
    small = told(none, edge / 2)
    assert 8 * 3 * 2 * (edge / 2) ** 2 < size
    rounding._followed(net, a, box, small, own)
    at_edge = replace(own, pieces=[(*own.pieces[0][:3], own.pieces[0][3] * 2)])
    assert 8 * 3 * 2 * edge**2 == at_edge.largest(2, Fraction(1, 2), Fraction(4), 3, True)
    rounding._followed(net, a, box, told(none, edge), at_edge)
    more = edge + Fraction(1, 2**40)
    for pair in ((more, more), (more, none), (none, more)):
        with pytest.raises(Unlike, match=r"roundings of 0\.375 are beyond the size 3 of what is rounded"):
            rounding._followed(net, a, box, told(none, *pair), at_edge)
    with pytest.raises(Unlike, match="another channel than w is rounded"):
        rounding._followed(net, a, box, told(Fraction(1, 2**99), edge / 2), own)


def test_the_state_is_read_first_and_residuals_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    net, a = network(dtype="float32"), read()
    numbers = {name: Fraction(value) for name, value in claim(a).numbers.items()}
    seen: list[Any] = []

    def said(*given: Any) -> tuple[Fraction, str]:
        seen.append(given)
        return Fraction(1, 4), "for a test"

    monkeypatch.setattr(rounding, "_followed", said)
    assert rounding._bounded(net, claim(a)) == (Fraction(1, 4), "for a test")
    assert seen == [(net, a, numbers, SINGLE, shape((1, -1, 0, -ETA)))]
    seen.clear()
    odd = read(start=[(1.0).hex()] * 2)
    with pytest.raises(Unlike, match="from 0; only a mean of linear attention"):
        rounding._bounded(net, claim(odd))
    monkeypatch.setattr(residuals, "followed", said)
    assert rounding._bounded(net, claim(odd)) == (Fraction(1, 4), "for a test")
    assert seen == [(net, odd, numbers, SINGLE)]
    for count, arith in (
        (0.0, "float32"),
        (0.5, "float32"),
        (1.5, "float32"),
        (2.0**22 + 1, "float32"),
        (1, "float64"),
    ):
        with pytest.raises(Unlike, match="the arithmetic is another than that of the weights, or there are"):
            rounding._bounded(net, claim(a, arith, examples=count))
    for count in (1.0, 2.0**22):
        assert rounding._bounded(net, claim(a, examples=count))[0] == Fraction(1, 4)
    double = network()
    assert rounding._bounded(double, claim(a, "float64"))[0] == Fraction(1, 4)
    assert seen[-1][3] == Floats(*FLOATS["float64"])


def test_the_bound_is_proved_up_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, a = LoopJudge(network(dtype="float32")), read()
    plain = rounds(judge, claim(a))
    bound, words = rounding._bounded(judge.network, claim(a))
    assert (plain.outcome, plain.why) == ("proved", words)
    assert Fraction(plain.value) > bound > Fraction(plain.value) * (1 - Fraction(1, 2**50))
    monkeypatch.setattr(rounding, "_bounded", lambda *_: (Fraction(1, 4), "for a test"))
    above = float(np.nextafter(0.25, 1))
    assert rounds(judge, claim(a, bound=0.25)) == Verdict("proved", "for a test", above)
    below = rounds(judge, claim(a, bound=float(np.nextafter(0.25, 0))))
    assert below == Verdict("undecided", "for a test: within 0.25", np.inf)
    other = rounds(judge, claim(read(**taking(0.5))))
    assert other.outcome == "refuted"

    def unlike(*_: Any) -> Any:
        raise Unlike("for a test")

    monkeypatch.setattr(rounding, "_bounded", unlike)
    assert rounds(judge, claim(a)) == Verdict("undecided", "for a test", np.inf)
    with pytest.raises(Malformed):
        rounds(object(), claim(a))


def test_the_kind_is_known_by_name() -> None:
    kind = KINDS["rounds"]
    assert kind.numbers == {"bound", "x", "y", "examples"}
    assert (kind.judge, kind.read_target, IN_FLOATS["rounds"]) == (rounds, read_algorithm, rounds)
    assert rounding.MOST_EXAMPLES == 2**22
