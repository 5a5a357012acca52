"""ONNX: standard operators, every weight under its own name, the same bits on stored data in ONNX Runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache, partial

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from onelayer import OptionError
from onelayer.export import onnx as export
from onelayer.export.onnx import build, to_onnx
from onelayer.network import Transformer
from onelayer.network.blocks import evaluate
from onelayer.problems.sequences import Sequences
from tests.export.exported import (
    NAMES,
    Case,
    Run,
    assert_follows_numpy,
    case,
    d,
    far_below_zero,
    n,
    random_transformer,
    staircase,
)

LEVELS = onnxruntime.GraphOptimizationLevel
OPTIMISED, AS_WRITTEN = LEVELS.ORT_ENABLE_ALL, LEVELS.ORT_DISABLE_ALL

#: Standard operators that onnxruntime has in float32 and in float64.
OPERATORS = (
    "Add And Cast Constant Div Einsum Equal Gather Identity Less LessOrEqual MatMul Mul Range ReduceMax ReduceSum "
    "Relu Reshape Shape Softmax Squeeze Transpose Unsqueeze Where"
)
OF_A_MASK = "CumSum Expand Max Not Sub"
PADDED = ("lengths", "attention_mask")


def session(model: Transformer, level: LEVELS = OPTIMISED, **fixed: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.intra_op_num_threads = level, 1
    for name, size in fixed.items():  # known sizes allow onnxruntime more fusions
        options.add_free_dimension_override_by_name(name, size)
    content = build(model).SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@cache
def session_of(name: str) -> onnxruntime.InferenceSession:
    return session(case(name).transformer)


def feeds(model: Transformer, asked: Sequences) -> dict[str, np.ndarray]:
    tokens = asked.tokens if asked.tokens.ndim == 2 else asked.tokens.astype(model.dtype)
    return {"tokens": tokens, "lengths": np.full(asked.N, asked.n) if asked.lengths is None else asked.lengths}


def run(session: onnxruntime.InferenceSession, model: Transformer, asked: Sequences) -> np.ndarray:
    return session.run(["outputs"], feeds(model, asked))[0]


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture
def stored(name) -> Case:
    return case(name)


def test_stored_answers_come_back_to_the_bit(name, stored) -> None:
    stored.assert_recalled(run(session_of(name), stored.transformer, stored.stored))


def test_optimisations_leave_the_bits_alone(stored) -> None:
    as_written = session(stored.transformer, AS_WRITTEN)
    fixed = session(stored.transformer, OPTIMISED, N=stored.stored.N, n=stored.stored.n)
    for one in (as_written, fixed):
        stored.assert_recalled(run(one, stored.transformer, stored.stored))


def test_the_reference_evaluator_agrees(stored) -> None:
    reference = ReferenceEvaluator(build(stored.transformer))
    stored.assert_recalled(reference.run(["outputs"], feeds(stored.transformer, stored.stored))[0])


def test_unknown_outputs_are_close(name, stored) -> None:
    stored.assert_close(stored.unknown, run(session_of(name), stored.transformer, stored.unknown))


def test_other_batches_and_lengths(name, stored) -> None:
    one = stored.one_shorter()
    stored.assert_close(one, run(session_of(name), stored.transformer, one))


def assert_the_tensors(model: onnx.ModelProto, transformer: Transformer) -> None:
    """Every weight once, by name, with its bytes, used by one node, and nothing besides but what stands for no
    padding."""
    weights = [i for i in model.graph.initializer if i.name not in PADDED]
    found = [(i.name, tuple(i.dims), i.raw_data) for i in weights]
    assert found == [(name, a.shape, a.tobytes()) for name, a in transformer.tensors()]
    assert {numpy_helper.to_array(i).dtype for i in weights} == {transformer.dtype}
    assert len(model.graph.initializer) == len(weights) + 1
    uses = [name for node in model.graph.node for name in node.input]
    assert all(uses.count(i.name) == 1 for i in model.graph.initializer)


def test_initialisers_are_the_tensors(stored, tmp_path) -> None:
    path = to_onnx(stored.model, tmp_path / "deep" / "model.onnx")
    assert_the_tensors(onnx.load(path), stored.transformer)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_initialisers_of_every_part(dtype) -> None:
    transformer = random_transformer(np.random.default_rng(9), dtype)
    assert_the_tensors(build(transformer), transformer)


@pytest.mark.parametrize("padding", PADDED)
def test_the_file_is_standard(stored, tmp_path, padding) -> None:
    path = to_onnx(stored.transformer, tmp_path / "model.onnx", padding)
    assert os.listdir(tmp_path) == ["model.onnx"]
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 21)]
    known = set(OPERATORS.split()) | (set(OF_A_MASK.split()) if padding == "attention_mask" else set())
    assert {node.op_type for node in model.graph.node} <= known
    assert {node.domain for node in model.graph.node} == {""}
    axes = {"lengths": ["lengths_N"], "attention_mask": ["mask_N", "mask_n"]}[padding]
    shapes = {v.name: [x.dim_param or x.dim_value for x in v.type.tensor_type.shape.dim] for v in model.graph.input}
    assert shapes == {"tokens": ["N", "n", d] if stored.stored.is_real else ["N", "n"], padding: axes}
    assert [v.name for v in model.graph.output] == ["outputs"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("level", [OPTIMISED, AS_WRITTEN])
def test_every_part_follows_numpy(dtype, kind, causal, level) -> None:
    def opened(model: Transformer) -> Run:
        return partial(run, session(model, level), model)

    assert_follows_numpy(dtype, opened, kind=kind, causal=causal)


@pytest.mark.parametrize(("name", "spoilt"), [("lengths", np.nan), ("ids, positions and lengths", 10**6)])
def test_padding_is_not_looked_at(name, spoilt) -> None:
    stored = case(name)
    tokens = stored.stored.tokens.copy()
    tokens[~stored.inside] = spoilt
    outputs = run(session_of(name), stored.transformer, Sequences(tokens, stored.stored.lengths))
    with np.errstate(invalid="ignore"):
        stored.assert_recalled(outputs)


def test_padding_has_no_weight_however_small_the_logits() -> None:
    model, asked = far_below_zero(), Sequences(np.array([[[300.0], [0.0]]]), np.array([1]))
    assert run(session(model), model, asked)[0, 0] == 600.0


def test_a_sequence_longer_than_the_positions_is_an_error() -> None:
    model = case("ids and positions").transformer
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
        run(session_of("ids and positions"), model, Sequences(np.zeros((1, n + 1), np.int64), None))


def test_a_model_without_a_readout_gives_its_contexts() -> None:
    whole = random_transformer(np.random.default_rng(5))
    model = Transformer(whole.attention, whole.embedding)
    asked = Sequences(np.ones((2, 3, d)), None)
    np.testing.assert_allclose(run(session(model), model, asked), evaluate(model, asked.tokens), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_million_plateaus(dtype) -> None:
    model = staircase(10**6, dtype)
    asked = Sequences(np.array([[[3.0], [999_999.0]], [[123_456.0], [0.0]]]), None)
    assert run(session(model), model, asked).ravel().tolist() == [21.0, 993.0, 192.0, 0.0]


def test_what_protobuf_cannot_hold_is_refused_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(export, "LARGEST", 1_050_000)
    with pytest.raises(OptionError, match=r"\[data\] needs less than 2 GB of weights.* GB\. Use `save`"):
        to_onnx(case("boxes of rank 3, float32").model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = to_onnx(case("ids").model, tmp_path / "model.onnx")
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        to_onnx(case("real tokens").model, path)
    assert os.listdir(tmp_path) == ["model.onnx"]
    assert path.read_bytes() == before


def test_the_same_model_gives_the_same_file(tmp_path) -> None:
    first, again = (to_onnx(case("averages").model, tmp_path / name) for name in ("a.onnx", "b.onnx"))
    assert first.read_bytes() == again.read_bytes()


def test_without_onnx_the_error_names_the_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['onnx'] = None\n"
        "import onelayer\n"
        "try: from onelayer.export.onnx import to_onnx\n"
        "except ImportError as error: print(type(error).__name__, error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("MissingExtraError to_onnx needs the package 'onnx'")
    assert 'pip install ".[onnx]"' in ran.stdout


def test_exporting_needs_neither_torch_nor_onnxruntime(tmp_path) -> None:
    program = (
        "import sys\n"
        "for name in ('torch', 'onnxruntime', 'onnxscript'): sys.modules[name] = None\n"
        "import onelayer\n"
        "from onelayer.export.onnx import to_onnx\n"
        "to_onnx(onelayer.memorize([['a', 'b']], [[1, 2]]), sys.argv[1])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "m.onnx")], check=True)
    onnx.checker.check_model(tmp_path / "m.onnx")
