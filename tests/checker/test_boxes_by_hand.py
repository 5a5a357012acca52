"""Claims about functions between the cells and on the whole box, by hand: ranges, overflow, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf, nextafter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, TINY, UP, Arithmetic, Ball, U, gamma
from onelayer_checker.core.claims import Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network, build
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.functions import cells
from onelayer_checker.functions.cells import Assumed, Cells, Errors
from onelayer_checker.functions.targets import Program, bounds
from tests.checker.counted import counted
from tests.checker.test_cells_by_hand import ASSUMED, claimed, of_orders, program, stored


class Recorded(Network):
    """A network that writes down what is embedded."""

    seen: ClassVar[list[tuple[Any, float, int]]] = []

    def embed(self, tokens: Any, radius: float, A: Arithmetic) -> Ball:
        self.seen.append((tokens, radius, len(self.feedforward.layers)))
        return super().embed(tokens, radius, A)


def recorded(model: dict[str, Any], n: int = 1, causal: bool = False) -> tuple[Recorded, Any]:
    """A network of width 1 whose attention does nothing, and tokens for it."""
    width = len(model["readout.0.weight"])
    zero = {f"attention.W_{name}": np.zeros((1, width, 1)) for name in "QKV"}
    zero["attention.W_O"] = np.zeros((1, 1, width))
    found = build({name: np.asarray(a, np.float64) for name, a in (zero | model).items()}, causal)
    Recorded.seen.clear()
    made = Recorded(found.tensors, found.dtype, found.feedforward, found.bottleneck, found.readout, causal)
    return made, np.zeros((3, n, 1), np.float32)


COPY = {"readout.0.weight": [[1]], "readout.0.bias": [0], "readout.1.weight": [[1]], "readout.1.bias": [0]}


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 4.0), (-3.0, 0.25), (1.0, 1 + 2.0**-52), (0.0, 2.0**-1000), (3.0, 3.0), (-1.0, 1 / 3)]
)
def test_one_ball_holds_the_whole_box(low: float, high: float) -> None:
    network, tokens = recorded(COPY, n=2)
    assert not cells.overflows(network, tokens, low, high, FLOAT32)
    ((x, radius, layers),) = Recorded.seen
    middle = low / 2 + high / 2
    assert (x.dtype, x.tolist(), layers) == (np.float64, [[[middle], [middle]]], 0)
    assert radius == max(high - middle, middle - low) * UP + TINY
    assert Fraction(middle) - Fraction(radius) <= Fraction(low) < Fraction(high) + Fraction(radius)
    assert Fraction(high) <= Fraction(middle) + Fraction(radius)


def overflow(model: dict[str, Any], n: int = 1, high: float = 1.0, causal: bool = False) -> bool:
    network, tokens = recorded(COPY | model, n, causal)
    with np.errstate(all="ignore"):
        return cells.overflows(network, tokens, 0.0, high, FLOAT32)


def test_any_layer_may_overflow() -> None:
    far = 2.0**120
    assert not overflow({}, high=far)
    assert overflow({}, high=far * 2**8)
    before = {"feedforward.0.weight": [[far]], "feedforward.0.bias": [0]}
    small = {"feedforward.1.weight": [[2.0**-100]], "feedforward.1.bias": [0]}
    assert not overflow(before | small)
    assert overflow(before | small, high=2.0**8)
    assert overflow({"readout.0.weight": [[far]]}, high=2.0**8)
    one_of_two = {"readout.1.weight": [[0, far]], "readout.1.bias": [0, 0]}
    assert not overflow(one_of_two)
    assert overflow(one_of_two, high=2.0**8)
    first = {"embedding.lift": [[1]], "embedding.positions": [[2.0**127], [0]]}  # not the last token
    assert overflow(first, n=2)
    assert not overflow(first | {"embedding.positions": [[far], [0]]}, n=2)
    assert overflow(first | {"embedding.positions": [[far], [0]], "readout.0.weight": [[2.0**10]]}, n=2)
    seen = {"attention.W_V": [[[1]]], "attention.W_O": [[[2.0**120]]], "embedding.lift": [[1]]}
    assert overflow(seen | {"embedding.positions": [[0], [2.0**10]]}, n=2)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_looking_for_overflow_is_paid_for(n: int) -> None:
    layers = {"feedforward.0.weight": [[1, 1]], "feedforward.0.bias": [0, 0]}
    layers |= {"feedforward.1.weight": [[1], [1]], "feedforward.1.bias": [0]}
    network, tokens = recorded(COPY | layers, n)
    with counted() as lines:
        cells.overflows(network, tokens, 0.0, 1.0, FLOAT32)
    dense = 0.6 * 2 + 60 * 2 + 0.6 * 2 + 60 + 0.6 + 60
    ((what, operations, *_),) = (line for line in lines if line[0] == "looking for overflow")
    assert what
    np.testing.assert_allclose(operations, n * (dense + 100.0 * n), rtol=1e-15)


def readout(*layers: tuple[Any, Any]) -> Any:
    made = tuple(Layer(np.asarray(W, np.float64), np.asarray(b, np.float64)) for W, b in layers)
    return SimpleNamespace(readout=Stack(made))


FIRST = ([[1, 1]], [0, 0])
ENDS: list[tuple[Any, Any, Any, Any, Any]] = [  # W, b, V and what the outputs reach without their bias
    ([[-1, -1]], [2, 3], [[1.5], [1.5]], [0], [7.5]),
    ([[-1, -1]], [2, 3], [[-1.5], [1.5]], [-3], [4.5]),
    ([[-1, 0]], [2, -3], [[1.5], [1.5]], [0], [3]),
    ([[-1, -0.0]], [0.25, 0.5], [[1, 2, 0], [-1, 0, 4]], [-0.5, 0, 0], [0.25, 0.5, 2]),
    ([[-1, -2], [0, -3]], [2, 3], [[-1], [-0.25]], [-2.75], [0]),
    ([[0.5, -1], [-1, -1]], [2, 3], [[0, 1], [2, 0]], [0, -inf], [6, inf]),
    ([[-1, -1], [-1, 0.5]], [2, 3], [[0, 1], [2, 0]], [-inf, 0], [inf, 2]),
    ([[-1, 0.5], [-1, -1]], [2, 3], [[0, 1], [2, 0]], [-inf, 0], [inf, 2]),
    ([[-1]], [2], [[1, -3]], [0, -6], [2, 0]),
    ([[-1] * 3], [2.0**-900] * 3, [[2.0**-900]] * 3, [0], [0]),
]


@pytest.mark.parametrize("A", [REAL, FLOAT32, FLOAT64], ids=lambda A: A.name)
@pytest.mark.parametrize("bias", [0.0, 0.25, -3.0])
@pytest.mark.parametrize("ends", ENDS)
def test_answers_stay_between_these_ends(A: Arithmetic, bias: float, ends: Any) -> None:
    """Where a unit has a positive weight it may be anything; where it has none it is at most its bias."""
    W, b, V, least, most = ends
    V, c = np.asarray(V, np.float64), np.full(len(V[0]), bias)
    with np.errstate(all="ignore"):
        low, high = cells.range_of_output(readout(FIRST, (W, b), (V, c)), A)
    for k, (a, z) in enumerate(zip(least, most, strict=True)):
        if a == -inf or z == inf:
            assert (low[k], high[k]) == (-inf, inf)
            continue
        size, terms = z - a + abs(bias), 2 * len(V) + 8
        rounded = float(gamma(terms, A.u) + 2 * gamma(terms, U)) + 2.0**-40
        slack = size * rounded + 8 * len(V) * (A.tiny + TINY)
        assert (low[k], high[k]) == (bias + a - slack, bias + z + slack)


def test_a_range_is_of_two_full_layers() -> None:
    blocks = (np.full((2, 1, 1), -1.0), [1, 1])
    full = (np.full((2, 2), -1.0), [1, 1])
    for layers in ((full,), (blocks, full), (full, blocks), (full, blocks, full), (full, full, blocks)):
        low, high = cells.range_of_output(readout(*layers), REAL)
        assert (low.tolist(), high.tolist()) == ([-inf] * 2, [inf] * 2)
    one = ([[-1], [-1]], [1])
    for layers in ((one,), (blocks, one)):
        low, high = cells.range_of_output(readout(*layers), REAL)
        assert (low.tolist(), high.tolist()) == ([-inf], [inf])
    for before in ((), (blocks,), (full, full)):
        assert np.isfinite(cells.range_of_output(readout(*before, full, full), REAL)).all()


def test_how_far_an_assumed_target_may_reach() -> None:
    data = stored(np.zeros((3, 1, 1)), [[1.0, -2.0], [0.5, 8.0], [3.0, 1.0]])
    for lipschitz, error, nearest in ((2.0, 0.25, 0.75), (0.0, 0.25, 0.75), (2.0, 0.0, 0.1), (0.3, 0.7, 0.1)):
        slack = (error + lipschitz * nearest) * UP
        at = of_orders([(0,)], nearest=nearest)
        low, high = cells.range_of_target(Assumed(lipschitz, error, True), at, data, -1.0, 1.0)
        assert low.tolist() == [0.5 - slack, -2.0 - slack]
        assert high.tolist() == [3.0 + slack, 8.0 + slack]


@pytest.mark.parametrize(
    ("n", "d", "parts"),
    [(1, 1, 4096), (2, 1, 64), (1, 2, 64), (3, 1, 16), (6, 1, 4), (6, 2, 2), (13, 1, 1), (70, 1, 1)],
)
def test_the_box_is_cut_where_the_range_of_a_program_is_wanted(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, parts: int
) -> None:
    """Every variable into equal parts: boxes that meet, and fill the box from end to end."""
    seen = []

    def listed(target: Program, low: Any, high: Any) -> tuple[Any, Any]:
        seen.append((low, high))
        return bounds(target, low, high)

    monkeypatch.setattr(cells, "bounds", listed)
    target = program(n, [0, n * d] * n, ["neg", 0], d=d, q=2)
    low, high = cells.range_of_target(target, of_orders([]), stored([[[0.0]]], [[0.0, 0.0]]), -0.5, 1.5)
    ((below, above),) = seen
    edges = np.linspace(-0.5, 1.5, parts + 1)
    assert below.shape == above.shape == (parts ** (n * d), n * d)
    assert len(np.unique(below, axis=0)) == parts ** (n * d)
    np.testing.assert_array_equal(np.unique(below), edges[:-1])
    np.testing.assert_array_equal(above, edges[np.searchsorted(edges, below) + 1])
    np.testing.assert_allclose(low, [-0.5, -1.5], rtol=1e-9)
    np.testing.assert_allclose(high, [1.5, 0.5], rtol=1e-9)


def undefined(
    monkeypatch: pytest.MonkeyPatch, hole: Any, outputs: int = 1
) -> list[tuple[list[list[float]], list[list[float]]]]:
    """Enclosures that are finite but where ``hole`` says of a box which ends, of which output, are not."""
    seen = []

    def enclose(_target: Any, low: Any, high: Any, gradient: bool) -> Any:
        assert not gradient
        seen.append((low.tolist(), high.tolist()))
        ends = np.zeros((2, len(low), outputs))
        for row, (a, b) in enumerate(zip(low, high, strict=True)):
            for side, k in hole(a, b):
                ends[side, row, k] = inf
        return SimpleNamespace(low=-ends[0], high=ends[1])

    monkeypatch.setattr(cells, "enclose", enclose)
    return seen


def test_a_box_where_a_target_may_be_undefined_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Across its longest side, until it is defined or the boxes are used up; then one that is left is named."""
    sizes: Any = SimpleNamespace(n=2, d=1)
    seen = undefined(monkeypatch, lambda a, b: [(0, 0)] if (b - a).max() > 0.5 else [])
    assert cells.open_box(sizes, 0.0, 1.0) == ""
    assert [len(low) for low, _ in seen] == [1, 2, 4]
    assert seen[0] == ([[0, 0]], [[1, 1]])
    assert seen[1] == ([[0, 0], [0.5, 0]], [[0.5, 1], [1, 1]])
    assert sorted(seen[2][0]) == [[0, 0], [0, 0.5], [0.5, 0], [0.5, 0.5]]
    for side, outputs, k in ((0, 1, 0), (1, 1, 0), (0, 2, 1), (1, 2, 0)):
        undefined(monkeypatch, lambda _a, b, side=side, k=k: [(side, k)] if b[1] > 0.75 else [], outputs)
        monkeypatch.setattr(cells, "DEFINED_BOXES", 9)
        assert cells.open_box(sizes, -1.0, 1.0) == "[-1, 0] x [0, 1]"
    named: Any = SimpleNamespace(n=1, d=1)
    undefined(monkeypatch, lambda _a, b: [(0, 0)] if b[0] == 0.125 else [])  # defined once it is halved
    assert cells.open_box(named, 0.0, 1.0) == ""


