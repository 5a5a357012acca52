"""Attention first, no feed-forward layer before it: what narrow streams miss, and what spare channels give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.impossible.narrow_stream import ERROR_LOWER, error_lower
from onelayer.impossible.narrow_stream import witness as narrow_witness
from onelayer.impossible.zero_token import agrees
from onelayer.impossible.zero_token import witness as zero_witness
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.narrow_layers import draw, estimate, layer, smallest
from onelayer.lab.pictures import doublings, factor_line, figure, line
from onelayer.lab.spare_channels import cube, least_squares, target, wide_layer
from onelayer.lab.statistics import exponent, factors, geometric, interval, interval_by_group
from onelayer.network import Attention, Transformer
from onelayer.network.blocks import evaluate

Array = NDArray[Any]

QUESTION = "Can the feed-forward layer before attention be left out?"
HYPOTHESES = (
    "With a stream as wide as the tokens it cannot, in the largest error: x_k + 8 (x_k - mean)^3 is missed by 1/8 "
    "at least, at every n >= 2 and d; and without a query bias a zero token sees nothing but a mean.",
    "The paper asks in the mean of errors (L^p, p finite), which no bound here forbids: for two numbers "
    "`attention-first` builds it.",
    "With spare channels it can: 2nd + 1 random heads with a channel each tell all multisets apart; fewer may do.",
)
EARLIER = Earlier(
    "partly",
    "Not with a stream as narrow as the tokens (two of them, of one component).",
    "the limit is proved at every n and d, searched at ten of them, and errors are given in both norms.",
)
EXTRAS: tuple[str, ...] = ()
#: Numbers of tokens and of components at which narrow layers are searched.
SHAPES = ((2, 1), (3, 1), (4, 1), (8, 1), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 4))
BOUND = float(ERROR_LOWER)
#: Random narrow layers per seed, and steps that each of the best takes towards a smaller bound.
LAYERS, STEPS = {"quick": 200, "full": 2000}, {"quick": 60, "full": 600}
#: Scales of the heads' directions that are tried.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Points per side of the square on which output weights are fitted, and on which the error is measured.
FITTED, ASKED = {2: 33, 3: 13}, {2: 90, 3: 25}


def cases(preset: Preset) -> list[Case]:
    many, tries, steps = preset == "full", LAYERS[preset], STEPS[preset]
    narrow = [
        _case("narrow", n, heads, d=d, tries=tries, steps=steps if (n, d) == (2, 1) else 0)
        for n, d in SHAPES
        for heads in ((1, 2, 4, 8, 16) if many else (1, 2, 4, 8) if (n, d) == (2, 1) else (4,))
    ]
    blind = [_case("zero", 3, heads, tries=20) for heads in (1, 4, 16)]
    fits = [
        _case("fit", n, heads, channels=channels, units=256)
        for n in (2, 3)
        for heads in (1, 2, 4, 8)
        for channels in (0, 1, 2, 4, 8)
        if channels <= heads
    ]
    units = [
        _case("units", n, 2 * n + 1, channels=2 * n + 1, units=units)
        for n in (2, 3)
        for units in ((16, 32, 64, 128, 256, 512) + ((1024, 2048) if many else ()))
    ]
    return narrow + blind + fits + units


def _case(part: str, n: int, heads: int, **more: int) -> Case:
    return {"part": part, "n": n, "heads": heads, "d": 1, "channels": 0, "units": 0, "tries": 1, "steps": 0, **more}


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    parts = {"narrow": _narrow, "zero": _zero, "fit": _fit, "units": _fit}
    return parts[case["part"]]


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _random(case: Case, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, case["n"], case["heads"], case["channels"], case["units"]])


def _narrow(case: Case, seed: int) -> list[Row]:
    """What any readout of random narrow layers misses at least; then the best of them, moved to miss less."""
    rng, n = _random(case, seed), case["n"]
    drawn = draw(rng, case["tries"], case["heads"], case["d"])
    bounds = estimate(drawn, n)
    best, weights = bounds.min(), drawn[int(np.argmin(bounds))]
    for step in range(case["steps"]):
        moved = weights + rng.normal(size=weights.shape) * 0.98**step
        if (found := estimate(moved[None], n)[0]) < best:
            best, weights = found, moved
    least = smallest(drawn, n)
    climbed = error_lower(layer(weights), n) if case["steps"] else least
    return [
        {
            "smallest_bound": least,
            "mean_bound": float(bounds.mean()),
            "climbed_bound": min(climbed, least),
            "layers": case["tries"] + case["steps"],
        }
    ]


def _zero(case: Case, seed: int) -> list[Row]:
    """How many layers give the zero token the same output in (0, 1, -1) and (0, 2, -2), and what a bias changes."""
    rng, pair, agree, apart = _random(case, seed), zero_witness(), 0, []
    for _ in range(case["tries"]):
        W_Q, W_K, W_V, W_O = rng.normal(size=(4, case["heads"], 1, 1))
        agree += bool(agrees(Transformer(Attention(W_Q, W_K, W_V, W_O)), pair))
        biased = Transformer(Attention(W_Q, W_K, W_V, W_O, b_Q=rng.normal(size=(case["heads"], 1))))
        first, second = (evaluate(biased, X[None])[0, 0, 0] for X in (pair.first, pair.second))
        apart.append(abs(float(first - second)))
    return [{"layers": case["tries"], "blind": agree, "apart_with_bias": float(np.median(apart))}]


def _fit(case: Case, seed: int) -> list[Row]:
    """A readout for each temperature of the heads; the one that fits best is asked at points not seen before."""
    rng, n = _random(case, seed), int(case["n"])
    mixed = np.asarray(rng.normal(size=case["heads"]))
    units = int(rng.integers(2**31))
    X, Z = cube(n, FITTED[n]), cube(n, ASKED[n])
    fitted = []
    for factor in SCALES:
        wide = wide_layer(n, case["heads"], case["channels"], mixed, seed, factor)
        fitted.append((*least_squares(wide, X, case["units"], np.random.default_rng(units)), wide, factor))
    _, read, wide, scale = min(fitted, key=lambda found: found[0])
    lower = None
    if n == 2 and not case["channels"]:
        found = narrow_witness(wide)
        lower, Z = found.error_lower, np.concatenate([Z, found.first[None], found.second[None]])
    errors = np.abs(read(evaluate(wide, Z)[:, 0]) - target(Z))
    mean_square = float(np.sqrt((errors**2).mean()))
    return [{"error": float(errors.max()), "mean_square": mean_square, "lower_bound": lower, "scale": scale}]


def plot(rows: list[Row]) -> Any:
    made, (first, last, *middle) = figure(columns=2, width=10, panels=4)
    narrow = _part(rows, "narrow")
    two = [row for row in narrow if (row["n"], row["d"]) == (2, 1)]
    line(first, interval_by_group(two, "heads", "mean_bound"), "mean over random layers")
    line(first, interval_by_group(two, "heads", "smallest_bound"), "best of random layers")
    line(first, interval_by_group(two, "heads", "climbed_bound"), "after climbing")
    first.axhline(BOUND, color="grey", linestyle="--", label="1/8, proved for all")
    first.set(
        xlabel="heads, no spare channel, n = 2, d = 1", ylabel="error of any readout, lower bound", ylim=(0, None)
    )
    for n, axes in zip((2, 3), middle, strict=True):
        some = [row for row in _part(rows, "fit") if row["n"] == n]
        for channels in sorted({row["channels"] for row in some}):
            mine = [row for row in some if row["channels"] == channels]
            factor_line(axes, factors(mine, "heads", "error"), f"{channels} spare channels")
        axes.set(yscale="log", xlabel=f"heads, n = {n}", ylabel="sup error measured, 256 units")
        factor_line(last, factors([r for r in _part(rows, "units") if r["n"] == n], "units", "error"), f"n = {n}")
    last.set(yscale="log", xlabel="ReLU units of the readout, 2n + 1 heads", ylabel="sup error measured")
    for axes in (last, middle[0]):
        axes.axhline(BOUND, color="grey", linestyle="--", label="1/8")
    for axes in (first, last, *middle):
        doublings(axes)
    first.legend(fontsize="small")
    last.legend(fontsize="small")
    middle[1].legend(fontsize="small", loc=(0.02, 0.41))  # where no bars are
    return made


def verdict(rows: list[Row]) -> Verdict:
    narrow, blind = _part(rows, "narrow"), _part(rows, "zero")
    least = min((row["climbed_bound"] for row in narrow), default=float("nan"))
    findings = [
        f"Narrow streams: of {sum(row['layers'] for row in narrow):,} layers with up to "
        f"{max((row['heads'] for row in narrow), default=0)} heads, {sum(row['tries'] for row in narrow):,} random "
        f"and {sum(row['steps'] for row in narrow):,} tried in climbing from the best of those, the best still "
        f"misses by {least:.4g} in the sup norm, on [-1, 1]^(n d), whatever its readout (1/8 is proved for all).",
        *_average(narrow),
        *_shapes(narrow),
        f"Zero token: {sum(row['blind'] for row in blind)} of {sum(row['layers'] for row in blind)} layers without "
        f"a query bias give the zero token of (0, 1, -1) and of (0, 2, -2) the same output; with a random bias "
        f"they differ by {geometric(row['apart_with_bias'] for row in blind)} (medians).",
        *(_channels(rows, n) for n in (2, 3) if any(row["n"] == n for row in _part(rows, "fit"))),
        *(_units(rows, n) for n in (2, 3) if any(row["n"] == n for row in _part(rows, "units"))),
    ]
    best = {n: error for n in (2, 3) if (error := _best(rows, n)) is not None}
    can = best.get(2, 1.0) < BOUND
    says = (
        f"Not with a stream as narrow as the tokens, in the largest error ({least:.3g} at the least found; the "
        f"mean is another question). With spare channels {_spared(rows, best, can)}."
    )
    return Verdict("partly" if least >= BOUND and can else "open", says, tuple(findings))


def _best(rows: list[Row], n: int) -> float | None:
    """The smallest error of all fits with spare channels, of one number of units."""
    return min((row["error"] for row in _part(rows, "fit") if row["n"] == n and row["channels"]), default=None)


def _spared(rows: list[Row], best: dict[int, float], can: bool) -> str:
    """What fits with spare channels miss: the best of all, then the usual one with most units."""
    if not best:
        return "nothing was measured"
    said = [f"{error:.3g} at n = {n}" for n, error in best.items()]
    told = f"it {'can at n = 2' if can else 'is open'}: the best of all fits misses by {' and '.join(said)}"
    units = {n: [row for row in _part(rows, "units") if row["n"] == n] for n in best}
    most = {n: max(row["units"] for row in some) for n, some in units.items() if some}
    listed = [
        f"{geometric(row['error'] for row in units[n] if row['units'] == u)} at n = {n} with {u:,} units"
        for n, u in most.items()
    ]
    return told + (f"; with most units, fits miss by {' and '.join(listed)}" if listed else "") + ", measured"


def _average(narrow: list[Row]) -> list[str]:
    """The mean of the bounds of all layers drawn at a length and width: over layers, then over seeds."""
    found = []
    for n, d in sorted({(row["n"], row["d"]) for row in narrow}):
        seeds: dict[int, list[Row]] = {}
        for row in narrow:
            if (row["n"], row["d"]) == (n, d):
                seeds.setdefault(row["seed"], []).append(row)
        means = interval(
            sum(row["mean_bound"] * row["tries"] for row in some) / sum(row["tries"] for row in some)
            for some in seeds.values()
        )
        found.append(f"{means} at n = {n}, d = {d}")
    listed = ", ".join(found)
    return [f"Mean over random layers of the sup error that each forces: {listed}."] if found else []


def _shapes(narrow: list[Row]) -> list[str]:
    """The smallest forced error of random layers at each length and width, before any was moved to miss less."""
    found = []
    for n, d in sorted({(row["n"], row["d"]) for row in narrow}):
        some = [row for row in narrow if (row["n"], row["d"]) == (n, d)]
        found.append(f"{min(row['smallest_bound'] for row in some):.3g} at n = {n}, d = {d}")
    count = sum(row["tries"] for row in narrow)
    said = f"Smallest sup error forced, of the {count:,} random layers alone"
    return [f"{said}: {', '.join(found)}."] if found else []


def _channels(rows: list[Row], n: int) -> str:
    """Errors without spare channels, and with as many as heads."""
    some = [row for row in _part(rows, "fit") if row["n"] == n]
    heads = max(row["heads"] for row in some)
    without = interval(row["error"] for row in some if not row["channels"])
    mean = interval(row["mean_square"] for row in some if not row["channels"])
    counts = sorted({row["channels"] for row in some} - {0})
    own = [f"{c}: {geometric(r['error'] for r in some if r['heads'] == r['channels'] == c)}" for c in counts]
    shared = [
        f"{c}: {geometric(r['error'] for r in some if r['channels'] == c and r['heads'] == heads)}"
        for c in counts
        if c < heads
    ]
    bounds = [row for row in some if row["lower_bound"] is not None]
    kept = f"; never below its own bound in {len(bounds)} layers" if n == 2 else ""
    if any(row["error"] < row["lower_bound"] for row in bounds):
        kept = "; BELOW a proved bound, which cannot be"
    return (
        f"n = {n}, target x_1 + sum (x_1 - x_j)^3, 256 units: sup error on a grid without spare channels "
        f"{without}, root of the mean square {mean}{kept}; with as many heads as channels: {', '.join(own)}; "
        f"{heads} heads that share channels: {', '.join(shared)}. "
        f"2nd + 1 = {2 * n + 1} heads are enough to see all multisets."
    )


def _units(rows: list[Row], n: int) -> str:
    some = [row for row in _part(rows, "units") if row["n"] == n]
    first, last = (f([row["units"] for row in some]) for f in (min, max))
    ends = [geometric(row["error"] for row in some if row["units"] == u) for u in (first, last)]
    power = exponent((row["units"] for row in some), (row["error"] for row in some))
    return (
        f"n = {n}, {2 * n + 1} heads with a channel each: from {first} to {last} ReLU units the sup error goes "
        f"from {ends[0]} to {ends[1]}, with the power {power} of their number."
    )


def _part(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
