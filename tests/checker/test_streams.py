"""What attention reads off the stream, piece by piece: sums, averages, blocks, and when nothing is looked at."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from onelayer_checker.core import graph
from onelayer_checker.core.averages import Totals
from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, Ball, dot, exact, softmax
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network, Stream, build
from tests.checker.large import ARITHMETICS
from tests.checker.test_graph import found, plainly

EVERY = list(ARITHMETICS.values())
EYE = np.eye(2)


def network(causal: bool = False, **attention: np.ndarray) -> Network:
    """Of width 2 with heads of size 2, which copy the stream unless they are given."""
    heads = len(next(iter(attention.values()), np.zeros(1)))
    T = {f"attention.W_{name}": np.tile(EYE, (heads, 1, 1)) for name in "QKVO"}
    T |= {f"attention.{name}": np.asarray(a, float) for name, a in attention.items()}
    T |= {"readout.0.weight": EYE, "readout.0.bias": np.zeros(2)}
    return build(T | {"readout.1.weight": np.ones((2, 1)), "readout.1.bias": np.zeros(1)}, causal)


NOTHING = np.zeros((1, 2, 2))
H = Ball(
    np.array([[[1, -8], [2, 3]], [[-5, 0.5], [0, 0]], [[7, 1], [-4, 2]]], float),
    np.array([[[0, 0.25], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [0.5, 0]]]),
)
IDS = np.array([[0, 1], [2, 2], [1, 0], [0, 0]])


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("radii", [1.0, 0.0])
def test_tokens_that_are_looked_up_have_their_numbers_radii_and_sums(A, radii) -> None:
    """Of a table some balls are points; the sums are those of the tokens that are there, and of no other."""
    h = Ball(H.m, H.r * radii)
    net = network(W_V=[[[1, 2], [-4, 1]]])
    looked_up, written_out = Stream(net, h, A, IDS), Stream(net, h[IDS, np.arange(2)], A)
    for name in ("h", "Q", "K", "V"):
        for _ in range(2):
            a, b = looked_up.get(name), written_out.get(name)
            assert a.m.tolist() == b.m.tolist()
            np.testing.assert_allclose(a.r, b.r, rtol=2.0**-50, atol=0)
    for name in ("K", "V"):
        for _ in range(2):
            one, other, plain = looked_up.totals(name), written_out.totals(name), Totals.of(looked_up.get(name))
            for part in ("m", "size", "r"):
                np.testing.assert_allclose(getattr(one, part), getattr(plain, part), rtol=2.0**-50, atol=0)
                np.testing.assert_allclose(getattr(other, part), getattr(plain, part), rtol=2.0**-50, atol=0)
        table = looked_up.found[name]
        assert one.widest == (np.abs(table.m) + table.r).max()
    some = looked_up.at(slice(1, 3))
    assert some.get("h").m.tolist() == looked_up.get("h").m[1:3].tolist()
    assert looked_up.at_ends(np.array([2, 1, 1, 2])).m.tolist() == H.m[[1, 2, 1, 0], [1, 0, 0, 1]].tolist()


def calm(h, r=0.0, **attention) -> list[bool]:
    m = np.asarray(h, float)
    streams = (Stream(network(**attention), Ball(m, np.broadcast_to(r, m.shape)), A) for A in (FLOAT32, FLOAT64))
    return [stream.is_calm for stream in streams]


@pytest.mark.parametrize("name", ["W_Q", "W_K", "b_Q", "b_K"])
@pytest.mark.parametrize("sign", [1, -1])
def test_queries_and_keys_are_known_to_stay_small_or_not(name, sign) -> None:
    """16 times the width 2, times the largest number of the stream and one more, times the largest weight."""
    zeros = {"W_Q": NOTHING, "W_K": NOTHING, "b_Q": NOTHING[:, 0], "b_K": NOTHING[:, 0]}
    for place, power, n in product((0, -1), (0, 40), (1, 5)):
        for more, known in ((0, False), (1, True)):
            for A, at in ((FLOAT32, 0), (FLOAT64, 1)):
                largest = zeros[name].copy()
                largest.reshape(-1)[place] = sign * A.big / 32 / 2.0 ** (power + more)
                h = np.zeros((2, n, 2))
                h.reshape(-1)[place] = -sign * (2.0**power - 1)
                assert calm(h, **zeros | {name: largest})[at] == known
                assert calm(0 * h, 2.0**power - 1, **zeros | {name: largest})[at] == known
    assert calm(np.full((1, 1, 2), 1e300), **zeros) == [True, True]


def test_what_would_overflow_is_not_taken_for_zero() -> None:
    """Keys are zero, and queries overflow: zero times infinity is nothing that an average could be made of."""
    X = np.full((1, 2, 2), 2.0**100)
    for weight, known in ((2.0**10, True), (2.0**100, False)):
        net = network(W_Q=[weight * EYE], W_K=NOTHING)
        assert net.unseeing(last=False)
        with np.errstate(invalid="ignore"):
            ((_, t),) = net.coordinates(X, np.array([2]), 0.0, FLOAT32, last=False)
        assert np.isfinite(t.r).all() == known


@pytest.mark.parametrize("zero", ["a row", "a column", "all but one", "the diagonal", "W but not b"])
@pytest.mark.parametrize("blind", [False, True])
def test_a_head_sees_unless_all_of_its_weights_are_zero(zero, blind) -> None:
    W = {
        "a row": [[1, 2], [0, 0]],
        "a column": [[0, 1], [0, 1]],
        "all but one": [[0, 0], [1, 0]],
        "the diagonal": [[0, 1], [-1, 0]],
        "W but not b": [[0, 0], [0, 0]],
    }
    given = {"W_Q": [W[zero]], "b_Q": [[0, float(zero == "W but not b")]]} | ({"W_K": NOTHING} if blind else {})
    net = network(**given)
    assert net.unseeing(last=False) == net.unseeing(last=True) == blind
    X = np.array([[[1, 0.5], [-0.25, 2]], [[3, 1], [0.5, 0.5]]])
    m, _ = found(net.tensors, X, np.array([2, 2]), 0.0, REAL, last=False)
    for i in range(2):
        np.testing.assert_allclose(m[i], plainly_of_two(net.tensors, X[i]), atol=1e-12)


def plainly_of_two(T, tokens) -> list[list[float]]:
    import tests.checker.test_graph as written_out

    before = written_out.W
    try:
        written_out.W = 2
        return plainly(T, tokens.tolist(), causal=False)
    finally:
        written_out.W = before


def test_one_query_stands_for_all_only_where_all_see_the_same() -> None:
    for causal, last in product((False, True), repeat=2):
        assert network(causal, W_Q=NOTHING).unseeing(last) == (last or not causal)
        assert network(causal, W_K=NOTHING).unseeing(last) == (last or not causal)
        assert not network(causal, W_V=NOTHING).unseeing(last)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_averages_are_divided_by_a_sum_of_weights(A, heads, last) -> None:
    """With four roundings more than a product has: all weights alike, some of them padding, or all different."""
    rng = np.random.default_rng(heads)
    h = exact(np.round(rng.standard_normal((2, 3, 2)) * 64) / 64)
    lengths = np.array([3, 2])
    visible = (np.arange(3) < lengths[:, None])[:, None, None, :]
    queries = 1 if last else 3
    blind = network(W_Q=np.zeros((heads, 2, 2)), W_V=np.round(rng.standard_normal((heads, 2, 2)) * 8) / 8)
    for seen, weights in (
        (visible, softmax(exact(np.zeros((2, 1, 1, 3))), visible, A)),
        (True, softmax(exact(np.zeros((2, 1, 1, 3))), True, A)),
    ):
        stream = Stream(blind, h, A)
        y, wanted = blind.equal(stream, seen, last), dot(weights, stream.heads("V"), A, extra=4)
        assert y.m.shape == y.r.shape == (2, heads, queries, 2)
        assert np.abs(y.m - wanted.m).max() < 1e-14
        np.testing.assert_allclose(y.r, np.broadcast_to(wanted.r, y.r.shape), rtol=1e-9)
    net = network(W_Q=np.round(rng.standard_normal((heads, 2, 2)) * 8) / 8)
    stream = Stream(net, h, A)
    y = net.weighed(stream, lengths, visible, last)
    q = stream.heads("Q")[np.arange(2), :, lengths - 1][:, :, None] if last else stream.heads("Q")
    wanted = dot(softmax(dot(q, stream.keys(), A), visible, A), stream.heads("V"), A, extra=4)
    assert (y.m.tolist(), y.r.tolist()) == (wanted.m.tolist(), wanted.r.tolist())


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_some_queries_at_a_time_are_all_of_them(monkeypatch, n, causal) -> None:
    rng = np.random.default_rng(n)
    net = network(causal, W_Q=rng.standard_normal((2, 2, 2)))
    h, lengths = exact(rng.standard_normal((3, n, 2))), np.array([n, 1, n])
    visible = (np.arange(n) < lengths[:, None])[:, None, None, :]
    visible = visible & np.tri(n, dtype=bool) if causal else visible
    whole = net.weighed(Stream(net, h, REAL), lengths, visible, last=False)
    for block in (1, 6 * n, 12 * n):
        monkeypatch.setattr(graph, "QUERIES", 1)
        monkeypatch.setattr(graph, "BLOCK", block)
        parts = net.weighed(Stream(net, h, REAL), lengths, visible, last=False)
        np.testing.assert_allclose(parts.m, whole.m, atol=1e-14)
        np.testing.assert_allclose(parts.r, whole.r, rtol=1e-6)


def test_vectors_are_not_looked_up_number_by_number() -> None:
    """They are not one number each, however few different numbers they are made of."""
    net = network(W_Q=[EYE])
    X = np.tile([[[0.0, 1.0], [1.0, 0.0]]], (9, 1, 1))
    assert net.known(X, 0.0, REAL) is None


def test_a_network_is_causal_only_if_that_is_said() -> None:
    net = network()
    assert not net.causal
    assert not build(dict(net.tensors)).causal
    assert not Network(net.tensors, net.dtype, net.feedforward, net.bottleneck, net.readout).causal
    assert network(causal=True).causal


def test_shapes_that_no_product_takes_are_refused() -> None:
    T = {name: a for name, a in network().tensors.items() if name != "embedding.lift"}
    line = {"embedding.lift": np.ones((2, 1)), "feedforward.0.weight": np.ones(2), "feedforward.0.bias": np.ones(2)}
    empty = {f"attention.W_{name}": np.zeros((0, 2, 2)) for name in "QKVO"}
    for wrong in (line, empty):
        with pytest.raises(Malformed) as error:
            build(T | wrong)
        assert error.value.gate == "graph"
