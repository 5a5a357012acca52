"""A formula compiled line by line: functions of a token, averages by heads, functions of the averages.

Statement  a formula of a token x and of averages over all tokens y that is one aggregation deep after products are
           expanded is computed by feed-forward, one attention layer and a readout, to any tolerance.
Gives      a number of parameters that does not depend on the number of tokens, and grows like 1/sqrt(tolerance);
           for covariances and logarithms of means of exponentials, like log(1/tolerance).
Rests on   piecewise linear interpolation (functions/pieces.py), a product as a difference of squares, linearity of
           averages, their slopes and integrals as functions of a temperature (functions/tilts.py), and, for a
           maximum over tokens, a softmax average being within log(n)/B of it.
Why        a function as a box of values costs cells^(n d); its formula has a dozen lines.
Differs    nothing is sampled or trained: what each line costs is shared out so that the fewest units keep the
           tolerance, and the checker proves block by block that the layers are these lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.heads import heads_of
from onelayer.functions.layout import TRIAL_PIECES, Part, Phase
from onelayer.functions.lines import Lines
from onelayer.functions.pieces import together
from onelayer.functions.rewriting import PairsError, Pool, Rewriter
from onelayer.functions.tilts import Head
from onelayer.functions.writing import layers_of
from onelayer.network.weights import Embedding, Layer, Transformer
from onelayer.problems.targets.pooled import Pooled
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["formula"]
Array = NDArray[Any]
#: Of the tolerance: what a maximum over tokens may cost, if there are blocks too; and if there are none.
SHARP, ALONE = 0.4, 0.9
#: Of the tolerance: what hypot may cost as a sum of absolute values, and functions of pairs of tokens as sums of
#: products, of which a few more make much less of it.
NORMS, PAIRS = 0.5, 0.2
#: Relative to its share of the tolerance: how exact a block is made that has no curvature.
STRAIGHT = 1e-3
#: How often slopes and tolerances of blocks are made to agree.
STEEP = 2
#: A block is steep if its slope is this many times that of its function from afar; by how much it may be looser.
STEEPER, LOOSER = 2.0, (1.0, 4.0, 16.0, 64.0, 256.0)


@dataclass(frozen=True)
class Compiled:
    """A network, and the lines that its numbers stand for, as a certificate has them."""

    transformer: Transformer
    target: dict[str, Any]
    heads: int
    units: int
    lines: int


class Compiler:
    """A formula on a box, ready to be written with a tolerance."""

    def __init__(
        self,
        target: Pooled,
        box: list[tuple[float, float]],
        tokens: int,
        tolerance: float,
        centred: bool = False,
        head: Head | None = None,
        share: float = NORMS,
        pairs: float = PAIRS,
    ) -> None:
        self.target, self.tokens, self.tolerance = target, tokens, tolerance
        try:
            self.plan = Rewriter(target, box, tolerance, share, centred=centred, head=head)
        except PairsError:
            share = pairs
            self.plan = Rewriter(target, box, tolerance, share, pairs=True, centred=centred, head=head)
        if self.plan.meant != self.plan.outputs:
            self.tolerance = (1 - share) * tolerance
        self.lines: Lines = self.plan.lines
        self.looser: dict[int, float] = {}  # by function: more than its share of the tolerance
        self.pools = self._reachable()
        token = self._phase(self.plan.components, [])
        read = [k for pool in self.pools for k in pool.read]
        self.curved = [k for k in dict.fromkeys(read) if any(j not in token.inputs for j in token.sum(k)[0])]
        inputs = [*self.plan.components, *self.curved, *(pool.line for pool in self.pools)]
        self.answer = self._phase(inputs, self.plan.planned)
        self.answer.look()
        used = {j for k in self.answer.numbers for j in self.answer.sum(k)[0]}
        used |= {j for k in read if k not in self.curved for j in token.sum(k)[0]}
        self.own = [k for k in self.plan.components if k in used]
        self.channels = [*self.own, *self.curved, *(pool.line for pool in self.pools)] or self.plan.components[:1]
        self.answer.inputs = self.channels
        self.answer.missing = {pool.line: self._constant(token, pool) for pool in self.pools}  # a head has no bias
        zero = self.lines.const(0)
        before = [zero if k in {pool.line for pool in self.pools} else k for k in self.channels]
        self.token = self._phase(self.plan.components, before)
        self.token.look()

    def _constant(self, token: Phase, pool: Pool) -> float:
        weight = float(sum(w for _, w in pool.tilts)) if pool.tilts else 1.0
        return 0.0 if pool.value in self.curved else weight * float(token.sum(pool.value)[1])

    def _phase(self, inputs: list[int], wanted: list[int]) -> Phase:
        return Phase(self.lines, self.plan.base, inputs, wanted)

    def _reachable(self) -> list[Pool]:
        seen, open_ = set[int](), list(self.plan.planned)
        while open_:
            k = open_.pop()
            if k not in seen:
                seen.add(k)
                op, *of = self.lines.lines[k]
                if k not in self.plan.pools and op not in ("x", "y", "const"):
                    open_ += of
        return [pool for k, pool in self.plan.pools.items() if k in seen]

    # Tolerances -------------------------------------------------------------------------------------------------

    def share_out(self, tolerance: float) -> dict[int, float]:
        """Tolerances of blocks, for the fewest units; and how sharp each maximum is. A block takes K/sqrt(e) units
        and moves an output by A e: their sum is least, for a given sum of A e, where e is as (K/A)^(2/3)."""
        q = len(self.plan.planned)
        out: dict[int, Array] = {}
        for i, k in enumerate(self.plan.planned):
            out[k] = out.get(k, np.zeros(q)) + np.eye(q)[i]
        answer, inputs = self.answer.gains(out)
        self.reaches = {k: float(gain.max()) for k, gain in inputs.items()}
        back: dict[int, Array] = {}
        for pool in self.pools:
            gain = inputs.get(pool.line, np.zeros(q))
            own = 3.0 if pool.kind == "largest" else 1.0  # as a value, and twice as a logit over its sharpness
            own = float(sum(abs(w) for _, w in pool.tilts)) if pool.tilts else own
            back[pool.value] = back.get(pool.value, np.zeros(q)) + own * gain
            wide = self.lines.ranges[pool.value][1] - self.lines.ranges[pool.value][0]
            if pool.tilted is not None:
                moved = gain * float(sum(abs(s * w) for s, w in pool.tilts)) * wide
                back[pool.tilted] = back.get(pool.tilted, np.zeros(q)) + moved
            for a, b in (pair[::step] for pair in pool.logits for step in (1, -1)):
                size = max(map(abs, self.lines.ranges[b]))
                back[a] = back.get(a, np.zeros(q)) + gain * size * wide
        for k in self.curved:
            back[k] = back.get(k, np.zeros(q)) + inputs.get(k, np.zeros(q))
        kept = {k: gain for k, gain in back.items() if k in self.curved}
        token: dict[int, Array] = self.token.gains(kept)[0] if kept else {}
        blocks: list[tuple[Phase, list[int], dict[int, Array]]] = []
        for phase, gains in ((self.answer, answer), (self.token, token)):
            blocks += [(phase, functions, gains) for functions in phase.by_source.values()]
        sharp = [pool for pool in self.pools if pool.kind == "largest"]
        curved = any(phase.shapes[j].size > 0 for phase, functions, _ in blocks for j in functions)
        spent = tolerance * (0.0 if not sharp else SHARP if curved else ALONE)
        self.parts = {pool.line: spent / len(sharp) for pool in sharp}
        self._give(blocks, tolerance - (spent if curved else 0.0), np.zeros(q))
        total = (
            float(np.sum([inputs.get(pool.line, np.zeros(q)) for pool in sharp], axis=0).max()) if sharp else 0.0
        )
        return {pool.line: math.log(max(self.tokens, 2)) * total / spent for pool in sharp}

    def _give(self, blocks: list[tuple[Phase, list[int], dict[int, Array]]], tolerance: float, none: Array) -> None:
        """Functions of one number share units, S/sqrt(l) of them if each has l times its own part of a tolerance;
        units have a price. Numbers that one layer reads get as many units each, l = S^2 c: its blocks are alike."""
        straight = STRAIGHT * tolerance / max(sum(len(functions) for _, functions, _ in blocks), 1)
        layers: dict[tuple[int, int], list[Part]] = {}
        for phase, functions, gains in blocks:
            moved = {j: max(float(gains.get(j, none).max()), 1e-12) for j in functions}
            bent = [j for j in functions if phase.shapes[j].size > 0]
            for j in functions:
                phase.tolerance[j] = straight / moved[j]
                self.parts[j] = straight
            if bent:
                own = {j: (phase.shapes[j].size / moved[j]) ** (2 / 3) for j in bent}
                size = together([phase.shapes[j] for j in bent], [own[j] for j in bent])
                moves = sum(moved[j] * own[j] for j in bent)
                looser = max(self.looser.get(j, 1.0) for j in bent)
                at = id(phase), phase.level(phase.source(bent[0]))
                layers.setdefault(at, []).append(Part(phase, own, moved, size, moves, looser))
        for parts in layers.values():
            price = sum(part.phase.price(part.phase.source(next(iter(part.own)))) for part in parts)
            whole = sum(part.looser * part.moves * part.size**2 for part in parts)
            for part in parts:
                part.level = part.looser * part.size**2 * (price / whole) ** (2 / 3)
        every = [part for parts in layers.values() for part in parts]
        scale = tolerance / max(sum(part.moves * part.level for part in every), 1e-300)
        for part in every:
            for j, share in part.own.items():
                part.phase.tolerance[j] = scale * part.level * share
                self.parts[j] = part.phase.tolerance[j] * part.moved[j]

    def error_by_part(self) -> dict[int, float]:
        """By line: how much of the tolerance a block, or a maximum, may take of an output."""
        return dict(self.parts)

    def rounding(self, head: Head) -> float:
        """About what is proved of how much rounding of averages that are added up moves an output."""
        found = 0.0
        for pool in self.pools:
            if pool.tilted is not None:
                s, w = np.array(pool.tilts, np.float64).T
                g, v = (self.lines.ranges[k] for k in (pool.tilted, pool.value))
                curved = pool.value in self.curved
                found += self.reaches.get(pool.line, 0.0) * head.rounding(s, w, g, v, curved)
        return found

    # Weights ----------------------------------------------------------------------------------------------------

    def _settled(self, dtype: np.dtype[Any]) -> dict[int, float]:
        """Tolerances with which slopes of blocks agree: a function with a vertical tangent is as steep as it is
        exact, so that less of it, and more for what it reads, may take fewer units."""
        steep: list[int] = []
        tried: dict[float, int] = {}  # numbers
        for looser in LOOSER:
            self.looser = dict.fromkeys(steep, looser)
            self._agreed(dtype)
            if not tried:
                phases = (self.token, self.answer)
                steep = [
                    j for p in phases for j, slope in p.slopes.items() if slope > STEEPER * p.shapes[j].steepest
                ]
            tried[looser] = sum(phase.cost(dtype) for phase in (self.token, self.answer))
            if not steep:
                break
        self.looser = dict.fromkeys(steep, min(tried, key=lambda looser: tried[looser]))
        return self._agreed(dtype)

    def _agreed(self, dtype: np.dtype[Any]) -> dict[int, float]:
        for phase in (self.token, self.answer):
            phase.slopes = {j: look.steepest for j, look in phase.shapes.items()}
        self.share_out(self.tolerance)
        for _ in range(STEEP):
            for phase in (self.token, self.answer):
                phase.slopes = {j: block.steepest for j, block in phase.blocks(dtype, TRIAL_PIECES).items()}
            sharp = self.share_out(self.tolerance)
        return sharp

    def write(self, dtype: np.dtype[Any]) -> Compiled:
        sharp = self._settled(dtype)
        d, stages = len(self.plan.components), list[list[int]]()
        embedding, before = None, list[Layer]()
        if self.token.functions:
            before, stages = layers_of(self.token, dtype)
        else:
            columns = [self.token._sum(k) for k in self.token.wanted]
            lift = np.zeros((d, len(columns)), dtype)
            for c, (terms, _) in enumerate(columns):
                for k, e in terms.items():
                    lift[self.plan.components.index(k), c] = float(e)
            embedding, stages = Embedding(lift=lift), [list(self.token.wanted)]
        after, lines = layers_of(self.answer, dtype, hidden=1)
        attention = heads_of(self.pools, self.channels, self._row, sharp, dtype)
        # The channels after attention, then the hidden layers of the readout; the last one gives the outputs.
        stages += [list(self.channels), *lines[:-1]]
        target = {
            "d": d,
            "tokens": self.tokens,
            "per": self.target.per,
            "box": [[float(a).hex(), float(b).hex()] for a, b in self.lines.box],
            "lines": self.lines.to_json(),
            "outputs": self.plan.outputs,
            "meant": self.plan.meant,
            "planned": self.plan.planned,
            "stages": stages,
        }
        transformer = Transformer(attention, embedding, tuple(before), tuple(after))
        units = sum(layer.width for layer in (*before[:-1], *after[:-1]))
        return Compiled(transformer, target, attention.heads, units, len(self.lines.lines))

    def _row(self, k: int) -> tuple[Array, float]:
        """A line of a token over the channels, and its constant."""
        row = np.zeros(len(self.channels))
        if k in self.curved:
            row[self.channels.index(k)] = 1.0
            return row, 0.0
        terms, constant = self.token._sum(k)
        for j, e in terms.items():
            row[self.channels.index(j)] = float(e)
        return row, float(constant)
