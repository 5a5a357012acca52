"""Interpolation everywhere: bounds hold, and forgeries are refused."""

from __future__ import annotations

import numpy as np
import pytest

from attacks.forged_functions import near_hats, of_gates, of_hats
from attacks.functions import about, constant, everywhere, interpolator
from onelayer_checker.core.graph import build
from onelayer_checker.functions import cells as functions
from onelayer_checker.functions import hats
from onelayer_checker.functions.hats import gather, recognise, rounding
from onelayer_checker.functions.simplices import sup_error
from onelayer_checker.functions.targets import read_program
from tests.checker import dense, honest
from tests.checker.asked import check
from tests.checker.large import ARITHMETICS

FORGERIES = {f"{name}: {f.name}": (name, f) for name in ("hats",) for f in of_hats(honest.bundle(name))}
FORGERIES |= {f"gates: {f.name}": ("gates", f) for f in of_gates(honest.bundle("gates"))}


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 50


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused_at_their_gate(monkeypatch, tmp_path, name) -> None:
    monkeypatch.setattr(functions, "branch", honest.NO_SEARCH)
    base, forgery = FORGERIES[name]
    forged = honest.bundle(base).copy()
    forgery.change(forged)
    verdict = check(forged.write(tmp_path / "forged"))
    assert verdict["result"] == forgery.result, verdict
    assert verdict["gate"] == forgery.gate, verdict


def test_honest_neighbours_are_accepted() -> None:
    for name in ("hats", "gates", "hats of two components"):
        assert set(honest.judged(honest.bundle(name))) == {"proved"}
    for name, change in near_hats(honest.bundle("hats")):
        neighbour = honest.bundle("hats").copy()
        change(neighbour)
        assert set(honest.judged(neighbour)) == {"proved"}, name


@pytest.mark.parametrize("name", ["hats", "gates", "hats of two components"])
def test_no_input_is_further_away_than_is_proved(name: str) -> None:
    b = honest.bundle(name)
    for claim in b.certificate["claims"]:
        number = honest.numbers(claim)
        error, dtype = honest.difference(b, claim)
        shape = b.data["tokens"].shape[1:]
        for seed in (0, 1):  # of gates nothing but rounding is left
            found = dense.largest(error, number["low"], number["high"], shape, dtype, seed)
            assert (
                0.05 * number["bound"] * (claim["arith"] == "real" and name != "gates") < found <= number["bound"]
            )


def judged_alone(model, arith: str, target, low: float, high: float, limit: float):
    network = build(model)
    found = recognise(network.readout.layers)
    assert found is not None
    return hats.judge(network, read_program(target, "target"), found, low, high, limit, ARITHMETICS[arith])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_rounding_is_bounded(dtype: str, m: int) -> None:
    """Steep affine functions, which hats reproduce: what is left is rounding, of coordinates, hats and sums."""
    rng, D, H, scale = np.random.default_rng(m), 3, 21.0, 2.0**6
    slopes = rng.integers(-9, 10, m) * 2.0**10
    at = np.stack(np.unravel_index(np.arange((D + 1) ** m), (D + 1,) * m), axis=1)
    values = (at @ slopes).reshape((D + 1,) * m)  # over H; and W H is slopes . t
    model = interpolator(values, dtype, H, scale)
    lines = [["x", k, 0] for k in range(m)] + [["const", float(s * scale).hex()] for s in slopes]
    lines += [["mul", k, m + k] for k in range(m)] + [["add", 2 * m + k, 3 * m - 1 + k] for k in range(m - 1)]
    lines[3 * m :] = [["add", 2 * m + k + 1, 2 * m if k == 0 else 3 * m + k - 1] for k in range(m - 1)]
    target = {"n": m, "d": 1, "per": "sequence", "components": 1, "lines": lines, "outputs": [len(lines) - 1]}
    network = build(model)
    found = recognise(network.readout.layers)
    A = ARITHMETICS[dtype]
    bound = rounding(found, gather(network, m, 1, found, 0.95, A), A)

    def error(X):
        out = dense.evaluate(model, X, np.dtype(dtype).type).astype(np.float64)
        return np.abs(out - dense.target(target, X)).max(axis=(1, 2))

    reached = dense.largest(error, 0.01, 0.95, (m, 1), np.dtype(dtype).type, rounds=60)
    assert bound / 1e4 * (dtype == "float32") < reached <= bound + np.abs(slopes).sum() * 2.0**-40
    claimed = judged_alone(model, dtype, target, 0.01, 0.95, 1e9)
    assert reached <= claimed <= 1.01 * bound + np.abs(slopes).sum() * 2.0**-30