def test_no_more_boxes_are_looked_at_than_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^14 in all, if every box is left; and 40 halvings for each variable, if few are."""
    one: Any = SimpleNamespace(n=1, d=1)
    seen = undefined(monkeypatch, lambda *_: [(0, 0)])
    assert cells.open_box(one, 0.0, 1.0) == f"[0, {2.0**-13:.6g}]"
    assert [len(low) for low, _ in seen] == [2**k for k in range(14)]  # 2^14 - 1, and 2^14 would be too many
    for n, d in ((1, 1), (2, 1), (1, 2)):
        target: Any = SimpleNamespace(n=n, d=d)
        seen = undefined(monkeypatch, lambda a, _: [(0, 0)] if not a.any() else [])
        assert cells.open_box(target, 0.0, 1.0).startswith("[0, ")
        assert [len(low) for low, _ in seen] == [1] + [2] * (40 * n * d - 1)
    for allowed, rounds in ((7, 3), (6, 2), (3, 2), (2, 1)):
        monkeypatch.setattr(cells, "DEFINED_BOXES", allowed)
        seen = undefined(monkeypatch, lambda *_: [(0, 0)])
        cells.open_box(one, 0.0, 1.0)
        assert len(seen) == rounds


LINE = program(1, [0])


def everywhere(monkeypatch: pytest.MonkeyPatch, found: Any, said: Any, target: Any = LINE, **more: float) -> Any:
    """What is said if hats are found, or none, and their judge or branch and bound says something."""
    network, asked = SimpleNamespace(readout=SimpleNamespace(layers=("layers",))), []
    monkeypatch.setattr(cells.hats, "recognise", lambda layers: found if layers == ("layers",) else 1 / 0)
    monkeypatch.setattr(cells.hats, "judge", lambda *given: asked.append(given) or said)
    monkeypatch.setattr(cells.branch, "judge", lambda *given: asked.append(given) or said)
    claim = claimed(target, "sup_error_everywhere", "float32", **{"low": 0.0, "high": 1.0, "bound": 0.5} | more)
    verdict = cells.judge_everywhere(claim, network)  # type: ignore[arg-type]
    if asked:
        wanted = (network, target, found, 0.0, 1.0, 0.5, FLOAT32) if found is not None else (claim, network)
        assert asked == [wanted]
    return verdict.outcome, verdict.why, verdict.value, len(asked)


def test_what_is_said_of_the_whole_box(monkeypatch: pytest.MonkeyPatch) -> None:
    for low in (1.0, 2.0):
        with pytest.raises(Malformed, match="empty"):
            everywhere(monkeypatch, None, None, low=low)
    assert everywhere(monkeypatch, "hats", 0.25, ASSUMED) == ("undecided", "the target is no program", inf, 0)
    assert everywhere(monkeypatch, None, ("refuted", "so", 3.0)) == ("refuted", "so", 3.0, 1)
    assert everywhere(monkeypatch, "hats", "why") == ("undecided", "why", inf, 1)
    assert everywhere(monkeypatch, "hats", 0.75) == ("undecided", "the error may be 0.75", 0.75, 1)
    assert everywhere(monkeypatch, "hats", np.nan)[:2] == ("undecided", "the error may be nan")
    for bound in (0.5, 0.25):
        said = f"largest error {bound} on the whole box"
        assert everywhere(monkeypatch, "hats", bound) == ("proved", said, bound, 1)


def judged(
    monkeypatch: pytest.MonkeyPatch,
    listed: list[Errors],
    at: Cells,
    type_: str,
    target: Any = ASSUMED,
    **number: float,
) -> Verdict:
    """What is said of cells, given bounds of errors; tokens of two components."""
    N = len(at.weight)
    data, out, network = stored(np.zeros((N, 1, 2)), np.zeros((N, 1))), object(), object()
    claim = claimed(target, type_, **{"radius": 0.125, "low": -1.0, "high": 1.0, "bound": 1.0} | number)

    def errors(*given: Any) -> Iterator[Errors]:
        assert given == (target, at, out, data, 0.125)
        return iter(listed)

    def find_(*given: Any) -> Cells:
        assert given == (network, claim, data.tokens)
        return at

    monkeypatch.setattr(cells, "find_cells", find_)
    monkeypatch.setattr(cells, "errors", errors)
    with np.errstate(all="ignore"):
        return cells.judge(claim, network, data, out)  # type: ignore[arg-type]


def found(start: int, upper: list[list[float]], lower: list[list[float]] | None = None) -> Errors:
    high = np.array(upper)
    return Errors(slice(start, start + len(high)), high, high / 2 if lower is None else np.array(lower))


ASSUMPTION = ", if the target is 1-Lipschitz and commutes with permutations, its values within 0"


def test_what_is_said_of_every_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sequence of which a token may be too far away; a lower bound of any token refutes."""
    at = of_orders([(0,)], 3, side=Fraction(1, 2))  # of two components: 3 cells of a quarter
    fine = [found(0, [[0.5, 0.25]]), found(1, [[0.0, 0.75], [1.0, 1.0]])]
    verdict = judged(monkeypatch, fine, at, "sup_error", measure=0.25)
    assert verdict == Verdict("proved", f"largest error 1 but for a share 0.25 of the box{ASSUMPTION}", 1.0)
    less = [found(0, [[0.5, 0.25]]), found(1, [[0.0, 0.75], [0.25, 0.125]])]
    assert judged(monkeypatch, less, at, "sup_error", measure=0.5).value == 0.75
    assert judged(monkeypatch, less[::-1], at, "sup_error", measure=0.5).value == 0.75
    verdict = judged(monkeypatch, fine, at, "sup_error", measure=nextafter(0.25, 0))
    assert verdict == Verdict("undecided", "a share 0.25 of the box lies in no stored cell", inf)
    for bad, lower, result, why, value in (
        ([1.25, 0.5], [0.5, 0.5], "undecided", "the error may be 1.25", 1.25),
        ([0.5, 1.25], [0.5, 1.0], "undecided", "the error may be 1.25", 1.25),
        ([0.5, 1.25], [0.5, 1.125], "refuted", "the error is at least 1.125", inf),
        ([2.5, 1.25], [1.5, 0.5], "refuted", "the error is at least 1.5", inf),
        ([0.5, inf], [-inf, 0.5], "undecided", "the error may be inf", inf),
    ):
        listed = [found(0, [[1.0, 0.5]]), found(1, [[1.0, 0.5], bad], [[0.5, 0.25], lower])]
        verdict = judged(monkeypatch, listed, at, "sup_error", measure=0.25)
        assert verdict == Verdict(result, f"around sequence 2 {why}", value)  # type: ignore[arg-type]
    unknown = judged(monkeypatch, [found(0, [[np.nan, 0.5]] * 3)], at, "sup_error", measure=0.25)
    assert (unknown.outcome, unknown.why) == ("undecided", "around sequence 0 the error may be nan")


