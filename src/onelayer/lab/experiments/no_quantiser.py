"""Attention first, no feed-forward layer before it: what narrow streams miss, and what spare channels give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts import temperature_heads
from onelayer.impossible import narrow_stream, zero_token
from onelayer.lab import narrow_layers
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import doublings, factor_line, figure, line
from onelayer.lab.statistics import exponent, factors, geometric, interval, interval_by_group
from onelayer.network import Attention, Embedding, Transformer
from onelayer.network.blocks import evaluate

Array = NDArray[Any]
Readout = Callable[[Array], Array]

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
BOUND = float(narrow_stream.ERROR_LOWER)
#: Random narrow layers per seed, and steps that each of the best takes towards a smaller bound.
LAYERS, STEPS = {"quick": 200, "full": 2000}, {"quick": 60, "full": 600}
#: Scales of the heads' directions that are tried, and the ridge of the least squares, relative to the mean square.
SCALES, RIDGE = (0.25, 0.5, 1.0, 2.0, 4.0), 1e-9
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


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, case["n"], case["heads"], case["channels"], case["units"]])
    parts = {"narrow": _narrow, "zero": _zero, "fit": _fit, "units": _fit}
    return parts[case["part"]](case, rng, seed)


def _narrow(case: Case, rng: np.random.Generator, _: int) -> list[Row]:
    """What any readout of random narrow layers misses at least; then the best of them, moved to miss less."""
    n, drawn = case["n"], narrow_layers.draw(rng, case["tries"], case["heads"], case["d"])
    bounds = narrow_layers.estimate(drawn, n)
    best, weights = bounds.min(), drawn[int(np.argmin(bounds))]
    for step in range(case["steps"]):
        moved = weights + rng.normal(size=weights.shape) * 0.98**step
        if (found := narrow_layers.estimate(moved[None], n)[0]) < best:
            best, weights = found, moved
    least = narrow_layers.smallest(drawn, n)
    climbed = narrow_stream.error_lower(narrow_layers.layer(weights), n) if case["steps"] else least
    return [
        {
            "smallest_bound": least,
            "mean_bound": float(bounds.mean()),
            "climbed_bound": min(climbed, least),
            "layers": case["tries"] + case["steps"],
        }
    ]


def _zero(case: Case, rng: np.random.Generator, _: int) -> list[Row]:
    """How many layers give the zero token the same output in (0, 1, -1) and (0, 2, -2), and what a bias changes."""
    pair, agree, apart = zero_token.witness(), 0, []
    for _ in range(case["tries"]):
        W_Q, W_K, W_V, W_O = rng.normal(size=(4, case["heads"], 1, 1))
        agree += bool(zero_token.agrees(Transformer(Attention(W_Q, W_K, W_V, W_O)), pair))
        biased = Transformer(Attention(W_Q, W_K, W_V, W_O, b_Q=rng.normal(size=(case["heads"], 1))))
        first, second = (evaluate(biased, X[None])[0, 0, 0] for X in (pair.first, pair.second))
        apart.append(abs(float(first - second)))
    return [{"layers": case["tries"], "blind": agree, "apart_with_bias": float(np.median(apart))}]


def _target(X: Array) -> Array:
    """x_1 + the sum of (x_1 - x_j)^3 over the others, at the first token of [B, n, 1]."""
    x = X[:, :, 0]
    found: Array = x[:, 0] + ((x[:, :1] - x) ** 3).sum(1)
    return found


def _fit(case: Case, rng: np.random.Generator, seed: int) -> list[Row]:
    """A readout for each temperature of the heads; the one that fits best is asked at points not seen before."""
    n: int = case["n"]
    mixed = np.asarray(rng.normal(size=case["heads"]))
    units = int(rng.integers(2**31))
    X, Z = _cube(n, FITTED[n]), _cube(n, ASKED[n])
    fitted = []
    for factor in SCALES:
        layer = _wide(n, case["heads"], case["channels"], mixed, seed, factor)
        fitted.append((*_least_squares(layer, X, case["units"], np.random.default_rng(units)), layer, factor))
    _, read, layer, scale = min(fitted, key=lambda found: found[0])
    lower = None
    if n == 2 and not case["channels"]:
        found = narrow_stream.witness(layer)
        lower, Z = found.error_lower, np.concatenate([Z, found.first[None], found.second[None]])
    errors = np.abs(read(evaluate(layer, Z)[:, 0]) - _target(Z))
    mean_square = float(np.sqrt((errors**2).mean()))
    return [{"error": float(errors.max()), "mean_square": mean_square, "lower_bound": lower, "scale": scale}]


def _least_squares(layer: Transformer, X: Array, units: int, rng: np.random.Generator) -> tuple[float, Readout]:
    """Random ReLU units behind attention, output weights by least squares; with the largest error on X."""
    h = evaluate(layer, X)[:, 0]
    middle, spread = h.mean(0), h.std(0)
    V = rng.normal(size=(h.shape[1], units)) / spread[:, None]
    b = -(h[rng.integers(len(h), size=units)] * V.T).sum(1)

    def hidden_units(some: Array) -> Array:
        straight = (some - middle) / spread
        return np.hstack([np.maximum(some @ V + b, 0), straight, np.ones((len(some), 1))])

    A = hidden_units(h)
    square = A.T @ A
    square[np.diag_indices_from(square)] += RIDGE * np.trace(square) / len(square)
    w = np.linalg.solve(square, A.T @ _target(X))
    return float(np.abs(A @ w - _target(X)).max()), lambda some: hidden_units(some) @ w


def _wide(n: int, heads: int, channels: int, mixed: Array, seed: int, scale: float) -> Transformer:
    """Heads that share this many spare channels; with none they write into the token's own."""
    most = max(heads, temperature_heads.heads_needed(n, 1))
    keys = temperature_heads.construct(n, 1, heads=most, seed=seed, scale=scale).attention.W_K[:heads, :1]
    width = 1 + channels
    read, write = np.zeros((heads, width, 1)), np.zeros((heads, 1, width))
    read[:, :1] = keys
    place = 1 + np.arange(heads) % channels if channels else np.zeros(heads, int)
    write[np.arange(heads), 0, place] = 1.0 if heads == channels else mixed
    zero = np.zeros((heads, width, 1))
    return Transformer(
        Attention(zero, read, read, write, b_Q=np.ones((heads, 1))), Embedding(lift=np.eye(1, width)), (), ()
    )


