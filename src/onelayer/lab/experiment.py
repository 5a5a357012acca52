"""What an experiment is: one question, one module, rows computed from a case and a seed, a picture, and an answer.

A module of `onelayer.lab.experiments` has
    QUESTION     one sentence that ends with a question mark
    HYPOTHESES   what the theory, or we, expect
    EXTRAS       extras that it needs beside `lab`, for example ("torch",)
    cases(preset)        the settings to look at, each a flat dict; preset is "quick" or "full"
    run(case, seed)      rows, flat dicts of numbers, words and None; the same rows for the same case and seed
    plot(rows)           a matplotlib figure
    verdict(rows)        the answer, with numbers computed from the rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

Case = dict[str, Any]
Row = dict[str, Any]
Preset = Literal["quick", "full"]


@dataclass(frozen=True)
class Verdict:
    """A plain answer, and the findings behind it, each a sentence with numbers from the rows."""

    answer: Literal["yes", "no", "partly", "open"]
    says: str
    findings: tuple[str, ...] = ()


class Experiment(Protocol):
    """The names above, as a module has them."""

    __name__: str
    QUESTION: str
    HYPOTHESES: tuple[str, ...]
    EXTRAS: tuple[str, ...]

    def cases(self, preset: Preset) -> list[Case]: ...

    def run(self, case: Case, seed: int) -> list[Row]: ...

    def plot(self, rows: list[Row]) -> Any: ...

    def verdict(self, rows: list[Row]) -> Verdict: ...
