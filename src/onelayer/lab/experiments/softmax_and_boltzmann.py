"""The Boltzmann operator over temperatures: where it tells sets apart, and where it has become a maximum."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.constructions.contexts.boltzmann import boltzmann
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import grouped

QUESTION = "At which temperatures does one softmax head tell sets of tokens apart?"
HYPOTHESES = (
    "Lemma 1 asks for entries 2 log n + 3 apart and promises a gap of (log n)^2 e^(-2r), far below what happens.",
    "Too hot, the operator is a mean and sets with equal means meet; too cold, it is a maximum and all sets with "
    "the same largest entry meet (hardmax): ids separate only in a window between.",
)
EXTRAS: tuple[str, ...] = ()
#: Fewest bits by which the nearest ids differ, relative to their spread, for float32 to tell them apart.
FLOAT32_BITS = 22


def cases(preset: Preset) -> list[Case]:
    betas = np.geomspace(2.0**-6, 2.0**10, 17 if preset == "quick" else 33)
    return [
        {"levels": levels, "n": n, "beta": float(beta)}
        for levels, n in ([(12, 3)] if preset == "quick" else [(12, 3), (12, 6), (24, 3)])
        for beta in betas
    ]


def run(case: Case, seed: int) -> list[Row]:
    """Gaps between the values of all sets of n of some levels in [0, 1], drawn at random."""
    rng = np.random.default_rng([seed, case["levels"], case["n"]])
    levels = np.sort(rng.random(case["levels"]))
    sets = np.array(list(combinations(range(case["levels"]), case["n"])))
    beta = case["beta"]
    values = np.sort([boltzmann(beta * levels[one]) / beta for one in sets])
    gaps = np.diff(values)
    smallest, spread = float(gaps.min()), float(np.ptp(values))
    r = beta * float(np.abs(levels).max())
    log_n = float(np.log(case["n"]))
    lemma = log_n**2 * np.exp(-2 * r) / beta if 2 * r < 700 else 0.0
    return [
        {
            "sets": len(sets),
            "gap": smallest,
            "bits": float(np.log2(spread / smallest)) if smallest > 0 else None,
            "met": int((gaps == 0).sum()),
            "lemma_gap": float(lemma),
            "lemma_applies": bool(beta * np.diff(levels).min() > 2 * log_n + 3),
        }
    ]


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for (levels, n), some in _by_size(rows).items():
        line(left, grouped(some, "beta", "bits"), f"sets of {n} of {levels}")
        right.plot(
            *zip(*[(beta, met.mean) for beta, met in grouped(some, "beta", "met").items()], strict=True), marker="o"
        )
    left.axhline(FLOAT32_BITS, color="grey", linestyle="--", label="float32")
    left.set(xscale="log", xlabel="inverse temperature", ylabel="bits that tell the nearest two sets apart")
    right.set(xscale="log", xlabel="inverse temperature", ylabel="neighbouring ids that are equal in float64")
    left.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings = []
    for (levels, n), some in _by_size(rows).items():
        bits = grouped(some, "beta", "bits")
        best = min(bits, key=lambda beta: bits[beta].mean)
        window = [beta for beta, found in bits.items() if found.mean <= FLOAT32_BITS]
        met = grouped(some, "beta", "met")
        first = next((beta for beta, found in met.items() if found.mean > 0), None)
        between = f"from {min(window):.3g} to {max(window):.3g}" if window else "nowhere"
        equal = "nowhere" if first is None else f"from {first:.3g} on"
        findings.append(
            f"{n} of {levels} levels in [0, 1]: fewest bits {bits[best]} at inverse temperature {best:.3g}; "
            f"float32 is enough {between}; ids become equal in float64 {equal}."
        )
    gained = [row["gap"] / row["lemma_gap"] for row in rows if row["lemma_applies"] and row["lemma_gap"] > 0]
    if gained:
        findings.append(
            f"Where Lemma 1 applies ({len(gained)} rows) the measured gap is at least {min(gained):.3g} times its "
            "bound."
        )
    says = "Only in a window: hot heads average, cold heads are maxima, and both forget which set they saw."
    return Verdict("partly", says, tuple(findings))


def _by_size(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    sizes: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        sizes.setdefault((row["levels"], row["n"]), []).append(row)
    return sizes