def test_simplices_cover_the_box() -> None:
    """Against the largest difference that is found, for values that have nothing to do with the target."""
    rng = np.random.default_rng(5)
    lines = [["x", 0, 0], ["x", 1, 0], ["mul", 0, 1], ["sin", 2], ["abs", 3]]
    target = {"n": 2, "d": 1, "per": "sequence", "components": 1, "lines": lines, "outputs": [4]}
    for seed in range(6):
        D = int(rng.integers(1, 4))
        values = rng.normal(size=(D + 1, D + 1))
        model = interpolator(values / 4, "float64", 4, 4)
        low, high = np.sort(rng.uniform(0, 0.99 * D, 2))

        def error(X, model=model):
            return np.abs(dense.evaluate(model, X, np.float64) - dense.target(target, X)).max(axis=(1, 2))

        reached = dense.largest(error, low, high, (2, 1), np.float64, seed, rounds=120)
        bound = judged_alone(model, "real", target, float(low), float(high), reached * 1.01)
        assert reached <= bound <= reached * 1.05


def test_a_bound_is_for_the_whole_box_even_if_it_is_not_met() -> None:
    program = read_program(constant(0, 2) | {"per": "sequence", "outputs": [0]}, "target")
    for bad in ((0, 1), (1, 0), (1, 1), (0, 0)):
        F = np.ones((2, 2, 1))
        F[bad] = 100
        assert sup_error(program, F, 0.0, 1.0, (0.0, 1.0), 0.5) >= 100


def test_too_many_hats_are_not_rounded_away() -> None:
    many = hats.Hats(1.0, np.zeros((2,) * 10 + (1,)), 0, 1.0)
    gathered = hats.Gather(np.zeros((1, 10), int), 1.0, 0.0, 0.0)
    assert rounding(many, gathered, ARITHMETICS["float64"]) < 1e-6
    assert rounding(many, gathered, ARITHMETICS["float32"]) == np.inf


def test_gates_of_a_sequence() -> None:
    """A target per sequence may be answered through gates, too."""
    b = honest.bundle("gates").copy()
    lines = [["x", 0, 0], ["x", 1, 0]]
    target = {"n": 2, "d": 1, "per": "sequence", "components": 1, "lines": lines, "outputs": [1]}
    claim = about("sup_error_everywhere", "real", target, "sequence", low=-0.5, high=0.5, bound=1.5)
    b.certificate["claims"] = [claim]
    b.data["answers"] = b.data["answers"][:2]
    assert honest.judged(b) == ["proved"]  # the first token answers y, the second x
    claim["bound"] = (0.5).hex()
    assert honest.judged(b) == ["undecided"]


def more_false_claims():
    """Small networks for lines that no forgery reaches."""
    for at in ((0, 2), (2, 0), (1, 1), (2, 2)):
        values = np.zeros((3, 3))
        values[at] = 1  # a wrong value at one vertex
        yield everywhere(interpolator(values, "float64", 4, 8), "float64", "real", constant(0, 2), 0.9, 1.5)
    yield everywhere(interpolator(np.zeros(3), "float64", 4, 8, 1.0), "float64", "real", constant(0), 0.9, 0.5)
    moved = interpolator(np.ones(3), "float64", 4, 8)
    moved["readout.1.bias"][2:4] = -6, 6  # a vertex: at 4 the answer is 2
    yield everywhere(moved, "float64", "real", constant(4), 0.9, 0.5)
    twice = interpolator(np.tile(np.arange(3.0), (3, 1)), "float64", 4, 8)  # 8 y
    twice["attention.W_Q"][1] = twice["attention.W_Q"][0]  # 8 x
    lines = [["x", 1, 0], ["const", (8.0).hex()], ["mul", 0, 1]]
    yield everywhere(twice, "float64", "real", constant(0, 2) | {"lines": lines, "outputs": [2, 2]}, 0.9, 0.5)
    slope = interpolator(np.arange(3) * 1.0, "float64", 4, 8)
    lines = [["x", 0, 0], ["const", (8.0).hex()], ["mul", 0, 1], ["const", (0.25).hex()], ["add", 2, 3]]
    target = constant(0) | {"lines": lines, "outputs": [4]}
    yield everywhere(slope, "float64", "real", target, 0.9, 0.2)  # off by 1/4 everywhere
    lines[3:] = [["mul", 0, 2], ["sub", 2, 3]]
    yield everywhere(slope, "float64", "real", target, 0.9, 5.0)  # 8 x^2, which is 6.48 at the end
    lines[2:] = [["mul", 0, 0], ["mul", 1, 2], ["const", (0.0).hex()]]
    target["outputs"] = [3]
    yield everywhere(slope, "float64", "real", target, 0.95, 1.95)  # 8 x - 8 x^2 is 2 at 1/2
    steep = interpolator(np.arange(4.0) * 1e8, "float32", 21, 64)
    lines[1:] = [["const", (64e8).hex()], ["mul", 0, 1], ["const", (0.0).hex()]]
    target |= {"lines": lines, "outputs": [2]}
    yield everywhere(steep, "float32", "float32", target, 0.95, 1.0)  # some hundreds are lost in float32


def test_small_networks_are_not_said_to_be_nearer_than_they_are(monkeypatch) -> None:
    monkeypatch.setattr(functions, "branch", honest.NO_SEARCH)
    for i, case in enumerate(more_false_claims()):
        assert honest.judged(case) == ["undecided"], i
