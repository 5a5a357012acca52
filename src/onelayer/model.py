"""The one noun: a one-layer Transformer with its interface, its ledger of constants and its proof."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from onelayer.abilities import Abilities
from onelayer.certificates.certificate import Certificate, certify_data
from onelayer.certificates.data import of_answers, of_text
from onelayer.certificates.explain import explain_files
from onelayer.equality import EqualByContent
from onelayer.errors import OptionError
from onelayer.explorer.page import Page, make_page
from onelayer.explorer.widget import make_widget
from onelayer.export import bundle
from onelayer.gadgets.gadget import Words
from onelayer.gadgets.names import Described, describe_units, unit_names
from onelayer.gadgets.stacks import Covered, Parts
from onelayer.interfaces import Answers, Examples, Function, NextToken
from onelayer.interfaces.answers import Outside
from onelayer.interfaces.evaluator import Evaluation, Evaluator
from onelayer.ledger import Constant, Ledger
from onelayer.measure import pictures
from onelayer.measure.recall import recall
from onelayer.network.reference import is_small
from onelayer.network.trace import Trace, trace
from onelayer.network.weights import Array, Transformer
from onelayer.problems.answers import AnswerForm, read_answers
from onelayer.problems.sequences import Sequences
from onelayer_checker import Report, check

Kind = TypeVar("Kind", bound=Answers)


@dataclass(frozen=True, eq=False, repr=False)
class Model(Abilities, EqualByContent):
    """What every compiler returns. ``interface`` says what goes in and what comes out: `Answers`, `NextToken`,
    `Function` or `Examples`."""

    transformer: Transformer
    interface: Answers
    ledger: Ledger
    certificate: Certificate | None = None
    gadgets: tuple[
        Covered, ...
    ] = ()  # which layers are which gadget: a hint, that `parts` compares with the weights

    @property
    def n_parameters(self) -> int:
        return self.transformer.n_parameters

    @property
    def form(self) -> AnswerForm:
        return self.interface.form

    def __repr__(self) -> str:
        proof = "" if self.certificate is None else f", {len(self.certificate.claims)} claims certified"
        return (
            f"<Model: {self.interface.describe()}, rank {self.transformer.attention.head_size}, "
            f"{self.n_parameters:,} parameters, {self.arithmetic}{proof}>"
        )

    def describe(self) -> str:
        """The network in a line: heads, how contexts are told apart, how answers are read off, size and dtype."""
        heads, ledger = self.transformer.attention.heads, self.ledger
        parts = [f"{heads} attention head{'s' if heads > 1 else ''} of rank {self.transformer.attention.head_size}"]
        parts += [f"{name} {ledger[name]}" for name in ("mapping", "readout", "construction") if name in ledger]
        return ", ".join([*parts, f"{self.n_parameters:,} parameters in {self.arithmetic}"])

    def predict(
        self,
        X: Any,
        lengths: Any = None,
        queries: Any = None,
        *,
        path: Evaluation = "auto",
        outside: Outside = "refuse",
        bounds: bool = False,
    ) -> Any:
        """Answers for sequences, stored or not, in the form of Y; of a learner: `predict(X, y, queries)`.

        An input that is not stored gets the default, if one was given, but for the share of false hits that the
        ledger bounds and measures. Without a default it gets the answer of the stored context whose coordinate is
        nearest (rank 1); 0, the first class, outside every stored box; any class at all with retrieval.

        A token that the vocabulary does not have makes its whole sequence unknown, since attention sees it from
        every other token: all of them get the default. Without a default, an error lists such tokens. The same
        holds for numbers so large that a value of the forward pass leaves the range of the model's dtype. Entries
        at padding mean nothing. ``path`` chooses between the dense network and a search that gives the same
        answers; "auto" searches where it can. "reference" has the same bits on every machine, for any number of
        inputs, and in the page of `explore`; of functions and learners in float32 with up to 8,192 weights it is
        what "auto" does. The others may differ from it, and from machine to machine, in how sums are rounded: in
        the last bits, and for inputs that are not stored and lie on a ramp between two answers.

        A model of a function refuses sequences that its bound does not cover: with a token beyond the box, or of
        another length; so does a learner with a bound. With ``outside`` "answer" it gives whatever the network
        does. With ``bounds`` a learner that solves (mesa, recurrence) gives a pair: answers, and how far each may
        be from the exact ridge estimate.
        """
        if isinstance(self.interface, Examples):
            if bounds:
                return self.interface.predict_with_bounds(self.transformer, X, lengths, queries)
            ordered = path == "reference" or (path == "auto" and is_small(self.transformer))
            anywhere = outside == "answer"
            return self.interface.predict(
                self.transformer, X, lengths, queries, in_order=ordered, anywhere=anywhere
            )
        sequences = self.ask(X, lengths)
        self.interface.admit(sequences, outside)
        return self.form.decode(self.rows(sequences, path), sequences.lengths)

    def algorithm(self, X: Any, y: Any = None, queries: Any = None) -> Any:
        """What the algorithm of a learner gives, step by step in NumPy: the claim `equals` compares with it."""
        return self.interface_as(Examples, "algorithm").follow(X, y, queries)

    def outputs(self, sequences: Sequences, path: Evaluation = "auto") -> Array:
        """What the network's last layer gives, [N, n, q]; the default, or an error, where `predict` says so."""
        return self.evaluator.outputs(sequences, path)

    def rows(self, sequences: Sequences, path: Evaluation = "auto") -> Array:
        """What answers are read off, [N, n, q]: outputs or, of logits, the number of the largest of them."""
        return self.evaluator.largest(sequences, path) if self.has_logits else self.outputs(sequences, path)

    def answers(self, outputs: Any, sequences: Sequences) -> Any:
        """Answers from what an exported model computed for sequences that `ask` read, as `predict` gives them."""
        found = self.evaluator.check_outputs(outputs, sequences)
        found = found.argmax(axis=2)[..., None] if self.has_logits else found
        return self.form.decode(found, sequences.lengths)

    @cached_property
    def evaluator(self) -> Evaluator:
        ordered = isinstance(self.interface, Function) and is_small(self.transformer)
        return Evaluator(self.transformer, self.interface.default, self.gadgets, ordered)

    @property
    def parts(self) -> Parts:
        """The gadgets of both stacks, each recognised in the layers that it covers."""
        return self.evaluator.parts

    def unit_names(self, value: str) -> Words:
        """What each channel of an intermediate value (embedded, readout.3, head0.averages ...) means, in words."""
        return unit_names(self.transformer, self.parts, value)

    def described(self) -> list[Described]:
        """Every value of the forward pass in order: which gadget makes it, and what its channels mean."""
        return describe_units(self.transformer, self.parts)

    def trace(self, X: Any, lengths: Any = None, queries: Any = None) -> Trace:
        """Run a small batch, or the prompt of a learner, and keep every intermediate value."""
        if isinstance(self.interface, Examples):
            return self.interface.trace(self.transformer, X, lengths, queries)
        sequences = self.read(X, lengths)
        with np.errstate(all="ignore"):  # a trace may show where a value overflows
            return trace(self.transformer, sequences.tokens, sequences.lengths, self.unit_names)

    def read(self, X: Any, lengths: Any = None) -> Sequences:
        """Check inputs against what the model knows: token width, vocabulary, number of places."""
        return self.interface.read(self.transformer, X, lengths)

    def ask(self, X: Any, lengths: Any = None) -> Sequences:
        """As `read`; but with a default, sequences with unseen tokens are not refused, only marked as unknown."""
        unseen: Literal["refuse", "mark"] = "refuse" if self.interface.default is None else "mark"
        return self.interface.read(self.transformer, X, lengths, unseen)

    def with_notes(self, *notes: Constant, certificate: Certificate | None = None) -> Model:
        """The same weights with more lines in the ledger, and a proof if one is given; what was recognised in them
        is not recognised again."""
        ledger = Ledger((*self.ledger.lines, *notes))
        noted = replace(self, ledger=ledger, certificate=certificate or self.certificate)
        vars(noted).update({name: vars(self)[name] for name in ("evaluator", "windows") if name in vars(self)})
        return noted

    # Proofs and files ------------------------------------------------------------------------------------------

    @property
    def proved(self) -> bool:
        """Whether the checker said so, when the model was built; `verify` asks it again."""
        return self.certificate is not None

    def certify(
        self,
        X: Any,
        Y: Any = None,
        lengths: Any = None,
        *,
        tolerance: float | None = None,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> Model:
        """The same model with a proof that it gives these answers; X is the text for a model of a text.

        What cannot be proved is an error that names the first wrong answer, or the bound that can be. See
        `onelayer.certificates.certificate.certify_data` for what is claimed.
        """
        if isinstance(self.interface, Function | Examples):
            needs, found = "stored answers to certify", "the proof about a function is made when it is built"
            raise OptionError("data", needs, found, self.interface.proved_by)
        if isinstance(self.interface, NextToken) and Y is None:
            tensors = of_text(self, X)
        else:
            sequences = self.read(X, lengths)
            tensors = of_answers(self, sequences, read_answers(Y, sequences, self.form.scope))
        wrong = partial(recall, self, X, Y, lengths)
        return replace(
            self, certificate=certify_data(self, tensors, progress, tolerance, lambda: wrong().first_wrong)
        )

    def verify(self, data: Any = None, require: Iterable[str] = ()) -> Report:
        """Have the checker decide every claim again; ``data`` and ``require`` as in `onelayer_checker.check`.

        For a model of a text, ``data`` may also be the text itself: a str that is not the path of a file.
        """
        if self.certificate is None:
            needs, found = "a certificate to verify", "nothing was proved of this model"
            raise OptionError("data", needs, found, self.interface.proved_by)
        return check(bundle.files(self), data=self.interface.as_given(data), require=list(require))

    def explain(self) -> str:
        """What is claimed, in words: whose answers, in which arithmetic, for which data; and what is not."""
        if self.certificate is None:
            return f"This model {self.interface.says}. It has no certificate. {self.interface.proved_by}"
        return explain_files(bundle.files(self))

    def plot(self) -> Any:
        """A matplotlib figure: the gaps between answers and the readout, or a function, its model and the error.
        A notebook shows it."""
        figure = pictures.figure_of(self)
        figure._repr_png_ = partial(pictures.as_png, figure)  # as a figure of pyplot would be shown
        return figure

    def explore(
        self, X: Any = None, lengths: Any = None, *, title: str = "onelayer", race: Mapping[str, Any] | None = None
    ) -> Page:
        """A page to click through, with the sequences that are stored, or with others; `save` writes it to a file.

        It computes in the browser what `predict(path="reference")` gives, bit for bit. A notebook shows it.
        ``race`` is what `onelayer race --json` printed about the same sequences: the trained twin is shown too.
        """
        return make_page(self, None if X is None else self.read(X, lengths), title, race)

    def widget(self, X: Any = None, lengths: Any = None, *, title: str = "onelayer") -> Any:
        """The page of `explore` as a widget of a notebook (the extra `notebook`)."""
        return make_widget(self.explore(X, lengths, title=title))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write everything to a folder, which always holds the old model, the new one, or nothing at all.

        Another model that is there is lost only if ``overwrite`` says so; to save the very same again is no loss.
        """
        return bundle.write(path, self, overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model; a truncated, edited or mismatched folder is refused by name."""
    return Model(*bundle.read(path))


def save(
    path: str | os.PathLike[str],
    model: Model,
    *,
    data: tuple[Any, ...] | None = None,
    certificate: Certificate | None = None,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model to a folder; with data (X, Y) or (X, Y, lengths), certified first."""
    if data is not None:
        model = model.certify(*data, tolerance=tolerance)
    elif certificate is not None:
        model = replace(model, certificate=certificate)
    return model.save(path, overwrite=overwrite)


def certify(model: Model, X: Any, Y: Any = None, lengths: Any = None, **options: Any) -> Certificate:
    """The certificate that `Model.certify` gives a model."""
    found = model.certify(X, Y, lengths, **options).certificate
    assert found is not None
    return found


def explore(model: Model | str | os.PathLike[str], X: Any = None, lengths: Any = None, **options: Any) -> Page:
    """The page that `Model.explore` gives a model, or one in a folder."""
    found = model if isinstance(model, Model) else load(model)
    return found.explore(X, lengths, **options)
