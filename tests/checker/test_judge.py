"""Verdicts about stored answers, given balls of coordinates and answers: none says more than exact rationals do."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from onelayer_checker.core import judge as judging
from onelayer_checker.core import processes
from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, Ball
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.judge import Disagreement, Judge
from onelayer_checker.core.samples import Data
from tests.checker.counted import counted
from tests.checker.large import ARITHMETICS


class Readout:
    """Answers are the coordinates themselves; it notes what it was asked."""

    widest = 1
    outputs = 1

    def effort(self, A) -> float:  # noqa: ARG002
        return 1.0

    def __init__(self, disagrees=()) -> None:
        self.asked: list[tuple[int, str]] = []
        self.compared: list[str] = []
        self.contradicted = disagrees

    def apply(self, x: Ball, A) -> Ball:
        self.asked.append((len(x.m), A.name))
        return x

    def disagrees(self, x: Ball, A) -> np.ndarray:  # noqa: ARG002
        self.compared.append(A.name)
        return np.array(self.contradicted, np.intp)


class Known(Ball):
    def at(self, rows: slice, n: int | None = None) -> Known:
        return Known(self.m[rows][:, :n], self.r[rows][:, :n])


class Network:
    """Coordinates [N, n, c] with radii that may depend on what is asked; in blocks of two sequences."""

    dtype = np.dtype("float32")

    def __init__(self, m, r=0.0, disagrees=()) -> None:
        self.m = np.asarray(m, float)
        self.r = r if callable(r) else (lambda *_: np.broadcast_to(np.asarray(r, float), self.m.shape))
        self.tensors: dict[str, np.ndarray] = {}
        self.readout = Readout(disagrees)
        self.readout.outputs = self.m.shape[-1]
        self.feedforward = Readout()
        self.asked: list[tuple[float, str]] = []

    def known(self, tokens, radius, A, share):
        """All coordinates, of which a part is taken with a part of the sequences."""
        assert 0 < share <= 1
        assert len(tokens)
        self.asked.append((radius, A.name))
        return Known(self.m, np.broadcast_to(self.r(A, radius), self.m.shape))

    def lifted(self, tokens, radius, A) -> Ball:
        assert radius == 0
        assert A.name == self.asked[-1][1]
        return Ball(np.asarray(tokens, float).reshape(-1, 1), np.zeros((tokens.size, 1)))

    def coordinates(self, tokens, lengths, radius, A, last, known):
        assert self.asked[-1] == (radius, A.name)
        assert len(tokens) == len(lengths) == len(known.m)
        for a in range(0, len(tokens), 2):
            rows = slice(a, min(a + 2, len(tokens)))
            m, r = known.m[rows], known.r[rows]
            if last:
                at = (np.arange(len(m)), lengths[rows] - 1)
                m, r = m[at][:, None], r[at][:, None]
            yield rows, Ball(m, r)


def data(answers, which=None, lengths=None, tokens=None, strangers=None, n: int = 1) -> Data:
    answers = np.asarray(answers, float).reshape(len(answers), -1)
    N = len(lengths) if lengths is not None else len(tokens) if tokens is not None else len(answers) // n
    tokens = np.arange(N * n, dtype=np.float32).reshape(N, n, 1) if tokens is None else np.asarray(tokens)
    lengths = np.full(N, tokens.shape[1]) if lengths is None else np.asarray(lengths)
    return Data(
        tokens, lengths, answers, np.arange(len(answers)) if which is None else np.asarray(which), strangers
    )


def claim(kind: str = "memorizes", arith: str = "real", scope: str = "token", **numbers: float) -> Claim:
    return Claim(kind, arith, scope, numbers or {"eps": 0.0})


def column(values) -> np.ndarray:
    return np.asarray(values, float).reshape(-1, 1, 1)


def test_an_answer_is_proved_refuted_or_left_open() -> None:
    for m, r, wanted, eps, outcome in (
        (3, 0, 3, 0, "proved"),
        (3, 0.25, 3, 0, "undecided"),
        (3, 0.25, 3, 0.5, "proved"),
        (3.25, 0, 3, 0.5, "proved"),
        (2.75, 0, 3, 0.5, "proved"),
        (3.25, 0.5, 3, 0.5, "undecided"),
        (2.75, 0.5, 3, 0.5, "undecided"),
        (4, 0, 3, 0.5, "refuted"),
        (2, 0, 3, 0.5, "refuted"),
        (4, 0.25, 3, 0.5, "refuted"),
        (4, 0.75, 3, 0.5, "undecided"),
        (3, np.inf, 3, 1e9, "undecided"),
        (np.nan, 0, 3, 1e9, "undecided"),
        (3, np.nan, 3, 1e9, "undecided"),
        (np.inf, np.inf, 3, 1e9, "undecided"),
        (3 + 2.0**-40, 0, 3, 0, "refuted"),
        (2.0**-60, 1, 0, 1, "undecided"),  # 1 + 2^-60 is rounded to 1
        (3, 0.25, 3, 0.25 * (1 + 2.0**-40), "proved"),
    ):
        found = Judge(Network(column([m]), r), data([wanted])).judge(claim(eps=eps))
        assert found.outcome == outcome, (m, r, wanted, eps)


def test_what_is_known_is_used() -> None:
    """Of an error and radius clearly on one side of eps, nothing is left open."""
    for eps in (1e-3, 1.0, 1e6):
        for share, radius, outcome in ((0.5, 0.4999, "proved"), (1.5, 0.4999, "refuted"), (0.999, 0, "proved")):
            found = Judge(Network(column([7 + share * eps]), radius * eps), data([7])).judge(claim(eps=eps))
            assert found.outcome == outcome, (eps, share)


def test_what_is_just_reached_is_not_refuted() -> None:
    """An error of eps, or of the radius, for numbers whose rounding might make it look larger."""
    for x in np.random.default_rng(2).uniform(1, 2, 400).tolist():
        assert Judge(Network(column([x])), data([0])).judge(claim(eps=x)).outcome != "refuted"
        assert Judge(Network(column([x]), x), data([0])).judge(claim(eps=0.0)).outcome != "refuted"
        short = round(x * 2**30) / 2**30
        beyond = Judge(Network(column([short]), short - 2.0**-20), data([0]))
        assert beyond.judge(claim(eps=2.0**-20)).outcome != "refuted"


def test_every_component_counts() -> None:
    beside = Judge(Network(np.zeros((1, 1, 2)), [0.0, 0.5]), data(np.zeros((1, 2)))).judge(claim(eps=0.0))
    assert beside.outcome == "undecided"  # an answer that is exactly right does not make another wrong
    for wrong in (0, 1, 2):
        m = np.zeros((1, 1, 3))
        m[..., wrong] = 1
        assert Judge(Network(m), data(np.zeros((1, 3)))).judge(claim(eps=0.25)).outcome == "refuted"
        r = np.zeros((1, 1, 3))
        r[..., wrong] = 1
        assert Judge(Network(0 * m, r), data(np.zeros((1, 3)))).judge(claim(eps=0.25)).outcome == "undecided"


@pytest.mark.parametrize("block", [1, 2, 1 << 18])
def test_every_sample_counts_in_whatever_blocks(monkeypatch, block) -> None:
    """One answer is wrong, or open, or inexact; the verdict names the first, or the largest error of all."""
    monkeypatch.setattr(judging, "BLOCK", block)
    for at in range(9):
        m, r = np.arange(9.0), np.zeros(9)
        m[at] += 1
        found = Judge(Network(column(m)), data(np.arange(9.0))).judge(claim(eps=0.5))
        assert found.outcome == "refuted"
        assert found.why == f"sequence {at}, token 0 answers [{m[at]}], not [{float(at)}]".replace(".0]", ".]")
        m[at] -= 1
        r[at] = 0.75
        found = Judge(Network(column(m), column(r)), data(np.arange(9.0))).judge(claim(eps=0.5))
        assert found.outcome == "undecided"
        assert found.why.startswith(f"sequence {at}, token 0: coordinates [{at}.] +- [0.75]")
        assert 0.75 <= found.value < 0.7501
        found = Judge(Network(column(m), column(r)), data(np.arange(9.0))).judge(claim(eps=1))
        assert found.outcome == "proved"
        assert 0.75 <= found.value < 0.7501
        assert found.why == "9 answers, largest error 0.75"


def test_the_first_open_sample_is_named_and_a_wrong_one_before_all(monkeypatch) -> None:
    monkeypatch.setattr(judging, "BLOCK", 1)
    r = np.array([0, 0, 1, 0, 0, 0, 3, 0, 0.0])
    found = Judge(Network(column(np.zeros(9)), column(r)), data(np.zeros(9))).judge(claim(eps=0.5))
    assert found.why.startswith("sequence 2,")
    assert 3 <= found.value < 3.001
    m = np.zeros(9)
    m[8] = 9
    found = Judge(Network(column(m), column(r)), data(np.zeros(9))).judge(claim(eps=0.5))
    assert (found.outcome, found.value) == ("refuted", np.inf)
    assert found.why.startswith("sequence 8,")


def test_blocks_are_as_large_as_the_readout_allows(monkeypatch) -> None:
    monkeypatch.setattr(judging, "BLOCK", 6)
    for widest, sizes in ((1, [20]), (3, [8, 8, 4]), (8, [3] * 6 + [2]), (1000, [1] * 20)):
        network = Network(column(np.zeros(20)))
        network.readout.widest = widest
        assert Judge(network, data(np.zeros(20))).judge(claim()).outcome == "proved"
        assert [size for size, _ in network.readout.asked] == sizes


LENGTHS = [2, 1, 3]


def test_a_token_has_its_own_answer() -> None:
    """Padding has none; answers go by their number among all tokens."""
    m = np.array([[1, 2, -9], [3, -9, -9], [4, 5, 6]], float)[..., None]
    answers = np.arange(1.0, 7)
    good = data(answers, lengths=LENGTHS, n=3, tokens=np.zeros((3, 3, 1), np.float32))
    found = Judge(Network(m), good).judge(claim())
    assert (found.outcome, found.why) == ("proved", "6 answers, largest error 0")
    for at, (i, k) in enumerate([(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]):
        wrong = answers.copy()
        wrong[at] = 0
        d = data(wrong, lengths=LENGTHS, tokens=good.tokens)
        assert Judge(Network(m), d).judge(claim()).why.startswith(f"sequence {i}, token {k} answers")
    mixed = data(answers[::-1], which=[5, 4, 3, 2, 1, 0], lengths=LENGTHS, tokens=good.tokens)
    assert Judge(Network(m), mixed).judge(claim()).outcome == "proved"


def test_a_sequence_has_one_answer() -> None:
    """With scope "sequence" all its tokens have it, with scope "last" only the last that is no padding."""
    tokens = np.zeros((3, 3, 1), np.float32)
    m = np.array([[1, 1, -9], [2, -9, -9], [3, 3, 3]], float)[..., None]
    d = data([3, 2, 1], which=[2, 1, 0], lengths=LENGTHS, tokens=tokens)
    found = Judge(Network(m), d).judge(claim(scope="sequence"))
    assert (found.outcome, found.why) == ("proved", "6 answers, largest error 0")
    found = Judge(Network(m), d).judge(claim(scope="last"))
    assert (found.outcome, found.why) == ("proved", "3 answers, largest error 0")
    for i, k in ((0, 0), (2, 0), (2, 1)):
        other = m.copy()
        other[i, k] = 7
        assert Judge(Network(other), d).judge(claim(scope="last")).outcome == "proved"
        found = Judge(Network(other), d).judge(claim(scope="sequence"))
        assert found.why.startswith(f"sequence {i}, token {k} answers [7.], not [{i + 1}.]")
    for i, k in ((0, 1), (1, 0), (2, 2)):
        other = m.copy()
        other[i, k] = 7
        found = Judge(Network(other), d).judge(claim(scope="last"))
        assert found.why.startswith(f"sequence {i}, token {k} answers [7.], not [{i + 1}.]")


@pytest.mark.parametrize("block", [1, 1 << 18])
def test_strangers_all_have_the_default(monkeypatch, block) -> None:
    monkeypatch.setattr(judging, "BLOCK", block)
    tokens = np.zeros((4, 2, 1), np.float32)
    unknown = Data(tokens, np.full(4, 2), np.array([[7.0, 8.0]]), np.zeros(0, np.int64))
    m = np.broadcast_to(np.array([7.0, 8.0]), (4, 2, 2)).copy()
    for scope in ("token", "sequence", "last"):
        known = data(np.zeros((3, 2)), n=1, strangers=unknown)
        network = Network(m)
        found = Judge(network, known).judge(claim("rejects", scope=scope, eps=0.0))
        assert (found.outcome, found.why[:2]) == ("proved", "4 " if scope == "last" else "8 ")
        for i, k in ((0, 1), (3, 1)):
            wrong = m.copy()
            wrong[i, k, 1] += 1
            found = Judge(Network(wrong), known).judge(claim("rejects", scope=scope, eps=0.25))
            assert found.outcome == "refuted"
            assert found.why == f"sequence {i}, token {k} answers [7. 9.], not [7. 8.]"
        network = Network(m, disagrees=[5])
        with pytest.raises(Disagreement):
            Judge(network, known).judge(claim("rejects", scope=scope if scope != "last" else "token", eps=0.0))


def test_a_robust_claim_moves_the_tokens() -> None:
    network = Network(column([1, 2, 3]), lambda _, radius: np.full((3, 1, 1), radius))
    judge = Judge(network, data([1, 2, 3]))
    assert judge.judge(claim("robust", radius=0.25, eps=0.5)).outcome == "proved"
    assert judge.judge(claim("robust", radius=0.75, eps=0.5)).outcome == "undecided"
    assert judge.judge(claim("memorizes", eps=0.0)).outcome == "proved"
    assert network.asked == [(0.25, "real"), (0.75, "real"), (0.0, "real")]


def test_coordinates_are_computed_once_for_each_arithmetic_radius_and_scope() -> None:
    seen = []
    network = Network(np.arange(6.0).reshape(3, 2, 1))
    d = data(np.arange(6), lengths=[2, 1, 2], tokens=np.zeros((3, 2, 1), np.float32))
    judge = Judge(network, d, lambda done, of: seen.append((done, of)))
    for A, scope, radius in product((REAL, FLOAT32), ("token", "sequence", "last"), (0.0, 0.5)):
        first, again = judge.samples(A, scope, radius), judge.samples(A, scope, radius)
        assert first is again
        if scope == "last":
            assert (first.i.tolist(), first.k.tolist(), first.t.m.ravel().tolist()) == (
                [0, 1, 2],
                [1, 0, 1],
                [1, 2, 5],
            )
        else:
            assert (first.i.tolist(), first.k.tolist()) == ([0, 0, 1, 2, 2], [0, 1, 0, 0, 1])
            assert first.t.m.ravel().tolist() == [0, 1, 2, 4, 5]
    assert len(network.asked) == 8
    assert seen[:2] == [(1, 3), (3, 3)]  # the short one first
    assert judge.has(FLOAT32, "token")
    assert judge.has(REAL, "last")
    assert not judge.has(FLOAT64, "token")
    fresh = Judge(network, d)
    fresh.samples(REAL, "token", 0.5)
    assert not fresh.has(REAL, "token")
    fresh.samples(REAL, "last")
    assert not fresh.has(REAL, "token")
    assert fresh.has(REAL, "last")


def test_ways_that_contradict_each_other_are_refused() -> None:
    d = data(np.arange(6), lengths=[2, 1, 3], tokens=np.zeros((3, 3, 1), np.float32))
    m = np.array([[0, 1, 9], [2, 9, 9], [3, 4, 5]], float)[..., None]
    for row, where in ((0, "sequence 0, token 0"), (2, "sequence 1, token 0"), (5, "sequence 2, token 2")):
        with pytest.raises(Disagreement, match=f"disagree at {where}"):
            Judge(Network(m, disagrees=[row, 1]), d).judge(claim())
    assert Disagreement.gate == "agreement"
    assert issubclass(Disagreement, OSError)
    network = Network(m)
    judge = Judge(network, d)
    judge.judge(claim(arith="float32"))
    judge.judge(claim(arith="float32", eps=1.0))
    assert network.readout.compared == ["float32"]
    judge.judge(claim("robust", arith="float32", radius=0.5, eps=1.0))
    judge.judge(claim(scope="token", arith="float64"))
    assert network.readout.compared == ["float32", "float32", "float64"]
    undecided = Network(m, 0.5, disagrees=[0])
    with pytest.raises(Disagreement):
        Judge(undecided, d).judge(claim())


def test_a_part_of_the_readout_that_was_compared_does_not_vouch_for_all_of_it() -> None:
    """Nor the other way round; no two claims of one certificate ask for both today."""
    network, body = Network(np.zeros((1, 2, 1)), disagrees=[0]), Readout()
    judge = Judge(network, data(np.zeros(2), n=2))
    samples = judge.samples(REAL, "token")
    judge.compare_ways(samples, REAL, body)
    judge.compare_ways(samples, REAL, body)
    assert body.compared == ["real"]
    with pytest.raises(Disagreement):
        judge.compare_ways(samples, REAL)
    other = Judge(Network(np.zeros((1, 2, 1))), data(np.zeros(2), n=2))
    samples = other.samples(REAL, "token")
    other.compare_ways(samples, REAL)
    with pytest.raises(Disagreement):
        other.compare_ways(samples, REAL, Readout([0]))


def test_ways_that_contradict_each_other_before_attention_are_refused() -> None:
    """Some sequences are compared, the first and the last among them, and all of a few."""
    d = data(np.zeros(200), n=2)
    network = Network(np.zeros((100, 2, 1)))
    network.feedforward = Before()
    Judge(network, d).judge(claim(arith="float32"))
    (seen,) = network.feedforward.seen
    assert len(seen) == 2 * judging.COMPARED == 128
    assert (seen[:2], seen[-2:]) == ([0, 1], [198, 199])
    network.feedforward.contradicted = [127, 3]
    with pytest.raises(Disagreement, match="disagree before attention at sequence 99, token 1"):
        Judge(network, d).judge(claim())
    few = Network(np.zeros((3, 2, 1)))
    few.feedforward = Before()
    Judge(few, data(np.zeros(6), n=2)).judge(claim())
    assert few.feedforward.seen == [[0, 1, 2, 3, 4, 5]]
    few.feedforward.contradicted = [2]
    with pytest.raises(Disagreement, match="sequence 1, token 0"):
        Judge(few, data(np.zeros(6), n=2)).judge(claim(eps=0.5))


def test_the_part_of_a_readout_that_was_searched_is_compared() -> None:
    judge = Judge(Network(np.zeros((3, 2, 1))), data(np.zeros(6), n=2))
    samples, part = judge.samples(FLOAT32, "token"), Readout(disagrees=[3])
    with pytest.raises(Disagreement, match="sequence 1, token 1"):
        judge.compare_ways(samples, FLOAT32, part)
    judge.compare_ways(samples, FLOAT32)


def test_ways_are_not_compared_where_nobody_asks() -> None:
    d = data([1, 2])
    judge = Judge(Network(column([1, 2]), disagrees=[0]), d, compare=False)
    assert judge.judge(claim()).outcome == "proved"
    with pytest.raises(Disagreement):
        Judge(Network(column([1, 2]), disagrees=[0]), d).judge(claim())


def test_coordinates_and_answers_are_counted_before_they_are_computed(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(judging, "spend_on_coordinates", lambda *given: asked.append(given))
    network, d = Network(np.zeros((4, 3, 2))), data(np.zeros((12, 2)), n=3)
    judge = Judge(network, d)
    with counted() as lines:
        judge.judge(claim(arith="float32"))
    assert [(net, id(tokens), id(lengths), A.name, last) for net, tokens, lengths, A, last in asked] == [
        (network, id(d.tokens), id(d.lengths), "float32", False)
    ]
    assert lines == [("12 answers", 12 * (1.0 + 40 * 2), 0, 0)]
    judge.samples(FLOAT64, "last")
    assert asked[1][3:] == (FLOAT64, True)


def test_one_process_judges_unless_more_are_asked_for() -> None:
    assert Judge(Network(column([1])), data([1])).jobs == 1


class Before(Readout):
    """Notes the tokens that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[float]] = []

    def disagrees(self, x: Ball, A) -> np.ndarray:
        self.seen.append(x.m.ravel().tolist())
        return super().disagrees(x, A)


