"""Networks that others made, read as formulas: the same function, or a refusal that names the operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPRegressor
from torch import nn

from onelayer import OptionError, approximate
from onelayer.errors import FileError
from onelayer.problems.targets.networks import network_program, read_network

X = np.random.default_rng(0).uniform(-1, 1, (6, 4, 2))


class Block(nn.Module):
    """Attention as people write it, with a residual stream and a feed-forward readout."""

    def __init__(self, heads: int = 2, pool: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.up, self.qkv, self.out = nn.Linear(2, 4), nn.Linear(4, 12), nn.Linear(4, 4)
        self.last = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
        self.heads, self.pool = heads, pool

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, n, _ = x.shape
        h = torch.tanh(self.up(x))
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        q, k, v = (part.view(B, n, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5, dim=-1)
        h = h + self.out((weights @ v).transpose(1, 2).reshape(B, n, 4))
        found: torch.Tensor = self.last(h.mean(dim=1) if self.pool else h)
        return found


class Call(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)  # type: ignore[no-any-return]


class Multihead(nn.Module):
    def __init__(self, mask: bool = False) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.up, self.attend, self.down = (
            nn.Linear(2, 4),
            nn.MultiheadAttention(4, 2, batch_first=True),
            nn.Linear(4, 2),
        )
        self.mask = mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x).relu()
        mask = torch.zeros(4, 4) if self.mask else None
        found: torch.Tensor = self.down(h + self.attend(h, h, h, attn_mask=mask)[0]) * 2 - 1
        return found


class Pooled(nn.Module):
    """Deep sets: a function of a mean, and a maximum."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first, self.last = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        found: torch.Tensor = self.last(h.mean(1)) + h.amax(dim=1)[:, :2]
        return found


def asked(module: nn.Module) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        return np.asarray(module.double().eval()(torch.from_numpy(X)).numpy())


@pytest.mark.parametrize(
    "module", [Block(1), Block(2), Multihead(), Pooled(), nn.Sequential(nn.Linear(2, 3), nn.Tanh())]
)
def test_a_module_is_the_formula_that_is_read(module: nn.Module) -> None:
    wanted, formula = asked(module), read_network(module, 4, 2)
    assert formula.any_length
    assert np.abs(formula.evaluate(X) - wanted).max() < 1e-12
    assert np.abs(network_program(module, 4, 2, True).evaluate(X) - wanted).max() < 1e-12
    assert np.abs(formula.program().evaluate(X) - wanted).max() < 1e-12


def test_a_program_has_several_layers_and_normalisation() -> None:
    torch.manual_seed(6)
    layer = nn.TransformerEncoderLayer(2, 1, 4, batch_first=True, norm_first=True)
    module = nn.Sequential(layer, nn.TransformerEncoderLayer(2, 2, 3, batch_first=True), nn.LayerNorm(2)).eval()
    assert np.abs(network_program(module, 4, 2, True).evaluate(X) - asked(module)).max() < 1e-9


@pytest.mark.parametrize(
    ("module", "named"),
    [
        (nn.Sequential(nn.Linear(2, 4), nn.GELU()), "GELU"),
        (nn.Sequential(nn.Conv1d(4, 4, 1)), "Conv1d"),
        (Block(2, pool=True), "a second layer"),
        (Multihead(mask=True), "a mask"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train(), "eval()"),
        (nn.Linear(3, 1), "Linear"),
        (Call(torch.sign), "sign (sign): it jumps"),
        (Call(torch.erf), "erf (erf): no such operation"),
    ],
)
def test_what_is_no_formula_is_refused_by_name(module: nn.Module, named: str) -> None:
    with pytest.raises(OptionError, match="network") as refusal:
        read_network(module, 4, 2)
    assert named in str(refusal.value)


def attention_graph(softmax: str = "Softmax") -> onnx.ModelProto:
    """h = relu(x A + a); softmax(h Q h^T) h V + h, then a mean over components."""
    rng = np.random.default_rng(7)
    weights = {"A": (2, 3), "a": (3,), "Q": (3, 3), "V": (3, 3)}
    tensors = [numpy_helper.from_array(rng.normal(size=shape), name) for name, shape in weights.items()]
    axes = numpy_helper.from_array(np.array([2]), "axes")
    steps = [
        ("MatMul", ["x", "A"], "u"),
        ("Add", ["u", "a"], "v"),
        ("Relu", ["v"], "h"),
        ("MatMul", ["h", "Q"], "q"),
    ]
    nodes = [helper.make_node(kind, inputs, [name], name) for kind, inputs, name in steps]
    nodes.append(helper.make_node("Transpose", ["h"], ["t"], "t", perm=[0, 2, 1]))
    nodes.append(helper.make_node("MatMul", ["q", "t"], ["s"], "s"))
    nodes.append(helper.make_node(softmax, ["s"], ["p"], "the weights", axis=-1))
    more = [("MatMul", ["h", "V"], "w"), ("MatMul", ["p", "w"], "o"), ("Add", ["h", "o"], "z")]
    nodes += [helper.make_node(kind, inputs, [name], name) for kind, inputs, name in more]
    nodes.append(helper.make_node("ReduceMean", ["z", "axes"], ["out"], "out", keepdims=1))
    ends = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, ["B", "n", w]) for n, w in (("x", 2), ("out", 1))]
    graph = helper.make_graph(nodes, "attention", ends[:1], ends[1:], [*tensors, axes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_an_onnx_file_is_the_formula_that_is_read(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    model, path = attention_graph(), tmp_path / "net.onnx"
    onnx.save(model, path)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": X})
    for given in (model, path, str(path)):
        assert np.abs(read_network(given, 4, 2).evaluate(X) - wanted).max() < 1e-12


def test_a_node_that_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"the weights \(Hardmax\)"):
        read_network(attention_graph("Hardmax"), 4, 2)
    with pytest.raises(FileError):
        read_network(tmp_path / "none.onnx", 4, 2)
    (tmp_path / "broken.onnx").write_bytes(b"\x07broken")
    with pytest.raises(FileError):
        read_network(tmp_path / "broken.onnx", 4, 2)


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic"])
def test_a_fitted_perceptron_answers_for_each_token(activation: str) -> None:
    rows = X.reshape(-1, 2)
    model = MLPRegressor(hidden_layer_sizes=(5,), activation=activation, max_iter=40, tol=1.0)
    model.fit(rows, rows @ [1.0, -2.0])
    found = read_network(model, 4, 2).evaluate(X)
    assert np.abs(found.ravel() - model.predict(rows)).max() < 1e-12
    with pytest.raises(OptionError, match="fit"):
        read_network(MLPRegressor(), 4, 2)


def test_a_trained_network_is_compiled_with_a_bound_against_itself() -> None:
    module = Block(1)
    optimizer = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(30):
        tokens = torch.rand(64, 4, 2) * 2 - 1
        loss = ((module(tokens)[..., 0] - tokens[..., 0] * tokens[..., 1].mean(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model = approximate(module.eval(), n=4, d=2, low=-1, high=1, tolerance=0.05)
    assert model.error_bound <= 0.05
    found = model.predict(X.astype(np.float32))
    assert np.abs(found - asked(module)).max() <= model.error_bound + 1e-6
