"""The second engine: claims in real arithmetic, judged over Arb balls instead of the kernel's. Needs python-flint.

Arb works at a precision that can be raised, so this engine also decides what float64 midpoints cannot, and refutes.
Bounds leave Arb rounded outward to float64, in which claims are written (what is false by less than that stays
undecided); coordinates that this does not tell apart are subtracted inside Arb. python-flint has one precision per
process, so parallel work is done by processes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from onelayer_checker.arb.graph import Array, Flint, Graph, Stack, outward
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.classes import same_class
from onelayer_checker.core.graph import Network
from onelayer_checker.core.samples import Data

MOST_BITS = 8192  # the last precision tried, after the first times 4, 16, ...
MOST_WORK = 1 << 28  # products of 128 bits, about, that may go into trying again
MOST_DENSE = 1 << 31  # products over all tokens in layers that no search shortens
MOST_PAIRS = 1 << 26  # pairs of samples that are near in their first coordinate
LEAST = 4096  # tokens for which it pays to start processes


class Unfit(OSError):
    """This engine cannot run, or the engines disagree; ``gate`` says which."""

    def __init__(self, gate: str, why: str) -> None:
        self.gate = gate
        super().__init__(why)


def load() -> Flint:
    try:
        import flint
    except ImportError:
        why = "the engine Arb needs python-flint, which is not installed (pip install python-flint)"
        raise Unfit("flint", why) from None
    return flint


def enclose(
    tensors: dict[str, Array], bits: int, radius: float, tokens: Array, lengths: Array, keep: Array, answers: Array
) -> Array:
    """Bounds of the coordinates, and of the largest error, of each token in ``keep``: [samples, c + 1, 2]."""
    flint = load()
    with flint.ctx.workprec(bits):
        graph, flat = Graph(flint, tensors), array("d")  # millions of small lists would keep the collector busy
        for t, answer in zip(graph.samples(tokens, lengths, keep, radius), answers, strict=True):
            for x in t:
                flat.extend(outward(x))
            flat.extend(graph.error(t, answer.tolist()))
    return np.array(flat).reshape(len(answers), -1, 2)


def in_processes(tasks: list[tuple[Any, ...]]) -> list[Array]:
    """`enclose` for every task in a process of its own, over a pipe that breaks if either end dies."""
    context, started = get_context("spawn"), []
    for task in tasks:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(sender, task), daemon=True)
        process.start()
        sender.close()
        started.append((process, receiver))
    try:
        found = [receiver.recv() for _, receiver in started]
    except EOFError:
        raise Unfit("processes", "a process of the engine Arb died; with --jobs 1 there is none") from None
    for process, _ in started:
        process.join()
    return found


def _send(sender: Connection, task: tuple[Any, ...]) -> None:
    sender.send(enclose(*task))


class Engine:
    """Judges claims in real arithmetic about one network and one data set."""

    def __init__(self, network: Network, data: Data, jobs: int, bits: int) -> None:
        load()
        self.network, self.data, self.jobs = network, data, jobs
        N, n = data.tokens.shape[:2]
        spend(f"{N * n:,} tokens for Arb", kept=20.0 * N * n)
        self.levels = [bits, *(b for b in (4 * bits, 16 * bits, 64 * bits) if b <= MOST_BITS)]
        self.valid = np.arange(data.tokens.shape[1]) < data.lengths[:, None]
        self.i, self.k = np.nonzero(self.valid)
        self.answers = data.which if len(data.which) == len(self.i) else data.which[self.i]
        self.dense = sum(Stack(network.tensors, *stack).work for stack in (("feedforward", 0), ("readout", 1)))
        self.left = MOST_WORK
        self._bounds: dict[float, Array] = {}

    def judge(self, claim: Claim) -> Verdict:
        if self.dense * len(self.i) > MOST_DENSE:
            return Verdict("undecided", f"{self.dense:,} products per token in full layers are too many", 0.0)
        with np.errstate(all="ignore"):  # infinity is a bound like any other
            return self._decide_separated(claim) if claim.type == "separated" else self._memorizes(claim)

    def bounds(self, radius: float) -> Array:
        """[samples, c + 1, 2], see `enclose`; finer where a claim needed it."""
        if radius not in self._bounds:
            self._bounds[radius] = self._evaluate(np.arange(len(self.i)), self.levels[0], radius)
        return self._bounds[radius]

    def agree(self, claim: Claim, m: Array, r: Array, kernel: Verdict, own: Verdict) -> None:
        """Refuse to go on where the kernel's ball m +- r of a coordinate has no number in common with Arb's."""
        if self.dense * len(self.i) > MOST_DENSE:
            return  # nothing was evaluated, and nothing decided
        low, high = self.bounds(claim.numbers.get("radius", 0.0))[:, :-1].transpose(2, 0, 1)
        with np.errstate(all="ignore"):  # rounding is monotone: a difference of at most r stays one
            apart = np.argwhere(np.maximum(low - m, m - high) > r)
        for s, c in apart[:1].tolist():
            balls = f"{m[s, c]} +- {r[s, c]} for the kernel, in [{low[s, c]}, {high[s, c]}] for Arb"
            raise Unfit("engines", f"{claim}: {self._name(s)}: coordinate {c} is {balls}")
        if {kernel.outcome, own.outcome} == {"proved", "refuted"}:
            raise Unfit("engines", f"{claim}: {kernel.outcome}, {kernel.why}; but Arb: {own.outcome}, {own.why}")

    def _name(self, s: int) -> str:
        return f"sequence {self.i[s]}, token {self.k[s]}"

    def _evaluate(self, samples: Array, bits: int, radius: float) -> Array:
        n, d = self.valid.shape[1], self.network.tensors["attention.W_Q"].shape[1]
        work = 50.0 * len(samples) * (n * (16 + d) + self.dense) * (bits / 128)
        spend(f"{len(samples):,} samples for Arb", work, 64.0 * n * n * self.jobs)
        keep, data, i = np.zeros_like(self.valid), self.data, self.i[samples]
        keep[i, self.k[samples]] = True
        rows = np.flatnonzero(keep.any(axis=1))
        jobs = min(self.jobs, len(rows)) if len(samples) >= LEAST else 1
        tasks = []
        for part in np.array_split(rows, jobs):
            own = self.answers[samples[(part[0] <= i) & (i <= part[-1])]]
            which = (data.tokens[part], data.lengths[part], keep[part], data.answers[own])
            tasks.append((self.network.tensors, bits, radius, *which))
        return enclose(*tasks[0]) if jobs == 1 else np.concatenate(in_processes(tasks))

    def _affords(self, samples: int, bits: int) -> bool:
        n, d = self.valid.shape[1], self.network.tensors["attention.W_Q"].shape[1]
        cost = samples * (n * (16 + d) + self.dense) * bits // 128
        affords = bool(cost <= self.left)
        self.left -= cost if affords else 0
        return affords

    def _settle(self, radius: float, is_open: Callable[[Array], Array]) -> Array:
        """Bounds, the samples that are open having been evaluated with more bits. A radius does not shrink so."""
        bounds = self.bounds(radius)
        for bits in self.levels[1:] if radius == 0 else ():
            samples = np.flatnonzero(is_open(bounds))
            if not samples.size or not self._affords(len(samples), bits):
                break
            bounds[samples] = self._evaluate(samples, bits, radius)
        return bounds

    def _memorizes(self, claim: Claim) -> Verdict:
        eps, radius = claim.numbers["eps"], claim.numbers.get("radius", 0.0)
        bounds = self._settle(radius, lambda b: (b[:, -1, 0] <= eps) & (b[:, -1, 1] > eps))
        low, high = bounds[:, -1].T
        for s in np.flatnonzero(low > eps)[:1]:
            wanted = self.data.answers[self.answers[s]]
            return Verdict("refuted", f"{self._name(s)} is off by at least {low[s]:.6g}, not {wanted}", np.inf)
        for s in np.flatnonzero(high > eps)[:1]:
            return Verdict("undecided", f"{self._name(s)} is off by {low[s]:.6g} to {high[s]:.6g}", np.inf)
        return Verdict("proved", f"{len(high)} answers, largest error {high.max():.6g}", float(high.max()))

    def _decide_separated(self, claim: Claim) -> Verdict:
        r, delta = claim.numbers["r"], claim.numbers["delta"]
        low, high = self._settle(0.0, lambda b: _sizes(b, r))[:, :-1].transpose(2, 0, 1)
        for s in np.flatnonzero(high.max(axis=1) > r)[:1]:
            size = f"{self._name(s)} has a largest coordinate in [{low[s].max():.6g}, {high[s].max():.6g}]"
            return Verdict("refuted" if low[s].max() > r else "undecided", size, 0.0)
        found = self._near(low, high, delta, claim.scope)
        if found is None:
            return Verdict("undecided", f"more than {MOST_PAIRS:,} pairs are near in their first coordinate", 0.0)
        a, b = found
        for bits in self.levels:
            if not a.size or not self._affords(2 * len(a), bits):
                break
            gap = self._gaps(a, b, bits)
            for p in np.flatnonzero(gap[:, 1] < delta)[:1]:
                pair = f"{self._name(a[p])} and {self._name(b[p])}"
                return Verdict("refuted", f"{pair} are apart only by {gap[p, 1]:.6g}", 0.0)
            a, b = (x[gap[:, 0] < delta] for x in (a, b))
        if a.size:
            return Verdict("undecided", f"{self._name(a[0])} and {self._name(b[0])} may be too near", 0.0)
        return Verdict("proved", f"{len(low)} samples, classes at least {delta:.6g} apart", delta)

    def _near(self, low: Array, high: Array, delta: float, scope: str) -> tuple[Array, Array] | None:
        """Pairs of samples of different classes that the bounds do not show to be delta apart."""
        reach = np.nextafter(high + delta, np.inf)  # what is not below is apart
        order = np.argsort(low[:, 0], kind="stable")
        count = np.searchsorted(low[order, 0], reach[order, 0]) - np.arange(len(order)) - 1
        if count.sum() > MOST_PAIRS:
            return None
        pairs = []
        for start in range(0, len(order), 1 << 16):
            mine = count[start : start + (1 << 16)]
            before = np.cumsum(mine) - mine
            left = np.repeat(np.arange(start, start + len(mine)), mine)
            right = left + 1 + np.arange(len(left)) - np.repeat(before, mine)
            a, b = order[left], order[right]
            near = ~((low[b] >= reach[a]) | (low[a] >= reach[b])).any(axis=1)
            a, b = a[near], b[near]
            spend("comparing equal samples", 2e4 * len(a))
            other = ~same_class(self.data, self.network, scope, self.i[a], self.k[a], self.i[b], self.k[b])
            pairs.append((a[other], b[other]))
        a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return a, b

    def _gaps(self, a: Array, b: Array, bits: int) -> Array:
        """Bounds of the largest distance of two samples along a coordinate, subtracted inside Arb: [pairs, 2]."""
        flint = load()
        with flint.ctx.workprec(bits):
            graph = Graph(flint, self.network.tensors)
            t, u = (graph.samples(*self._single(s), 0.0) for s in (a, b))
            gaps = [[outward(abs(x - y)) for x, y in zip(*pair, strict=True)] for pair in zip(t, u, strict=True)]
        return np.asarray(np.array(gaps).max(axis=1))

    def _single(self, samples: Array) -> tuple[Array, Array, Array]:
        i, k = self.i[samples], self.k[samples]
        return self.data.tokens[i], self.data.lengths[i], k[:, None] == np.arange(self.valid.shape[1])


def _sizes(bounds: Array, r: float) -> Array:
    """Where it is open whether the coordinates, which are not negative, are at most r."""
    return np.asarray((bounds[:, :-1, 1].max(axis=1) > r) & (bounds[:, :-1, 0].max(axis=1) <= r))
