"""The estimator face: `OneLayerMemorizer` stores sequences and answers behind scikit-learn's fit and predict."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.errors import MissingExtraError, OptionError
from onelayer.problems.conflicts import OnConflict
from onelayer.problems.files.table import refuse
from onelayer.problems.padding import Given, flat_answers, full_lengths, lengths_from_nan, scope_of
from onelayer.problems.scopes import Scope, in_places
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.search.problem import NO_DEFAULT, Mapping, Readout

try:
    from sklearn.base import BaseEstimator
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import ClassifierTags, RegressorTags, Tags, check_array, check_random_state, column_or_1d
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("OneLayerMemorizer", "sklearn", "sklearn") from error

Array = NDArray[Any]
TASKS, PADDINGS, SCOPES = ("classification", "regression"), (None, "nan"), (None, "token", "sequence")


class OneLayerMemorizer(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A one-layer Transformer compiled from (X, y), without training; every stored answer comes back.

    Rows that were not seen by `fit` get the ``default``, if there is one, but for the share that the ledger of
    `model_` states as false hits. Without one they get the answer of the stored row whose context happens to be
    nearest, or any class at all: nothing is learned, and a score on held-out rows says nothing.

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
    default : label or number, or None for none
        What rows get that were not seen; a label that y does not have becomes one more of `classes_`.
    words : bool, default False
        Whether tokens are names (words, whole numbers): X is a list of lists of them, or a 2-D array.
    prove : bool or None
        ``certify`` of `onelayer.memorize`; the method `certify` proves the answers of a fitted estimator.
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
    X is an array (N, n, d), an array (N, n) read as (N, n, 1), or a list of arrays (n_i, d).

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
        default: Any = None,
        words: bool = False,
        prove: bool | None = None,
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
        self.default = default
        self.words = words
        self.prove = prove
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
        scope = self.scope or scope_of(y, given)
        values = self._read_y(y, sequences, scope)
        if self.task == "classification":
            self.classes_, codes = np.unique(values, return_inverse=True)
            if values.dtype.kind not in "iubUS":  # labels that are floats are labels all the same
                values = self.classes_.astype(object)[codes]
        elif hasattr(self, "classes_"):
            del self.classes_  # from an earlier fit as a classifier
        self.model_ = memorize(
            given.tokens,
            in_places(values, sequences.N, sequences.n, sequences.lengths) if scope == "token" else values,
            lengths=sequences.lengths,
            rank=self.rank,
            dtype=self.dtype,
            mapping=self.mapping,
            readout=self.readout,
            positions=self.positions,
            on_conflict=self.on_conflict,
            default=NO_DEFAULT if self.default is None else self.default,
            logits=self.task == "classification",
            seed=self._seed(),
            scope=scope,
            certify=self.prove,
        )
        if self.task == "classification" and self.default is not None and self.default not in self.classes_:
            self.classes_ = np.append(self.classes_, self.default)
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
            return [row[:k] for row, k in zip(values, full_lengths(s), strict=True)]
        valid = s.valid()
        if valid is not None:
            values[~valid] = np.nan if self.task == "regression" else self.classes_[0]
        return values

    @available_if(lambda self: self.task == "classification")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Probabilities in the order of `classes_`, (N, C), or (N, n, C) per token: the softmax of logits."""
        given = self._read_asked(X, lengths)
        if not self.model_.has_logits:  # one class alone
            shape = (given.sequences.N, given.sequences.n)[: 1 + (self.model_.form.scope == "token")]
            return np.ones((*shape, 1))
        found = self.model_.predict_proba(given.tokens, given.sequences.lengths)
        numbers = {name: i for i, name in enumerate(self.model_.form.classes or ())}
        return np.asarray(found[..., [numbers[name] for name in self.classes_.tolist()]])

    def certify(self, X: Any, y: Any, lengths: Any = None) -> OneLayerMemorizer:
        """Have the checker prove that these answers come back, and keep the proof: `model_.certificate`."""
        given = self._read_asked(X, lengths)
        s, scope = given.sequences, self.model_.form.scope
        values = self._read_y(y, s, scope)
        values = values if values.dtype.kind in "iubUS" or self.task == "regression" else values.astype(object)
        answers = in_places(values, s.N, s.n, s.lengths) if scope == "token" else values
        self.model_ = self.model_.certify(given.tokens, answers, s.lengths)
        return self

    def save(self, path: Any, *, overwrite: bool = False) -> Any:
        """Write `model_` to a folder, which `onelayer.load`, `onelayer verify` and every export read."""
        check_is_fitted(self)
        return self.model_.save(path, overwrite=overwrite)

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """Accuracy or R^2 over all answers; with answers per token a weight counts for each of its tokens."""
        given, values = self._predict(X, lengths)
        s, scope = given.sequences, self.model_.form.scope
        check_consistent_length(s.tokens, y)
        truth = self._read_y(y, s, scope)
        if scope == "token":
            values = flat_answers(values, s)
            sample_weight = None if sample_weight is None else np.repeat(sample_weight, full_lengths(s))
        measure = accuracy_score if self.task == "classification" else r2_score
        return float(measure(truth, values, sample_weight=sample_weight))

    def _predict(self, X: Any, lengths: Any) -> tuple[Given, Array]:
        given = self._read_asked(X, lengths)
        values = self.model_.predict(given.tokens, given.sequences.lengths)
        kind = self.classes_.dtype if self.task == "classification" else np.float64
        return given, values.astype(kind)

    def _read_asked(self, X: Any, lengths: Any) -> Given:
        check_is_fitted(self)
        given = self._read_sequences(X, lengths, reset=False)
        if self._had_lengths and lengths is None and not given.is_list:
            raise refuse(
                "`lengths` for arrays, since the estimator was fitted with them",
                "X came without (as it does in cross-validation, where they reach `fit` only)",
                'Pass them, enable metadata routing, or use padding="nan" or lists, which carry their lengths.',
            )
        return given

    def _read_sequences(self, X: Any, lengths: Any, *, reset: bool) -> Given:
        if self.words:
            return self._read_words(X, lengths, reset=reset)
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
        return Given(sequences, sequences.tokens, is_table, is_list)

    def _read_words(self, X: Any, lengths: Any, *, reset: bool) -> Given:
        sequences = read_sequences(X, lengths, real=False)
        self.n_features_in_ = sequences.n if reset else self.n_features_in_
        return Given(sequences, sequences, is_table=False, is_list=not isinstance(X, np.ndarray))

    def _lengths_of(self, tokens: Array, lengths: Any) -> Any:
        if self.padding != "nan":
            return lengths
        if lengths is not None:
            raise OptionError("memorize", 'either lengths or padding="nan"', "both were given", "Drop one of them.")
        return lengths_from_nan(tokens)

    def _read_y(self, y: Any, sequences: Sequences, scope: Scope) -> Array:
        """Labels [T], or reals [T] or [T, q], one per sequence or one per token in order; checked."""
        values = flat_answers(y, sequences) if scope == "token" else y
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