def test_a_network_may_know_nothing_beforehand() -> None:
    """Then every part is computed of its own sequences."""

    class Unknown(Network):
        def known(self, tokens, radius, A, share):
            super().known(tokens, radius, A, share)

        def coordinates(self, tokens, lengths, radius, A, last, known):
            assert known is None
            at = tokens[:, 0, 0].astype(int)
            return super().coordinates(tokens, lengths, radius, A, last, Known(self.m[at], 0 * self.m[at]))

    network = Unknown(column(np.arange(7)))
    assert Judge(network, data(np.arange(7))).judge(claim()).outcome == "proved"


@pytest.mark.parametrize("jobs", [1, 2, 3, 99])
def test_processes_say_what_one_says(monkeypatch, jobs) -> None:
    """Of every sample, whichever process looked at it; a refutation goes before what is open."""
    monkeypatch.setattr(processes, "LEAST", 1)
    lengths, tokens = [2, 1, 2, 2, 1], np.zeros((5, 2, 1), np.float32)
    m = np.array([[0, 1], [2, -9], [3, 4], [5, 6], [7, -9]], float)[..., None]
    d, seen = data(np.arange(8), lengths=lengths, tokens=tokens), []
    judge = Judge(Network(m), d, lambda *told: seen.append(told), jobs)
    samples = judge.samples(REAL, "token")
    assert samples.t.m.ravel().tolist() == list(range(8))
    assert seen[-1] == (5, 5)
    assert judge.judge(claim()).why == "8 answers, largest error 0"
    r = np.zeros_like(m)
    r[0, 1], r[3, 0] = 0.5, 0.75
    found = Judge(Network(m, r), d, jobs=jobs).judge(claim(eps=1.0))
    assert found.outcome == "proved"
    assert 0.75 <= found.value < 0.7501
    found = Judge(Network(m, r), d, jobs=jobs).judge(claim(eps=0.25))
    assert found.outcome == "undecided"
    assert found.why.startswith("sequence 0, token 1:")
    wrong = m.copy()
    wrong[4, 0] = 9
    found = Judge(Network(wrong, r), d, jobs=jobs).judge(claim(eps=0.25))
    assert found.why == "sequence 4, token 0 answers [9.], not [7.]"
    unknown = Data(tokens, np.full(5, 2), np.array([[7.0]]), np.zeros(0, np.int64))
    known = data(np.zeros(3), strangers=unknown)
    found = Judge(Network(np.full((5, 2, 1), 7.0)), known, jobs=jobs).judge(claim("rejects"))
    assert found.why == "10 answers, largest error 0"


