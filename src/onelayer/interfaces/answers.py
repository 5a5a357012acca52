"""A model of stored answers: how inputs are read, and how outputs become answers in the form they were given."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

from onelayer.errors import DataError, OptionError
from onelayer.network import Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.sequences import Sequences, read_sequences

#: What a model of a function does with inputs that its bound does not cover.
Outside = Literal["refuse", "answer"]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What goes in: sequences of real tokens, or of words. What comes out: an answer per token or per sequence."""

    kind: ClassVar[str] = "answers"
    says: ClassVar[str] = "answers from stored data"
    proved_by: ClassVar[str] = "Make one: model = model.certify(X, Y)."

    form: AnswerForm
    vocabulary: tuple[Hashable, ...] | None = None  # None: tokens are real
    default: tuple[float, ...] | None = None  # the output that inputs get which are not stored
    stored_bits: float | None = None  # information in the stored answers
    error_upper: float = 0.0  # how far an answer may be off by construction: of a readout that interpolates

    @cached_property
    def index(self) -> dict[Hashable, int] | None:
        return None if self.vocabulary is None else {token: i for i, token in enumerate(self.vocabulary)}

    @property
    def allowed_error(self) -> float:
        """How far a real answer may be off and still count as right."""
        return self.error_upper

    def read(
        self, transformer: Transformer, X: Any, lengths: Any = None, unseen: Literal["refuse", "mark"] = "refuse"
    ) -> Sequences:
        """Check inputs against what the model knows: token width, vocabulary, number of places."""
        sequences = read_sequences(X, lengths, self.index, real=self.vocabulary is None, unseen=unseen)
        if self.vocabulary is None and sequences.d != transformer.token_width:
            raise DataError(
                "data",
                f"as many components a token as the model was built for: {transformer.token_width}",
                f"X has tokens of {sequences.d}",
                "Give X as it was given when the model was built.",
            )
        places = None if transformer.embedding is None else transformer.embedding.positions
        if places is not None and sequences.n > len(places):
            raise DataError(
                "positions",
                f"sequences of at most {len(places)} tokens, as memorised",
                f"X has {sequences.n} places",
                "Shorten X, or memorise again with longer sequences.",
            )
        return sequences

    def admit(self, sequences: Sequences, outside: Outside) -> None:  # noqa: ARG002
        """Refuse sequences without a promise, unless the caller wants an answer anyway."""
        if outside not in get_args(Outside):
            needs, found = f"outside among {get_args(Outside)}", f"outside={outside!r}"
            raise OptionError("data", needs, found, "Choose one of them.")

    def as_given(self, data: Any) -> Any:
        """A person's own data in a form that the checker compares."""
        return data

    def unclaimed(self, _claims: Iterable[Mapping[str, Any]]) -> str:
        """What this says of the model and its certificate does not; empty if there is nothing."""
        return ""

    def describe(self) -> str:
        """In a few words, for the model's repr."""
        what = "reals" if self.form.classes is None else f"{len(self.form.classes)} classes"
        return f"{what} {'at the last token' if self.form.scope == 'last' else f'per {self.form.scope}'}"

    def to_json(self) -> dict[str, Any]:
        """All but the names of tokens and classes, which have a file of their own."""
        return {
            "kind": self.kind,
            "components": self.form.components,
            "ragged": self.form.ragged,
            "default": None if self.default is None else [x.hex() for x in self.default],
            "stored_bits": self.stored_bits,
            "error_upper": self.error_upper.hex(),
        }

    @classmethod
    def common(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> dict[str, Any]:
        """The fields of every interface from JSON."""
        default = entry["default"]
        return {
            "form": form,
            "vocabulary": vocabulary,
            "default": None if default is None else tuple(map(float.fromhex, default)),
            "stored_bits": entry["stored_bits"],
            "error_upper": float.fromhex(entry["error_upper"]),
        }

    @classmethod
    def from_json(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> Answers:
        return cls(**cls.common(entry, form, vocabulary))
