"""Copies by position, by hand: every number of a copy is compared, every term of a bound, and what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf, nextafter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, TINY, UP, Arithmetic, gamma
from onelayer_checker.core.graph import Network, build
from onelayer_checker.functions import hats
from onelayer_checker.functions.hats import Gather, Hats, gather, rounding
from onelayer_checker.functions.targets import Program, read_program


def copying(
    n: int,
    d: int,
    sources: Any,
    gates: bool = False,
    scale: float = 8.0,
    offset: float = 0.0,
    apart: float = 1024.0,
) -> dict[str, Any]:
    """Tensors up to the bottleneck: head h copies, for query k, the token sources[h, k]. Nobody reads the last
    channel; a head is one component wider than it need be."""
    heads, m, s = len(sources), n * d, max(n, d) + 1
    w, copies = d + n + heads * d + 1, d + n
    T: dict[str, Any] = {"embedding.lift": np.eye(d, w), "embedding.positions": np.eye(n, w, d)}
    query, key, value = (np.zeros((heads, w, s)) for _ in range(3))
    out = np.zeros((heads, s, w))
    for h in range(heads):
        for k in range(n):
            query[h, d + k, sources[h][k]], key[h, d + k, k] = apart, 1
        for c in range(d):
            value[h, c, c], out[h, c, copies + h * d + c] = 1, 1
    T |= {f"attention.W_{name}": a for name, a in zip("QKVO", (query, key, value, out), strict=True)}
    W, b = np.zeros((w, m + n * gates)), np.full(m + n * gates, -offset * scale)
    for c in range(m):
        W[copies + c, c] = scale
    for k in range(n * gates):
        W[d + k, m + k] = 1
    b[m:] = 0
    return T | {"readout.0.weight": W, "readout.0.bias": b}


SAME = {1: [[0]], 2: [[0, 0], [1, 1]], 3: [[0] * 3, [1] * 3, [2] * 3]}  # every query copies the same tokens
TURNED = {2: [[0, 1], [1, 0]], 3: [[0, 1, 2], [1, 2, 0], [2, 0, 1]]}  # each query begins with its own token


def network(T: dict[str, Any], causal: bool = False) -> Network:
    columns = T["readout.0.bias"].size
    after = {"readout.1.weight": np.zeros((columns, 1)), "readout.1.bias": np.zeros(1)}
    return build({name: np.asarray(a, np.float64) for name, a in (T | after).items()}, causal)


def plain(m: int, gates: int = 0, H: float = 4.0, size: float = 1.0) -> Hats:
    return Hats(H, np.zeros((3,) * m + (1,)), gates, size)


#: So coarse that what underflow may cost is a good part of every bound.
COARSE = replace(FLOAT32, name="coarse", u=2.0**-16, tiny=2.0**-12)


def gathered(
    T: dict[str, Any], n: int, d: int, gates: bool = False, largest: float = 0.9, A: Arithmetic = REAL, m: int = 0
) -> Gather | None:
    with np.errstate(all="ignore"):
        return gather(network(T), n, d, plain(m or n * d, n * gates), largest, A)


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
def test_which_variables_are_copied(n: int, d: int, gates: bool) -> None:
    for sources in (SAME[n], TURNED.get(n, SAME[n]), SAME[n][::-1]):
        found = gathered(copying(n, d, sources, gates, scale=16.0, offset=-0.75), n, d, gates)
        assert found is not None
        wanted = [[sources[h][k] * d + c for h in range(n) for c in range(d)] for k in range(n)]
        assert (found.order.tolist(), found.scale, found.origin) == (wanted, 16.0, -0.75)


@pytest.mark.parametrize("A", [REAL, FLOAT32, FLOAT64, COARSE], ids=lambda A: A.name)
@pytest.mark.parametrize(("n", "largest", "scale", "offset"), [(1, 0.9, 8.0, 0.25), (2, 3.0, 2.0**-20, -5.0)])
def test_every_term_of_the_error_of_a_copy(
    A: Arithmetic, n: int, largest: float, scale: float, offset: float
) -> None:
    found = gathered(copying(n, 1, SAME[n], scale=scale, offset=offset), n, 1, largest=largest, A=A)
    assert found is not None
    leak, small = n * (2.0**-180 + 4 * A.tiny), 64 * n * (A.tiny + TINY)
    copied = largest * (leak + float(gamma(2 * n + 12, A.u)) * (1 + leak)) * UP + small * (2 + largest)
    size = scale * (largest + copied) + abs(offset * scale)
    assert found.error == (scale * copied + 4 * A.u * size) * UP + small * (2 + scale + largest)


def test_what_is_small_counts_where_there_is_nothing_else() -> None:
    """Of tokens that are 0, or so small that only underflow is left; a scale of any size."""
    for A, largest, scale in product((REAL, FLOAT32), (0.0, 2.0**-100, 2.0**30), (2.0**-100, 1.0, 2.0**40)):
        found = gathered(copying(2, 1, SAME[2], scale=scale), 2, 1, largest=largest, A=A)
        assert found is not None
        leak, small = 2 * (2.0**-180 + 4 * A.tiny), 128 * (A.tiny + TINY)
        copied = largest * (leak + float(gamma(16, A.u)) * (1 + leak)) * UP + small * (2 + largest)
        error = (scale * copied + 4 * A.u * scale * (largest + copied)) * UP + small * (2 + scale + largest)
        assert found.error == error


def test_more_tokens_than_the_arithmetic_can_add_are_not_copied() -> None:
    """gamma is infinite from 2 n + 12 = 1 / (4 u) on: no error is said."""
    T = copying(2, 1, SAME[2])
    for u, fits in ((0.0078, True), (1 / 64, False)):
        assert (gathered(T, 2, 1, A=replace(FLOAT32, u=u)) is not None) == fits


def test_logits_are_far_apart() -> None:
    T = copying(2, 1, SAME[2], apart=200.0)
    assert gathered(T, 2, 1) is not None
    for apart in (0.0, 100.0, 127.9):
        assert gathered(copying(2, 1, SAME[2], apart=apart), 2, 1) is None
    for apart in (0.0, -5.0):
        assert gathered(copying(1, 1, SAME[1], apart=apart), 1, 1) is not None  # there are no others
    one = copying(2, 1, SAME[2])
    one["attention.W_Q"][1, 1 + 1] = 0  # of one query of one head
    assert gathered(one, 2, 1) is None


def test_the_largest_logit_is_above_the_others_by_128_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the lower end of its ball, and at the upper ends of the others."""
    T = copying(2, 1, SAME[2])
    for low, high, fits in (
        (128.0, 0.0, True),
        (nextafter(128.0, 0), 0.0, False),
        (130.0, 2.5, False),
    ):
        logits = SimpleNamespace(m=np.zeros((1, 2, 2, 2)), low=np.zeros((1, 2, 2, 2)), high=np.zeros((1, 2, 2, 2)))
        for h, k in np.ndindex(2, 2):
            logits.m[0, h, k, h], logits.low[0, h, k, h], logits.high[0, h, k, h] = 256, low, 300
            logits.low[0, h, k, 1 - h], logits.high[0, h, k, 1 - h] = -300, high
        monkeypatch.setattr(hats, "dot", lambda *_, logits=logits: logits)
        assert (gathered(T, 2, 1) is not None) == fits
        if fits:
            logits.low[0, 0, 1, 0] = 127.0  # of one query of one head
            assert gathered(T, 2, 1) is None