def test_what_is_left_out_and_what_is_assumed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, fine = of_orders([(0,)], side=Fraction(1)), [found(0, [[0.0]])]
    for measure in (0.0, 1.0):
        assert judged(monkeypatch, fine, whole, "sup_error", measure=measure).why == f"largest error 0{ASSUMPTION}"
    target = Assumed(2.5, 0.125, False)
    said = judged(monkeypatch, fine, whole, "sup_error", target, measure=0.0).why
    assert said == "largest error 0, if the target is 2.5-Lipschitz, its values within 0.125"
    line = program(1, [0], d=2)
    assert judged(monkeypatch, fine, whole, "sup_error", line, measure=0.0).why == "largest error 0"
    hole = program(1, [2], ["div", 0, 1], d=2)
    verdict = judged(monkeypatch, fine, whole, "sup_error", hole, measure=1.0)
    assert verdict.outcome == "undecided"
    assert verdict.why.startswith("the target is not seen to be defined on [")
    assert verdict.value == inf


def test_powers_of_errors_are_added_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all blocks, each with its weight, and rounded upward within a block; nothing is left of the box here."""
    said = []
    monkeypatch.setattr(cells, "_mean", lambda *given: said.append(given) or Verdict("proved", "", 0.0))
    weight = np.array([1.0, 2.0, 6.0]) * UP
    for p in (1, 2, 5):
        for side in (Fraction(1, 2), Fraction(1, 3)):
            at = Cells([(0,)], weight, 3, side, 1.0)
            listed = [found(0, [[0.3, 0.1], [0.2, 0.7]]), found(2, [[1.1, 0.9]])]
            judged(monkeypatch, listed, at, "lp_error", p=float(p))
            parts = Fraction(0)
            for rows in ([(0.3, 0), (0.7, 1)], [(1.1, 2)]):
                terms = [float(cells.power(np.array(x), p)) * weight[i] for x, i in rows]
                parts += Fraction(float(sum(terms)) * (1 + 2 * len(rows) * U) * UP)
            inside, left, assumed = said.pop()[4:]
            assert (inside, left, assumed) == (parts * side**2, 1 - 3 * side**2, ASSUMPTION)
    many = 1 << 16
    at = Cells([(0,)], np.full(many, UP), many, Fraction(1, 512), 1.0)
    judged(monkeypatch, [found(0, [[1.0]] * many)], at, "lp_error", p=1.0)
    assert said.pop()[4] == Fraction(float(np.full(many, UP).sum()) * (1 + 2 * many * U) * UP) / 512**2
    for upper in (inf, np.nan, 1e300):
        unknown = Cells([(0,)], np.ones(1), 1, Fraction(1), 1.0)
        verdict = judged(monkeypatch, [found(0, [[upper]])], unknown, "lp_error", p=2.0)
        assert verdict == Verdict("undecided", "the error has no bound, or its power overflows", inf)


def mean(
    monkeypatch: pytest.MonkeyPatch,
    ends: tuple[Any, Any, Any, Any],
    inside: Fraction,
    left: Fraction,
    p: int = 1,
    bound: float = 1.0,
    arith: str = "real",
    too_large: bool = False,
) -> Verdict:
    """What is said of a mean, given the ends of target and network, and whether a value may overflow."""
    network, data, at = object(), stored([[[0.0]]]), of_orders([(0,)])
    claim = claimed(ASSUMED, "lp_error", arith, p=float(p), low=-2.0, high=3.0, bound=bound)

    def target(*given: Any) -> Any:
        assert given == (ASSUMED, at, data, -2.0, 3.0)
        return tuple(np.asarray(end, float) for end in ends[:2])

    def output(*given: Any) -> Any:
        assert given == (network, claim.A)
        return tuple(np.asarray(end, float) for end in ends[2:])

    def overflows(*given: Any) -> bool:
        assert given == (network, data.tokens, -2.0, 3.0, claim.A)
        return too_large

    monkeypatch.setattr(cells, "range_of_target", target)
    monkeypatch.setattr(cells, "range_of_output", output)
    monkeypatch.setattr(cells, "overflows", overflows)
    with np.errstate(all="ignore"):
        return cells._mean(claim, network, data, at, inside, left, "; so")  # type: ignore[arg-type]


def test_between_the_cells_an_error_is_as_large_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target above the network, or below it, in the worst component; p-th powers are rounded upward."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    for ends, most in (
        (([-1], [2], [-3], [0]), 5.0),
        (([-4], [-3], [0], [2]), 6.0),
        (([-1, -1], [2, 1], [-3, 0], [0, 0]), 5.0),
        (([-1, -1], [1, 2], [0, -3], [0, 0]), 5.0),
        (([3], [4], [0], [1]), 4.0),
        (([1], [1], [1], [1]), 0.0),
        (([0.25], [0.25], [0.25], [0.5]), 0.25),
    ):
        for p in (1, 3):
            power = float(cells.power(np.maximum(np.float64(most) * UP, 0.0), p)) * UP
            exactly = quarter + Fraction(power) * half
            verdict = mean(monkeypatch, ends, quarter, half, p, bound=64.0)
            assert (verdict.outcome, verdict.value) == ("proved", float(exactly)), ends
            said = f"mean of the {p}-th powers {float(exactly):.6g}; ramps are a share 0.5 with an error of at most"
            assert verdict.why == f"{said} {most * UP:.6g}; so"


def test_a_mean_is_compared_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    same = ([0.0], [0.0], [0.0], [0.0])
    for p in (1, 3):
        most = Fraction(0.75) ** p
        assert mean(monkeypatch, same, most, Fraction(0), p, 0.75).outcome == "proved"
        verdict = mean(monkeypatch, same, most + Fraction(1, 10**30), Fraction(0), p, 0.75)
        said = f"the mean of the {p}-th powers of the error may be {0.75**p:.6g}"
        assert verdict == Verdict("undecided", said, inf)
    for total, shown in ((2**1000 - 2**900, 2.0**1000), (2**1000, inf), (2**1100, inf)):
        verdict = mean(monkeypatch, same, Fraction(total), Fraction(0))
        assert verdict.why == f"the mean of the 1-th powers of the error may be {shown:.6g}"
    for ends in (([0.0], [inf], [0.0], [0.0]), ([0.0], [np.nan], [0.0], [0.0]), ([0.0], [1e200], [0.0], [0.0])):
        verdict = mean(monkeypatch, ends, Fraction(0), Fraction(0), 2)
        said = "between the cells the error has no bound, or its power overflows"
        assert verdict == Verdict("undecided", said, inf)
    for arith, too_large, outcome in (
        ("real", True, "proved"),  # nothing overflows there
        ("float32", True, "undecided"),
        ("float32", False, "proved"),
    ):
        verdict = mean(monkeypatch, same, Fraction(0), Fraction(0), arith=arith, too_large=too_large)
        assert verdict.outcome == outcome
        if outcome == "undecided":
            assert (verdict.why, verdict.value) == ("between the cells a value may overflow", inf)


def test_powers() -> None:
    """Rounded p - 1 times; what is too small is taken to be larger, so that no power is 0."""
    x = np.array([0.0, 2.0**-1074, 0.1, 1.0, 3.0])
    for p in (1, 2, 3, 7, 64):
        least = 2.0 ** -(960 // p)
        wanted = np.maximum(x, least)
        power = wanted
        for _ in range(p - 1):
            power = power * wanted
        np.testing.assert_array_equal(cells.power(x, p), power)
        assert cells.power(x, p)[0] >= 2.0**-960
