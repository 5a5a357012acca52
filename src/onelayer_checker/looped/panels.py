"""Examples that judge: a layer after the loop, in which a query sees the mean of what they found, and uses it.

A panel has tokens that are asked in the loop as queries are, and hold their y: judges. It says what they hold in
state s, what it weighs, what a query holds once it knows the mean v of that, and between which two answers the
learner is to choose. Decides, beside the identities of `algorithms.py`, for every number of judges:

loop    a judge is followed through the loop as a query is, and is no key there
flags   the channel that says who is a judge is the same number in every state, 0 on examples and queries only
affine  judged(s, x, v) is affine in v
panel   one query and ONE generic judge: the layer gives judged(s, x, weigh(s, x', y'))
answer  what is read off judged(s, x, v) is answer(s, x, v)

Why one judge is enough: as for examples, the layer adds a mean over the judges, and judged is affine in that mean.

`selects {delta, reach}`: v_0 and v_1 are the mean squares of y - p and y - q over the judges, where (p, q) is what
``either`` gives, and the answer is p + relu(q - p - reach (1 - g)) - relu(p - q - reach (1 - g)) with g =
clip((v_0 - v_1) / (2 delta) + 1/2, 0, 1). So if |p - q| <= reach it is p wherever
v_0 <= v_1 - delta, since g = 0 makes both relus vanish, and q wherever v_0 >= v_1 + delta, since g = 1 and
relu(q - p) - relu(p - q) = q - p: the answer of the learner that the judges found better, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.network import Network, Numbers
from onelayer_checker.looped.polynomials import Ring, is_zero, relu
from onelayer_checker.looped.programs import Program, read_program

if TYPE_CHECKING:
    from onelayer_checker.looped.algorithms import Algorithm, Values

FIELDS = {"judge", "weigh", "judged", "either"}


@dataclass(frozen=True)
class Panel:
    judge: Program  # s, x, y: what a judge holds
    weigh: Program  # s, x, y: what it adds to v
    judged: Program  # s, x, v: what a query holds after the layer
    either: Program  # s, x: the two answers

    @property
    def size(self) -> int:
        return len(self.weigh.outputs)


def read_panel(entry: Mapping[str, Any], s: dict[str, int], pair: dict[str, int], where: str) -> Panel | None:
    """The panel of an algorithm; None if it has none."""
    if "judge" not in entry:
        return None
    judge, weigh = (read_program(entry[name], s | pair, f"{where}.{name}") for name in ("judge", "weigh"))
    asked = s | {"x": pair["x"]}
    judged = read_program(entry["judged"], asked | {"v": len(weigh.outputs)}, f"{where}.judged")
    either = read_program(entry["either"], asked, f"{where}.either")
    if len(either.outputs) != 2:
        raise Malformed("claim", f"{where}.either must give two answers")
    return Panel(judge, weigh, judged, either)


def unlike(network: Network, a: Algorithm) -> str:
    """Why this panel and this network do not belong together; empty if they do."""
    layer = network.panel
    if (layer is None) != (a.panel is None):
        return "there are judges on one side only"
    if layer is None:
        return ""
    plain = a.query is not None and a.gather in ("mean", "sum") and not network.loop.causal
    return "" if plain and layer.mean else "judges are averaged, after a loop that is neither causal nor solves"


def flags(network: Network, a: Algorithm, v: Values) -> Iterator[tuple[str, Any, bool]]:
    """Whose flag it is, the flag in any state, and whether it must not be 0."""
    if a.panel is None or network.panel is None or network.panel.context is None:
        return
    for name in ("example", "query", "judge"):
        yield name, a.token(name, v.s, v.X, v.Y)[network.panel.context], name == "judge"


def identities(network: Network, a: Algorithm, v: Values) -> Iterator[tuple[str, Numbers]]:
    """What must be 0 for the layer after the loop."""
    layer, panel = network.panel, a.panel
    assert layer is not None
    assert panel is not None

    def judged(mean: Numbers) -> Numbers:
        return panel.judged.run({"s": v.s, "x": v.X, "v": mean})

    asking, key = (layer.before(a.token(*token)) for token in (("query", v.s, v.X, []), ("judge", v.s, v.x, v.y)))
    both = judged([p + q for p, q in zip(v.v, v.t, strict=True)])
    parts = zip(both, judged(v.v), judged(v.t), judged([0] * panel.size), strict=True)
    yield "affine", [p - q - r + t for p, q, r, t in parts]
    after = judged(panel.weigh.run({"s": v.s, "x": v.x, "y": v.y}))
    yield "panel", [p + q - r for p, q, r in zip(asking, layer.add_key(asking, key), after, strict=True)]
    wanted = a.answer.run({"s": v.s, "x": v.X, "v": v.v})
    yield "answer", [p - q for p, q in zip(network.answer(judged(v.v)), wanted, strict=True)]


def gate(p: Any, q: Any, v: Numbers, delta: Fraction, reach: Fraction) -> Any:
    """p or q, as the two numbers of v say."""
    z = (v[0] - v[1]) * (Fraction(1) / (2 * delta))
    g = relu(z + Fraction(1, 2)) - relu(z - Fraction(1, 2))
    off = (1 - g) * reach
    return p + relu(q - p - off) - relu(p - q - off)


def missing(a: Algorithm, delta: float, reach: float) -> str:
    """Why the answer is not the better one of two; empty if it is."""
    panel = a.panel
    if panel is None or (panel.size, len(a.answer.outputs), a.y) != (2, 1, 1) or not is_power_of_two(delta):
        return "only two learners with one answer, and a power of two, are told apart"
    ring = Ring()
    sizes = {"s": len(a.start), "x": a.x, "y": 1, "v": 2}
    groups: dict[str, Any] = {g: list(ring.variables(g, n)) for g, n in sizes.items()}
    p, q = panel.either.run(groups)
    (answer,) = a.answer.run(groups)
    squares = [(groups["y"][0] - u) * (groups["y"][0] - u) for u in (p, q)]
    if not all(is_zero(u - w) for u, w in zip(squares, panel.weigh.run(groups), strict=True)):
        return "judges do not weigh the squares of what either learner leaves"
    same = is_zero(answer - gate(p, q, groups["v"], Fraction(delta), Fraction(reach)))
    return "" if same else "the answer is not that of a gate between the two"


def mean_of(panel: Panel, s: Numbers, judges: list[tuple[Numbers, Numbers]]) -> Numbers:
    """What judges weigh, on average."""
    listed = [panel.weigh.run({"s": s, "x": x, "y": y}) for x, y in judges]
    return [Fraction(1, len(listed)) * sum(column) for column in zip(*listed, strict=True)]


def is_power_of_two(value: float) -> bool:
    """Dividing by it is exact over the dyadic rationals."""
    return value > 0 and float(np.frexp(value)[0]) == 0.5
