"""Compiled networks as sequences, one token a tensor: what can one layer read off them?

With a constant query a layer of linear attention is a linear map of the second moments of the tokens, so that it is
fitted by one regularised solve; beside it a ridge on summed tokens, which a single mean would see, forests of trees
on the features of both, and two layers that are trained on the same tokens: softmax attention, and attention along
the path of tensors (`graph_twins`). Times are not asked for: the same case and seed would not give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import MissingExtraError
from onelayer.lab import graph_twins
from onelayer.lab.drawn import choose_ridge, draw_network, fit_ridge, standards, survives
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import Interval, Paired, interval_of, paired
from onelayer.measure.encoding import COMPONENTS, encode
from onelayer.measure.hints import READ, second_moments
from onelayer.network.forward import forward
from onelayer.network.weights import Attention, Embedding, Linear, Transformer

Array = NDArray[Any]
#: Of what is known of all networks, and which of them are seen, what the others are said to have.
Predict = Callable[[Array, Array], Array]

QUESTION = "Can one layer of linear attention read a network's size and its survival in float16 off its tensors?"
HYPOTHESES = (
    "The number of parameters is a sum over tokens: one head counts it exactly where it is given sizes, and "
    "predicts it from the logarithms of axes better than a map of their sum.",
    "Whether answers survive in float16 is written in the largest and smallest weights.",
    "Trees on the same features foretell float16 no worse; the number of parameters, a sum, is the layer's.",
    "A trained layer, of softmax attention or along the graph, is no better than the one that one solve fits.",
    "What was learned of some readouts says less of a kind that was not among them.",
)
EXTRAS = ("sklearn", "torch")
#: Who reads, and of which features.
READERS = ("attention", "sum", "trees of attention", "trees of sum", "trained softmax", "trained graph")
#: The layers that are trained, and who attends to whom in them.
TWINS: dict[str, graph_twins.Way] = {"trained softmax": "softmax", "trained graph": "graph"}
TREES = 300
#: A kind of readout that a second fit has not seen, and how many networks a fit and a question take.
UNSEEN, FEWEST = "table", 4


def cases(preset: Preset) -> list[Case]:
    return [{"networks": 60 if preset == "quick" else 240}]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 23])
    tokens: list[Array] = []
    sizes, alive, families, refused, exact = [], [], [], 0, True
    counting = counting_layer()
    while len(tokens) < case["networks"]:
        made = draw_network(rng)
        if made is None:
            refused += 1
            continue
        model, X, Y = made
        tokens.append(encode(model))
        exact = exact and bool((forward(counting, tokens[-1][None]) == model.n_parameters).all())
        sizes.append(np.log2(model.n_parameters))
        alive.append(survives(model, X, Y))
        families.append(model.ledger["readout"])
    summed = np.stack([t[:, READ].sum(axis=0) for t in tokens])
    moments = np.stack([second_moments(t) for t in tokens])
    size, lives, place = np.array(sizes), np.array(alive, float), np.arange(len(sizes))
    splits = {"": place < len(size) // 2, "unseen_": np.array(families) != UNSEEN}
    rows = []
    for how in READERS:
        predict, chosen = _reader(how, tokens, moments if "attention" in how else summed, seed)
        row: Row = {"how": how, "exact": int(exact), "survive": float(lives.mean()), "refused": refused}
        for name, seen in splits.items():
            judged = _judge(predict, size, lives, seen)
            row |= {f"{name}{what}": value for what, value in judged.items()}
        rows.append(row | _ends(chosen))
    return rows


def counting_layer() -> Transformer:
    """One head of linear attention with query and key 1 and the value `size`: it adds up sizes, at every token."""
    d = len(COMPONENTS)
    one, size = (np.eye(d + 1)[:, [COMPONENTS.index(name)]] for name in ("one", "size"))
    last = np.eye(d + 1)[:, [d]]  # a channel of its own for the sum
    attention = Attention(one[None], one[None], size[None], last.T[None].copy(), kind="linear")
    return Transformer(attention, Embedding(lift=np.eye(d, d + 1)), readout=(Linear(last, np.zeros(1)),))


def _reader(how: str, tokens: list[Array], features: Array, seed: int) -> tuple[Predict, list[graph_twins.Chosen]]:
    """A way to predict, and a list that training adds to."""
    chosen: list[graph_twins.Chosen] = []
    if how not in TWINS:
        by = _by_trees if "trees" in how else _by_ridge
        return lambda wanted, seen: by(features, wanted, seen, seed), chosen

    def train(wanted: Array, seen: Array) -> Array:
        said, found = graph_twins.foretell(TWINS[how], tokens, READ, wanted, seen, seed)
        chosen.append(found)
        return said

    return train, chosen


def _ends(chosen: list[graph_twins.Chosen]) -> Row:
    """The steps of all trainings of a reader, how many they were, and how many the budget of steps ended."""
    if not chosen:
        return dict.fromkeys(("trainings", "taken", "cut"))
    cut = sum(found.ended_by == "budget" for found in chosen)
    return {"trainings": len(chosen), "taken": sum(found.steps for found in chosen), "cut": cut}


def _judge(predict: Predict, size: Array, lives: Array, seen: Array) -> dict[str, float | None]:
    """How good a fit to the networks that are seen is about the others; unknown if there are too few of either."""
    names = ("relative_error", "mean_error", "within_tenth", "float16_right", "float16_usual")
    if seen.sum() < FEWEST or (~seen).sum() < FEWEST:
        return dict.fromkeys(names)
    off = np.abs(2 ** (predict(size, seen) - size[~seen]) - 1)
    right = (predict(lives, seen) > 0.5) == lives[~seen]
    usual = lives[~seen] == (lives[seen].mean() > 0.5)
    found = (np.median(off), off.mean(), (off <= 0.1).mean(), right.mean(), usual.mean())
    return dict(zip(names, map(float, found), strict=True))


def _by_trees(features: Array, wanted: Array, seen: Array, seed: int) -> Array:
    """What trees that were grown on the networks that are seen say of the others."""
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError:
        raise MissingExtraError("Trees", "scikit-learn", "sklearn") from None
    grown = RandomForestRegressor(TREES, random_state=seed, n_jobs=1).fit(features[seen], wanted[seen])
    return np.asarray(grown.predict(features[~seen]))


def _by_ridge(features: Array, wanted: Array, seen: Array, _: int) -> Array:
    """What a ridge fitted to the networks that are seen, its strength chosen among them, says of the others."""
    mean, spread = standards(features[seen])
    A, known = (features - mean) / spread, wanted[seen]
    weights, offset = fit_ridge(A[seen], known, choose_ridge(A[seen], known))
    return np.clip(A[~seen] @ weights + offset, known.min(), known.max())  # nothing beyond what was seen


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=11)
    for i, how in enumerate(READERS):
        some = [row for row in rows if row["how"] == how]
        left.scatter(_beside(i, some), [row["relative_error"] for row in some])
        right.scatter(_beside(i, some), [row["float16_right"] for row in some])
    usual = [row for row in rows if row["how"] == "sum"]  # the same for all
    right.scatter(_beside(len(READERS), usual), [row["float16_usual"] for row in usual])
    left.set(ylabel="median relative error of the number of parameters", ylim=(0, None))
    right.set(ylabel="share of right answers about float16", ylim=(0, 1.03))
    named = [how.replace(" of ", "\nof ").replace("trained ", "trained\n") for how in READERS]
    left.set_xticks(range(len(READERS)), named)
    right.set_xticks(range(len(READERS) + 1), [*named, "the usual\nanswer"])
    return made


def _beside(place: int, some: list[Row]) -> list[float]:
    """A place for each seed, the same in every column."""
    return [place + 0.03 * (row["seed"] - len(some) / 2) for row in some]


def verdict(rows: list[Row]) -> Verdict:
    by = {how: [row for row in rows if row["how"] == how] for how in READERS}
    if not (by["attention"] and by["sum"]):
        return Verdict("open", "There are not both ways of reading.", ())

    def of(how: str, value: str) -> dict[int, Any]:
        return {row["seed"]: row[value] for row in by[how]}

    def mean(how: str, value: str) -> Interval:
        return interval_of(by[how], value)

    def against(split: str) -> tuple[Paired, Paired]:
        """Errors of sizes over those of summed tokens; right answers about float16 less those of the usual one."""
        error, right = f"{split}relative_error", f"{split}float16_right"
        lives = paired(of("attention", right), of("attention", f"{split}float16_usual"))
        return paired(of("attention", error), of("sum", error), ratio=True), lives

    (size, lives), (new_size, new_lives) = against(""), against("unseen_")
    findings = (
        "Number of parameters, given sizes: one head of linear attention, evaluated as a network, gives it exactly "
        f"in {'all' if all(row['exact'] for row in rows) else 'not all'} networks.",
        f"Number of parameters from axes, median relative error: {mean('attention', 'relative_error')}; of summed "
        f"tokens {mean('sum', 'relative_error')}; one over the other, seed by seed: {size}.",
        f"Survival in float16 (share {mean('sum', 'survive')}): right {mean('attention', 'float16_right')}, of "
        f"summed tokens {mean('sum', 'float16_right')}, always the usual answer "
        f"{mean('sum', 'float16_usual')}; seed by seed {_more(lives)} than the usual answer.",
        f"Readouts of a kind that was not fitted to ({UNSEEN}): size off by "
        f"{mean('attention', 'unseen_relative_error')}, of summed tokens {mean('sum', 'unseen_relative_error')}; "
        f"one over the other, seed by seed: {new_size}; float16 right "
        f"{mean('attention', 'unseen_float16_right')}, of summed tokens {mean('sum', 'unseen_float16_right')}, "
        f"seed by seed {_more(new_lives)} than the usual answer of the others.",
        *(f"{how}: {_listed(some)}." for how, some in by.items() if some),
        *(_beside_fitted(how, some, by["attention"]) for how, some in by.items() if how in TWINS and some),
        f"{sum(row['refused'] for row in by['sum'])} data sets were refused by the compiler and drawn again.",
    )
    says = (
        f"Of kinds of readouts that were fitted to, sizes are off by {mean('attention', 'relative_error')}, {size} "
        f"times as far as of summed tokens; float16 foretold in {mean('attention', 'float16_right')} "
        f"({mean('sum', 'float16_usual')} by the usual answer).{_of_unseen(by)}"
    )
    good, bad = (size.below, lives.above), (size.above, lives.below)
    answer: Any = "yes" if all(good) else "partly" if any(good) else "no" if all(bad) else "open"
    return Verdict(answer, says, findings)


def _listed(some: list[Row]) -> str:
    """The table of one reader: means over seeds."""
    size, tenth, right = (interval_of(some, value) for value in ("mean_error", "within_tenth", "float16_right"))
    return f"mean relative error of sizes {size}, within a tenth {tenth}; float16 right {right}"


def _of_unseen(by: dict[str, list[Row]]) -> str:
    """Whether the fitted layer knows a kind that it was not fitted to, and who is clearly nearer there."""
    off, right, usual = (
        interval_of(by["attention"], f"unseen_{value}")
        for value in ("relative_error", "float16_right", "float16_usual")
    )
    if not off.count:
        return ""
    errors = {how: _against(by[how], by["attention"], "unseen_mean_error", ratio=True) for how in TWINS if by[how]}
    nearer = [f"of {how} {error}" for how, error in errors.items() if error.below]
    told = f"; mean errors of trained layers are clearly smaller there, {' and '.join(nearer)} times as large"
    return (
        f" Of a kind that was not ({UNSEEN}), sizes are off by {off}; float16 foretold in {right} ({usual} by the "
        f"usual answer){told if nearer else ''}."
    )


def _against(some: list[Row], fitted: list[Row], value: str, ratio: bool = False) -> Paired:
    """A value of one reader against that of the fitted layer, seed by seed."""
    first, second = ({row["seed"]: row[value] for row in rows} for rows in (some, fitted))
    return paired(first, second, ratio)


def _more(difference: Paired) -> str:
    """How much more, or less where it is below zero."""
    found = difference.found
    if found.mean < 0:
        return f"{replace(difference, found=replace(found, mean=-found.mean))} less"
    return f"{difference} more"


def _beside_fitted(how: str, some: list[Row], fitted: list[Row]) -> str:
    """A trained layer against the fitted one, seed by seed, and how its trainings ended."""
    error, right = (
        [_against(some, fitted, f"{split}{value}", ratio) for split in ("", "unseen_")]
        for value, ratio in (("mean_error", True), ("float16_right", False))
    )
    tenth = _against(some, fitted, "within_tenth")
    trainings, cut = (sum(row[name] for row in some) for name in ("trainings", "cut"))
    return (
        f"{how} against the fitted layer, seed by seed: mean relative error of sizes {error[0]} times as large, "
        f"within a tenth {_more(tenth)}, float16 {_more(right[0])} right; of a kind that was not fitted to "
        f"{error[1]} times and {_more(right[1])}. The error on networks that judge stopped falling in "
        f"{trainings - cut} of {trainings} trainings."
    )