def test_sequences_of_like_lengths_go_together_and_come_back_in_order() -> None:
    """Hardly any padding is looked at: of lengths 9, 1, 2, 8, 9 those that are nearly alike are together."""
    lengths = np.array([9, 1, 2, 8, 9])
    assert [np.arange(5)[rows].tolist() for rows in judging.of_like_lengths(lengths)] == [[1], [2], [0, 3, 4]]
    assert judging.of_like_lengths(np.array([7, 7])) == [slice(None)]
    m = np.full((5, 9, 1), -9.0)
    m[np.arange(9) < lengths[:, None]] = np.arange(29)[:, None]
    looked = []

    class Watched(Network):
        def coordinates(self, tokens, *rest):
            looked.append(tokens.shape[:2])
            return super().coordinates(tokens, *rest)

    tokens = np.arange(5)[:, None, None] + np.zeros((5, 9, 1), np.float32)
    told: list = []
    judge = Judge(Watched(m), data(np.arange(29), lengths=lengths, tokens=tokens), lambda *x: told.append(x))
    assert judge.samples(REAL, "token").t.m.ravel().tolist() == list(range(29))
    assert looked == [(1, 1), (1, 2), (3, 9)]
    assert told == [(1, 5), (2, 5), (4, 5), (5, 5)]


