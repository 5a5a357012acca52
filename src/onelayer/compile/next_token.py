"""A text in one layer: every window of n tokens answered by the distribution of the token that follows it.

Statement  a causal layer gives, at the last token of each window of a text, the empirical next-token distribution.
Gives      weights whose output is a vector of probabilities, exactly 0 and 1 wherever one continuation occurs.
Rests on   lattice (a code for each place and token, summed), retrieval or packed (a number for each distribution),
           plateaus (from the number to the distribution).
Why        a language model that knows one text by heart, with every weight accounted for and nothing trained.
Differs    windows are never written out: their sums are accumulated place by place from the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.lattice import (
    DEFAULT_RANK,
    coordinate_radius,
    summing_attention,
    whole_bits,
)
from onelayer.contexts.places import draw_places
from onelayer.errors import HypothesisError, OptionError, PrecisionError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.place_gates import PlaceGates
from onelayer.gadgets.stacks import Covered, compose
from onelayer.gadgets.windows import window_sums
from onelayer.ledger import Constant, Ledger
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.problems.windows import TextWindows
from onelayer.readouts import packed, packed_sizes, retrieval
from onelayer.readouts.plateaus import on_a_line
from onelayer.readouts.readout import Readout
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["text"]
Array = NDArray[Any]
Step = Callable[[str], None]

DTYPE = np.dtype(np.float32)
#: A place adds up about this many components of a token's code.
PLACES_ADD = 4.0
#: Draws of codes before giving up; one is nearly always enough.
ATTEMPTS = 12
#: How the number of a distribution is stored: several to a cell if that is smaller, else one.
TABLES = (("packed", packed.construct), ("retrieval", retrieval.construct))


@dataclass(frozen=True)
class TextCodes:
    """Codes drawn for a text, and the coordinates of its different windows."""

    table: Array  # [V + 1, s]
    places: PlaceGates
    keys: Array  # [M, s] whole numbers, at least 1
    offset: Array  # [s]
    bits: int
    radius: float  # how far a coordinate as computed may be from its whole number


class Built(NamedTuple):
    transformer: Transformer
    gadgets: tuple[Covered, ...]
    ledger: Ledger


def hypotheses(context: int) -> int:
    """Bits of a token's code; raise where sums over so long a window do not fit."""
    if isinstance(context, bool) or not isinstance(context, int | np.integer) or context < 1:
        raise OptionError(
            "text", "a context of at least 1 token", f"context={context!r}", "Choose a number such as 128."
        )
    try:
        return whole_bits(int(context), DTYPE, PLACES_ADD)
    except PrecisionError as error:
        fits = int(context)
        while not _fits(fits):
            fits = fits // 2
        while _fits(fits + 1):
            fits += 1
        raise PrecisionError(
            "lattice", error.needs, f"{error.found}, context={context}", f"Use a context of at most {fits}."
        ) from None


def construct(windows: TextWindows, seed: int = 0, on_step: Step = lambda _: None) -> Built:
    """The model of these windows and its constants; the same windows and seed give the same weights."""
    hypotheses(windows.context)
    dense = _packs(windows)
    for attempt in range(ATTEMPTS):
        on_step(f"adding up {windows.count:,} windows")
        draw = draw_codes(windows, seed, attempt, packed_sizes.COORDINATES if dense else DEFAULT_RANK)
        if draw is None:
            continue
        on_step(f"storing what follows {len(windows.first):,} windows")
        values = windows.answers[:, None].astype(np.float64)
        for kind, method in TABLES[not dense :]:
            cells = method(draw.keys, values, DTYPE, draw.radius, seed + attempt)
            if cells is not None and cells.guard > draw.radius:
                return _assemble(windows, draw, replace(cells, kind=kind), seed, attempt)
    raise HypothesisError(
        "text",
        "token codes that separate all windows",
        f"none of {ATTEMPTS} draws does for {len(windows.first):,} windows of {windows.context} tokens",
        "Use a shorter context, or another seed.",
    )


def _packs(windows: TextWindows) -> bool:
    """Whether packed cells are expected to take fewer parameters than one number to a cell."""
    n, M, K = windows.context, len(windows.first), len(windows.distributions)
    lane = n * (n + 2 * DEFAULT_RANK)  # what the gates of the places need for one more coordinate
    return packed_sizes.shapes(M, K, np.inf)[0].parameters + lane < retrieval.expected_parameters(
        windows.answers[:, None]
    )