def _cube(n: int, points: int) -> Array:
    axis = np.linspace(-1, 1, points)
    return np.stack(np.meshgrid(*[axis] * n, indexing="ij"), -1).reshape(-1, n, 1)


def plot(rows: list[Row]) -> Any:
    made, (first, last, *middle) = figure(columns=2, width=10, panels=4)
    narrow = _part(rows, "narrow")
    two = [row for row in narrow if (row["n"], row["d"]) == (2, 1)]
    line(first, interval_by_group(two, "heads", "mean_bound"), "mean of random layers")
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
    middle[1].legend(fontsize="small", loc="lower left")
    return made


def verdict(rows: list[Row]) -> Verdict:
    narrow, blind = _part(rows, "narrow"), _part(rows, "zero")
    least = min((row["climbed_bound"] for row in narrow), default=float("nan"))
    findings = [
        f"Narrow streams: of {sum(row['layers'] for row in narrow)} layers with up to "
        f"{max(row['heads'] for row in narrow)} heads, searched for a small bound, the best still misses by "
        f"{least:.4g} whatever its readout (1/8 = 0.125 is proved for all; random layers: "
        f"{interval(row['mean_bound'] for row in narrow)} on average).",
        *_shapes(narrow),
        f"Zero token: {sum(row['blind'] for row in blind)} of {sum(row['layers'] for row in blind)} layers without "
        f"a query bias give the zero token of (0, 1, -1) and of (0, 2, -2) the same output; with a random bias "
        f"they differ by {geometric(row['apart_with_bias'] for row in blind)} (medians).",
        *(_channels(rows, n) for n in (2, 3)),
        *(_units(rows, n) for n in (2, 3)),
    ]
    best = min((row["error"] for row in _part(rows, "fit") if row["n"] == 2 and row["channels"]), default=1.0)
    says = (
        f"Not with a stream as narrow as the tokens, in the largest error ({least:.3g} at the least found; the "
        f"mean is another question); with spare channels it can: within {best:.2g}, measured."
    )
    answer = "partly" if least >= BOUND > best else "open"
    return Verdict(answer, says, tuple(findings))  # type: ignore[arg-type]


def _shapes(narrow: list[Row]) -> list[str]:
    """The smallest forced error of random layers at each length and width."""
    found = []
    for n, d in sorted({(row["n"], row["d"]) for row in narrow}):
        some = [row for row in narrow if (row["n"], row["d"]) == (n, d)]
        found.append(f"{min(row['smallest_bound'] for row in some):.3g} at n = {n}, d = {d}")
    count = sum(row["layers"] for row in narrow)
    return [f"Smallest forced error of {count:,} layers: {', '.join(found)}."] if found else []


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
        f"n = {n}, 256 units: largest error without spare channels {without}, mean square {mean}{kept}; with as "
        f"many heads as channels: {', '.join(own)}; {heads} heads that share channels: {', '.join(shared)}. "
        f"2nd + 1 = {2 * n + 1} heads are enough to see all multisets."
    )


def _units(rows: list[Row], n: int) -> str:
    some = [row for row in _part(rows, "units") if row["n"] == n]
    first, last = (f([row["units"] for row in some]) for f in (min, max))
    ends = [geometric(row["error"] for row in some if row["units"] == u) for u in (first, last)]
    power = exponent((row["units"] for row in some), (row["error"] for row in some))
    return (
        f"n = {n}, {2 * n + 1} heads with a channel each: from {first} to {last} ReLU units the error goes from "
        f"{ends[0]} to {ends[1]}, with the power {power} of their number."
    )


def _part(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
