"""A model of a function on a box: what it stands for, and how far it is from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.interfaces.answers import Answers, Outside
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Ledger
from onelayer.problems.answers import AnswerForm
from onelayer.problems.sequences import Sequences
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

Array = NDArray[Any]
#: Claims that bound the largest error.
LARGEST_ERROR = ("sup_error", "sup_error_everywhere", "formula_error")


@dataclass(frozen=True, kw_only=True)
class Function(Answers):
    """A target, a box, and a bound on the error with its parts."""

    kind: ClassVar[str] = "function"
    says: ClassVar[str] = "computes a function"
    proved_by: ClassVar[str] = "Approximate an expression, or a function with its Lipschitz constant."

    target: Target
    construction: str
    low: float  # the smallest and the largest end of the box, whose sides may differ
    high: float
    tolerance: float  # that was asked for, in the unit of the target's values
    budget: Ledger  # where the error comes from; the entries add up to the bound
    error_bound: float  # on every input of the box, but for a share `left_out` of it; infinite if nothing is proved
    left_out: float
    measured_error: float  # the largest that was found by trying to break the bound
    samples: int  # among this many inputs, and by climbing from the worst
    box: Box  # where the bound holds
    assumes: str = ""  # what the proof takes for granted of the target
    compared: tuple[Plan, ...] = ()  # what was planned before one of them was built
    mean_bound: float = np.inf  # the root of the mean square of the error on the box; infinite if none is proved

    def admit(self, sequences: Sequences, outside: Outside) -> None:
        """Refuse other lengths, and a token beyond the box: of these the bound says nothing."""
        super().admit(sequences, outside)
        if outside == "refuse":
            self._check_lengths(sequences)
            self._check_box(sequences)

    def _check_lengths(self, sequences: Sequences) -> None:
        lengths = np.full(sequences.N, sequences.n) if sequences.lengths is None else sequences.lengths
        pooled, most = self.target.pooled, self.target.n
        shorter = self.construction == "formula" and pooled is not None and pooled.any_length
        wrong = (lengths > most) | (lengths < 1) if shorter else lengths != most
        if wrong.any():
            which = "1 to " if shorter and most > 1 else ""
            needs = f"sequences of {which}{most} tokens, where its error is bounded"
            found, remedy = (
                f"there are sequences of {int(lengths[np.argmax(wrong)])}",
                "Approximate it for that many.",
            )
            raise DataError("approximate", needs, found, remedy)

    def _check_box(self, sequences: Sequences) -> None:
        with np.errstate(over="ignore"):  # what overflows is beyond the box
            tokens = sequences.tokens.astype(self.box.dtype)
        beyond = (tokens < np.asarray(self.box.low)) | (tokens > np.asarray(self.box.high))
        valid = sequences.valid()
        beyond &= True if valid is None else valid[:, :, None]
        if beyond.any():
            i, j, c = np.argwhere(beyond)[0]
            low, high = self.box.sides[c]
            raise DataError(
                "approximate",
                f"tokens within [{low:g}, {high:g}], where its error is bounded",
                f"in sequence {i}, token {j}, component {c} is {sequences.tokens[i, j, c]:g}",
                'Approximate it on a larger box, or pass outside="answer" for whatever the network gives.',
            )

    @property
    def allowed_error(self) -> float:
        return self.tolerance

    def unclaimed(self, _claims: Iterable[Mapping[str, Any]]) -> str:
        """The bound must be one that is claimed in the model's arithmetic, about its target, on all of its box."""
        claims = list(_claims)
        if self.error_bound < np.inf and not any(self._is_bounded_by(claim) for claim in claims):
            return f"no claim says error_bound={self.error_bound:.4g}"
        if self.mean_bound < np.inf and not any(self._is_bounded_in_mean(claim) for claim in claims):
            return f"no claim says mean_bound={self.mean_bound:.4g}"
        return ""

    def _is_bounded_in_mean(self, claim: Mapping[str, Any]) -> bool:
        if claim["type"] != "lp_error" or claim["arith"] != self.box.dtype.name or self.target.program is None:
            return False
        side = (float.fromhex(claim["low"]), float.fromhex(claim["high"]))
        about = claim["target"] == self.target.program.to_json() and self.box.sides == (side,) * self.target.d
        return about and float.fromhex(claim["p"]) == 2 and float.fromhex(claim["bound"]) <= self.mean_bound

    def _is_bounded_by(self, claim: Mapping[str, Any]) -> bool:
        if claim["type"] not in LARGEST_ERROR or claim["arith"] != self.box.dtype.name:
            return False
        of, target = claim["target"], self.target
        if claim["type"] == "formula_error":  # its lines are folded, so only its size is compared
            about = (of["d"], of["per"]) == (target.d, target.per) and of["tokens"] >= target.n
            sides = [tuple(map(float.fromhex, side)) for side in of["box"]]
        else:
            assumed = target.lipschitz is not None and of.get("lipschitz") == target.lipschitz.hex()
            about = assumed or (target.program is not None and of == target.program.to_json())
            sides = [(float.fromhex(claim["low"]), float.fromhex(claim["high"]))] * target.d
        inside = all(a <= low and high <= b for (a, b), (low, high) in zip(sides, self.box.sides, strict=False))
        numbers = {name: float.fromhex(claim[name]) for name in ("bound", "radius", "measure") if name in claim}
        return (
            about
            and inside
            and numbers["bound"] <= self.error_bound
            and numbers.get("radius", np.inf) >= self.box.radius
            and numbers.get("measure", 0.0) <= self.left_out
        )

    def describe(self) -> str:
        proved = np.isfinite(self.error_bound)
        given = f" if {self.assumes}" if self.assumes else ""
        if self.mean_bound < np.inf:
            mean = f"root of the mean square of the error <= {self.mean_bound:.4g} (proved in the mean)"
            return f"{self.target.name} by {self.construction}, {mean}, largest measured {self.measured_error:.4g}"
        bound = (
            f"error <= {self.error_bound:.4g} (proved{given}), measured" if proved else "not proved, measured error"
        )
        return f"{self.target.name} by {self.construction}, {bound} {self.measured_error:.4g}"

    def to_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).hex() for name in NUMBERS}
        return (
            super().to_json()
            | numbers
            | {
                "target": self.target.to_json(),
                "construction": self.construction,
                "budget": self.budget.to_json(),
                "samples": self.samples,
                "box": self.box.to_json(),
                "assumes": self.assumes,
                "compared": [plan.to_json() for plan in self.compared],
            }
            | ({} if self.mean_bound == np.inf else {"mean_bound": self.mean_bound.hex()})
        )

    @classmethod
    def from_json(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> Function:
        numbers: dict[str, Any] = {name: float.fromhex(entry[name]) for name in NUMBERS}
        return cls(
            **cls.common(entry, form, vocabulary),
            **numbers,
            target=Target.from_json(entry["target"]),
            construction=entry["construction"],
            budget=Ledger.from_json(entry["budget"]),
            samples=entry["samples"],
            box=Box.from_json(entry["box"]),
            assumes=entry["assumes"],
            compared=tuple(Plan.from_json(plan) for plan in entry["compared"]),
            mean_bound=float.fromhex(entry.get("mean_bound", "inf")),
        )


NUMBERS = ("low", "high", "tolerance", "error_bound", "left_out", "measured_error")
