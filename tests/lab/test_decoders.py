"""A small GPT: who sees whom, and what a layer gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onelayer.lab.decoders import Decoder, examples, past
from onelayer.lab.prompts import start

torch.set_num_threads(1)


def made(heads: int = 2) -> tuple[Decoder, dict, torch.Tensor]:
    net = Decoder(3, 2, 6, 8, 2, heads)
    return net, start(net.sizes(), 1), torch.randn((4, 6, 3), generator=torch.Generator().manual_seed(2))


def test_a_token_sees_the_past_and_nothing_else() -> None:
    net, weights, tokens = made()
    before, attention = net.run(weights, tokens, past(6))
    later = tokens.clone()
    later[:, 4:] += 1
    after = net.run(weights, later, past(6))[0]
    assert before.shape == (4, 6, 2)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert (before[:, 4:] - after[:, 4:]).abs().min() > 1e-6
    for weights_of in attention:
        assert weights_of.shape == (4, 2, 6, 6)
        torch.testing.assert_close(weights_of.sum(-1), torch.ones(4, 2, 6))
        assert weights_of.triu(1).abs().max() == 0


def test_a_query_sees_examples_and_itself() -> None:
    net, weights, tokens = made()
    before = net.run(weights, tokens, examples(4, 2))[0]
    other = tokens.clone()
    other[:, 5] += 1
    after = net.run(weights, other, examples(4, 2))[0]
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5] - after[:, 5]).abs().min() > 1e-6
    example = tokens.clone()
    example[:, 3] += 1
    assert (before[:, 4] - net.run(weights, example, examples(4, 2))[0][:, 4]).abs().min() > 1e-7


def test_one_layer_is_the_one_that_is_written_down() -> None:
    net = Decoder(3, 1, 4, 8, 1)
    weights = start(net.sizes(), 3)
    tokens = torch.randn((1, 4, 3), generator=torch.Generator().manual_seed(2))
    found = net.run(weights, tokens, past(4))[0]
    t = {name: tensor.detach().double().numpy() for name, tensor in weights.items()}

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    h = tokens[0].double().numpy() @ t["embedding"] + t["places"]
    x, averages = norm(h), []
    for i in range(4):
        logits = (x[i] @ t["0.W_Q"]) @ (x[: i + 1] @ t["0.W_K"]).T / np.sqrt(8)
        e = np.exp(logits - logits.max())
        averages.append(e / e.sum() @ (x[: i + 1] @ t["0.W_V"]))
    h = h + np.array(averages) @ t["0.W_O"]
    h = h + np.maximum(norm(h) @ t["0.in"], 0) @ t["0.out"]
    np.testing.assert_allclose(found[0].detach().numpy(), h @ t["head"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_weights_begin_at_the_same_sizes_however_many_heads(heads) -> None:
    net, weights, _ = made(heads)
    assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == {
        name: size for name, (size, _) in net.sizes().items()
    }
    assert all(float(tensor.detach().abs().max()) == 0 for name, tensor in weights.items() if name.endswith("bias"))
