"""Compiled networks as sequences, one token a tensor: what can one layer read off them?

With a constant query a layer of linear attention is a linear map of the second moments of the tokens, so that it is
fitted by one regularised solve; beside it a ridge on summed tokens, which a single mean would see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.drawn import choose_ridge, draw_network, fit_ridge, standards, survives
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import interval, paired
from onelayer.measure.encoding import COMPONENTS, encode
from onelayer.measure.hints import READ, second_moments

Array = NDArray[Any]

QUESTION = "Can one layer of linear attention read a network's size and its survival in float16 off its tensors?"
HYPOTHESES = (
    "The number of parameters is a sum over tokens: one head counts it exactly where it is given sizes, and "
    "predicts it from the logarithms of axes better than a map of their sum.",
    "Whether answers survive in float16 is written in the largest and smallest weights.",
)
EXTRAS: tuple[str, ...] = ()


def cases(preset: Preset) -> list[Case]:
    return [{"networks": 60 if preset == "quick" else 240}]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 23])
    tokens: list[Array] = []
    sizes, alive, refused = [], [], 0
    while len(tokens) < case["networks"]:
        made = draw_network(rng)
        if made is None:
            refused += 1
            continue
        model, X, Y = made
        tokens.append(encode(model))
        sizes.append(np.log2(model.n_parameters))
        alive.append(survives(model, X, Y))
    exact = all(t[:, COMPONENTS.index("size")].sum() == round(2**s) for t, s in zip(tokens, sizes, strict=True))
    summed = np.stack([t[:, READ].sum(axis=0) for t in tokens])
    moments = np.stack([second_moments(t) for t in tokens])
    rows = []
    for how, features in (("attention", moments), ("sum", summed)):
        size, lives = _predict(features, np.array(sizes)), _predict(features, np.array(alive, float))
        half = len(sizes) // 2
        off = np.abs(2 ** (size - np.array(sizes[half:])) - 1)
        right = float(np.mean((lives > 0.5) == np.array(alive[half:])))
        usual = float(np.mean(np.array(alive[half:]) == (np.mean(alive[:half]) > 0.5)))
        said = {"relative_error": float(np.median(off)), "float16_right": right, "float16_usual": usual}
        rows.append({"how": how, **said, "exact": int(exact), "survive": float(np.mean(alive)), "refused": refused})
    return rows


def _predict(features: Array, wanted: Array) -> Array:
    """Ridge fitted on the first half, its strength chosen inside it, asked for the second."""
    half = len(wanted) // 2
    mean, spread = standards(features[:half])
    A, seen = (features - mean) / spread, wanted[:half]
    weights, offset = fit_ridge(A[:half], seen, choose_ridge(A[:half], seen))
    return np.clip(A[half:] @ weights + offset, seen.min(), seen.max())  # nothing beyond what was seen


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=9)
    for i, how in enumerate(("attention", "sum")):
        some = [row for row in rows if row["how"] == how]
        left.scatter([i] * len(some), [row["relative_error"] for row in some])
        right.scatter([i] * len(some), [row["float16_right"] for row in some])
    right.scatter([2] * len(rows), [row["float16_usual"] for row in rows])
    left.set(ylabel="median relative error of the number of parameters", ylim=(0, None))
    right.set(ylabel="share of right answers about float16", ylim=(0, 1.03))
    left.set_xticks([0, 1], ["attention", "sum"])
    right.set_xticks([0, 1, 2], ["attention", "sum", "the usual answer"])
    return made


def verdict(rows: list[Row]) -> Verdict:
    by = {how: [row for row in rows if row["how"] == how] for how in ("attention", "sum")}
    if not all(by.values()):
        return Verdict("open", "There are not both ways of reading.", ())
    error = {how: interval(row["relative_error"] for row in some) for how, some in by.items()}
    right = {how: interval(row["float16_right"] for row in some) for how, some in by.items()}
    usual = interval(row["float16_usual"] for row in by["sum"])

    def of(how: str, value: str) -> dict[int, float]:
        return {row["seed"]: row[value] for row in by[how]}

    size = paired(of("attention", "relative_error"), of("sum", "relative_error"), ratio=True)
    lives = paired(of("attention", "float16_right"), of("attention", "float16_usual"))
    findings = (
        f"Number of parameters, given sizes: exact in all networks: {all(row['exact'] for row in rows)}.",
        f"Number of parameters from axes, median relative error: {error['attention']}; of summed tokens "
        f"{error['sum']}; one over the other, seed by seed: {size}.",
        f"Survival in float16 (share {interval(row['survive'] for row in by['sum'])}): right "
        f"{right['attention']}, of summed tokens {right['sum']}, always the usual answer {usual}.",
        f"{sum(row['refused'] for row in by['sum'])} data sets were refused by the compiler and drawn again.",
    )
    told = f"float16 foretold in {right['attention']} ({usual} by the usual answer)"
    says = f"Sizes are off by {error['attention']}; {told}."
    good = (size.below, lives.above)
    return Verdict("yes" if all(good) else "partly" if any(good) else "no", says, findings)
