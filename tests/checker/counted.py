"""What the checker says it is about to spend, written down instead of being allowed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from onelayer_checker.core import budget

Spent = tuple[str, float, float, float]  # what, operations, bytes for now, bytes for good


@dataclass
class Ledger(budget.Budget):
    lines: list[Spent] = field(default_factory=list)

    def spend(self, what: str, operations: float, scratch: float, kept: float) -> None:
        self.lines.append((what, operations, scratch, kept))


@contextmanager
def counted() -> Iterator[list[Spent]]:
    ledger = Ledger(0.0, 0.0, 0.0)
    token = budget._current.set(ledger)
    try:
        yield ledger.lines
    finally:
        budget._current.reset(token)