def draw_codes(windows: TextWindows, seed: int, attempt: int, s: int) -> TextCodes | None:
    """Random codes of s coordinates, and the sums of all different windows; None if two of these coincide."""
    n = windows.context
    rng = np.random.default_rng([seed, s, attempt, 11])
    bits = hypotheses(n)
    table = rng.integers(0, 1 << bits, (windows.size + 1, s)).astype(DTYPE)
    places = draw_places(n, table.max(axis=0), 1.0, DTYPE, rng)
    codes = np.stack([places.codes(table, k) for k in range(n)])  # [n, V + 1, s]
    largest = float(np.abs(codes).max())
    codes[-1] *= 2.0  # the last token counts twice: in the residual stream and in the sum
    keys = window_sums(codes.astype(DTYPE), windows.stream)[windows.first]
    if not _all_different(keys):
        return None
    offset = np.ceil(1.0 - keys.min(axis=0))
    keys = keys + offset
    top = float(keys.max()) + float(np.abs(offset).max())
    return TextCodes(
        table, places, keys, offset, bits, coordinate_radius(n, largest, top, float(np.finfo(DTYPE).eps) / 2)
    )


def conclusion(ledger: Ledger) -> str:
    """What is claimed of the model."""
    return f"at the last token of each of {ledger['distinct']} windows: the distribution of what follows"


def _all_different(keys: Array) -> bool:
    """Whether random sums of the whole-number rows are all different; then so are the rows."""
    odd = np.random.default_rng(0).integers(0, 2**63, keys.shape[1], dtype=np.int64) | 1
    return len(np.unique(keys.astype(np.int64) @ odd)) == len(keys)  # wraps around


def _fits(context: int) -> bool:
    try:
        return whole_bits(context, DTYPE, PLACES_ADD) > 0
    except PrecisionError:
        return False


def _summing_attention(n: int, s: int) -> Attention:
    """Sums over what a token sees. Its own code needs no more weight than others have: all windows end at one
    place, and keys that lean on the last token would not fill their cells evenly."""
    return replace(summing_attention(s, float(n), DTYPE, separate=False), causal=True)


def _assemble(windows: TextWindows, draw: TextCodes, cells: Readout, seed: int, attempt: int) -> Built:
    n, s = windows.context, draw.keys.shape[1]
    positions = np.zeros((n, s), DTYPE)
    positions[:, 0] = draw.places.spacing * np.arange(n)
    classes = np.arange(len(windows.distributions), dtype=np.float64)
    distribution = on_a_line(classes, windows.distributions, DTYPE).gadgets
    bottleneck = Affine(Linear(np.eye(s, dtype=DTYPE), draw.offset.astype(DTYPE)))
    transformer, gadgets = compose(
        _summing_attention(n, s),
        Embedding(table=draw.table, positions=positions),
        (draw.places,),
        (bottleneck, *cells.gadgets, *distribution),
        tuple(f"code{i}" for i in range(s)),
    )
    ledger = Ledger(tuple(_ledger(windows, draw, cells, seed, attempt, transformer)))
    return Built(transformer, gadgets, ledger)


def _ledger(
    windows: TextWindows, draw: TextCodes, cells: Readout, seed: int, attempt: int, built: Transformer
) -> list[Constant]:
    M, K, V = len(windows.first), len(windows.distributions), windows.size
    ambiguous = windows.ambiguous
    occurring = len(np.unique(windows.stream[windows.context :]))
    certain = M - int(ambiguous.sum())
    bits = float(certain * np.log2(occurring))
    return [
        Constant("mapping", "lattice", "a whole-number code for each place and token, added up by attention"),
        Constant("readout", cells.kind, "three cells, of whose entries the number of a distribution is made"),
        Constant("rank", draw.keys.shape[1], "size of the one head, and number of context coordinates"),
        Constant("dtype", str(DTYPE), "arithmetic in which the model runs"),
        Constant("seed", seed, "same text and seed, same weights"),
        Constant("attempts", attempt + 1, "draws of codes tried"),
        Constant("context", windows.context, "n, tokens in a window; the start token fills it before the text"),
        Constant("start_token", V, "V, the id of the token before the text; ids below it are tokens"),
        Constant("windows", windows.count, "N, tokens of the text, each with the window before it"),
        Constant("distinct", M, "M, different windows"),
        Constant("ambiguous_windows", M - certain, "of the M, those with several continuations in the text"),
        Constant("ambiguous_places", int(ambiguous[windows.group].sum()), "of the N, those after such a window"),
        Constant("distributions", K, "K: each token for certain, and the mixed distributions that occur"),
        Constant("code_bits", draw.bits, "token codes are whole numbers of about this many bits"),
        Constant("plateaus", cells.count, "cells of the three tables"),
        Constant("guard", cells.guard, "how far a coordinate may move without leaving its cell"),
        Constant("radius_upper", draw.radius, f"a-priori bound on the rounding error of a coordinate in {DTYPE}"),
        Constant("margin", cells.guard / draw.radius, "guard / radius_upper; at least 1 is safe"),
        Constant("stored_bits", bits, f"(M - ambiguous) log2 A, A = {occurring} tokens that occur"),
        Constant("parameters", built.n_parameters, "every weight and bias, zeros of full matrices included"),
        Constant("bytes", built.n_parameters * DTYPE.itemsize, "of weights"),
    ]
