"""The Boltzmann operator over temperatures: where it tells sets apart, and how far above the lemmas it stays."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import (
    boltzmann,
    lemma_1_level_gap,
    lemma_1_log_separation_lower,
    lemma_b_separation_lower,
)
from onelayer.lab import temperatures
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import geometric, interval, interval_by_group, share

QUESTION = "At which temperatures does one softmax head tell sets of tokens apart?"
HYPOTHESES = (
    "Too hot, the operator is a mean and sets with equal means meet; too cold, it is a maximum and all sets with "
    "the same largest entry meet (hardmax): ids separate only in a window between.",
    "Both edges follow from a series, and Adam, which knows nothing of it, ends between them.",
    "Lemma 1 asks for entries 2 log n + 3 apart and promises a gap of (log n)^2 e^(-2r), far below what happens; "
    "Lemma B, derived here, asks for 2 and is attained up to a small factor.",
)
EARLIER = Earlier(
    "partly",
    "Where float32 tells most draws apart was measured; both edges were read off a picture.",
    "both edges are derived and compared with what is measured, and trained heads are placed between them.",
)
EXTRAS = ("torch",)
#: Fewest bits by which the nearest ids differ, relative to their spread, for a dtype to tell them apart.
BITS = {"float32": 22, "float64": 51}
EQUAL = 53.0  # bits that stand for ids that are equal in float64
#: Level gaps at which the lemmas are compared with what happens.
GAPS = (2.0, 4.0, 8.0)
#: Draws whose logits spread wider are left out: their gaps are below the range of float64.
WIDEST = 600.0
DRAWS = {"quick": 40, "full": 200}


def cases(preset: Preset) -> list[Case]:
    sizes = [(12, 3)] if preset == "quick" else [(12, 3), (12, 6), (24, 3)]
    common = {"draws": DRAWS[preset]}
    windows = [
        {"part": "window", "levels": levels, "n": n, "spacing": spacing, **common}
        for levels, n in sizes
        for spacing in ("even", "random")
    ]
    few = [(5, 2), (6, 3)] if preset == "quick" else [(5, 2), (6, 3), (8, 4), (10, 5)]
    steps = 300 if preset == "quick" else 5000
    trained = [{"part": "trained", "levels": 8, "n": 3, "spacing": "even", "draws": steps}]
    return (
        windows
        + trained
        + [{"part": "lemmas", "levels": levels, "n": n, "spacing": "random", **common} for levels, n in few]
    )


def run(case: Case, seed: int) -> list[Row]:
    """Levels drawn in [0, 1], or equally spaced there, and all sets of n of them."""
    rng = np.random.default_rng([seed, case["levels"], case["n"]])
    sets = np.array(list(combinations(range(case["levels"]), case["n"])))
    if case["part"] == "trained":
        return _train_rows(case, sets, seed)
    rows = []
    for draw in range(1 if case["spacing"] == "even" else case["draws"]):
        levels = np.sort(rng.random(case["levels"]))
        if case["spacing"] == "even":
            levels = np.linspace(0, 1, case["levels"])
        if case["part"] == "window":
            ends = {f"{end}_edge": edge for end, edge in zip(("hot", "cold"), _edges(levels, sets), strict=True)}
            rows += [{"draw": draw, **_window(levels, sets, 2.0**k), **ends} for k in range(-8, 11)]
        else:
            relative = np.ptp(levels) / np.diff(levels).min()
            rows += [{"draw": draw, **_lemmas(levels, case["n"], g)} for g in GAPS if g * relative < WIDEST]
    return rows


def _window(levels: NDArray[Any], sets: NDArray[Any], beta: float) -> Row:
    values = np.sort(boltzmann(beta * levels[sets]) / beta)
    gap, spread = float(np.diff(values).min()), float(np.ptp(values))
    bits = min(EQUAL, float(np.log2(spread / gap))) if gap > 0 else EQUAL
    return {"beta": beta, "bits": bits, **{f"in_{name}": bool(bits <= most) for name, most in BITS.items()}}


def _edges(levels: NDArray[Any], sets: NDArray[Any]) -> tuple[float, float]:
    return temperatures.edges(levels, sets, BITS["float32"])


def _train_rows(case: Case, sets: NDArray[Any], seed: int) -> list[Row]:
    """Where training puts the temperature of its head, count by count; the answers are random classes of sets."""
    from onelayer.lab.trained import Budget, Net, Shape, Task, train, train_tuned

    levels = np.linspace(0, 1, case["levels"])
    answers = np.random.default_rng([seed, 5]).integers(0, 4, len(sets))
    task = Task(levels[sets][..., None], answers, scope="sequence")
    hot, cold = _edges(levels, sets)
    rows: list[Row] = []

    def watch(found: Any) -> bool:
        beta = temperatures.of_head(found.net, levels)
        rows.append(
            {"step": found.steps, "beta": beta, "accuracy": found.accuracy, "hot_edge": hot, "cold_edge": cold}
        )
        return False

    shape = Shape(16, hidden=64)
    train(Net(shape, task, seed), task, Budget(steps=0), 0.0, watch=watch)  # where it starts
    ended = train_tuned(shape, task, Budget(steps=case["draws"], check=20), seed, watch)
    return [row | {"ended_by": ended.ended_by} for row in rows]


def _lemmas(levels: NDArray[Any], n: int, gap: float) -> Row:
    """Levels scaled to a smallest distance; natural logarithms of the smallest gap and of its lower bounds."""
    scaled = (levels - levels[0]) * (gap / np.diff(levels).min() * (1 + 2.0**-40))
    reach = float(scaled[-1])
    # The worst pair for Lemma B shares all but its last entry, which is the lowest level or the next.
    prefix = scaled[::-1][: n - 1]
    bound = lemma_b_separation_lower([*prefix, scaled[1]], [*prefix, scaled[0]])
    applies = gap > lemma_1_level_gap(n)
    return {
        "level_gap": gap,
        "reach": reach,
        "log_gap": _log_smallest_gap(scaled, n),
        "log_lemma_b": math.log(bound),
        # Moving all levels moves the operator with them: [-r, r] is as small as it can be.
        "log_lemma_1": lemma_1_log_separation_lower(n, reach / 2) if applies else None,
    }


def _log_smallest_gap(levels: NDArray[Any], n: int) -> float:
    """Of the operator on all sets of n, in as many digits as it takes."""
    zero = Decimal(0)
    with localcontext(prec=40 + int(levels[-1] / 2)):
        exact = [Decimal(float(x)) for x in levels]
        weights = [(x - exact[-1]).exp() for x in exact]
        sets = combinations(zip(exact, weights, strict=True), n)
        values = sorted(sum((x * w for x, w in some), zero) / sum((w for _, w in some), zero) for some in sets)
        return float(min(b - a for a, b in pairwise(values)).ln())


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right, last) = figure(columns=2, width=10, panels=4)
    for (levels, n, spacing), some in _by_size(rows, "window").items():
        name = f"{n} of {levels}, {spacing} levels"
        line(left, interval_by_group(some, "beta", "bits"), name)
        if spacing == "random":
            for dtype, style in (("float32", "-"), ("float64", ":")):
                shares = interval_by_group(some, "beta", f"in_{dtype}")
                line(middle, shares, f"{n} of {levels}, {dtype}", linestyle=style)
    for dtype, most in BITS.items():
        left.axhline(most, color="grey", linestyle="--")
        left.annotate(dtype, (2.0, most), ha="left", va="bottom", color="grey")
    left.set(xlabel="inverse temperature", ylabel="bits that tell the nearest two sets apart")
    middle.set(
        xlabel="inverse temperature", ylabel="share of draws whose sets are all told apart", ylim=(-0.03, 1.03)
    )
    for axes in (left, middle):
        axes.set_xscale("log", base=2)
    found = [row for row in rows if row["part"] == "lemmas"]
    for name, label, marker in (
        ("log_gap", "measured", "."),
        ("log_lemma_b", "Lemma B", "+"),
        ("log_lemma_1", "Lemma 1", "x"),
    ):
        points = [(r["reach"], r[name] / math.log(10)) for r in found if r[name] is not None and r["reach"] < 120]
        if points:
            right.scatter(*zip(*points, strict=True), label=label, marker=marker, s=22, linewidths=0.8, alpha=0.7)
    right.set(xlabel="largest minus smallest logit", ylabel="log10 of the smallest gap of two sets")
    for axes in (left, middle, right):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    _draw_trained(last, [row for row in rows if row["part"] == "trained"])
    return made


def _draw_trained(axes: Any, rows: list[Row]) -> None:
    """Temperatures over training, in the window between the two edges."""
    for seed in sorted({row["seed"] for row in rows}):
        some = [row for row in rows if row["seed"] == seed]
        axes.plot([row["step"] for row in some], [row["beta"] for row in some], linewidth=1)
    axes.set(xlabel="step of Adam", ylabel="inverse temperature of the trained head", yscale="log")
    if rows:
        axes.axhspan(max(rows[0]["hot_edge"], 1e-6), rows[0]["cold_edge"], color="grey", alpha=0.2)
        axes.set_title("grey: the window of float32", fontsize="small")


def verdict(rows: list[Row]) -> Verdict:
    findings = [_temperatures(*size, some) for size, some in _by_size(rows, "window").items()]
    findings += [*_compare_edges(rows), *_describe_trained(rows)]
    found = [row for row in rows if row["part"] == "lemmas"]
    b = [math.exp(r["log_gap"] - r["log_lemma_b"]) for r in found]
    if b:
        draws: dict[Any, list[float]] = {}  # one number for each draw: its level gaps are not independent
        for row, ratio in zip(found, b, strict=True):
            draws.setdefault((row["levels"], row["n"], row["seed"], row["draw"]), []).append(ratio)
        findings.append(
            f"Lemma B: over {len(draws)} draws the measured gap is "
            f"{geometric(geometric(ratios).mean for ratios in draws.values())} times its bound, and at least "
            f"{min(b):.4g} times it."
        )
    both = [r for r in found if r["log_lemma_1"] is not None]
    if both:
        digits = interval((r["log_gap"] - r["log_lemma_1"]) / math.log(10) for r in both)
        gained = interval((r["log_lemma_b"] - r["log_lemma_1"]) / math.log(10) for r in both)
        findings.append(
            f"Lemma 1, where it applies ({len(both)} draws): the measured gap is 10^({digits}) times its bound; "
            f"Lemma B recovers {gained} of these decimal digits."
        )
    held = all(ratio >= 1 for ratio in b) and all(r["log_gap"] >= r["log_lemma_1"] for r in both)
    says = _ends(rows)
    if not held:
        says += " A lemma's bound was not met: see the rows."
    return Verdict("partly", says, tuple(findings))


def _compare_edges(rows: list[Row]) -> list[str]:
    """The derived cold edge over the coldest temperature at which float32 still told all sets of the draw apart."""
    said = []
    for (levels, n, spacing), some in _by_size(rows, "window").items():
        draws: dict[Any, list[Row]] = {}
        for row in some:
            draws.setdefault((row["seed"], row["draw"]), []).append(row)
        cold = [
            (d[0]["cold_edge"], max((r["beta"] for r in d if r["in_float32"]), default=0.0)) for d in draws.values()
        ]
        ratios = geometric(edge / seen if seen else None for edge, seen in cold)
        hot = interval(d[0]["hot_edge"] for d in draws.values())
        said.append(
            f"{n} of {levels} {spacing} levels: the derived cold edge is {ratios} times the coldest power of two "
            f"that float32 tells apart; the derived hot edge is {hot}."
        )
    return said


def _describe_trained(rows: list[Row]) -> list[str]:
    last = {row["seed"]: row for row in rows if row["part"] == "trained"}
    if not last:
        return []
    inside = share(row["hot_edge"] <= row["beta"] <= row["cold_edge"] for row in last.values())
    edges = next(iter(last.values()))
    return [
        f"Trained heads end at inverse temperature {geometric(row['beta'] for row in last.values())}, with "
        f"{interval(row['accuracy'] for row in last.values())} of the answers right; {inside} inside the window of "
        f"float32, {edges['hot_edge']:.2g} to {edges['cold_edge']:.3g}."
    ]


def _ends(rows: list[Row]) -> str:
    """Whether float32 tells most draws apart at the hottest and at the coldest temperature."""
    said = []
    for spacing in ("even", "random"):
        some = [row for row in rows if row["part"] == "window" and row["spacing"] == spacing]
        if not (shares := interval_by_group(some, "beta", "in_float32")):
            continue
        hot, cold = (shares[end].mean >= 0.5 for end in (min(shares), max(shares)))
        ends = {
            (True, True): "at all temperatures tried",
            (True, False): "unless they are too cold",
            (False, True): "unless they are too hot",
            (False, False): "in a window only, neither too hot nor too cold",
        }
        said.append(f"{ends[hot, cold]} with {spacing} levels")
    return f"Heads in float32 tell most draws apart {', and '.join(said)}."


def _temperatures(levels: int, n: int, spacing: str, some: list[Row]) -> str:
    bits, ranges = interval_by_group(some, "beta", "bits"), []
    best = min(bits, key=lambda beta: bits[beta].mean)
    for dtype in BITS:
        enough = [
            beta for beta, share in interval_by_group(some, "beta", f"in_{dtype}").items() if share.mean >= 0.5
        ]
        open_below = enough and min(enough) == min(bits)
        low = "the hottest" if open_below else f"{min(enough):.3g}" if enough else ""
        ranges.append(f"{dtype} from {low} to {max(enough):.3g}" if enough else f"{dtype} nowhere")
    return (
        f"{n} of {levels} {spacing} levels in [0, 1]: fewest bits, {bits[best]}, at inverse temperature "
        f"{best:.3g}; enough for at least half of the draws: {', '.join(ranges)}."
    )


def _by_size(rows: list[Row], part: str) -> dict[tuple[int, int, str], list[Row]]:
    sizes: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        if row["part"] == part:
            sizes.setdefault((row["levels"], row["n"], row["spacing"]), []).append(row)
    return sizes