def test_what_is_proved_is_not_proved_again() -> None:
    """Not for the same claim, nor for the same in real arithmetic; but for any other."""
    network = Network(column([1, 2]))
    judge = Judge(network, data([1, 2]))
    first = judge.judge(claim(arith="float32"))
    assert judge.judge(claim(arith="float32")) is first
    real = judge.judge(claim(arith="real"))
    assert real.outcome == "proved"
    assert real.why == f"{first.why}, as in float32"
    assert network.asked == [(0.0, "float32")]
    for other in (claim(arith="float64"), claim(arith="real", eps=0.5), claim("robust", radius=0.0, eps=0.0)):
        before = len(network.readout.asked)
        assert judge.judge(other).outcome == "proved"
        assert len(network.readout.asked) == before + 1, other


def test_what_is_not_proved_implies_nothing() -> None:
    """In float32 the answer is open, in real arithmetic it is known; and the other way round."""
    for sure in ("real", "float32"):
        network = Network(column([1]), lambda A, _, sure=sure: np.full((1, 1, 1), 0.0 if A.name == sure else 0.5))
        judge = Judge(network, data([1]))
        assert {a: judge.judge(claim(arith=a)).outcome for a in ("float32", "real")} == {
            "float32": "proved" if sure == "float32" else "undecided",
            "real": "proved",  # by itself, or as in float32
        }
    judge = Judge(Network(column([1]), lambda A, _: np.full((1, 1, 1), 0.0 if A is REAL else 0.5)), data([1]))
    assert judge.judge(claim(arith="real")).outcome == "proved"
    assert judge.judge(claim(arith="float32")).outcome == "undecided"
    assert judge.judge(claim(arith="float64")).outcome == "undecided"