@pytest.mark.parametrize(("low", "high"), [((2000.0, 1000.0), (0.0, 900.0)), ((1000.0, 2000.0), (900.0, 0.0))])
def test_logits_are_compared_for_each_query_of_each_head(
    monkeypatch: pytest.MonkeyPatch, low: tuple[float, ...], high: tuple[float, ...]
) -> None:
    """One query has logits that are near each other, though every other difference of these numbers is large."""
    logits = SimpleNamespace(**{name: np.zeros((1, 2, 2, 2)) for name in ("m", "low", "high")})
    for h, k in np.ndindex(2, 2):
        logits.m[0, h, k, h], logits.low[0, h, k, h], logits.high[0, h, k, h] = 5000, 2000, 5000
    monkeypatch.setattr(hats, "dot", lambda *_: logits)
    assert gathered(copying(2, 1, SAME[2]), 2, 1) is not None
    logits.low[0, 0, :, 0], logits.high[0, 0, :, 1] = low, high
    assert gathered(copying(2, 1, SAME[2]), 2, 1) is None


def test_every_token_sees_all_others_and_copies_each_once() -> None:
    T = copying(2, 1, SAME[2])
    assert gather(network(T), 2, 1, plain(2), 0.9, REAL) is not None
    assert gather(network(T, causal=True), 2, 1, plain(2), 0.9, REAL) is None
    for sources in ([[0, 0], [0, 0]], [[0, 0], [1, 0]], [[0, 1], [1, 1]]):
        assert gathered(copying(2, 1, sources), 2, 1) is None


