"""Several answers to a weight: layouts, borrows, the layers that take words apart, and whole models."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer import HypothesisError, OptionError, certify
from onelayer.gadgets.digits import digit_layers, digits_in_lanes
from onelayer.gadgets.layout import WORD_BITS, Layout, layouts
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.stacks import read_stack
from onelayer.network import Layer
from onelayer.network.blocks import apply_stack
from onelayer.readouts import fit, packed_blocks
from onelayer.readouts.packed import fill_lanes
from onelayer.readouts.packed_sizes import Shape
from onelayer.readouts.peeling import peel

memorize = partial(onelayer.memorize, certify=False)
CLASSES = (2, 3, 7, 10, 26, 50, 256, 1000, 65_536, 1_000_000)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def packed_in(layers: tuple[Layer, ...]) -> list[Packed]:
    return [part.gadget for part in read_stack(layers) if isinstance(part.gadget, Packed)]


@pytest.mark.parametrize("classes", [*CLASSES, 4, 5, 6, 1 << 22])
def test_layouts_hold_what_they_promise(classes) -> None:
    found = layouts(classes)
    for layout in found:
        assert layout.base**layout.digits >= classes
        assert layout.modulus <= 1 << WORD_BITS
        places = {layout.place(k, c) for k in range(layout.lanes) for c in range(layout.digits)}
        assert len(places) == layout.lanes * layout.digits
        assert all(u < layout.words and p < layout.capacity for u, p in places)
        assert {layout.digit_at(u, p) for u, p in places} >= {(layout.lanes - 1, layout.digits - 1), (0, 0)}
    shares = [layout.lanes / layout.words for layout in found]
    assert shares == sorted(set(shares))
    assert max(shares) * np.log2(classes) > 0.8 * WORD_BITS


@given(st.integers(0, 2**32 - 1), st.sampled_from(CLASSES))
def test_layers_take_words_apart(seed, classes) -> None:
    rng = np.random.default_rng(seed)
    layout = layouts(classes)[rng.integers(len(layouts(classes)))]
    T, G, W = 40, 3, layout.modulus
    words = rng.integers(0, W, (3, layout.words, T))
    words[:, :, :8] = rng.choice([0, 1, W - 1, W // 2], (3, layout.words, 8))  # borrows to the ends of the range
    lane = rng.integers(0, layout.lanes, T)
    x = np.zeros((T, 3, layout.words * G + 1), np.float32)
    for h, u in np.ndindex(3, layout.words):
        x[np.arange(T), h, u * G + rng.integers(0, G, T)] = words[h, u]
    x[:, 0, -1] = 10.0 * lane + 5
    steps = np.ones(layout.lanes - 1), 10.0 * np.arange(1, layout.lanes) + 0.5
    out = apply_stack(digit_layers(layout, G, steps, np.dtype("float32")), x.reshape(T, -1))
    wanted = digits_in_lanes(layout, (words[0] - words[1] - words[2]) % W, lane)
    np.testing.assert_array_equal(out[:, 0], wanted)


@given(st.integers(0, 2**32 - 1), st.sampled_from(CLASSES))
def test_filled_words_hold_every_answer(seed, classes) -> None:
    rng = np.random.default_rng(seed)
    layout = layouts(classes)[-1]
    M, per_table = 60 * layout.lanes, 60
    lane, answers = np.arange(M) // 60, rng.integers(0, classes, M)
    cell = rng.integers(0, per_table, (M, 3)) + per_table * np.arange(3)
    ends = 60 * np.arange(1, layout.lanes + 1)
    cells = np.split(cell.astype(np.int32), ends[:-1])
    words = fill_lanes(layout, zip(cells, np.split(answers, ends[:-1]), strict=True), 3 * per_table)
    if words is None:
        assert any(peel(some, 3 * per_table) is None for some in cells)
        return
    assert words.min() >= 0
    assert words.max() < layout.modulus
    read = words[:, cell]
    found = digits_in_lanes(layout, (read[..., 0] - read[..., 1] - read[..., 2]) % layout.modulus, lane)
    np.testing.assert_array_equal(found, answers)


@pytest.mark.parametrize(("classes", "options"), [(2, {}), (1000, {}), (10, {"default": -1, "false_hits": 1e-3})])
def test_parameters_are_counted_before_they_are_made(rng, classes, options) -> None:
    X, Y = rng.standard_normal((400, 8, 6)).astype(np.float32), rng.integers(0, classes, (400, 8))
    model = memorize(X, Y, readout="packed", **options)
    (gadget,) = packed_in(model.transformer.readout)
    shape = Shape(gadget.layout, gadget.block, *gadget.words.shape[2:])
    made = sum(layer.weight.size + layer.bias.size for layer in gadget.layers())
    assert shape.parameters == made


@pytest.mark.parametrize("classes", [2, 10, 256, 65_536])
def test_every_answer_comes_back_and_is_proved(rng, classes) -> None:
    X, Y = rng.standard_normal((400, 8, 6)).astype(np.float32), rng.integers(0, classes, (400, 8))
    model = memorize(X, Y, readout="packed")
    assert model.ledger["readout"] == "packed"
    for path in ("dense", "fast"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)
    assert packed_in(model.transformer.readout)
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)


@pytest.mark.parametrize(("classes", "parts"), [(2, 12), (10, 3), (1000, 2)])
def test_vectors_of_classes_share_a_cell(rng, classes, parts) -> None:
    X, Y = rng.standard_normal((400, 8, 6)).astype(np.float32), rng.integers(0, classes, (400, 8, parts))
    model = memorize(X, Y)
    assert model.ledger["readout"] == "packed"
    for path in ("dense", "fast"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)
    assert model.n_parameters < 3200 * (7 + parts)  # as many as if all were listed
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)
    other = Y.copy()
    other[0, 0, -1] = (other[0, 0, -1] + 1) % classes
    with pytest.raises(onelayer.HypothesisError):
        certify(model, X, other)


@pytest.mark.parametrize("change", [-3.0, 0.5])
def test_other_vectors_are_kept_as_numbers(rng, change) -> None:
    X, Y = rng.standard_normal((50, 4, 3)), rng.integers(0, 5, (50, 4, 2)) + change
    np.testing.assert_array_equal(memorize(X, Y).predict(X), Y)


def test_strangers_are_answered_as_by_the_layers(rng) -> None:
    X, Y = rng.standard_normal((400, 8, 6)).astype(np.float32), rng.integers(0, 10, (400, 8))
    model = memorize(X, Y, readout="packed")
    unknown = rng.standard_normal((300, 8, 6)).astype(np.float32) * 3
    for half in (0.0, 0.5):  # on whole numbers, and on the ramps between them
        t = model.transformer.readout[0].bias.copy()
        t = np.abs(np.rint(rng.uniform(0, 2 * t.max(), (500, len(t)))) + half).astype(np.float32)
        (gadget,) = packed_in(model.transformer.readout)
        np.testing.assert_array_equal(gadget.search(t), apply_stack(gadget.dense, t))
    np.testing.assert_array_equal(model.predict(unknown, path="fast"), model.predict(unknown, path="dense"))


def test_two_classes_are_packed_by_themselves(rng) -> None:
    X, Y = rng.standard_normal((1500, 16, 8)).astype(np.float32), rng.integers(0, 2, (1500, 16))
    model = memorize(X, Y)
    assert model.ledger["readout"] == "packed"
    assert model.bits_per_parameter > 2.5
    np.testing.assert_array_equal(model.predict(X), Y)


def test_answers_that_are_no_classes_are_listed_behind(rng) -> None:
    X = rng.standard_normal((300, 8, 6)).astype(np.float32)
    Y = rng.choice(np.array([0.25, -1.5, 3.0], np.float32), (300, 8))
    model = memorize(X, Y, readout="packed")
    for path in ("dense", "auto"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)


def test_layers_that_differ_in_one_number_are_not_recognised(rng) -> None:
    X, Y = rng.standard_normal((200, 8, 6)).astype(np.float32), rng.integers(0, 2, (200, 8))
    layers = memorize(X, Y, readout="packed").transformer.readout
    for i in [i for i in range(1, len(layers)) if i != 6]:  # where a lane begins, in layer 6, is as good elsewhere
        changed = type(layers[i])(layers[i].weight, layers[i].bias.copy())
        changed.bias[-1] += 0.25
        assert not packed_in((*layers[:i], changed, *layers[i + 1 :])), i


def test_a_lane_needs_a_coordinate_of_its_own(rng) -> None:
    with pytest.raises(OptionError, match="at least 7 of them"):
        memorize(rng.standard_normal((99, 8, 6)), np.zeros((99, 8), int), readout="packed", rank=6)


def test_a_layout_of_one_lane_needs_no_lane() -> None:
    layout = Layout(16, 4, 1)
    assert layout.lanes == 1
    assert len(digit_layers(layout, 2, (np.zeros(0), np.zeros(0)), np.dtype("float32"))) == 29


@pytest.mark.parametrize("looked_at", [1, 1 << 14])
def test_equal_contexts_among_many_are_found(rng, monkeypatch, looked_at) -> None:
    monkeypatch.setattr(fit, "MANY", 16)
    monkeypatch.setattr(fit, "LOOKED_AT", looked_at)
    X = rng.standard_normal((300, 4, 5)).astype(np.float32)
    Y = rng.integers(0, 9, (300, 4))
    twice, same = np.concatenate([X, X[:40, ::-1]]), np.concatenate([Y, Y[:40, ::-1]])
    alone, model = (memorize(x, y, readout="packed") for x, y in ((X, Y), (twice, same)))
    np.testing.assert_array_equal(alone.predict(X), Y)
    np.testing.assert_array_equal(model.predict(twice), same)
    assert (alone.ledger["distinct"], model.ledger["distinct"]) == (1200, 1200)
    same[-1, 0] += 1
    with pytest.raises(HypothesisError, match="sequence 39, token 3"):
        memorize(twice, same, readout="packed")


def test_cells_are_tried_on_a_lane_before_all_keys_are_gone_through(rng, monkeypatch) -> None:
    monkeypatch.setattr(packed_blocks, "LOAD", 0.9)  # no peeling before a few steps
    monkeypatch.setattr(packed_blocks, "RELOAD", 1.1)
    keys, stored, passes = rng.integers(0, 4000, (3000, 7)), rng.integers(0, 10, 3000), []

    def blocks():
        passes.append(1)
        yield from ((keys[part], stored[part]) for part in (slice(0, 1500), slice(1500, 3000)))

    counted = packed_blocks.KeyBlocks(blocks, [np.bincount(column) for column in keys.T], 0, 0)
    readout = packed_blocks.construct(counted, 10, np.dtype("float32"), 0.1, 0)
    assert readout is not None
    assert len(passes) == 3  # the first draw, the first lane, and the draw that it takes
    (gadget,) = readout.gadgets
    np.testing.assert_array_equal(gadget.search(keys.astype(np.float32))[:, 0], stored)
