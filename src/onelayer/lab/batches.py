"""Which rows of a task a step of training sees, and in which pieces all of them are counted.

Between two shuffles every row is seen at most once. Sequences of similar length lie in one batch, and a batch is as
long as its longest sequence: else most of the work would be for padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onelayer.lab.networks import Scope, framework

if TYPE_CHECKING:
    from torch import Tensor

#: Tokens, answers and lengths.
Rows = tuple[Any, Any, Any]
#: Among so many batches, drawn at random, those of similar length are put together.
POOL = 32
#: At most so many tokens are counted at once, and so many outputs: what lies in a cache.
TOKENS, OUTPUTS = 2**12, 2**20


class Batches:
    """Numbers of rows for one step after the other, all of them if there is no smaller ``size``."""

    def __init__(self, count: int, size: int | None, lengths: Tensor | None, seed: int) -> None:
        self.count, self.size, self.lengths = count, size, lengths
        self.generator = framework().Generator().manual_seed(seed)
        self.waiting: list[Tensor] = []

    def draw(self) -> Any:
        if self.size is None or self.size >= self.count:
            return slice(None)
        if not self.waiting:
            self.waiting = self._shuffle(self.size)
        return self.waiting.pop()

    def _shuffle(self, size: int) -> list[Tensor]:
        torch = framework()
        order = torch.randperm(self.count, generator=self.generator)[: self.count // size * size]
        if self.lengths is not None:
            pools = order.split(POOL * size)
            order = torch.cat([pool[self.lengths[pool].argsort(stable=True)] for pool in pools])
        batches = order.split(size)
        if self.lengths is None:
            return list(batches)
        return [batches[i] for i in torch.randperm(len(batches), generator=self.generator)]


def take(data: Rows, rows: Any, scope: Scope) -> Rows:
    """These rows, without padding that none of them needs."""
    tokens, answers, lengths = data
    tokens, answers = tokens[rows], answers[rows]
    if lengths is None:
        return tokens, answers, None
    longest = int(lengths[rows].max())
    return tokens[:, :longest], answers[:, :longest] if scope == "token" else answers, lengths[rows]


def pieces(data: Rows, outputs: int, scope: Scope) -> Iterator[Rows]:
    """All rows, a few at a time, short sequences first."""
    tokens, _, lengths = data
    size = max(1, min(TOKENS, OUTPUTS // outputs) // tokens.shape[1])
    if lengths is None:
        for start in range(0, len(tokens), size):
            yield take(data, slice(start, start + size), scope)
        return
    for rows in lengths.argsort(stable=True).split(4 * size):  # most are far shorter than the longest
        yield take(data, rows, scope)
