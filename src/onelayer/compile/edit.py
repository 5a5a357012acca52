"""Answers changed in a model that is there: few weights, and a proof that nothing else changed.

The certificate of a model holds what it stores. Contexts, cells and names stay as they are; entries of cells are
changed until the new answers come out (`readouts/refill.py`), and the checker proves all answers again: those that
were to change as asked for, all others as before. What no cell can hold is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.certificate import Certificate, certify_data, judge_claims
from onelayer.certificates.names import certifiable, names_of
from onelayer.compile.memorize import memorize
from onelayer.errors import DataError, OptionError
from onelayer.gadgets.logits import Logits
from onelayer.gadgets.stacks import layers_of
from onelayer.interfaces import Answers as Interface
from onelayer.ledger import Constant
from onelayer.model import Model
from onelayer.network.blocks import evaluate
from onelayer.problems.answers import AnswerForm, Answers, in_classes_of, read_answers
from onelayer.problems.scopes import at_answers, for_each_token
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.readouts.refill import refill
from onelayer.search.problem import NO_DEFAULT

Array = NDArray[Any]


class Change(NamedTuple):
    """Numbers of a tensor that differ: where, counted over all of it, and what they were and are."""

    tensor: str
    at: Array
    before: Array
    after: Array


@dataclass(frozen=True)
class Edit:
    """A model whose answers were changed, and what is proved of the change. ``answers`` are the numbers of those
    that differ, in the order in which the certificate stores them."""

    before: Model
    model: Model
    answers: Array
    in_place: bool  # else it was rebuilt, and why is in the ledger of the model

    @cached_property
    def weights(self) -> tuple[Change, ...]:
        """The weights that differ; of a model that was rebuilt, none are compared."""
        if not self.in_place:
            return ()
        pairs = zip(self.before.transformer.tensors(), self.model.transformer.tensors(), strict=True)
        found = []
        for (name, a), (_, b) in pairs:
            at = np.flatnonzero(a != b)
            if at.size:
                found.append(Change(name, at, a.ravel()[at], b.ravel()[at]))
        return tuple(found)

    @property
    def n_weights(self) -> int:
        """How many weights differ; all of them, if the model was rebuilt."""
        return sum(len(change.at) for change in self.weights) if self.in_place else self.model.n_parameters

    def undo(self) -> Model:
        """The model as it was, to the bit."""
        return self.before

    def verify(self) -> str:
        """Have the checker judge both models again: "VERIFIED" if all claims of both are proved, and what they are
        about differs in just these answers."""
        assert self.before.certificate is not None
        data = self.before.certificate.data, _as_named_by(self.before, self.model)
        same = all(_same_but(self.answers, *data, name) for name in ("tokens", "answers"))
        results = {model.verify().result for model in (self.before, self.model)} if same else {"UNKNOWN"}
        return "VERIFIED" if results == {"VERIFIED"} else "NOT VERIFIED" if "NOT VERIFIED" in results else "UNKNOWN"

    def __str__(self) -> str:
        how = f"{self.n_weights:,} of {self.model.n_parameters:,} weights differ" if self.in_place else "rebuilt"
        return f"{len(self.answers):,} answer{'' if len(self.answers) == 1 else 's'} changed, {how}"


def _same_but(rows: Array, before: dict[str, Array], after: dict[str, Array], name: str) -> bool:
    """Whether a tensor of the data is the same; that of answers in all but these rows, and in none of these."""
    a, b = before[name], after[name][: len(before[name])]
    if name == "tokens":  # of sequences of one length; others may have more padding now
        n = a.shape[1]
        length = before.get("lengths", np.full(len(a), n))
        inside = np.arange(n) < length[:, None]
        same = np.array_equal(length, after.get("lengths", np.full(len(after[name]), n))[: len(a)])
        return same and np.array_equal(a[inside], b[:, :n][inside])
    differ = np.zeros(len(a), bool)
    differ[rows[rows < len(a)]] = True
    return bool(((a != b).any(axis=1) == differ).all())


def edit(model: Model, X: Any, Y: Any, lengths: Any = None) -> Edit:
    """Give other answers to sequences; X, Y and lengths as in `memorize`. All other answers stay as they are.

    Where X is stored and Y has classes that the model knows, a few entries of its cells are changed. A sequence or
    class that is new to it, or a readout that has no room, means that the model is rebuilt from all the data:
    `in_place` says which. Either way the checker proves every answer again.

    >>> from onelayer import memorize
    >>> model = memorize([["river", "bank"], ["bank", "robber"]], [["water", "shore"], ["money", "crime"]])
    >>> changed = edit(model, [["bank", "robber"]], [["money", "water"]])
    >>> changed.model.predict([["bank", "robber"]]).tolist(), changed.verify()
    ([['money', 'water']], 'VERIFIED')
    """
    stored, rows = _read_stored(model)
    given = read_sequences(X, lengths, real=model.interface.vocabulary is None)
    answers = read_answers(Y, given, model.form.scope)
    _refuse_contradictions(given, answers)
    made = fill_in(model, given, answers)
    if isinstance(made, str):
        return _rebuild(model, stored, rows, given, answers, _places(stored, given), made)
    changed = np.flatnonzero((made[1] != rows).any(axis=1))
    return Edit(model, _prove_changes(model, *made), changed, in_place=True)


def fill_in(model: Model, X: Any, Y: Any, lengths: Any = None) -> tuple[Model, Array] | str:
    """The model with other entries in its cells, not proved yet, and all answers that it gives; or why not."""
    stored, rows = _read_stored(model)
    given = read_sequences(X, lengths, real=model.interface.vocabulary is None)
    number = in_classes_of(model.form, read_answers(Y, given, model.form.scope))
    place = _places(stored, given)
    if (place < 0).any() or (number < 0).any():
        return f"{'a sequence' if (place < 0).any() else 'a class'} is new to it"
    wanted = rows.copy()
    wanted[_rows_of(stored, place, model.form.scope)] = number
    made = _in_place(model, stored, wanted)
    return "no cell has room for other answers" if made is None else (made, wanted)


def forget(model: Model, X: Any, lengths: Any = None) -> Edit:
    """Give the default to stored sequences, as to any other input that is not stored; for models that have one."""
    default = model.interface.default
    if default is None or model.form.classes is None:
        needs, found = (
            "a model of classes with a default, to forget",
            f"this model {model.interface.says} without one",
        )
        raise OptionError("memorize", needs, found, "Memorise with default=, or use `edit` to give other answers.")
    given = read_sequences(X, lengths, real=model.interface.vocabulary is None)
    count = given.token_count() if model.form.scope == "token" else given.N
    rows = np.full((count, 1), float(default[0]))
    form = replace(model.form, ragged=False)
    return edit(model, given, Answers(rows, form))


def _read_stored(model: Model) -> tuple[Sequences, Array]:
    """What the certificate of a model of stored answers is about."""
    plain = type(model.interface) is Interface and model.form.classes is not None
    if not plain or model.certificate is None:
        needs = "a model of stored classes with its certificate, which holds what is stored"
        found = "this model has none" if plain else f"this model {model.interface.says}"
        remedy = model.interface.proved_by if plain else "Rebuild it."
        raise OptionError("memorize", needs, found, remedy)
    data = model.certificate.data
    return Sequences(data["tokens"], data.get("lengths"), model.interface.vocabulary), data["answers"]


def _places(stored: Sequences, given: Sequences) -> Array:
    """[N] where each sequence given is stored, token by token; -1 where it is not."""
    index: dict[bytes, int] = {}
    for i, key in _keys(stored, None):
        index.setdefault(key, i)
    names = None
    if stored.vocabulary is not None:
        known = {name: i for i, name in enumerate(stored.vocabulary)}
        names = np.array([known.get(name, -1) for name in given.vocabulary or ()], np.int64)
    return np.array([index.get(key, -1) for _, key in _keys(given, names, stored.tokens.dtype)], np.int64)


def _keys(s: Sequences, names: Array | None, dtype: Any = None) -> Iterator[tuple[int, bytes]]:
    tokens = s.tokens if names is None else names[s.tokens]
    tokens = np.ascontiguousarray(tokens if dtype is None else tokens.astype(dtype)) + 0  # -0 is 0
    full = np.full(s.N, s.n) if s.lengths is None else s.lengths
    for i, length in enumerate(full.tolist()):
        yield i, tokens[i, :length].tobytes()


def _refuse_contradictions(given: Sequences, answers: Answers) -> None:
    """Of equal sequences the last would win without a word."""
    first = _places(given, given)
    for i in np.flatnonzero(first != np.arange(given.N)).tolist():
        before, own = (_rows_of(given, np.array([k]), answers.form.scope) for k in (first[i], i))
        if not np.array_equal(answers.rows[before], answers.rows[own]):
            found = f"sequences {first[i]} and {i} are equal, and their answers differ"
            raise DataError("data", "one change for each sequence", found, "Keep one of them.")


def _rows_of(stored: Sequences, place: Array, scope: str) -> Array:
    """The numbers of the answers of these sequences, in order."""
    if scope != "token":
        return place
    lengths = np.full(stored.N, stored.n) if stored.lengths is None else stored.lengths
    start = np.cumsum(lengths) - lengths
    return np.concatenate([np.arange(start[i], start[i] + lengths[i]) for i in place.tolist()])


def _in_place(model: Model, stored: Sequences, wanted: Array) -> Model | None:
    """The same model with other entries, if that gives all the answers; else None."""
    parts = [part for part in model.parts["readout"] if not isinstance(part.gadget, Logits)]
    if len(parts) != 2 or parts[1].covered.start != 1:
        return None
    transformer, part = model.transformer, parts[1]
    stacks = {"feedforward": model.evaluator.searches["feedforward"]}
    h = evaluate(replace(transformer, readout=transformer.readout[:1]), stored.tokens, stored.lengths, stacks)
    t = np.maximum(at_answers(h, "token", stored.lengths), 0)
    numbers = wanted if model.form.scope == "token" else for_each_token(wanted, stored.n, stored.lengths)
    found = refill(part.gadget, t, numbers[:, 0])
    if found is None or not np.array_equal(found.search(t), numbers):
        return None
    readout = (*transformer.readout[:1], *layers_of([found]), *transformer.readout[part.covered.stop :])
    return replace(model, transformer=replace(transformer, readout=readout), certificate=None)


def _prove_changes(before: Model, made: Model, wanted: Array) -> Model:
    """The claims that were proved before, of the new answers; or what can be claimed instead."""
    assert before.certificate is not None
    data, names = before.certificate.data | {"answers": wanted}, certifiable(names_of(made))
    report = judge_claims(made.transformer, data, names, before.certificate.claims)
    if report.result != "VERIFIED":
        return replace(made, certificate=certify_data(made, data))
    said = tuple(f"{found.claim}: {found.verdict.outcome}, {found.verdict.why}" for found in report.claims)
    return replace(made, certificate=Certificate(before.certificate.claims, data, said, names))


def _rebuild(
    model: Model, stored: Sequences, rows: Array, given: Sequences, answers: Answers, place: Array, why: str
) -> Edit:
    """A model of all the data, the sequences that are new behind those that were stored."""
    X, Y = _list_sequences(stored), _name_answers(rows, model.form, stored)
    named = _name_answers(answers.rows, answers.form, given)
    for i, (tokens, said) in enumerate(zip(_list_sequences(given), named, strict=True)):
        if place[i] < 0:
            X.append(tokens)
            Y.append(said)
        else:
            Y[int(place[i])] = said
    default, embedding = model.interface.default, model.transformer.embedding
    assert model.form.classes is not None
    made = memorize(
        X,
        Y,
        positions=embedding is not None and embedding.positions is not None,
        default=NO_DEFAULT if default is None else model.form.classes[int(default[0])],
        dtype=model.arithmetic,
        scope="token" if model.form.scope == "token" else "sequence",
        logits=model.has_logits,
        certify=True,
    )
    made = made.with_notes(Constant("rebuilt", True, f"to change answers of another model: {why}"))
    after = _as_named_by(model, made)
    new = np.arange(len(rows), len(after["answers"]))
    changed = np.flatnonzero((after["answers"][: len(rows)] != rows).any(axis=1))
    return Edit(model, made, np.concatenate([changed, new]), in_place=False)


def _list_sequences(s: Sequences) -> list[Any]:
    """Sequences as people give them: lists of names, or arrays of reals."""
    full = np.full(s.N, s.n) if s.lengths is None else s.lengths
    if s.vocabulary is None:
        return [s.tokens[i, :k] for i, k in enumerate(full.tolist())]
    return [[s.vocabulary[j] for j in s.tokens[i, :k].tolist()] for i, k in enumerate(full.tolist())]


def _name_answers(rows: Array, form: AnswerForm, s: Sequences) -> list[Any]:
    """Answers by name: a list for each sequence, or one each."""
    assert form.classes is not None
    said = [form.classes[int(c)] for c in rows[:, 0].tolist()]
    if form.scope != "token":
        return said
    ends = np.cumsum(np.full(s.N, s.n) if s.lengths is None else s.lengths).tolist()
    return [said[a:z] for a, z in zip([0, *ends[:-1]], ends, strict=True)]


def _as_named_by(before: Model, after: Model) -> dict[str, Array]:
    """What the certificate of a model is about, with the numbers that another gives to tokens and classes."""
    assert after.certificate is not None
    data = dict(after.certificate.data)
    for field, mine, its in (
        ("answers", before.form.classes, after.form.classes),
        ("tokens", before.interface.vocabulary, after.interface.vocabulary),
    ):
        if mine is not None and its is not None and mine != its:
            index = {name: i for i, name in enumerate(mine)}
            new = np.array([index.get(name, -1) for name in its], data[field].dtype)
            data[field] = new[data[field].astype(np.int64)]
    return data
