"""What a verdict is about: bounds that say something, and the data and claims that a person asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onelayer_checker.core.balls import ARITHMETICS, Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import Claim, Verdict, is_kind
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.given import Incomparable, Sequences, compare, encoded, read_lines
from onelayer_checker.core.names import Names
from onelayer_checker.core.samples import Data
from onelayer_checker.core.texts import compare_text

Given = str | os.PathLike[str] | bytes | Sequence[Any]


def refuse_empty(claims: Iterable[Claim], names: Names | None, data: Data) -> None:
    """Refuse a bound on answers that a network which knows nothing of them would satisfy.

    Of classes, a bound below 1/2 tells each from all others. Theorem: proofs/Judge.v classes_are_told_apart.
    """
    answers = stored(data)
    classes = (answers == np.floor(answers)).all() if names is None else names.answers is not None
    for claim in claims:
        eps = claim.numbers.get("eps", 0.0)
        if classes and eps >= 0.5:
            raise Malformed("claim", f"{claim}: the answers are classes, so eps must be less than 1/2")
        if eps >= constant_error(answers):
            raise Malformed("claim", f"{claim}: a constant would satisfy it")


def constant_error(answers: Array) -> float:
    """The error of the best constant in the component where it is largest. If all answers are equal, that of zero;
    if they are zero, nothing can be said against any bound."""
    apart = spread(answers)
    errors = np.where(apart > 0, apart / 2, np.abs(answers[0]))
    return float(errors.max()) or np.inf


def stored(data: Data) -> Array:
    """The rows of answers that some sample has."""
    seen = np.zeros(len(data.answers), bool)
    seen[data.which] = True
    return data.answers[seen]


def spread(answers: Array) -> Array:
    """The largest answer less the smallest, for each component."""
    with np.errstate(over="ignore"):
        return np.asarray(answers.max(axis=0) - answers.min(axis=0))


def beside(claim: Claim, data: Data) -> str:
    """How far apart the answers are, to be read beside a bound on their errors."""
    apart = spread(stored(data)) if claim.numbers.get("eps") else np.zeros(1)
    apart = apart[apart > 0]
    if not apart.size:
        return ""
    return f"; the answers spread over {apart.min():.6g}" + (f" to {apart.max():.6g}" if apart.size > 1 else "")


def same_data(given: Given, names: Names | None, data: Data | None, dtype: np.dtype[Any]) -> Verdict:
    """Whether what is certified is what a person has: a file, the bytes of a text, (X, Y) or (X, Y, lengths). The
    value of a proof is a bound that errors must stay below to say something of these answers."""
    if data is None:
        return Verdict("undecided", "the certificate stores no data to compare it with", np.inf)
    N, n = data.tokens.shape[:2]
    spend("comparing the data given", 100.0 * N * n, 8.0 * data.tokens.size + 32.0 * N * n)
    if names is None:
        return Verdict("undecided", "version 1 certifies no names, so data cannot be compared with it", np.inf)
    try:
        if isinstance(given, bytes | str | os.PathLike) and names.pieces is not None:
            text = given if isinstance(given, bytes) else Path(given).read_bytes()
            return compare_text(text, names.pieces, data, dtype)
        if isinstance(given, str | os.PathLike):
            given = read_lines(Path(given), names.scope)
        mine = encoded(given, names, data)
    except (Incomparable, OSError, ValueError) as error:  # a path with a NUL is a ValueError
        return Verdict("undecided", f"it cannot be compared: {error}", np.inf)
    inside = np.arange(data.tokens.shape[1]) < data.lengths[:, None]
    theirs = Sequences(data.lengths, data.tokens[inside] + 0, data.answers[data.which] + 0)  # -0 and 0 are one
    return compare(mine, theirs, names, constant_error(mine.answers))


@dataclass(frozen=True)
class Required:
    """A claim that a person demands: its type and, where it matters, its arithmetic and the largest bound, or of
    argmax the smallest margin."""

    type: str
    arith: str | None = None
    bound: float = np.inf

    @staticmethod
    def read(text: str) -> Required:
        """Such as "separated", "memorizes float32" or "memorizes float32 1e-6"."""
        type_, *rest = text.split() or [""]
        arith = rest.pop(0) if rest and rest[0] in ARITHMETICS else None
        if not is_kind(type_) or len(rest) > 1:
            raise ValueError(f"{text!r:.60} is not a type of claim, an arithmetic if wanted, a bound if wanted")
        return Required(type_, arith, float(rest[0]) if rest else np.inf)

    def __str__(self) -> str:
        bound = f", bound {self.bound:.6g}" if self.bound < np.inf else ""
        return f"{self.type} ({self.arith or 'any arithmetic'}{bound})"

    def met(self, claim: Claim, verdict: Verdict) -> bool:
        bound = claim.numbers.get("eps", claim.numbers.get("bound", 0.0))
        fits = claim.type == self.type and self.arith in (None, claim.arith)
        margin = claim.numbers.get("margin")  # of which more is better
        enough = bound <= self.bound if margin is None else self.bound <= margin or self.bound == np.inf
        return fits and verdict.outcome == "proved" and enough
