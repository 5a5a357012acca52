"""Two laws of every gadget: its search gives what its layers give, and its layers are recognised as itself."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.gadgets.registry import GADGETS
from onelayer.gadgets.stacks import layers_of, read_stack
from onelayer.network import Linear
from onelayer.network.blocks import apply_stack
from tests.gadgets.cases import CASES, F32, F64, Case

KINDS = sorted(kind.kind for kind in GADGETS)
seeds, dtypes = st.integers(0, 2**32 - 1), st.sampled_from([F32, F64])


def case_of(kind: str, seed: int, dtype: np.dtype) -> Case:
    return CASES[kind](np.random.default_rng(seed), dtype)


def test_every_registered_gadget_has_cases() -> None:
    assert sorted(CASES) == KINDS == sorted(set(KINDS))


def keeps_its_laws(case: Case) -> None:
    gadget, stored, others = case
    layers, dtype = gadget.layers(), stored.dtype
    assert {layer.weight.dtype for layer in layers} == {layer.bias.dtype for layer in layers} == {dtype}
    # On stored inputs the search gives the bits of the layers.
    found = gadget.search(stored)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, apply_stack(layers, stored))
    # Inside ramps, between vertices and beyond walls they agree up to rounding.
    wanted = apply_stack(layers, others)
    size = np.abs(others).max() + np.abs(wanted).max() + max(np.abs(a.weight).max() for a in layers)
    np.testing.assert_allclose(gadget.search(others), wanted, rtol=0, atol=float(1e3 * size * np.finfo(dtype).eps))
    # Layers are recognised as the gadget they came from.
    assert type(gadget).recognise(layers) == gadget
    assert len(layers) in type(gadget).depths_of(layers)
    # Every unit of every layer has a name of its own.
    for layer, names in zip(layers, gadget.names(), strict=True):
        assert len(names) == len(set(names)) == layer.width
        assert all(name.strip() == name != "" for name in names)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=seeds, dtype=dtypes)
def test_every_gadget_keeps_its_laws(kind, seed, dtype) -> None:
    keeps_its_laws(case_of(kind, seed, dtype))


TAMPERED = sorted(set(KINDS) - {"affine", "ridges"})  # any layers are one of these


def is_read_as_it_is(case: Case, seed: int) -> None:
    """One number changed anywhere: another gadget or none, and what is recognised gives what these layers give."""
    rng = np.random.default_rng(seed)
    gadget, stored, others = case
    layers, dtype = list(gadget.layers()), stored.dtype
    at, name = int(rng.integers(len(layers))), ("weight", "bias")[int(rng.integers(2))]
    array = getattr(layers[at], name).copy()
    i = tuple(int(rng.integers(size)) for size in array.shape)
    more = 1 + abs(array[i])
    array[i] += dtype.type(rng.choice([more, -more, 0.5, -0.5, 3, 17, -array[i] or 1]))
    if array[i] == getattr(layers[at], name)[i]:  # a change that rounding takes back is none
        return
    layers[at] = replace(layers[at], **{name: array})
    found = type(gadget).recognise(tuple(layers))
    assert found != gadget
    if found is None:
        return
    for a, b in zip(found.layers(), layers, strict=True):
        np.testing.assert_array_equal(a.weight, b.weight)
        np.testing.assert_array_equal(a.bias, b.bias)
    for inputs in (stored, others):
        wanted = apply_stack(tuple(layers), inputs)
        room = 1e-3 * (1 + float(np.abs(wanted).max()))
        np.testing.assert_allclose(found.search(inputs), wanted, rtol=0, atol=room)


@pytest.mark.parametrize("kind", TAMPERED)
@settings(max_examples=40)
@given(seed=seeds, dtype=dtypes)
def test_what_was_tampered_with_is_read_as_it_is(kind, seed, dtype) -> None:
    is_read_as_it_is(case_of(kind, seed, dtype), seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_gadgets_keep_their_laws(kind) -> None:
    """Hypothesis cannot shrink a seed: many cases are cheaper in a loop."""
    for seed, dtype in product(range(500), (F32, F64)):
        try:
            case = case_of(kind, seed, dtype)
            keeps_its_laws(case)
            if kind in TAMPERED:
                is_read_as_it_is(case, seed)
        except AssertionError as error:
            error.add_note(f"{kind}, seed {seed}, {dtype}")
            raise


@pytest.mark.parametrize("kind", KINDS)
def test_equality_sees_every_field(kind) -> None:
    gadget = case_of(kind, 1, F32).gadget
    assert gadget == replace(gadget)
    for field in fields(gadget):
        assert gadget != replace(gadget, **{field.name: None}) or getattr(gadget, field.name) is None


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(seed=seeds, dtype=dtypes)
def test_a_stack_is_read_without_hints(kind, seed, dtype) -> None:
    """Behind a first affine layer, whichever way the stack is cut, the gadgets' layers are those of the stack."""
    gadget, stored, _ = case_of(kind, seed, dtype)
    inputs = stored.shape[1]
    layers = (Linear(np.eye(inputs, dtype=dtype), np.zeros(inputs, dtype)), *gadget.layers())
    parts = read_stack(layers)
    for a, b in zip(layers_of([part.gadget for part in parts]), layers, strict=True):
        np.testing.assert_array_equal(a.weight, b.weight)
        np.testing.assert_array_equal(a.bias, b.bias)
    assert [part.covered.start for part in parts[1:]] == [part.covered.stop for part in parts[:-1]]
