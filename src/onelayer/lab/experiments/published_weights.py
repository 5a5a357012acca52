"""The constants of Theorem 2 as they are published, in bits, beside a head whose constants are searched."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.planning import plan
from onelayer.contexts import published, rank_one
from onelayer.errors import HypothesisError
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import doublings, factor_line, figure, line
from onelayer.lab.random_points import bits_of_nearest
from onelayer.lab.statistics import exponent, factors, geometric, interval_by_group, steepness

QUESTION = "Can a floating-point format hold the weights of the published theorem?"
HYPOTHESES = (
    "Theorem 2's exponent is (|V|+1)^4 (2 log n + 3) pi d r_max^2/(4 eps r_min): its bits grow with the fourth "
    "power of the vocabulary, and linearly in d, in log n and in r_max/eps.",
    "A head whose temperature and direction are searched has M contexts about as far apart as M random points in s "
    "dimensions, 2 log2(M)/s bits and a constant for rank s, whatever the vocabulary.",
)
EARLIER = Earlier(
    "no, as now",
    "The bits of the published constants changed with the number of components by a power whose sign was that of "
    "the draws: tokens of more components lie farther apart.",
    "powers are stated with r_max/eps and r_max/r_min divided out, and what the draws give stands behind them.",
)
EXTRAS: tuple[str, ...] = ("exact",)
BASE: Case = {"vocabulary": 24, "n": 3, "d": 4, "ratio": 0, "sequences": 128, "rank": 1}
QUICK = {
    "vocabulary": (6, 12, 24, 48, 96, 192),
    "n": (2, 3, 4, 6, 8, 12),
    "d": (1, 2, 4, 8, 16, 32),
    "ratio": (32, 128, 512, 2048, 8192, 32768),
    "sequences": (16, 64, 256, 1024),
    "rank": (1, 2, 3, 4, 6),
    "literal": (3, 4),
}
FULL = {
    **QUICK,
    "vocabulary": (6, 12, 24, 48, 96, 192, 384, 768),
    "n": (2, 3, 4, 6, 8, 12, 16, 20),
    "d": (1, 2, 4, 8, 16, 32, 64, 128),
    "sequences": (16, 64, 256, 1024, 4096, 16384),
    "literal": (3, 4, 5, 6),
}
#: What a float64 has.
FLOAT64_BITS = 53
CLASSES = 16
#: Sets drawn for each that is wanted, at most: few tokens do not have as many.
TRIES = 8


def cases(preset: Preset) -> list[Case]:
    found = []
    for axis, values in (QUICK if preset == "quick" else FULL).items():
        for value in values:
            if axis == "literal":  # small enough to be run as written
                found.append({"axis": axis, **BASE, "vocabulary": value, "n": 2, "d": 2})
            elif axis == "rank":
                found.append({"axis": axis, **BASE, "sequences": 1024, "rank": value})
            else:
                found.append({"axis": axis, **BASE, axis: value})
    return found


def run(case: Case, seed: int) -> list[Row]:
    X, Y = _data(case, np.random.default_rng([seed, *(int(v) for k, v in case.items() if k != "axis")]))
    s = published.hypotheses(X)
    row: Row = {
        "r_max_over_eps": s.r_max / s.eps,
        "r_max_over_r_min": s.r_max / s.r_min,
        "published_bits": float(published.bits_needed(s)),
    }
    try:
        _, k = rank_one.choose_direction(X, seed, None, spare_channel=False)
        row["theorem_k_bits"] = math.ceil(math.log2(k.r) - k.log10_delta * math.log2(10)) + 3.0
    except HypothesisError:
        row["theorem_k_bits"] = None
    found = plan(X, Y, dtype="float64", mapping="temperature", rank=case["rank"], seed=seed)
    row |= {"contexts": found.distinct, "searched_bits": found.bits_needed if found.possible else None}
    row["literal_bits"] = None
    if case["axis"] == "literal":
        ran = published.run(X, seed=seed)
        row["literal_bits"] = math.log2(ran.r) - ran.log10_gap_lower * math.log2(10) + 3
    return [row]


def _data(case: Case, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Different sets of n normal tokens; a ratio above 0 moves one so close to another that r_max/eps is it."""
    V, n, N = case["vocabulary"], case["n"], case["sequences"]
    tokens = rng.normal(size=(V, case["d"]))
    if case["ratio"]:
        step = rng.normal(size=case["d"])
        reach = float(np.linalg.norm(tokens, axis=1).max())
        tokens[1] = tokens[0] + step / np.linalg.norm(step) * reach / case["ratio"]
    shuffled = rng.permutation(V)
    shuffled = np.concatenate([shuffled, shuffled[: -V % n]]).reshape(-1, n)  # every token stands in some set
    drawn = {tuple(sorted(some)) for some in shuffled.tolist()}
    for _ in range(TRIES * N):
        if len(drawn) >= N:
            break
        drawn.add(tuple(sorted(np.asarray(rng.choice(V, n, replace=False)).tolist())))
    sets = rng.permutation(np.array(sorted(drawn)))
    return tokens[sets], rng.integers(0, CLASSES, sets.shape)


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right) = figure(columns=2, width=10, panels=3)
    some = _along(rows, "vocabulary")
    factor_line(left, factors(some, "vocabulary", "published_bits"), "Theorem 2, published constants")
    factor_line(left, factors(some, "vocabulary", "theorem_k_bits"), "Theorem K, constants of the data")
    factor_line(left, factors(some, "vocabulary", "searched_bits"), "searched head")
    left.axhline(FLOAT64_BITS, color="grey", linestyle="--", label="float64")
    doublings(left)
    left.set(yscale="log", xlabel="different tokens |V|", ylabel="bits needed")
    left.legend(fontsize="small")
    for axis in ("n", "d", "ratio"):
        bits = factors(_along(rows, axis), axis, "published_bits")
        first = next(iter(bits.values())).mean if bits else 1.0
        x0 = next(iter(bits), 1)
        middle.plot(
            [x / x0 for x in bits],
            [b.mean / first for b in bits.values()],
            marker="o",
            label=axis.replace("ratio", "r_max/eps"),
        )
    middle.set(xscale="log", yscale="log", xlabel="times the smallest n, d or r_max/eps", ylabel="times the bits")
    middle.legend(title="published bits against", fontsize="small")
    per_rank = interval_by_group(_along(rows, "rank"), "rank", "searched_bits")
    line(right, per_rank, "searched head")
    log_contexts = _doublings(rows)
    right.plot(
        list(per_rank), [_random(log_contexts, s) for s in per_rank], "--", color="grey", label="normal points"
    )
    right.set(
        xlabel="rank s of the head", ylabel=f"bits needed for {2**log_contexts:,.0f} contexts", ylim=(0, None)
    )
    right.legend(fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    least = min(row["published_bits"] for row in rows)
    findings = [_growth(rows, "vocabulary", "|V|", "|V|+1"), _growth(rows, "ratio", "r_max/eps")]
    findings += [_growth(rows, "d", "d"), _growth(rows, "n", "n")]
    findings += _laws(rows)
    ran = [row for row in rows if row["literal_bits"] is not None]
    if ran:
        share = geometric(row["published_bits"] / row["literal_bits"] for row in ran)
        against = geometric(row["literal_bits"] / row["searched_bits"] for row in ran if row["searched_bits"])
        findings.append(
            f"Run as written in ball arithmetic ({len(ran)} sets of {_range(ran, 'vocabulary', int)} tokens in the "
            f"plane) the published weights have gaps that need {share} times fewer bits than promised, and still "
            f"{against} times as many as the searched head."
        )
    both = [row for row in rows if row["theorem_k_bits"] and row["searched_bits"]]
    fits = sum(row["theorem_k_bits"] <= FLOAT64_BITS for row in both)
    findings.append(
        f"Theorem K (constants of the data) asks for {geometric(r['theorem_k_bits'] for r in both)} bits; its "
        f"promise fits in float64 in {fits} of {len(both)} data sets."
    )
    says = (
        f"Not one of {len(rows)} data sets: the published constants ask for {least:,.0f} bits or more, a searched "
        f"head for {_range(rows, 'searched_bits', float)}."
    )
    return Verdict("no" if least > FLOAT64_BITS else "partly", says, tuple(findings))


def _growth(rows: list[Row], axis: str, name: str, base: str = "") -> str:
    """How both grow along an axis."""
    some = _along(rows, axis)
    bits = interval_by_group(some, axis, "published_bits")
    searched = [row for row in some if row["searched_bits"] is not None]
    per_doubling = steepness((math.log2(row[axis]) for row in searched), (row["searched_bits"] for row in searched))
    x, y = [row[axis] + (axis == "vocabulary") for row in some], [row["published_bits"] for row in some]
    fixed = [row["published_bits"] / (row["r_max_over_eps"] * row["r_max_over_r_min"]) for row in some]
    power = f"the power {exponent(x, y)} of {base or name}"
    if axis != "ratio":
        power = (
            f"the power {exponent(x, fixed)} of {base or name} with r_max/eps and r_max/r_min divided out "
            f"({exponent(x, y)} as drawn)"
        )
    first, last = min(bits), max(bits)
    return (
        f"{name} from {first} to {last}: published {bits[first].mean:.3g} to {bits[last].mean:.3g} bits, growing "
        f"with {power}; searched head {per_doubling} bits per doubling."
    )


def _laws(rows: list[Row]) -> list[str]:
    """Bits of the searched head against contexts, and against its rank."""
    some = [row for row in _along(rows, "sequences") if row["searched_bits"] is not None]
    found = steepness((math.log2(row["contexts"]) for row in some), (row["searched_bits"] for row in some))
    bits = interval_by_group(_along(rows, "rank"), "rank", "searched_bits")
    listed = "; ".join(
        f"rank {rank}: {b}, normal points {_random(_doublings(rows), rank):.1f}" for rank, b in bits.items()
    )
    return [
        f"Bits per context: with rank 1 the searched head needs {found} bits more each time the contexts double, "
        f"from {_range(some, 'contexts', int)} of them; random points on a line need 2.",
        f"Bits per rank, {2 ** _doublings(rows):,.0f} contexts: {listed}. Of rank 2 and more "
        "these are bits of boxes, found by halving, not of the nearest pair, which the experiment rank measures.",
    ]


def _random(log_contexts: float, rank: int) -> float:
    """log2(4 span/gap), as bits are counted here, of as many normal points: their mean over draws, and a span that
    the largest of them exceeds in either direction in half of the draws."""
    if not log_contexts:
        return 2.0
    span = 2 * NormalDist().inv_cdf(0.5 ** (2.0**-log_contexts))
    return 2 + math.log2(span) + bits_of_nearest(2.0**log_contexts, rank)


def _doublings(rows: list[Row]) -> float:
    """log2 of the contexts of the models whose rank varies."""
    return float(np.mean([math.log2(row["contexts"]) for row in _along(rows, "rank") if row["contexts"]] or [0.0]))


def _along(rows: list[Row], axis: str) -> list[Row]:
    return [row for row in rows if row["axis"] == axis]


def _range(rows: list[Row], name: str, kind: Callable[[Any], Any]) -> str:
    values = [kind(row[name]) for row in rows if row[name] is not None]
    if values and isinstance(values[0], int):
        return f"{min(values):,} to {max(values):,}"
    return f"{min(values):.3g} to {max(values):.3g}" if values else "none"
