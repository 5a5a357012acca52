"""Functions on cells: bounds hold, and forgeries are refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import comb
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

from attacks.counterexamples import bundle
from attacks.forged_functions import ASSUMED, near_cells, of_cells
from attacks.functions import COPY, SILENT, about, constant
from onelayer_checker.core.graph import build
from onelayer_checker.functions import cells as functions
from onelayer_checker.functions.targets import Program, read_program
from tests.checker import dense, honest
from tests.checker.asked import check
from tests.checker.large import ARITHMETICS

FORGERIES = {f.name: f for f in of_cells(honest.bundle("cells"))}
CELLS = ["cells", "ordered cells", "distinct cells"]


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 40


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused_at_their_gate(tmp_path, name) -> None:
    forgery, forged = FORGERIES[name], honest.bundle("cells").copy()
    forgery.change(forged)
    verdict = check(forged.write(tmp_path / "forged"))
    assert verdict["result"] != "VERIFIED"
    assert verdict["gate"] == forgery.gate, verdict
    if forgery.result:
        assert verdict["result"] == forgery.result, verdict


def test_honest_neighbours_are_accepted() -> None:
    for name in CELLS:
        assert set(honest.judged(honest.bundle(name))) == {"proved"}
    for name, change in near_cells(honest.bundle("cells")):
        neighbour = honest.bundle("cells").copy()
        change(neighbour)
        assert set(honest.judged(neighbour)) == {"proved"}, name


def in_cells(b, number):
    """Which sequences lie in a cell that is stored, or in an order of one if there are no positions."""
    centres = np.unique(b.data["tokens"]).astype(np.float64)
    rows = np.searchsorted(centres, b.data["tokens"]).reshape(len(b.data["tokens"]), -1).tolist()
    ordered = "embedding.positions" in b.model
    stored = {tuple(x) for row in rows for x in ([row] if ordered else permutations(row))}

    def inside(X):
        x = np.asarray(X, np.float64).reshape(len(X), -1)
        at = np.abs(x[..., None] - centres).argmin(axis=-1)
        near = (np.abs(x - centres[at]) <= number["radius"]).all(axis=1)
        return near & np.array([tuple(row) in stored for row in at.tolist()])

    return inside


@pytest.mark.parametrize("name", CELLS)
def test_no_input_in_a_cell_is_further_away_than_is_proved(name: str) -> None:
    b = honest.bundle(name)
    for claim in b.certificate["claims"]:
        number = honest.numbers(claim)
        error, dtype = honest.difference(b, claim)
        box = number["low"], number["high"], b.data["tokens"].shape[1:], dtype
        if claim["type"] == "sup_error":
            found = dense.largest(error, *box, seed=2, inside=in_cells(b, number), samples=2000)
            assert 0.1 * number["bound"] < found <= number["bound"]
            X = np.random.default_rng(4).uniform(*box[:2], (8000, *box[2]))
            assert 1 - in_cells(b, number)(X).mean() <= number["measure"] + 0.02
        else:
            X = np.random.default_rng(3).uniform(*box[:2], (8000, *box[2])).astype(dtype)
            mean = (error(X) ** number["p"]).mean() ** (1 / number["p"])
            assert 0.02 * number["bound"] < mean <= number["bound"]


def test_answers_stay_in_the_range_that_is_said() -> None:
    rng = np.random.default_rng(8)
    for name in CELLS:
        model = dict(honest.bundle(name).model)
        for last in ("readout.4.bias", "readout.5.weight", "readout.5.bias"):
            model[last] = rng.normal(size=model[last].shape).astype(model[last].dtype)
        dtype = model[last].dtype
        low, high = functions.range_of_output(build(model), ARITHMETICS[dtype.name])
        X = rng.uniform(-1e3, 1e3, (2000, 2, 1))
        out = dense.evaluate(model, X, dtype.type).reshape(-1, 1).astype(np.float64)
        assert (low <= out.min(axis=0)).all()
        assert (out.max(axis=0) <= high).all()


def test_orders_are_counted_exactly() -> None:
    """All multisets of n of two cells stand for 2^n sequences, however many that is; one less leaves its out."""
    for K, n in ((2, 3), (3, 4), (2, 40), (2, 300)):
        rows = np.array([[i] * (n - j) + [i + 1] * j for i in range(K - 1) for j in range(n + 1)])
        rows = np.unique(np.sort(rows, axis=1), axis=0)
        tokens = rows[..., None].astype(np.float64)
        claim = SimpleNamespace(
            numbers={"radius": 0.25, "low": -0.5, "high": K - 0.5}, target=functions.Assumed(1.0, 0.0, True)
        )
        network = SimpleNamespace(causal=False, tensors={})
        cells = functions.find_cells(network, claim, tokens)
        if K == 2:
            assert cells.count == 2**n
            assert functions.find_cells(network, claim, tokens[1:]).count == 2**n - comb(n, n)
        assert cells.side == Fraction(1, 2 * K)
        assert cells.orders == [tuple(range(n))]
        ordered = functions.find_cells(SimpleNamespace(causal=True, tensors={}), claim, tokens)
        assert ordered.count == len(rows)


def test_an_assumption_is_printed() -> None:
    claim = about("sup_error", "real", ASSUMED, bound=2, radius=0.5, low=-1, high=1, measure=0.5)
    verdict = check_bundle(bundle("float64", COPY | SILENT, [[[0]]], [0], claim))
    assert "1-Lipschitz and commutes with permutations" in verdict["claims"][0]["why"]
    assert verdict["result"] == "VERIFIED"


def check_bundle(b):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return check(b.write(Path(folder)))


def program(n: int, *lines, outputs=None):
    """A target of n tokens, which are its first lines; the last line is its value for all of them."""
    lines = [*(["x", k, 0] for k in range(n)), *lines]
    entry = {
        "n": n,
        "d": 1,
        "per": "token",
        "components": 1,
        "lines": lines,
        "outputs": outputs or [len(lines) - 1] * n,
    }
    return read_program(entry, "target")


ONE, FAINT, QUARTER, NEARLY_TWO = (["const", float(x).hex()] for x in (1, 2.0**-20, 0.26, 2 - 2.0**-20))
DEFINED = {
    "a parabola that stays above 0": program(1, ONE, ["mul", 0, 0], ["sub", 2, 0], ["add", 3, 1], ["div", 1, 4]),
    "a root that comes near 0": program(1, ONE, ["sub", 1, 0], ["mul", 0, 2], QUARTER, ["sub", 4, 3], ["sqrt", 5]),
    "six tokens": program(6, *(["exp", k] for k in range(6)), ["add", 6, 11], ["div", 6, 12]),
}
UNDEFINED = {
    "a pole inside": program(1, FAINT, ["sub", 0, 1], ["div", 1, 2]),
    "a pole on a diagonal": program(2, ["sub", 0, 1], ["div", 0, 2]),
    "a root beyond a corner": program(2, NEARLY_TWO, ["add", 0, 1], ["sub", 2, 3], ["sqrt", 4]),
    "one of two outputs": program(2, ["sub", 0, 1], ["div", 0, 2], outputs=[0, 3]),
    "a pole at the end": program(1, ONE, ["sub", 1, 0], ["div", 1, 2]),
}


@pytest.mark.parametrize("name", DEFINED | UNDEFINED)
def test_where_a_target_is_defined(name) -> None:
    """On [0, 1]: with intervals that are too wide for the whole box, and with holes that are easily missed."""
    where = functions.open_box((DEFINED | UNDEFINED)[name], 0.0, 1.0)
    assert (where == "") == (name in DEFINED), where
    assert name in DEFINED or where.startswith("[")


def test_a_readout_of_one_layer_has_no_range() -> None:
    model = COPY | {"readout.1.weight": [[0]], "readout.1.bias": [0]}
    numbers = {"radius": 0.5, "low": -1, "high": 1, "bound": 9}
    for kind, more in (("sup_error", {"measure": 0.5}), ("lp_error", {"p": 2})):
        claim = about(kind, "real", constant(0), **numbers, **more)
        verdict = check_bundle(bundle("float64", model, [[[0]]], [0], claim))
        assert verdict["result"] == {"sup_error": "VERIFIED", "lp_error": "UNKNOWN"}[kind]


def small(kind: str, target, tokens, answers=None, arith: str = "real", scope: str = "token", **numbers):
    """A network that answers 0, and one claim about it; tokens [N, n, 1] in a box of cells of radius 1/2."""
    tokens = np.asarray(tokens, np.float64)
    answers = np.zeros(tokens[:, :, 0].size) if answers is None else answers
    numbers = {"radius": 0.4375, "low": -0.5, "high": tokens.max() + 0.5} | numbers
    return bundle("float64", COPY | SILENT, tokens, answers, about(kind, arith, target, scope, **numbers))


def first(n: int, outputs):
    """Targets that are tokens."""
    lines = [["x", k, 0] for k in range(n)]
    return {"n": n, "d": 1, "per": "token", "components": 1, "lines": lines, "outputs": outputs}


def more_false_claims():
    """The network answers 0; the target is further from that somewhere, or less of the box is covered."""
    pairs, triples = [[[0], [0]], [[0], [1]], [[1], [1]]], [[[0], [0], [1]]]
    share = 1 - 0.875**2
    yield small("sup_error", first(2, [0, 1]), pairs, bound=1.25, measure=share)  # 1.4375 at the end of a cell
    yield small("sup_error", first(2, [0, 1]), pairs, bound=1.5, measure=share * 0.99)
    causal = small("sup_error", first(2, [0, 1]), pairs, bound=1.5, measure=share)  # (1, 0) is not stored
    causal.certificate["graph"]["causal"] = True
    yield causal
    yield small("sup_error", first(3, [0, 0, 0]), triples, bound=1.0, measure=0.9)  # as (1, 0, 0) it is 1.4
    yield small("sup_error", first(3, [2, 2, 2]), [[[1], [0], [0]]], bound=1.0, measure=0.9)  # and as (0, 0, 1)
    yield small(
        "sup_error", first(3, [0, 0, 0]), triples, bound=1.5, measure=1 - 6 * 0.4375**3
    )  # three orders, not 6
    L = ASSUMED | {"lipschitz": (2.0).hex()}
    cells = {"tokens": [[[0]], [[1]]], "answers": [0, 0]}
    yield small("sup_error", L, **cells, bound=0.5, measure=0.5)  # 2 * 0.4375
    yield small("sup_error", ASSUMED | {"error": (0.5).hex()}, **cells, bound=0.5, measure=0.5)
    yield small("sup_error", ASSUMED, cells["tokens"], [0, 1], bound=1.25, measure=0.5)
    yield small("sup_error", ASSUMED, cells["tokens"], [0, -1], bound=1.25, measure=0.5)
    yield small("lp_error", first(1, [0]), cells["tokens"], bound=0.6, p=1)  # the mean of |x| is 0.625
    yield small("lp_error", first(1, [0]), cells["tokens"], bound=0.7, p=2)  # of x^2, 7/12, whose root is 0.76
    yield small("lp_error", constant(1), cells["tokens"], bound=0.99, p=3)
    yield small("lp_error", constant(-1), cells["tokens"], bound=0.99, p=3)
    yield small("lp_error", first(1, [0]), [[[0]], [[1]], [[9]]], bound=4.3, p=1)  # 4.5, of which most is between
    yield small("lp_error", first(2, [0, 0]), [*pairs[:2], [[1], [1]]], bound=0.6, p=1)
    yield small("lp_error", ASSUMED, [[[0]], [[9]]], [0, 0], bound=1.5, p=1)  # 9/4 between them, all in all 2.1
    narrow = {"radius": 2.0**-20, "low": -0.5, "high": 1.5}
    yield small("lp_error", ASSUMED, **cells, bound=0.2, p=1, **narrow)  # the distance to a centre, 1/4
    yield small("lp_error", ASSUMED | {"error": (1.0).hex()}, **cells, bound=1.0, p=1, **narrow)
    yield small("lp_error", ASSUMED, cells["tokens"], [0, 1], bound=0.6, p=1, **narrow)
    yield small("lp_error", ASSUMED, cells["tokens"], [0, -1], bound=0.6, p=1, **narrow)


def test_false_claims_about_a_silent_network_are_not_proved() -> None:
    for i, case in enumerate(more_false_claims()):
        assert honest.judged(case) in (["undecided"], ["refuted"]), i


def test_every_order_may_be_looked_at() -> None:
    for name in CELLS[:2]:
        with patch.object(Program, "symmetric", False):
            assert set(honest.judged(honest.bundle(name))) == {"proved"}
