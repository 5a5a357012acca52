"""Lines near those of a target, to a tolerance: functions of pairs of tokens as sums of products of a function of x
and a function of y, and hypot as a sum of absolute values.

A mean over y of g(u), where u is a sum of a part with x and a part with y, is taken of a sum of waves (waves.py):
sin and cos of w u are sums of two products. Where u has products of x and y, it is taken of a polynomial of u. Both
are fitted on the range of u, with as few terms as will do; how far they are off is the checker's to prove.

|a cos t + b sin t| has the average 2/pi hypot(a, b) over all angles t. Over m of them, evenly, it is a cosine of an
angle up to pi/(2 m) between any two of its corners: times the right factor it is off by tan(pi/(4 m))^2 of hypot.
The square root that it stands for is vertical at 0, where squares would have to be exact to the tolerance squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.functions.lines import POOLED, Range
from onelayer.functions.tilts import Head, Moment, find_moment, tilts
from onelayer.functions.waves import MOST_WAVES, dyadic, fit_waves

if TYPE_CHECKING:
    from onelayer.functions.rewriting import Rewriter

Array = NDArray[Any]
#: Points of a fit, and powers up to which one is tried.
POINTS, MOST_POWER = 401, 12
#: Angles up to which hypot is a sum of absolute values.
MOST_ANGLES = 300


class Nearby:
    """Rewrites lines of a target; with ``pairs``, so that what is inside a mean can be expanded."""

    def __init__(self, rewriter: Rewriter, tolerance: float, left: float, pairs: bool, head: Head | None) -> None:
        """What is near may cost at most a tolerance; what is left to units says how steep they get."""
        self.rewriter, self.lines, self.tolerance, self.left = rewriter, rewriter.lines, tolerance, left
        self.pairs, self.head = pairs, head
        self.moments: dict[int, Moment] = {}
        self.has_moments = False
        self.gains: dict[int, float] = {}
        self.reaches: dict[int, float] = {}
        self.done: dict[tuple[int, bool], int] = {}

    def near(self, outputs: list[int]) -> list[int]:
        """Lines that are near the outputs: the tolerance is shared out over all that is replaced."""
        for k in outputs:
            self._look(k, 1.0, 1.0, False)
        return [self._rebuild(k, False) for k in outputs]

    # What has to be replaced ------------------------------------------------------------------------------------

    def _is_pair(self, k: int, inside: bool) -> bool:
        """Whether a line inside a mean is to be replaced as a whole."""
        L, (op, *of) = self.lines, self.lines.lines[k]
        if not self.pairs or not inside or not {"x", "y"} <= L.free[k] or "pool" in L.free[k]:
            return False
        if op in ("add", "sub", "neg", "mul") and (self.rewriter.base(k) == k or self._is_polynomial(k)):
            return False
        return not (op == "div" and not {"x", "y"} <= L.free[of[1]])

    def _is_norm(self, k: int) -> bool:
        """Whether a line is the hypot of two numbers, and no function of one, or of a pair of tokens."""
        alone = not {"x", "y"} <= self.lines.free[k]
        return self.lines.lines[k][0] == "hypot" and self.rewriter.base(k) == k and alone

    def _is_polynomial(self, k: int) -> bool:
        op, *of = self.lines.lines[k]
        return op in ("x", "y", "const") or (
            op in ("add", "sub", "neg", "mul") and all(self._is_polynomial(i) for i in of)
        )

    def _look(self, k: int, gain: float, reach: float, inside: bool) -> None:
        """How much an error of what is replaced may move an output, at most, along every way to it; and how much
        its rounding may move what units make of it, about."""
        moment = None if inside else find_moment(self.lines, k)
        if moment is not None:
            self.moments[k] = moment
        replaced = self._is_pair(k, inside) or (moment is not None and self.head is not None)
        if replaced or self._is_norm(k):
            self.gains[k] = self.gains.get(k, 0.0) + gain
            self.reaches[k] = self.reaches.get(k, 0.0) + reach
        if replaced:
            return
        parts = [] if inside else self._parts(k)
        self.has_moments |= moment is not None or bool(parts)
        if parts and self.head is not None:
            for i in parts:
                self._look(i, gain, reach, inside)
            return
        op, *of = self.lines.lines[k]
        if op in ("x", "y", "const"):
            return
        for i, slope in zip(of, slopes(op, [self.lines.ranges[i] for i in of]), strict=True):
            # Roots of numbers e apart are at most sqrt(e) apart; units within e of a root are about 1/(4 e) steep.
            most = (gain / self.tolerance, reach / (4 * self.left)) if op == "sqrt" else (math.inf, math.inf)
            self._look(i, gain * min(slope, most[0]), reach * min(slope, most[1]), inside or op == "mean")

    def _parts(self, k: int) -> list[int]:
        """The two means that the mean of a sum is the sum of, if one of them is to be replaced; else nothing."""
        L, (op, *of) = self.lines, self.lines.lines[k]
        if op != "mean" or L.lines[of[0]][0] not in ("add", "sub"):
            return []
        parts = [L.add("mean", i) for i in L.lines[of[0]][1:]]
        return parts if any(find_moment(L, i) or self._parts(i) for i in parts) else []

    def _rebuild(self, k: int, inside: bool) -> int:
        if (k, inside) not in self.done:
            op, *of = self.lines.lines[k]
            gain, reach = (max(len(by), 1) * max(by.get(k, 0.0), 1e-12) for by in (self.gains, self.reaches))
            share = self.tolerance / gain
            if op in ("x", "y", "const"):
                made = k
            elif self._is_pair(k, inside):
                made = self._series(k, share)
            elif k in self.moments and self.head is not None and not inside:
                made = self._averages(k, self.moments[k], share, self.head.room / reach)
            elif self.head is not None and not inside and (parts := self._parts(k)):
                made = self.lines.add(self.lines.lines[of[0]][0], *(self._rebuild(i, inside) for i in parts))
            else:
                near = [self._rebuild(i, inside or op == "mean") for i in of]
                if op == "sqrt" and near != of and self.lines.ranges[near[0]][0] < 0:
                    near = [self.lines.add("relu", near[0])]  # no nearer to what is not negative than before
                made = self.lines.add(op, *near) if near != of else k
                if made == k and self._is_norm(k):
                    made = self._angles(k, share)
            self.done[k, inside] = made
        return self.done[k, inside]

    def _angles(self, k: int, eps: float) -> int:
        """hypot(a, b) as a sum of |c_i a + s_i b|; as it is, if that would take too many."""
        L, (_, a, b) = self.lines, self.lines.lines[k]
        count = math.ceil(math.pi / 4 / math.atan(math.sqrt(eps / max(L.ranges[k][1], 1e-300))))
        if count > MOST_ANGLES:
            return k
        half = math.pi / (2 * count)
        scale, terms = 2 * math.sin(half) / (1 + math.cos(half)), []
        for i in range(count):
            c, s = (Fraction(scale * f(2 * half * i)) for f in (math.cos, math.sin))
            terms.append(L.add("abs", L.add("add", L.scale(c, a), L.scale(s, b))))
        made = L.sum(terms)
        L.narrow(made, k)
        return made

    def _averages(self, k: int, moment: Moment, eps: float, room: float) -> int:
        """A covariance, or a logarithm of a mean of exponentials, as a sum of averages; as it is, if that would
        take too many."""
        L, g, v = self.lines, self.lines.ranges[moment.g], self.lines.ranges[moment.v]
        assert self.head is not None
        curved = L.lines[moment.v][0] != "y"
        found = tilts(g, v, moment.end, eps, room, self.head, curved)
        if found is None:
            return k
        shown = k
        if moment.apart:
            own = L.add("sub", moment.v, moment.apart[1])
            shown = L.add("mean", L.add("mul", own, own))
        made = L.sum([L.scale(w, L.add("average", L.scale(s, moment.g), moment.v)) for s, w in found])
        self.rewriter.mixtures[made] = moment.v, moment.g, found
        if shown < made and moment.factor == 1:
            L.near[made] = shown
        if moment.end:
            return L.add("add", made, L.const(Fraction(math.log(moment.factor))))
        most = (g[1] - g[0]) * (v[1] - v[0]) / 4
        L.ranges[made] = (0.0 if moment.g == moment.v else -most) - eps, most + eps
        if not moment.apart:
            return made
        away = L.add("sub", *moment.apart)
        return L.add("add", made, L.add("mul", away, away))

    # Series -----------------------------------------------------------------------------------------------------

    def _series(self, k: int, eps: float) -> int:
        L, u = self.lines, self.rewriter.base(k)
        if u is None or u == k:
            raise self.rewriter.refusal(
                f"{L.lines[k][0]} is applied to x and y together, and is a function of two numbers of them",
                "Let it be a function of one number, such as x - y or x*y, or use another construction.",
            )
        low, high = L.ranges[u]
        s = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, POINTS))) / 2
        wanted = L.evaluate(k, u, s)
        mixed = any(free and ys for free, ys in self.rewriter.expand(u))
        return self._powers(u, s, wanted, eps, k) if mixed else self._waves(u, s, wanted, eps, k)

    def _waves(self, u: int, s: Array, wanted: Array, eps: float, k: int) -> int:
        """constant + sum of a_i sin(w_i (u - middle)) + b_i cos(w_i (u - middle))."""
        L, middle = self.lines, dyadic((s[0] + s[-1]) / 2)
        waves = fit_waves(s - float(middle), wanted, eps)
        if waves is None:
            raise self._too_many(k, f"{MOST_WAVES} waves", eps)
        moved = L.add("sub", u, L.const(middle))
        terms = [L.const(Fraction(waves.constant))]
        for w, sine, cosine in zip(waves.frequencies, waves.sines, waves.cosines, strict=True):
            angle = L.scale(w, moved)
            parts = [(f, c) for f, c in (("sin", sine), ("cos", cosine)) if c]
            terms += [L.scale(Fraction(float(c)), L.add(f, angle)) for f, c in parts]
        return L.sum(terms)

    def _powers(self, u: int, s: Array, wanted: Array, eps: float, k: int) -> int:
        """A polynomial of u in the form of Horner."""
        L = self.lines
        for degree in range(1, MOST_POWER + 1):
            chebyshev = np.polynomial.Chebyshev.fit(s, wanted, degree, domain=[s[0], s[-1]])
            found = chebyshev.convert(kind=np.polynomial.Polynomial).coef
            if float(np.abs(np.polynomial.polynomial.polyval(s, found) - wanted).max()) <= eps:
                made = L.const(Fraction(float(found[-1])))
                for c in found[-2::-1]:
                    made = L.add("add", L.add("mul", made, u), L.const(Fraction(float(c))))
                return made
        raise self._too_many(k, f"a polynomial of degree {MOST_POWER}", eps)

    def _too_many(self, k: int, most: str, eps: float) -> HypothesisError:
        found = (
            f"{self.lines.lines[k][0]} is applied to x and y together, and {most} miss it by more than {eps:.2g}"
        )
        return self.rewriter.refusal(found, "Ask for a larger tolerance, or use another construction.")


def slopes(op: str, of: list[Range]) -> list[float]:
    """At most the slopes of an operation, in each of its arguments."""
    least = [0.0 if a <= 0 <= b else min(abs(a), abs(b)) for a, b in of]
    most = [max(abs(a), abs(b)) for a, b in of]
    known: dict[str, Callable[[], list[float]]] = {
        "mul": lambda: [most[1], most[0]],
        "div": lambda: [1 / least[1], most[0] / least[1] ** 2],
        "sqrt": lambda: [0.5 / math.sqrt(max(of[0][0], 1e-12))],
        "log": lambda: [1 / least[0]],
        "exp": lambda: [math.exp(of[0][1])],
    }
    return known[op]() if op in known else [1.0] * (1 if op in POOLED else len(of))
