"""The search for contexts: mappings and ranks in order, random candidates of each, refusals that name the pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from onelayer.constructions.contexts import averages, published, rank_one, shared_query, temperature
from onelayer.constructions.contexts.head import ContextMap
from onelayer.constructions.contexts.stream import RealStream, Stream
from onelayer.constructions.problem import Problem
from onelayer.constructions.readout.fit import Fit, fit
from onelayer.data.consistency import Company, Place, refuse_contradictions
from onelayer.errors import HypothesisError

Array = NDArray[Any]
Mapping = Literal["auto", "temperature", "shared_query", "averages", "rank_one", "published"]
Readout = Literal["auto", "plateaus", "boxes", "triangular"]
Step = Callable[[str], None]

#: Candidates tried before a mapping of some rank is given up; a hopeless one is given up after three.
MAX_ATTEMPTS, HOPELESS_AFTER, HOPELESS_MARGIN = 12, 3, 0.05
#: Small data can afford to look for a wide margin: about this many attention rows are spent on it.
ROWS_FOR_MARGIN = 1 << 17
MAX_AUTO_RANK, MAX_RANK = 6, 64


@dataclass(frozen=True)
class Route:
    """A mapping of some rank, and why it is tried."""

    mapping: str
    rank: int
    why: str


@dataclass(frozen=True)
class Found:
    """The best candidate of a route: it separates the answers if its fit has plateaus."""

    route: Route
    context_map: ContextMap
    fit: Fit
    attempts: int

    @property
    def bits_needed(self) -> float:
        """log2(4 span/gap): bits that resolve a quarter of the smallest gap over the span of the ids."""
        span = float(np.ptp(self.context_map.coordinates, axis=0).max())
        gap = min(self.fit.answer_gap, self.fit.gap)
        return float(np.log2(span / gap) + 2) if 0 < gap < np.inf and span > 0 else 1.0


def search(
    problem: Problem, mapping: Mapping, rank: int | None, readout: Readout, on_step: Step | None = None
) -> Found:
    """Try the routes in order and return the first whose margin is safe."""
    stream = problem.stream
    last: Found | None = None
    for route in routes(problem, mapping, rank, readout):
        if on_step is not None:
            on_step(f"looking for contexts: {route.mapping}, rank {route.rank}")
        last = _search_route(problem, stream, route, automatic=mapping == "auto")
        if last.fit.plateaus is not None and last.fit.margin >= 1:
            return last
    assert last is not None
    raise _not_separated(problem, last)


def routes(problem: Problem, mapping: Mapping, rank: int | None, readout: Readout) -> Iterator[Route]:
    """Which mappings and ranks to try, in order, each with its reason."""
    if mapping not in get_args(Mapping):
        raise HypothesisError(
            "memorize",
            f"a mapping among {', '.join(get_args(Mapping))}",
            f"mapping={mapping!r}",
            "Choose one of them.",
        )
    if readout not in get_args(Readout):
        raise HypothesisError(
            "memorize",
            f"a readout among {', '.join(get_args(Readout))}",
            f"readout={readout!r}",
            "Choose one of them.",
        )
    if rank is not None and (type(rank) is not int or not 1 <= rank <= MAX_RANK):
        needs = f"a whole rank of at least 1 and at most {MAX_RANK}"
        raise HypothesisError("memorize", needs, f"rank={rank!r}", "Leave it out to have it chosen.")
    on_line = readout in ("plateaus", "triangular")
    if on_line and rank is not None and rank > 1:
        raise HypothesisError(
            readout, "one coordinate, that is rank 1", f"rank={rank} was asked for", 'Use readout="boxes".'
        )
    if mapping == "published":
        raise _beyond_floats(problem)
    if mapping == "rank_one" and rank not in (None, 1):
        raise HypothesisError("rank_one", "rank 1", f"rank={rank} was asked for", "Leave the rank out.")
    if readout == "boxes" and (rank == 1 or mapping == "rank_one"):
        raise HypothesisError("boxes", "a rank of at least 2", "rank 1 was asked for", 'Use readout="plateaus".')
    first = 2 if readout == "boxes" and rank is None else 1
    only_one = on_line or mapping == "rank_one"
    ranks = [rank] if rank is not None else [1] if only_one else list(range(first, MAX_AUTO_RANK + 1))
    for s in ranks:
        if mapping != "auto":
            yield Route(mapping, s, "asked for")
        elif problem.answers.form.scope == "sequence":
            yield Route("shared_query", s, "one answer per sequence needs one context per sequence")
        else:
            yield Route("temperature", s, "the published architecture: one head, no biases, temperature searched")
            yield Route("shared_query", s, "the bias-free head did not separate, so the query got a bias")


def _beyond_floats(problem: Problem) -> HypothesisError:
    """The published constants on this data, and why they cannot be weights."""
    s = problem.sequences
    separation = published.hypotheses(s.tokens if s.is_real else s.tokens[:, :, None] + 1.0, s.lengths)
    return HypothesisError(
        "theorem_2",
        f"{published.bits_needed(separation):,} bits of precision on this data",
        f"{problem.dtype} has {np.finfo(problem.dtype).nmant + 1}, and the promised gap is "
        f"10^{published.log10_delta(separation):,.0f}",
        'Run `onelayer theorem` to see it in ball arithmetic, or use mapping="temperature".',
    )


def _construct(problem: Problem, stream: Stream, route: Route, attempt: int) -> ContextMap:
    if route.mapping == "rank_one":
        return rank_one.context_map(problem.sequences, stream, problem.seed, attempt)
    if route.mapping == "temperature":
        return temperature.construct(problem.sequences, stream, route.rank, problem.seed, attempt)
    construct = shared_query.construct if route.mapping == "shared_query" else averages.construct
    per_sequence = problem.answers.form.scope == "sequence"
    return construct(problem.sequences, stream, route.rank, problem.seed, attempt, per_sequence)


def _search_route(problem: Problem, stream: Stream, route: Route, automatic: bool) -> Found:
    """Candidates of one route: enough of them to find a safe margin, more where the data is small."""
    per_sequence = is_per_sequence(problem, route)
    rows = problem.rows(per_sequence)
    wanted, allowed = _attempts(problem, route)
    best: Found | None = None
    for attempt in range(allowed):
        context_map = _construct(problem, stream, route, attempt)
        result = fit(context_map.coordinates, rows, problem.dtype, context_map.radius, context_map.exact_radius)
        if attempt == 0 and result.suspects:
            collision = _refuse(problem, result, rows, per_sequence)
            if collision is not None and route.mapping == "temperature" and _both_zero(problem, stream, *collision):
                if automatic:
                    return Found(route, context_map, result, 1)
                raise _zero_token(*collision)
        better = best is None or (result.plateaus is not None, result.margin) > (
            best.fit.plateaus is not None,
            best.fit.margin,
        )
        if better:
            best = Found(route, context_map, result, attempt + 1)
        assert best is not None
        best = replace(best, attempts=attempt + 1)
        safe = best.fit.plateaus is not None and best.fit.margin >= 1
        if safe and attempt + 1 >= wanted:
            break
        random_again = route.mapping != "averages"
        if random_again and not safe and attempt + 1 >= HOPELESS_AFTER and best.fit.margin < HOPELESS_MARGIN:
            break
    assert best is not None
    return best


def _attempts(problem: Problem, route: Route) -> tuple[int, int]:
    """How many candidates to look at even if the first is safe, and how many at most."""
    if route.mapping == "averages":  # each attempt has longer codes: the first that separates is the best
        return 1, averages.attempts(problem.dtype)
    wanted = int(np.clip(ROWS_FOR_MARGIN // (problem.sequences.N * problem.sequences.n), 1, 32))
    return wanted, max(MAX_ATTEMPTS, wanted)


def is_per_sequence(problem: Problem, route: Route) -> bool:
    """Whether the samples are sequences rather than tokens: when all tokens of a sequence share a context."""
    return problem.answers.form.scope == "sequence" and route.mapping in ("shared_query", "averages")


def _refuse(problem: Problem, result: Fit, rows: Array, per_sequence: bool) -> tuple[Place, Place] | None:
    """Raise if two samples are one context with two answers; the data is compared as the dtype sees it."""
    exact = Company(problem.sequences, problem.positions, np.dtype(np.float64))
    collision = refuse_contradictions(exact, result.suspects, rows, per_sequence, problem.show_answer(per_sequence))
    if collision is not None and problem.dtype != np.float64:
        rounded = Company(problem.sequences, problem.positions, problem.dtype)
        a, b = collision
        if rounded.key(a) == rounded.key(b):
            raise HypothesisError(
                "data",
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


def _not_separated(problem: Problem, found: Found) -> HypothesisError:
    per_sequence = is_per_sequence(problem, found.route)
    company = Company(problem.sequences, problem.positions, problem.dtype)
    where = "two ids"
    if found.fit.closest is not None:
        a, b = (company.place(sample, per_sequence) for sample in found.fit.closest)
        rows = problem.rows(per_sequence)
        kind = "different" if (rows[found.fit.closest[0]] != rows[found.fit.closest[1]]).any() else "equal"
        where = f"the nearest two, {a} and {b}, have {kind} answers and ids that"
    remedy = "Round or rescale the data so that different sequences differ by more."
    if problem.dtype == np.float32:
        remedy = 'Use dtype="float64".'
    return HypothesisError(
        found.route.mapping,
        f"contexts that {problem.dtype} can tell apart",
        f"after {found.attempts} directions and temperatures {where} differ by {found.fit.nearest:.3g} where "
        f"rounding may move an id by {found.context_map.radius:.3g}",
        remedy,
    )
