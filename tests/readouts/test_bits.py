"""Bit extraction: exact recall under errors of t, in any order of summation, and what it costs."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onelayer.errors import HypothesisError
from onelayer.network import Grouped, Layer
from onelayer.network.blocks import apply_stack
from onelayer.readouts import bits, plateaus

DTYPES = [np.dtype("float64"), np.dtype("float32")]
WORD = {DTYPES[0]: 52, DTYPES[1]: 23}


def keys(kind: str, M: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted coordinates that float32 holds."""
    t = {
        "dense": lambda: np.arange(M) + 0.0,
        "thirds": lambda: np.arange(M) / 3,
        "sparse": lambda: np.sort(rng.choice(64 * M, M, replace=False)) / 4.0,
        "reals": lambda: np.sort(rng.uniform(0, 50, M)),
        "clusters": lambda: np.sort(rng.uniform(0, 0.01, M) + rng.integers(0, 4, M)),
        "far": lambda: 1000 + np.sort(rng.uniform(0, 1, M)),
    }[kind]()
    return t.astype(np.float32).astype(np.float64)


def problem(kind: str, M: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates, answers, and the smallest gap between different answers."""
    rng = np.random.default_rng(seed)
    t = keys(kind, M, rng)
    rows = rng.integers(0, classes, (M, 1)).astype(np.float64)
    for j in np.flatnonzero(np.diff(t) == 0):
        rows[j + 1] = rows[j]
    return t, rows, float(np.diff(t)[np.diff(rows[:, 0]) != 0].min(initial=4.0))


def moved(t: np.ndarray, error: np.ndarray | float, dtype: np.dtype) -> np.ndarray:
    """t + error as numbers of the dtype that are at least 0, and no further from t than the error says."""
    x = np.maximum(t + error, 0).astype(dtype)
    while (far := np.abs(x.astype(np.float64) - t) > np.abs(error)).any():
        x[far] = np.nextafter(x[far], t[far].astype(dtype))
    return x


def recalled(layers: tuple[Layer, ...], x: np.ndarray) -> np.ndarray:
    return apply_stack(layers, x[:, None])


def size(layers: tuple[Layer, ...]) -> int:
    return sum(layer.weight.size + layer.bias.size for layer in layers)


@given(
    kind=st.sampled_from(["dense", "thirds", "sparse", "reals", "clusters", "far"]),
    M=st.integers(1, 400),
    classes=st.sampled_from([1, 2, 3, 10, 256, 70_000, 2**22, 2**23]),
    share=st.floats(0, 1 / 2.8),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32 - 1),
)
@example(kind="dense", M=1, classes=1, share=0.3, dtype=DTYPES[1], seed=0)
@example(kind="dense", M=400, classes=256, share=1 / 2.8, dtype=DTYPES[0], seed=1)
@example(kind="thirds", M=400, classes=10, share=0.1, dtype=DTYPES[0], seed=1)
@example(kind="dense", M=400, classes=2**22, share=0.1, dtype=DTYPES[1], seed=1)
@example(kind="clusters", M=400, classes=10, share=0.1, dtype=DTYPES[0], seed=2)
def test_every_answer_comes_back_whatever_the_error(
    kind: str, M: int, classes: int, share: float, dtype: np.dtype, seed: int
) -> None:
    t, rows, gap = problem(kind, M, classes, seed)
    radius = share * gap
    fine = dtype == np.float64 or gap > 64 * np.finfo(dtype).eps * t[-1]
    with contextlib.nullcontext() if fine else contextlib.suppress(HypothesisError):
        check_recall(bits.construct(t, rows, radius, dtype), t, rows, radius, gap / 8 if fine else radius, seed)


def check_recall(
    built: bits.Bits, t: np.ndarray, rows: np.ndarray, radius: float, least_guard: float, seed: int
) -> None:
    dtype = built.layers[0].weight.dtype
    assert built.guard >= max(radius, least_guard)
    reach = 0.999 * min(built.guard, 100.0)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(t))
    for error in (0.0, radius, -radius, reach, -reach, reach * signs):
        np.testing.assert_array_equal(recalled(built.layers, moved(t, error, dtype)), rows)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse", "reals"])
@pytest.mark.parametrize("classes", [2, 256])
def test_a_few_thousand_answers(kind: str, classes: int, dtype: np.dtype) -> None:
    M = 300 if kind == "reals" and dtype == np.float32 else 5000
    t, rows, gap = problem(kind, M, classes, 7)
    built = bits.construct(t, rows, gap / 4, dtype)
    for sign in (-1, 1):
        np.testing.assert_array_equal(recalled(built.layers, moved(t, sign * gap / 4, dtype)), rows)
    assert built.group_size > built.words or M == 300  # words hold more than one answer
    assert built.parameters == size(built.layers)
    assert {layer.weight.dtype for layer in built.layers} == {layer.bias.dtype for layer in built.layers} == {dtype}
    assert built.parameters < size(plateaus.on_a_line(t, rows, dtype).layers) / (2 if M == 5000 else 1)


def test_keys_of_dense_integers_take_no_bits() -> None:
    t, rows, _ = problem("dense", 1000, 256, 0)
    built = bits.construct(t, rows, 0.3, DTYPES[0])
    assert (built.key_bits, built.label_bits, built.group_size % 6) == (0, 8, 0)  # six labels to a word of 52 bits
    sparse = bits.construct(*problem("sparse", 1000, 256, 0)[:2], 0.05, DTYPES[0])
    assert sparse.key_bits > 0
    t, rows, _ = problem(
        "dense", 1000, 2, 0
    )  # half of all neighbours agree: their runs are cut up, to do without keys
    built = bits.construct(t, rows, 0.3, DTYPES[0])
    assert (built.key_bits, built.count) == (0, 1000)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["dense", "reals"])
def test_parameters_grow_more_slowly_than_answers(kind: str, dtype: np.dtype) -> None:
    """Like 26 sqrt(M (rho + c)) at first, with a linear part 2 M (rho + c) / W that wins in the end."""
    sizes = [200, 800, 3200, 12_800] if kind == "dense" or dtype == np.float64 else [100, 200]
    ours, theirs = [], []
    for M in sizes:
        t, rows, gap = problem(kind, M, 256, 3)
        built = bits.construct(t, rows, gap / 8, dtype)
        ours.append(built.parameters)
        theirs.append(size(plateaus.on_a_line(t, rows, dtype).layers))
        per_answer = built.key_bits + built.label_bits
        predicted = 2 * M * per_answer / WORD[dtype] + 26 * math.sqrt(M * per_answer)
        assert 0.6 < built.parameters / predicted < 2
    slope = np.polyfit(np.log(sizes), np.log(ours), 1)[0]
    assert 0.5 < slope < 0.9 < 0.97 < np.polyfit(np.log(sizes), np.log(theirs), 1)[0]
    if len(sizes) == 4:
        assert np.diff(np.array(ours) / theirs).max() < 0
        assert ours[-1] < theirs[-1] / 3.5
    if kind == "dense" and dtype == np.float64:
        assert ours[-1] < 1.1 * sizes[-1]


def in_order(layers: tuple[Layer, ...], x: object, order: object, number: type) -> object:
    """One coordinate through the layers by explicit loops; ``order`` arranges the terms of each sum."""
    units = [number(x)]
    for i, layer in enumerate(layers):
        weight = layer.weight if isinstance(layer, Grouped) else layer.weight[None]
        groups, inputs, outputs = weight.shape
        sums = []
        for g in range(groups):
            for o in range(outputs):
                terms = [number(layer.bias[g * outputs + o])]
                terms += [units[g * inputs + k] * number(weight[g, k, o]) for k in range(inputs)]
                total = number(0)
                for term in order(terms):
                    total = number(total + term)
                sums.append(total)
        units = sums if i + 1 == len(layers) else [max(s, number(0)) for s in sums]
    (answer,) = units
    return answer


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("kind", "M", "classes"), [("dense", 40, 2), ("sparse", 24, 13), ("reals", 24, 200)])
def test_the_order_of_summation_does_not_matter(
    kind: str, M: int, classes: int, dtype: np.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, rows, gap = problem(kind, M, classes, 5)
    # On small data short words are cheapest: make words free, so that they are as long as the mantissa allows.
    monkeypatch.setattr(bits, "_size", lambda _layout, count, _W: (count, 2))
    built = bits.construct(t, rows, gap / 4, dtype)
    assert built.group_size > 2
    rng = np.random.default_rng(5)
    x = moved(t, gap / 4 * rng.choice([-1.0, 1.0], M), dtype)
    for order in (list, reversed, lambda terms: [terms[i] for i in rng.permutation(len(terms))]):
        assert [in_order(built.layers, a, order, dtype.type) for a in x] == rows[:, 0].tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_same_weights_in_exact_arithmetic(dtype: np.dtype) -> None:
    """Real arithmetic, with t as far off as the guard allows: the answers are the same whole numbers."""
    t, rows, gap = problem("reals", 30, 100, 11)
    built = bits.construct(t, rows, gap / 4, dtype)
    for sign in (-1, 1):
        x = [max(Fraction(0), Fraction(a) + sign * Fraction(built.guard)) for a in t]
        assert [in_order(built.layers, a, list, lambda v: Fraction(float(v)) if not isinstance(v, Fraction) else v)
                for a in x] == rows[:, 0].tolist()  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["dense", "reals"])
def test_between_and_beyond_stored_coordinates(kind: str, dtype: np.dtype) -> None:
    """Outside the ramps the answer of a neighbour, beyond the ends that of the end, and never a wild number."""
    t, rows, gap = problem(kind, 200, 50, 13)
    built = bits.construct(t, rows, gap / 4, dtype)
    x = np.concatenate([np.linspace(0, t[-1] + 3, 20_001), [t[-1] * 1e6]])
    out = recalled(built.layers, x.astype(dtype))[:, 0]
    assert out.min() >= -1
    assert out.max() <= built.group_size * 2.0**built.label_bits
    after = np.searchsorted(t, x)
    low, high = rows[np.maximum(after - 1, 0), 0], rows[np.minimum(after, len(t) - 1), 0]
    assert ((out == low) | (out == high)).mean() > 0.7
    outside = (x <= t[0]) | (x >= t[-1])
    np.testing.assert_array_equal(out[outside], np.where(x <= t[0], rows[0], rows[-1])[outside])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rescaling_and_translation(dtype: np.dtype) -> None:
    t, rows, gap = problem("sparse", 500, 20, 17)
    plain = bits.construct(t, rows, gap / 4, dtype)
    for scale in (2.0**-40, 2.0**30):
        scaled = bits.construct(scale * t, rows, scale * gap / 4, dtype)
        assert scaled.parameters == plain.parameters
        assert scaled.guard == scale * plain.guard
    shifted = bits.construct(t + 4096, rows, gap / 4, dtype)
    assert abs(shifted.parameters / plain.parameters - 1) < 0.05
    np.testing.assert_array_equal(recalled(shifted.layers, moved(t + 4096, -gap / 4, dtype)), rows)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_largest_labels(dtype: np.dtype) -> None:
    """Sums of several of them would not be exact, so that a group has one word, which holds one."""
    top = 2 ** WORD[dtype]
    few = np.array([[0], [top - 1], [top // 3], [top - 1], [1], [top // 2]], np.float64)
    many = np.random.default_rng(19).integers(0, top, (6000, 1)).astype(np.float64)
    for rows in (many, few):
        t = np.arange(float(len(rows)))
        built = bits.construct(t, rows, 0.3, dtype)
        assert (built.label_bits, built.group_size) == (WORD[dtype], 1)
        for error in (-0.3, 0.3):
            np.testing.assert_array_equal(recalled(built.layers, moved(t, error, dtype)), rows)
    rows[2] = top
    with pytest.raises(HypothesisError, match=rf"\[bits\].*from 0 to 2\^{WORD[dtype]} - 1.*{top}.*plateaus"):
        bits.construct(t, rows, 0.3, dtype)


def test_the_guard_holds_where_float32_ends() -> None:
    """Gaps of a few units in the last place: the ramps themselves are rounded, those between groups included."""
    built_some = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        t = np.unique(rng.uniform(1000, 1003, 40).astype(np.float32)).astype(np.float64)
        rows = np.arange(len(t), dtype=np.float64)[:, None] % 9
        with contextlib.suppress(HypothesisError):
            built = bits.construct(t, rows, 0.0, DTYPES[1])
            built_some += built.guard > 0
            for error in (built.guard, -built.guard):
                np.testing.assert_array_equal(recalled(built.layers, moved(t, error, DTYPES[1])), rows)
    assert built_some > 50


@pytest.mark.parametrize("rows", [[[0.5], [1]], [[-1], [1]], [[1, 2], [3, 4]], [[np.nan], [1]]])
def test_answers_that_are_no_classes_are_refused(rows: list[list[float]]) -> None:
    with pytest.raises(HypothesisError, match="one whole number"):
        bits.construct(np.array([0.0, 1.0]), np.array(rows), 0.0, DTYPES[0])


def test_the_limit_of_precision_is_refused() -> None:
    """float32 tells whole numbers below 2^24 apart, but not with room for an error of 0.3 around them."""
    t, rows = 2.0**22 + np.arange(64), np.arange(64.0)[:, None]
    message = r"\[bits\].*error of 0.3 and float32 can blur; two are 1 apart, where float32 bears.*float64"
    with pytest.raises(HypothesisError, match=message):
        bits.construct(t, rows, 0.3, DTYPES[1])
    built = bits.construct(t, rows, 0.3, DTYPES[0])
    np.testing.assert_array_equal(recalled(built.layers, t + 0.3), rows)
    for gap in (0.0, 0.5):
        with pytest.raises(HypothesisError, match=f"two are {gap:g} apart"):
            bits.construct(np.array([1.0, 1.0 + gap]), rows[:2], 0.3, DTYPES[0])
