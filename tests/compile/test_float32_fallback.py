"""Where nobody asks for a dtype, float64 is tried wherever float32 is too small: no such error reaches a person."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer import OnelayerError, memorize, plan
from onelayer.certificates.tolerance import Unproved
from onelayer.compile import prove
from onelayer.errors import PrecisionError

MAPPINGS = ["auto", "temperature", "shared_query", "lattice", "averages", "rank_one"]
READOUTS = ["auto", "plateaus", "boxes", "table", "retrieval", "bits", "triangular"]
TINY = float(np.float32(1e-40))  # a number of float32 without its full precision


@st.composite
def problems(draw):
    """Data that float32 holds exactly, at the edges of its range and of its precision."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, n, d = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 3])), draw(st.integers(1, 3))
    scale = 10.0 ** draw(st.sampled_from([-44, -39, -30, -5, 0, 5, 20, 30, 37]))
    kind = draw(st.sampled_from(["reals", "close", "ids"]))
    if kind == "ids":
        X = rng.integers(0, draw(st.sampled_from([2, 9, 100_000])), (N, n))
    elif kind == "close":
        X = np.float32(1 + rng.integers(0, 4 * N, (N, n, d)) * 2.0**-23)
    else:
        X = np.float32(rng.standard_normal((N, n, d))) * np.float32(scale)
    rows = (N,) if draw(st.booleans()) else (N, n)
    if draw(st.booleans()):
        Y = rng.integers(0, 5, rows)
    else:
        Y = np.float32(rng.standard_normal(rows)) * np.float32(
            draw(st.sampled_from([1e-41, 1e-38, 1.0, 1e30, 1e38]))
        )
    options = {"mapping": draw(st.sampled_from(MAPPINGS)), "readout": draw(st.sampled_from(READOUTS))}
    options |= {"positions": draw(st.booleans())}
    if draw(st.integers(0, 3)) == 0:
        options["default"] = draw(st.sampled_from([0, TINY, 3e38]))
    return X, Y, options


def outcome(X, Y, **options):
    """A model, or the error that a person would see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return memorize(X, Y, certify=False, **options)
        except OnelayerError as error:
            return error


@settings(max_examples=40, deadline=None)
@given(case=problems())
def test_what_float64_can_store_is_stored_without_asking(case) -> None:
    X, Y, options = case
    free = outcome(X, Y, **options)
    if isinstance(free, OnelayerError):
        asked = outcome(X, Y, dtype="float64", **options)
        assert isinstance(asked, OnelayerError), f"float64 can, and yet: {free}"
        assert type(asked) is type(free)
    else:
        assert np.array_equal(free.predict(X), Y) or options["readout"] == "triangular"


RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 3, 2)).astype(np.float32)
Y = RNG.integers(0, 3, (5, 3))
SHORTAGES = {
    "answers without full precision": (X, np.float32(1e-40) * (1 + Y.astype(np.float32)), {}),
    "a default without full precision": (X, Y.astype(np.float32), {"default": TINY}),
    "contexts that are too close": (
        RNG.standard_normal((300, 3, 2)).astype(np.float32),
        RNG.integers(0, 3, (300, 3)),
        {"mapping": "rank_one"},
    ),
}


@pytest.mark.parametrize("case", SHORTAGES)
def test_each_shortage_of_float32_ends_in_float64(case: str) -> None:
    X, Y, options = SHORTAGES[case]
    with pytest.raises(PrecisionError):
        memorize(X, Y, dtype="float32", certify=False, **options)
    model = memorize(X, Y, certify=False, **options)
    assert model.transformer.dtype == np.float64
    np.testing.assert_array_equal(model.predict(X), Y)
    found = plan(X, Y, **options)
    assert found.possible
    assert found.bytes == model.n_parameters * 8


def test_a_readout_that_is_too_coarse_when_it_is_built_is_built_in_float64() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((200, 3, 2)).astype(np.float32), rng.integers(0, 50, (200, 3))
    options = {"readout": "triangular", "mapping": "temperature"}
    with pytest.raises(PrecisionError, match=r"\[triangular\]"):
        memorize(X, Y, dtype="float32", certify=False, **options)
    model = memorize(X, Y, certify=False, **options)
    assert model.transformer.dtype == np.float64
    np.testing.assert_array_equal(model.predict(X), Y)
    assert plan(X, Y, **options).bytes == model.n_parameters * 8


def test_a_proof_that_is_demanded_and_fails_in_float32_is_tried_in_float64(monkeypatch) -> None:
    real = prove.certify_data

    def only_float64(model, *given, **options):
        if model.transformer.dtype == np.float32:
            raise Unproved("memorize", "more bits", "too few", "Use float64.")
        return real(model, *given, **options)

    monkeypatch.setattr(prove, "certify_data", only_float64)
    assert memorize(X, Y, certify=True).certificate is not None
    assert memorize(X, Y, certify=True).transformer.dtype == np.float64
    assert memorize(X, Y).transformer.dtype == np.float32  # not demanded: the ledger says why there is none
    with pytest.raises(Unproved):
        memorize(X, Y, dtype="float32", certify=True)


def test_a_token_that_rounding_makes_zero_is_none_in_float64() -> None:
    """Centred in float32, one of these tokens is zero, and no direction has a level for it."""
    units = [[[1, 10, 1], [8, 8, 6], [2, 6, 1]], [[11, 2, 7], [1, 11, 2], [14, 8, 5]]]
    units += [[[13, 5, 11], [4, 10, 13], [14, 1, 3]], [[12, 5, 13], [12, 15, 0], [6, 14, 5]]]
    X, Y = (1 + 2.0**-23 * np.array(units)).astype(np.float32), [[0, 0, 2], [1, 2, 4], [0, 0, 0], [2, 4, 0]]
    model = memorize(X, Y, mapping="rank_one", certify=False)
    assert model.predict(X).tolist() == Y
    assert model.ledger["dtype"] == "float64"


def test_float32_is_given_up_at_once_where_its_bits_do_not_suffice() -> None:
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 3_000, k).tolist() for k in (128, 64, 100, 90, 128, 77)]
    Y = [[(token * 7 + i) % 9 for token in row] for i, row in enumerate(X)]
    said: list[str] = []
    model = memorize(X, Y, certify=False, on_step=said.append)
    assert model.ledger["dtype"] == "float64"
    assert [line for line in said if line.endswith("float32")] == ["looking for contexts: lattice, rank 7, float32"]
