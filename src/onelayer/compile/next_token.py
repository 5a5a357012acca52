"""A text in one layer: every window of n tokens answered by the distribution of the token that follows it.

Statement  a causal layer gives, at the last token of each window of a text, the empirical next-token distribution.
Gives      weights whose output is a vector of probabilities, exactly 0 and 1 wherever one continuation occurs.
Rests on   lattice (a code for each place and token, summed), retrieval or packed (a number for each distribution),
           plateaus (from the number to the distribution).
Why        a language model that knows one text by heart, with every weight accounted for and nothing trained.
Differs    windows are never written out, and the text is gone through in blocks: sums of codes are products of
           matrices, and only counts of them, then cells of tables, are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.hashed import sum_radius
from onelayer.contexts.lattice import DEFAULT_RANK, summing_attention, whole_bits
from onelayer.contexts.places import draw_places
from onelayer.errors import HypothesisError, OptionError, PrecisionError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.place_gates import PlaceGates
from onelayer.gadgets.stacks import Covered, compose
from onelayer.gadgets.window_sums import WindowSums
from onelayer.ledger import Constant, Ledger
from onelayer.network import Embedding, Linear, Transformer
from onelayer.problems.windows import TextWindows
from onelayer.readouts import packed_blocks, packed_sizes, retrieval
from onelayer.readouts.packed_blocks import KeyBlocks
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
#: Windows whose coordinates are in memory at a time.
BLOCK = 1 << 18
#: From this many windows on, tables have more rows than sums of short codes have values: then this many
#: coordinates, one for the rows of each table, lean on the last token, doubled at most so often, up to this radius.
MANY_WINDOWS, WIDE, MOST_DOUBLINGS, WIDE_RADIUS = 1 << 20, 3, 12, 0.3
#: Windows for each part that a coordinate of the fingerprints is cut into.
WINDOWS_A_CUT = 4


@dataclass(frozen=True)
class TextCodes:
    """Codes drawn for a text, and what they make of its different windows."""

    table: Array  # [V + 1, s]
    places: PlaceGates
    sums: WindowSums  # coordinates, at least 1 for every stored window
    keys: KeyBlocks
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


def construct(
    windows: TextWindows, seed: int = 0, on_step: Step = lambda _: None, false_hits: float | None = None
) -> Built:
    """The model of these windows and its constants; the same windows and seed give the same weights. With
    ``false_hits``, fingerprints tell windows that are not stored, but for about this share of them."""
    hypotheses(windows.context)
    stored, classes = windows.distinct + windows.ends, windows.nothing + 1
    bits = 0.0 if false_hits is None else -np.log2(false_hits)
    ways = packed_sizes.shapes(stored, classes, np.inf, bits)
    if false_hits is not None and not _has_room(ways, stored):
        raise _too_few(windows, false_hits)
    dense = false_hits is not None or _packs(windows, ways)
    printed = packed_sizes.COORDINATES if false_hits is None else packed_sizes.WITH_PRINTS
    rank = printed if dense else DEFAULT_RANK
    for attempt in range(ATTEMPTS):
        on_step(f"adding up {windows.count:,} windows")
        draw = draw_codes(windows, seed, attempt, rank)
        on_step(f"storing what follows {stored:,} windows")
        for kind in ("packed", "retrieval")[not dense :][: 1 if false_hits is not None else 2]:
            cells = _store_numbers(kind, draw, classes, seed + attempt, false_hits)
            if cells is not None and cells.guard > draw.radius:
                return _assemble(windows, draw, replace(cells, kind=kind), seed, attempt)
    raise HypothesisError(
        "text",
        "token codes that separate all windows",
        f"none of {ATTEMPTS} draws does for {stored:,} windows of {windows.context} tokens",
        "Use a shorter context, or another seed.",
    )


def _store_numbers(kind: str, draw: TextCodes, classes: int, seed: int, false_hits: float | None) -> Readout | None:
    """The number of a distribution, several to a cell or one; None where keys do not peel: equal ones never do."""
    if kind == "packed":
        share, default = (1.0, None) if false_hits is None else (false_hits, classes - 1)
        return packed_blocks.construct(draw.keys, classes, DTYPE, draw.radius, seed, default, share)
    keys, answers = (np.concatenate(parts) for parts in zip(*draw.keys.blocks(), strict=True))
    return retrieval.construct(keys.astype(DTYPE), answers[:, None].astype(np.float64), DTYPE, draw.radius, seed)


def _has_room(ways: list[packed_sizes.Shape], stored: int) -> bool:
    """Whether class and fingerprint fit into a word, and windows suffice to cut the fingerprints' coordinates."""
    return bool(ways) and stored >= WINDOWS_A_CUT * max(packed_sizes.print_sizes(ways[0].layout))


