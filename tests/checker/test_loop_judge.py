"""Judging looped networks, part by part: which claims, which data, which tokens, which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.names import Names
from onelayer_checker.looped import judge as judging
from onelayer_checker.looped import lattice, panels
from onelayer_checker.looped.algorithms import Algorithm, Values, read_algorithm
from onelayer_checker.looped.judge import Contradiction, LoopJudge, equals, read_loop, selects, unmarked
from onelayer_checker.looped.network import build
from onelayer_checker.looped.polynomials import Ring
from tests.checker.looped import INNER, LAYER, descent, program, weights

ONE, NOTHING = f"const {(1.0).hex()}", f"const {(0.0).hex()}"


def judge(layer: dict[str, Any] | None = None, **tensors: np.ndarray) -> LoopJudge:
    held = weights() | tensors
    return LoopJudge(build(held, {"template": "looped/1", "layers": [LAYER | (layer or {})]}), held)


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**changes), "here")


def claim(type_: str = "equals", arith: str = "real", scope: Any = "token", **changes: Any) -> Claim:
    return Claim(type_, arith, scope, {}, read(**changes))


def test_claims_have_the_arithmetic_and_the_scope_of_their_kind() -> None:
    found = judge()
    for fine in (claim(), claim("selects"), claim("within"), claim("identifies", scope="last")):
        found.fits(fine)
    found.fits(claim("rounds", "float32"))
    for wrong in (
        claim(scope="last"), claim(scope=None), claim(arith="float64"), claim("rounds"),
        claim("rounds", "float32", "last"), claim("identifies"), claim("identifies", "float64", "last"),
        claim("memorizes"), claim("memorizes", scope="last"),
    ):  # fmt: skip
        with pytest.raises(Malformed, match="is not about a looped network"):
            found.fits(wrong)
        with pytest.raises(Malformed):
            found.judge(wrong)
    assert found.judge(claim()).outcome == "proved"


@pytest.fixture(autouse=True)
def _all_kinds() -> None:
    """Modules add their kinds when they are imported."""
    from onelayer_checker.looped import identified, limits, risks, rounding, smoothers  # noqa: F401


def test_the_network_lends_its_dtype_and_its_last_layer() -> None:
    assert judge().dtype == np.float64
    single = LoopJudge(
        build(
            {name: a.astype(np.float32) for name, a in weights().items()},
            {"template": "looped/1", "layers": [LAYER]},
        ),
        {"readout.0.weight": np.float32([[3]])},
    )
    assert single.dtype == np.float32
    assert single.readout.dtype == np.float64
    assert single.readout.tolist() == [[3.0]]


NAMES = Names("token", False, False, None, None, None)
GRAPH = {"template": "looped/1", "layers": [LAYER]}


def loop(data: Any = None, names: Any = NAMES, claims: Any = (), layer: Any = None) -> LoopJudge:
    graph = {"template": "looped/1", "layers": [LAYER | (layer or {})]}
    return read_loop(weights(), data or {}, graph, names, list(claims))


def test_data_and_names_of_other_things_are_refused() -> None:
    found = loop()
    assert found.network == build(weights(), GRAPH)
    assert found.tensors.keys() == weights().keys()
    assert loop({}, NAMES, [claim()]).data == {}
    tokens = {"tokens": np.zeros(1)}
    asked = [claim(), claim("identifies", scope="last")]
    last = replace(NAMES, scope="last")
    known = {name: np.zeros(1) for name in ("tokens", "at", "other.W_Q", "other.W_K", "other.W_V", "other.W_O")}
    assert loop(known, last, asked).data == known
    wrong: list[tuple[Any, Any, Any]] = [
        (tokens, NAMES, ()), ({}, None, ()), ({}, last, ()), ({}, NAMES, asked),
        (known | {"more": np.zeros(1)}, last, asked), (tokens, last, ()),
        ({}, replace(NAMES, tokens=("a",)), ()), ({}, replace(NAMES, answers=("a",)), ()),
    ]  # fmt: skip
    for data, names, claims in wrong:
        with pytest.raises(Malformed, match="a looped network has no data, and real tokens and answers"):
            loop(data, names, claims)


def test_names_must_say_whether_it_is_causal() -> None:
    for names, layer in (
        (replace(NAMES, causal=True), {}), (NAMES, {"causal": True}), (replace(NAMES, positions=True), {}),
        (replace(NAMES, causal=True, positions=True), {"causal": True}),
    ):  # fmt: skip
        with pytest.raises(Malformed, match="causal or positions"):
            loop({}, names, (), layer)
    assert loop({}, replace(NAMES, causal=True), (), {"causal": True}).network.loop.causal


def test_a_verdict_is_kept_for_the_very_algorithm() -> None:
    found = judge()
    first = equals(found, claim())
    assert (first.outcome, first.value) == ("proved", 0.0)
    assert equals(found, claim()) is first
    other = equals(found, claim(steps=4))
    assert other.outcome == "refuted"
    assert equals(found, claim(steps=4)) is other
    assert equals(found, claim()) is first
    assert len(found.known) == 2
    with pytest.raises(Malformed, match="equals is about looped networks"):
        equals(object(), claim())
    with pytest.raises(Malformed, match="other tokens"):
        equals(found, claim(answer=program(["s 0"], 0, 0)))


def test_what_is_proved_is_counted() -> None:
    """Two kinds of tokens, four components each, affine and step; and the answer."""
    words = "17 identities of polynomials: 3 steps, for every number of examples"
    assert equals(judge(), claim()).why == words
    once = equals(judge({"repeat": 1}), claim(steps=1)).why
    assert once == "9 identities of polynomials: 1 step, for every number of examples"


def test_a_weight_that_is_off_is_refuted_with_a_prompt_and_the_rule() -> None:
    verdict = equals(judge(**weights(0.25 + 2.0**-40)), claim())
    assert (verdict.outcome, verdict.value) == ("refuted", np.inf)
    assert verdict.why.startswith("examples x = ")
    assert verdict.why.endswith("(step: component 2 differs)")


def test_a_channel_that_nobody_reads_is_undecided() -> None:
    """It multiplies the flag by 2 in every loop: the answers are the same, which no identity says."""
    more = {"feedforward.0.weight": np.diag([1.0, 1.0, 1.0, 2.0]), "feedforward.0.bias": np.zeros(4)}
    verdict = equals(judge(**more), claim())
    assert (verdict.outcome, verdict.value) == ("undecided", np.inf)
    assert verdict.why == "step: component 3 differs; no prompt was found that tells them apart"


def test_other_structure_is_refuted_or_undecided_before_identities() -> None:
    verdict = equals(judge({"repeat": 2}), claim())
    assert verdict.outcome == "refuted"
    assert verdict.why.endswith("(the loop is run 2 times, the algorithm takes 3 steps)")


def test_where_an_identity_fails_suggests_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(judging, "prompts", lambda _, point: seen.append(point) or iter(()))
    wrong = [*INNER, "mul 2 2", "mul 7 7", "mul 8 8", "add 6 9"]
    equals(judge(), claim(answer=program(wrong, 10)))
    assert seen[0][("X", 0)] != 0
    curved = [*INNER, "max 6 3"]
    equals(judge(), claim(answer=program(curved, 7)))
    assert seen[1] == {}


def values(a: Algorithm) -> Values:
    ring = Ring()
    return Values(**{group: list(ring.variables(group, count)) for group, count in Values.sizes(a).items()})


def test_tokens_of_the_start_say_which_of_them_are_keys() -> None:
    network = judge().network
    a = read()
    assert unmarked(network, a, values(a)) == ""
    example, query = (descent()[name]["lines"] for name in ("example", "query"))
    flagged = "must be a number, 0 on queries only"
    for changes, words in (
        ({"example": program([*example[:-1], NOTHING], 2, 3, 8, 9)}, f"start: the flag of the example {flagged}"),
        ({"example": program(example, 2, 3, 8, 2)}, f"start: the flag of the example {flagged}"),
        ({"query": program([*query[:-1], ONE], 2, 3, 7, 8)}, f"start: the flag of the query {flagged}"),
        ({"query": program(query, 2, 3, 7, 2)}, f"start: the flag of the query {flagged}"),
    ):
        a = read(**changes)
        assert unmarked(network, a, values(a)) == words
        verdict = equals(judge(), claim(**changes))
        assert verdict.outcome != "proved"
        assert words in verdict.why
    curved = read(example=program([*example, "max 0 2"], 2, 3, 10, 9))
    assert unmarked(network, curved, values(curved)) == "start: the example is no polynomial of x and y"
    asked = read(query=program([*query, "max 0 2"], 2, 3, 9, 8))
    assert unmarked(network, asked, values(asked)) == "start: the query is no polynomial of x and y"
    half = read(example=program([*example[:-1], f"const {(0.5).hex()}"], 2, 3, 8, 9))
    assert unmarked(network, half, values(half)) == ""
    sums = read(example=program([*example[:-1], "sub 2 2", ONE, "add 9 10"], 2, 3, 8, 11))
    assert unmarked(network, sums, values(sums)) == ""
    alone = replace(network, loop=replace(network.loop, context=None))
    free = read(query=None, example=program(example, 2, 3, 8, 2))
    assert unmarked(alone, free, values(free)) == ""
    assert unmarked(alone, read(), values(read())) == ""


def test_the_flag_of_judges_is_a_number_and_not_zero_on_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    (letter,) = ring.variables("s", 1)
    zero, number = letter - letter, letter - letter + 3

    def verdict(*listed: Any) -> Verdict:
        monkeypatch.setattr(panels, "flags", lambda *_: iter(listed))
        return equals(judge(), claim())

    fine = [("example", 0, False), ("query", zero, False), ("judge", number, True)]
    assert verdict(*fine).outcome == "proved"
    for wrong in (
        ("example", 1, False), ("query", number, False), ("judge", zero, True), ("judge", 0, True),
        ("judge", letter, True), ("query", letter, False), ("judge", letter + 1, True),
    ):  # fmt: skip
        found = verdict(*fine, wrong)
        assert found.outcome == "undecided"
        assert found.why.startswith(
            f"flags: that of judges must be a number on the {wrong[0]}, not 0 on judges only"
        )


def test_both_engines_are_asked_where_both_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge({"repeat": 1})
    assert found.decide(claim(steps=1), both=False) == ("numpy", found.judge(claim(steps=1)))
    engine, verdict = found.decide(claim(steps=1), both=True)
    assert engine == "both"
    assert verdict.why.endswith("for every number of examples; 99 points of a lattice")
    with monkeypatch.context() as few:
        few.setattr(lattice, "MOST_POINTS", 50)
        many = judge({"repeat": 1}).decide(claim(steps=1), both=True)
    assert many[0] == "numpy"
    assert many[1].outcome == "proved"
    assert many[1].why.endswith("(the lattice has more than 50 points)")
    engine, verdict = judge({"repeat": 2}).decide(claim(), both=True)
    assert engine == "numpy"
    assert verdict.why.endswith("(the lattice judges identities only)")
    assert verdict.outcome == "refuted"
    wrong = judge({"repeat": 1}, **weights(0.5)).decide(claim(steps=1), both=True)
    assert wrong[0] == "both"
    assert wrong[1].outcome == "refuted"
    assert "fails at" in wrong[1].why
    monkeypatch.setattr(lattice, "decide", lambda *_: (False, "for a test"))
    words = r"normal forms say proved \(9 identities .*\); for a test"
    with pytest.raises(Contradiction, match=words):
        judge({"repeat": 1}).decide(claim(steps=1), both=True)
    assert Contradiction.gate == "agreement"
    assert issubclass(Contradiction, OSError)
    monkeypatch.setattr(lattice, "decide", lambda *_: (True, "for a test"))
    engine, verdict = judge({"repeat": 1}, **weights(0.5)).decide(claim(steps=1), both=True)
    assert (engine, verdict.outcome) == ("both", "refuted")
    assert verdict.why.endswith("; for a test")


def test_other_claims_are_not_for_the_lattice() -> None:
    selecting = Claim("selects", "real", "token", {"delta": 0.5, "reach": 1.0}, read(steps=1))
    engine, verdict = judge({"repeat": 1}).decide(selecting, both=True)
    assert engine == "numpy"
    assert verdict.why.endswith("(the lattice judges identities only)")


def test_a_choice_needs_the_algorithm_and_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(delta: float = 0.5, layer: Any = None) -> Verdict:
        return selects(judge(layer), Claim("selects", "real", "token", {"delta": delta, "reach": 8.0}, read()))

    found = verdict()
    assert (found.outcome, found.value) == ("undecided", np.inf)
    assert found.why == "only two learners with one answer, and a power of two, are told apart"
    assert verdict(layer={"repeat": 2}).outcome == "refuted"
    seen = []
    monkeypatch.setattr(panels, "missing", lambda *given: seen.append(given) or "")
    found = verdict()
    assert (found.outcome, found.value) == ("proved", 0.5)
    assert found.why.endswith("for every number of examples; the better of two, if mean squares are 0.5 apart")
    assert seen == [(read(), 0.5, 8.0)]


def test_kinds_are_known_by_name() -> None:
    assert (KINDS["equals"].numbers, KINDS["equals"].judge) == (frozenset(), equals)
    assert (KINDS["selects"].numbers, KINDS["selects"].judge) == (frozenset({"delta", "reach"}), selects)
    assert KINDS["equals"].read_target is KINDS["selects"].read_target is read_algorithm
    assert judging.OWN["equals"] is equals
    assert judging.OWN["selects"] is selects
    assert judging.NONE == {}