def refused(judge: Judge, given: Claim, gate: str) -> None:
    with pytest.raises(Malformed) as error:
        judge.judge(given)
    assert error.value.gate == gate


def test_a_claim_fits_the_network_and_the_data() -> None:
    single, double = (data([1, 2], tokens=np.zeros((2, 1, 1), t)) for t in (np.float32, np.float64))
    ids = data([1, 2], tokens=np.zeros((2, 1), np.int64))
    network, wide = Network(column([1, 2])), Network(column([1, 2]))
    wide.dtype = np.dtype("float64")
    for d in (single, ids):
        assert Judge(network, d).judge(claim(arith="float32")).outcome == "proved"
        refused(Judge(wide, d), claim(arith="float32"), "claim")
    refused(Judge(network, double), claim(arith="float32"), "claim")
    for net, d, arith in product((network, wide), (single, double, ids), ("real", "float64")):
        assert Judge(net, d).judge(claim(arith=arith)).outcome == "proved"
    robust = claim("robust", radius=0.0, eps=0.0)
    refused(Judge(network, ids), robust, "claim")
    assert Judge(network, single).judge(robust).outcome == "proved"
    refused(Judge(network, single), claim("rejects", eps=0.0), "claim")


@pytest.mark.parametrize(("arith", "number", "none"), [("float16", 2047.0, 2049.0), ("bfloat16", 255.0, 257.0)])
def test_sixteen_bits_are_claimed_of_numbers_of_the_format(arith, number, none) -> None:
    """Every weight, every token that is a number, and every stranger's; ids are not numbers."""

    def judge(weights, tokens, strangers=None) -> Judge:
        network = Network(column([1, 2]))
        network.tensors = {"first": np.ones(2), "second": np.asarray(weights, float)}
        others = None if strangers is None else data([1, 2], tokens=strangers)
        return Judge(network, data([1, 2], tokens=tokens, strangers=others))

    good, bad = (np.array([1, x], np.float32).reshape(2, 1, 1) for x in (number, none))
    ids = np.array([[1], [int(none)]])
    for given in (judge([1, number], good), judge([1, number], ids), judge([1, number], good, good)):
        assert given.judge(claim(arith=arith)).outcome == "proved"
    for given in (judge([1, none], good), judge([1, number], bad), judge([1, number], good, bad)):
        refused(given, claim(arith=arith), "claim")
        assert given.judge(claim(arith="float32")).outcome == "proved"
    double = np.array([1, 1 + 2.0**-40]).reshape(2, 1, 1)
    refused(judge([1, number], double), claim(arith=arith), "claim")
    assert judge([1, number], good.astype(np.float64)).judge(claim(arith=arith)).outcome == "proved"


