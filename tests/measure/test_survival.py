"""float16 and bfloat16: the emulation against PyTorch, what survives, what does not and where, what is refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import onelayer
from onelayer import DataError, HypothesisError, OptionError, cast
from onelayer.export.torch import to_torch
from onelayer.measure import half as half_pass
from onelayer.measure.half import half_outputs
from onelayer.measure.survival import round_weights
from onelayer.network import Attention, Embedding, Grouped, Linear, Transformer, blocks
from onelayer.network.formats import LIMITS, nearest
from onelayer.problems.tables import example, read_table

memorize = partial(onelayer.memorize, certify=False)

TORCH = {"float16": torch.float16, "bfloat16": torch.bfloat16}
FACTS = [["river", "bank"], ["bank", "robber"], ["robber", "river"]]
WORDS = [["water", "shore"], ["money", "crime"], ["crime", "flood"]]
stored = partial(memorize, mapping="temperature", readout="plateaus")  # one kind: what survives depends on it


@pytest.fixture(params=sorted(TORCH))
def dtype(request) -> str:
    return request.param


def in_torch(array: np.ndarray, dtype: str) -> np.ndarray:
    return torch.tensor(array).to(TORCH[dtype]).float().numpy()


def random_transformer(rng: np.random.Generator, ids: bool = False, **attention) -> Transformer:
    """Every part a model may have: two heads with biases, an embedding with positions, full and grouped layers."""

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) / 2

    heads = (draw(2, 4, 2), draw(2, 4, 2), draw(2, 4, 2), draw(2, 2, 4), draw(2, 2), draw(2, 2))
    tokens = {"table": draw(9, 4)} if ids else {"lift": draw(5, 4)}
    return Transformer(
        Attention(*heads, **attention),
        Embedding(**tokens, bias=draw(4), positions=draw(6, 4)),
        (Linear(draw(4, 6), draw(6)), Grouped(draw(3, 2, 2), draw(6)), Linear(draw(6, 4), draw(4))),
        (Linear(draw(4, 1), draw(1)), Linear(draw(1, 8), draw(8)), Grouped(draw(4, 2, 3), draw(12))),
    )


def many_boxes(rng: np.random.Generator, count: int) -> Transformer:
    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype("float32")

    nothing = Attention(*np.zeros((3, 1, 2, 1), "float32"), np.zeros((1, 1, 2), "float32"))
    layers = (Linear(draw(2, 4 * count), draw(4 * count)), Grouped(draw(count, 4, 1), draw(count)))
    return Transformer(nothing, None, (), (*layers, Linear(draw(count, 1), draw(1))))


def test_rounding_is_that_of_torch_to_the_bit(dtype) -> None:
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 300_000, dtype=np.uint32)
    patterns[::3] &= 0xFFFF8000  # halfway between two numbers of bfloat16, or one of them
    patterns[1::3] &= 0xFFFFF000  # the same for float16
    singles = patterns.view(np.float32)
    spread = rng.standard_normal(100_000) * 10.0 ** rng.integers(-50, 39, 100_000)
    # 1 + 2^-11 + 2^-40 becomes a tie on its way through float32; so does the second, for bfloat16.
    corners = [0.0, 1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 65504, 65519.9, 65520, 2**-24, 2**-25, 1e-320, 3.4e38]
    for values in (singles, spread, np.array(corners), -np.array(corners)):
        rounded = nearest(values, dtype)
        assert rounded.dtype == np.float32
        np.testing.assert_array_equal(rounded, in_torch(values, dtype))  # NaN where there is NaN
        np.testing.assert_array_equal(nearest(rounded, dtype), rounded)
    assert nearest(np.array([LIMITS[dtype]]), dtype).tolist() == [LIMITS[dtype]] == [torch.finfo(TORCH[dtype]).max]


def test_weights_are_those_of_the_torch_module(dtype) -> None:
    model = stored(FACTS, WORDS)
    rounded, changed, largest = round_weights(model.transformer, dtype)
    wanted = {name: in_torch(array, dtype) for name, array in model.transformer.tensors()}
    for name, array in rounded.tensors():
        np.testing.assert_array_equal(array, wanted[name])
    assert changed == sum((wanted[name] != array).sum() for name, array in model.transformer.tensors()) > 0
    assert largest == max(np.abs(array).max() for _, array in model.transformer.tensors())


@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("stacks", [False, True])
def test_every_operation_is_rounded_as_torch_rounds_it(dtype, kind, ids, stacks) -> None:
    """Sums in another order move few results, and by a rounding; a rounding left out moves far more of them."""
    same = total = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = random_transformer(rng, ids, kind=kind, causal=seed > 2)
        model = model if stacks else replace(model, feedforward=(), readout=())
        if seed % 2:  # tokens that are met three times, and share the mass of hardmax
            model = replace(model, embedding=replace(model.embedding, positions=None))
        X = rng.integers(0, 3 if seed % 2 else 9, (12, 6)) if ids else rng.standard_normal((12, 6, 5))
        lengths = rng.integers(1, 7, 12) if seed % 2 else None
        with torch.inference_mode():
            net = to_torch(model).to(TORCH[dtype])
            outputs = net(torch.tensor(X), None if lengths is None else torch.tensor(lengths)).float().numpy()
        i, k = np.nonzero(np.arange(6) < (np.full(12, 6) if lengths is None else lengths)[:, None])
        given = half_outputs(round_weights(model, dtype)[0], dtype, X, lengths, i, k)
        wanted = outputs[i, k]
        unit = float(torch.finfo(TORCH[dtype]).eps)
        np.testing.assert_allclose(given, wanted, rtol=0, atol=4 * unit * np.abs(wanted).max())
        same, total = same + (given == wanted).sum(), total + wanted.size
    assert same > 0.99 * total


def test_few_answers_survive(dtype) -> None:
    model = stored(FACTS, WORDS)
    report = cast(model, dtype, FACTS, WORDS)
    assert (report.right, report.asked, report.total, report.first_wrong, report.perfect) == (6, 6, 6, "", True)
    assert 0 < report.weights_changed < report.weights == model.n_parameters
    assert str(report).startswith(f"{dtype}: 6 of 6 answers survive (measured); {report.weights_changed} of ")
    assert report.to_json()["dtype"] == dtype
    wrong = [WORDS[0], ["money", "flood"], WORDS[2]]  # what is counted as right depends on the answers given
    assert cast(model, dtype, FACTS, wrong).first_wrong == "sequence 1, token 1 ('robber')"


def test_the_first_answer_that_torch_loses_is_named(dtype) -> None:
    table = read_table(example("company"))
    model = stored(table.X, table.Y)
    asked = model.read(table.X)
    with torch.inference_mode():
        outputs = to_torch(model.transformer).to(TORCH[dtype])(torch.from_numpy(asked.tokens)).float().numpy()
    right = np.rint(outputs[..., 0]) == np.searchsorted(model.form.classes, table.Y)
    assert 0 < right.sum() < right.size
    report = cast(model, dtype, table.X, table.Y)
    assert (report.right, report.total, report.perfect) == (right.sum(), right.size, False)
    i, k = np.argwhere(~right)[0]
    assert report.first_wrong == f"sequence {i}, token {k} ({str(table.X[i][k])!r})"
    assert str(report).splitlines()[1] == f"the first that does not: {report.first_wrong}"


def test_lengths_and_answers_per_sequence_are_named(dtype) -> None:
    X, Y = [["a"], ["a", "b", "c"], ["c", "d"]], [[0], [1, 0, 1], [0, 1]]
    model = stored(X, Y)
    assert cast(model, dtype, X, Y).perfect
    assert cast(model, dtype, X, [[0], [1, 0, 0], [0, 0]]).first_wrong == "sequence 1, token 2 ('c')"
    assert cast(model, dtype, X, [[0], [1, 0, 1], [0, 0]]).first_wrong == "sequence 2, token 1 ('d')"
    whole = stored(X, ["x", "y", "x"])
    assert cast(whole, dtype, X, ["x", "y", "x"]).right == 3
    assert cast(whole, dtype, X, ["x", "y", "y"]).first_wrong == "sequence 2"


def test_reals_are_right_as_the_dtype_holds_them(dtype) -> None:
    X, Y = [["a", "b"], ["b", "c"]], [[0.1, -3.3], [1e-3, 7.7]]
    report = cast(stored(X, Y), dtype, X, Y)
    assert report.perfect
    assert not cast(stored(X, Y), dtype, X, [[0.1, -3.3], [1e-3, 7.6]]).perfect


def test_classes_whose_number_the_dtype_does_not_hold_are_lost() -> None:
    """Inside the model a class is a whole number; above 256 bfloat16 holds none of the odd ones."""
    X, Y = np.arange(300)[:, None], np.arange(300)[:, None]
    model = stored(X, Y)
    assert cast(model, "float16", X, Y).perfect
    assert cast(model, "bfloat16", X[:20], Y[:20]).perfect
    assert cast(model, "bfloat16", X[257::2], Y[257::2]).right == 0


def test_weights_beyond_the_range_are_refused() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 6, 4)), rng.integers(0, 100, (60, 6))
    model = stored(X, Y)
    with pytest.raises(HypothesisError) as refused:
        cast(model, "float16", X, Y)
    assert "65504, the largest number of float16" in refused.value.needs
    name, value = refused.value.found.split()[2], float(refused.value.found.split()[4])
    assert abs(value) > 65504
    assert abs(value) == pytest.approx(np.abs(dict(model.transformer.tensors())[name]).max())
    assert 'dtype="bfloat16"' in refused.value.remedy
    assert "float64" in refused.value.remedy
    assert cast(model, "bfloat16", X, Y).largest_weight > 65504


def test_the_limit_itself_is_within_the_range(dtype) -> None:
    one = np.ones((1, 1, 1))
    for weight, fits in ((LIMITS[dtype], True), (-LIMITS[dtype], True), (-LIMITS[dtype] * (1 + 2**-40), False)):
        model = Transformer(Attention(one, one, one, one), None, (), (Linear(np.array([[weight]]), np.zeros(1)),))
        if fits:
            assert dict(round_weights(model, dtype)[0].tensors())["readout.0.weight"] == weight
            continue
        with pytest.raises(HypothesisError, match=r"the tensor readout\.0\.weight holds -"):
            round_weights(model, dtype)


def test_infinite_numbers_are_wrong_answers_without_a_warning(monkeypatch) -> None:
    """float16 has no 1e6; the warnings of NumPy, errors here, would come from every thread."""
    X = np.array([[[1.0], [2.0]], [[3.0], [1e6]], [[1.0], [3.0]]])
    Y = np.array([[0, 1], [1, 0], [1, 1]])
    model = stored(X[::2], Y[::2])
    monkeypatch.setattr(blocks, "ATTENTION_BYTES", 1)
    monkeypatch.setattr(blocks, "THREADS", 2)
    assert cast(model, "float16", X[::2], Y[::2]).perfect
    report = cast(model, "float16", X, Y)
    assert (report.right, report.first_wrong) == (4, "sequence 1, token 0 ((3))")
    boxes = round_weights(many_boxes(np.random.default_rng(0), 99), "float16")[0]
    monkeypatch.setattr(half_pass, "BLOCK_BYTES", 1)
    small_and_large, at = np.array([[[1.0, -1.0]], [[6e4, -6e4]], [[2.0, 3.0]]]), np.arange(3)
    outputs = half_outputs(boxes, "float16", small_and_large, None, at, np.zeros_like(at))
    assert np.isfinite(outputs[:, 0]).tolist() == [True, False, True]


def test_a_sample_is_asked_where_all_would_take_long(dtype, monkeypatch) -> None:
    model = stored(FACTS, WORDS)
    monkeypatch.setattr("onelayer.measure.survival.WORK", 0)
    report = cast(model, dtype, FACTS, WORDS, answers=3)
    assert (report.right, report.asked, report.total) == (3, 3, 6)
    assert "3 of 3 asked of 6 answers survive" in str(report)
    first_and_last = [["shore", "shore"], WORDS[1], ["crime", "shore"]]
    report = cast(model, dtype, FACTS, first_and_last, answers=2)
    assert (report.right, report.asked, report.first_wrong) == (0, 2, "sequence 0, token 0 ('river')")
    assert cast(model, dtype, FACTS, first_and_last, answers=None).right == 4
    monkeypatch.setattr("onelayer.measure.survival.WORK", 10**6)
    assert cast(model, dtype, FACTS, first_and_last, answers=2).asked == 6


def test_blocks_and_threads_change_nothing(dtype, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    X, lengths = rng.standard_normal((40, 6, 5)), rng.integers(1, 7, 40)
    i, k = np.nonzero(np.arange(6) < lengths[:, None])
    asked = rng.permutation(len(i))[::3]
    model = round_weights(random_transformer(rng, causal=True), dtype)[0]
    wanted = half_outputs(model, dtype, X, lengths, i, k)[asked]
    for module, name in ((blocks, "ATTENTION_BYTES"), (half_pass, "ATTENTION_BYTES"), (half_pass, "BLOCK_BYTES")):
        monkeypatch.setattr(module, name, 96)
    monkeypatch.setattr(blocks, "THREADS", 3)
    np.testing.assert_array_equal(half_outputs(model, dtype, X, lengths, i[asked], k[asked]), wanted)


def test_memory_is_bounded(dtype, monkeypatch) -> None:
    """600 answers of 20,000 boxes have 600 * 80,000 units, 192 MB of float32."""
    monkeypatch.setattr(blocks, "THREADS", 2)
    rng = np.random.default_rng(0)
    model = round_weights(many_boxes(rng, 20_000), dtype)[0]
    X, at = rng.standard_normal((600, 1, 2)), np.arange(600)
    tracemalloc.start()
    half_outputs(model, dtype, X, None, at, np.zeros_like(at))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_requests_that_make_no_sense_are_refused() -> None:
    model = stored(FACTS, WORDS)
    for dtype in ("float32", "int4", "", np.dtype("float16"), None):
        with pytest.raises(OptionError, match="a dtype to cast to among"):
            cast(model, dtype, FACTS, WORDS)
    with pytest.raises(OptionError, match="at least 2 answers"):
        cast(model, "float16", FACTS, WORDS, answers=1)
    with pytest.raises(DataError, match=r"kind that was memorised \(classes\); there are real numbers"):
        cast(model, "float16", FACTS, np.zeros((3, 2)))
    with pytest.raises(DataError, match="not in it"):
        cast(model, "float16", [["river", "boat"]], [["water", "shore"]])
