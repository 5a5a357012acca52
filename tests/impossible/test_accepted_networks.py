"""Of every kind of network: a claim is refused, or what it calls equal is equal in the network's own outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.contexts import hardmax
from onelayer.contexts.agreement import ids
from onelayer.errors import HypothesisError, OptionError
from onelayer.impossible import collision, constant_outputs, narrow_stream, order, proportional, zero_token
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.network.blocks import evaluate

Array = np.ndarray[Any, Any]
d, WIDTH, LONGEST = 2, 2, 8
#: What a network may have, and what of it a claim is made about all the same.
FEATURES = (
    *("linear", "relu", "mesa", "window", "context", "repeat", "further"),  # beyond one layer that averages
    *(
        "hardmax",
        "causal",
        "positions",
        "constant positions",
        "feedforward",
        "table",
        "b_Q",
        "bias",
        "deep readout",
    ),
)
BEYOND = FEATURES[:7]


def build(rng: np.random.Generator, features: set[str]) -> Transformer:
    """A network with exactly these features; its key biases and its one readout layer are no obstacle to any."""
    H, s = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    kind = next((k for k in ("linear", "relu", "mesa", "hardmax") if k in features), "softmax")

    def linear(inputs: int, outputs: int) -> Linear:
        return Linear(rng.normal(size=(inputs, outputs)), rng.normal(size=outputs))

    def attention() -> Attention:
        return Attention(
            *(rng.normal(size=(H, WIDTH, s)) for _ in range(3)),
            rng.normal(size=(H, s, WIDTH)) / 2,
            b_Q=rng.normal(size=(H, s)) if "b_Q" in features else None,
            b_K=rng.normal(size=(H, s)),
            ridge=np.ones(H) if kind == "mesa" else None,
            kind=kind,
            causal="causal" in features,
            context=0 if "context" in features else None,
            window=2 if "window" in features and kind != "mesa" else None,
        )

    places = {"positions": rng.normal(size=(LONGEST, WIDTH))}
    places |= {"constant positions": np.tile(rng.normal(size=WIDTH), (LONGEST, 1))}
    embedding = Embedding(
        lift=None if "table" in features else rng.normal(size=(d, WIDTH)),
        table=rng.normal(size=(5, WIDTH)) if "table" in features else None,
        bias=rng.normal(size=WIDTH) if "bias" in features else None,
        positions=next((array for name, array in places.items() if name in features), None),
    )
    stack = (linear(WIDTH, 4), linear(4, WIDTH)) if "feedforward" in features else ()
    readout = (linear(WIDTH, 5), linear(5, 2)) if "deep readout" in features else (linear(WIDTH, 2),)
    if "further" in features:
        further = (Transformer(attention(), feedforward=(linear(WIDTH, 4), linear(4, WIDTH)), readout=readout),)
        readout = ()
    else:
        further = ()
    repeat = 2 if "repeat" in features else 1
    return Transformer(attention(), embedding, stack, readout, repeat=repeat, further=further)


def same(model: Transformer, pairs: tuple[collision.Collision, ...]) -> bool:
    """Whether the outputs at the places of each pair are equal but for rounding."""
    for pair in pairs:
        y, z = (evaluate(model, X[None])[0, k] for X, k in zip((pair.first, pair.second), pair.places, strict=True))
        if np.abs(y - z).max() > 1e-9 * (1 + np.abs(y).max()):
            return False
    return True


def claim_of_zero_tokens(model: Transformer, rng: np.random.Generator) -> bool:
    pair = zero_token.witness(rng.normal(size=d))
    assert zero_token.agrees(model, pair)
    seen = True
    if not model.attention.causal:
        X = np.vstack([np.zeros(d), rng.normal(size=(3, d))])
        context = zero_token.conclusion(model, X)
        bare = replace(model, readout=())
        seen = bool(np.abs(evaluate(bare, X[None])[0, 0] - context).max() < 1e-9)
    return seen and same(model, (pair,))


def claim_of_shares(model: Transformer, rng: np.random.Generator) -> bool:
    pairs = proportional.witness(rng.normal(size=d), rng.normal(size=d), 3)
    assert proportional.agrees(model, pairs)
    return same(model, pairs)


def claim_of_order(model: Transformer, rng: np.random.Generator) -> bool:
    pairs = order.witness(rng.normal(size=(4, d)), rng.permutation(4))
    assert order.agrees(model, pairs)
    return same(model, pairs)


def claim_of_constants(model: Transformer, rng: np.random.Generator) -> bool:
    line = constant_outputs.witness(rng.integers(-3, 4, d), rng.integers(4, 8, d), 3)
    tokens = [Z[0] for Z in (line.first, line.middle, line.last)]
    said = [constant_outputs.conclusion(model, token) for token in tokens]
    found = [evaluate(model, Z[None])[0] for Z in (line.first, line.middle, line.last)]
    size = 1 + max(np.abs(y).max() for y in said)
    affine = np.abs(found[0] - 2 * found[1] + found[2]).max() < 1e-9 * size
    return bool(affine) and all(np.abs(y - z).max() < 1e-9 * size for y, z in zip(said, found, strict=True))


def claim_of_narrow_streams(model: Transformer, rng: np.random.Generator) -> bool:
    found = narrow_stream.witness(model, int(rng.integers(2, 6)))
    assert found.error_lower > 0.125 - 1e-15
    wanted = [narrow_stream.target(X)[0] for X in (found.first, found.second)]
    assert found.error_lower <= np.abs(wanted[0] - wanted[1]).max() / 2 + 1e-12
    size = 1 + float(sum(np.abs(array).max() for _, array in model.tensors())) ** 4
    y, z = (evaluate(model, X[None])[0, 0] for X in (found.first, found.second))
    return bool(np.abs(y - z).max() < 1e-12 * size)


def claim_of_hardmax(model: Transformer, rng: np.random.Generator) -> bool:
    """Of a layer, not of a network: it is asked by itself."""
    X, Y, shared = hardmax.witness(rng.normal(size=WIDTH), int(rng.integers(4, 8)))
    agrees = bool(hardmax.refutes(model.attention, X, Y))
    a = model.attention
    seen = Transformer(a, readout=())
    difference = evaluate(seen, X[None])[0, list(shared)] - evaluate(seen, Y[None])[0, list(shared)]
    return agrees and float(np.abs(difference).max()) < 1e-8


CLAIMS: dict[str, tuple[Callable[[Transformer, np.random.Generator], bool], set[str]]] = {
    "zero_token": (claim_of_zero_tokens, {"hardmax", "causal", "deep readout"}),
    "empirical_measure": (
        claim_of_shares,
        {"hardmax", "feedforward", "b_Q", "bias", "deep readout", "constant positions"},
    ),
    "equivariance": (
        claim_of_order,
        {"hardmax", "feedforward", "b_Q", "bias", "deep readout", "constant positions"},
    ),
    "constant_outputs": (claim_of_constants, {"hardmax", "causal", "b_Q", "bias", "constant positions"}),
    "narrow_stream": (
        claim_of_narrow_streams,
        {"hardmax", "causal", "b_Q", "bias", "deep readout", "constant positions"},
    ),
}
#: Theorem 1 is of a layer: what lies around it is no matter.
OF_A_LAYER = {"hardmax", "causal", "b_Q"}


@pytest.mark.parametrize("name", CLAIMS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_accepted_is_true(name: str, data: st.DataObject) -> None:
    """Any features together: only what a claim covers is accepted, and then the network does what it says."""
    claim, covered = CLAIMS[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    some = data.draw(st.sets(st.sampled_from(sorted(covered))) | st.sets(st.sampled_from(FEATURES)))
    model = build(rng, some)
    if some <= covered:
        assert claim(model, rng)
    else:
        with pytest.raises(HypothesisError, match=rf"\[{name}\]"):
            claim(model, rng)


@pytest.mark.parametrize(
    ("name", "feature"),
    [(name, feature) for name, (_, covered) in CLAIMS.items() for feature in FEATURES if feature not in covered],
)
def test_what_no_argument_covers_is_refused(name: str, feature: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(HypothesisError, match=rf"\[{name}\] needs .*; the model has \w.*\. Leave .*\.$"):
        CLAIMS[name][0](build(rng, {feature}), rng)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sets(st.sampled_from(sorted(OF_A_LAYER))))
def test_theorem_1_holds_of_every_layer_that_it_accepts(seed: int, some: set[str]) -> None:
    rng = np.random.default_rng(seed)
    assert claim_of_hardmax(build(rng, {"hardmax", *some}), rng)


@pytest.mark.parametrize("kind", ["linear", "relu", "mesa", "softmax", "hardmax window", "hardmax context"])
def test_theorem_1_is_of_plain_hardmax(kind: str) -> None:
    rng, some = np.random.default_rng(0), set(kind.split()) & set(FEATURES)
    with pytest.raises(HypothesisError, match=r"\[theorem_1\] needs a hardmax layer .*; the layer has .*\. Use"):
        claim_of_hardmax(build(rng, some), rng)


@pytest.mark.parametrize("feature", [*BEYOND, "positions"])
def test_collisions_are_compared_only_where_one_layer_is_all_there_is(feature: str) -> None:
    """`agrees` runs the first layer once, and does not answer for what comes after it, or for sums."""
    rng = np.random.default_rng(1)
    pair = zero_token.witness(rng.normal(size=d))
    with pytest.raises(OptionError, match=r"\[collision\] needs one layer .*; the model has \w.*\. Compare .*\.$"):
        collision.agrees(build(rng, {feature}), [pair])


@pytest.mark.parametrize("feature", ["causal", "window", "context"])
def test_ids_see_what_the_layer_shows(feature: str) -> None:
    rng = np.random.default_rng(2)
    attention = build(rng, {feature}).attention
    X = rng.normal(size=(5, WIDTH))
    X[1, 0] = 0.0  # no key
    np.testing.assert_allclose(ids(attention, X), evaluate(Transformer(attention), X[None])[0], atol=1e-13)
