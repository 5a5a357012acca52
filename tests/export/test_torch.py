"""PyTorch: the same weights, the same answers, the same bits on stored data, and training that goes on."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch

from onelayer.export.torch import Grouped, OneLayer, to_torch
from onelayer.network.blocks import evaluate
from onelayer.problems.sequences import Sequences
from tests.export.exported import (
    NAMES,
    Case,
    assert_follows_numpy,
    case,
    d,
    far_below_zero,
    n,
    permuted,
    random_transformer,
    staircase,
)


def run(net: OneLayer, sequences: Sequences) -> np.ndarray:
    lengths = None if sequences.lengths is None else torch.from_numpy(sequences.lengths)
    with torch.inference_mode():
        return net(torch.from_numpy(sequences.tokens), lengths).numpy()


@pytest.fixture(params=NAMES)
def stored(request) -> Case:
    return case(request.param)


def test_stored_answers_come_back_to_the_bit(stored) -> None:
    stored.assert_recalled(run(to_torch(stored.model), stored.stored))


def test_unknown_outputs_are_close(stored) -> None:
    stored.assert_close(stored.unknown, run(to_torch(stored.transformer), stored.unknown))


def test_other_batches_and_lengths(stored) -> None:
    stored.assert_close(stored.one_shorter(), run(to_torch(stored.model), stored.one_shorter()))


def test_weights_are_the_same_bits(stored) -> None:
    net, model = to_torch(stored.model), stored.transformer
    found = dict(net.named_parameters())
    assert {p.dtype for p in found.values()} == {torch.from_numpy(np.zeros(0, model.dtype)).dtype}
    renamed = {"embedding.lift": "embedding.lift.weight", "embedding.table": "embedding.table.weight"}
    renamed["embedding.positions"] = "embedding.positions.weight"
    for name, array in model.tensors():
        value = found.pop(renamed.get(name, name)).detach().numpy()
        linear = name.endswith(("lift", "weight")) and array.ndim == 2  # nn.Linear stores the transpose
        assert (value.T if linear else value).tobytes() == array.tobytes(), name
    assert not found


@pytest.mark.parametrize("name", [name for name in NAMES if name != "triangular"])
def test_twenty_orders_of_summation_give_the_same_bits(name) -> None:
    """Channels, hidden units, plateaus, components and tokens in another order: every sum is evaluated again."""
    stored, rng = case(name), np.random.default_rng(5)
    tokens, lengths = stored.stored.tokens, stored.stored.lengths
    e = stored.transformer.embedding
    free = lengths is None and (e is None or e.positions is None)  # then tokens can be reordered too
    for _ in range(20):
        other, components = permuted(stored.transformer, rng)
        order = rng.permutation(stored.stored.n) if free else np.arange(stored.stored.n)
        fed = tokens[:, order] if tokens.ndim == 2 else tokens[:, order][:, :, components]
        wanted = stored.outputs[:, order][stored.inside]
        np.testing.assert_array_equal(evaluate(other, fed, lengths)[stored.inside], wanted)
        outputs = run(to_torch(other), Sequences(np.ascontiguousarray(fed), lengths))
        np.testing.assert_array_equal(outputs[stored.inside], wanted)


def test_another_order_of_summation_is_another_rounding() -> None:
    """The orders above are no empty promise: a readout that does not saturate shows them in its last bits."""
    stored, rng = case("triangular"), np.random.default_rng(5)
    other, components = permuted(stored.transformer, rng)
    outputs = evaluate(other, stored.stored.tokens[:, :, components])
    np.testing.assert_allclose(outputs, stored.outputs, atol=1e-7)
    assert (outputs != stored.outputs).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("causal", [False, True])
def test_every_part_follows_numpy(dtype, kind, causal) -> None:
    assert_follows_numpy(dtype, lambda model: partial(run, to_torch(model)), kind=kind, causal=causal)


@pytest.mark.parametrize(("name", "spoilt"), [("lengths", np.nan), ("ids, positions and lengths", 10**6)])
def test_padding_is_not_looked_at(name, spoilt) -> None:
    stored = case(name)
    tokens = stored.stored.tokens.copy()
    tokens[~stored.inside] = spoilt
    with np.errstate(invalid="ignore"):
        stored.assert_recalled(run(to_torch(stored.model), Sequences(tokens, stored.stored.lengths)))


def test_padding_has_no_weight_however_small_the_logits() -> None:
    tokens = np.array([[[300.0], [0.0]]])
    assert run(to_torch(far_below_zero()), Sequences(tokens, np.array([1])))[0, 0] == 600.0


def test_a_sequence_longer_than_the_positions_is_an_error() -> None:
    net = to_torch(case("ids and positions").model)
    with pytest.raises(IndexError):
        net(torch.zeros((1, n + 1), dtype=torch.int64))


def test_training_goes_on() -> None:
    """One step of SGD: a gradient at every parameter, a smaller loss, and the model left alone."""
    rng = np.random.default_rng(4)
    model = random_transformer(rng)
    before = {name: array.tobytes() for name, array in model.tensors()}
    net = to_torch(model)
    tokens, goal = (torch.from_numpy(rng.standard_normal((20, n, size))) for size in (d, 3))

    def loss() -> torch.Tensor:
        return torch.nn.functional.mse_loss(net(tokens), goal)

    first = loss()
    first.backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        # A bias of the keys adds the same number to all logits of a query, so there the derivative is zero.
        assert name == "attention.b_K" or parameter.grad.abs().max() > 1e-6, name
    torch.optim.SGD(net.parameters(), lr=1e-2).step()
    assert loss() < first
    assert before == {name: array.tobytes() for name, array in model.tensors()}


def test_gradients_reach_every_parameter(stored) -> None:
    net = to_torch(stored.model)
    lengths = None if stored.stored.lengths is None else torch.from_numpy(stored.stored.lengths)
    net(torch.from_numpy(stored.stored.tokens), lengths).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_the_random_generator_stays_where_it_was() -> None:
    before = torch.random.get_rng_state()
    to_torch(case("ids and positions").model)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_million_plateaus(dtype) -> None:
    model = staircase(10**6, dtype)
    tokens = np.array([[[3.0], [999_999.0]], [[123_456.0], [0.0]]])
    assert run(to_torch(model), Sequences(tokens, None)).ravel().tolist() == [21.0, 993.0, 192.0, 0.0]


def test_blocks_are_a_grouped_convolution() -> None:
    layer = random_transformer(np.random.default_rng(6)).readout[1]
    groups, inputs, outputs = layer.weight.shape
    conv = torch.nn.Conv1d(groups * inputs, groups * outputs, 1, groups=groups, dtype=torch.float64)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor(layer.weight.transpose(0, 2, 1).reshape(-1, inputs, 1)))
        conv.bias.copy_(torch.tensor(layer.bias))
        x = torch.linspace(-1, 1, 5 * groups * inputs, dtype=torch.float64).reshape(5, -1)
        torch.testing.assert_close(Grouped(layer)(x), conv(x[..., None])[..., 0])


def test_the_state_is_named_like_the_tensors() -> None:
    model = random_transformer(np.random.default_rng(7))
    net, again = to_torch(model), to_torch(random_transformer(np.random.default_rng(8)))
    names = {name.removesuffix(".weight") for name in net.state_dict()}
    assert names == {name.removesuffix(".weight") for name, _ in model.tensors()}
    again.load_state_dict(net.state_dict())
    X = torch.ones((1, n, d), dtype=torch.float64)
    assert torch.equal(net(X), again(X))


def test_without_torch_the_error_names_the_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import onelayer\n"
        "try: from onelayer.export.torch import to_torch\n"
        "except ImportError as error: print(type(error).__name__, error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("MissingExtraError to_torch needs the package 'torch'")
    assert 'pip install ".[torch]"' in ran.stdout
