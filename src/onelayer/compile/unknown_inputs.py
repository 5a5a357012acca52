"""What a model with a default does with inputs that are not stored: bounded and measured while it is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.ledger import Constant
from onelayer.model import Model
from onelayer.network.blocks import apply_stack, evaluate
from onelayer.network.layers import apply_layer
from onelayer.problems.sequences import Sequences
from onelayer.problems.unknown_inputs import draw
from onelayer.readouts.false_hits import Fingerprints, Stored, upper_limit
from onelayer.search.problem import Problem
from onelayer.search.routes import BestCandidate

Array = NDArray[Any]

#: Unknown inputs of each kind; about this many tokens, or pairs of tokens, are spent on them, which limits their
#: number where sequences are long. A large build is fast for its size, so half as many must do there.
MOST, LEAST, TOKENS, PAIRS, LARGE = 4096, 128, 1 << 14, 1 << 21, 1 << 17


@dataclass(frozen=True)
class Asked:
    """Unknown inputs of one kind, one token of each: how many there were, how many got another answer than the
    default, and a bound on the share of those that do."""

    kind: str
    count: int
    hits: int
    bound: float


def unknown_inputs(problem: Problem, found: BestCandidate, model: Model) -> list[Constant]:
    """Lines of the ledger for a model with a default."""
    readout = found.fit.readout
    if problem.default is None or readout is None or readout.stored is None:
        return []
    asked = _ask(problem, readout.stored, model)
    bounds = " and ".join(f"{a.bound:.2g} for those {a.kind}" for a in asked)
    counts = " and ".join(f"{a.hits:,} of {a.count:,} {a.kind}" for a in asked)
    none = "nothing is known: every sequence drawn was a stored one"
    return [
        Constant("default", tuple(problem.default.tolist()), "what other inputs get; a class by its number"),
        Constant(
            "false_hits",
            max((a.bound for a in asked), default=1.0),
            f"bound on the share of unknown inputs that do not get the default, if {readout.stored.assumes}: "
            f"{bounds}"
            if asked
            else none,
        ),
        Constant(
            "false_hits_measured",
            max((upper_limit(a.hits, a.count) for a in asked), default=1.0),
            f"upper limit, at 95%, of that share among sequences drawn at random: {counts} did not get it"
            if asked
            else none,
        ),
    ]


def _ask(problem: Problem, stored: Stored | Fingerprints, model: Model) -> list[Asked]:
    assert problem.default is not None
    n, large = problem.sequences.n, problem.sequences.token_count() > LARGE
    count = int(np.clip(min((TOKENS >> large) // n, PAIRS // n**2), LEAST, MOST))
    rng = np.random.default_rng([problem.seed, 7])
    drawn = draw(problem.sequences, count, problem.positions, problem.dtype, rng)
    default = problem.default.astype(problem.dtype)
    asked = []
    for kind, sequences in drawn.items():
        h = _one_token_each(model, sequences, rng)
        t = np.maximum(apply_layer(model.transformer.readout[0], h), 0)
        search = model.evaluator.searches["readout"]
        answers = apply_stack(model.transformer.readout, h) if search is None else search(h)
        hits = int((answers != default).any(axis=1).sum())
        found, count = stored.bound(t), len(h)
        # More hits than chance explains speak against what the bound assumes: then what was measured is the bound.
        surprising = hits > count * found + 4 * np.sqrt(count * found) + 4
        asked.append(Asked(kind, count, hits, max(found, upper_limit(hits, count)) if surprising else found))
    return asked


def _one_token_each(model: Model, sequences: Sequences, rng: np.random.Generator) -> Array:
    """What the readout sees of a token of each sequence, drawn at random: tokens of one sequence are not
    independent, so that more of them would not say more."""
    before = replace(model.transformer, readout=())
    h = evaluate(
        before, sequences.tokens, sequences.lengths, {"feedforward": model.evaluator.searches["feedforward"]}
    )
    lengths = sequences.n if sequences.lengths is None else sequences.lengths
    return h[np.arange(len(h)), np.floor(rng.random(len(h)) * lengths).astype(np.int64)]
