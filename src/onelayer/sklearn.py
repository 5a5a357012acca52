"""The estimator face: `OneLayerMemorizer` stores sequences and answers behind scikit-learn's fit and predict."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.errors import MissingExtraError, OptionError
from onelayer.problems.conflicts import OnConflict
from onelayer.problems.files.table import refuse
from onelayer.problems.scopes import Scope, in_places
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.search.problem import Mapping, Readout

try:
    from sklearn.base import BaseEstimator
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import ClassifierTags, RegressorTags, Tags, check_array, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("OneLayerMemorizer", "sklearn", "sklearn") from error

Array = NDArray[Any]
TASKS, PADDINGS, SCOPES = ("classification", "regression"), (None, "nan"), (None, "token", "sequence")


@dataclass(frozen=True)
class _Given:
    """X as it was given: the sequences in it, and what their form says about y and about predictions."""

    sequences: Sequences
    is_table: bool  # 2-D: a row of numbers is a sequence of tokens of width 1
    is_list: bool  # answers per token come back as a list too


class OneLayerMemorizer(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A one-layer Transformer compiled from (X, y), without training; every stored answer comes back.

    Parameters
    ----------
    task : "classification" or "regression"
        Decides how y is read, the kind of estimator, and whether `score` is the accuracy or R^2.
    rank, dtype, mapping, readout, on_conflict
        As in `onelayer.memorize`.
    positions : bool, default True
        Whether the order of the tokens matters. The features of a 2-D row are ordered, so it is on here; switch
        it off to store sets of tokens.
    padding : None or "nan"
        "nan" reads tokens that are NaN in every component, at the end of a sequence, as padding. Any other NaN
        is an error, with or without it.
    scope : None, "token" or "sequence"
        Whether y holds an answer per token or per sequence, where its shape leaves that open: for 3-D X and
        lists, y of shape (N, n) is read as one answer per token.
    random_state : int, RandomState or None
        An int is the `seed` of `onelayer.memorize`; the same int gives the same weights.

    Attributes
    ----------
    model_ : onelayer.Model
        The weights, the ledger of constants and the trace.
    classes_ : ndarray
        Labels in sorted order; for classification only.
    n_features_in_ : int
        Columns of a 2-D X; the number of places n of a 3-D X or list (predictions may use fewer).
    feature_names_in_ : ndarray of str
        Only if X was a data frame.

    Notes
    -----
    X is an array (N, n, d), an array (N, n) read as (N, n, 1), or a list of arrays (n_i, d). Words and token ids
    are for `onelayer.memorize`: here whole numbers are numbers.

    Sequences of different lengths travel safely through cross-validation as lists, or as one array with
    padding="nan". As metadata, ``lengths=`` reaches `fit` but NOT `predict` and `score` unless metadata routing
    is enabled and requested: ``sklearn.set_config(enable_metadata_routing=True)`` and
    ``OneLayerMemorizer().set_fit_request(lengths=True).set_score_request(lengths=True)``. So an estimator fitted
    with lengths refuses arrays without them, instead of reading padding as tokens. With positions, sequences
    longer than all memorised ones are refused too: pad to one common n rather than cross-validating lists.

    Two equal sequences with different answers have no model: `fit` raises `onelayer.HypothesisError`, a
    ValueError, and names both, unless ``on_conflict`` says which answer to keep.
    """

    def __init__(
        self,
        task: str = "classification",
        *,
        rank: int | None = None,
        dtype: str = "float64",
        mapping: Mapping = "auto",
        readout: Readout = "auto",
        positions: bool = True,
        on_conflict: OnConflict = "refuse",
        padding: str | None = None,
        scope: Scope | None = None,
        random_state: Any = None,
    ) -> None:
        self.task = task
        self.rank = rank
        self.dtype = dtype
        self.mapping = mapping
        self.readout = readout
        self.positions = positions
        self.on_conflict = on_conflict
        self.padding = padding
        self.scope = scope
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.padding == "nan"
        if self.task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    def fit(self, X: Any, y: Any, lengths: Any = None) -> OneLayerMemorizer:
        """Compile X and y; ``lengths`` are the numbers of tokens, where an array X is padded at the end."""
        for name, known in (("task", TASKS), ("padding", PADDINGS), ("scope", SCOPES)):
            if (asked := getattr(self, name)) not in known:
                raise OptionError("memorize", f"{name} among {known}", f"{name}={asked!r}", "Choose one of them.")
        if y is None:
            raise ValueError("OneLayerMemorizer requires y to be passed, but the target y is None.")
        given = self._read_sequences(X, lengths, reset=True)
        sequences = given.sequences
        check_consistent_length(sequences.tokens, y)
        scope = self.scope or _scope_of(y, given)
        values = self._read_y(y, sequences, scope)
        if self.task == "classification":
            self.classes_, codes = np.unique(values, return_inverse=True)
            if values.dtype.kind not in "iubUS":  # labels that are floats are labels all the same
                values = self.classes_.astype(object)[codes]
        elif hasattr(self, "classes_"):
            del self.classes_  # from an earlier fit as a classifier
        self.model_ = memorize(
            sequences.tokens,
            in_places(values, sequences.N, sequences.n, sequences.lengths) if scope == "token" else values,
            lengths=sequences.lengths,
            rank=self.rank,
            dtype=self.dtype,
            mapping=self.mapping,
            readout=self.readout,
            positions=self.positions,
            on_conflict=self.on_conflict,
            seed=self._seed(),
            scope=scope,
        )
        self._had_lengths = lengths is not None
        return self

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Answers in the form of y: (N,), (N, q), or one per token: (N, n), or a list if X is one.

        In an array of answers per token the places of padding hold NaN, or the first class.
        """
        given, values = self._predict(X, lengths)
        if self.model_.form.scope == "sequence":
            return values
        s = given.sequences
        if given.is_list:
            return [row[:k] for row, k in zip(values, _lengths(s), strict=True)]
        valid = s.valid()
        if valid is not None:
            values[~valid] = np.nan if self.task == "regression" else self.classes_[0]
        return values

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """Accuracy or R^2 over all answers; with answers per token a weight counts for each of its tokens."""
        given, values = self._predict(X, lengths)
        s, scope = given.sequences, self.model_.form.scope
        check_consistent_length(s.tokens, y)
        truth = self._read_y(y, s, scope)
        if scope == "token":
            values = _flat(values, s)
            sample_weight = None if sample_weight is None else np.repeat(sample_weight, _lengths(s))
        measure = accuracy_score if self.task == "classification" else r2_score
        return float(measure(truth, values, sample_weight=sample_weight))

    def _predict(self, X: Any, lengths: Any) -> tuple[_Given, Array]:
        check_is_fitted(self)
        given = self._read_sequences(X, lengths, reset=False)
        if self._had_lengths and lengths is None and not given.is_list:
            raise refuse(
                "`lengths` for arrays, since the estimator was fitted with them",
                "X came without (as it does in cross-validation, where they reach `fit` only)",
                'Pass them, enable metadata routing, or use padding="nan" or lists, which carry their lengths.',
            )
        values = self.model_.predict(given.sequences.tokens, given.sequences.lengths)
        kind = self.classes_.dtype if self.task == "classification" else np.float64
        return given, values.astype(kind)

    def _read_sequences(self, X: Any, lengths: Any, *, reset: bool) -> _Given:
        if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
            X = list(X)
        is_list = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2
        is_table = not is_list and getattr(X, "ndim", 2) != 3
        if is_list:
            sequences = read_sequences(X, lengths, real=True)
            validate_data(self, sequences.tokens, reset=reset, skip_check_array=True, ensure_2d=False)
        else:
            tokens = validate_data(
                self,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                ensure_2d=is_table,
                allow_nd=not is_table,
                # What lies behind a length is not looked at; what lies before it is checked by read_sequences.
                ensure_all_finite="allow-nan" if self.padding == "nan" else lengths is None,
            )
            tokens = tokens[:, :, None] if is_table else tokens
            sequences = read_sequences(tokens, self._lengths_of(tokens, lengths), real=True)
        if reset:
            self.n_features_in_ = sequences.n
        return _Given(sequences, is_table, is_list)

    def _lengths_of(self, tokens: Array, lengths: Any) -> Any:
        if self.padding != "nan":
            return lengths
        if lengths is not None:
            raise OptionError("memorize", 'either lengths or padding="nan"', "both were given", "Drop one of them.")
        return _lengths_from_nan(tokens)

    def _read_y(self, y: Any, sequences: Sequences, scope: Scope) -> Array:
        """Labels [T], or reals [T] or [T, q], one per sequence or one per token in order; checked."""
        values = _flat(y, sequences) if scope == "token" else y
        if self.task == "regression":
            return check_array(values, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)  # type: ignore[no-any-return]
        values = check_array(values, dtype=None, ensure_2d=False, input_name="y", estimator=self)
        values = column_or_1d(values, warn=True)
        check_classification_targets(values)
        return values  # type: ignore[no-any-return]

    def _seed(self) -> int:
        generator = check_random_state(self.random_state)
        is_seed = isinstance(self.random_state, numbers.Integral)
        return int(self.random_state if is_seed else generator.randint(2**31 - 1))


def _lengths(sequences: Sequences) -> Array:
    return np.full(sequences.N, sequences.n) if sequences.lengths is None else sequences.lengths


def _scope_of(y: Any, given: _Given) -> Scope:
    """Answers per token only for 3-D X or lists, when the rows of y have length n or different lengths."""
    rows = y if isinstance(y, list | tuple) else np.asarray(y)
    if given.is_table or not np.ndim(rows[0]):
        return "sequence"
    sizes = {len(row) for row in rows}
    return "token" if sizes == {given.sequences.n} or len(sizes) > 1 else "sequence"


def _flat(y: Any, sequences: Sequences) -> Array:
    """Answers per token, padded or as lists, into one row per token."""
    rows = [np.asarray(row) for row in (y if isinstance(y, list | tuple) else np.asarray(y))]
    for i, (row, k) in enumerate(zip(rows, _lengths(sequences), strict=True)):
        if row.ndim == 0 or len(row) not in (k, sequences.n):
            raise refuse(
                "as many answers as tokens in each sequence",
                f"sequence {i} has {k} tokens and y[{i}] has shape {row.shape}",
                'Give one answer per token, or use scope="sequence".',
            )
    return np.concatenate([row[:k] for row, k in zip(rows, _lengths(sequences), strict=True)])


def _lengths_from_nan(tokens: Array) -> Array:
    """Lengths, where tokens that are NaN throughout end a sequence; NaN anywhere else is refused by name."""
    nan: Array = np.isnan(tokens)
    whole: Array = np.asarray(nan.all(axis=2))
    n = tokens.shape[1]
    lengths: Array = n - np.argmin(whole[:, ::-1], axis=1)
    lengths[whole.all(axis=1)] = 0
    if not lengths.all():
        found = f"sequence {int(np.argmin(lengths))} is NaN throughout"
    elif (stray := nan & (np.arange(n) < lengths[:, None])[:, :, None]).any():
        i, k, c = (int(axis[0]) for axis in np.nonzero(stray))
        found = f"sequence {i}, token {k}, component {c} is NaN, but " + (
            "a later token is not" if whole[i, k] else "other components of that token are not"
        )
    else:
        return lengths
    raise refuse("NaN only as whole tokens at the end of a sequence", found, "Drop or impute it.")
