"""Judging claims about stored answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onelayer_checker.core.balls import UP, Arithmetic, Array, Ball, joined
from onelayer_checker.core.budget import spend, spend_on_coordinates
from onelayer_checker.core.claims import KINDS, SMALL, Claim, Kind, Verdict, kind_of
from onelayer_checker.core.exactness import is_number
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import BLOCK, Network
from onelayer_checker.core.layers import Stack
from onelayer_checker.core.processes import side_by_side
from onelayer_checker.core.samples import Data

Progress = Callable[[int, int], None]

#: At most so many sequences on which the layers before attention are compared.
COMPARED = 64


class Disagreement(OSError):
    """Two ways of computing the same thing exclude each other: the checker is wrong, or the machine is unfit."""

    gate = "agreement"


@dataclass(frozen=True)
class Samples:
    """Every token that is not padding: its sequence, its place in it, and the ball of its coordinates."""

    i: Array
    k: Array
    t: Ball  # [T, c]


class Judge:
    """Judges claims about one network and one data set; coordinates are computed once per arithmetic."""

    def __init__(
        self,
        network: Network,
        data: Data,
        progress: Progress = lambda *_: None,
        jobs: int = 1,
        compare: bool = True,
    ) -> None:
        self.network, self.data, self.progress, self.jobs, self.compare = network, data, progress, jobs, compare
        self._samples: dict[tuple[str, float, bool], Samples] = {}
        self.proved: list[tuple[Claim, Verdict]] = []
        self.memo: dict[Hashable, Any] = {}  # for what other rings compute once

    def samples(self, A: Arithmetic, scope: str, radius: float = 0.0) -> Samples:
        last = scope == "last"
        key = (A.name, radius, last)
        if key not in self._samples:
            tokens, lengths, network = self.data.tokens, self.data.lengths, self.network
            N, n = tokens.shape[:2]
            spend_on_coordinates(network, tokens, lengths, A, last)
            valid = np.ones((N, 1), bool) if last else np.arange(n) < lengths[:, None]
            known = network.known(tokens, radius, A, lengths.mean() / n)

            def run(start: int, stop: int) -> Ball:
                found, order, done = [], [], start
                for rows in of_like_lengths(lengths[start:stop]):
                    some = lengths[start:stop][rows]
                    X, seen, most = tokens[start:stop][rows], valid[start:stop][rows], int(some.max())
                    own = None if known is None else known.at(slice(start, stop)).at(rows, most)
                    for part, t in network.coordinates(X[:, :most], some, radius, A, last, own):
                        found.append(t[seen[part][:, : t.m.shape[1]]])
                        self.progress(done + part.stop, N)
                    order.append(np.arange(stop - start)[rows])
                    done += len(some)
                at = np.concatenate(order)
                back = np.argsort(np.repeat(at, valid[start:stop][at].sum(axis=1)), kind="stable")
                return joined(found, axis=0)[back if len(order) > 1 else slice(None)]

            parts = side_by_side(self.jobs, N, N * n, run, lambda done: self.progress(done, N))
            i, k = np.nonzero(valid)
            self._samples[key] = Samples(i, lengths - 1 if last else k, joined(parts, axis=0))
        return self._samples[key]

    def has(self, A: Arithmetic, scope: str) -> bool:
        """Whether the coordinates of stored tokens have been computed."""
        return (A.name, 0.0, scope == "last") in self._samples

    def fits(self, claim: Claim) -> None:
        """Refuse a claim that does not go with the network and the data."""
        data = self.data
        if claim.arith == "float32" and (self.network.dtype.itemsize != 4 or data.tokens.dtype == np.float64):
            raise Malformed("claim", "a float32 claim needs F32 weights and F32 tokens")
        if claim.arith in SMALL:
            reals = [data.tokens] if data.strangers is None else [data.tokens, data.strangers.tokens]
            reals = [a.astype(np.float64) for a in reals if a.dtype != np.int64]
            if not all(is_number(a, claim.A).all() for a in (*self.network.tensors.values(), *reals)):
                raise Malformed("claim", f"a {claim.arith} claim needs weights and tokens that are numbers of it")
        wanted = int(data.lengths.sum()) if claim.scope == "token" else len(data.lengths)
        if len(data.which) != wanted:
            raise Malformed("data", f"scope {claim.scope} needs {wanted} answers, there are {len(data.which)}")
        classes, outputs = data.answers[:, 0], self.network.readout.outputs
        if claim.type == "argmax":
            whole = (classes == np.floor(classes)) & (classes >= 0) & (classes < outputs)
            if data.answers.shape[1] != 1 or outputs < 2 or not whole.all():
                raise Malformed("claim", "argmax needs two outputs or more, and answers that are numbers of them")
        elif claim.type != "separated" and data.answers.shape[1] != outputs:
            raise Malformed("claim", "each class has an output: only argmax is about such answers")
        if claim.type == "rejects" and data.strangers is None:
            raise Malformed("claim", "there are no strangers to reject")
        if claim.type == "robust" and data.tokens.dtype == np.int64:
            raise Malformed("claim", "robust is about real tokens")

    def judge(self, claim: Claim) -> Verdict:
        self.fits(claim)
        for stronger, verdict in self.proved:
            if stronger == claim:
                return verdict
            if stronger.implies(claim):
                return replace(verdict, why=f"{verdict.why}, as in {stronger.arith}")
        with np.errstate(all="ignore"):  # infinity and NaN are results here, and never satisfy a comparison
            verdict = kind_of(claim.type).judge(self, claim)
        if verdict.outcome == "proved":
            self.proved.append((claim, verdict))
        return verdict

    def compare_ways(self, samples: Samples, A: Arithmetic, readout: Stack | None = None) -> None:
        """Refuse to go on where a faster evaluation of the readout contradicts the dense one."""
        key = ("compared", A.name, id(samples), readout is None)
        if key in self.memo or not self.compare:
            return
        for at in (readout or self.network.readout).disagrees(samples.t, A)[:1]:
            where = f"sequence {samples.i[at]}, token {samples.k[at]}"
            raise Disagreement(f"search and dense evaluation disagree at {where}")
        N = len(self.data.tokens)
        some = np.linspace(0, N - 1, min(N, COMPARED)).astype(int)
        tokens = self.data.tokens[some]
        for at in self.network.feedforward.disagrees(self.network.lifted(tokens, 0.0, A), A)[:1]:
            i, k = divmod(int(at), tokens.shape[1])
            where = f"sequence {some[i]}, token {k}"
            raise Disagreement(f"search and dense evaluation disagree before attention at {where}")
        self.memo[key] = samples


def of_like_lengths(lengths: Array) -> list[Array] | list[slice]:
    """Sequences of about one length together, so that few rows are padding; all of them where lengths are equal."""
    size = np.floor(4 * np.log2(lengths)).astype(np.intp)
    sizes = np.flatnonzero(np.bincount(size))
    return [slice(None)] if len(sizes) == 1 else [np.flatnonzero(size == one) for one in sizes]


def _memorizes(judge: Judge, claim: Claim) -> Verdict:
    """Every stored answer comes back, also (robust) where every component of a token is moved by up to a radius."""
    return _stored(judge, claim, judge.samples(claim.A, claim.scope, claim.numbers.get("radius", 0.0)))


def _rejects(judge: Judge, claim: Claim) -> Verdict:
    """The same for the strangers, whose answer is the default."""
    assert judge.data.strangers is not None
    unknown = Judge(judge.network, judge.data.strangers, judge.progress, judge.jobs)
    return _stored(unknown, claim, unknown.samples(claim.A, claim.scope))


def _stored(judge: Judge, claim: Claim, samples: Samples) -> Verdict:
    """Compare the answers of all samples with the stored ones."""
    count = len(samples.i)
    work = judge.network.readout.effort(claim.A) + 40.0 * judge.data.answers.shape[1]
    spend(f"{count:,} answers", count * work)
    run = partial(_answers, judge, claim, samples)
    found = side_by_side(judge.jobs, count, count, run, lambda _: None)
    for verdict in sorted(found, key=lambda verdict: verdict.outcome != "refuted"):
        if verdict.outcome != "proved":
            break
    else:
        worst = max(verdict.value for verdict in found)
        verdict = Verdict("proved", f"{count} answers, largest error {worst:.6g}", worst)
    judge.compare_ways(samples, claim.A)
    return verdict


def _answers(judge: Judge, claim: Claim, samples: Samples, first: int, last: int) -> Verdict:
    """The same for some of the samples. Theorem: proofs/Judge.v judge_proved, judge_exact, judge_refuted."""
    data, readout, eps, worst, undecided = judge.data, judge.network.readout, claim.numbers["eps"], 0.0, ""
    step = max(1, 4 * BLOCK // readout.widest)
    for start in range(first, last, step):
        rows = slice(start, min(start + step, last))
        i, k, t = samples.i[rows], samples.k[rows], samples.t[rows]
        wanted = data.answers[data.which[rows if claim.scope == "token" else i] if data.which.size else [0]]
        out = readout.apply(t, claim.A)
        open_ = np.flatnonzero(~((out.m == wanted) & (out.r == 0)).all(axis=1))
        if not open_.size:  # all of them exactly
            continue
        i, k, t, value, r = i[open_], k[open_], t[open_], out.m[open_], out.r[open_]
        wanted = np.broadcast_to(wanted, out.m.shape)[open_]
        error = np.abs(value - wanted) * UP
        bound = ((error + r) * UP).max(axis=1)
        wrong = np.flatnonzero((error / UP / UP - r * UP > eps).any(axis=1))
        if wrong.size:
            at = int(wrong[0])
            why = f"sequence {i[at]}, token {k[at]} answers {value[at]}, not {wanted[at]}"
            return Verdict("refuted", why, np.inf)
        open_ = np.flatnonzero(~(bound <= eps))
        if open_.size and not undecided:
            at = int(open_[0])
            undecided = (
                f"sequence {i[at]}, token {k[at]}: coordinates {t.m[at]} +- {t.r[at]} do not settle the answer"
            )
        worst = max(worst, float(bound.max()))
    return Verdict("undecided" if undecided else "proved", undecided, worst)


KINDS |= {
    "memorizes": Kind(frozenset({"eps"}), _memorizes),
    "robust": Kind(frozenset({"radius", "eps"}), _memorizes),
    "rejects": Kind(frozenset({"eps"}), _rejects),
}
