"""Every refusal names the statement, what it needs, what was found and where, and a remedy that works."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import DataError, OnelayerError, OptionError, plan

memorize = partial(onelayer.memorize, certify=False)

u, v, w = [1.0, 2.0], [3.0, 5.0], [-2.0, 0.5]
rng = np.random.default_rng(5)
X, Y = rng.standard_normal((4, 3, 2)), rng.integers(0, 9, (4, 3))


def with_value(value: float) -> np.ndarray:
    changed = X.copy()
    changed[2, 1, 0] = value
    return changed


CASES = {
    "equal contexts with different answers": (
        [[u, v], [v, w], [u, v]],
        [[1, 2], [3, 4], [1, 5]],
        {},
        "[equivariance] needs equal contexts to have equal answers; 1 context has more than one answer, the first: "
        "sequence 0, token 1 and sequence 2, token 1 are the same token in the same context, with answers 2 and 5. "
        'Correct or drop one of the two, or choose which answers to keep: on_conflict="vote" (also "first" or '
        '"drop").',
    ),
    "a permuted sequence with other answers": (
        [[u, v], [v, u]],
        [[1, 2], [3, 1]],
        {},
        "[equivariance] needs equal contexts to have equal answers; 1 context has more than one answer, the first: "
        "sequence 0, token 1 and sequence 1, token 0 are the same token in the same context, only in another "
        "order, with answers 2 and 3. Pass positions=True if the order matters (no conflict is left then), give "
        "them equal answers, or choose",
    ),
    "a repeated token with two answers": (
        [[u, v, u]],
        [["a", "b", "c"]],
        {},
        "[equivariance] needs equal contexts to have equal answers; 1 context has more than one answer, the first: "
        "sequence 0 has tokens 0 and 2 both equal to (1, 2) with answers 'a' and 'c'. Pass positions=True if the "
        "order matters (no conflict is left then), give equal tokens equal answers, or choose",
    ),
    "a repeated sequence with two answers": (
        [[u, v], [v, u]],
        [1, 2],
        {},
        "[equivariance] needs equal contexts to have equal answers; 1 context has more than one answer, the first: "
        "sequence 0 and sequence 1 hold the same tokens, only in another order, with answers 1 and 2.",
    ),
    "proportional multisets": (
        [[u, v], [u, u, v, v]],
        [[1, 2], [3, 3, 4, 4]],
        {},
        "[empirical_measure] needs multisets that are not proportional; 2 contexts have more than one answer, the "
        "first: sequence 0, token 0 and sequence 1, token 0 have different answers, but their sequences hold the "
        "same tokens in the same proportions (2 and 4 tokens), and every softmax average over them is equal. Pass "
        "positions=True if the order matters (no conflict is left then), give them equal answers, or choose",
    ),
    "a zero token where the head has no biases": (
        [[[0.0], [1.0], [-1.0]], [[0.0], [2.0], [-2.0]]],
        [[1, 2, 3], [4, 5, 6]],
        {"mapping": "temperature"},
        "[zero_token] needs tokens other than zero, or different means, since a bias-free head averages uniformly "
        "at zero; sequence 0, token 0 and sequence 1, token 0 are zero, their sequences have the same mean, and "
        'their answers differ. Use mapping="shared_query" (a query bias) or positions=True.',
    ),
    "NaN": (with_value(np.nan), Y, {}, "[data] needs finite numbers; sequence 2, token 1, component 0 is nan."),
    "infinity": (with_value(-np.inf), Y, {}, "sequence 2, token 1, component 0 is -inf. Drop or impute it"),
    "an infinite answer": (
        X,
        np.where(np.arange(12).reshape(4, 3) == 4, np.inf, 1.0),
        {},
        "[data] needs finite answers; that of sequence 1, token 1",
    ),
    "a bare vector": (X[0, 0], Y, {}, "[data] needs X of shape (N, n, d), or (N, n); X has shape (2,)."),
    "answers for other sequences": (X, Y[:3], {}, "[data] needs answers for 4 sequences; Y has shape (3, 3)."),
    "answers of no shape": (
        X,
        Y[:, :2],
        {},
        "needs answers of shape (4, 3) or (4,), with one more axis for vectors",
    ),
    "no sequences": (np.empty((0, 3, 2)), Y, {}, "[data] needs at least one sequence of one token; X has shape"),
    "an empty list": ([], [], {}, "[data] needs at least one sequence; the list of sequences is empty."),
    "an empty sequence": ([[u], []], [[1], []], {}, "sequence 1"),
    "tokens of different widths": ([[u], [[1.0]]], [[1], [2]], {}, "[data] needs sequences of tokens of one width"),
    "words and numbers together": ([["a", 1]], [[1, 2]], {}, "sequence 0 mixes words and numbers"),
    "a length of zero": (
        X,
        Y,
        {"lengths": [3, 0, 1, 2]},
        "[data] needs lengths between 1 and 3; sequence 1 has length 0",
    ),
    "a length too long": (X, Y, {"lengths": [3, 2, 1, 4]}, "sequence 3 has length 4. Correct the length"),
    "lengths of another shape": (
        X,
        Y,
        {"lengths": [3, 2]},
        "needs one whole number per sequence in `lengths`, shape (4,)",
    ),
    "too few answers in a sequence": ([[u, v], [w]], [[1, 2], [3, 4]], {}, "sequence 1 has 1 tokens and 2 answers"),
    "magnitudes from one end to the other": (
        np.where(with_value(1e300) == 1e300, 1e300, 1e-300 * X),
        Y,
        {},
        "where they reach the ends of float64",
    ),
    "answers that overflow float32": (
        X,
        Y * 1e300,
        {"dtype": "float32"},
        "[memorize] needs answers that float32 can hold",
    ),
    "sequences closer than float resolution": (
        [[[1.0, 1.0], [3.0, -2.0]], [[1.0, np.nextafter(1.0, 2)], [3.0, -2.0]]],
        [[1, 2], [3, 4]],
        {"mapping": "temperature"},
        "[temperature] needs contexts that float64 can tell apart; after",
    ),
    "tokens that float32 merges": (
        [[[1.0], [2.0]], [[1.0 + 1e-9], [2.0]]],
        [[1, 2], [3, 4]],
        {"dtype": "float32"},
        "[memorize] needs sequences that float32 can tell apart; sequence 0, token 0 and sequence 1, token 0 have "
        'different answers and differ only by less than its resolution. Use dtype="float64".',
    ),
    "an unknown mapping": (X, Y, {"mapping": "magic"}, "[memorize] needs a mapping among auto, temperature"),
    "an unknown readout": (X, Y, {"readout": "magic"}, "[memorize] needs a readout among auto, plateaus"),
    "a rank of zero": (X, Y, {"rank": 0}, "[memorize] needs a whole rank of at least 1 and at most 64; rank=0"),
    "a rank that a line cannot read": (X, Y, {"rank": 2, "readout": "plateaus"}, 'Use readout="boxes".'),
    "half precision": (X, Y, {"dtype": "float16"}, "[memorize] needs tokens that are numbers of float16"),
    "averages with positions": (
        X,
        Y,
        {"mapping": "averages", "positions": True},
        "[averages] needs sequences without positions",
    ),
    "many proportional multisets": (
        [["a"] * k for k in range(1, 101)],
        [0] * 80 + [1] * 20,
        {"rank": 1},
        "[empirical_measure] needs multisets that are not proportional; 1 context has more than one answer, the "
        "first: sequence 0 and sequence 80 have different",
    ),
    "a proportional pair behind a near pair": (
        [[[100.0]], [[1.0]], [[1 + 2**-52]], [[7.0], [8.0]], [[7.0], [8.0], [7.0], [8.0]]],
        list(range(5)),
        {},
        "[empirical_measure]",
    ),
    "whole numbers too long": (
        np.full((2, 2, 1), 2**53 + 1),
        [1, 2],
        {},
        "token components that float64 holds exactly",
    ),
    "a masked array": (np.ma.masked_array(X, X > 1), Y, {}, "[data] needs arrays without a mask"),
    "a sequence that is a word": (["ab", "cd"], [1, 2], {}, "A sequence of one token is written [token]"),
    "words in one sequence, numbers in another": (
        [[1, 2], ["1", "2"]],
        [1, 2],
        {},
        "[data] needs tokens of one type",
    ),
    "vectors of different widths": ([[[1.0, 2.0], [3.0]]], [1], {}, "or of vectors of one width; sequence 0 is"),
    "no answers": (X, None, {}, "[data] needs answers; Y is None"),
    "a bare answer": (X, 5, {}, "[data] needs answers in a list or an array"),
    "answers that vanish in float32": (
        X,
        Y * 1e-60 + 1e-60,
        {"dtype": "float32"},
        "[memorize] needs answers that float32",
    ),
    "a negative seed": (X, Y, {"seed": -1}, "[memorize] needs a whole seed of at least 0"),
    "half a rank": (X, Y, {"rank": 1.5}, "[memorize] needs a whole rank of at least 1"),
    "an unknown scope": (X, Y, {"scope": "all"}, "[memorize] needs scope"),
    "an unknown dtype": (X, Y, {"dtype": "foo"}, "[memorize] needs dtype float32, float64, float16 or bfloat16"),
    "boxes of rank 1": (X, Y, {"rank": 1, "readout": "boxes"}, "[boxes] needs a rank of at least 2"),
    "complex answers": (X, Y + 1j, {}, "[data] needs answers that are classes, reals or vectors of reals"),
    "unhashable answers": (X[:1, :2], np.array([[{}, {}]], dtype=object), {}, "[data] needs hashable classes"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_by_name(case: str) -> None:
    X, Y, options, words = CASES[case]
    with pytest.raises(OnelayerError, match=re.escape(words)) as refused:
        memorize(X, Y, **options)
    assert all((refused.value.subject, refused.value.needs, refused.value.found, refused.value.remedy))


@pytest.mark.parametrize("case", CASES)
def test_a_plan_says_the_same(case: str) -> None:
    X, Y, options, words = CASES[case]
    if (kind := type(refusal(X, Y, options))) in (DataError, OptionError):  # malformed: there is nothing to plan
        with pytest.raises(kind, match=re.escape(words)):
            plan(X, Y, **options)
        return
    result = plan(X, Y, **options)
    assert not result.possible
    assert words in result.obstacle
    assert str(result).startswith("impossible: ")


@pytest.mark.parametrize(
    "case",
    [
        "a permuted sequence with other answers",
        "a repeated token with two answers",
        "proportional multisets",
        "a zero token where the head has no biases",
    ],
)
def test_positions_are_the_way_out(case: str) -> None:
    X, Y, options, _ = CASES[case]
    assert listed(memorize(X, Y, positions=True, **options).predict(X)) == Y


def test_the_other_remedies_work() -> None:
    X, Y, options, _ = CASES["a zero token where the head has no biases"]
    assert listed(memorize(X, Y, mapping="shared_query").predict(X)) == Y
    X, Y, options, _ = CASES["tokens that float32 merges"]
    assert listed(memorize(X, Y, dtype="float64").predict(X)) == Y
    assert options


def test_equal_contexts_with_equal_answers_are_welcome() -> None:
    X = [[u, v], [v, u], [u, v], [u, u, v, v]]
    Y = [[1, 2], [2, 1], [1, 2], [1, 1, 2, 2]]
    assert memorize(X, Y).predict(X) == Y


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda m: m.predict(np.zeros((1, 2, 5))), DataError, "as the model was built for: 2; X has tokens of 5"),
        (lambda m: m.predict([["a", "b"]]), DataError, "real numbers as token components"),
        (lambda m: m.predict(X, path="fast"), OptionError, "enough plateaus"),
    ],
)
def test_questions_the_model_cannot_take(ask, kind, words) -> None:
    with pytest.raises(kind, match=words):
        ask(memorize(X, Y))


def test_unknown_tokens_and_places_are_named() -> None:
    model = memorize([["a", "b"], ["b", "c"]], [[1, 2], [3, 4]], positions=True)
    with pytest.raises(DataError, match=r"sequence 1, token 0 is 'z', which is not in it"):
        model.predict([["a", "b"], ["z", "b"]])
    with pytest.raises(DataError, match="at most 2 tokens, as memorised"):
        model.predict([["a", "b", "c"]])


def refusal(X, Y, options) -> OnelayerError:
    with pytest.raises(OnelayerError) as refused:
        memorize(X, Y, **options)
    return refused.value


def listed(answers):
    return answers.tolist() if hasattr(answers, "tolist") else answers
