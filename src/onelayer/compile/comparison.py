"""Which route: what the first one that separates costs is compared with what others would, in numbers and in proof.

The search takes the first route whose margin is safe. That may be many times larger than another: plateaus cost a
few numbers for each run of equal answers, packed cells a fraction of a number for each answer. So where nobody
chose a mapping, readout or rank, those of the others are tried that might be half as large, and the smallest is
taken; of nearly equal ones, that whose proof takes least. `bits` is left to those who ask for it: it may be half as
large for a thousand answers, but building and proving it takes twenty to sixty times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onelayer.errors import HypothesisError, PrecisionError
from onelayer.gadgets.stacks import layers_of
from onelayer.ledger import Constant
from onelayer.readouts import packed_sizes
from onelayer.search.problem import Problem
from onelayer.search.routes import BestCandidate, Step, search

#: By less, nothing is worth another dtype or another architecture than those of the first.
WORTH = 1.75
#: Sizes that are as good as equal.
NEARLY = 1.25
#: Up to this many answers another search takes a fraction of a second.
FEW_ANSWERS = 1 << 16
#: Fewer are read off a line in fewer numbers than the layers before a lattice take.
FEW_FOR_A_LATTICE = 1 << 9
SMALLEST = "the smallest of the routes that were compared"
CODED = "no direction tells all tokens apart: thresholds on their components do, and give them whole-number codes"
#: Numbers that a table on a line takes for an answer, about.
TABLE = 2.1
#: CPU microseconds that a proof takes for an answer, and for an answer and a thousand parameters of the readout.
PROOF, PROOF_BY_SIZE = (
    {"packed": 12.0, "retrieval": 16.0, "table": 12.0, "bits": 20.0},
    {"plateaus": 0.8, "boxes": 0.8},
)


@dataclass(frozen=True)
class Candidate:
    problem: Problem
    found: BestCandidate

    @cached_property
    def parameters(self) -> int:
        return count_parameters(self.found)

    @cached_property
    def proof_seconds(self) -> float:
        """About what a proof of all answers takes."""
        fitted, answers = self.found.fit.readout, len(self.problem.answers.rows)
        assert fitted is not None
        each = PROOF.get(fitted.kind, 8.0) + PROOF_BY_SIZE.get(fitted.kind, 0.0) * fitted.parameters / 1000
        return 1e-6 * each * answers

    def __str__(self) -> str:
        fitted = self.found.fit.readout
        assert fitted is not None
        size = f"{self.parameters:,} parameters, proof about {self.proof_seconds:.2g} s"
        return f"{self.found.route.mapping} and {fitted.kind} in {self.problem.dtype}: {size}"


def smallest(problem: Problem, on_step: Step | None = None) -> tuple[Problem, BestCandidate, tuple[Constant, ...]]:
    """The route to take, the problem in its dtype, and a line of the ledger about what was compared."""
    settled = replace(problem, dtype_is_free=False)
    try:
        float64_is_next = problem.dtype_is_free and problem.dtype == np.float32
        first = Candidate(settled, search(settled, on_step, float64_is_next))
    except PrecisionError:
        if not _coded_first(problem):
            raise
        coded = replace(settled, mapping="lattice")
        first = _as_if_not_asked_for(problem, Candidate(coded, search(coded, on_step)), CODED)
    compared = [first]
    for other in _others(problem, first):
        try:
            compared.append(_as_if_not_asked_for(problem, Candidate(other, search(other, on_step)), SMALLEST))
        except HypothesisError:
            continue
    if len(compared) == 1:
        return first.problem, first.found, ()
    least = min(candidate.parameters for candidate in compared)
    near = [candidate for candidate in compared if candidate.parameters <= NEARLY * least]
    best = first if first.parameters <= WORTH * least else min(near, key=lambda candidate: candidate.proof_seconds)
    listed = "; ".join(str(candidate) for candidate in compared)
    return best.problem, best.found, (Constant("routes", len(compared), f"compared: {listed}"),)


def _coded_first(problem: Problem) -> bool:
    """Whether whole-number codes of tokens are left to try: float32 has tried them, and a person may not want them.

    A direction that reads several components, or one of very different sizes, rounds the small ones away; steps
    that compare each component with thresholds do not.
    """
    free = problem.mapping == "auto" and problem.rank is None and problem.readout in ("auto", "table")
    return free and problem.dtype == np.float64


def _as_if_not_asked_for(problem: Problem, tried: Candidate, why: str) -> Candidate:
    """A route that was asked for here, and not by a person."""
    fit = tried.found.fit
    assert fit.readout is not None
    found = replace(tried.found, route=replace(tried.found.route, why=why))
    found = replace(found, fit=replace(fit, readout=replace(fit.readout, compared=why)))
    return Candidate(replace(problem, dtype=tried.problem.dtype, dtype_is_free=False), found)


def _others(problem: Problem, first: Candidate) -> Iterator[Problem]:
    """The same problem, to be searched where something half as large may be found."""
    free = problem.mapping == problem.readout == "auto" and problem.rank is None and problem.default is None
    answers, settled = len(problem.answers.rows), replace(first.problem, dtype_is_free=False)
    if not free or answers < FEW_FOR_A_LATTICE:
        return
    if first.found.route.mapping != "lattice":
        if first.parameters > WORTH * _on_a_lattice(first):
            yield replace(settled, mapping="lattice")
        if first.parameters > WORTH * TABLE * first.found.fit.distinct and first.found.route.rank == 1:
            yield replace(settled, mapping=first.found.route.mapping, readout="table", rank=1)
    elif answers <= FEW_ANSWERS:
        by_line = "shared_query" if problem.answers.form.scope == "sequence" else "temperature"
        yield replace(settled, mapping=by_line, rank=1)
        if problem.dtype_is_free and settled.dtype == np.float32:
            yield replace(settled, mapping=by_line, rank=1, dtype=np.dtype(np.float64))


def _on_a_lattice(first: Candidate) -> float:
    """About the fewest parameters of a lattice that is read off by packed cells; without the layers before it."""
    classes = first.problem.answers.form.classes
    count = len(np.unique(first.problem.answers.rows, axis=0)) if classes is None else len(classes)
    listed = 0 if classes is not None else 8 * count
    ways = packed_sizes.shapes(first.found.fit.distinct, max(count, 2), np.inf)
    return float(listed + ways[0].parameters) if ways else np.inf


def count_parameters(found: BestCandidate) -> int:
    """Every number of the model, without building it."""
    c, fitted = found.context_map, found.fit.readout
    assert fitted is not None
    arrays = [c.attention.W_Q, c.attention.W_K, c.attention.W_V, c.attention.W_O, c.attention.b_Q]
    arrays += [c.bottleneck.weight, c.bottleneck.bias]
    arrays += [array for layer in layers_of(c.feedforward) for array in (layer.weight, layer.bias)]
    if c.embedding is not None:
        arrays += [c.embedding.lift, c.embedding.table, c.embedding.bias, c.embedding.positions]
    return sum(array.size for array in arrays if array is not None) + fitted.parameters
