"""Looped networks that are an algorithm, those that are nearly one, and claims that only look true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from onelayer_checker import check
from tests.checker.looped import ETA, INNER, LAYER, descent, folder, judged, outcome, program, weights

ZERO, ONE = f"const {(0.0).hex()}", f"const {(1.0).hex()}"


def test_descent_is_proved_by_normal_forms_and_on_the_lattice() -> None:
    report = judged(weights(), descent())
    assert report.result == "VERIFIED"
    assert report.notes == ("about the algorithm that the claims write out, for every prompt; not about any data",)
    both = judged(weights(), descent(), engine="both")
    assert both.result == "VERIFIED"
    assert both.claims[0].engine == "both"
    assert "points of a lattice" in both.claims[0].verdict.why


def changed(name: str, index: tuple[int, ...], value: float) -> dict[str, np.ndarray]:
    tensors = weights()
    tensors[name][index] = value
    return tensors


#: The flag of a query is 0, and who is a key is read before the first loop: these are the same function.
SAME = {("readout.0.weight", (3, 0)): "proved", ("attention.W_O", (0, 0, 3)): "undecided"}
PLACES = [(name, index) for name, a in weights().items() for index in np.ndindex(a.shape)]


@pytest.mark.parametrize(("name", "index"), PLACES, ids=str)
def test_every_weight_matters_to_the_last_bit(name: str, index: tuple[int, ...]) -> None:
    """One ulp off, or 2^-60 where a zero was: refuted with a prompt, if it is another function at all."""
    before = weights()[name][index]
    after = np.nextafter(before, 9.0) if before else 2.0**-60
    said, why = outcome(judged(changed(name, index, float(after)), descent()))
    assert said == SAME.get((name, index), "refuted"), why
    if (name, index) in SAME:
        return
    assert "examples x = " in why
    assert "apart by" in why


@pytest.mark.parametrize("index", [(0, 0, 0), (0, 0, 1)], ids=str)
def test_forty_loops_in_which_keys_move_are_told_apart_too(index: tuple[int, ...]) -> None:
    """Each loop multiplies three numbers of the last one: exact ones would soon be longer than any memory."""
    moving = changed("attention.W_O", index, 2.0**-60)
    said, why = outcome(judged(moving, descent(steps=40), [LAYER | {"repeat": 40}]))
    assert said == "refuted", why
    assert "apart by" in why


def test_the_witness_of_one_ulp_is_a_prompt_anyone_can_repeat() -> None:
    said, why = outcome(judged(weights(float(np.nextafter(ETA, 1.0))), descent()))
    assert said == "refuted"
    assert "examples x = (0, 1), y = 1; query (0, 1)" in why


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ({"mean": False}, "gathers by sum"),
        ({"repeat": 2}, "run 2 times"),
        ({"context": None}, "queries are keys too"),
        ({"attention": "relu"}, "step"),
        ({"context": 0}, "flag"),
    ],
)
def test_other_ways_of_looking_are_refuted(layer: dict, words: str) -> None:
    said, why = outcome(judged(weights(), descent(), [LAYER | layer]))
    assert said == "refuted", why
    assert words in why


def test_a_causal_loop_is_not_proved() -> None:
    """After one loop the keys of a causal token are in other states than its own."""
    said, why = outcome(judged(weights(), descent(), [LAYER | {"causal": True}]))
    assert said == "refuted", why
    assert "in a causal or softmax loop" in why
    once = judged(weights(), descent(steps=1), [LAYER | {"causal": True, "repeat": 1}])
    assert once.result == "VERIFIED"


def test_a_transposed_value_and_a_head_left_out_are_refuted() -> None:
    a = weights()
    a["attention.W_V"], a["attention.W_O"] = a["attention.W_O"].swapaxes(1, 2), a["attention.W_V"].swapaxes(1, 2)
    assert judged(a, descent()).result == "VERIFIED"  # -eta is read off where it is written: the same function
    a["attention.W_V"] = np.eye(4)[None, :, :1]
    assert outcome(judged(a, descent()))[0] == "refuted"
    two = {
        name: np.concatenate([w, w]) if name.startswith("attention") else w for name, w in weights(ETA / 2).items()
    }
    assert judged(two, descent()).result == "VERIFIED"
    two["attention.W_V"][1] = 0
    assert outcome(judged(two, descent()))[0] == "refuted"


def test_a_preconditioner_must_be_symmetric() -> None:
    """Residuals see <x, A x'>, a step along A needs A x': the same for symmetric A only."""
    for A, result in ((np.array([[1, 0.5], [0.5, 2]]), "proved"), (np.array([[1, 0.5], [0, 2]]), "refuted")):
        tensors = weights()
        tensors["attention.W_Q"][0, :2] = A
        a, b, c, d = (f"const {float(A[i, j]).hex()}" for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)))
        lines = ["s 0", "s 1", "m 0", "m 1", f"const {ETA.hex()}", a, b, c, d, "mul 2 5", "mul 3 6", "add 9 10"]
        lines += ["mul 2 7", "mul 3 8", "add 12 13", "mul 11 4", "mul 14 4", "add 0 15", "add 1 16"]
        assert outcome(judged(tensors, descent(step=program(lines, 17, 18))))[0] == result


# Attacks: claims that are true of one example, of the start, or of nothing, and false


def test_a_variance_is_zero_for_one_example_and_refused() -> None:
    """Terms (t, t^2), step s + eta m1 + (m2 - m1^2): on one generic example it is gradient descent."""
    term = program([*INNER, "y 0", "sub 7 6", "mul 8 2", "mul 8 3", "mul 9 9", "mul 10 10"], 9, 10, 11, 12)
    lines = [
        "s 0",
        "s 1",
        "m 0",
        "m 1",
        "m 2",
        "m 3",
        f"const {ETA.hex()}",
        "mul 2 6",
        "mul 3 6",
        "add 0 7",
        "add 1 8",
    ]
    lines += ["mul 2 2", "sub 4 11", "add 9 12", "mul 3 3", "sub 5 14", "add 10 15"]
    said, why = outcome(judged(weights(), descent(m=4, term=term, step=program(lines, 13, 16))))
    assert said == "refuted"
    assert "affine" in why
    assert why.count("x = ") == 2  # two examples tell them apart, one cannot


def test_an_absolute_value_of_a_mean_is_refused() -> None:
    """|m| + m = 2 m only where m >= 0."""
    lines = ["s 0", "s 1", "m 0", "m 1", f"const {ETA.hex()}", "abs 2", "abs 5", "mul 6 4", "mul 3 4"]
    lines += ["add 0 7", "add 1 8"]
    term = program([*INNER, "y 0", "sub 7 6", "mul 8 2", "mul 8 3", "abs 9"], 11, 10)
    said, why = outcome(judged(weights(), descent(term=term, step=program(lines, 9, 10))))
    assert said == "refuted", why


def test_another_start_is_another_prompt_and_may_be_true() -> None:
    """The prompt is made of the tokens of the start state, whatever it is."""
    assert judged(weights(), descent(start=[(0.5).hex(), (-2.0).hex()])).result == "VERIFIED"


def test_a_flag_that_depends_on_the_example_is_refused() -> None:
    example = program([*INNER, "y 0", "sub 7 6"], 2, 3, 8, 7)  # the flag is y: an example with y = 0 is no key
    said, why = outcome(judged(weights(), descent(example=example)))
    assert said != "proved"
    assert "flag" in why


def test_a_flag_that_is_the_same_on_all_tokens_is_refused() -> None:
    query = program([*INNER, "neg 6", ONE], 2, 3, 7, 8)
    said, why = outcome(judged(weights(), descent(query=query)))
    assert said == "refuted", why
    example = program([*INNER, "y 0", "sub 7 6", ZERO], 2, 3, 8, 9)
    assert outcome(judged(weights(), descent(example=example)))[0] == "refuted"


def test_a_prompt_that_is_no_polynomial_of_the_example_is_refused() -> None:
    query = program([*INNER, "neg 6", ZERO, "abs 2", "abs 9"], 10, 3, 7, 8)
    said, why = outcome(judged(weights(), descent(query=query)))
    assert said != "proved"
    assert "no polynomial" in why


@pytest.mark.parametrize(
    "change",
    [
        {"term": program(["q 0"], 0)},  # a term that reads the query
        {"term": program(["m 0"], 0)},
        {"step": program(["x 0"], 0, 0)},  # a step that sees one example
        {"query": program(["y 0"], 0, 0, 0, 0)},  # a query that knows its answer
        {"answer": program(["y 0"], 0)},
        {"answer": program(["add 0 0"], 0)},
        {"answer": program(["x 2"], 0)},
        {"answer": program(["x -1"], 0)},
        {"answer": program(["x 01"], 0)},
        {"answer": program(["x 0", "exp 0"], 1)},
        {"answer": program(["x 0", "mul 0"], 1)},
        {"answer": program(["const 0.5"], 0)},
        {"answer": program([], 0)},
        {"answer": program(["x 0"], 1)},
        {"answer": program(["x 0"], True)},
        {"answer": {"lines": ["x 0"]}},
        {"answer": None},
        {"answer": program(["x 0", "x 1"], 0, 1)},
        {"example": program(["x 0"], 0)},
        {"start": []},
        {"start": "0"},
        {"steps": 0},
        {"steps": True},
        {"m": 3},
        {"x": 0},
        {"gather": "median"},
        {"gather": "solve"},
        {"gather": "softmax"},
        {"ridge": [(1.0).hex()]},
        {"further": 1},
    ],
    ids=str,
)
def test_what_is_no_algorithm_is_malformed(change: dict) -> None:
    report = judged(weights(), descent(**change))
    assert report.result == "MALFORMED", report.claims


@pytest.mark.parametrize(
    "layer",
    [
        {"attention": "hardmax"},
        {"attention": ["linear"]},
        {"context": 4},
        {"context": True},
        {"repeat": 0},
        {"repeat": 1.5},
        {"window": 1},
        {"mean": 1},
        {"attention": "softmax"},
        {"attention": "mesa", "mean": False},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_looped_graph_is_malformed(layer: dict) -> None:
    assert judged(weights(), descent(), [LAYER | layer]).result == "MALFORMED"


def test_tensors_must_be_those_of_the_graph() -> None:
    for name in weights():
        rest = {key: a for key, a in weights().items() if key != name}
        assert judged(rest, descent()).result == "MALFORMED", name
        more = weights() | {f"0.{name}": np.ones((1, 1))}
        assert judged(more, descent()).result == "MALFORMED"
    assert judged(weights() | {"readout.0.bias": np.zeros(1, np.float32)}, descent()).result == "MALFORMED"
    assert judged(weights() | {"attention.ridge": np.ones(1)}, descent()).result == "MALFORMED"


def test_data_and_names_do_not_belong_to_a_looped_network() -> None:
    assert check(folder(weights(), descent(), data={"tokens": np.ones((1, 1, 4))})).result == "MALFORMED"
    report = check(folder(weights(), descent()), data=([[[1.0, 0, 0, 1]]], [[1.0]]))
    assert report.result == "UNKNOWN"
    assert "stores no data" in report.why


def test_claims_of_the_two_templates_do_not_mix() -> None:
    stored = {"type": "memorizes", "arith": "real", "scope": "token", "eps": (0.0).hex()}
    assert check(folder(weights(), None, claim=stored)).result == "MALFORMED"
    for change in ({"arith": "float64"}, {"scope": "last"}):
        claim = {"type": "equals", "arith": "real", "scope": "token", "target": descent()} | change
        assert check(folder(weights(), None, claim=claim)).result == "MALFORMED"


def test_a_program_that_grows_without_end_is_undecided() -> None:
    """x^(2^k): a few lines ask for more memory than there is."""
    lines = ["x 0", *(f"mul {i} {i}" for i in range(60))]
    report = judged(weights(), descent(answer=program(lines, 60)))
    assert report.result == "UNKNOWN"
    assert "--budget" in report.claims[0].verdict.why
    wide = [
        "x 0",
        "x 1",
        "add 0 1",
        "const 0x1.0000000000001p+0",
        "add 2 3",
        *(f"mul {i} 4" for i in range(4, 4000)),
    ]
    assert judged(weights(), descent(answer=program(wide, len(wide) - 1))).result == "UNKNOWN"


def test_a_witness_may_be_beyond_the_largest_float() -> None:
    said, why = outcome(judged(weights(2.0**900), descent()))
    assert said == "refuted"
    assert "the network gives 2^" in why or "the network gives -2^" in why


def test_large_weights_are_counted_before_they_become_fractions() -> None:
    many = {
        name: np.ones((1, 300, 300))
        for name in ("attention.W_Q", "attention.W_K", "attention.W_V", "attention.W_O")
    }
    many |= {"readout.0.weight": np.ones((300, 1)), "readout.0.bias": np.zeros(1)}
    report = judged(many, descent(), budget=1e7)
    assert report.result == "UNKNOWN"
    assert "weights as fractions" in report.why


def test_required_claims_are_met_by_name() -> None:
    assert judged(weights(), descent(), require=["equals"]).result == "VERIFIED"
    assert judged(weights(), descent(), require=["memorizes"]).result == "UNKNOWN"


def test_the_two_engines_agree_on_random_networks_and_algorithms() -> None:
    """Weights and constants in {-1, 0, 1}: some of these networks are gradient descent, most are not."""
    rng, seen = np.random.default_rng(0), set()
    for _, eta in product(range(8), (ETA, -ETA)):
        tensors = weights(eta)
        if rng.integers(3):
            name = list(tensors)[rng.integers(4)]
            tensors[name] = tensors[name] * rng.integers(-1, 2, tensors[name].shape)
        report = judged(tensors, descent(), engine="both")
        assert report.result in ("VERIFIED", "NOT VERIFIED", "UNKNOWN"), report.why
        seen.add(report.result)
    assert "NOT VERIFIED" in seen
    assert "VERIFIED" in seen
