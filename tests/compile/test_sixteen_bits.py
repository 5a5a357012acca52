"""Models for 16 bits: exact in NumPy and in torch, proved, saved in two bytes; refusals name the place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onelayer import edit, load, memorize, to_torch, with_logits
from onelayer.certificates.tensors import load_tensors, save_tensors
from onelayer.errors import HypothesisError, OptionError, PrecisionError
from onelayer.network.formats import FORMATS, nearest
from onelayer_checker.core.files import parse_safetensors

RNG = np.random.default_rng(0)
IDS = np.unique(RNG.integers(0, 9, (60, 4)), axis=0)
FACTS = RNG.integers(0, 100, len(IDS))
REALS = nearest(nearest(RNG.standard_normal((20, 8, 3)), "bfloat16"), "float16").astype(np.float64)
LABELS = RNG.integers(0, 5, (20, 8))
CASES = {
    "ordered ids": (IDS, FACTS, {"positions": True, "scope": "sequence"}),
    "answers of ids": (IDS, IDS * 7 % 11, {"positions": True}),
    "bags of words": ([["a", "b"], ["b", "c"], ["a", "c"]], ["x", "y", "z"], {}),
    "reals": (REALS, LABELS, {}),
    "one component": (REALS[:, :2, :1], LABELS[:, :2], {"positions": True}),
}
halves = pytest.mark.parametrize("dtype", list(FORMATS))


@halves
@pytest.mark.parametrize("case", CASES)
def test_every_answer_comes_back_in_sixteen_bits_and_is_proved(tmp_path, dtype, case) -> None:
    X, Y, options = CASES[case]
    model = memorize(X, Y, dtype=dtype, certify=True, **options)
    assert (np.asarray(model.predict(X)) == np.asarray(Y)).all()
    assert model.arithmetic == model.ledger["dtype"] == dtype
    assert model.ledger["bytes"] == 2 * model.n_parameters
    claims = [(claim["type"], claim["arith"]) for claim in model.certificate.claims]
    assert claims[:3] == [("memorizes", "real"), ("memorizes", "float32"), ("memorizes", dtype)]
    net, asked = to_torch(model), model.ask(X)
    assert {p.dtype for p in net.parameters()} == {getattr(torch, dtype)}
    tokens = torch.as_tensor(asked.tokens)
    with torch.no_grad():
        outputs = net(tokens).float().numpy()
    assert (np.asarray(model.answers(outputs, asked)) == np.asarray(Y)).all()
    again = load(model.save(tmp_path / "model"))
    assert again == model
    assert again.verify(require=[f"memorizes {dtype}"]).result == "VERIFIED"
    stored = parse_safetensors((tmp_path / "model" / "model.safetensors").read_bytes(), "model")
    assert all(FORMATS[dtype].holds(a).all() for a in stored.values())
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 2 * model.n_parameters + 8000


@halves
def test_a_weight_that_is_no_number_of_the_format_is_not_claimed(tmp_path, dtype) -> None:
    """The same folder with one weight that 16 bits round: the claim does not go with it."""
    from dataclasses import replace

    from onelayer.certificates.certificate import judge_claims

    model = memorize(*CASES["bags of words"][:2], dtype=dtype, certify=True)
    tensors = dict(model.transformer.tensors())
    name = "readout.1.weight"
    tensors[name] = tensors[name] * np.float32(1 + 2.0**-20)
    proof = model.certificate
    for entries, fits in ((proof.claims[:2], True), (proof.claims[2:3], False)):
        changed = model.transformer.with_tensors(tensors)
        if fits:
            judge_claims(changed, proof.data, proof.names, entries)
        else:
            with pytest.raises(HypothesisError, match=f"a {dtype} claim needs weights and tokens that are numbers"):
                judge_claims(changed, proof.data, proof.names, entries)
    assert replace(model, transformer=changed, certificate=None).save(tmp_path / "model").exists()
    assert load(tmp_path / "model").transformer.tensors is not None


@pytest.mark.parametrize("dtype", [None, *FORMATS])
def test_tensors_are_read_as_they_were_saved(dtype) -> None:
    tensors = {"a": np.array([[1.5, -2.0], [0.0, 0.125]], np.float32), "b": np.ones((1, 2, 3), np.float32)}
    content = save_tensors(tensors, {"what": "ever"}, dtype)
    for found in (load_tensors(content), parse_safetensors(content, "model")):
        assert sorted(found) == ["a", "b"]
        for name, array in tensors.items():
            assert found[name].dtype == np.float32
            assert (found[name] == array).all()


@halves
def test_what_sixteen_bits_do_not_hold_is_refused_by_place(dtype) -> None:
    bad = REALS.copy()
    bad[3, 2, 1] = 1.0 + 2.0**-12
    with pytest.raises(PrecisionError, match=f"numbers of {dtype}; sequence 3, token 2, component 1 is 1.0002"):
        memorize(bad, LABELS, dtype=dtype)
    for options, what in (
        ({"default": 0}, "no default"),
        ({"logits": True}, "no logits"),
        ({"mapping": "lattice"}, '"tallies" or "auto"'),
        ({"readout": "table"}, '"planes" or "auto"'),
    ):
        with pytest.raises(OptionError, match=what):
            memorize(REALS, LABELS, dtype=dtype, **options)
    with pytest.raises(HypothesisError, match="answers that are classes"):
        memorize(REALS, LABELS / 3, dtype=dtype)
    with pytest.raises(PrecisionError, match=r"a power of two.*there are 3\. Fill each up to 4"):
        memorize(IDS[:, :3], FACTS, dtype=dtype, positions=True, on_conflict="first")
    with pytest.raises(HypothesisError, match="sequences of one length; lengths from 1 to 2"):
        memorize([["a"], ["a", "b"]], [0, 1], dtype=dtype)
    many = np.arange(4096).reshape(-1, 1)
    with pytest.raises(PrecisionError, match="classes in"):
        memorize(many, many[:, 0], dtype=dtype)


def test_an_unknown_dtype_is_refused() -> None:
    for dtype in ("float8", "bfloat17", np.int32, "complex64"):
        with pytest.raises(OptionError, match="float32, float64, float16 or bfloat16"):
            memorize(IDS, FACTS, dtype=dtype, positions=True)


@halves
def test_an_edited_model_stays_one_of_sixteen_bits(dtype) -> None:
    """Also where a sequence is new to it, for which it is rebuilt."""
    model = memorize(IDS[:30], FACTS[:30], dtype=dtype, positions=True, scope="sequence")
    for i in (3, 31):
        changed = edit(model, IDS[i : i + 1], [int(FACTS[3] + 1) % 100])
        assert changed.model.arithmetic == dtype
        assert f"memorizes {dtype}" in {f"{c['type']} {c['arith']}" for c in changed.model.certificate.claims}
        assert changed.verify() == "VERIFIED"
        assert (changed.model.predict(IDS[i : i + 1]) == (FACTS[3] + 1) % 100).all()


@halves
def test_a_model_says_in_which_arithmetic_it_runs_and_that_it_has_no_logits(dtype) -> None:
    model = memorize(*CASES["bags of words"][:2], dtype=dtype)
    assert f" {dtype}," in repr(model)
    assert model.describe().endswith(f"parameters in {dtype}")
    with pytest.raises(OptionError, match=f"this one is made to run in {dtype}.*to_torch and to_onnx"):
        with_logits(model)
