"""How far apart the tokens of a data set are, measured.

Statement  Definition 1, tokenwise (r_min, r_max, eps)-separation.
Gives      the three numbers for given sequences, each rounded to its safe side, and the distinct tokens.
Rests on   nothing.
Why        every context construction starts from them: they fix its temperature, its radius and its gap.
Differs    Definition 1 has strict inequalities; the measured numbers satisfy them with "or equal". The theorems
           that need strictness take a relative slack of 2^-30 (onelayer.contexts.literal.strict).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.sequences import read_sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["separation"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: A pair within this relative distance of the best squared distance is bounded by its screen, not refined.
TIE = 2.0**-36
#: Pairs screened at once, and numbers refined at once.
BLOCK_ROWS, BLOCK_COLUMNS, REFINED = 512, 8192, 1 << 22
#: Larger than every underflow in the screen, whose numbers are scaled to at most 1.
UNDERFLOW = 2.0**-960


@dataclass(frozen=True)
class Separation:
    """``r_min`` <= token norms <= ``r_max``; different tokens are at least ``eps`` apart (inf for one token)."""

    r_min: float
    r_max: float
    eps: float
    vocabulary: int  # |V|, the number of different tokens
    n: int  # the longest sequence
    d: int
    repeated_within: tuple[int, int, int] | None  # the first (sequence, place, later place) of a repeated token


def measure(X: Any, lengths: Any = None) -> Separation:
    """Definition 1 measured on sequences [N, n, d]; rows at or after a length are ignored.

    >>> s = measure([[[3.0, 4.0], [0.0, 1.0]]])
    >>> s.vocabulary, round(s.r_min, 9), round(s.r_max, 9), round(s.eps**2, 9)
    (2, 1.0, 5.0, 18.0)
    """
    tokens, codes = distinct(X, lengths)
    d = tokens.shape[1]
    norms, slack = row_norms(tokens), norm_error(d)
    return Separation(
        r_min=math.nextafter(float(norms.min()) * (1 - slack), 0.0),  # nextafter is for subnormal numbers
        r_max=math.nextafter(float(norms.max()) * (1 + slack), math.inf),
        eps=eps_lower(tokens),
        vocabulary=len(tokens),
        n=int((codes >= 0).sum(1).max()),
        d=d,
        repeated_within=first_repeat(codes),
    )


def distinct(X: Any, lengths: Any = None) -> tuple[Floats, Codes]:
    """The different tokens [V, d] and, for every place [N, n], which token stands there (-1 in the padding).

    Tokens are equal if they are equal bit for bit, once -0.0 is read as 0.0.
    """
    sequences = read_sequences(X, lengths, real=True)
    visible = sequences.valid()
    if visible is None:
        visible = np.ones((sequences.N, sequences.n), bool)
    rows = np.ascontiguousarray(sequences.tokens[visible].astype(np.float64) + 0.0)  # -0.0 + 0.0 is 0.0
    first, inverse = _group_rows(rows)
    codes = np.full(visible.shape, -1, np.intp)
    codes[visible] = inverse
    return rows[first], codes


def first_repeat(codes: Codes) -> tuple[int, int, int] | None:
    """The first sequence with a token twice, and the first two places of the first such token."""
    inside = np.sort(codes, axis=1)
    broken = np.flatnonzero(((inside[:, 1:] == inside[:, :-1]) & (inside[:, 1:] >= 0)).any(1))
    if not broken.size:
        return None
    row = codes[broken[0]]
    for place, code in enumerate(row):
        later = np.flatnonzero(row[place + 1 :] == code)
        if code >= 0 and later.size:
            return int(broken[0]), place, place + 1 + int(later[0])
    raise AssertionError("a repeated code has two places")


def row_norms(rows: Floats) -> Floats:
    """Euclidean norms with relative error below ``norm_error(d)``: each row is scaled by a power of two first,
    so that no square overflows or underflows."""
    exponent = np.frexp(np.abs(rows).max(axis=-1))[1]
    scaled = np.ldexp(rows, -exponent[..., None])
    norms: Floats = np.ldexp(np.sqrt(np.einsum("...i,...i->...", scaled, scaled)), exponent)
    return norms


def norm_error(d: int) -> float:
    """Relative error of ``row_norms`` on a row, or on a difference of two rows, with ample room: (d + 8) 2^-52."""
    return (d + 8) * 2.0**-52


def eps_lower(tokens: Floats) -> float:
    """A lower bound on the smallest distance of two rows, below it by a relative 2^-36 at most; inf for one row.

    Rows are sorted along their widest direction: two rows closer than the best distance so far are also closer
    than that along any unit vector, so only a window has to be looked at. In it, |x|^2 + |y|^2 - 2 x.y minus its
    rounding error screens the pairs at the speed of a matrix product, and only what may beat the best is refined
    by the difference x - y itself. Memory is bounded whatever the number of rows.
    """
    if len(tokens) < 2:
        return math.inf
    d = tokens.shape[1]
    exponent = int(np.frexp(np.abs(tokens).max())[1])
    Z = np.ldexp(tokens, -exponent)  # at most 1, so that squares do not overflow; used to screen only
    along = Z @ _widest_direction(Z)
    order = np.argsort(along)
    tokens, Z, along = tokens[order], Z[order], along[order]
    radius = 8 * (d + 8) * 2.0**-52 * math.sqrt(d)  # twice the rounding error of one projection
    squares = np.einsum("ij,ij->i", Z, Z) * (1 - 4 * (d + 8) * 2.0**-52)  # minus the screen's rounding error
    best, floor = float(row_norms(tokens[1:] - tokens[:-1]).min()), math.inf
    for start in range(0, len(Z), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(Z)))
        column = start
        while True:
            window = along[rows.stop - 1] + math.ldexp(best, -exponent) * (1 + 1e-9) + radius
            columns = slice(column, min(column + BLOCK_COLUMNS, int(np.searchsorted(along, window, "right"))))
            if columns.start >= columns.stop:
                break
            lower = _screen(Z, squares, rows, columns)
            best = _refine(tokens, lower, rows, columns, best, exponent)
            floor, column = min(floor, float(lower.min())), columns.stop
    screened = math.ldexp(math.sqrt(floor), exponent) if floor < math.inf else floor
    return math.nextafter(min(best * (1 - norm_error(d)), screened), 0.0)


def _screen(Z: Floats, squares: Floats, rows: slice, columns: slice) -> Floats:
    """Lower bounds on the squared distances of a block of pairs, infinite for pairs that another entry covers."""
    lower: Floats = squares[rows, None] + squares[None, columns]
    lower -= 2 * (Z[rows] @ Z[columns].T)
    lower -= UNDERFLOW
    lower[np.arange(rows.start, rows.stop)[:, None] >= np.arange(columns.start, columns.stop)] = np.inf
    return lower


def _refine(tokens: Floats, lower: Floats, rows: slice, columns: slice, best: float, exponent: int) -> float:
    """The best distance after this block; the pairs that were refined leave the screen (become infinite)."""

    def distance(flat: Codes) -> float:
        i, j = np.unravel_index(flat, lower.shape)
        return float(row_norms(tokens[rows][i] - tokens[columns][j]).min())

    def limit() -> float:
        return math.ldexp(best, -exponent) ** 2 * (1 - TIE)

    if lower.min() < limit():  # the likeliest pair first: it prunes the others
        best = min(best, distance(np.array([lower.argmin()])))
    worth = np.flatnonzero(lower < limit())
    step = max(1, REFINED // tokens.shape[1])
    for piece in range(0, worth.size, step):
        best = min(best, distance(worth[piece : piece + step]))
    lower.reshape(-1)[worth] = np.inf
    return best


def _widest_direction(Z: Floats) -> Floats:
    """Nearly the unit vector along which the rows vary most: power steps from the widest coordinate.

    Any unit vector would be right; this one prunes well.
    """
    centred = Z - Z.mean(0)
    direction = np.eye(1, Z.shape[1], int(np.einsum("ij,ij->j", centred, centred).argmax()))[0]
    for _ in range(8):
        step = centred.T @ (centred @ direction)
        norm = row_norms(step)
        if norm == 0:  # the spread is lost in rounding
            break
        direction = step / norm
    unit: Floats = direction / row_norms(direction)
    return unit


def _group_rows(rows: Floats) -> tuple[Codes, Codes]:
    """For equal rows the same number: (a row of each group, the group of each row).

    A hash groups them with one sort of integers and the comparison proves it; the slower sort of the rows
    themselves is there for a collision.
    """
    bits = rows.view(np.uint64)
    whole_rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    for keys in (_row_hashes(bits), whole_rows):
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if (bits[first][inverse] == bits).all():
            break
    return first, inverse


def _row_hashes(bits: NDArray[np.uint64]) -> NDArray[Any]:
    """A random linear hash modulo 2^64. Short numbers such as 1.0 have only high bits, which a product would shift
    out, so the high half is folded onto the low half first."""
    odd = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * 2 + 1
    hashes: NDArray[Any] = ((bits ^ (bits >> 32)) * odd).sum(1, dtype=np.uint64)
    return hashes
