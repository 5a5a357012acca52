"""The search for contexts: mappings and ranks in order, random candidates of each, refusals that name the pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts import lattice, tallies
from onelayer.contexts.head import ContextMap
from onelayer.contexts.mapping import MAPPINGS, ContextMapping, Wanted
from onelayer.contexts.stream import RealStream, Stream, open_stream
from onelayer.errors import HypothesisError, PrecisionError
from onelayer.problems.consistency import Contexts, Place, refuse_contradictions
from onelayer.readouts import packed_sizes
from onelayer.readouts.fit import Separability, fit
from onelayer.readouts.method import READOUTS, Task
from onelayer.search.options import check_options
from onelayer.search.problem import Problem

Array = NDArray[Any]
Step = Callable[[str], None]
Built = TypeVar("Built")

#: A mapping is given up after this many candidates that came nowhere near.
HOPELESS_AFTER, HOPELESS_MARGIN = 3, 0.05
MAX_AUTO_RANK = 6
#: Where a far smaller readout was expected, the first attempt is drawn again so often, with seeds from here on.
REDRAWS, OTHER_SEEDS = 4, 1 << 20
VERY_LARGE_TABLE = 1 << 21
#: With a default, plateaus are no wider than rounding asks for: gaps that leave this margin need not be wider.
ROOMY = 1.5
#: Sequences of fewer components, all tokens counted, are not told from unknown inputs by the cells of a lattice.
FEWEST_COMPONENTS = 3
#: Answers from which on fingerprints are worth two more coordinates.
FEWEST_PRINTED = 6144
#: Up to this many answers float32 tries the published head first; beyond, its ids are too close together.
SMALL_FOR_FLOAT32 = 512


@dataclass(frozen=True)
class MappingChoice:
    """A mapping of some rank, and why it is tried."""

    mapping: str
    rank: int
    why: str

    @property
    def kind(self) -> type[ContextMapping]:
        return MAPPINGS[self.mapping]


@dataclass(frozen=True)
class BestCandidate:
    """The best candidate of a route: it separates the answers if its fit has a readout."""

    route: MappingChoice
    context_map: ContextMap
    fit: Separability
    attempts: int

    @property
    def bits_needed(self) -> float:
        """log2(4 span/gap): bits that resolve a quarter of the smallest gap over the span of the ids."""
        span = self.context_map.span
        gap = min(self.fit.answer_gap, self.fit.gap)
        return float(np.log2(span / gap) + 2) if 0 < gap < np.inf and span > 0 else 1.0


def in_a_dtype_that_does(problem: Problem, build: Callable[[Problem], Built]) -> Built:
    """What `build` makes of the problem; in float64 if float32, which nobody asked for, is too small for it."""
    try:
        return build(problem)
    except PrecisionError:
        if not (problem.dtype_is_free and problem.dtype == np.float32):
            raise
    return build(replace(problem, dtype=np.dtype(np.float64)))


def search(problem: Problem, on_step: Step | None = None, float64_is_next: bool = False) -> BestCandidate:
    """Try the routes in order, in the dtype of the problem; the first whose margin is safe. Where float64 is tried
    next, float32 is given up as soon as its bits do not suffice."""
    check_options(problem)
    stream, automatic = open_stream(problem.sequences, problem.dtype, problem.positions), problem.mapping == "auto"
    last: BestCandidate | HypothesisError | None = None
    for route in routes(problem):
        if on_step is not None:
            on_step(f"looking for contexts: {route.mapping}, rank {route.rank}, {problem.arithmetic}")
        found = _search_route(problem, stream, route, automatic)
        if isinstance(found, BestCandidate) and found.fit.readout is not None and found.fit.margin >= 1:
            return found
        if isinstance(found, PrecisionError) and float64_is_next and len(problem.answers.rows) > SMALL_FOR_FLOAT32:
            raise found  # ids that are not whole numbers are closer together still
        last = last if isinstance(last, BestCandidate) and not isinstance(found, BestCandidate) else found
    assert last is not None
    raise _not_separated(problem, last) if isinstance(last, BestCandidate) else last


def routes(problem: Problem) -> Iterator[MappingChoice]:
    """Which mappings and ranks to try, in order, each with its reason."""
    mapping, rank, readout = problem.mapping, problem.rank, READOUTS.get(problem.readout)
    line, whole, boxes = (readout is None or readout.reads(w) for w in ("on_line", "on_lattice", "in_boxes"))
    on_lattice = MappingChoice("lattice", _lattice_rank(problem) if rank is None else rank, "asked for")
    if mapping != "auto" and MAPPINGS[mapping].on_lattice:
        yield replace(on_lattice, mapping=mapping)
        return
    if not line and not boxes:
        yield on_lattice
        return
    first = 1 if line or rank is not None else 2
    only_one = not boxes or problem.default is not None or (mapping != "auto" and MAPPINGS[mapping].only_rank == 1)
    ranks = [rank] if rank is not None else [1] if only_one else list(range(first, MAX_AUTO_RANK + 1))
    lattice_next = problem.dtype == np.float32 and mapping == "auto" and rank is None
    lattice_next = lattice_next and whole
    if lattice_next and len(problem.answers.rows) > SMALL_FOR_FLOAT32:
        yield replace(on_lattice, why="whole-number contexts: float32 tells any number of them apart")
        lattice_next = False
    elif lattice_next and _rejects_on_a_lattice(problem):
        yield replace(on_lattice, why="whole-number contexts: of those, unknown inputs rarely meet a stored one")
        lattice_next = False
    for s in ranks:
        if mapping != "auto":
            yield MappingChoice(mapping, s, "asked for")
        elif problem.answers.form.scope == "sequence":
            yield MappingChoice("shared_query", s, "one answer per sequence needs one context per sequence")
        else:
            yield MappingChoice(
                "temperature", s, "the published architecture: one head, no biases, temperature searched"
            )
            yield MappingChoice("shared_query", s, "the bias-free head did not separate, so the query got a bias")
        if lattice_next:
            yield replace(on_lattice, why="one softmax coordinate is too coarse for float32: whole numbers")
            lattice_next = False
    if mapping == "auto":
        for name, kind in MAPPINGS.items():
            if kind.automatic and (whole if kind.on_lattice else line if ranks[0] == 1 else boxes):
                yield MappingChoice(
                    name, ranks[0] if kind.only_rank is None else kind.only_rank, "registered, and the last"
                )


def _rejects_on_a_lattice(problem: Problem) -> bool:
    """Whether there is a default, and a lattice tells unknown inputs from stored ones better than a coordinate.

    Real tokens in one and the same cell have one code: with few components in all, a new token often meets it.
    """
    s = problem.sequences
    return problem.default is not None and (not s.is_real or s.n * s.d >= FEWEST_COMPONENTS)


def _lattice_rank(problem: Problem) -> int:
    """A large table needs more coordinates to choose from, or some row is ambiguous along all of them."""
    if problem.mapping == tallies.Tallies.name:
        return tallies.DEFAULT_RANK
    more = _tabular(problem) and len(problem.answers.rows) > VERY_LARGE_TABLE
    if _prints(problem):
        return packed_sizes.WITH_PRINTS
    if not _tabular(problem) and problem.readout != "retrieval":
        return packed_sizes.COORDINATES
    return lattice.LARGER_RANK if more else lattice.DEFAULT_RANK


def _tabular(problem: Problem) -> bool:
    """Whether a lattice is most likely read off by a table."""
    reals = problem.answers.form.classes is None and not problem.answers.are_class_vectors
    reals = reals and problem.readout == "auto"
    return problem.readout == "table" or (problem.default is not None and not _prints(problem)) or reals


def _prints(problem: Problem) -> bool:
    """Whether there is a default, and fingerprints in packed cells are likely smaller than a table."""
    many = problem.answers.form.classes is not None and len(problem.answers.rows) >= FEWEST_PRINTED
    asked = problem.readout == "packed" or problem.false_hits is not None
    return problem.default is not None and (asked or (problem.readout == "auto" and many))


def _search_route(
    problem: Problem, stream: Stream, route: MappingChoice, automatic: bool
) -> BestCandidate | HypothesisError:
    """Candidates of one route: enough of them to find a safe margin, more where the data is small. Or why the
    mapping does not apply, where nobody asked for it and another may be tried."""
    per_sequence = is_per_sequence(problem, route)
    rows = problem.rows(per_sequence)
    wanted, allowed = route.kind.attempts(problem.sequences, len(problem.answers.rows), problem.dtype)
    kind = (per_sequence, _tabular(problem), problem.format, problem.default is not None)
    drawn = Wanted(problem.sequences, stream, route.rank, problem.seed, 0, *kind)
    best: BestCandidate | None = None
    for attempt in range(allowed):
        try:
            context_map = route.kind.construct(replace(drawn, attempt=attempt))
        except HypothesisError as refusal:
            if automatic:
                return refusal
            raise
        result = _fit_to(problem, route, context_map, rows)
        for seed in range(OTHER_SEEDS, OTHER_SEEDS + REDRAWS) if attempt == 0 and result.second else ():
            redrawn = route.kind.construct(replace(drawn, seed=problem.seed + seed))
            other = _fit_to(problem, route, redrawn, rows)
            if other.readout is not None and not other.second and other.margin >= 1:
                context_map, result = redrawn, other
                break
        if attempt == 0 and result.suspects:
            collision = _refuse(problem, result, rows, per_sequence)
            if collision is not None and route.mapping == "temperature" and _both_zero(problem, stream, *collision):
                if automatic:
                    return BestCandidate(route, context_map, result, 1)
                raise _zero_token(*collision)
        better = best is None or (result.readout is not None, result.margin) > (
            best.fit.readout is not None,
            best.fit.margin,
        )
        if better:
            best = BestCandidate(route, context_map, result, attempt + 1)
        assert best is not None
        best = replace(best, attempts=attempt + 1)
        safe = best.fit.readout is not None and best.fit.margin >= 1
        if safe and (attempt + 1 >= wanted or (problem.default is not None and best.fit.margin >= ROOMY)):
            break
        if route.kind.redraws and not safe and attempt + 1 >= HOPELESS_AFTER and best.fit.margin < HOPELESS_MARGIN:
            break
    assert best is not None
    return best


def _fit_to(problem: Problem, route: MappingChoice, c: ContextMap, rows: Array) -> Separability:
    """How well coordinates separate the answers."""
    p = problem
    task = Task(rows, p.dtype, c.radius, c.exact_radius, p.readout, p.default, p.seed, p.false_hits)
    return fit(c.coordinates, replace(task, format=p.format), route.kind.on_lattice)


def is_per_sequence(problem: Problem, route: MappingChoice) -> bool:
    """Whether the samples are sequences rather than tokens: when all tokens of a sequence share a context."""
    return problem.answers.form.scope == "sequence" and route.kind.shares


def _refuse(problem: Problem, result: Separability, rows: Array, per_sequence: bool) -> tuple[Place, Place] | None:
    """Raise if two samples are one context with two answers; the data is compared as the dtype sees it."""
    exact = Contexts(problem.sequences, problem.positions, np.dtype(np.float64))
    collision = refuse_contradictions(exact, result.suspects, rows, per_sequence, problem.show_answer(per_sequence))
    if collision is not None and problem.dtype != np.float64:
        rounded = Contexts(problem.sequences, problem.positions, problem.dtype)
        a, b = collision
        if rounded.key(a) == rounded.key(b):
            raise PrecisionError(
                "memorize",
                f"sequences that {problem.dtype} can tell apart",
                f"{a} and {b} have different answers and differ only by less than its resolution",
                'Use dtype="float64".',
            )
    return collision


def _both_zero(problem: Problem, stream: Stream, a: Place, b: Place) -> bool:
    """Both tokens are zero where the head reads them, so that a bias-free head is blind there."""
    if not isinstance(stream, RealStream) or problem.positions or a.k is None or b.k is None:
        return False
    return not (stream.tokens[a.i, a.k].any() or stream.tokens[b.i, b.k].any())


def _zero_token(a: Place, b: Place) -> HypothesisError:
    return HypothesisError(
        "zero_token",
        "tokens other than zero, or different means, since a bias-free head averages uniformly at zero",
        f"{a} and {b} are zero, their sequences have the same mean, and their answers differ",
        'Use mapping="shared_query" (a query bias) or positions=True.',
    )


def _not_separated(problem: Problem, found: BestCandidate) -> PrecisionError:
    per_sequence = is_per_sequence(problem, found.route)
    contexts = Contexts(problem.sequences, problem.positions, problem.dtype)
    where = "two ids"
    if found.fit.closest is not None:
        a, b = (contexts.place(sample, per_sequence) for sample in found.fit.closest)
        rows = problem.rows(per_sequence)
        kind = "different" if (rows[found.fit.closest[0]] != rows[found.fit.closest[1]]).any() else "equal"
        where = f"the nearest two, {a} and {b}, have {kind} answers and ids that"
    remedy = "Round or rescale the data so that different sequences differ by more."
    if problem.dtype == np.float32:
        remedy = f'Use dtype="{"float64" if problem.format is None else "float32"}".'
    return PrecisionError(
        found.route.mapping,
        f"contexts that {problem.arithmetic} can tell apart",
        f"after {found.attempts} directions and temperatures {where} differ by {found.fit.nearest:.3g} where "
        f"rounding may move an id by {found.context_map.radius:.3g}",
        remedy,
    )
