"""Tables and retrieval on keys: exact answers, splitting, peeling, defaults, sizes, and the search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.gadgets.retrieval import Retrieval
from onelayer.gadgets.stacks import find_search, read_stack
from onelayer.gadgets.table import Table
from onelayer.network import Linear
from onelayer.network.blocks import apply_stack
from onelayer.readouts import retrieval, table
from onelayer.readouts.cells import columns_of
from onelayer.readouts.peeling import peel, solve
from onelayer.readouts.rows import divide, sort_order

F32, F64 = np.dtype("float32"), np.dtype("float64")
RADIUS = 0.1


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def lattice_keys(rng, M, c, spread=2000):
    keys = np.unique(rng.integers(0, spread, (2 * M + 8, c)), axis=0).astype(np.float64)
    return rng.permutation(keys)[:M]


def stacked(layers, c, dtype):
    """With a first layer that passes the coordinates on, as a model has it."""
    return (Linear(np.eye(c, dtype=dtype), np.zeros(c, dtype)), *layers)


def searched(layers):
    """By the gadgets that are recognised in these layers."""
    return find_search(layers, read_stack(layers))


def kinds(layers):
    return [part.covered.kind for part in read_stack(layers)]


def answers(layers, keys, dtype):
    return apply_stack(layers, keys.astype(dtype))


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 400),
    st.integers(1, 4),
    st.sampled_from(["classes", "reals", "vectors"]),
    st.booleans(),
)
def test_tables_answer_exactly_within_the_radius(seed, M, c, kind, closed) -> None:
    rng = np.random.default_rng(seed)
    keys = lattice_keys(rng, M, c, 40 if c > 1 else 4000)
    values = {
        "classes": rng.integers(0, 7, (len(keys), 1)).astype(np.float64),
        "reals": rng.standard_normal((len(keys), 1)).astype(np.float32).astype(np.float64),
        "vectors": rng.standard_normal((len(keys), 3)).astype(np.float32).astype(np.float64),
    }[kind]
    default = np.full(values.shape[1], 2.5) if closed else None
    made = table.construct(keys, values, F32, RADIUS, default)
    if made is None:  # several keys on one point of the row coordinate that no other coordinate separates
        assert c > 1
        return
    moved = keys + rng.uniform(-RADIUS, RADIUS, keys.shape)
    np.testing.assert_array_equal(answers(made.layers, moved, F32), values.astype(F32))
    assert made.guard > RADIUS
    if closed:
        far = lattice_keys(rng, 200, c, 40 if c > 1 else 4000)
        known = {tuple(k) for k in keys.tolist()}
        unknown = np.array([k for k in far.tolist() if tuple(k) not in known])
        if len(unknown) and c == 1:
            np.testing.assert_array_equal(
                answers(made.layers, unknown, F32), np.full((len(unknown), len(default)), 2.5)
            )


def test_ambiguous_rows_are_split_and_none_is_dropped(rng) -> None:
    # All keys agree in coordinate 1, and differ in coordinate 0: one row per key is what it takes.
    keys = np.stack([np.arange(50.0), np.zeros(50)], axis=1)
    values = rng.integers(0, 1000, (50, 1)).astype(np.float64)
    rows = divide(keys, values, 10, RADIUS, merge=True)
    assert rows is not None
    assert rows.count == len(np.unique(values[np.argsort(keys[:, 0])])) or rows.count >= 45
    made = table.construct(keys, values, F32, RADIUS)
    np.testing.assert_array_equal(answers(made.layers, keys, F32), values)


def test_rows_choose_the_coordinate_that_separates_them(rng) -> None:
    keys = np.zeros((400, 3))
    keys[:, 0] = np.repeat(np.arange(20), 20)
    even = keys[:, 0] % 2 == 0
    keys[even, 1] = np.tile(np.arange(20), 10)
    keys[~even, 2] = np.tile(np.arange(20), 10)
    values = rng.integers(0, 1000, (400, 1)).astype(np.float64)
    rows = divide(keys, values, 20, RADIUS, merge=False)
    assert set(rows.coordinate.tolist()) == {1, 2}
    made = table.construct(keys, values, F32, RADIUS)
    np.testing.assert_array_equal(answers(made.layers, keys, F32), values)


def test_keys_that_nothing_separates_are_reported() -> None:
    assert table.construct(np.ones((2, 2)), np.array([[1.0], [2.0]]), F32, RADIUS) is None


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 600), st.integers(1, 70_000))
def test_retrieval_answers_exactly_within_the_radius(seed, M, C) -> None:
    rng = np.random.default_rng(seed)
    keys = lattice_keys(rng, M, 6)
    values = rng.integers(0, C, (len(keys), 1)).astype(np.float64)
    made = retrieval.construct(keys, values, F32, RADIUS, seed % 5)
    if made is None:
        assert M < 40  # small sets peel only with luck
        return
    moved = keys + rng.uniform(-RADIUS, RADIUS, keys.shape)
    np.testing.assert_array_equal(answers(made.layers, moved, F32), values)


def test_retrieval_of_reals_and_vectors(rng) -> None:
    keys = lattice_keys(rng, 2000, 6)
    values = rng.standard_normal((20, 3)).astype(np.float32).astype(np.float64)[rng.integers(0, 20, 2000)]
    made = retrieval.construct(keys, values, F32, RADIUS, 0)
    np.testing.assert_array_equal(answers(made.layers, keys, F32), values)


def test_retrieval_leaves_further_coordinates_alone(rng) -> None:
    keys = lattice_keys(rng, 2000, 10)
    values = rng.integers(0, 500, (len(keys), 1)).astype(np.float64)
    made = retrieval.construct(keys, values, F32, RADIUS, 0)
    np.testing.assert_array_equal(answers(made.layers, keys, F32), values)
    search = searched(stacked(made.layers, 10, F32))
    np.testing.assert_array_equal(search(keys.astype(F32)), values)


def test_what_cannot_peel_is_reported() -> None:
    cell = np.array([[0, 1, 2], [0, 1, 2]])  # two keys, the same three cells
    assert peel(cell, 3) is None
    rounds = peel(np.array([[0, 1, 2], [0, 3, 2]]), 4)
    assert sum(len(keys) for keys, *_ in rounds) == 2


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([1, 7, 65_536, 1 << 22]))
def test_entries_of_what_peels_add_up(seed, M, C) -> None:
    rng = np.random.default_rng(seed)
    per_table = M + 2
    cell = (rng.integers(0, per_table, (M, 3)) + per_table * np.arange(3)).astype(np.int32)
    wanted = rng.integers(0, C, M).astype(np.int32)
    entries = solve(cell, 3 * per_table, wanted, C)
    if entries is None:  # then some keys share every cell of theirs with others
        left = np.ones(M, bool)
        while (alone := left & (np.bincount(cell[left].ravel(), minlength=3 * per_table)[cell] == 1).any(1)).any():
            left &= ~alone
        assert left.any()
        return
    assert 0 <= entries.min() <= entries.max() < C
    np.testing.assert_array_equal(entries[cell].sum(axis=1) % C, wanted)


def test_a_cell_that_too_many_keys_share_does_not_peel() -> None:
    M = 1 << 19  # counted in float64, this would no longer be exact
    cell = np.stack([np.zeros(M), 1 + np.arange(M) // 2, 1 + M + np.arange(M) // 2], axis=1).astype(np.int32)
    assert peel(cell, 2 * M + 1) is None


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 500),
    st.integers(1, 40),
    st.sampled_from([(1.0, 0), (0.25, 0), (300.0, 0), (4.0, 2**25), (1.0, -(2**23))]),
)
def test_cells_are_cut_where_no_value_lies(seed, M, cells, spread) -> None:
    step, low = spread
    z = (low + np.random.default_rng(seed).integers(-20, 20, M) * step).astype(np.float32)
    (column,) = columns_of(z[:, None])
    found, index = column.cut(cells, 0.2)
    assert 1 <= found.count <= cells
    assert (found.high - found.low <= max(1.0, step)).all()
    np.testing.assert_array_equal(index, np.searchsorted(found.high, z, side="right"))
    np.testing.assert_array_equal(index, np.searchsorted(found.low, z, side="left"))


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1.0, 0.5, 2.0**40]), st.booleans())
def test_packed_keys_sort_as_pairs_do(seed, M, step, grouped) -> None:
    rng = np.random.default_rng(seed)
    z, group = rng.integers(-9, 9, M) * step, np.sort(rng.integers(0, 5, M))
    expected = np.lexsort((z, group)) if grouped else np.argsort(z, kind="stable")
    np.testing.assert_array_equal(sort_order(z, group if grouped else None), expected)


@pytest.mark.parametrize("M", [20_000])
def test_sizes(rng, M) -> None:
    keys = np.rint(rng.standard_normal((M, 6)) * 4000 + 30_000)
    values = rng.integers(0, 65536, (M, 1)).astype(np.float64)

    def per_answer(layers):
        return sum(layer.weight.size + layer.bias.size for layer in layers) / M

    cells = retrieval.construct(keys, values, F32, RADIUS, 0)
    rows = table.construct(keys, values, F32, RADIUS)
    line = table.construct(np.sort(rng.uniform(0, 1, (M, 1)), axis=0), values, F64, 1e-15)
    assert per_answer(cells.layers) < 2.2
    assert per_answer(rows.layers) < 3.2
    assert per_answer(line.layers) < 2.6
    assert retrieval.expected_parameters(values) == pytest.approx(per_answer(cells.layers) * M, rel=0.2)
    assert table.expected_parameters(keys, values) == pytest.approx(per_answer(rows.layers) * M, rel=0.3)


@pytest.mark.parametrize("kind", ["retrieval", "table", "table with a default", "line"])
def test_the_search_gives_what_the_layers_give_everywhere(rng, kind) -> None:
    c, dtype = (1, F64) if kind == "line" else (6, F32)
    keys = lattice_keys(rng, 3000, c, 4000)
    values = rng.integers(0, 5000, (3000, 1)).astype(np.float64)
    if kind == "retrieval":
        made = retrieval.construct(keys, values, dtype, RADIUS, 0)
    else:
        made = table.construct(keys, values, dtype, RADIUS, np.array([-7.0]) if "default" in kind else None)
    layers = stacked(made.layers, c, dtype)
    search = searched(layers)
    assert type(read_stack(layers)[-1].gadget) is (Retrieval if kind == "retrieval" else Table)
    near = keys[:500] + rng.uniform(-0.7, 0.7, (500, c))  # on plateaus and on ramps
    anywhere = rng.uniform(-10, 4010, (500, c))
    np.testing.assert_array_equal(search(keys.astype(dtype)), apply_stack(layers, keys.astype(dtype)))
    unknown = lattice_keys(rng, 500, c, 4000).astype(dtype)  # whole numbers lie on no ramp
    np.testing.assert_array_equal(search(unknown), apply_stack(layers, unknown))
    for t in (near.astype(dtype), anywhere.astype(dtype)):  # on a ramp, sums depend on their order
        np.testing.assert_allclose(search(t), apply_stack(layers, t), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["retrieval", "table"])
def test_other_layers_are_not_taken_for_cells(rng, kind) -> None:
    """One number changed anywhere in the tail, and the search steps back."""
    keys = lattice_keys(rng, 500, 6)
    values = rng.integers(0, 50, (500, 1)).astype(np.float64)
    build = {
        "retrieval": lambda: retrieval.construct(keys, values, F32, RADIUS, 0),
        "table": lambda: table.construct(keys, values, F32, RADIUS),
    }
    layers = stacked(build[kind]().layers, 6, F32)
    assert kind in kinds(layers)
    for i in range(len(layers) - (3 if kind == "retrieval" else 4), len(layers)):
        changed = layers[i].weight.copy()
        changed.flat[0] += 1
        other = type(layers[i])(changed, layers[i].bias)
        assert kind not in kinds((*layers[:i], other, *layers[i + 1 :]))
