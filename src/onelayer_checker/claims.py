"""Judging claims. A verdict is proved, refuted or undecided, and has no truth value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from onelayer_checker import functions
from onelayer_checker.classes import same_class
from onelayer_checker.data import Data
from onelayer_checker.files import Malformed, fields, real
from onelayer_checker.functions import Outcome, Target, read_target
from onelayer_checker.kernel import ARITHMETICS, UP, Arithmetic, Array, Ball, joined
from onelayer_checker.layers import run_stack
from onelayer_checker.network import BLOCK, Network
from onelayer_checker.targets import Program

FIELDS = {"memorizes": {"eps"}, "separated": {"r", "delta"}, "robust": {"radius", "eps"}, "rejects": {"eps"}}
BOX = {"radius", "low", "high", "bound"}
FIELDS |= {"sup_error": BOX | {"measure"}, "lp_error": BOX | {"p"}}
FIELDS |= {"sup_error_everywhere": {"low", "high", "bound"}}
ABOUT_FUNCTIONS = ("sup_error", "lp_error", "sup_error_everywhere")
Progress = Callable[[int, int], None]


#: Samples on which the search is compared with the dense evaluation.
DENSE_SAMPLES = 4


class Disagreement(OSError):
    """Two ways of computing the same thing exclude each other: the checker is wrong, or the machine is unfit."""

    gate = "agreement"


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    why: str  # for proved: the certified value; otherwise the first offending sample
    value: float  # smallest error bound, separation, ... that was certain

    def __bool__(self) -> NoReturn:
        raise TypeError("a verdict is proved, refuted or undecided; compare its outcome")


@dataclass(frozen=True)
class Claim:
    type: str
    arith: Arithmetic
    scope: str
    numbers: dict[str, float]
    target: Target | None = None  # of claims about functions

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value:.6g}" for name, value in self.numbers.items())
        return f"{self.type} ({self.arith.name}, per {self.scope}, {shown})"


def read_claim(entry: Any, where: str) -> Claim:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Malformed("claim", f"{where} has the unknown type {kind!r:.40}")
    about_function = {"target"} if kind in ABOUT_FUNCTIONS else set()
    fields(entry, {"type", "arith", "scope"} | FIELDS[kind] | about_function, where)
    known = isinstance(entry["arith"], str) and entry["arith"] in ARITHMETICS
    if not known or entry["scope"] not in ("token", "sequence", "last"):
        raise Malformed("claim", f"{where} has arith {entry['arith']!r:.20} and scope {entry['scope']!r:.20}")
    numbers = {name: real(entry[name], f"{where}.{name}") for name in sorted(FIELDS[kind])}
    if any(value < 0 for name, value in numbers.items() if name not in ("low", "high")):
        raise Malformed("claim", f"{where} has a negative bound")
    if numbers.get("delta", 1.0) == 0 or numbers.get("p", 1.0) not in range(1, 65):
        raise Malformed("claim", f"{where} has delta = 0, or p that is no whole number from 1 to 64")
    target = read_target(entry["target"], f"{where}.target") if about_function else None
    return Claim(kind, ARITHMETICS[entry["arith"]], entry["scope"], numbers, target)


@dataclass(frozen=True)
class Samples:
    """Every token that is not padding: its sequence, its place in it, and the ball of its coordinates."""

    i: Array
    k: Array
    t: Ball  # [T, c]


class Judge:
    """Judges claims about one network and one data set; coordinates are computed once per arithmetic."""

    def __init__(self, network: Network, data: Data, progress: Progress) -> None:
        self.network, self.data, self.progress = network, data, progress
        self._samples: dict[tuple[str, float, bool], Samples] = {}
        self._answers: dict[tuple[str, float], Ball] = {}

    def samples(self, A: Arithmetic, scope: str, radius: float = 0.0) -> Samples:
        last = scope == "last"
        key = (A.name, radius, last)
        if key not in self._samples:
            N, n, lengths = len(self.data.tokens), self.data.tokens.shape[1], self.data.lengths
            valid = np.ones((N, 1), bool) if last else np.arange(n) < lengths[:, None]
            m, r = [], []
            for rows, t in self.network.coordinates(self.data.tokens, lengths, radius, A, last):
                m.append(t.m[valid[rows]])
                r.append(t.r[valid[rows]])
                self.progress(rows.stop, N)
            i, k = np.nonzero(valid)
            ball = Ball(np.concatenate(m), np.concatenate(r))
            self._samples[key] = Samples(i, lengths - 1 if last else k, ball)
        return self._samples[key]

    def fits(self, claim: Claim) -> None:
        """Refuse a claim that does not go with the network and the data."""
        data = self.data
        if claim.arith.name == "float32" and (self.network.dtype.itemsize != 4 or data.tokens.dtype == np.float64):
            raise Malformed("claim", "a float32 claim needs F32 weights and F32 tokens")
        wanted = int(data.lengths.sum()) if claim.scope == "token" else len(data.lengths)
        if len(data.which) != wanted:
            raise Malformed("data", f"scope {claim.scope} needs {wanted} answers, there are {len(data.which)}")
        if claim.type == "rejects" and data.strangers is None:
            raise Malformed("claim", "there are no strangers to reject")
        if claim.type == "robust" and data.tokens.dtype == np.int64:
            raise Malformed("claim", "robust is about real tokens")
        whole = data.tokens.dtype != np.int64 and (data.lengths == data.tokens.shape[1]).all()
        if claim.type in ABOUT_FUNCTIONS and not (whole and claim.scope != "last"):
            raise Malformed("claim", f"{claim.type} is about all tokens of full sequences of real tokens")
        if isinstance(claim.target, Program):
            f, (n, d), q = claim.target, data.tokens.shape[1:], data.answers.shape[1]
            if (f.n, f.d, f.components, f.per) != (n, d, q, claim.scope):
                raise Malformed("claim", "the target takes or gives other numbers than the network")

    def judge(self, claim: Claim) -> Verdict:
        self.fits(claim)
        with np.errstate(all="ignore"):  # infinity and NaN are results here, and never satisfy a comparison
            if claim.type == "rejects":
                assert self.data.strangers is not None
                unknown = Judge(self.network, self.data.strangers, self.progress)
                return _memorizes(claim, self.network, unknown.data, unknown.samples(claim.arith, claim.scope))
            if claim.type == "sup_error_everywhere":
                return Verdict(*functions.judge_everywhere(claim, self.network))
            samples = self.samples(claim.arith, claim.scope, claim.numbers.get("radius", 0.0))
            if claim.type in ABOUT_FUNCTIONS:
                return self._near_function(claim, samples)
            if claim.type == "separated":
                return _separated(claim, self.network, self.data, samples)
            return _memorizes(claim, self.network, self.data, samples)

    def _near_function(self, claim: Claim, samples: Samples) -> Verdict:
        """Claims about functions share the answers on the balls around the stored sequences."""
        readout, key = self.network.readout, (claim.arith.name, claim.numbers["radius"])
        if key not in self._answers:
            step = max(1, BLOCK // readout.widest)
            starts = range(0, len(samples.i), step)
            self._answers[key] = joined(
                [readout.apply(samples.t[a : a + step], claim.arith) for a in starts], axis=0
            )
            _compare_densely(claim, self.network, samples)
        out = self._answers[key].reshape(*self.data.tokens.shape[:2], -1)
        return Verdict(*functions.judge(claim, self.network, self.data, out))


def _memorizes(claim: Claim, network: Network, data: Data, samples: Samples) -> Verdict:
    A, eps, worst, undecided = claim.arith, claim.numbers["eps"], 0.0, ""
    step = max(1, 4 * BLOCK // network.readout.widest)
    for start in range(0, len(samples.i), step):
        rows = slice(start, start + step)
        i, k, t = samples.i[rows], samples.k[rows], samples.t[rows]
        wanted = data.answers[data.which[rows if claim.scope == "token" else i] if data.which.size else [0]]
        out = network.readout.apply(t, A)
        value, r = out.m, out.r
        error = np.abs(value - wanted) * UP
        bound = ((error + r) * UP).max(axis=1)
        wrong = np.flatnonzero((error / UP / UP - r * UP > eps).any(axis=1))
        if wrong.size:
            at = int(wrong[0])
            right = np.broadcast_to(wanted, value.shape)[at]
            return Verdict("refuted", f"sequence {i[at]}, token {k[at]} answers {value[at]}, not {right}", np.inf)
        open_ = np.flatnonzero(~(bound <= eps))
        if open_.size and not undecided:
            at = int(open_[0])
            undecided = (
                f"sequence {i[at]}, token {k[at]}: coordinates {t.m[at]} +- {t.r[at]} do not settle the answer"
            )
        worst = max(worst, float(bound.max()))
    _compare_densely(claim, network, samples)
    if undecided:
        return Verdict("undecided", undecided, worst)
    return Verdict("proved", f"{len(samples.i)} answers, largest error {worst:.6g}", worst)


def _compare_densely(claim: Claim, network: Network, samples: Samples) -> None:
    """The dense evaluation is the definition: on a few samples it must contain what the search found."""
    if not network.readout.hots:
        return
    few = np.unique(np.linspace(0, len(samples.i) - 1, DENSE_SAMPLES).astype(int))
    t = samples.t[few]
    found, dense = network.readout.apply(t, claim.arith), run_stack(network.readout.layers, t, claim.arith)
    outside = np.isfinite(found.r) & (np.abs(found.m - dense.m) > (found.r + dense.r) * UP)
    if outside.any():
        at = int(few[int(np.argmax(outside.any(axis=1)))])
        where = f"sequence {samples.i[at]}, token {samples.k[at]}"
        raise Disagreement(f"search and dense evaluation disagree at {where}")


def _separated(claim: Claim, network: Network, data: Data, samples: Samples) -> Verdict:
    i, k, low, high = samples.i, samples.k, samples.t.low, samples.t.high
    r, delta = claim.numbers["r"], claim.numbers["delta"]
    size = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    if not (size <= r).all():
        at = int(np.argmax(~(size <= r)))
        return Verdict(
            "undecided", f"sequence {i[at]}, token {k[at]} may have a coordinate of size {size[at]:.6g}", 0.0
        )
    order = np.argsort(low[:, 0], kind="stable")
    i, k, ends = i[order], k[order], [(a[order], z[order]) for a, z in zip(low.T, high.T, strict=True)]

    def apart(c: int, a: Array, b: Array) -> Array:
        low, high = ends[c]
        return np.asarray(np.nextafter(np.maximum(low[b] - high[a], low[a] - high[b]), -np.inf))

    smallest = np.inf
    left, step = np.arange(len(i) - 1), 1  # samples that still have a near neighbour further along the order
    while left.size:
        gap = apart(0, left, left + step)
        smallest = min(smallest, float(gap.min(where=gap >= delta, initial=np.inf)))
        # `low` is sorted along the first coordinate: what comes later is at least as far away there.
        left = near = left[gap < delta]
        for c in range(1, len(ends)):
            near = near[apart(c, near, near + step) < delta]
        same = same_class(data, network, claim.scope, i[near], k[near], i[near + step], k[near + step])
        for a in near[~same][:1]:
            pair = f"sequence {i[a]}, token {k[a]} and sequence {i[a + step]}, token {k[a + step]}"
            most = max(0.0, *(float(apart(c, a, a + step)) for c in range(len(ends))))
            return Verdict("undecided", f"{pair} are certainly apart only by {most:.6g}", 0.0)
        left, step = left[left + step + 1 < len(i)], step + 1
    certain = smallest if low.shape[1] == 1 else delta  # in one coordinate, neighbours are all there is to look at
    return Verdict("proved", f"{len(i)} samples, classes at least {certain:.6g} apart", certain)
