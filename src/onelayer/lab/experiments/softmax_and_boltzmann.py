"""The Boltzmann operator over temperatures: where it tells sets apart, and how far above the lemmas it stays.

Of evenly spaced levels both edges of the window are derived. Of random levels the cold one is; their means all
differ, so the hot one is 0, or, where two means are nearer than the bits, none is derived. Nothing is claimed of
what lies between the edges: sets meet there wherever their values change order, which is counted.

Trained heads answer at one token, the query, the same in all sequences, which sees its context only: attention
alone tells sets of equal means apart. It is one more entry of each set, and the edges are those of such sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import boltzmann
from onelayer.lab.ended_temperatures import describe_trained, draw_trained, say_where_apart, say_where_they_end
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.lemma_bounds import compare_lemmas
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import geometric, geometric_of, interval, interval_by_group, interval_of, share
from onelayer.lab.temperatures import add_query, crossings, edges

Array = NDArray[Any]
QUESTION = "At which temperatures does one softmax head tell sets of tokens apart?"
HYPOTHESES = (
    "Too hot, the operator is a mean and sets with equal means meet; too cold, it is a maximum and all sets with "
    "the same largest entry meet (hardmax): ids separate only in a window, and there but for the temperatures at "
    "which values of two sets change order.",
    "Of evenly spaced levels both edges follow from a series, of random ones the cold edge; and Adam, which knows "
    "nothing of them, ends between them wherever a head starts.",
    "Lemma 1 asks for entries 2 log n + 3 apart and promises a gap of (log n)^2 e^(-2r), far below what happens; "
    "Lemma B, derived here, asks for 2 and is attained up to a small factor.",
)
EARLIER = Earlier(
    "partly",
    "Sets are told apart between two edges, derived for random levels as well, and trained heads end there.",
    "different means counted as told apart, which so many bits may not see; sets that change order meet inside, "
    "which was not counted; heads had no start outside; and heads were read off networks that told sets apart "
    "without attention, because each token kept its level beside its context.",
)
EXTRAS = ("torch",)
#: Fewest bits by which the nearest ids differ, relative to their spread, for a dtype to tell them apart.
BITS = {"float32": 22, "float64": 51}
EQUAL = 53.0  # bits that stand for ids that are equal in float64
#: Level gaps at which the lemmas are compared with what happens.
GAPS = (2.0, 4.0, 8.0)
#: Draws whose logits spread wider are left out: their gaps are below the range of float64.
WIDEST = 600.0
#: Draws of random levels: for the window, and for the lemmas, whose operator takes many digits.
DRAWS, DRAWS_OF_LEMMAS = {"quick": 40, "full": 200}, 40
#: Powers of two between which temperatures are tried, and how many are drawn between the edges of a draw.
HOTTEST, COLDEST, BETWEEN = -8, 10, 64
TRIED = tuple(2.0**k for k in range(HOTTEST, COLDEST + 1))
#: Inverse temperatures at which trained heads start, and the steps that they take at most.
STARTS, STEPS = (1e-7, 1e-3, 1.0, 10.0, 50.0), {"quick": 1000, "full": 12000}


def cases(preset: Preset) -> list[Case]:
    sizes = [(12, 3)] if preset == "quick" else [(12, 3), (12, 6), (24, 3)]
    few = [(5, 2), (6, 3)] if preset == "quick" else [(5, 2), (6, 3), (8, 4), (10, 5)]
    return [
        *(_case("window", *size, spacing, DRAWS[preset]) for size in sizes for spacing in ("even", "random")),
        *(_case("trained", 6, 3, "even", start=start, steps=STEPS[preset]) for start in STARTS),
        *(_case("lemmas", *size, "random", DRAWS_OF_LEMMAS) for size in few),
    ]


def _case(part: str, levels: int, n: int, spacing: str, draws: int = 1, start: float = 0.0, steps: int = 0) -> Case:
    sizes = {"levels": levels, "n": n, "spacing": spacing}
    return {"part": part, **sizes, "draws": draws, "start": start, "steps": steps}


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    parts = {"window": _window_rows, "trained": _train_rows, "lemmas": _lemma_rows}
    return parts[case["part"]]


def run(case: Case, seed: int) -> list[Row]:
    """Levels drawn in [0, 1], or equally spaced there, and all sets of n of them."""
    return computes(case)(case, seed)


def _sets(case: Case) -> Array:
    return np.array(list(combinations(range(case["levels"]), case["n"])))


def _window_rows(case: Case, seed: int) -> list[Row]:
    """A row for each draw, then one for each temperature, with means over the draws: their columns differ."""
    rng, sets = np.random.default_rng([seed, case["levels"], case["n"]]), _sets(case)
    chosen = np.random.default_rng([seed, case["levels"], case["n"], 1])
    drawn, bits = [], []
    for draw in range(1 if case["spacing"] == "even" else case["draws"]):
        levels = np.sort(rng.random(case["levels"]))
        if case["spacing"] == "even":
            levels = np.linspace(0, 1, case["levels"])
        found = [_bits(levels, sets, beta) for beta in TRIED]
        told = [beta for beta, b in zip(TRIED, found, strict=True) if b <= BITS["float32"]]
        drawn.append({"draw": draw, **_look_between(levels, sets, chosen), "coldest": max(told, default=None)})
        bits.append(found)
    tried = [
        {"beta": beta, "bits": float(of_draws.mean())}
        | {f"in_{name}": float((of_draws <= most).mean()) for name, most in BITS.items()}
        for beta, of_draws in zip(TRIED, np.array(bits).T, strict=True)
    ]
    columns = dict.fromkeys([*drawn[0], *tried[0]])
    return [{**columns, **row} for row in (*drawn, *tried)]


def _look_between(levels: Array, sets: Array, chosen: np.random.Generator) -> Row:
    """The edges of a draw, and what happens at temperatures between them."""
    hot, cold = edges(levels, sets, BITS["float32"])
    low = max(hot or 0.0, 2.0**HOTTEST)
    between = low * (cold / low) ** chosen.random(BETWEEN)
    told = [_bits(levels, sets, beta) <= BITS["float32"] for beta in between]
    met = {"meet": crossings(levels, sets, low, cold), "pairs": math.comb(len(sets), 2)}
    return {"hot_edge": hot, "cold_edge": cold, "told_between": float(np.mean(told)), **met}


def _bits(levels: Array, sets: Array, beta: float) -> float:
    """By which the nearest two ids differ, relative to their spread."""
    values = np.sort(boltzmann(beta * levels[sets]) / beta)
    gap, spread = float(np.diff(values).min()), float(np.ptp(values))
    return min(EQUAL, float(np.log2(spread / gap))) if gap > 0 else EQUAL


def _train_rows(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.trained_temperatures import train_from

    levels, sets = add_query(case["levels"], _sets(case))
    hot, cold = edges(levels, sets, BITS["float32"])
    assert hot is not None  # evenly spaced
    row = train_from(case["start"], levels, sets, case["steps"], seed)
    return [{**row, "inside": bool(hot <= row["beta"] <= cold), "hot_edge": hot, "cold_edge": cold}]


def _lemma_rows(case: Case, seed: int) -> list[Row]:
    rng, rows = np.random.default_rng([seed, case["levels"], case["n"]]), []
    for draw in range(case["draws"]):
        levels = np.sort(rng.random(case["levels"]))
        relative = np.ptp(levels) / np.diff(levels).min()
        gaps = [g for g in GAPS if g * relative < WIDEST]
        rows += [{"draw": draw, **compare_lemmas(levels, case["n"], g)} for g in gaps]
    return rows


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right, last) = figure(columns=2, width=10, panels=4)
    for (levels, n, spacing), window in _by_size(rows, "window").items():
        name, some = f"{n} of {levels}, {spacing} levels", _tried(window)
        line(left, interval_by_group(some, "beta", "bits"), name)
        if spacing == "random":
            for dtype, style in (("float32", "-"), ("float64", ":")):
                shares = interval_by_group(some, "beta", f"in_{dtype}")
                line(middle, shares, f"{n} of {levels}, {dtype}", linestyle=style)
    for dtype, most in BITS.items():
        left.axhline(most, color="grey", linestyle="--")
        left.annotate(dtype, (2.0, most), ha="left", va="bottom", color="grey")
    left.set(xlabel="inverse temperature", ylabel="bits that tell the nearest two sets apart")
    middle.set(xlabel="inverse temperature", ylabel="share of draws with all sets apart", ylim=(-0.03, 1.03))
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
    draw_trained(last, _trained(rows))
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings = [_temperatures(*size, some) for size, some in _by_size(rows, "window").items()]
    findings += [*_compare_edges(rows), *_describe_meetings(rows), *describe_trained(_trained(rows))]
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
    windows = _by_size(rows, "window").items()
    apart = {size: interval_by_group(_tried(some), "beta", "in_float32") for size, some in windows}
    says = say_where_apart(apart) + say_where_they_end(_trained(rows))
    if not held:
        says += " A lemma's bound was not met: see the rows."
    inside = [row["inside"] for row in _trained(rows)]
    return Verdict("yes" if held and inside and all(inside) else "partly", says, tuple(findings))


def _compare_edges(rows: list[Row]) -> list[str]:
    """The derived cold edge over the coldest temperature at which float32 still told all sets of the draw apart."""
    said = []
    for (levels, n, spacing), some in _by_size(rows, "window").items():
        draws = _drawn(some)
        ratios = geometric_of(draws, lambda row: row["cold_edge"] / row["coldest"] if row["coldest"] else None)
        if spacing == "even":
            derived = f"the hot edge is {draws[0]['hot_edge']:.3g}"
        else:
            apart = share(row["hot_edge"] == 0 for row in draws)
            derived = f"means differ by {BITS['float32']} bits, so that no head is too hot, in {apart} draws"
        said.append(
            f"{n} of {levels} {spacing} levels: the derived cold edge is {ratios} times the coldest power of two "
            f"that float32 tells apart; {derived}."
        )
    return said


def _describe_meetings(rows: list[Row]) -> list[str]:
    """What happens between the edges, where no bound is derived."""
    said = []
    for (levels, n, spacing), some in _by_size(rows, "window").items():
        meet = interval_of(_drawn(some), lambda row: row["meet"] / row["pairs"])
        told = interval_of(_drawn(some), "told_between")
        said.append(
            f"{n} of {levels} {spacing} levels: {meet} of the pairs of sets change order between the edges, so "
            f"that they meet at some temperature; float32 tells all sets apart at {told} of those between."
        )
    return said


def _trained(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["part"] == "trained" and "start" in row and "path" in row]


def _temperatures(levels: int, n: int, spacing: str, some: list[Row]) -> str:
    some, ranges = _tried(some), []
    bits = interval_by_group(some, "beta", "bits")
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


def _drawn(window: list[Row]) -> list[Row]:
    """The rows of draws."""
    return [row for row in window if row["draw"] is not None]


def _tried(window: list[Row]) -> list[Row]:
    """The rows of temperatures."""
    return [row for row in window if row["beta"] is not None]


def _by_size(rows: list[Row], part: str) -> dict[tuple[int, int, str], list[Row]]:
    sizes: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        if row["part"] == part:
            sizes.setdefault((row["levels"], row["n"], row["spacing"]), []).append(row)
    return sizes