def test_there_are_as_many_answers_as_the_scope_needs() -> None:
    m = np.zeros((3, 2, 1))
    tokens = np.zeros((3, 2, 1), np.float32)
    for which, scope, fits in (
        (5, "token", True),
        (6, "token", False),
        (3, "token", False),
        (3, "sequence", True),
        (3, "last", True),
        (5, "sequence", False),
        (5, "last", False),
    ):
        d = data([0], which=np.zeros(which, np.int64), lengths=[2, 1, 2], tokens=tokens)
        if fits:
            assert Judge(Network(m), d).judge(claim(scope=scope)).outcome == "proved"
        else:
            refused(Judge(Network(m), d), claim(scope=scope), "data")


def test_arithmetics_are_judged_by_their_own_balls() -> None:
    for name, A in ARITHMETICS.items():
        network = Network(column([1, 2]))
        Judge(network, data([1, 2])).judge(claim(arith=name))
        assert network.asked == [(0.0, A.name)]
        assert network.readout.asked == [(2, A.name)]
        assert network.readout.compared == [A.name]


def test_exact_answers_have_no_error() -> None:
    assert Judge(Network(column([0.1, -7])), data([0.1, -7])).judge(claim()).value == 0
    mixed = Judge(Network(column([1, 2, 3]), column([0.125, 0.25, 0])), data([1, 2, 3])).judge(claim(eps=0.5))
    assert 0.25 <= mixed.value < 0.2501


