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
    "What was learned of some readouts says less of a kind that was not among them.",
)
EXTRAS: tuple[str, ...] = ()
#: A kind of readout that a second fit has not seen, and how many networks a fit and a question take.
UNSEEN, FEWEST = "table", 4


def cases(preset: Preset) -> list[Case]:
    return [{"networks": 60 if preset == "quick" else 240}]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 23])
    tokens: list[Array] = []
    sizes, alive, families, refused = [], [], [], 0
    while len(tokens) < case["networks"]:
        made = draw_network(rng)
        if made is None:
            refused += 1
            continue
        model, X, Y = made
        tokens.append(encode(model))
        sizes.append(np.log2(model.n_parameters))
        alive.append(survives(model, X, Y))
        families.append(model.ledger["readout"])
    exact = all(t[:, COMPONENTS.index("size")].sum() == round(2**s) for t, s in zip(tokens, sizes, strict=True))
    summed = np.stack([t[:, READ].sum(axis=0) for t in tokens])
    moments = np.stack([second_moments(t) for t in tokens])
    size, lives, place = np.array(sizes), np.array(alive, float), np.arange(len(sizes))
    splits = {"": place < len(size) // 2, "unseen_": np.array(families) != UNSEEN}
    rows = []
    for how, features in (("attention", moments), ("sum", summed)):
        row: Row = {"how": how, "exact": int(exact), "survive": float(lives.mean()), "refused": refused}
        for name, seen in splits.items():
            row |= {f"{name}{what}": value for what, value in _judge(features, size, lives, seen).items()}
        rows.append(row)
    return rows


def _judge(features: Array, size: Array, lives: Array, seen: Array) -> dict[str, float | None]:
    """How good a fit to the networks that are seen is about the others; unknown if there are too few of either."""
    if seen.sum() < FEWEST or (~seen).sum() < FEWEST:
        return dict.fromkeys(("relative_error", "float16_right", "float16_usual"))
    off = np.abs(2 ** (_predict(features, size, seen) - size[~seen]) - 1)
    right = (_predict(features, lives, seen) > 0.5) == lives[~seen]
    usual = lives[~seen] == (lives[seen].mean() > 0.5)
    names = ("relative_error", "float16_right", "float16_usual")
    return dict(zip(names, (float(np.median(off)), float(right.mean()), float(usual.mean())), strict=True))


def _predict(features: Array, wanted: Array, seen: Array) -> Array:
    """What a ridge fitted to the networks that are seen, its strength chosen among them, says of the others."""
    mean, spread = standards(features[seen])
    A, known = (features - mean) / spread, wanted[seen]
    weights, offset = fit_ridge(A[seen], known, choose_ridge(A[seen], known))
    return np.clip(A[~seen] @ weights + offset, known.min(), known.max())  # nothing beyond what was seen


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
        f"Readouts of a kind that was not fitted to ({UNSEEN}): size off by "
        f"{interval(row['unseen_relative_error'] for row in by['attention'])}, of summed tokens "
        f"{interval(row['unseen_relative_error'] for row in by['sum'])}; float16 right "
        f"{interval(row['unseen_float16_right'] for row in by['attention'])}, of summed tokens "
        f"{interval(row['unseen_float16_right'] for row in by['sum'])}, the usual answer of the others "
        f"{interval(row['unseen_float16_usual'] for row in by['sum'])}.",
        f"{sum(row['refused'] for row in by['sum'])} data sets were refused by the compiler and drawn again.",
    )
    told = f"float16 foretold in {right['attention']} ({usual} by the usual answer)"
    says = f"Sizes are off by {error['attention']}; {told}."
    good = (size.below, lives.above)
    return Verdict("yes" if all(good) else "partly" if any(good) else "no", says, findings)
