"""The second engine: it agrees with the kernel, decides what the kernel cannot, and says so when they differ."""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
import textwrap
from functools import partial

import flint
import numpy as np
import pytest

import onelayer
from attacks.bundle import Bundle, read
from onelayer import save
from onelayer.contexts import projection, published
from onelayer.problems.separation import distinct
from onelayer_checker.arb import engine as arb_engine
from onelayer_checker.arb import graph as arb_graph
from onelayer_checker.arb.graph import Graph, outward
from onelayer_checker.core import graph as network
from onelayer_checker.core.samples import read_data
from onelayer_checker.front import EXITS
from tests.checker.asked import Options, check

memorize = partial(onelayer.memorize, certify=False)

ARB, BOTH = Options("arb"), Options("both")
N, n, d = 24, 5, 3


def spread() -> dict[str, tuple]:
    """Bundles of every kind: the arguments of `memorize`."""
    rng = np.random.default_rng(7)
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 9, (N, n))
    ids, lengths = rng.integers(0, 6, (N, n)), rng.integers(1, n + 1, N)
    distinct_ids = np.array([rng.permutation(40)[:n] for _ in range(N)])
    few = rng.standard_normal((40, d))[distinct_ids]
    return {
        "real": (X, Y, {}),
        "float32": (X[:6], Y[:6], {"dtype": "float32"}),
        "vectors": (X, rng.standard_normal((N, n, 2)), {}),
        "ids": (distinct_ids, Y, {}),
        "positions of ids": (ids, Y, {"positions": True}),
        "positions of reals": (ids[..., None] * 0.5, Y, {"positions": True}),
        "ragged": (X, Y, {"lengths": lengths}),
        "ragged with positions": (X, Y, {"lengths": lengths, "positions": True}),
        "repeated": (
            np.concatenate([X, X[:, ::-1], X[:, :1].repeat(n, 1)]),
            np.concatenate([Y, Y[:, ::-1], Y * 0]),
            {},
        ),
        "sequences": (X, Y[:, 0], {}),
        "sequences of ids": (distinct_ids, Y[:, 0], {}),
        "averages of reals": (few, Y, {"mapping": "averages"}),
        "averages of ids": (distinct_ids, Y, {"mapping": "averages"}),
        "averages per sequence": (few, Y[:, 0], {"mapping": "averages"}),
        "shared query": (X, Y, {"mapping": "shared_query"}),
        "rank 2": (X, Y, {"rank": 2}),
        "rank 3": (X, Y, {"rank": 3}),
        "triangular": (X, Y, {"readout": "triangular"}),
    }


