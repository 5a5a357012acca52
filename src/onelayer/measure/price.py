"""What the published theorem would need on some data, next to Theorem K and to what the library uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from onelayer.contexts import published, rank_one
from onelayer.contexts.literal import LiteralRun
from onelayer.errors import HypothesisError, MissingExtraError
from onelayer.ledger import Ledger
from onelayer.problems.separation import Separation, measure
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.search.problem import Options, read_problem
from onelayer.search.routes import Step, search

#: Beyond this many bits, or this many tokens, running the literal weights takes more than a minute.
RUNNABLE_BITS, RUNNABLE_TOKENS = 1 << 16, 400
#: Tokens whose pairwise distances are measured.
MEASURED_TOKENS = 20_000


@dataclass(frozen=True)
class Column:
    """One construction on the data. Logarithms are to base 10; None where there is no such number."""

    name: str
    standing: str
    beta: float | None = None
    log10_delta: float | None = None  # the gap that is promised before looking
    log10_gap: float | None = None  # the gap that its weights really have
    bits: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Definition 1 measured on the data, and the constructions side by side."""

    separation: Separation
    tokens: str  # what the tokens are
    columns: tuple[Column, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(X: Any, Y: Any, lengths: Any = None, seed: int = 0, on_step: Step | None = None) -> Comparison:
    """Measure the data and evaluate Theorem 2 and Theorem K, literally where that can be run.

    Token ids have no vectors of their own; they are placed at the whole numbers 1, 2, ..., |V|.
    """
    step = on_step or (lambda _: None)
    sequences = read_sequences(X, lengths)
    kind = "real vectors" if sequences.is_real else "words or ids, placed at 1, 2, ..., |V|"
    most = MEASURED_TOKENS // sequences.n
    if sequences.is_real and most < sequences.N:  # the smallest distance of all pairs would take minutes
        kind += f"; of the first {most:,} of {sequences.N:,} sequences, so that the true eps is smaller still"
        shorter = None if sequences.lengths is None else sequences.lengths[:most]
        sequences = replace(sequences, tokens=sequences.tokens[:most], lengths=shorter)
    vectors = _vectors(sequences)
    step("measuring the separation of the tokens")
    separation = measure(vectors, sequences.lengths)
    columns = (
        _published_column(vectors, sequences, seed, step),
        _theorem_k(vectors, sequences, seed, step),
        _library(X, Y, lengths, seed, step),
    )
    return Comparison(separation, kind, columns)


def _vectors(sequences: Sequences) -> Any:
    if sequences.is_real:
        return sequences.tokens
    return (sequences.tokens + 1.0)[:, :, None]


def _published_column(X: Any, sequences: Sequences, seed: int, step: Step) -> Column:
    name, standing = "Theorem 2, published constants", published.STATEMENT.standing
    try:
        separation = published.hypotheses(X, sequences.lengths)
        bits, log10_delta = published.bits_needed(separation), published.log10_delta(separation)
        beta = math.exp(_log_published_beta(separation))
    except HypothesisError as error:
        return Column(name, standing, note=f"does not apply: {error}")
    except OverflowError:
        return Column(name, standing, note="its constants are beyond float64 even as logarithms")
    if bits > RUNNABLE_BITS or sequences.token_count() > RUNNABLE_TOKENS:
        return Column(name, standing, beta, log10_delta, None, bits, "not run: too many bits or tokens")
    step(f"running the published weights in ball arithmetic, {bits} bits")
    column = Column(name, standing, beta, log10_delta, None, bits)
    return _with_run(column, lambda: published.run(X, lengths=sequences.lengths, seed=seed))


def _log_published_beta(s: Separation) -> float:
    scale = 4 * math.log(s.vocabulary + 1) + math.log(math.pi * s.d / 8 * (2 * math.log(s.n) + 3))
    return scale - math.log(s.eps) - math.log(s.r_min)


def _theorem_k(X: Any, sequences: Sequences, seed: int, step: Step) -> Column:
    name, standing = "Theorem K, constants of the data", rank_one.STATEMENT.standing
    try:
        separation = rank_one.hypotheses(X, sequences.lengths)
        if separation.vocabulary > 4096:
            return Column(name, standing, note=f"not searched: {separation.vocabulary:,} different tokens")
        v, constants = rank_one.choose_direction(X, seed, sequences.lengths, spare_channel=False)
    except HypothesisError as error:
        return Column(name, standing, note=f"does not apply: {error}")
    bits = math.ceil(math.log2(constants.r) - constants.log10_delta * math.log2(10)) + 3
    column = Column(name, standing, constants.beta, constants.log10_delta, None, bits)
    if bits > RUNNABLE_BITS or sequences.token_count() > RUNNABLE_TOKENS:
        return replace(column, note="not run: too many bits or tokens")
    step("running Theorem K in ball arithmetic")
    return _with_run(column, lambda: rank_one.run_exact(X, v, sequences.lengths))


def _with_run(column: Column, evaluate: Callable[[], LiteralRun]) -> Column:
    """The literal weights run in ball arithmetic, where that is installed."""
    try:
        run = evaluate()
    except MissingExtraError as error:
        return replace(column, note=f"not run: {error}")
    verdict = "holds" if run.separation_holds and run.norm_holds else "FAILS"
    note = f"run in ball arithmetic at {run.bits} bits: its claim {verdict}"
    return replace(column, log10_gap=run.log10_gap_lower, note=note)


def _library(X: Any, Y: Any, lengths: Any, seed: int, step: Step) -> Column:
    if Y is None:
        return Column("onelayer, searched head", "ours", note="not searched: there are no answers")
    try:
        found = search(read_problem(X, Y, Options(lengths=lengths, dtype="float64", seed=seed)), step)
    except HypothesisError as error:
        return Column("onelayer, searched head", "ours", note=f"refused: {error}")
    constants = Ledger(found.context_map.constants)
    gap = min(found.fit.gap, found.fit.answer_gap)
    return Column(
        f"onelayer, {found.route.mapping} (rank {found.route.rank})",
        "ours",
        constants.number("beta") if "beta" in constants else 0.0,
        None,
        float(np.log10(gap)) if 0 < gap < np.inf else None,
        math.ceil(found.bits_needed),
        "the gap is measured in float64, not promised beforehand",
    )
