"""The scikit-learn face: its own checks really run, and sequences of every form travel through its machinery."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections import Counter

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.utils.estimator_checks import check_estimator

import onelayer
from onelayer.errors import DataError, HypothesisError, MissingExtraError, OptionError
from onelayer.sklearn import OneLayerMemorizer

RNG = np.random.default_rng(0)
#: Sequences of one to five tokens of width 2, and one label and one label per token for each.
RAGGED = [RNG.normal(size=(k, 2)) for k in (5, *RNG.integers(1, 6, 29))]
LENGTHS = np.array([len(row) for row in RAGGED])
LABELS = RNG.integers(0, 3, len(RAGGED))
TOKEN_LABELS = [RNG.integers(0, 4, len(row)) for row in RAGGED]


def filled(value: float) -> np.ndarray:
    """RAGGED as one array, with this value in the padding."""
    X = np.full((len(RAGGED), 5, 2), value)
    for i, row in enumerate(RAGGED):
        X[i, : len(row)] = row
    return X


# scikit-learn's own checks


def run_checks(estimator: OneLayerMemorizer, expected: dict[str, str] | None = None) -> Counter[str]:
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    return Counter(r["status"] for r in results)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"rank": 2}], ids=str)
def test_passes_the_checks_of_scikit_learn_and_not_vacuously(task: str, options: dict) -> None:
    counts = run_checks(OneLayerMemorizer(task, **options))
    assert counts["passed"] >= 45
    assert set(counts) <= {"passed", "skipped"}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_passes_the_checks_with_padding(task: str) -> None:
    # An estimator that allows NaN is given NaN at random places by this one check (twice: also memory-mapped).
    # Here NaN means "no token", which only the end of a sequence can say; test_pickles covers the rest.
    reason = "NaN inside a sequence is refused by design"
    counts = run_checks(OneLayerMemorizer(task, padding="nan"), {"check_estimators_pickle": reason})
    assert counts["passed"] >= 45
    assert counts["xfail"] == 2
    assert counts["failed"] == 0


def test_is_a_classifier_or_a_regressor_by_its_task() -> None:
    assert is_classifier(OneLayerMemorizer())
    assert is_regressor(OneLayerMemorizer("regression"))
    assert is_regressor(OneLayerMemorizer().set_params(task="regression"))


# What is stored comes back


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_memorises_tables_of_real_data(load) -> None:
    X, y = load(return_X_y=True)
    model = OneLayerMemorizer(random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.n_features_in_ == X.shape[1]
    assert isinstance(model.model_, onelayer.Model)


def test_memorises_digits_as_eight_rows_of_eight_pixels() -> None:
    digits = load_digits()
    model = OneLayerMemorizer(random_state=0).fit(digits.images, digits.target)
    np.testing.assert_array_equal(model.predict(digits.images), digits.target)
    assert model.model_.transformer.token_width == 8


def test_memorises_regression_targets_exactly() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = OneLayerMemorizer("regression", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.score(X, y) == 1.0


def test_memorises_vectors() -> None:
    y = RNG.normal(size=(len(RAGGED), 3))
    model = OneLayerMemorizer("regression", random_state=0).fit(RAGGED, y)
    np.testing.assert_array_equal(model.predict(RAGGED), y)
    assert not hasattr(model, "classes_")


def test_iris_has_a_repeated_flower_and_a_contradiction_about_it_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    assert (X[101] == X[142]).all()
    assert y[101] == y[142]
    assert OneLayerMemorizer(random_state=0).fit(X, names).score(X, names) == 1.0
    names[142] = "setosa"
    with pytest.raises(HypothesisError, match=r"sequence 101 and sequence 142 .* 'virginica' and 'setosa'"):
        OneLayerMemorizer().fit(X, names)
    # Only that pair is at fault.
    kept = np.delete(np.arange(150), 142)
    assert OneLayerMemorizer(random_state=0).fit(X[kept], names[kept]).score(X[kept], names[kept]) == 1.0


def test_order_matters_by_default_and_can_be_ignored() -> None:
    X = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    assert OneLayerMemorizer().fit(X, [0, 1]).predict(X).tolist() == [0, 1]
    with pytest.raises(HypothesisError, match="only in another order"):
        OneLayerMemorizer(positions=False).fit(X, [0, 1])
    alike = OneLayerMemorizer(positions=False).fit(X, [7, 7])
    assert alike.predict([[2.0, 3.0, 1.0]]).tolist() == [7]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a", "c"]),
        np.array(["b", "a", "c"], dtype=object),
        np.array([2.0, 1.0, 3.0]),
        np.array([True, False, True]),
        np.array([300, 100, 200], dtype=np.int16),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels: np.ndarray) -> None:
    X = np.array([[1.0, 2.0], [2.0, 3.0], [5.0, 1.0]])
    model = OneLayerMemorizer(random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    assert model.predict(X).dtype == model.classes_.dtype == labels.dtype
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert set(model.model_.form.classes) == set(labels.tolist())


def test_is_what_memorize_gives_for_the_same_seed() -> None:
    X = filled(0.0)
    ours = OneLayerMemorizer(random_state=3).fit(X, LABELS, lengths=LENGTHS).model_
    theirs = onelayer.memorize(X, LABELS, lengths=LENGTHS, positions=True, seed=3, logits=True)
    assert_same_weights(ours, theirs)


# Probabilities, defaults, words, files and proofs


def test_probabilities_are_in_the_order_of_the_classes() -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array(["b", "a", "c", "a", "b", "c"])
    model = OneLayerMemorizer().fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (6, 3)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], y)
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12
    assert p.max(axis=1).min() > 1 - 1e-12
    assert not hasattr(OneLayerMemorizer("regression"), "predict_proba")
    np.testing.assert_array_equal(OneLayerMemorizer().fit(X, ["a"] * 6).predict_proba(X), np.ones((6, 1)))


def test_probabilities_per_token() -> None:
    X, y = np.arange(24.0).reshape(4, 3, 2), np.arange(12).reshape(4, 3) % 5
    p = OneLayerMemorizer().fit(X, y).predict_proba(X)
    assert p.shape == (4, 3, 5)
    np.testing.assert_array_equal(p.argmax(axis=2), y)


def test_rows_that_were_not_seen_get_the_default() -> None:
    X = np.arange(40.0).reshape(10, 4)
    model = OneLayerMemorizer(default="unknown").fit(X, ["a", "b"] * 5)
    assert model.predict(X).tolist() == ["a", "b"] * 5
    assert model.predict(X + 1000).tolist() == ["unknown"] * 10
    assert model.classes_.tolist() == ["a", "b", "unknown"]
    assert model.predict_proba(X + 1000).argmax(axis=1).tolist() == [2] * 10
    number = OneLayerMemorizer("regression", default=-1.0).fit(X, np.arange(10.0))
    assert number.predict(X + 1000).tolist() == [-1.0] * 10


def test_words_are_tokens() -> None:
    words, y = [["river", "bank"], ["bank", "robber"], ["bank"]], ["shore", "crime", "?"]
    model = OneLayerMemorizer(words=True, default="?").fit(words, y)
    assert model.predict(words).tolist() == y
    assert model.predict([["never", "seen"]]).tolist() == ["?"]
    assert model.score(words, y) == 1.0
    ids = np.array([[3, 1], [1, 3], [2, 2]])
    assert OneLayerMemorizer(words=True).fit(ids, [0, 1, 2]).predict(ids).tolist() == [0, 1, 2]


def test_is_proved_and_saved(tmp_path) -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 3
    model = OneLayerMemorizer(prove=False).fit(X, y)
    assert not model.model_.proved
    assert model.certify(X, y).model_.proved
    assert onelayer.load(model.save(tmp_path / "m")) == model.model_
    each = OneLayerMemorizer(prove=False).fit(X.reshape(3, 2, 2), y.reshape(3, 2))
    assert each.certify(X.reshape(3, 2, 2), y.reshape(3, 2)).model_.proved


# Sequences of different lengths


def assert_same_weights(a: onelayer.Model, b: onelayer.Model) -> None:
    for (name, x), (other, y) in zip(a.transformer.tensors(), b.transformer.tensors(), strict=True):
        assert name == other
        np.testing.assert_array_equal(x, y)


def test_lists_padding_and_lengths_say_the_same() -> None:
    by_list = OneLayerMemorizer(random_state=0).fit(RAGGED, LABELS)
    by_nan = OneLayerMemorizer(padding="nan", random_state=0).fit(filled(np.nan), LABELS)
    by_lengths = OneLayerMemorizer(random_state=0).fit(filled(np.nan), LABELS, lengths=LENGTHS)
    assert_same_weights(by_list.model_, by_nan.model_)
    assert_same_weights(by_list.model_, by_lengths.model_)
    np.testing.assert_array_equal(by_list.predict(RAGGED), LABELS)
    np.testing.assert_array_equal(by_nan.predict(filled(np.nan)), LABELS)
    np.testing.assert_array_equal(by_lengths.predict(filled(9.0), lengths=LENGTHS), LABELS)
    np.testing.assert_array_equal(by_lengths.predict(RAGGED), LABELS)
    assert by_list.n_features_in_ == by_nan.n_features_in_ == by_lengths.n_features_in_ == 5


def test_an_array_of_objects_is_a_list() -> None:
    X = np.empty(len(RAGGED), dtype=object)
    X[:] = RAGGED
    np.testing.assert_array_equal(OneLayerMemorizer().fit(X, LABELS).predict(X), LABELS)


def test_predicts_fewer_places_than_it_was_fitted_on() -> None:
    model = OneLayerMemorizer(random_state=0).fit(RAGGED, LABELS)
    short = LENGTHS <= 3
    np.testing.assert_array_equal(model.predict(filled(0.0)[short, :3], lengths=LENGTHS[short]), LABELS[short])


def test_rows_of_a_table_may_be_padded_too() -> None:
    X = np.array([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0], [2.0, np.nan, np.nan]])
    model = OneLayerMemorizer(padding="nan", random_state=0).fit(X, [0, 1, 2])
    assert model.predict(X).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("i", "k", "c", "message"),
    [
        (0, 1, slice(None), r"sequence 0, token 1, component 0 is NaN, but a later token is not"),
        (0, 2, 1, r"sequence 0, token 2, component 1 is NaN, but other components of that token are not"),
        (0, slice(None), slice(None), r"sequence 0 is NaN throughout"),
    ],
)
def test_nan_that_is_not_padding_is_refused_by_name(i: int, k, c, message: str) -> None:
    X = filled(np.nan)
    X[i, k, c] = np.nan
    with pytest.raises(DataError, match=message):
        OneLayerMemorizer(padding="nan").fit(X, LABELS)


def test_nan_is_refused_without_padding() -> None:
    with pytest.raises(ValueError, match="NaN"):
        OneLayerMemorizer().fit(filled(np.nan), LABELS)
    inside = filled(0.0)
    inside[4, 0, 1] = np.nan
    with pytest.raises(DataError, match="sequence 4, token 0, component 1 is nan"):
        OneLayerMemorizer().fit(inside, LABELS, lengths=LENGTHS)
    with pytest.raises(DataError, match="sequence 4, token 0, component 1 is nan"):
        OneLayerMemorizer(padding="nan").fit([*RAGGED[:4], inside[4, :1], *RAGGED[5:]], LABELS)


def test_infinity_is_refused_with_padding() -> None:
    X = filled(np.nan)
    X[3, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        OneLayerMemorizer(padding="nan").fit(X, LABELS)


def test_lengths_and_padding_are_not_both_given() -> None:
    with pytest.raises(OptionError, match="both were given"):
        OneLayerMemorizer(padding="nan").fit(filled(np.nan), LABELS, lengths=LENGTHS)


# Answers per token


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_answers_per_token_as_lists(task: str) -> None:
    y = TOKEN_LABELS if task == "classification" else [row + 0.5 for row in TOKEN_LABELS]
    model = OneLayerMemorizer(task, random_state=0).fit(RAGGED, y)
    predicted = model.predict(RAGGED)
    assert isinstance(predicted, list)
    for row, truth in zip(predicted, y, strict=True):
        np.testing.assert_array_equal(row, truth)
    assert model.score(RAGGED, y) == 1.0


def test_answers_per_token_as_an_array_ignore_padding() -> None:
    y = np.full((len(RAGGED), 5), np.nan)
    for i, row in enumerate(TOKEN_LABELS):
        y[i, : len(row)] = row
    model = OneLayerMemorizer("regression", padding="nan", random_state=0).fit(filled(np.nan), y)
    np.testing.assert_array_equal(model.predict(filled(np.nan)), y)
    assert model.score(filled(np.nan), y) == 1.0
    labels = np.where(np.isnan(y), -1, y).astype(int)
    classifier = OneLayerMemorizer(padding="nan", random_state=0).fit(filled(np.nan), labels)
    assert classifier.classes_.tolist() == [0, 1, 2, 3]
    assert classifier.score(filled(np.nan), labels) == 1.0
    assert set(classifier.predict(filled(np.nan))[labels < 0]) == {0}


def test_vectors_per_token() -> None:
    X, y = RNG.normal(size=(10, 3, 2)), RNG.normal(size=(10, 3, 2))
    model = OneLayerMemorizer("regression", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.score(X, y) == 1.0


def test_scope_decides_where_the_shape_leaves_it_open() -> None:
    X, y = RNG.normal(size=(10, 3, 2)), RNG.normal(size=(10, 3))
    per_token = OneLayerMemorizer("regression").fit(X, y)
    per_sequence = OneLayerMemorizer("regression", scope="sequence").fit(X, y)
    assert per_token.model_.form.scope == "token"
    assert per_sequence.model_.form.scope == "sequence"
    np.testing.assert_array_equal(per_sequence.predict(X), y)
    table = OneLayerMemorizer("regression").fit(X[:, :, 0], y)  # a table has one answer, here a vector, per row
    assert table.model_.form.scope == "sequence"
    tagged = OneLayerMemorizer(scope="token").fit(X[:, :, 0], y > 0)
    np.testing.assert_array_equal(tagged.predict(X[:, :, 0]), y > 0)


def test_a_missing_answer_is_refused_by_name() -> None:
    short = [*TOKEN_LABELS[:6], TOKEN_LABELS[6][:-1], *TOKEN_LABELS[7:]]
    with pytest.raises(DataError, match=rf"sequence 6 has {LENGTHS[6]} tokens and y\[6\] has shape"):
        OneLayerMemorizer().fit(RAGGED, short)


def test_weights_of_sequences_count_for_their_tokens() -> None:
    X, y = RNG.normal(size=(4, 3, 2)), RNG.integers(0, 2, (4, 3))
    model = OneLayerMemorizer().fit(X, y)
    wrong = y.copy()
    wrong[0] = 1 - y[0]
    assert model.score(X, wrong) == 0.75
    assert model.score(X, wrong, sample_weight=[3, 1, 1, 1]) == 0.5


# Through the machinery of scikit-learn


def test_cross_validates_arrays_lists_and_padding() -> None:
    images, target = load_digits(return_X_y=True)
    X, y = images[:300].reshape(-1, 8, 8), target[:300]
    assert cross_val_score(OneLayerMemorizer(random_state=0), X, y, cv=3).shape == (3,)
    padded = cross_val_score(OneLayerMemorizer(padding="nan", random_state=0), filled(np.nan), LABELS, cv=3)
    listed = cross_val_score(OneLayerMemorizer(positions=False, random_state=0), RAGGED, LABELS, cv=3)
    per_token = cross_val_score(OneLayerMemorizer(positions=False), RAGGED, TOKEN_LABELS, cv=KFold(3))
    for scores in (padded, listed, per_token):
        assert np.isfinite(scores).all()


def test_grid_search_over_arrays() -> None:
    X, y = RNG.normal(size=(40, 4, 2)), RNG.integers(0, 2, 40)
    search = GridSearchCV(OneLayerMemorizer(random_state=0), {"rank": [1, 2], "dtype": ["float64"]}, cv=2).fit(X, y)
    assert search.best_estimator_.score(X, y) == 1.0
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_train_test_split_of_lists() -> None:
    X, _, y, _ = train_test_split(RAGGED, LABELS, random_state=0)
    assert OneLayerMemorizer().fit(X, y).score(X, y) == 1.0


def test_lost_lengths_are_noticed() -> None:
    """Without routing scikit-learn gives metadata to fit only; reading padding as tokens would go unnoticed."""
    X = filled(0.0)
    model = OneLayerMemorizer(random_state=0).fit(X, LABELS, lengths=LENGTHS)
    with pytest.raises(DataError, match="`lengths` for arrays"):
        model.predict(X)
    with pytest.raises(DataError, match="`lengths` for arrays"):
        cross_val_score(
            OneLayerMemorizer(), X, LABELS, cv=KFold(2), params={"lengths": LENGTHS}, error_score="raise"
        )


def test_lengths_arrive_with_routing() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = OneLayerMemorizer(random_state=0).set_fit_request(lengths=True).set_score_request(lengths=True)
        scores = cross_val_score(model, filled(0.0), LABELS, cv=KFold(3), params={"lengths": LENGTHS})
    padded = OneLayerMemorizer(padding="nan", random_state=0)
    np.testing.assert_array_equal(scores, cross_val_score(padded, filled(np.nan), LABELS, cv=KFold(3)))


def test_clones_without_what_was_fitted() -> None:
    model = OneLayerMemorizer("regression", padding="nan", rank=2, random_state=5).fit(filled(np.nan), LABELS * 0.5)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(filled(np.nan))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_pickles(task: str) -> None:
    model = OneLayerMemorizer(task, padding="nan", random_state=0).fit(filled(np.nan), LABELS)
    before = model.predict(filled(np.nan))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(filled(np.nan)), before)


def test_random_state_decides_the_weights() -> None:
    def fitted(random_state) -> onelayer.Model:
        return OneLayerMemorizer(random_state=random_state).fit(RAGGED, LABELS).model_

    assert_same_weights(fitted(1), fitted(1))
    assert_same_weights(fitted(np.random.RandomState(1)), fitted(np.random.RandomState(1)))
    seeds = {fitted(seed).ledger["seed"] for seed in (1, 2, None, None)}
    assert len(seeds) == 4


def test_fits_again_as_something_else() -> None:
    model = OneLayerMemorizer().fit(filled(0.0), LABELS, lengths=LENGTHS)
    model.set_params(task="regression").fit(RAGGED, LABELS)
    assert not hasattr(model, "classes_")
    np.testing.assert_array_equal(model.predict(filled(0.0)[LENGTHS == 5]), LABELS[LENGTHS == 5])


# What it refuses


@pytest.mark.parametrize("parameter", ["task", "padding", "scope", "mapping", "readout"])
def test_unknown_parameters_are_named(parameter: str) -> None:
    with pytest.raises(OptionError, match=f"{parameter}='other'"):
        OneLayerMemorizer(**{parameter: "other"}).fit(RAGGED, LABELS)


def test_other_shapes_are_refused() -> None:
    model = OneLayerMemorizer().fit(RAGGED, LABELS)
    with pytest.raises(DataError, match="components a token as the model was built for: 2"):
        model.predict(np.zeros((1, 5, 3)))
    with pytest.raises(DataError, match="at most 5 tokens"):
        model.predict(np.zeros((1, 6, 2)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        OneLayerMemorizer().fit(RAGGED, LABELS[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(RAGGED, LABELS[:-1])


def test_a_column_of_labels_is_flattened_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning):
        model = OneLayerMemorizer().fit(RAGGED, LABELS[:, None])
    np.testing.assert_array_equal(model.predict(RAGGED), LABELS)


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "sklearn" or name.startswith("sklearn.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "onelayer.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'\[sklearn\]"'):
        importlib.import_module("onelayer.sklearn")
