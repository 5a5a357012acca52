"""formula_error: how far a network is from a formula, for all sequences of up to so many tokens of a box.

In real arithmetic blocks.py follows the layers before and after attention. In between, a head averages values with
weights softmax(q . k). If its logits are within D of the planned ones, up to what is the same for all y, an average
of values with range R is off by at most D |R|/2: moved along a straight line, an average changes at the rate of the
covariance of values and of what logits move by, which is at most a quarter of the product of both ranges. An
average of v with weights softmax(B v + d), |d| <= D, is below the largest v by at most (log n + 2 D)/B: log sum
e^(B v + d) is the average of B v + d plus an entropy, which is at most log n. What an arithmetic adds to a head is
bounded for one token that stands for all, as in rounding.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from onelayer_checker.core.balls import EXP_U, NORMAL, REAL, TINY, UP, Arithmetic, Array, Ball, U, gamma
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network
from onelayer_checker.core.judge import Judge
from onelayer_checker.functions.algebra import ONE, Polynomial, product, total
from onelayer_checker.functions.blocks import Group, Number, domain, last, layer, plain
from onelayer_checker.functions.branch import middle
from onelayer_checker.functions.deviation import Known, deviation
from onelayer_checker.functions.formulas import Formula, Meaning, Undefined
from onelayer_checker.functions.intervals import Interval
from onelayer_checker.functions.rounding import Value, affine, products
from onelayer_checker.functions.slopes import dense

#: At least the logarithm of 2.
LOG_TWO = 0.6931471805599454
#: What the logits of a head that finds the largest value may be multiplied by.
DULLEST, SHARPEST = 2.0**-500, 2.0**500


def judge(found: Judge, claim: Claim) -> Verdict:
    formula, network, data = claim.target, found.network, found.data
    assert isinstance(formula, Formula)
    q = len(formula.outputs)
    shape = formula.d, q, formula.per
    if data.tokens.dtype == np.int64 or (data.tokens.shape[2], data.answers.shape[1], claim.scope) != shape:
        raise Malformed("claim", "the formula takes or gives other numbers than the network")
    if network.causal or "embedding.positions" in network.tensors:
        raise Malformed("claim", "a formula knows no places of tokens")
    try:
        error = largest_error(network, formula, claim.A)
    except Undefined as unseen:
        return Verdict("undecided", str(unseen), np.inf)
    except RecursionError:
        return Verdict("undecided", "lines are nested too deeply to be followed", np.inf)
    bound = claim.numbers["bound"]
    if not error <= bound:
        return Verdict("undecided", f"the error may be {error:.6g}", error)
    where = f"for every sequence of 1 to {formula.tokens:,} tokens of the box"
    return Verdict("proved", f"largest error {error:.6g} {where}", error)


def largest_error(network: Network, formula: Formula, A: Arithmetic) -> float:
    """At least the error of any output."""
    meaning, T = formula.meaning, network.tensors
    if why := meaning.disagreement():
        raise Undefined(why)
    before, after = network.feedforward.layers, (network.bottleneck, *network.readout.layers)
    stages = list(formula.stages)
    if len(stages) != ("embedding.lift" in T) + len(before) + len(after):
        raise Undefined("the plan has another number of layers than the network")
    sizes = [max(abs(end) for end in side) for side in formula.box]  # tokens are rounded where they are read
    moved = [0.0 if A is REAL else size * (A.u * UP) + A.tiny for size in sizes]
    h = [Number(_component(formula, c), 0.0, 0.0, moved[c]) for c in range(formula.d)]
    if "embedding.lift" in T:
        lift = T["embedding.lift"]
        h = last(meaning, plain(h), lift, T.get("embedding.bias", np.zeros(lift.shape[1])), stages.pop(0), A)
    for layers, attended in ((before, False), (after, True)):
        if attended:
            h = attention(network, meaning, h, stages.pop(0), A)
        groups: list[Group] = plain(h)
        for i, part in enumerate(layers):
            if i + 1 < len(layers):
                groups = layer(meaning, groups, dense(part), part.bias, stages.pop(0), A)
            else:
                lines = formula.planned if attended else stages.pop(0)
                h = last(meaning, groups, dense(part), part.bias, lines, A)
    known: Known = {}
    parts = [deviation(meaning, k, j, known) for k, j in zip(formula.outputs, formula.meant, strict=True)]
    own = [abs(found.offset) + found.error + found.moved for found in h]
    return max((error + part) * (UP * UP) for error, part in zip(own, parts, strict=True))


def _component(formula: Formula, c: int) -> int:
    for k, line in enumerate(formula.lines):
        if line == ("x", c):
            return k
    raise Undefined(f"no line is component {c} of a token")


@dataclass(frozen=True)
class Head:
    """What a head is taken for: an average with weights e^logit, or the largest of a polynomial."""

    logit: Polynomial
    largest: Polynomial | None
    near: float  # how far its logits are off
    sharp: float = 0.0  # of the largest: what its logits are multiplied by

    def error(self, wide: Interval, n: int) -> float:
        """Of an average of up to n values of this range, or of the largest of them."""
        if self.largest is not None:
            return (LOG_TWO * max((n - 1).bit_length(), 1) + 2 * self.near) / self.sharp * UP
        return self.near * float((wide[1] - wide[0])[0]) / 2 * (UP * UP) + (TINY if self.near else 0.0)


def attention(
    network: Network, meaning: Meaning, h: list[Number], lines: tuple[int, ...], A: Arithmetic
) -> list[Number]:
    """The stream after attention, whose numbers are said to stand for these lines."""
    T, algebra, n = network.tensors, meaning.algebra, meaning.formula.tokens
    O, (H, w, s) = T["attention.W_O"], T["attention.W_Q"].shape
    if len(lines) != w or len(h) != w:
        raise Undefined("the plan has another number of channels than the stream")
    own, other = ([_polynomial(meaning, x, swapped) for x in h] for swapped in (False, True))
    values = [[_read_value(T["attention.W_V"][g, :, k], other, h, 0.0) for k in range(s)] for g in range(H)]
    heads = [_head(network, meaning, g, own, other, h, lines) for g in range(H)]
    moved = _stream_rounding(network, meaning, h, [head.sharp for head in heads], A)
    found = []
    for c, line in enumerate(lines):
        z, error = own[c], h[c].error
        for g, head in enumerate(heads):
            for k in np.flatnonzero(O[g, :, c]):
                v, off = values[g][k]
                if head.largest is None or not v.keys() - {()}:
                    o = algebra.average(head.logit, v)
                else:
                    o, P = meaning.largest(head.largest), head.largest
                    off += _size(meaning.enclose(total((v, 1), (P, -1))))
                off += head.error(meaning.enclose(v), n)
                z = total((z, 1), (o, Fraction(float(O[g, k, c]))))
                error += abs(float(O[g, k, c])) * off * UP
        apart = meaning.enclose(total((z, 1), (meaning.normal(line), -1)))
        low, high = float(apart[0][0]), float(apart[1][0])
        offset = low / 2 + high / 2
        error = (error + max(high - offset, offset - low)) * (UP * UP) + TINY
        if not error < np.inf:
            raise Undefined(f"channel {c} of the stream is not seen to be line {line}")
        found.append(Number(line, offset, error, moved[c]))
    return found


def _polynomial(meaning: Meaning, x: Number, swapped: bool) -> Polynomial:
    return total((meaning.normal(x.line, swapped), 1), (ONE, Fraction(x.offset)))


def _read_value(w: Array, of: list[Polynomial], h: list[Number], b: float) -> tuple[Polynomial, float]:
    """A query, key or value: its polynomial, and how far off it may be."""
    used = [int(c) for c in np.flatnonzero(w)]
    p = total((ONE, Fraction(b)), *((of[c], Fraction(float(w[c]))) for c in used))
    return p, sum(abs(float(w[c])) * h[c].error + TINY for c in used if h[c].error) * (UP * UP)


def _size(a: Interval) -> float:
    return float(max(-a[0][0], a[1][0]))


def _head(
    network: Network,
    meaning: Meaning,
    g: int,
    own: list[Polynomial],
    other: list[Polynomial],
    h: list[Number],
    lines: tuple[int, ...],
) -> Head:
    """The average, or the largest value, of the lines whose logits are nearest to those of the head."""
    T, A = network.tensors, meaning.algebra
    s = T["attention.W_Q"].shape[2]
    logit, error = Polynomial(), 0.0
    for k in range(s):
        b_Q, b_K = (float(T[name][g, k]) if name in T else 0.0 for name in ("attention.b_Q", "attention.b_K"))
        q, e = _read_value(T["attention.W_Q"][g, :, k], own, h, b_Q)
        p, f = _read_value(T["attention.W_K"][g, :, k], other, h, b_K)
        logit = total((logit, 1), (product(q, p), 1))
        moved = (_size(meaning.enclose(q)) * f + _size(meaning.enclose(p)) * e + e * f) * (UP * UP)
        error += moved + TINY if e or f else 0.0
    seen = {m: c for m, c in logit.items() if "y" in A.needs(m)}
    named = dict.fromkeys(A.atoms[atom] for k in lines for m in meaning.normal(k) for atom, _ in m)
    best = Head({}, None, _size(meaning.enclose(seen)) + error)
    for kind, key, *_ in (what for what in named if what[0] in ("average", "largest")):
        P, sharp = dict(key), Fraction(1)
        if kind == "largest":
            sharp = next((seen.get(m, Fraction(0)) / c for m, c in P.items() if m), Fraction(0))
        near = {m: c for m, c in total((seen, 1), (P, -sharp)).items() if "y" in A.needs(m)}
        off = _size(meaning.enclose(near)) + error
        if kind == "largest" and DULLEST <= sharp <= SHARPEST and off <= best.near:
            best = Head(P, P, off, float(sharp) / UP)
        elif kind == "average" and off < best.near:
            best = Head(P, None, off)
    return best


def _stream_rounding(
    network: Network, meaning: Meaning, h: list[Number], sharp: list[float], A: Arithmetic
) -> list[float]:
    """What an arithmetic may move the stream after attention by: one token stands for all."""
    T, (H, w, s) = network.tensors, network.tensors["attention.W_Q"].shape
    if A is REAL:
        return [0.0] * w
    low, high = np.array([domain(meaning, x) for x in h]).T[:, None]
    centre, radius = middle(low, high)
    near, moved = (np.array([[getattr(x, name) for x in h]]) for name in ("error", "moved"))
    value = Value(Ball(centre, (radius + near) * UP), moved)
    q, k, v = (_rows(T, name, value, A) for name in "QKV")
    sharpness = np.array(sharp)[:, None, None]
    o = average(products(q, k.swap(1, 2), A), v, meaning.formula.tokens, sharpness, A).reshape(1, H * s)
    return [float(x) for x in affine(o, T["attention.W_O"].reshape(H * s, w), value, A).error[0]]


def _rows(T: dict[str, Array], name: str, h: Value, A: Arithmetic) -> Value:
    """Queries, keys or values of a token, [heads, 1, s]."""
    W = T[f"attention.W_{name}"]
    H, w, s = W.shape
    bias = T.get(f"attention.b_{name}", np.zeros((H, s))).ravel()
    return affine(h, W.swapaxes(0, 1).reshape(w, H * s), bias, A).reshape(H, 1, s)


def average(logits: Value, v: Value, n: int, sharp: Array, A: Arithmetic) -> Value:
    """Averages of at most n values, which lie where values do; the largest of them, where a head is sharp.

    With L the perturbation of an exponent as in rounding.py, exponentials are those of logits that are L off, which
    moves an average of values that are within r of some number by at most L r. They add up with at most n - 1
    roundings of each, the average with n more, and a quotient or two: each term is off by a factor e^x besides,
    x = gamma(2 n + 8), and |e^x - 1| <= x + x^2. If it stands for the largest value, L is a further D of its
    logits, and costs 2 L / sharp.
    """
    size, largest = logits.known.m, logits.error  # of one token: one logit in each head
    L = 2 * size * (2 * U + 2 * A.roundings * A.u) + largest * (1 + 4 * A.roundings * A.u) + 2 * EXP_U + A.exp_error
    L = np.where((size == 0) & (largest == 0), 0.0, L * (UP * UP))  # all exponentials are exactly 1
    late = np.divide(2 * L, sharp, out=L * v.real.r, where=sharp > 0)
    x = gamma(2 * n + 8, A.u) * UP
    reach = v.known.m + v.error
    lost = 8.0 * (n + 8) * (n + 8) * (A.tiny + NORMAL) * (2 + reach) + TINY
    moved = v.error * (1 + x + x * x) + reach * (x + x * x) + late * UP + lost
    safe = (x <= 1) & ((L <= 1) | (sharp > 0)) & (size < A.big / 4) & (4.0 * n * reach < A.big)
    return Value(v.real, np.where(safe, moved * (UP * UP), np.inf))
