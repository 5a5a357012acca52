"""The router: its network says what its sums say, for certain, and equal contexts are never parted."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.errors import HypothesisError
from onelayer.sharded.router import Places, draw_router

rng = np.random.default_rng(1)


def router_of(X, shards: int, places: Places | None = None, dtype="float32"):
    n, width = X.shape[1], X.shape[2] if X.ndim == 3 else int(X.max()) + 1
    if X.ndim == 3:
        places = (places or Places.draw(X[::5].reshape(-1, width), 0)).seen(X)
    router = draw_router(places, n, width, np.dtype(dtype), 0)
    return router.cut(router.sums(X[::3]), shards)


def kinds():
    yield "normal", rng.standard_normal((600, 8, 5), dtype=np.float32)
    yield "one component", rng.standard_normal((600, 8, 1), dtype=np.float32)
    yield "pixels", rng.integers(0, 4, (600, 8, 20)).astype(np.float32)
    yield "long", rng.standard_normal((60, 200, 3), dtype=np.float32)
    yield "far from zero, in float64", 1e6 + rng.standard_normal((600, 8, 3))
    yield "words", rng.integers(0, 50, (600, 8))


@pytest.mark.parametrize(("name", "X"), list(kinds()))
def test_the_network_is_proved_to_send_every_sequence_where_the_sums_do(name, X) -> None:
    dtype = "float64" if X.dtype == np.float64 else "float32"
    router = router_of(X, 5, dtype=dtype)
    shards = router.shards(X)
    assert router.count > 1, name
    assert set(shards.tolist()) == set(range(router.count))
    model = router.model(tuple(range(int(X.max()) + 1)) if X.ndim == 2 else None)
    assert np.array_equal(model.predict(X), shards)
    assert model.certify(X, shards).verify(require=[f"memorizes {dtype}"]).result == "VERIFIED"


def test_shards_are_about_equally_full_and_reordered_sequences_stay_together() -> None:
    X = rng.standard_normal((4000, 8, 5), dtype=np.float32)
    router = router_of(X, 8)
    counts = np.bincount(router.shards(X))
    assert len(counts) == 8
    assert counts.max() < 1.3 * counts.mean()
    assert np.array_equal(router.shards(X[:, ::-1]), router.shards(X))


def test_places_that_are_looked_at_in_parts_are_those_of_all() -> None:
    X = rng.standard_normal((900, 8, 5), dtype=np.float32)
    drawn = Places.draw(X[:50].reshape(-1, 5), 0)
    whole, parts = drawn.seen(X), drawn.seen(X[:300]).merged(drawn.seen(X[300:500])).merged(drawn.seen(X[500:]))
    assert np.array_equal(whole.low, parts.low)
    assert np.array_equal(whole.high, parts.high)
    for t, c in enumerate(whole.component):
        values = X[:, :, c].ravel()
        for low, at, high in zip(whole.low[t], whole.threshold[t], whole.high[t], strict=True):
            assert np.isnan(at) or (low, high) == (values[values <= at].max(), values[values > at].min())


def test_without_a_gap_there_is_no_router_and_the_error_says_so() -> None:
    """Every number of float32 from 1 to 1 + 2^-9 is there: no step has room between two of them."""
    X = (1 + np.arange(1 << 14) * 2.0**-23).astype(np.float32).reshape(-1, 4, 1)
    with pytest.raises(HypothesisError, match="a gap between two numbers"):
        router_of(X, 4)


def test_equal_tokens_everywhere_are_one_shard() -> None:
    X = np.tile(np.array([1.0, 2.0], np.float32).reshape(1, 2, 1), (30, 1, 1))
    assert router_of(X, 4).count == 1
