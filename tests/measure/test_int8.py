"""Eight bits: what full layers give with scales for outputs and tokens, and which answers survive."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer import cast, memorize
from onelayer.errors import OptionError
from onelayer.measure.int8 import LARGEST, quantise_weights, quantised_stack, to_whole
from onelayer.network import Grouped, Linear

rng = np.random.default_rng(0)
X, Y = rng.integers(0, 20, (40, 4)), rng.integers(0, 5, (40, 4))


@pytest.fixture(scope="module")
def model():
    return memorize(X, Y, positions=True, dtype="float32", certify=False)


@given(st.integers(0, 50), st.sampled_from([1e-30, 1.0, 1e30]))
def test_numbers_move_by_half_a_step_at_most(seed: int, size: float) -> None:
    values = size * np.random.default_rng(seed).standard_normal((4, 7))
    whole, scale = to_whole(values, axis=1)
    assert (whole == np.rint(whole)).all()
    assert np.abs(whole).max() == LARGEST
    assert (np.abs(whole * scale - values) <= 0.5000001 * scale).all()


def test_zeros_stay_zeros() -> None:
    whole, scale = to_whole(np.zeros((2, 3)), axis=0)
    assert not whole.any()
    assert (scale == 1).all()


def test_whole_numbers_of_8_bits_are_exact_and_grouped_layers_as_they_are() -> None:
    first = Linear(rng.integers(-126, 127, (3, 4)).astype("float32"), np.full(4, 0.3, "float32"))
    first.weight[0] = 127
    second = Grouped(np.full((2, 2, 1), 0.1234567, "float32"), np.zeros(2, "float32"))
    tokens = rng.integers(-126, 127, (5, 3)).astype("float32")
    tokens[:, 2] = -127
    wanted = tokens @ first.weight + first.bias
    np.testing.assert_array_equal(quantised_stack((first,), tokens), wanted)
    grouped = (np.maximum(wanted, 0).reshape(-1, 2, 2) * np.float32(0.1234567)).sum(-1)
    np.testing.assert_allclose(quantised_stack((first, second), tokens), grouped, rtol=1e-6)


def test_a_layer_errs_by_the_steps_of_both_sides() -> None:
    layer = Linear(rng.standard_normal((30, 6)), rng.standard_normal(6))
    tokens = rng.standard_normal((50, 30))
    error = np.abs(quantised_stack((layer,), tokens) - (tokens @ layer.weight + layer.bias))
    steps = np.abs(layer.weight).max(0) / LARGEST / 2, np.abs(tokens).max(1, keepdims=True) / LARGEST / 2
    bound = (
        np.abs(tokens).sum(1)[:, None] * steps[0]
        + np.abs(layer.weight).sum(0) * steps[1]
        + 30 * steps[0] * steps[1]
    )
    assert (error <= bound * 1.000001).all()
    assert error.max() > 1e-3  # it is not the layer itself


def test_most_answers_are_lost_and_the_first_is_named(model) -> None:
    report = cast(model, "int8", X, Y)
    assert report.asked == report.total == Y.size
    assert not report.perfect
    assert "sequence" in report.first_wrong
    assert str(report).startswith(f"int8: {report.right:,} of 160 answers survive (measured)")
    assert 0 < report.weights_changed == quantise_weights(model.transformer)[1] <= report.weights


def test_what_8_bits_hold_survives() -> None:
    """Two tokens of one component, and steps whose weights are all alike."""
    few = memorize([["a"], ["b"]], [["x"], ["y"]], certify=False)
    assert cast(few, "int8", [["a"], ["b"]], [["x"], ["y"]]).perfect


@pytest.mark.filterwarnings("ignore:torch.ao:DeprecationWarning", "ignore::UserWarning")
def test_pytorch_with_coarser_scales_keeps_no_more(model) -> None:
    from onelayer import to_torch

    net = torch.ao.quantization.quantize_dynamic(to_torch(model), {torch.nn.Linear}, torch.qint8)
    asked = model.ask(X)
    found = model.answers(net(torch.as_tensor(asked.tokens)).detach().nan_to_num(-1).numpy(), asked)
    assert (found == Y).sum() <= cast(model, "int8", X, Y).right


def test_lengths_and_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = [["a", "b", "c"], ["b"], ["c", "a"]]
    answers = [["x", "y", "z"], ["x"], ["y", "z"]]
    model = memorize(sequences, answers, certify=False)
    whole = cast(model, "int8", sequences, answers)
    monkeypatch.setattr("onelayer.measure.survival.WORK", 0)
    assert cast(model, "int8", sequences, answers, answers=None).right == whole.right
    assert cast(model, "int8", sequences, answers, answers=2).asked == 2


def test_other_casts_are_refused(model) -> None:
    with pytest.raises(OptionError, match="int8"):
        cast(model, "int4", X, Y)
