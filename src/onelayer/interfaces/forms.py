"""A layer of linear attention: sequences of real tokens go in, one answer comes out, at the last token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from onelayer.errors import DataError
from onelayer.interfaces.answers import Answers
from onelayer.network import Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.sequences import Sequences, read_sequences


@dataclass(frozen=True, kw_only=True)
class Forms(Answers):
    """Tokens get this many more channels. They are 0, and the answer is written to them."""

    kind: ClassVar[str] = "forms"
    says: ClassVar[str] = "is a layer of linear attention that was fitted to sequences"
    proved_by: ClassVar[str] = "Fit it again with onelayer.fit_attention, which asks the checker."

    spare: int

    def read(
        self, transformer: Transformer, X: Any, lengths: Any = None, unseen: Literal["refuse", "mark"] = "refuse"
    ) -> Sequences:
        found = read_sequences(X, lengths, None, real=True, unseen=unseen)
        if found.d + self.spare != transformer.token_width:
            needs = f"tokens of {transformer.token_width - self.spare} components, as fitted"
            raise DataError("data", needs, f"X has tokens of {found.d}", "Give tokens of that width.")
        tokens = np.pad(found.tokens, ((0, 0), (0, 0), (0, self.spare)))
        return replace(found, tokens=tokens, low=None, high=None)

    def describe(self) -> str:
        return "a cubic form of the tokens, at the last one"

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"spare": self.spare}

    @classmethod
    def from_json(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> Forms:
        return cls(**cls.common(entry, form, vocabulary), spare=int(entry["spare"]))
