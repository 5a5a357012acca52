"""Quantise, attend, read: Proposition 1 as weights.

Statement  cells of width h; FF_1 finds the cell of each token, one softmax head tells all (cell, multiset of cells)
           apart, FF_2 answers with the value stored for them.
Gives      |model - f| <= sup over a cell of |f - f(centre)| + rounding of the stored values, for every input none
           of whose components lies on a ramp between two cells; the share of the box on ramps is stated.
Rests on   proposition_1, plateaus (cells are exactly 0 or 1), lattice or temperature (contexts of token ids).
Why        once tokens are cells there are finitely many sequences, and a function on them is a table to memorise.
Differs    multisets are allowed, so no region of repeated tokens is given up ("published" gives it up, as the paper
           does); contexts are those of the memoriser; a last clamp keeps the model within the range of f
           everywhere, which bounds the L^p error on the ramps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.grid import Grid
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.clamp import Clamp
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.line import trapezoids
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.stacks import Covered, compose
from onelayer.ledger import Constant
from onelayer.network import Embedding, Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.scopes import Scope
from onelayer.search.problem import Mapping, Options, read_problem
from onelayer.search.routes import BestCandidate, search
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["quantise"]
Array = NDArray[Any]
Step = Callable[[str], None]


@dataclass(frozen=True)
class Staircase:
    """A model that is constant on cells, and the table it was made from."""

    transformer: Transformer
    gadgets: tuple[Covered, ...]
    form: AnswerForm
    grid: Grid
    cells: Array  # [N, n] every sequence of cells that is stored
    answers: Array  # [N, n, q] or [N, q], as stored
    constants: tuple[Constant, ...]


def construct(
    values: Callable[[Array], Array],
    grid: Grid,
    step: float,
    scope: Scope,
    *,
    distinct: bool = False,
    seed: int = 0,
    on_step: Step | None = None,
) -> Staircase:
    """``values`` of the centres [N, n, d], rounded to multiples of ``step``, a power of two.

    ``distinct`` leaves out the sequences with repeated cells and takes a softmax head without biases, as the paper
    does.
    """
    cells = grid.sequences()
    if distinct:
        cells = cells[(np.diff(np.sort(cells, axis=1), axis=1) > 0).all(axis=1)]
    answers = np.rint(values(grid.tokens[cells]) / step) * step + 0.0
    mapping: Mapping = "temperature" if distinct else "auto"
    options = Options(dtype=grid.dtype, scope=scope, positions=grid.ordered, seed=seed, mapping=mapping)
    problem = read_problem(cells, answers, options)
    found = search(problem, on_step)
    flat = answers.reshape(-1, answers.shape[-1])
    fitted = found.fit.readout
    assert fitted is not None
    assert problem.sequences.vocabulary is not None
    place = {cell: i for i, cell in enumerate(problem.sequences.vocabulary)}
    rows = np.array([place[i] for i in range(grid.cells)])
    embedding, feedforward = _before(grid, found, rows)
    readout = (Affine(found.context_map.bottleneck), *clamp(fitted.gadgets, flat.min(axis=0), flat.max(axis=0)))
    made = compose(found.context_map.attention, embedding, feedforward, readout, found.context_map.channels)
    form = AnswerForm(scope, None, answers.shape[-1], False)
    return Staircase(*made, form, grid, cells, answers, _constants(grid, len(cells), found, step))


def _constants(grid: Grid, stored: int, found: BestCandidate, step: float) -> tuple[Constant, ...]:
    assert found.fit.readout is not None
    return (
        Constant("levels", grid.levels, "D, cells of a component"),
        Constant("cell", grid.width, "h, the width of a cell"),
        Constant("ramp", 2 * grid.margin, "what is left out around an edge"),
        Constant("sequences", stored, "sequences of cells, as multisets unless order matters"),
        Constant("mapping", found.route.mapping, found.route.why),
        Constant("readout", found.fit.readout.kind, found.fit.readout.compared or "asked for"),
        Constant("rank", int(found.route.rank), "size of the one head"),
        Constant("margin", found.fit.margin, "guard / radius_upper of the contexts; at least 1 is safe"),
        Constant("value_step", step, "stored values are multiples of it"),
    )


def _before(grid: Grid, found: BestCandidate, rows: Array) -> tuple[Embedding | None, tuple[Gadget, ...]]:
    """What looks a token up: cells, exactly one of them on, and the row of the memoriser's token table for it."""
    looked_up, later = found.context_map.embedding, found.context_map.feedforward
    assert looked_up is not None
    assert looked_up.table is not None
    table, places = looked_up.table[rows], looked_up.positions
    embedding, passed = None, np.zeros((0, table.shape[1]), table.dtype)
    if places is not None:  # a one-hot of the place is carried along, and looked up as well
        passed = places
        lift, at = np.eye(grid.d, grid.d + grid.n), np.zeros((grid.n, grid.d + grid.n))
        at[:, grid.d :] = np.eye(grid.n)
        embedding = Embedding(lift=lift.astype(grid.dtype), positions=at.astype(grid.dtype))
    constant = np.zeros(table.shape[1], table.dtype)
    if later and isinstance(later[0], Affine):  # no ReLU may come between the two
        weight, constant = later[0].layer.weight, later[0].layer.bias
        table, passed, later = table @ weight, passed @ weight, later[1:]
    return embedding, (cells_of(grid, table, passed, constant), *later)


def cells_of(grid: Grid, values: Array, passed: Array, constant: Array) -> Plateaus:
    """From d components, and as many channels as are ``passed``, to the values [V, w] of the cell that is on."""
    D, d, V, k, inner = grid.levels, grid.d, grid.cells, len(passed), grid.edges[1:-1]
    w, b, _ = trapezoids(inner - grid.margin, inner + grid.margin, grid.dtype)  # [D, 2]
    at = np.stack(np.unravel_index(np.arange(V), (D,) * d), axis=1)  # [V, d]
    carried = np.eye(d + k, k, -d, dtype=grid.dtype)
    return Plateaus(w[at], b[at], values, constant, carried, passed)


def clamp(gadgets: tuple[Gadget, ...], low: Array, high: Array) -> tuple[Gadget, ...]:
    """The same outputs kept within [low, high]: high - relu(high - low - relu(out - low)).

    Stored values, low and high are multiples of one power of two, so on them nothing is rounded.
    """
    *before, last = gadgets
    dtype = last.dense[-1].weight.dtype
    return (*before, last.shift_outputs(-low), Clamp((high - low).astype(dtype), high.astype(dtype)))
