"""A pre-flight plan: what compiling this data will take, or why it is impossible."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np

from onelayer.compile.comparison import count_parameters, smallest
from onelayer.compile.logits import count_logits
from onelayer.compile.memorize import assemble, settle_conflicts
from onelayer.errors import HypothesisError
from onelayer.measure.hints import Hint, foretell, read_fit
from onelayer.problems.conflicts import OnConflict
from onelayer.readouts.method import READOUTS
from onelayer.search.options import refuse_unknown
from onelayer.search.problem import Options, Problem, read_problem
from onelayer.search.routes import BestCandidate, Step, in_a_dtype_that_does


@dataclass(frozen=True)
class Plan:
    """Sizes are exact, since the same search is run; seconds are measured on this machine, just now.

    When the data cannot be compiled, ``possible`` is False and ``obstacle`` names the witness and the remedy.
    ``conflicts`` counts the contexts that have more than one answer, settled or not. ``float16`` is a guess, for
    networks of the sizes that it was fitted to.
    """

    possible: bool
    obstacle: str = ""
    sequences: int = 0
    answers: int = 0
    distinct: int = 0
    conflicts: int = 0
    dtype: str = ""
    mapping: str = ""
    rank: int = 0
    parameters: int = 0
    bytes: int = 0
    bits_needed: float = 0.0
    bits_available: dict[str, float] | None = None
    margin: float = 0.0
    seconds: float = 0.0
    float16: Hint | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if not self.possible:
            return f"impossible: {self.obstacle}"
        settled = f", {self.conflicts:,} conflicts settled" if self.conflicts else ""
        precision = f"all values are numbers of {self.dtype}: nothing is rounded"
        if self.bits_available is not None:
            available = ", ".join(f"{b:.0f} in {name}" for name, b in self.bits_available.items())
            precision = f"{self.bits_needed:.0f} bits a coordinate needed; {available} available; "
            precision += f"contexts may move by {self.margin:.3g} times their rounding error"
        return (
            f"{self.answers:,} answers in {self.sequences:,} sequences, {self.distinct:,} distinct contexts"
            f"{settled}\n"
            f"one head of rank {self.rank}, mapping {self.mapping}\n"
            f"{precision}\n"
            f"{self.parameters:,} parameters in {self.dtype}, {self.bytes:,} bytes, "
            f"about {self.seconds:.2f} s to build"
            f"{'' if self.float16 is None else f'{chr(10)}{self.float16}'}"
        )


def plan(
    X: Any,
    Y: Any,
    *,
    on_conflict: OnConflict = "refuse",
    on_step: Step | None = None,
    **options: Unpack[Options],
) -> Plan:
    """Say before compiling what it will take. Same arguments as `memorize`; nothing is written."""
    refuse_unknown("plan", options, Options.__annotations__)
    start = time.perf_counter()
    given = settle_conflicts(X, Y, on_conflict, options)
    try:
        problem = read_problem(given.sequences, given.answers, options)
        problem, found = in_a_dtype_that_does(problem, lambda problem: _find_candidate(problem, on_step))
    except HypothesisError as error:
        conflicts = settle_conflicts(given.sequences, given.answers, "first", options).conflicts
        return Plan(False, str(error), conflicts=len(conflicts), seconds=time.perf_counter() - start)
    seconds = time.perf_counter() - start
    parameters = count_parameters(found) + count_logits(problem)
    span = float(np.ptp(found.context_map.coordinates, axis=0).max())
    unit_radius = found.context_map.radius / (float(np.finfo(problem.dtype).eps) / 2)
    return Plan(
        True,
        sequences=problem.sequences.N,
        answers=len(problem.answers.rows),
        distinct=found.fit.distinct,
        conflicts=len(given.conflicts),
        dtype=problem.arithmetic,
        mapping=found.route.mapping,
        rank=found.route.rank,
        parameters=parameters,
        bytes=parameters * problem.itemsize,
        bits_needed=found.bits_needed,
        bits_available=None
        if problem.format
        else {
            name: max(0.0, float(np.log2(max(span, 1e-300) / (unit_radius * unit))))
            for name, unit in (("float32", 2.0**-24), ("float64", 2.0**-53))
        },
        margin=found.fit.margin,
        seconds=seconds,
        float16=None if problem.format or parameters > read_fit().largest else _guess(problem, found),
    )


def _guess(problem: Problem, found: BestCandidate) -> Hint | None:
    """What is said of the network that would be built, which takes little at this size."""
    return foretell(assemble(problem, found).transformer)


def _find_candidate(problem: Problem, on_step: Step | None) -> tuple[Problem, BestCandidate]:
    """What `memorize` finds in this dtype. If an interpolating readout is exact enough shows when it is built."""
    problem, found, _ = smallest(problem, on_step)
    if found.fit.readout is not None and READOUTS[found.fit.readout.kind].interpolates:
        assemble(problem, found)
    return problem, found
