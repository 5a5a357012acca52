"""What the checker knows of tables, retrieval, windows of a stream, last tokens, causal attention and strangers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onelayer
from onelayer.certificates.certificate import certify_data
from onelayer_checker.core.balls import FLOAT32, Ball, relu
from onelayer_checker.core.graph import build
from onelayer_checker.core.layers import Layer, run_stack
from onelayer_checker.search.stack import accelerate
from tests.checker.asked import Options, check
from tests.checker.large import ARITHMETICS
from tests.processes import CHECKER, run_python


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def saved(tmp_path, model, *data):
    return onelayer.save(tmp_path / "model", model, data=data)


def outcomes(folder, **options):
    verdict = check(folder, options=Options(**options))
    return verdict["result"], [(claim["type"], claim["arith"], claim["outcome"]) for claim in verdict["claims"]]


CASES = {
    "retrieval": {},
    "table": {"readout": "table"},
    "default": {"default": -1},
    "float64 table": {"dtype": "float64", "readout": "table"},
    "float64 default": {"dtype": "float64", "default": -1},
    "positions": {"positions": True},
}


@pytest.mark.parametrize("name", CASES)
def test_every_readout_of_cells_is_proved_exactly(rng, tmp_path, name) -> None:
    X = rng.standard_normal((120, 6, 4)).astype(np.float32)
    Y = rng.integers(0, 500, (120, 6))
    model = onelayer.memorize(X, Y, certify=False, **CASES[name])
    folder = saved(tmp_path, model, X, Y)
    result, claims = outcomes(folder)
    dtype = str(model.transformer.dtype)
    assert result == "VERIFIED"
    assert ("memorizes", dtype, "proved") in claims
    assert ("rejects" in {kind for kind, _, _ in claims}) == ("default" in name)
    entries = json.loads((folder / "certificate.json").read_text())["claims"]
    assert all(entry["eps"] == "0x0.0p+0" for entry in entries if entry["type"] == "memorizes")


def test_one_wrong_entry_of_a_table_is_refuted(rng, tmp_path) -> None:
    X = rng.standard_normal((120, 6, 4)).astype(np.float32)
    Y = rng.integers(0, 500, (120, 6))
    model = onelayer.memorize(X, Y, certify=False)
    certificate = onelayer.certify(model, X, Y)
    wrong = certificate.data["answers"].copy()
    wrong[77] += 1.0
    certificate.data["answers"] = wrong
    folder = onelayer.save(tmp_path / "model", model, certificate=certificate)
    verdict = check(folder)
    assert verdict["result"] == "NOT VERIFIED"
    assert verdict["claims"][0]["why"].startswith("sequence 12, token 5 answers")


def test_windows_of_a_stream(tmp_path) -> None:
    text = b"she sells sea shells by the sea shore, and the shells she sells are sea shells, I am sure. " * 3
    model = onelayer.memorize_text(text, context=12, certify=False)
    certificate = onelayer.certify(model, text)
    folder = onelayer.save(tmp_path / "model", model, certificate=certificate)
    done = run_python(CHECKER, folder)
    assert done.stdout.splitlines()[-1] == "VERIFIED", done
    assert f"{len(text)} answers" in done.stdout
    assert json.loads((folder / "certificate.json").read_text())["graph"]["causal"] is True
    # The same windows written out are the same claim.
    stream, n = certificate.data["stream"], int(certificate.data["window"][0])
    tokens = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(stream, n))
    rest = {name: a for name, a in certificate.data.items() if name in ("answers", "which")}
    assert certify_data(model, {"tokens": tokens, **rest}).claims == certificate.claims


def test_one_wrong_continuation_is_refuted(tmp_path) -> None:
    text = b"to be, or not to be, that is the question"
    model = onelayer.memorize_text(text, context=8, certify=False)
    certificate = onelayer.certify(model, text)
    which = certificate.data["which"].copy()
    which[20] = (which[20] + 1) % 200
    certificate.data["which"] = which
    verdict = check(onelayer.save(tmp_path / "model", model, certificate=certificate))
    assert verdict["result"] == "NOT VERIFIED"
    assert "sequence 20, token 7" in verdict["claims"][0]["why"]


def test_a_stranger_that_is_known_is_refuted(rng, tmp_path) -> None:
    X = rng.standard_normal((120, 6, 4)).astype(np.float32)
    Y = rng.integers(0, 500, (120, 6))
    model = onelayer.memorize(X, Y, default=-1, certify=False)
    certificate = onelayer.certify(model, X, Y)
    certificate.data["strangers"] = np.concatenate([certificate.data["strangers"][:2], X[5:6]])
    verdict = check(onelayer.save(tmp_path / "model", model, certificate=certificate))
    assert verdict["result"] == "NOT VERIFIED"
    assert verdict["claims"][-1]["type"] == "rejects"
    assert "sequence 2, token 0" in verdict["claims"][-1]["why"]


MALFORMED = {
    "a stream without a window": lambda data: data.pop("window"),
    "a window longer than the stream": lambda data: data.update(window=np.array([10**6])),
    "tokens and a stream": lambda data: data.update(tokens=np.zeros((3, 3), np.int64)),
    "an answer that is not there": lambda data: data.update(which=data["which"] + 10**6),
    "strangers without a default": lambda data: data.pop("default"),
    "too few answers": lambda data: data.update(which=data["which"][:-1]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_windows_that_do_not_fit_are_malformed(tmp_path, name) -> None:
    text = b"to be, or not to be, that is the question"
    model = onelayer.memorize_text(text, context=8, certify=False)
    certificate = onelayer.certify(model, text)
    MALFORMED[name](certificate.data)
    verdict = check(onelayer.save(tmp_path / "model", model, certificate=certificate))
    assert (verdict["result"], verdict["gate"]) == ("MALFORMED", "data")


@pytest.mark.parametrize("options", [{"engine": "arb"}, {"engine": "both"}, {"escalate": True}])
def test_the_second_engine_leaves_causal_claims_to_the_first(tmp_path, options) -> None:
    text = b"to be, or not to be, that is the question"
    model = onelayer.memorize_text(text, context=8, certify=False)
    folder = onelayer.save(tmp_path / "model", model, certificate=onelayer.certify(model, text))
    verdict = check(folder, options=Options(**options))
    assert verdict["result"] == "VERIFIED"
    assert {claim["engine"] for claim in verdict["claims"]} == {"numpy"}
    assert "nothing causal" in verdict["claims"][0]["why"]


def test_both_engines_agree_on_cells(rng, tmp_path) -> None:
    X = rng.standard_normal((12, 3, 2)).astype(np.float32)
    Y = rng.integers(0, 50, (12, 3))
    for name, readout in (("a", "table"), ("b", "retrieval")):
        model = onelayer.memorize(X, Y, mapping="lattice", readout=readout)
        result, claims = outcomes(saved(tmp_path / name, model, X, Y), engine="both")
        assert result == "VERIFIED", claims


def test_causal_attention_is_judged_as_it_is_executed(rng) -> None:
    """Balls of a random causal network contain what the library computes, for all tokens and for the last ones."""
    from onelayer.network import Attention, Linear, Transformer
    from onelayer.network.trace import trace

    heads = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 2), (1, 3, 2), (1, 3, 2), (1, 2, 3))
    ]
    readout = tuple(
        Linear(rng.standard_normal(shape).astype(np.float32), np.zeros(shape[1], np.float32))
        for shape in ((3, 2), (2, 1))
    )
    model = Transformer(Attention(*heads, causal=True), readout=readout)
    network = build({name: np.asarray(a) for name, a in model.tensors()}, causal=True)
    X, lengths = rng.standard_normal((5, 4, 3)).astype(np.float32), np.array([4, 1, 3, 2, 4])
    t = np.maximum(trace(model, X, lengths)["readout.0"], 0)
    for A in (ARITHMETICS["real"], FLOAT32):
        (_, every), (_, last) = (
            next(network.coordinates(X, lengths, 0.0, A, only_last)) for only_last in (False, True)
        )
        inside = np.arange(4) < lengths[:, None]
        slack = 1e-5 if A.name == "real" else 0.0
        assert (np.abs(every.m - t) <= every.r + slack)[inside].all()
        ends = t[np.arange(5), lengths - 1]
        assert (np.abs(last.m[:, 0] - ends) <= last.r[:, 0] + slack).all()
        np.testing.assert_allclose(last.m[:, 0], every.m[np.arange(5), lengths - 1], rtol=1e-12)


def test_cells_decide_what_the_dense_layers_compute(rng) -> None:
    """Random coordinates, on cells and on ramps: where the search is certain, the dense ball agrees."""
    X = rng.standard_normal((60, 4, 3)).astype(np.float32)
    Y = rng.integers(0, 99, (60, 4))
    for options in ({"readout": "table"}, {"readout": "retrieval"}, {"default": -1}):
        model = onelayer.memorize(X, Y, mapping="lattice", **options)
        network = accelerate(build({name: np.asarray(a) for name, a in model.transformer.tensors()}))
        t = Ball(rng.uniform(0, 3e4, (300, 6)), np.zeros((300, 6)))
        for A in ARITHMETICS.values():
            plan = network.readout.plan(A)
            assert plan is not None
            (found, unknown), dense = plan.run(t, A), run_stack(network.readout.layers, t, A)
            assert unknown.mean() < 0.5
            apart = np.abs(found.m - dense.m) > found.r + dense.r
            assert not apart[~unknown].any()


def test_whole_numbers_add_exactly_in_balls(rng) -> None:
    W = rng.integers(-50, 50, (40, 7)).astype(np.float64)
    x = Ball(rng.integers(0, 2, (30, 40)).astype(np.float64), np.zeros((30, 40)))
    y = relu(Layer(W, np.arange(7.0)).apply(x, FLOAT32))
    assert not y.r.any()
    np.testing.assert_array_equal(y.m, np.maximum(x.m @ W + np.arange(7.0), 0))
    halves = Layer(W + 0.25, np.arange(7.0)).apply(x, FLOAT32)
    assert halves.r.all()


def test_a_block_without_a_family_is_evaluated(tmp_path) -> None:
    from attacks.counterexamples import COPY, bundle, claim

    model = COPY | {
        "readout.1.weight": [[1, -1, 1, 0]],
        "readout.1.bias": [-4, 0.25, 0, 0],
        "readout.2.bias": [1, 0],
    }
    model |= {"readout.2.weight": [[[-1], [-1]], [[0.5], [0]]], "readout.3.weight": np.ones((2, 1, 1))}
    model |= {"readout.3.bias": [0, 0], "readout.4.weight": [[1], [0]], "readout.4.bias": [0]}
    b = bundle("float64", model, [[[1], [1]]], [1, 1], claim("memorizes", "real", eps=0))
    assert check(b.write(tmp_path))["result"] == "VERIFIED"