def _too_few(windows: TextWindows, false_hits: float) -> HypothesisError:
    return HypothesisError(
        "packed",
        f"many windows, and few distributions, for fingerprints of {-np.log2(false_hits):.1f} bits",
        f"there are {windows.distinct:,} windows and {windows.nothing:,} distributions",
        "Use larger false_hits, or leave it out: the model then does not know what is not stored.",
    )


def _packs(windows: TextWindows, ways: list[packed_sizes.Shape]) -> bool:
    """Whether packed cells are expected to take fewer parameters than one number to a cell."""
    n = windows.context
    lane = n * (n + 2 * DEFAULT_RANK)  # what the gates of the places need for one more coordinate
    one_each = retrieval.expected_parameters(np.zeros((windows.distinct, 1)))
    return bool(ways) and ways[0].parameters + lane < one_each


def draw_codes(windows: TextWindows, seed: int, attempt: int, s: int) -> TextCodes:
    """Random codes of s coordinates, and how the sums of all different windows lie."""
    n, unit = windows.context, float(np.finfo(DTYPE).eps) / 2
    rng = np.random.default_rng([seed, s, attempt, 11])
    bits = hypotheses(n)
    table = rng.integers(0, 1 << bits, (windows.size + 1, s)).astype(DTYPE)
    places = draw_places(n, table.max(axis=0), 1.0, DTYPE, rng)
    wide = WIDE if windows.distinct >= MANY_WINDOWS and s > DEFAULT_RANK else 0
    if wide:
        places = _widen_rows(places, table, wide, unit)
    taps, shift = places.mixing.astype(np.float64), places.shift.astype(np.float64)
    taps[-1] *= 2.0  # the last token counts twice: in the residual stream and in the sum
    sums = WindowSums(table, taps, (shift.sum(axis=0) + shift[-1]).astype(np.int64))
    counts, low = _count_coordinates(windows, sums)
    offset = 1 - low
    top = float(max(len(some) for some in counts)) + float(np.abs(offset).max())
    sums = sums.shifted(offset)
    keys = KeyBlocks(partial(_iterate_keys, windows, sums), counts, 1, wide)
    return TextCodes(
        table, places, sums, keys, offset, bits, sum_radius(n, _code_size(places, table), top, unit, sink=False)
    )


def _code_size(places: PlaceGates, table: Array) -> float:
    """What the sizes of the codes of a window add up to, at most."""
    return float(sum(np.abs(places.codes(table, k)).max(axis=0) for k in range(len(places.mixing))).max())


def _widen_rows(places: PlaceGates, table: Array, wide: int, unit: float) -> PlaceGates:
    """The last token times a power of two in some coordinates, as large as rounding allows, and not at all in the
    others. The first then take many more values, and rows of large tables are cut along them; columns are cut along
    others, so that all cells of a row are equally full, whatever the last token is."""
    n, found = len(places.mixing), places
    for times in 2.0 ** np.arange(1, MOST_DOUBLINGS):
        mixing, shift = places.mixing.copy(), places.shift.copy()
        mixing[-1, :, :wide] *= times
        shift[-1, :wide] *= times
        mixing[-1, :, wide:] = shift[-1, wide:] = 0.0
        wider = replace(places, mixing=mixing, shift=shift)
        size = _code_size(wider, table)
        if sum_radius(n, size, 2 * size, unit, sink=False) > WIDE_RADIUS:
            break
        found = wider
    return found


