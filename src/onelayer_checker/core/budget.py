"""What a folder may cost, counted before it is spent.

Whoever wrote a folder chose its shapes, and a few bytes can ask for years of work. What would exceed the budget is
not begun. No verdict rests on this: a claim that is not looked at is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onelayer_checker.core.balls import Arithmetic, Array
    from onelayer_checker.core.graph import Network

#: Operations on a number, of about a nanosecond each: so many, and as many more for every byte that is read.
OPERATIONS, EACH_BYTE = 3e10, 2e3
MEMORY = 4e9


class Beyond(Exception):
    """More work or memory than is allowed. Nothing was decided."""

    gate = "budget"


@dataclass
class Budget:
    """What is allowed, what was spent of it, and the bytes that are kept to the end."""

    operations: float
    memory: float
    each_byte: float  # operations that a byte of the folder adds
    spent: float = 0.0
    held: float = 0.0

    def spend(self, what: str, operations: float, scratch: float, kept: float) -> None:
        operations, memory = self.spent + operations, self.held + scratch + kept
        for needed, most, unit, option in (
            (operations, self.operations, "operations", "--budget"),
            (memory, self.memory, "bytes of memory", "--memory"),
        ):
            if not needed <= most:
                enough = f"{option} {1.1 * needed:.1e}"
                raise Beyond(f"{what}: {needed:.2g} {unit} in all, {most:.2g} are allowed ({enough})")
        self.spent, self.held = operations, self.held + kept


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(operations: float | None, memory: float | None) -> Iterator[None]:
    """Within, ``spend`` counts; a limit that is not given is the default."""
    each_byte = EACH_BYTE if operations is None else 0.0
    most = OPERATIONS if operations is None else operations
    token = _current.set(Budget(most, MEMORY if memory is None else memory, each_byte))
    try:
        yield
    finally:
        _current.reset(token)


def spend(what: str, operations: float = 0.0, scratch: float = 0.0, kept: float = 0.0) -> None:
    """Refuse to go on where so many operations, or bytes for now or for good, are more than is left."""
    if (budget := _current.get()) is not None:
        budget.spend(what, float(operations), float(scratch), float(kept))


def allow_bytes(name: str, size: int, copies: int) -> None:
    """Before a file is read: it is kept, so many times over, and whoever sent more may ask for more."""
    spend(f"reading {name}", kept=float(copies * size))
    if (budget := _current.get()) is not None:
        budget.operations += budget.each_byte * size


def spend_on_coordinates(network: Network, tokens: Array, lengths: Array, A: Arithmetic, last: bool) -> None:
    """What the coordinates of all tokens, or of the last ones, take; from shapes and lengths alone."""
    if _current.get() is None:
        return
    (N, n), (H, w, s) = tokens.shape[:2], network.tensors["attention.W_Q"].shape
    places, c, table = float(lengths.sum()), network.bottleneck.bias.size, network.tensors.get("embedding.table")
    queries = N if last else places
    embedded = places if table is None else min(places, n * len(table))
    together = embedded * (w + 3 * H * s) if table is not None or tokens.shape[2] == 1 else 0
    one_asks = last or network.unseeing(last) or network.asks_alike
    width, logits = w + 3 * H * s, H * (places if one_asks else float((lengths.astype(float) ** 2).sum()))
    operations = embedded * (network.feedforward.effort(A) + 40.0 * w) + places * width * (w / 2 + 40)
    operations += logits * (2 * s + 70) + queries * (H * s * w / 2 + w * c / 2 + 40.0 * (w + c))
    scratch = 16.0 * (4 * n * (width + network.feedforward.widest) + 8 * n * H + 2 * together + 64 * n * w)
    spend(f"{logits:.2g} logits", operations, scratch + 32.0 * queries * c, 32.0 * queries * (c + 1))