def test_no_verdict_says_more_than_exact_rationals() -> None:
    """Errors and radii within a few last bits of eps, in two components."""
    rng, seen = np.random.default_rng(1), dict.fromkeys(("proved", "refuted", "undecided"), 0)
    for _ in range(3000):
        eps = float(rng.choice([0.0, 2.0**-3, 0.3, 1.7]))
        wanted = rng.choice([0.0, 1.0, 0.1, -3.7], 2)
        error = eps * (1 + rng.integers(-4, 5, 2) * 2.0 ** -rng.integers(38, 53)) * rng.choice([0, 0.5, 1, 1, 1])
        m = wanted + error * rng.choice([-1, 1], 2)
        r = np.abs(eps - np.abs(error)) * (1 + rng.integers(-3, 4) * 2.0**-50) * rng.choice([0, 1, 0.5])
        found = Judge(Network(m[None, None], r), data([wanted])).judge(claim(eps=eps))
        off = [abs(Fraction(a) - Fraction(b)) for a, b in zip(m.tolist(), wanted.tolist(), strict=True)]
        spread = [Fraction(x) for x in np.broadcast_to(r, 2).tolist()]
        if found.outcome == "proved":
            assert all(a + b <= Fraction(eps) for a, b in zip(off, spread, strict=True))
            assert all(a + b <= Fraction(found.value) for a, b in zip(off, spread, strict=True))
            assert found.value <= eps
        if found.outcome == "refuted":
            assert any(a - b > Fraction(eps) for a, b in zip(off, spread, strict=True))
        seen[found.outcome] += 1
    assert min(seen.values()) > 100, seen
