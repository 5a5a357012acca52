"""From data to one layer: choose a context mapping, search its constants, read the answers off.

Statement  consistent finite data is reproduced exactly by one attention layer and a feed-forward stack.
Gives      a `Memory`: weights, a ledger of every constant, predictions in the form of the answers.
Rests on   corollary_1 for the architecture, temperature (Lemma G) for the contexts, plateaus for the answers.
Why        the paper proves that weights exist; this module writes them down.
Differs    constants are searched and measured instead of prescribed; repeated tokens and lengths are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.constructions.contexts import averages, shared_query, temperature
from onelayer.constructions.contexts.head import ContextMap
from onelayer.constructions.contexts.stream import RealStream, Stream, open_stream
from onelayer.constructions.readout import triangular
from onelayer.constructions.readout.fit import Fit, fit
from onelayer.data.answers import Answers, Scope, read_answers
from onelayer.data.consistency import Company, Place, refuse_contradictions
from onelayer.data.sequences import Sequences, read_sequences
from onelayer.errors import HypothesisError
from onelayer.ledger import Constant, Ledger
from onelayer.memory import Memory
from onelayer.model import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["memorize"]
Array = NDArray[Any]
Mapping = Literal["auto", "temperature", "shared_query", "averages"]
Readout = Literal["auto", "plateaus", "boxes", "triangular"]
Step = Callable[[str], None]

#: Candidates tried before a mapping of some rank is given up; a hopeless one is given up after three.
MAX_ATTEMPTS, HOPELESS_AFTER, HOPELESS_MARGIN = 12, 3, 0.05
#: Small data can afford to look for a wide margin: about this many attention rows are spent on it.
ROWS_FOR_MARGIN = 1 << 17
MAX_AUTO_RANK = 6


@dataclass(frozen=True)
class Problem:
    """Sequences and answers, checked, with everything that decides which constructions apply."""

    sequences: Sequences
    answers: Answers
    dtype: np.dtype[Any]
    positions: bool
    seed: int

    @property
    def stream(self) -> Stream:
        return open_stream(self.sequences, self.dtype, self.positions)

    def rows(self, per_sequence: bool) -> Array:
        """Answers [T, q], one per sample of the chosen mapping."""
        rows = self.answers.rows
        if self.answers.form.scope == "token" or per_sequence:
            return rows
        lengths = self.sequences.lengths
        return np.repeat(rows, self.sequences.n if lengths is None else lengths, axis=0)

    def show_answer(self, per_sequence: bool) -> Callable[[int], str]:
        rows, classes = self.rows(per_sequence), self.answers.form.classes

        def show(sample: int) -> str:
            if classes is not None:
                return repr(classes[int(rows[sample, 0])])
            return ", ".join(f"{x:.6g}" for x in rows[sample])

        return show


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


def memorize(
    X: Any,
    Y: Any,
    *,
    lengths: Any = None,
    rank: int | None = None,
    dtype: DTypeLike = "float64",
    mapping: Mapping = "auto",
    readout: Readout = "auto",
    positions: bool = False,
    seed: int = 0,
    scope: Scope | None = None,
    on_step: Step | None = None,
) -> Memory:
    """Compile sequences and answers into a one-layer Transformer that reproduces every answer. No training.

    X         floats [N, n, d] (or [N, n], read as width 1), token ids [N, n], or a list of sequences
    Y         an answer per token or one per sequence: integers, any hashable classes, reals, vectors of reals
    lengths   number of tokens of each sequence, when they differ and X is an array
    rank      head size; by default the smallest that separates with a safe margin
    dtype     "float64" or "float32", in which the model runs
    mapping   how contexts are told apart: "temperature", "shared_query", "averages", or "auto"
    readout   how answers are read off: "plateaus", "boxes", "triangular", or "auto"
    positions whether the order of the tokens matters
    scope     "token" or "sequence", where the shape of Y leaves it open
    on_step   called with a line of text at each stage
    """
    problem = read_problem(X, Y, lengths, dtype, positions, seed, scope)
    found = search(problem, mapping, rank, readout, on_step)
    return assemble(problem, found, readout)


def read_problem(
    X: Any, Y: Any, lengths: Any, dtype: DTypeLike, positions: bool, seed: int, scope: Scope | None = None
) -> Problem:
    """Check everything that can be checked without building anything."""
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise HypothesisError("memorize", "dtype float32 or float64", f"dtype {number} was asked for", "Change it.")
    sequences = read_sequences(X, lengths)
    answers = read_answers(Y, sequences, scope)
    limit, classes = 2 ** (np.finfo(number).nmant + 1), answers.form.classes
    if classes is not None and len(classes) > limit:
        raise HypothesisError(
            "memorize", f"at most {limit} classes in {number}", f"there are {len(classes)}", 'Use dtype="float64".'
        )
    if not np.abs(answers.rows).max() < np.finfo(number).max:
        raise HypothesisError(
            "memorize", f"answers that {number} can hold", "an answer overflows it", "Rescale the answers."
        )
    return Problem(sequences, answers, number, positions, seed)


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
    if rank is not None and rank < 1:
        raise HypothesisError("memorize", "a rank of at least 1", f"rank={rank}", "Leave it out to have it chosen.")
    on_line = readout in ("plateaus", "triangular")
    if on_line and rank is not None and rank > 1:
        raise HypothesisError(
            readout, "one coordinate, that is rank 1", f"rank={rank} was asked for", 'Use readout="boxes".'
        )
    first = 2 if readout == "boxes" and rank is None else 1
    ranks = [rank] if rank is not None else [1] if on_line else list(range(first, MAX_AUTO_RANK + 1))
    for s in ranks:
        if mapping != "auto":
            yield Route(mapping, s, "asked for")
        elif problem.answers.form.scope == "sequence":
            yield Route("shared_query", s, "one answer per sequence needs one context per sequence")
        else:
            yield Route("temperature", s, "the published architecture: rank-1, no biases, searched temperature")
            yield Route("shared_query", s, "the bias-free head did not separate, so the query got a bias")


def _construct(problem: Problem, stream: Stream, route: Route, attempt: int) -> ContextMap:
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
    """Whether the samples are sequences rather than tokens."""
    return problem.answers.form.scope == "sequence" and route.mapping != "temperature"


def assemble(problem: Problem, found: Found, readout: Readout) -> Memory:
    """Layers, ledger and the form of the answers into a model."""
    context_map, plateaus = found.context_map, found.fit.plateaus
    assert plateaus is not None
    layers = plateaus.layers
    if readout == "triangular":
        rows = problem.rows(is_per_sequence(problem, found.route))
        layers = triangular.on_a_line(context_map.coordinates, rows, context_map.exact_radius, problem.dtype)
    transformer = Transformer(
        attention=context_map.attention,
        embedding=context_map.embedding,
        feedforward=context_map.feedforward,
        readout=(context_map.bottleneck, *layers),
        channels=context_map.channels,
    )
    memory = Memory(transformer, Ledger(()), problem.answers.form, problem.sequences.vocabulary)
    extra = [_triangular_error(problem, memory)] if readout == "triangular" else []
    return replace(memory, ledger=Ledger((*_ledger(problem, found, readout, memory), *extra)))


def _triangular_error(problem: Problem, memory: Memory) -> Constant:
    """This readout amplifies rounding, so what it really returns is measured on all the data, and judged."""
    outputs = memory.outputs(problem.sequences, path="dense")
    valid = problem.sequences.valid()
    flat = outputs.reshape(-1, outputs.shape[-1]) if valid is None else outputs[valid]
    rows = problem.rows(per_sequence=False)
    error = float(np.abs(flat - rows).max())
    if problem.answers.form.classes is not None and error >= 0.5:
        raise HypothesisError(
            "triangular",
            f"gaps between contexts that are wide enough for sums of large weights in {problem.dtype}",
            f"an answer comes back wrong by {error:.3g}",
            'Use readout="plateaus", which is exact, or dtype="float64".',
        )
    return Constant("readout_error", error, "largest |output - answer| over the data, measured")


def _ledger(problem: Problem, found: Found, readout: Readout, memory: Memory) -> list[Constant]:
    f, c = found.fit, found.context_map
    assert f.plateaus is not None
    span = float(np.ptp(c.coordinates, axis=0).max())
    kind = "triangular" if readout == "triangular" else "plateaus" if found.route.rank == 1 else "boxes"
    return [
        Constant("mapping", found.route.mapping, found.route.why),
        Constant(
            "readout", kind, "asked for" if readout == kind else f"rank {found.route.rank} is read off by {kind}"
        ),
        Constant("rank", found.route.rank, "size of the one head, and number of context coordinates"),
        Constant("dtype", str(problem.dtype), "arithmetic in which the model runs"),
        Constant("seed", problem.seed, "same data and seed, same weights"),
        Constant("attempts", found.attempts, "random directions and temperatures tried"),
        Constant("sequences", problem.sequences.N, "N"),
        Constant("tokens", problem.sequences.token_count(), "tokens with an answer, padding not counted"),
        Constant("distinct", f.distinct, "M, ids told apart"),
        Constant("plateaus", f.plateaus.count, "K, runs of neighbouring ids with equal answers"),
        *c.constants,
        Constant("gap", f.gap, "smallest distance of two ids told apart"),
        Constant("answer_gap", f.answer_gap, "smallest distance of two ids with different answers"),
        Constant("guard", f.plateaus.guard, "how far an id may move without leaving its plateau"),
        Constant("radius_upper", c.radius, f"a-priori bound on the rounding error of an id in {problem.dtype}"),
        Constant("margin", f.margin, "guard / radius_upper; at least 1: rounding cannot change an answer"),
        Constant("bits_needed", found.bits_needed, "log2(4 span/gap)"),
        Constant("bits_available", float(np.log2(span / c.radius)) if span else 53.0, "log2(span/radius_upper)"),
        Constant("parameters", memory.n_parameters, "every weight and bias, zeros of full matrices included"),
        Constant("bytes", memory.n_parameters * problem.dtype.itemsize, "of weights"),
    ]


def _refuse(problem: Problem, result: Fit, rows: Array, per_sequence: bool) -> tuple[Place, Place] | None:
    """Raise if two samples are one context with two answers; the data is compared as the dtype sees it."""
    exact = Company(problem.sequences, problem.positions, np.dtype(np.float64))
    collision = refuse_contradictions(exact, result.suspects, rows, per_sequence, problem.show_answer(per_sequence))
    if collision is not None and problem.dtype != np.float64:
        rounded = replace(exact, dtype=problem.dtype)
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
        where = f"the nearest two, {a} and {b}, have different answers and ids that"
    remedy = "Round or rescale the data so that different sequences differ by more, or pass positions=True."
    if problem.dtype == np.float32:
        remedy = 'Use dtype="float64", or a larger rank.'
    return HypothesisError(
        found.route.mapping,
        f"contexts that {problem.dtype} can tell apart",
        f"after {found.attempts} directions and temperatures {where} differ by {found.fit.answer_gap:.3g} where "
        f"rounding may move an id by {found.context_map.radius:.3g}",
        remedy,
    )