KINDS = list(spread())


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A certified folder of a kind, taken apart."""

    @functools.cache
    def made(kind: str) -> Bundle:
        X, Y, options = spread()[kind]
        folder = tmp_path_factory.mktemp("arb") / "bundle"
        data = (X, Y, options["lengths"]) if "lengths" in options else (X, Y)
        return read(save(folder, memorize(X, Y, **options), data=data))

    return lambda kind: made(kind).copy()


def claim(b: Bundle, kind: str, **changed: str) -> Bundle:
    """The bundle with only its first claim of a type in real arithmetic, changed."""
    found = next(c for c in b.certificate["claims"] if c["type"] == kind)
    b.certificate["claims"] = [{**found, "arith": "real", **changed}]
    return b


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_prove_every_kind_of_bundle(tmp_path, bundle, kind) -> None:
    b = bundle(kind)
    b.certificate["claims"] += [
        {**c, "arith": "real", "radius": (float.fromhex(c["radius"]) / 2).hex()}
        for c in b.certificate["claims"]
        if c["type"] == "robust"
    ]
    folder = b.write(tmp_path)
    both, arb = check(folder, options=BOTH), check(folder, options=ARB)
    assert (both["result"], arb["result"]) == ("VERIFIED", "VERIFIED"), (both, arb)
    for entry in both["claims"]:
        assert entry["engine"] == ("both" if entry["arith"] == "real" else "numpy")
        assert ("Arb judges stored answers in real arithmetic only" in entry["why"]) == (entry["arith"] != "real")
    assert [e["outcome"] for e in both["claims"]] == [e["outcome"] for e in arb["claims"]]
    kinds = {(entry["type"], entry["arith"]) for entry in both["claims"]}
    assert ("memorizes", "real") in kinds
    assert ("robust", "real") in kinds or kind not in {"real", "ragged", "rank 2"}
    assert ("separated", "real") in kinds or kind not in {
        "real",
        "ids",
        "positions of ids",
        "sequences",
        "repeated",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_answer_is_refuted_by_both(tmp_path, bundle, kind) -> None:
    b = claim(bundle(kind), "memorizes")
    first, last = b.data["answers"][0].copy(), b.data["answers"][-1].copy()
    other = last - 1 if (last > 0).all() else last + 1
    b.data["answers"][-1] = other if (first == last).all() else first
    verdict = check(b.write(tmp_path), options=BOTH)
    assert verdict["result"] == "NOT VERIFIED", verdict
    lengths = b.data.get("lengths", np.full(len(b.data["tokens"]), n))
    per_token, i = len(b.data["answers"]) == lengths.sum(), len(lengths) - 1
    witness = f"sequence {i}, token {lengths[i] - 1 if per_token else 0} "
    alone = check(tmp_path, options=ARB)["claims"][0]
    assert (alone["outcome"], alone["engine"]) == ("refuted", "arb")
    assert alone["why"].startswith(witness)


@pytest.mark.parametrize("shift", [2.0**-30, -(2.0**-30)])
def test_a_coordinate_that_differs_a_little_is_a_disagreement(tmp_path, bundle, monkeypatch, shift) -> None:
    folder = bundle("real").write(tmp_path)
    honest = Graph.coordinates
    seen = []

    def shifted(self, *arguments):
        seen.append(0)
        t = honest(self, *arguments)
        if len(seen) == 4:
            t[2][0] += shift
        return t

    monkeypatch.setattr(Graph, "coordinates", shifted)
    verdict = check(folder, options=BOTH)
    assert (verdict["result"], verdict["gate"]) == ("UNFIT", "engines")
    assert "sequence 3, token 2: coordinate 0 is" in verdict["why"]


def test_a_kernel_that_differs_a_little_is_a_disagreement(tmp_path, bundle, monkeypatch) -> None:
    folder = bundle("rank 2").write(tmp_path)
    honest = network.Network.coordinates

    def shifted(self, *arguments):
        for rows, t in honest(self, *arguments):
            t.m[5, 1, 1] += 2.0**-30
            yield rows, t

    monkeypatch.setattr(network.Network, "coordinates", shifted)
    verdict = check(folder, options=BOTH)
    assert (verdict["result"], verdict["gate"]) == ("UNFIT", "engines")
    assert "sequence 5, token 1: coordinate 1 is" in verdict["why"]
    assert check(folder)["result"] == "VERIFIED"  # nobody would have noticed


def test_opposite_outcomes_are_a_disagreement(tmp_path, bundle, monkeypatch) -> None:
    folder = bundle("real").write(tmp_path)
    monkeypatch.setattr(Graph, "error", lambda *_: (1.0, 2.0))
    verdict = check(folder, options=BOTH)
    assert (verdict["result"], verdict["gate"]) == ("UNFIT", "engines")
    assert "sequence 0, token 0 is off by at least 1" in verdict["why"]


def test_arb_proves_a_gap_that_the_kernel_leaves_open(tmp_path, bundle) -> None:
    b = bundle("real")
    certain = check(claim(b.copy(), "separated").write(tmp_path))["claims"][0]["value"]
    more = math.nextafter(float.fromhex(certain), math.inf)
    folder = claim(b, "separated", delta=more.hex()).write(tmp_path)
    assert check(folder)["result"] == "UNKNOWN"
    for options in (BOTH, ARB, Options("numpy", escalate=True)):
        verdict = check(folder, options=options)
        assert verdict["result"] == "VERIFIED", verdict
        assert verdict["claims"][0]["engine"] == "arb"


def edge_at(b: Bundle, t: float) -> Bundle:
    """The plateau of the first token ends at t, to the right."""
    weight, bias = b.model["readout.1.weight"], b.model["readout.1.bias"]
    group = np.flatnonzero(weight[0, ::2] * t + bias[::2] < 0)[0]
    bias[2 * group] = -t * weight[0, 2 * group]  # a power of two
    return b


def first_coordinate(b: Bundle, bits: int) -> tuple[float, float]:
    with flint.ctx.workprec(bits):
        graph = Graph(flint, network.build(b.model).tensors)
        keep = np.arange(n) == np.zeros((1, 1))
        return outward(next(graph.samples(b.data["tokens"][:1], np.array([n]), keep, 0.0))[0])


def test_arb_proves_and_refutes_at_the_edge_of_a_plateau(tmp_path, bundle) -> None:
    low, high = first_coordinate(bundle("real"), 128)
    assert high == math.nextafter(low, math.inf)
    inside = claim(edge_at(bundle("real"), high), "memorizes").write(tmp_path / "inside")
    outside = claim(edge_at(bundle("real"), low), "memorizes").write(tmp_path / "outside")
    assert check(inside)["result"] == check(outside)["result"] == "UNKNOWN"
    assert check(inside, options=BOTH)["result"] == "VERIFIED"
    verdict = check(outside, options=BOTH)
    assert verdict["result"] == "NOT VERIFIED"
    assert "sequence 0, token 0 is off by at least" in verdict["claims"][0]["why"]


def test_too_large_a_gap_is_refuted_with_the_pair(tmp_path, bundle) -> None:
    b = bundle("real")
    separated = next(c for c in b.certificate["claims"] if c["type"] == "separated")
    twice = 2 * float.fromhex(separated["delta"])
    verdict = check(claim(b, "separated", delta=twice.hex()).write(tmp_path), options=BOTH)
    assert verdict["result"] == "NOT VERIFIED"
    assert " are apart only by " in verdict["claims"][0]["why"]
    assert verdict["claims"][0]["why"].startswith("sequence ")


def test_too_small_an_r_is_refuted_with_the_sample(tmp_path, bundle) -> None:
    verdict = check(claim(bundle("rank 3"), "separated", r=(1.0).hex()).write(tmp_path), options=ARB)
    assert verdict["result"] == "NOT VERIFIED"
    assert "has a largest coordinate in [" in verdict["claims"][0]["why"]


def by_hand(model, tokens, answers, r: float, delta: float) -> Bundle:
    """A bundle around weights that no builder made: separated by delta, memorised exactly."""
    both = {"arith": "real", "scope": "token"}
    certificate = {
        "format": "onelayer-certificate/1",
        "graph": {"template": "one-layer/1", "attention": "softmax", "causal": False},
        "profile": "ieee-any-order/1",
        "files": {},
        "claims": [
            {"type": "separated", "r": r.hex(), "delta": delta.hex(), **both},
            {"type": "memorizes", "eps": (0.0).hex(), **both},
        ],
        "producer": {"name": "test", "version": "0"},
    }
    return Bundle(certificate, model, {"tokens": tokens, "answers": answers}, {})


def hair(other: float) -> Bundle:
    """Two tokens with t = 1 and t = 2, but for e^-200 (other - 1); plateaus end at 1, r is 2."""
    model = {
        "attention.W_Q": np.zeros((1, 2, 1)),
        "attention.b_Q": np.ones((1, 1)),
        "attention.W_K": np.array([[[200.0], [0.0]]]),
        "attention.W_V": np.array([[[0.0], [1.0]]]),
        "attention.W_O": np.array([[[1.0, 0.0]]]),
        "readout.0.weight": np.array([[1.0], [0.0]]),
        "readout.0.bias": np.zeros(1),
        "readout.1.weight": np.array([[4.0, -4, 4, -4]]),
        "readout.1.bias": np.array([-4.0, 1, -12, 6]),
        "readout.2.weight": -np.ones((2, 2, 1)),
        "readout.2.bias": np.ones(2),
        "readout.3.weight": np.array([[7.0], [9.0]]),
        "readout.3.bias": np.zeros(1),
    }
    return by_hand(model, np.array([[[0.0, other], [1.0, 1.0]]]), np.array([[7.0], [9.0]]), 2.0, 0.5)


@pytest.mark.parametrize(("other", "outcomes"), [(0.0, ["proved", "proved"]), (2.0, ["undecided", "refuted"])])
def test_samples_within_a_hair_of_a_bound_take_more_bits(tmp_path, monkeypatch, other, outcomes) -> None:
    """What is false by less than float64 resolves, r here, is not proved."""
    folder = hair(other).write(tmp_path)
    assert [c["outcome"] for c in check(folder)["claims"]] == ["undecided", "undecided"]
    assert [c["outcome"] for c in check(folder, options=BOTH)["claims"]] == outcomes
    monkeypatch.setattr(arb_engine, "MOST_BITS", 511)
    verdict = check(folder, options=ARB)
    assert [c["outcome"] for c in verdict["claims"]] == ["undecided", "undecided"]
    assert verdict["claims"][0]["why"].startswith("sequence 0, token 1 has a largest coordinate in [2, 2")
    assert verdict["claims"][1]["why"].startswith("sequence 0, token 0 is off by 0 to ")


def test_a_crowded_place_is_left_undecided(tmp_path, bundle, monkeypatch) -> None:
    monkeypatch.setattr(arb_graph, "CROWD", 0)
    assert check(claim(bundle("real"), "memorizes").write(tmp_path), options=ARB)["result"] == "UNKNOWN"


def test_equal_coordinates_of_different_classes_are_not_apart(tmp_path) -> None:
    """However small delta is: a sum with it must not round to the larger coordinate."""
    b = theorem_2(2.0**-60)
    b.model["readout.0.weight"] *= 0
    verdict = check(b.write(tmp_path), options=BOTH)
    assert verdict["claims"][0]["outcome"] == "refuted"
    assert "apart only by 0" in verdict["claims"][0]["why"]


TOKENS = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])
TOY = TOKENS[[[0, 1], [0, 2], [1, 2]]]


def theorem_2(delta: float) -> Bundle:
    """The published weights for three tokens and their pairs, rounded to float64; ids are read off as they are."""
    with flint.ctx.workprec(256):
        constants = published.constants(published.hypotheses(TOY))
        beta, lam = float(constants.beta.value), float(constants.lam.value)
    v = projection.search(distinct(TOY)[0], 0)
    v = (v / np.linalg.norm(v))[:, None]
    model = {
        "embedding.lift": np.eye(2),
        "attention.W_Q": beta * v[None],
        "attention.W_K": v[None],
        "attention.W_V": v[None],
        "attention.W_O": lam * v.T[None],
        "readout.0.weight": np.eye(2),
        "readout.0.bias": np.full(2, 4.0),  # ReLU cuts nothing off
        "readout.1.weight": np.zeros((2, 1)),
        "readout.1.bias": np.zeros(1),
    }
    return by_hand(model, TOY, np.zeros((6, 1)), 8.0, delta)


def test_the_published_weights(tmp_path) -> None:
    """Theorem 2 as written: ids that differ by 10^-258 are seen to differ at 1024 bits, and not at 512."""
    folder = theorem_2(2.0**-860).write(tmp_path / "true")
    assert [c["outcome"] for c in check(folder)["claims"]] == ["undecided", "proved"]
    assert check(folder, options=Options("arb", bits=1024))["result"] == "VERIFIED"
    both = check(folder, options=BOTH)  # 128, 512, 2048
    assert both["result"] == "VERIFIED"
    assert [c["engine"] for c in both["claims"]] == ["arb", "both"]
    refuted = check(theorem_2(2.0**-840).write(tmp_path / "false"), options=BOTH)
    assert refuted["result"] == "NOT VERIFIED"
    assert "are apart only by" in refuted["claims"][0]["why"]


def test_the_published_weights_are_beyond_512_bits(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(arb_engine, "MOST_BITS", 1023)
    verdict = check(theorem_2(2.0**-860).write(tmp_path), options=ARB)
    assert [c["outcome"] for c in verdict["claims"]] == ["undecided", "proved"]
    assert "may be too near" in verdict["claims"][0]["why"]


@pytest.mark.parametrize(
    ("bound", "kind"), [("MOST_WORK", "real"), ("MOST_DENSE", "triangular"), ("MOST_PAIRS", "real")]
)
def test_work_is_bounded_and_then_undecided(tmp_path, bundle, monkeypatch, bound, kind) -> None:
    b = bundle(kind)
    separated = next(c for c in b.certificate["claims"] if c["type"] == "separated")
    delta = float.fromhex(separated["delta"]) * (2.0 if bound == "MOST_WORK" else 2.0**40)
    folder = claim(b, "separated", delta=delta.hex()).write(tmp_path)
    assert check(folder, options=ARB)["result"] != "UNKNOWN"
    monkeypatch.setattr(arb_engine, bound, 0)
    assert check(folder, options=ARB)["result"] == "UNKNOWN"
    assert check(folder, options=BOTH)["result"] == "UNKNOWN"  # whatever the kernel says


def test_processes_find_the_same_bounds(bundle, monkeypatch) -> None:
    b = bundle("ragged")
    net = network.build(b.model)
    data, before = read_data(b.data, net), flint.ctx.prec
    alone = arb_engine.Engine(net, data, 1, 128).bounds(0.0)
    monkeypatch.setattr(arb_engine, "LEAST", 1)
    np.testing.assert_array_equal(arb_engine.Engine(net, data, 2, 128).bounds(0.0), alone)
    assert flint.ctx.prec == before
    finer = arb_engine.Engine(net, data, 1, 512).bounds(0.0)
    assert (finer[..., 0] >= alone[..., 0]).all()
    assert (finer[..., 1] <= alone[..., 1]).all()


def test_a_process_that_dies_is_noticed() -> None:
    with pytest.raises(arb_engine.Unfit, match="a process of the engine Arb died"):
        arb_engine.in_processes([("not a network",)])


def test_claims_that_do_not_fit_are_refused_by_every_engine(tmp_path, bundle) -> None:
    folder = claim(bundle("real"), "memorizes", scope="sequence").write(tmp_path)
    for options in (Options(), ARB, BOTH):
        assert check(folder, options=options)["gate"] == "names"


def run(program: str, *arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-I", "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(("engine", "result"), [("numpy", "VERIFIED"), ("arb", "UNFIT"), ("both", "UNFIT")])
def test_without_flint_only_who_asks_for_arb_is_told(tmp_path, bundle, engine, result) -> None:
    folder = bundle("real").write(tmp_path)
    program = """
        import runpy, sys
        sys.modules["flint"] = None
        runpy.run_module("onelayer_checker", run_name="__main__")
    """
    done = run(program, folder, "--engine", engine)
    assert done.returncode == EXITS[result], done
    assert done.stdout.splitlines()[-1] == result
    assert ("needs python-flint, which is not installed" in done.stdout) == (result == "UNFIT")
    assert "Traceback" not in done.stderr


def test_command_line(tmp_path, bundle) -> None:
    folder = bundle("sequences").write(tmp_path)
    command = [
        sys.executable,
        "-I",
        "-m",
        "onelayer_checker",
        folder,
        "--engine",
        "both",
        "--jobs",
        "2",
        "--bits",
        "64",
    ]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert {c["engine"] for c in json.loads(done.stdout)["claims"]} == {"both", "numpy"}
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert any(line.startswith("proved    by both  memorizes (real") for line in lines)
    assert lines[-1] == "VERIFIED"
    wrong = subprocess.run([*command[:-1], "7"], capture_output=True, text=True)
    assert wrong.returncode != 0