@pytest.mark.parametrize("n", [1, 2])
def test_no_channel_overflows(n: int) -> None:
    """Whoever reads it: one that nobody reads may make 0 times infinity. All heads and components add up."""
    for part, largest, most in (
        ("W_O", 1.0, 2.0**124 / n),
        ("W_O", 0.25, 2.0**126 / n),
        ("positions", 1.0, 2.0**124 / n),
    ):
        for size, fits in ((nextafter(most, 0), True), (most, False)):
            T = copying(n, 1, SAME[n])
            if part == "W_O":
                for h in range(n):
                    T["attention.W_O"][h, :2, -1] = size / (2 * n), -size / (2 * n)
            else:
                T["embedding.positions"][0, -1] = -size
            assert (gathered(T, n, 1, largest=largest, A=FLOAT32) is not None) == fits, (part, size)


def entries(T: dict[str, Any], name: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The tensors with one entry of one of them changed."""
    for at in np.ndindex(T[name].shape):
        for by in (1.0, -0.5):
            other = T[name].copy()
            other[at] += by
            yield at, T | {name: other}


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (1, 2), (2, 2)])
def test_every_number_of_a_copy_is_compared(n: int, d: int, gates: bool) -> None:
    T = copying(n, d, TURNED.get(n, SAME[n]), gates)
    assert gathered(T, n, d, gates) is not None
    for name in ("embedding.lift", "attention.W_V", "readout.0.weight"):
        for at, other in entries(T, name):
            assert gathered(other, n, d, gates) is None, (name, at)
    for name in ("attention.W_Q", "attention.W_K"):
        for at, other in entries(T, name):
            if at[1] < d:
                assert gathered(other, n, d, gates) is None, (name, at)
    copies = range(d + n, d + n + n * d)
    for at, other in entries(T, "attention.W_O"):
        read = at[2] in copies or (gates and d <= at[2] < d + n)
        assert (gathered(other, n, d, gates) is None) == read, at
    for at, other in entries(T, "embedding.positions"):
        if at[1] < d or at[1] in copies or (gates and at[1] < d + n):
            assert gathered(other, n, d, gates) is None, at
    for (c,), other in entries(T, "readout.0.bias"):
        alone = n * d == 1 and c == 0
        assert (gathered(other, n, d, gates) is None) != alone, c


def test_nothing_else_is_done_to_tokens() -> None:
    T = copying(2, 1, SAME[2])
    w = T["embedding.lift"].shape[1]
    assert gathered(T | {"embedding.bias": np.zeros(w)}, 2, 1) is None
    assert gathered(T | {"feedforward.0.weight": np.eye(w), "feedforward.0.bias": np.zeros(w)}, 2, 1) is None
    for missing in ("embedding.lift", "embedding.positions"):
        assert (
            gathered({name: a for name, a in T.items() if name != missing and "positions" not in name}, 2, 1)
            is None
        )
    assert gathered(T, 2, 1, m=3) is None
    fewer = {name: T[name][..., :1] for name in ("readout.0.weight", "readout.0.bias")}
    assert gathered(T | fewer, 2, 1, m=1) is None  # the second token is not read
    assert gathered(T, 1, 1) is None
    longer = np.concatenate([T["embedding.positions"], np.full((1, w), 3.0)])
    assert gathered(T | {"embedding.positions": longer}, 2, 1) is not None  # a place that is not used
    gated = copying(2, 1, SAME[2], gates=True)
    assert gathered(gated, 2, 1, gates=True) is not None
    assert gather(network(gated), 2, 1, plain(2, 1), 0.9, REAL) is None
    assert gather(network(gated), 2, 1, plain(2, 3), 0.9, REAL) is None


def test_a_head_has_a_component_for_each_that_it_copies() -> None:
    T = copying(1, 2, SAME[1])
    for s, fits in ((2, True), (1, False)):
        cut_ = {f"attention.W_{x}": T[f"attention.W_{x}"][:, :, :s] for x in "QKV"}
        cut_["attention.W_O"] = T["attention.W_O"][:, :s]
        assert (gathered(T | cut_, 1, 2) is not None) == fits


def test_a_coordinate_is_one_copy_and_nothing_else() -> None:
    """Not a component of a head that is always 0, nor a token to which a copy is added, nor nothing at all."""
    T = copying(2, 1, SAME[2])
    copy, W, O = 1 + 2 + 1, T["readout.0.weight"], T["attention.W_O"]  # the channel of the second coordinate
    zero = O.copy()
    zero[1, 0, copy], zero[0, 1, copy] = 0, 1
    assert gathered(T | {"attention.W_O": zero}, 2, 1) is None
    moved, added = W.copy(), O.copy()
    moved[copy, 1], moved[0, 1], added[1, 0, copy], added[1, 0, 0] = 0, 8, 0, 1
    assert gathered(T | {"readout.0.weight": moved, "attention.W_O": added}, 2, 1) is None
    empty = W.copy()
    empty[:, 1] = 0
    assert gathered(T | {"readout.0.weight": empty}, 2, 1) is None


def test_a_scale_is_a_power_of_two() -> None:
    for scale in (2.0**-30, 0.5, 1.0, 2.0**30):
        found = gathered(copying(2, 1, SAME[2], scale=scale, offset=1.0), 2, 1)
        assert found is not None
        assert (found.scale, found.origin) == (scale, 1.0)
    for scale in (0.0, -1.0, 3.0, 0.75, nextafter(1.0, 2)):
        assert gathered(copying(2, 1, SAME[2], scale=scale), 2, 1) is None
    assert gathered(copying(2, 1, SAME[2], gates=True, scale=0.5), 2, 1, gates=True) is None  # gates have 1


@pytest.mark.parametrize("A", [REAL, FLOAT32, FLOAT64, COARSE], ids=lambda A: A.name)
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(
    ("H", "size", "scale", "error"), [(8.0, 9.0, 16.0, 0.01), (1.0, 0.0, 1.0, 0.0), (3.0, 2.0, 0.5, 0.0)]
)
def test_every_term_of_what_hats_round(
    A: Arithmetic, m: int, H: float, size: float, scale: float, error: float
) -> None:
    F = np.random.default_rng(m).normal(size=(3,) * m + (2,))
    steep = sum(float(np.abs(np.diff(F, axis=i)).max()) for i in range(m)) / H
    near, one = 3.0**m, (4.2 * (m + 3) + 3.1 * (2 * m + 3)) * 1.1 * A.u
    total = steep * error + near * one * 2 * size + float(gamma(near + 8, A.u)) * 4 * size
    flushed = 64 * m * m * near * (A.tiny + TINY) * (1 + scale) * (1 + size) * (1 + H)
    found = rounding(Hats(H, F, 0, size), Gather(np.zeros((1, m), int), scale, 0.0, error), A)
    assert found == total * UP + 2.0**-40 * size + flushed
    assert found > 0


def test_hats_that_round_too_much_are_not_bounded() -> None:
    """Together they must not open a gate; nothing may overflow."""
    none = Gather(np.zeros((1, 1), int), 1.0, 0.0, 0.0)
    most = 0.25 / (3 * (4.2 * 4 + 3.1 * 5) * 1.1)
    for u, fits in ((most * (1 - 1e-12), True), (most * (1 + 1e-12), False)):
        A = replace(FLOAT32, u=u)
        assert (rounding(plain(1), none, A) < inf) == (fits and gamma(11.0, u) < inf)
    assert gamma(11.0, most) < inf
    one = (4.2 * 4 + 3.1 * 5) * 1.1
    edge = next(u for u in (most, nextafter(most, 0), nextafter(most, 1)) if 3.0 * (one * u) == 0.25)
    assert rounding(plain(1), none, replace(FLOAT32, u=edge)) == inf
    for size, fits in ((nextafter(2.0**124, 0), True), (2.0**124, False)):
        assert (rounding(plain(1, size=size), none, FLOAT32) < inf) == fits
    many = Gather(np.zeros((1, 10), int), 1.0, 0.0, 0.0)
    assert [
        rounding(Hats(1.0, np.zeros((2,) * 10 + (1,)), 0, 1.0), many, A) < 1e-6 for A in (FLOAT64, FLOAT32)
    ] == [
        True,
        False,
    ]


def target(n: int, outputs: list[int], q: int = 1, per: str = "token") -> Program:
    lines = [["x", k, 0] for k in range(n)] + [["neg", 0]]
    entry = {"n": n, "d": 1, "per": per, "components": q, "lines": lines, "outputs": outputs}
    return read_program(entry, "target")


Asked = list[tuple[Program, Any, float, float, tuple[float, float], float]]


def asked(
    monkeypatch: pytest.MonkeyPatch,
    given: Hats,
    found: Gather | None,
    program: Program,
    box: tuple[float, float] = (0.0, 1.0),
    worst: Any = lambda _: 0.25,
    rounded: float = 0.125,
    limit: float = 0.5,
) -> tuple[float | str, Asked]:
    """What is said of hats and of what is gathered, and what is asked about simplices."""
    seen: Asked = []
    same: Any = object()

    def gathers(*args: Any) -> Gather | None:
        assert args == (same, program.n, program.d, given, max(map(abs, box)), FLOAT32)
        return found

    def rounds(*args: Any) -> float:
        assert args == (given, found, FLOAT32)
        return rounded

    monkeypatch.setattr(hats, "gather", gathers)
    monkeypatch.setattr(hats, "rounding", rounds)
    monkeypatch.setattr(hats, "sup_error", lambda *args: seen.append(args) or worst(len(seen)))
    return hats.judge(same, program, given, *box, limit, FLOAT32), seen


def test_what_is_asked_about_simplices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each different view of the variables once, with the outputs of all tokens that have it."""
    F = np.random.default_rng(0).normal(size=(3, 3, 3, 2))
    given = Hats(4.0, F, 0, 9.0)
    same, turned = np.array([[2, 0, 1]] * 3), np.array([[0, 1, 2], [1, 2, 0], [0, 1, 2]])
    axes = {(2, 0, 1): (1, 2, 0, 3), (0, 1, 2): (0, 1, 2, 3), (1, 2, 0): (2, 0, 1, 3)}
    for order, views in ((same, {(2, 0, 1): [0, 1, 2]}), (turned, {(0, 1, 2): [0, 2], (1, 2, 0): [1]})):
        for per in ("token", "sequence"):
            outputs = [0, 3, 1, 0, 2, 1] if per == "token" else [1, 3]
            program = target(3, outputs, 2, per)
            found = Gather(order, 8.0, -0.5, 0.0)
            said, seen = asked(monkeypatch, given, found, program, (-0.5, 0.25), lambda k: 0.25 / k)
            assert said == (0.25 + 0.125) * UP
            assert len(seen) == len(views)
            for (view, tokens), (part, G, start, width, box, limit) in zip(views.items(), seen, strict=True):
                moved = np.transpose(F, axes[view])
                if per == "token":
                    moved = np.concatenate([moved] * len(tokens), axis=-1)
                    outputs = [program.outputs[2 * k + c] for k in tokens for c in range(2)]
                assert (part.per, part.components, part.outputs) == ("sequence", len(outputs), tuple(outputs))
                assert (part.n, part.d, part.lines) == (3, 1, program.lines)
                np.testing.assert_array_equal(G, moved)
                assert (start, width, box, limit) == (-0.5, 0.5, (-0.5, 0.25), (0.5 - 0.125) / UP / UP)


def test_what_is_asked_about_simplices_behind_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every place its own share of the values."""
    F = np.random.default_rng(0).normal(size=(2, 2, 4))  # two places, two outputs
    for order, views in (([[0, 1], [0, 1]], [[0, 1]]), ([[0, 1], [1, 0]], [[0], [1]])):
        for per in ("token", "sequence"):
            program = target(2, [0, 2, 1, 0] if per == "token" else [1, 2], 2, per)
            given = Hats(4.0, F, 2, 9.0)
            _, seen = asked(monkeypatch, given, Gather(np.array(order), 4.0, 0.0, 0.0), program)
            assert len(seen) == len(views)
            for tokens, (part, G, *_) in zip(views, seen, strict=True):
                outputs = [program.outputs[2 * k + c] for k in tokens for c in range(2)] if per == "token" else []
                view = F if order[tokens[0]] == [0, 1] else F.swapaxes(0, 1)
                np.testing.assert_array_equal(G, np.concatenate([view[..., 2 * k : 2 * k + 2] for k in tokens], -1))
                assert list(part.outputs) == (outputs or [1, 2] * len(tokens))
                assert part.components == len(part.outputs)


def test_the_grid_covers_the_box_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at a whole number over the scale, and ends beyond what a coordinate may be off."""
    program, given = target(1, [0]), plain(1)  # two cells, from origin to origin + 8 / scale

    def said(box: tuple[float, float], **more: float) -> float | str:
        numbers = {"scale": 8.0, "origin": 0.0, "error": 0.0} | more
        found = Gather(np.zeros((1, 1), int), numbers["scale"], numbers["origin"], numbers["error"])
        return asked(monkeypatch, given, found, program, box)[0]

    fine, short = (0.25 + 0.125) * UP, "the grid of hats does not cover the box"
    assert said((0.0, 1.0)) == fine
    for box in ((0.0, nextafter(1.0, 2)), (-(2.0**-1074), 1.0)):
        assert said(box) == short
    assert said((0.0, 0.75), error=2.0) == fine
    assert said((0.0, 0.75), error=nextafter(2.0, 3)) == short
    assert said((0.0, 0.75), error=2.0**-1074) == fine
    assert said((0.0, 1.0), error=2.0**-1074) == short
    assert said((-2.0, -1.0), origin=-2.0) == fine
    assert said((-1.0, 0.5), origin=-2.0) == short
    odd = "the grid does not begin at a whole number, or its spacing is out of range"
    assert said((0.5, 1.0), origin=0.125) == fine
    assert said((0.5, 1.0), origin=0.0625) == odd
    far = 2.0**40
    assert said((far / 8 - 1 / 8, far / 8), origin=(far - 1) / 8) == fine
    for origin in (far / 8, -far / 8, inf, -inf):
        assert said((origin, origin), origin=origin) == odd
    for scale, fits in ((2.0**-900, True), (2.0**-901, False), (2.0**900, True), (2.0**901, False)):
        assert said((0.0, 1 / scale), scale=scale) == (fine if fits else odd)
    for scale in (2.0**-1024, 2.0**-1074):  # cells that are wider than all floats
        assert said((0.0, 1.0), scale=scale) == odd


def test_what_is_said_of_hats(monkeypatch: pytest.MonkeyPatch) -> None:
    program, given, found = target(1, [0]), plain(1), Gather(np.zeros((1, 1), int), 8.0, 0.0, 0.0)
    said = asked(monkeypatch, given, None, program)
    assert said == ("the layers before the hats are not seen to copy tokens by position", [])
    for rounded in (0.5, inf, np.nan):
        why = f"rounding alone may cost {rounded:.6g}"
        assert asked(monkeypatch, given, found, program, rounded=rounded) == (why, [])
    bound, ((*_, limit),) = asked(monkeypatch, given, found, program, rounded=nextafter(0.5, 0))
    assert bound == (0.25 + nextafter(0.5, 0)) * UP
    assert limit == (0.5 - nextafter(0.5, 0)) / UP / UP
    assert asked(monkeypatch, given, found, program, worst=lambda _: inf)[0] == inf
    for box in ((-1.0, 0.5), (-0.5, 1.0)):
        asked(monkeypatch, given, Gather(np.zeros((1, 1), int), 4.0, -1.0, 0.0), program, box)


def test_a_ball_is_what_a_head_copies() -> None:
    """Against the balls of the network itself: coordinates lie within the error of what is said."""
    for n, d in ((2, 1), (2, 2), (3, 1)):
        T = copying(n, d, TURNED[n], scale=4.0, offset=-1.0)
        rng = np.random.default_rng(n)
        found = gathered(T, n, d, largest=0.9, A=FLOAT32)
        assert found is not None
        x = rng.uniform(-0.9, 0.9, (5, n, d)).astype(np.float32).astype(np.float64)
        ((_, t),) = network(T).coordinates(x, np.full(5, n), 0.0, FLOAT32, False)
        wanted = 4.0 * (x.reshape(5, -1)[:, found.order] + 1.0)
        assert (np.abs(t.m - wanted) <= found.error).all()
