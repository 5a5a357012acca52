"""From data to one layer: choose a context mapping, search its constants, read the answers off.

Statement  consistent finite data is reproduced exactly by one attention layer and a feed-forward stack.
Gives      a `Model`: weights, a ledger of every constant, predictions in the form of the answers.
Rests on   corollary_1 for the architecture, temperature (Lemma G) for the contexts, plateaus for the answers.
Why        the paper proves that weights exist; this module writes them down.
Differs    constants are searched and measured instead of prescribed; repeated tokens and lengths are allowed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import DTypeLike

from onelayer.certificates.data import of_answers
from onelayer.compile.comparison import smallest
from onelayer.compile.logits import append_logits
from onelayer.compile.prove import certify_model, too_large, without_proof
from onelayer.compile.unknown_inputs import unknown_inputs
from onelayer.errors import OptionError, PrecisionError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.stacks import compose
from onelayer.interfaces import Answers
from onelayer.ledger import Constant, Ledger
from onelayer.measure.recall import recall_answers
from onelayer.model import Model
from onelayer.problems.answers import read_answers
from onelayer.problems.conflicts import OnConflict, Settled, settle
from onelayer.problems.scopes import Scope, at_answers
from onelayer.problems.sequences import read_sequences
from onelayer.readouts.method import READOUTS
from onelayer.search.options import refuse_unknown
from onelayer.search.problem import NO_DEFAULT, Mapping, Options, Problem, Readout, read_problem
from onelayer.search.routes import BestCandidate, Step, in_a_dtype_that_does
from onelayer.sharded.build import Asked, Sharding, build_shards
from onelayer.sharded.model import ShardedModel
from onelayer.sharded.workers import Cluster
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["memorize"]


class Choices(Options, total=False):
    """What `memorize` lets a person choose besides, wherever the model is built."""

    on_conflict: OnConflict
    certify: bool | None
    tolerance: float | None
    on_step: Step | None


@overload
def memorize(X: Any, Y: Any, *, cluster: None = None, **choices: Unpack[Choices]) -> Model: ...
@overload
def memorize(
    X: Any,
    Y: Any,
    *,
    cluster: Cluster,
    folder: str | os.PathLike[str],
    shard_answers: int = ...,
    overwrite: bool = ...,
    **choices: Unpack[Choices],
) -> ShardedModel: ...
def memorize(
    X: Any,
    Y: Any,
    *,
    lengths: Any = None,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    mapping: Mapping = "auto",
    readout: Readout = "auto",
    positions: bool = False,
    default: Any = NO_DEFAULT,
    false_hits: float | None = None,
    logits: bool = False,
    seed: int = 0,
    scope: Scope | None = None,
    on_conflict: OnConflict = "refuse",
    certify: bool | None = None,
    tolerance: float | None = None,
    on_step: Step | None = None,
    **shards: Unpack[Sharding],
) -> Model | ShardedModel:
    """Compile sequences and answers into a one-layer Transformer that reproduces every answer. No training.

    X         floats [N, n, d] (or [N, n], read as width 1), token ids [N, n], or a list of sequences
    Y         an answer per token or one per sequence: integers, any hashable classes, reals, vectors of reals
    lengths   number of tokens of each sequence, when they differ and X is an array
    rank      head size; by default the smallest that separates with a safe margin
    dtype     "float32" or "float64", in which the model runs; by default float32 when it holds tokens and answers
              exactly, and separates the contexts, else float64; or "bfloat16", "float16": docs/guarantees.md
    mapping   how contexts are told apart: "temperature", "shared_query", "lattice" (sums of whole numbers),
              "averages", "rank_one" (Theorem K), "published" (Theorem 2: no float holds it), "tallies", or "auto"
    readout   how answers are read off: "plateaus", "boxes", "table", "retrieval", "packed" (several answers to a
              weight), "planes", "bits", "triangular", or "auto"; "logits" is "auto" with ``logits``
    positions whether the order of the tokens matters
    default   what an input that is not stored is answered. Some contexts are so close to stored ones that they are
              taken for them: the ledger bounds their share (``false_hits``) and measures it. A sequence with a
              token not in the vocabulary, or too large for the dtype, gets it; without a default, both are errors
    false_hits  with a default, which share of unknown inputs may get another answer: stored answers are given
              fingerprints of this many bits, -log2 of it. Left out, 1e-4 for many answers; few are kept in a table
    logits    of classes: one logit for each instead of its number; the right one leads by 32. See `with_logits`
    seed      same data and seed, same weights
    scope     "token" or "sequence", where the shape of Y leaves it open
    on_conflict  where one context has several answers: "refuse" the data; keep the "first", or the most frequent
              ("vote"; the first of equals); or "drop" every sequence with a part in it. The ledger lists them
    certify   True: have every answer proved, or raise; False: do not; None: where that takes at most a few times
              the build, and if it can be. The model has its ``certificate``; without one, the ledger says why
    tolerance how far real answers may be off, to be proved; by default as far as rounding to the dtype
    on_step   called with a line of text at each stage
    cluster   for data that no memory holds: processes or a Dask cluster write shards to ``folder`` (`Sharding`)

    Raises HypothesisError, naming the place and a remedy, for data that no such model can satisfy.
    >>> model = memorize([["river", "bank"], ["bank", "robber"]], [["water", "shore"], ["money", "crime"]])
    >>> model.predict([["robber", "bank"]]).tolist()
    [['crime', 'money']]
    """
    options = Options(lengths=lengths, rank=rank, dtype=dtype, mapping=mapping, readout=readout, logits=logits)
    options |= Options(positions=positions, default=default, false_hits=false_hits, seed=seed, scope=scope)
    if _in_shards(shards):
        return build_shards(X, Y, Asked(options, on_conflict, certify is not False, compile_shard), shards, on_step)
    return _compile(settle_conflicts(X, Y, on_conflict, options), options, certify, tolerance, on_step)


def _in_shards(shards: Sharding) -> bool:
    """Whether a model in shards is asked for; what only such a one has is refused without it, and what none has."""
    refuse_unknown("memorize", shards, [*Choices.__annotations__, *Sharding.__annotations__])
    given = {name: value for name, value in shards.items() if name != "cluster"}
    if shards.get("cluster") is None and given:
        found = f"{', '.join(f'{name}={value!r}' for name, value in given.items())} came without it"
        remedy = "Leave that out, and write the model by model.save(folder)."
        raise OptionError("memorize", "cluster=, to build in shards", found, remedy)
    return shards.get("cluster") is not None


def settle_conflicts(X: Any, Y: Any, on_conflict: OnConflict, options: Options) -> Settled:
    """The data as it is to be stored: read, and without conflicts if a person chose what to keep."""
    sequences = read_sequences(X, options.get("lengths"))
    answers = read_answers(Y, sequences, options.get("scope"))
    dtype = options.get("dtype")
    seen_as = dtype if dtype in ("float32", np.float32) else None
    return settle(sequences, answers, on_conflict, bool(options.get("positions")), seen_as)


def compile_shard(given: Settled, options: Options) -> Model:
    """A part of the data whose contexts no other part has, without a proof."""
    return _compile(given, options, False, None, None)


def _compile(
    given: Settled, options: Options, certify: bool | None, tolerance: float | None, on_step: Step | None
) -> Model:
    """Search, assemble, prove. What float32 is too small for may show at any stage after reading."""

    def build(problem: Problem) -> Model:
        problem, found, compared = smallest(problem, on_step)
        model = assemble(problem, found, (*compared, *given.constants))
        if certify is None and tolerance is None and (why := too_large(problem.sequences.tokens)):
            return without_proof(model, why)
        return certify_model(
            model,
            certify,
            lambda: of_answers(model, problem.sequences, problem.answers),
            lambda: recall_answers(model, problem.sequences, problem.answers).first_wrong,
            on_step or (lambda _: None),
            tolerance,
        )

    return in_a_dtype_that_does(read_problem(given.sequences, given.answers, options), build)


def assemble(problem: Problem, found: BestCandidate, about_data: tuple[Constant, ...] = ()) -> Model:
    """Layers, ledger and interface into a model; ``about_data`` ends the ledger."""
    context_map, fitted = found.context_map, found.fit.readout
    assert fitted is not None
    transformer, gadgets = compose(
        context_map.attention,
        context_map.embedding,
        context_map.feedforward,
        (Affine(context_map.bottleneck), *fitted.gadgets),
        context_map.channels,
    )
    stored = _stored_bits(problem, found.fit.distinct)
    interface = Answers(
        form=problem.answers.form,
        vocabulary=problem.sequences.vocabulary,
        default=None if problem.default is None else tuple(problem.default.tolist()),
        stored_bits=stored,
    )
    model = Model(transformer, interface, Ledger(()), gadgets=gadgets)
    if READOUTS[fitted.kind].interpolates:
        error = _measured_error(problem, model, fitted.kind)
        model = replace(model, interface=replace(interface, error_upper=error))
        about_data = (
            Constant("readout_error", error, "largest |output - answer| over the data, measured"),
            *about_data,
        )
    model = model.with_notes(*_ledger(problem, found, model), *about_data)
    return append_logits(model) if problem.logits else model


def _measured_error(problem: Problem, model: Model, readout: str) -> float:
    """This readout amplifies rounding, so what it really returns is measured on all the data, and judged."""
    outputs = model.outputs(problem.sequences, path="dense")
    flat = at_answers(outputs, "token", problem.sequences.lengths)
    rows = problem.rows(per_sequence=False)
    error = float(np.abs(flat - rows).max())
    if problem.answers.form.classes is not None and error >= 0.5:
        raise PrecisionError(
            readout if readout in CATALOGUE else "memorize",
            f"gaps between contexts that are wide enough for sums of large weights in {problem.dtype}",
            f"an answer comes back wrong by {error:.3g}",
            'Use readout="plateaus", which is exact, or dtype="float64".',
        )
    return error


def _ledger(problem: Problem, found: BestCandidate, model: Model) -> list[Constant]:
    f, c = found.fit, found.context_map
    assert f.readout is not None
    kind = f.readout.kind
    interpolates = READOUTS[kind].interpolates
    at_least = "at the nearest just" if c.coordinates.shape[1] == 1 else "at least"
    why = "asked for" if problem.readout == kind else f.readout.compared
    rows = problem.answers.rows
    rounding = float(np.abs(rows - rows.astype(problem.dtype)).max())
    saturates = [
        Constant("plateaus", f.readout.count, "K, runs of neighbouring ids with equal answers, boxes, or cells"),
        Constant("guard", f.readout.guard, "how far an id may move without leaving its plateau"),
        Constant("margin", f.margin, "guard (less the distance of merged ids) / radius_upper; at least 1 is safe"),
    ]
    return [
        Constant("mapping", found.route.mapping, found.route.why),
        Constant("readout", kind, why),
        Constant("rank", int(found.route.rank), "size of the one head, and number of context coordinates"),
        Constant("dtype", problem.arithmetic, "arithmetic in which the model runs"),
        Constant("seed", problem.seed, "same data and seed, same weights"),
        Constant("attempts", found.attempts, "random directions and temperatures tried"),
        Constant("sequences", problem.sequences.N, "N"),
        Constant("tokens", problem.sequences.token_count(), "tokens with an answer, padding not counted"),
        Constant("distinct", f.distinct, "M, ids told apart"),
        *c.constants,
        Constant("gap", f.gap, f"two ids told apart are {at_least} this far from each other"),
        Constant("answer_gap", f.answer_gap, f"two ids with different answers are {at_least} this far apart"),
        Constant(
            "radius_upper", c.radius, f"a-priori bound on the rounding error of an id in {problem.arithmetic}"
        ),
        *([] if interpolates else saturates),
        *unknown_inputs(problem, found, model),
        Constant(
            "stored_bits", model.interface.stored_bits or 0.0, "M log2 C, of M contexts and C different answers"
        ),
        Constant("bits_needed", found.bits_needed, "log2(4 span/gap)"),
        Constant("bits_available", float(np.log2(c.span / c.radius)) if c.span else 0.0, "log2(span/radius_upper)"),
        Constant("answer_rounding", rounding, f"largest |answer - answer in {problem.dtype}|"),
        Constant("parameters", model.n_parameters, "every weight and bias, zeros of full matrices included"),
        Constant("bytes", model.n_parameters * problem.itemsize, "of weights"),
    ]


def _stored_bits(problem: Problem, distinct: int) -> float:
    """Information in the answers: each of M distinct contexts has one of C answers, all alike possible."""
    classes = problem.answers.form.classes
    rows = problem.answers.rows
    axis = 0 if rows.shape[1] > 1 else None  # numbers are sorted many times faster than rows of one number
    C = len(classes) if classes is not None else len(np.unique(rows, axis=axis))
    return float(distinct * np.log2(max(C, 1)))
