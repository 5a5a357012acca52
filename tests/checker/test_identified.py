"""Sequences that determine a layer, or do not: features, errors and verdicts beside sums of fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped import identified
from onelayer_checker.looped.definite import gamma
from onelayer_checker.looped.identified import Heads, ambiguous, difference, features, given, identifies, moderate
from onelayer_checker.looped.judge import OF_DATA, LoopJudge
from onelayer_checker.looped.network import build
from tests.checker.looped import LAYER

PLAIN = LAYER | {"context": None, "mean": False, "repeat": 1}
ITSELF = PLAIN | {"window": 1}


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


def heads(seed: int, H: int = 2, w: int = 3, s: int = 2, v: int = 4) -> Heads:
    Q, K, V = (numbers(seed + i, H, w, n) for i, n in enumerate((s, s, v)))
    return Heads(Q, K, V, numbers(seed + 3, H, v, w))


def tensors(own: Heads, outputs: int = 2) -> dict[str, Any]:
    found = {f"attention.W_{name}": getattr(own, name) for name in "QKVO"}
    return found | {"readout.0.weight": numbers(9, own.Q.shape[1], outputs), "readout.0.bias": np.ones(outputs)}


def judge(data: dict[str, Any], layers: tuple[Any, ...] = (PLAIN,), **more: Any) -> LoopJudge:
    held = tensors(heads(1)) | more
    if len(layers) > 1:
        held = {k.replace("readout", "1.readout"): a for k, a in held.items()}
        held |= {f"1.attention.W_{name}": getattr(heads(1), name) for name in "QKVO"}
    return LoopJudge(build(held, {"template": "looped/1", "layers": list(layers)}), held, data)


def claim(type_: str, **said: float) -> Claim:
    return Claim(type_, "real", "last", said)


def layer(Z: Any, own: Heads) -> list[list[Fraction]]:
    """What heads add to the last token of each sequence, in fractions."""
    found = []
    for tokens in ([[Fraction(u) for u in token] for token in sequence] for sequence in Z.tolist()):
        added = [Fraction(0)] * len(tokens[0])
        for Q, K, V, O in zip(*(getattr(own, name).tolist() for name in "QKVO"), strict=True):
            q, *_ = apply(Q, tokens[-1:])
            keys, values = apply(K, tokens), apply(V, tokens)
            scores = [sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0)) for k in keys]
            read = [
                sum((s * v[c] for s, v in zip(scores, values, strict=True)), Fraction(0)) for c in range(len(O))
            ]
            added = [a + b for a, b in zip(added, apply(O, [read])[0], strict=True)]
        found.append(added)
    return found


def apply(W: Any, rows: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*W, strict=True))
    return [[sum((u * Fraction(c) for u, c in zip(row, col, strict=True)), Fraction(0)) for col in columns]
            for row in rows]  # fmt: skip


def by_hand(Z: Any) -> list[list[float]]:
    """G_jk z_l for j <= k, one after another."""
    d = Z.shape[2]
    pairs = [(j, k) for j in range(d) for k in range(j, d)]
    return [[sum(t[j] * t[k] for t in S) * S[-1][l] for (j, k), l in product(pairs, range(d))] for S in Z.tolist()]


def test_features_are_sums_of_products_times_the_last_token() -> None:
    Z = numbers(20, 4, 3, 2)
    assert features(Z).tolist() == by_hand(Z)


def test_what_is_factorised_is_the_mean_with_its_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    spent: list[Any] = []

    def least(*of: Any) -> float:
        said.append(of)
        return 0.75

    monkeypatch.setattr(identified, "least_eigenvalue", least)
    monkeypatch.setattr(identified, "spend", lambda *of, **more: spent.append((*of, more)))
    Z = numbers(21, 4, 5, 3)
    Z[:, :, 1] = 0.0  # nothing is said of this channel
    Z[0, 0, 0], Z[3, 4, 2] = 1.0, -1.0
    found = identifies(judge({"tokens": Z}), claim("identifies", mu=0.75))
    assert (found.outcome, found.value) == ("proved", 0.75)
    assert found.why == "6 features of 4 sequences, least eigenvalue 0.75"
    ((A, radius),) = said
    H, sizes = (np.array(by_hand(part[:, :, [0, 2]])) for part in (Z, np.abs(Z)))
    assert A.tolist() == (H.T @ H / 4).tolist()
    assert radius.tolist() == (sizes.T @ sizes / 4 * (gamma(4 + 2 * 5 + 16) * 1.01) + 1e-150).tolist()
    assert spent == [("features of sequences", 4.0 * 4 * 6 * (6 + 5), {"kept": 32.0 * 4 * 6})]
    identifies(judge({"tokens": np.full((2, 1, 3), 2.0**-200)}), claim("identifies", mu=0.75))
    assert (said[1][1] == 1e-150).all()  # nothing but underflows
    more = identifies(judge({"tokens": Z}), claim("identifies", mu=np.nextafter(0.75, 1)))
    assert (more.outcome, more.value) == ("undecided", np.inf)
    assert more.why == "the least eigenvalue is known to be at least 0.75"
    assert identifies(judge({"tokens": Z}), claim("identifies", mu=0.0)).outcome == "undecided"
    monkeypatch.setattr(identified, "MOST_FEATURES", 6)
    assert identifies(judge({"tokens": Z}), claim("identifies", mu=0.5)).outcome == "proved"
    for most, tokens in ((5, Z), (6, 0 * Z)):
        monkeypatch.setattr(identified, "MOST_FEATURES", most)
        none = identifies(judge({"tokens": tokens}), claim("identifies", mu=0.5))
        assert (none.outcome, none.value) == ("undecided", np.inf)
        assert "features, at most" in none.why


def test_one_channel_has_one_feature() -> None:
    """z^3 of one token: the least eigenvalue is the mean of z^6."""
    Z = np.zeros((2, 1, 3))
    Z[:, 0, 2] = 1.0, 2.0
    found = identifies(judge({"tokens": Z}), claim("identifies", mu=32.4))
    assert found.outcome == "proved"
    assert 32.4 < found.value < 32.5
    assert identifies(judge({"tokens": Z}), claim("identifies", mu=32.5)).outcome == "undecided"


def test_numbers_that_are_allowed() -> None:
    assert (identified.MOST_FEATURES, identified.MOST, identified.LOST) == (4096, 1e20, 1e-150)
    assert moderate(np.array([1e20, -1e20])).tolist() == [1e20, -1e20]
    for wrong in (np.nextafter(1e20, np.inf), -np.inf, np.nan):
        with pytest.raises(Malformed, match="float64 numbers of moderate size"):
            moderate(np.array([0.0, wrong]))
    with pytest.raises(Malformed, match="float64 numbers of moderate size"):
        moderate(np.zeros(2, np.float32))


def test_a_layer_adds_what_its_heads_read(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[Any] = []
    monkeypatch.setattr(identified, "spend", lambda *of, **more: spent.append((*of, more)))
    Z, own = numbers(30, 5, 4, 3), heads(31)
    assert given(Z, own).tolist() == layer(Z, own)
    assert spent == [("linear attention", 8.0 * 60 * 12, {"kept": 8.0 * 60})]


def test_two_layers_differ_by_what_is_read_of_them() -> None:
    Z, first, second, R = numbers(40, 5, 4, 3), heads(41), heads(45, H=3, s=1, v=6), numbers(49, 3, 2)
    value, error = difference(Z, first, second, R)
    apart = [
        [p - q for p, q in zip(*rows, strict=True)] for rows in zip(layer(Z, first), layer(Z, second), strict=True)
    ]
    assert value.tolist() == apply(R.tolist(), apart)
    sizes = [
        [p + q for p, q in zip(*rows, strict=True)]
        for rows in zip(*(layer(np.abs(Z), positive(own)) for own in (first, second)), strict=True)
    ]
    whole = np.array(apply(np.abs(R).tolist(), sizes), np.float64)
    assert error.tolist() == (whole * gamma(4 + 5 * 3 + (2 + 4 + 1 + 6) + 2 * 5 + 32) * 1.01 + 1e-150).tolist()


def positive(own: Heads) -> Heads:
    return Heads(*(np.abs(getattr(own, name)) for name in "QKVO"))


def test_roundings_stay_within_the_error() -> None:
    rng = np.random.default_rng(50)

    def scale(*shape: int) -> Any:
        return rng.normal(size=shape) * 2.0 ** rng.integers(-30, 30, shape)

    for _ in range(20):
        own = [Heads(scale(2, 3, 2), scale(2, 3, 2), scale(2, 3, 2), scale(2, 2, 3)) for _ in range(2)]
        Z, R = scale(2, 3, 3), scale(3, 1)
        value, error = difference(Z, own[0], own[1], R)
        apart = [[p - q for p, q in zip(*rows, strict=True)]
                 for rows in zip(layer(Z, own[0]), layer(Z, own[1]), strict=True)]  # fmt: skip
        for row, at, off in zip(apply(R.tolist(), apart), value.tolist(), error.tolist(), strict=True):
            assert abs(row[0] - Fraction(at[0])) <= Fraction(off[0])


def second(Z: Any, at: Any, **changes: Any) -> dict[str, Any]:
    other = heads(60, H=4, s=1, v=5)
    return {"tokens": Z, "at": at} | {f"other.W_{name}": getattr(other, name) for name in "QKVO"} | changes


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_two_layers_are_apart_up_to_the_last_bit(sign: float) -> None:
    Z, at = numbers(61, 5, 4, 3), numbers(62, 1, 6, 3)
    data, R, other = second(Z, at), sign * numbers(9, 3, 2), heads(60, H=4, s=1, v=5)
    value, error = difference(Z, heads(1), other, R)
    there, slack = difference(at, heads(1), other, R)
    most, least = float((np.abs(value) + error).max()), float((np.abs(there) - slack).max())
    assert (np.abs(value) > 0).sum() > 1

    def judged(eps: float, delta: float) -> Verdict:
        return ambiguous(judge(data, **{"readout.0.weight": R}), claim("ambiguous", eps=eps, delta=delta))

    found = judged(most, least)
    assert (found.outcome, found.value) == ("proved", least)
    assert found.why == f"at most {most:.3g} apart on all sequences, at least {least:.6g} at the given input"
    for eps, delta in ((np.nextafter(most, 0), least), (most, np.nextafter(least, np.inf))):
        refused = judged(eps, delta)
        assert (refused.outcome, refused.value) == ("undecided", np.inf)
    for name in ("at", "other.W_Q", "other.W_K", "other.W_V", "other.W_O"):
        with pytest.raises(Malformed, match="no second layer"):
            ambiguous(
                judge({k: a for k, a in data.items() if k != name}), claim("ambiguous", eps=most, delta=least)
            )


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        ("Q", (4, 3)), ("Q", (2, 3, 1)), ("Q", (4, 4, 1)), ("Q", (4, 3, 2)), ("Q", (4, 3, 1, 1)),
        ("QK", (4, 3, 1, 1)),
        ("K", (4, 3)), ("K", (4, 3, 2)), ("K", (4, 4, 1)), ("K", (2, 3, 1)),
        ("V", (4, 3)), ("V", (2, 3, 5)), ("V", (4, 4, 5)), ("V", (4, 3, 4)), ("V", (4, 3, 5, 1)),
        ("O", (4, 5)), ("O", (2, 5, 3)), ("O", (4, 4, 3)), ("O", (4, 5, 4)), ("O", (3, 5, 3)),
    ],
)  # fmt: skip
def test_a_second_layer_of_other_shapes_is_malformed(names: str, shape: tuple[int, ...]) -> None:
    other = {f"other.W_{name}": np.ones(shape) for name in names}
    data = second(numbers(61, 5, 4, 3), numbers(62, 1, 6, 3), **other)
    with pytest.raises(Malformed, match="the second layer has other shapes"):
        ambiguous(judge(data), claim("ambiguous", eps=1e9, delta=1e-9))


def test_a_second_layer_is_as_wide_as_the_readout() -> None:
    wide = heads(60, H=4, w=5, s=1, v=5)
    data = second(numbers(61, 5, 4, 3), numbers(62, 1, 6, 3), **{f"other.W_{n}": getattr(wide, n) for n in "QKVO"})
    with pytest.raises(Malformed, match="the second layer has other shapes"):
        ambiguous(judge(data), claim("ambiguous", eps=1e9, delta=1e-9))


@pytest.mark.parametrize("name", ["tokens", "at", "other.W_Q", "other.W_K", "other.W_V", "other.W_O"])
def test_numbers_of_another_size_are_malformed(name: str) -> None:
    data = second(numbers(61, 5, 4, 3), numbers(62, 1, 6, 3))
    data[name] = data[name].copy()
    data[name][0, 0, 0] = 1e21
    with pytest.raises(Malformed, match="float64 numbers of moderate size"):
        ambiguous(judge(data), claim("ambiguous", eps=1e9, delta=1e-9))


@pytest.mark.parametrize("name", ["attention.W_Q", "attention.W_O", "readout.0.weight"])
def test_weights_of_another_size_are_malformed(name: str) -> None:
    data = second(numbers(61, 5, 4, 3), numbers(62, 1, 6, 3))
    huge = tensors(heads(1))[name] + 1e21
    with pytest.raises(Malformed, match="float64 numbers of moderate size"):
        ambiguous(judge(data, **{name: huge}), claim("ambiguous", eps=1e9, delta=1e-9))


def test_weights_in_float32_are_the_same_numbers() -> None:
    data = second(numbers(61, 5, 4, 3), numbers(62, 1, 6, 3))
    single = {k: a.astype(np.float32) for k, a in tensors(heads(1)).items()}
    asked = claim("ambiguous", eps=1e9, delta=1.0)
    assert ambiguous(judge(data, **single), asked) == ambiguous(judge(data), asked)


FULL = {"feedforward.0.weight": np.eye(3), "feedforward.0.bias": np.zeros(3)}
TWO = {"readout.0.weight": np.ones((3, 3)), "readout.0.bias": np.ones(3)}
TWO |= {"readout.1.weight": np.ones((3, 2)), "readout.1.bias": np.ones(2)}


@pytest.mark.parametrize(
    ("layers", "more"),
    [
        ((PLAIN | {"attention": "relu"},), {}), ((PLAIN | {"causal": True},), {}), ((PLAIN | {"context": 1},), {}),
        ((PLAIN | {"mean": True},), {}), ((PLAIN | {"repeat": 2},), {}), ((PLAIN, ITSELF), {}),
        ((PLAIN, PLAIN | {"context": 1, "mean": True}), {}), ((PLAIN,), FULL), ((PLAIN,), TWO),
        ((PLAIN,), {"attention.b_Q": np.ones((2, 2))}), ((PLAIN,), {"attention.b_K": np.ones((2, 2))}),
    ],
)  # fmt: skip
def test_other_layers_are_malformed(layers: tuple[Any, ...], more: dict[str, Any]) -> None:
    found = judge({"tokens": np.ones((2, 2, 3))}, layers, **more)
    for asked in (claim("identifies", mu=1e-9), claim("ambiguous", eps=1e9, delta=1e-9)):
        with pytest.raises(Malformed, match="not one of linear attention over all tokens"):
            OF_DATA[asked.type](found, asked)


def test_other_sequences_are_malformed() -> None:
    asked = claim("identifies", mu=1e-9)
    for wrong in (object(), judge({}), judge({"at": np.ones((2, 2, 3))})):
        with pytest.raises(Malformed, match="there are no sequences"):
            identifies(wrong, asked)
    fine = np.ones((2, 2, 3))
    for shape in ((2, 3), (2, 2, 2), (2, 2, 4), (0, 2, 3), (2, 0, 3), (1, 2, 2, 3), (1, 1, 3, 1)):
        for data in ({"tokens": np.ones(shape)}, {"tokens": fine, "at": np.ones(shape)}):
            with pytest.raises(Malformed, match=r"sequences must be \[N, n, width\]"):
                identifies(judge(data), asked)


def test_kinds_are_known_by_name() -> None:
    assert KINDS["identifies"].numbers == {"mu"}
    assert KINDS["ambiguous"].numbers == {"eps", "delta"}
    for name, by in (("identifies", identifies), ("ambiguous", ambiguous)):
        assert (KINDS[name].judge, OF_DATA[name], KINDS[name].read_target) == (by, by, None)
