"""Heads of formulas part by part: what is read, what a head is taken for, and every factor of what it costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attacks.counterexamples import bundle
from attacks.forged_formulas import HEAD, X, about, make_bundle, one
from onelayer_checker import check
from onelayer_checker.core.balls import EXP_U, FLOAT16, FLOAT32, FLOAT64, NORMAL, REAL, TINY, UP, Ball, U, gamma
from onelayer_checker.functions import pooled
from onelayer_checker.functions.blocks import Number, domain
from onelayer_checker.functions.branch import middle
from onelayer_checker.functions.formulas import NAMED, Meaning, Undefined, read_formula
from onelayer_checker.functions.pooled import Head, attention, average
from onelayer_checker.functions.rounding import Value, affine, products

Y: list[Any] = ["y", 0]
MEAN = [X, Y, ["mean", 1], ["add", 0, 2]]
CHORD = [([[1]], [0]), ([[1]], [0])]


def close(wanted: Any) -> Any:
    return pytest.approx(wanted, rel=1e-13, abs=0)


def meaning(lines: list[Any], low: float = 0.0, high: float = 1.0, **more: Any) -> Meaning:
    entry = {"d": 1, "tokens": 4, "per": "token", "box": [[low.hex(), high.hex()]], "lines": lines, "stages": []}
    return Meaning(read_formula(entry | {name: [0] for name in NAMED} | more, "target"))


def tensors(**parts: Any) -> Any:
    return SimpleNamespace(tensors={f"attention.{name}": np.array(a, float) for name, a in (HEAD | parts).items()})


def head_of(m: Meaning, h: list[Number], lines: tuple[int, ...], **parts: Any) -> Head:
    own, other = ([pooled._polynomial(m, x, swapped) for x in h] for swapped in (False, True))
    return pooled._head(tensors(**parts), m, 0, own, other, h, lines)


def test_what_is_read_is_off_by_its_parts() -> None:
    h = [Number(0, 0.0, 0.25), Number(0, 0.0, 0.5), Number(0, 0.0, 7.0)]
    p, off = pooled._read_value(np.array([2.0, -3.0, 0.0]), [{(): 1}] * 3, h, 5.0)
    assert p == {(): 5 + 2 - 3}
    assert off == close((0.5 + 1.5) * UP * UP)


def test_logits_are_off_by_products_of_sizes_and_errors() -> None:
    """q = (2 x, x) and k = (3 y, -5 y), x and y off by 1/8: of sizes 2, 1 and 3, 5; tokens in [1/2, 1]."""
    m = meaning([*MEAN, ["mul", 0, 1], ["average", 4, 1]], 0.5)
    parts = {"W_Q": [[[2, 1]]], "W_K": [[[3, -5]]], "W_V": [[[1, 0]]], "W_O": [[[1], [0]]]}
    found = head_of(m, [Number(0, 0.0, 0.125)], (5,), **parts)
    e = 0.125 * UP * UP
    wanted = (2 * 3 * e + 3 * 2 * e + 6 * e * e + 1 * 5 * e + 5 * 1 * e + 5 * e * e) * UP * UP
    assert found.logit == m.normal(4)  # 2 x 3 y - x 5 y
    assert found.near == close(wanted)
    assert head_of(m, [Number(0, 0.0, 0.125)], (0,), **parts).near == close(1 + wanted)


def test_what_is_the_same_for_all_tokens_is_no_part_of_a_logit() -> None:
    m, h = meaning([Y, X, ["add", 0, 1], ["largest", 2]]), [Number(1, 0.0, 0.0)]
    assert head_of(m, h, (), W_Q=[[[1]]], b_K=[[5]]).near < 1e-12  # 5 x
    sharp = head_of(m, h, (3,), W_K=[[[8]]], b_Q=[[1]])  # 8 y; of x + y the largest has the same weights
    assert sharp.largest == m.normal(2)
    assert sharp.near < 1e-12
    assert sharp.sharp == 8 / UP


def test_a_largest_value_is_seen_where_a_head_has_its_logits() -> None:
    lines = [X, Y, one(1), ["add", 1, 2], ["largest", 3], ["mul", 1, 1], ["largest", 5], ["largest", 2]]
    lines += [one(8), ["add", 0, 8], ["mul", 9, 1], ["largest", 10]]
    m, h = meaning(lines), [Number(0, 0.0, 0.0)]
    eight = {"W_K": [[[8]]], "b_Q": [[1]]}
    assert head_of(m, h, (4,), **eight).sharp == 8 / UP  # the largest of y + 1
    for other in (6, 7, 11):  # of y^2, of a number, and of x y + 8 y
        assert head_of(m, h, (other,), **eight).largest is None


@pytest.mark.parametrize(("power", "seen"), [(500, True), (501, False), (-500, True), (-501, False)])
def test_how_sharp_a_head_may_be(power: int, seen: bool) -> None:
    m = meaning([X, Y, ["largest", 1]])
    found = head_of(m, [Number(0, 0.0, 0.0)], (2,), W_K=[[[2.0**power]]], b_Q=[[1]])
    assert (found.largest is not None) == seen


def test_the_nearest_of_several_lines_is_taken() -> None:
    """Logits 8 y + y^2/2, from channels y and y^2, are those of 7; the largest of y is 1/2 off."""
    lines = [X, Y, ["mul", 1, 1], one(8), ["mul", 3, 1], one(0.5), ["mul", 5, 2], ["add", 4, 6], ["average", 7, 1]]
    lines += [["largest", 1], ["mul", 0, 0], ["average", 4, 1], ["average", 1, 1]]
    m, h = meaning(lines), [Number(0, 0.0, 0.0), Number(10, 0.0, 0.0)]
    parts = {"W_Q": [[[0], [0]]], "W_K": [[[8], [0.5]]], "b_Q": [[1]], "W_V": [[[1], [0]]], "W_O": [[[1, 0]]]}
    for order in ((8, 9), (9, 8), (8, 12), (12, 8), (8, 11)):
        assert head_of(m, h, order, **parts).logit == m.normal(7)
    eight = parts | {"W_K": [[[8], [0]]]}
    for order in ((9, 11), (11, 9)):  # both are exact: a sharp head is the largest
        assert head_of(m, h, order, **eight).largest == m.normal(1)


def test_factors_of_the_error_of_a_head() -> None:
    wide = np.full(1, -1.0), np.full(1, 2.0)
    assert Head({}, None, 0.25).error(wide, 4) == close(0.25 * 3 / 2 * UP * UP)
    assert Head({}, {}, 0.25, 4.0).error(wide, 4) == pytest.approx(
        (2 * pooled.LOG_TWO + 0.5) / 4 * UP, rel=1e-14, abs=0
    )
    assert Head({}, None, 0.25).sharp == 0


def numbers(lines: list[Any], stage: tuple[int, ...], h: list[Number], low: float = 0.0, **parts: Any) -> Any:
    return attention(tensors(**parts), meaning(lines, low, low + 1), h, stage, REAL)


def test_a_stream_that_is_exact_is_off_by_nothing() -> None:
    (found,) = numbers(MEAN, (3,), [Number(0, 0.0, 0.0)])
    assert found == Number(3, 0.0, TINY, 0.0)


def test_the_difference_to_a_line_is_an_offset_and_a_radius() -> None:
    """3/4 of a mean of numbers in [1, 2] is between 1/4 and 1/2 below it."""
    (found,) = numbers(MEAN, (3,), [Number(0, 0.0, 0.0)], 1.0, W_V=[[[0.75]]])
    assert found.offset == close(-0.375)
    assert found.error == close(0.125 * UP * UP)
    (found,) = numbers(MEAN, (3,), [Number(0, 0.0, 0.0)], 1.0, W_V=[[[1.25]]])
    assert (found.offset, found.error) == (close(0.375), close(0.125 * UP * UP))


def test_errors_of_values_pass_through_the_output_matrix() -> None:
    (found,) = numbers(MEAN, (3,), [Number(0, 0.0, 0.25)], W_V=[[[-2]]], W_O=[[[-0.5]]])
    assert found.error == close((0.25 + 0.5 * (0.5 * UP * UP) * UP) * UP * UP)
    largest = [X, Y, ["largest", 1], ["add", 0, 2]]
    h = [Number(0, 0.0, 0.001)]
    (found,) = numbers(largest, (3,), h, W_K=[[[8]]], b_Q=[[1]], W_V=[[[0.75]]])
    off = 0.00075 * UP * UP + 0.25 + (2 * pooled.LOG_TWO + 2 * 0.008 * UP**4) / (8 / UP) * UP
    assert found.error == close((0.001 + off * UP) * UP * UP)


def test_a_number_is_its_own_largest_value_in_every_order() -> None:
    """A channel that holds the number 2 is averaged by a sharp head: it stays 2."""
    lines = [X, Y, ["largest", 1], one(2), ["add", 3, 3]]
    parts = {"W_Q": [[[0], [0]]], "W_K": [[[8], [0]]], "b_Q": [[1]], "W_V": [[[0], [1]]], "W_O": [[[0, 1]]]}
    h = [Number(0, 0.0, 0.0), Number(3, 0.0, 0.0)]
    sharp = attention(tensors(**parts), meaning([*lines, ["add", 2, 0]]), h, (5, 4), REAL)[1]
    assert sharp.error == pytest.approx(2 * pooled.LOG_TWO / 8, rel=1e-9)


def test_a_stream_without_a_bound_is_undefined() -> None:
    with pytest.raises(Undefined, match="channel 0"):
        numbers(MEAN, (3,), [Number(0, 0.0, np.inf)])


def value(size: float, error: float) -> Value:
    """Of a quarter of its size around the rest."""
    parts = (np.full((1, 1, 1), part * size / UP) for part in (0.75, 0.25))
    return Value(Ball(*parts), np.full((1, 1, 1), error))


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64, REAL])
@pytest.mark.parametrize(
    ("size", "late", "reach", "off"),
    [(3, 1e-9, 2, 1e-8), (0, 1e-9, 0.5, 0), (40, 0.01, 1, 0.25), (0, 0, 0, 0), (0, 0, 3, 0), (2, 0.125, 0, 0.5)],
)
@pytest.mark.parametrize("sharp", [0.0, 0.5, 16.0])
def test_every_part_of_the_rounding_of_an_average(
    A: Any, size: Any, late: Any, reach: Any, off: Any, sharp
) -> None:
    n = 5
    found = float(average(value(size, late), value(reach, off), n, np.full((1, 1, 1), sharp), A).error[0, 0, 0])
    L = 2 * size * (2 * U + 2 * A.roundings * A.u) + late * (1 + 4 * A.roundings * A.u) + 2 * EXP_U + A.exp_error
    L = L * UP * UP if size or late else 0.0
    x = float(gamma(18, A.u)) * UP
    late = 2 * L / sharp if sharp else L * (0.25 * reach / UP)
    lost = 8 * 13 * 13 * (A.tiny + NORMAL) * (2 + reach + off) + TINY
    moved = off * (1 + x + x * x) + (reach + off) * (x + x * x) + late * UP + lost
    assert found == close(moved * UP * UP)


def test_where_an_average_has_no_bound() -> None:
    def bound(size: float, late: float, reach: float = 1.0, sharp: float = 0.0) -> float:
        found = average(value(size, late), value(reach, 0), 2, np.full((1, 1, 1), sharp), FLOAT32)
        return float(found.error[0, 0, 0])

    none = np.zeros((1, 1, 1))
    with np.errstate(all="ignore"):
        many = [average(value(0, 0), value(1, 0), n, none, FLOAT16).error[0, 0, 0] for n in (100, 610)]
    assert many[0] < np.inf  # gamma(2 n + 8) is 0.1, and infinite
    assert many[1] == np.inf
    assert bound(0, 0.9999) < np.inf  # L is just below 1, and just above
    assert bound(0, 1.0001) == np.inf
    assert bound(0, 1.0001, sharp=1.0) < np.inf
    assert bound(0.99 * FLOAT32.big / 4, 0, sharp=2.0**126) < np.inf
    assert bound(1.01 * FLOAT32.big / 4, 0, sharp=2.0**126) == np.inf


def test_rounding_of_the_stream_head_by_head() -> None:
    """Two heads of two dimensions: queries, keys and values of each are its own."""
    m = meaning(MEAN, 1.0, 3.0)
    h = [Number(0, 0.5, 0.25, 1e-6), Number(0, -8.0, 0.0, 2e-6), Number(0, 0.0, 0.0, 0.0)]
    W = {
        name: np.arange(1.0, 13.0).reshape(2, 3, 2) ** power / 50
        for name, power in zip("QKV", (0, 1, 2), strict=True)
    }
    O = np.arange(1.0, 13.0).reshape(2, 2, 3) ** 2
    parts = {f"W_{name}": a for name, a in W.items()} | {"W_O": O, "b_Q": [[1, 2], [3, 4]], "b_K": [[2, 0], [1, 0]]}
    network = tensors(**parts)
    found = pooled._stream_rounding(network, m, h, [0.0, 16.0], FLOAT32)
    ends = np.array([domain(m, x) for x in h])
    assert ends == pytest.approx(np.array([[1.5, 3.5], [-7, -5], [1, 3]]))
    centre, radius = middle(ends[:, 0], ends[:, 1])
    stream = Ball(centre[None], (radius[None] + [[0.25, 0, 0]]) * UP)
    held = Value(stream, np.array([[1e-6, 2e-6, 0]]))
    outs = []
    for g, sharp in enumerate((0.0, 16.0)):
        T = network.tensors
        q, k = (affine(held, W[name][g], T[f"attention.b_{name}"][g], FLOAT32).reshape(1, 1, 2) for name in "QK")
        v = affine(held, W["V"][g], 0.0, FLOAT32).reshape(1, 1, 2)
        outs.append(average(products(q, k.swap(1, 2), FLOAT32), v, 4, np.full((1, 1, 1), sharp), FLOAT32))
    joined = Value(
        Ball(*(np.concatenate([getattr(o.real, part)[0] for o in outs], axis=1) for part in "mr")),
        np.concatenate([o.error[0] for o in outs], axis=1),
    )
    wanted = affine(joined, np.concatenate([O[0], O[1]]), held, FLOAT32).error[0]
    assert found == close(wanted.tolist())
    assert pooled._stream_rounding(network, m, h, [0.0, 16.0], REAL) == [0.0] * 3


def captured(monkeypatch: pytest.MonkeyPatch, box: list[str], A: Any) -> list[Number]:
    """The numbers of a token, as attention sees them."""
    seen: list[list[Number]] = []

    def attention(*given: Any) -> list[Number]:
        seen.append(given[2])
        raise Undefined("seen")

    monkeypatch.setattr(pooled, "attention", attention)
    claim = about(A.name, 1.0, [X], [[0], [0]], box=[box])
    check(make_bundle("float64" if A is REAL else A.name, CHORD, claim).files())
    return seen[0]


@pytest.mark.parametrize("A", [REAL, FLOAT32, FLOAT64])
def test_tokens_are_rounded_where_they_are_read(monkeypatch: pytest.MonkeyPatch, A: Any) -> None:
    for low, high, size in ((-3.0, 1.0, 3.0), (0.0, 2.0, 2.0), (0.0, 1e-30, 1e-30)):
        (found,) = captured(monkeypatch, [low.hex(), high.hex()], A)
        assert found.moved == close(0 if A is REAL else size * A.u * UP + A.tiny)
        assert (found.line, found.offset, found.error) == (0, 0.0, 0.0)


def test_the_error_is_that_of_the_worst_output(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [Number(0, -0.25, 0.5, 0.125), Number(0, 0.0, 0.5, 0.0)]
    monkeypatch.setattr(pooled, "last", lambda *_: given)
    for order in ((0, 1), (1, 0)):
        claim = about("real", 2.0, [X], [[0], [0]], outputs=[0, 0], meant=[0, 0], planned=[0, 0])
        made = make_bundle("float64", [([[1]], [0]), ([[1, 1]], [0, 0])], claim)
        made.data["answers"] = np.zeros((1, 2))
        given[:] = [given[k] for k in order]
        assert check(made.files()).claims[0].verdict.value == close(0.875 * UP * UP)


def test_a_bound_is_kept_or_not() -> None:
    lines, stages = [X, ["mul", 0, 0]], [[0], [0]]

    def verdict(bound: float) -> Any:
        return check(make_bundle("float64", CHORD, about("real", bound, lines, stages)).files()).claims[0].verdict

    found = verdict(1.0)
    assert found.outcome == "proved"
    assert verdict(found.value).outcome == "proved"
    less = verdict(float(np.nextafter(found.value, 0)))
    assert (less.outcome, less.value) == ("undecided", found.value)


def model(**more: Any) -> dict[str, Any]:
    layers = {
        f"readout.{i}.{name}": a
        for i, parts in enumerate(CHORD)
        for name, a in zip(("weight", "bias"), parts, strict=True)
    }
    return layers | {f"attention.{name}": a for name, a in HEAD.items()} | more


def test_what_a_formula_knows_of_sequences() -> None:
    claim = about("real", 1.0, MEAN, [[3], [3]])
    two = bundle("float64", model(), [[[0.5], [0.25]]], [0.0, 0.0], claim)
    assert check(two.files()).result == "VERIFIED"
    assert two.names is not None
    two.certificate["graph"]["causal"] = two.names["causal"] = True
    assert "knows no places" in check(two.files()).why
    placed = model(**{"embedding.lift": [[1.0]], "embedding.positions": [[0.0], [0.0]]})
    assert "knows no places" in check(bundle("float64", placed, [[[0.5], [0.25]]], [0.0, 0.0], claim).files()).why


def test_a_lift_and_layers_before_attention_have_lines_of_their_own() -> None:
    """(x, x + 1/4) is lifted, a layer passes it on, and a head adds the mean of the second channel to the first."""
    lines = [X, Y, one(0.25), ["add", 0, 2], ["mean", 1], ["add", 0, 4], ["add", 5, 2]]
    lines.append(["add", 0, 3])
    more = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    parts: dict[str, Any] = {"embedding.lift": [[1.0, 1.0]], "embedding.bias": [0.0, 0.25]}
    parts |= {"feedforward.0.weight": more, "feedforward.1.weight": np.eye(3, 2)}
    parts |= {"feedforward.0.bias": np.zeros(3), "feedforward.1.bias": np.zeros(2)}
    parts |= {"readout.0.weight": [[1.0], [0.0]], "readout.0.bias": [0.0], "readout.1.weight": [[1.0]]}
    parts |= {"readout.1.bias": [0.0], "attention.W_Q": np.zeros((1, 2, 1)), "attention.W_K": np.zeros((1, 2, 1))}
    parts |= {"attention.W_V": [[[0.0], [1.0]]], "attention.W_O": [[[1.0, 0.0]]]}

    def outcome(stages: list[list[int]]) -> tuple[str, str]:
        found = check(
            bundle(
                "float64",
                parts,
                [[[0.5]]],
                [0.0],
                about("real", 1e-9, lines, stages, outputs=[6], meant=[6], planned=[6]),
            ).files()
        )
        return found.result, found.claims[0].verdict.why

    good = [[0, 3], [0, 3, 7], [0, 3], [6, 3], [6]]
    assert outcome(good)[0] == "VERIFIED"
    for k in range(4):
        for wrong in ([4, 3], [0, 4], [0]):
            assert outcome([*good[:k], wrong, *good[k + 1 :]])[0] == "UNKNOWN"
    for shorter in (good[1:], good[:3], [*good, [6]], good[:4], [*good, [6], [6]]):
        assert "number of layers" in outcome(shorter)[1]
    without = {name: a for name, a in parts.items() if name != "embedding.bias"}
    plain = [X, Y, ["mean", 1], ["add", 0, 2], ["add", 0, 0]]
    claim = about(
        "real", 1e-9, plain, [[0, 0], [0, 0, 4], [0, 0], [3, 0], [3]], outputs=[3], meant=[3], planned=[3]
    )
    assert check(bundle("float64", without, [[[0.5]]], [0.0], claim).files()).result == "VERIFIED"


def test_lines_that_are_nested_too_deeply_leave_a_claim_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(*_: Any) -> float:
        raise RecursionError

    monkeypatch.setattr(pooled, "largest_error", follow)
    verdict = check(make_bundle("float64", CHORD, about("real", 1.0, [X], [[0], [0]])).files()).claims[0].verdict
    assert (verdict.outcome, verdict.value) == ("undecided", np.inf)
    assert "nested too deeply" in verdict.why
