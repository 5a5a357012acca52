"""The graph `looped/1` by itself: what is computed, and what is no such graph."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.network import Network, affine, build, stack, total
from tests.checker.counted import counted

LAYER = {"attention": "linear", "causal": False, "context": 1, "mean": True, "window": None, "repeat": 3}
ITSELF = LAYER | {"context": None, "window": 1, "repeat": 2, "mean": False}
JUDGES = LAYER | {"repeat": 1}


def tensors(prefix: str = "", H: int = 2, w: int = 3, s: int = 2, v: int = 1) -> dict[str, np.ndarray]:
    """Whole numbers, all of them different from their neighbours."""
    shapes = {"W_Q": (H, w, s), "W_K": (H, w, s), "W_V": (H, w, v), "W_O": (H, v, w), "b_Q": (H, s), "b_K": (H, s)}
    rng = np.random.default_rng(len(prefix))
    return {f"{prefix}attention.{n}": rng.integers(-3, 4, shape).astype(float) for n, shape in shapes.items()}


def dense(name: str, *sizes: int) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(len(name)), {}
    for i, (p, q) in enumerate(pairwise(sizes)):
        found |= {f"{name}.{i}.weight": rng.integers(-2, 3, (p, q)) + 0.5, f"{name}.{i}.bias": rng.normal(size=q)}
    return found


def network(layers: Any = (LAYER,), drop: str = "", **more: np.ndarray) -> Network:
    last = f"{len(layers) - 1}." if len(layers) > 1 else ""
    found = dense("feedforward", 3, 4, 3) | dense(f"{last}readout", 3, 2)
    for i in range(len(layers)):
        found |= tensors(f"{i}." if i else "")
    found |= more
    return build({k: a for k, a in found.items() if k != drop}, {"template": "looped/1", "layers": list(layers)})


def heads_by_numpy(given: dict[str, np.ndarray], prefix: str, kind: str, asking: Any, key: Any) -> np.ndarray:
    t = {name: given[f"{prefix}attention.{name}"] for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K")}
    update = np.zeros(3)
    for i in range(2):
        score = (asking @ t["W_Q"][i] + t["b_Q"][i]) @ (key @ t["W_K"][i] + t["b_K"][i])
        score = max(score, 0.0) if kind == "relu" else score
        update += score * (key @ t["W_V"][i]) @ t["W_O"][i]
    return update


@pytest.mark.parametrize("kind", ["linear", "relu"])
def test_a_key_adds_what_numpy_says(kind: str) -> None:
    found, rng = network([LAYER | {"attention": kind}]), np.random.default_rng(0)
    for _ in range(6):
        asking, key = rng.integers(-3, 4, (2, 3)).astype(float)
        added = found.loop.add_key(*([Fraction(u) for u in h] for h in (asking, key)))
        assert [float(u) for u in added] == heads_by_numpy(tensors(), "", kind, asking, key).tolist()
    parts = dense("feedforward", 3, 4, 3)
    h = np.maximum(asking @ parts["feedforward.0.weight"] + parts["feedforward.0.bias"], 0)
    h = h @ parts["feedforward.1.weight"] + parts["feedforward.1.bias"]
    np.testing.assert_allclose([float(u) for u in found.loop.before([Fraction(u) for u in asking])], h, rtol=1e-12)
    assert found.loop.feedforward[0].inputs == 3
    assert [head.ridge for head in found.loop.heads] == [None, None]


def test_answers_follow_all_further_layers_and_the_readout() -> None:
    more = dense("2.feedforward", 3, 3) | dense("2.readout", 3, 2, 1)
    found = network([LAYER, JUDGES, ITSELF], **more)
    assert found.panel is not None
    assert (found.panel.context, len(found.after), found.outputs) == (1, 1, 1)
    given = tensors("2.") | more
    h = np.array([1.0, -2.0, 0.5])
    exact = [float(u) for u in found.answer([Fraction(u) for u in h])]
    for _ in range(2):
        h = h @ given["2.feedforward.0.weight"] + given["2.feedforward.0.bias"]
        h = h + heads_by_numpy(given, "2.", "linear", h, h)
    h = np.maximum(h @ given["2.readout.0.weight"] + given["2.readout.0.bias"], 0)
    np.testing.assert_allclose(exact, h @ given["2.readout.1.weight"] + given["2.readout.1.bias"], rtol=1e-12)
    assert network([LAYER, ITSELF]).panel is None
    assert network([LAYER, JUDGES]).panel is not None
    assert network([LAYER, JUDGES]).after == ()
    assert len(network([LAYER, ITSELF]).after) == 1
    assert network().dtype == np.float64
    assert network().outputs == 2
    singles = {k: a.astype(np.float32) for k, a in (tensors() | dense("readout", 3, 2)).items()}
    assert build(singles, {"template": "looped/1", "layers": [LAYER]}).dtype == np.float32
    assert total(()) == 0
    assert stack((), [Fraction(1)]) == [1]


def test_a_layer_is_read_as_it_is_written() -> None:
    loop = network([LAYER | {"causal": True, "context": None}]).loop
    assert (loop.kind, loop.causal, loop.context, loop.mean, loop.window) == ("linear", True, None, True, None)
    assert (loop.repeat, loop.width, len(loop.heads)) == (3, 3, 2)
    mesa = network([LAYER | {"attention": "mesa", "mean": False}], **{"attention.ridge": np.array([0.5, 2.0])})
    assert [head.ridge for head in mesa.loop.heads] == [Fraction(1, 2), 2]
    assert network([LAYER | {"repeat": 1 << 20}]).loop.repeat == 1 << 20
    assert network([LAYER | {"context": 0}]).loop.context == 0
    assert network([LAYER | {"context": 2}]).loop.context == 2
    assert network([LAYER, *[ITSELF] * 7]).after[6].repeat == 2
    assert network([LAYER | {"repeat": 1}]).loop.repeat == 1
    for entry in (ITSELF | {"attention": "relu"}, ITSELF | {"causal": True}):
        assert len(network([LAYER, entry]).after) == 1
    softmax = network([LAYER | {"attention": "softmax", "mean": False}])
    assert softmax.loop.kind == "softmax"


@pytest.mark.parametrize(
    "entry",
    [
        LAYER | {"attention": 3}, LAYER | {"attention": ["linear"]},
        LAYER | {"attention": "hardmax"}, LAYER | {"causal": 0}, LAYER | {"mean": 1},
        LAYER | {"attention": "hardmax", "mean": False},
        LAYER | {"repeat": 0}, LAYER | {"repeat": (1 << 20) + 1}, LAYER | {"repeat": True}, LAYER | {"window": 0},
        LAYER | {"window": True}, LAYER | {"window": 2}, LAYER | {"attention": "softmax"}, LAYER | {"context": 3},
        LAYER | {"context": -1}, LAYER | {"context": True}, LAYER | {"more": 1}, {"attention": "linear"},
        LAYER | {"attention": "mesa", "mean": False}, LAYER | {"context": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_layer_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=r"graph"):
        network([entry])
    if entry.get("window") not in (None, 2):
        with pytest.raises(Malformed, match="is no layer"):
            network([LAYER, entry])


@pytest.mark.parametrize(
    "layers",
    [
        [LAYER, JUDGES | {"repeat": 2}], [LAYER, JUDGES | {"causal": True}], [LAYER, JUDGES | {"window": 1}],
        [LAYER, ITSELF, JUDGES], [LAYER, ITSELF | {"window": None}], [LAYER, ITSELF | {"window": 2}],
        [LAYER, ITSELF | {"attention": "softmax"}], [LAYER, JUDGES, JUDGES], [LAYER | {"window": 1}, ITSELF],
        [LAYER, *[ITSELF] * 8], [], [LAYER, ITSELF | {"context": 1}],
        [LAYER, ITSELF, ITSELF | {"context": 1}],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_stack_is_refused(layers: list[dict[str, Any]]) -> None:
    with pytest.raises(Malformed):
        network(layers)


@pytest.mark.parametrize(
    "more",
    [
        {"attention.W_Q": np.ones((2, 3))}, {"attention.W_K": np.ones((2, 3, 1))},
        {"attention.W_V": np.ones((1, 3, 1))},
        {"attention.W_O": np.ones((2, 3, 1))}, {"attention.b_Q": np.ones(2)}, {"attention.b_K": np.ones((1, 2))},
        {"attention.ridge": np.ones(2)}, {"attention.b_V": np.ones(2)}, {"readout.0.weight": np.ones((2, 2))},
        {"readout.0.weight": np.ones(3)}, {"readout.0.bias": np.ones((2, 1))}, {"readout.0.bias": np.ones(3)},
        {"feedforward.1.weight": np.ones((4, 2)), "feedforward.1.bias": np.ones(2)},
        {"feedforward.3.weight": np.ones(3)},
        {"feedforward.0.weight": np.ones((3, 4), np.float32)}, {"feedforward.0.weight": np.ones((3, 4), int)},
        {"attention.W_V": np.ones((2, 4, 1))}, {"attention.W_O": np.ones((2, 1, 4))},
    ],
    ids=lambda more: ", ".join(f"{k} {a.shape}" for k, a in more.items()),
)  # fmt: skip
def test_tensors_that_do_not_fit_are_refused(more: dict[str, np.ndarray]) -> None:
    with pytest.raises(Malformed):
        network(**more)


def test_a_graph_has_all_its_parts_and_no_others() -> None:
    for drop in (
        "attention.W_Q",
        "attention.W_K",
        "attention.W_V",
        "attention.W_O",
        "readout.0.weight",
        "readout.0.bias",
    ):
        with pytest.raises(Malformed):
            network(drop=drop)
    network(drop="attention.b_Q")
    with pytest.raises(Malformed, match="there is no readout"):
        build(tensors(), {"template": "looped/1", "layers": [LAYER]})
    whole = {name: a.astype(int) for name, a in tensors().items()} | {"readout.0.weight": np.ones((3, 1), int)}
    with pytest.raises(Malformed, match="all F32 or all F64"):
        build(whole | {"readout.0.bias": np.ones(1, int)}, {"template": "looped/1", "layers": [LAYER]})
    with pytest.raises(Malformed, match="gives another width"):
        network(**dense("feedforward", 3, 3, 2))
    with pytest.raises(Malformed, match="gives another width"):
        network(**dense("feedforward", 3, 3, 3, 2))
    for graph in ({"template": "looped/1"}, {"template": "looped/1", "layers": [LAYER], "more": 1}):
        with pytest.raises(Malformed):
            build(tensors() | dense("readout", 3, 2), graph)
    with pytest.raises(Malformed, match="1 to 8 layers"):
        build(tensors() | dense("readout", 3, 2), {"template": "looped/1", "layers": LAYER})
    mesa = [LAYER | {"attention": "mesa", "mean": False}]
    for ridge in (
        np.array([1.0, 0.0]),
        np.array([1.0, -1.0]),
        np.array([1.0, np.nan]),
        np.ones(1),
        np.ones((2, 1)),
    ):
        with pytest.raises(Malformed, match="positive ridge"):
            network(mesa, **{"attention.ridge": ridge})
    wider = {k.replace("attention", "1.attention"): a for k, a in tensors(w=4).items()}
    with pytest.raises(Malformed, match="no readout, or there are other tensors"):
        network([LAYER, ITSELF], **wider)


def test_weights_are_exact_and_charged_before_they_are_made() -> None:
    weight, bias = np.array([[0.1, 0.0], [0.0, 0.0], [-2.0, 3.0]]), np.array([0.3, 0.0])
    with counted() as spent:
        found = affine(weight, bias)
    assert spent == [("weights as fractions", 2e3 * 5, 0, 300 * 5)]
    assert found.columns == (((0, Fraction(0.1)), (2, Fraction(-2))), ((2, Fraction(3)),))
    assert (found.bias, found.inputs) == ((Fraction(0.3), Fraction(0)), 3)
    assert found([Fraction(1), Fraction(5), Fraction(1)]) == [Fraction(0.1) - 2 + Fraction(0.3), 3]
    with counted() as spent:
        found([Fraction(1), Fraction(5), Fraction(1)])
    assert len(spent) == 3