def _count_coordinates(windows: TextWindows, sums: WindowSums) -> tuple[list[Array], Array]:
    """How often each whole number occurs in each coordinate of the stored windows, from the least on; and that."""
    least = sums.codes.min(axis=1).sum(axis=0) + sums.constant
    sizes = sums.codes.max(axis=1).sum(axis=0) + sums.constant - least + 1
    counts = [np.zeros(size, np.int64) for size in sizes.tolist()]
    for keys, _ in _iterate_keys(windows, sums.shifted(-least)):
        for i, some in enumerate(counts):
            some += np.bincount(keys[:, i], minlength=len(some))
    filled = [np.flatnonzero(some) for some in counts]
    low = np.array([at[0] for at in filled])
    return [some[at[0] : at[-1] + 1] for some, at in zip(counts, filled, strict=True)], least + low


def _iterate_keys(windows: TextWindows, sums: WindowSums) -> Iterator[tuple[Array, Array]]:
    """Coordinates of the different windows, and the number of what follows each; then the last window."""
    n, N = windows.context, windows.count
    for start in range(0, N, BLOCK):
        stop = min(start + BLOCK, N)
        new = windows.new[start:stop]
        yield sums.of(windows.stream[start : stop + n - 1])[new], windows.which[start:stop][new]
    if windows.ends:
        yield sums.of(windows.last), np.array([windows.nothing])


def conclusion(ledger: Ledger) -> str:
    """What is claimed of the model."""
    return f"at the last token of each of {ledger['distinct']} windows: the distribution of what follows"


def _fits(context: int) -> bool:
    try:
        return whole_bits(context, DTYPE, PLACES_ADD) > 0
    except PrecisionError:
        return False


def _assemble(windows: TextWindows, draw: TextCodes, cells: Readout, seed: int, attempt: int) -> Built:
    n, s = windows.context, draw.table.shape[1]
    positions = np.zeros((n, s), DTYPE)
    positions[:, 0] = draw.places.spacing * np.arange(n)
    classes = np.arange(len(windows.distributions), dtype=np.float64)
    distribution = on_a_line(classes, windows.distributions, DTYPE).gadgets
    bottleneck = Affine(Linear(np.eye(s, dtype=DTYPE), draw.offset.astype(DTYPE)))
    # Sums over what a token sees. Its own code needs no more weight than others have: all windows end at one place,
    # and keys that lean on the last token would not fill their cells evenly.
    attention = replace(summing_attention(s, float(n), DTYPE, separate=False), causal=True)
    transformer, gadgets = compose(
        attention,
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
    M, K, V = windows.distinct, windows.nothing, windows.size
    occurring = len(windows.occurring)
    certain = M - int(np.count_nonzero(windows.ambiguous))
    bits = float(certain * np.log2(occurring))
    return [
        Constant("mapping", "lattice", "a whole-number code for each place and token, added up by attention"),
        Constant("readout", cells.kind, "three cells; their entries make up the number of a distribution"),
        Constant("rank", draw.table.shape[1], "size of the one head, and number of context coordinates"),
        Constant("dtype", str(DTYPE), "arithmetic in which the model runs"),
        Constant("seed", seed, "same text and seed, same weights"),
        Constant("attempts", attempt + 1, "draws of codes tried"),
        Constant("context", windows.context, "n, tokens in a window; the start token fills it before the text"),
        Constant("start_token", V, "V, the id of the token before the text; ids below it are tokens"),
        Constant("windows", windows.count, "N, tokens of the text, each with the window before it"),
        Constant("distinct", M, "M, different windows"),
        Constant("ambiguous_windows", M - certain, "of the M, those with several continuations in the text"),
        Constant(
            "ambiguous_places", int(np.count_nonzero(windows.which >= V)), "of the N, those after such a window"
        ),
        Constant("ends", windows.ends, "whether the last window is stored: nothing follows it, if it occurs once"),
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
