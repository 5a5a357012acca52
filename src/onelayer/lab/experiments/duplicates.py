"""Repeated tokens, and sequences that are almost equal: what published assumptions forbid, and what they cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.errors import HypothesisError
from onelayer.lab.endings import still_learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group, steepness, tally
from onelayer.measure.recall import recall_answers

Array = NDArray[Any]

QUESTION = "Does one layer need tokens that do not repeat within a sequence?"
HYPOTHESES = (
    "Theorem 2 and Theorem K exclude a token that stands twice in a sequence; softmax sees multiplicities up to a "
    "common factor (Lemma D), so that a searched head does not mind.",
    "Two sequences at a distance t cost a searched head log2(1/t) bits; sums of whole-number codes do not see t.",
    "A trained layer does not mind repetitions; it loses similar sequences long before float32 makes them equal.",
)
EARLIER = Earlier(
    "of three seeds",
    "A trained layer kept 59% of the answers of sequences 0.01 apart; sums of whole-number codes kept all.",
    "what is said of repetitions rests on constructions, whose ruler is the same. Twins were cut at 800 steps, the "
    "rate decayed to 0 there and chosen after 80; now they are trained until their loss stops falling.",
)
EXTRAS = ("torch",)
MAPPINGS = ("published", "rank_one", "temperature", "shared_query", "averages", "lattice")
#: Mappings whose statements assume that no token repeats.
STRICT = ("published", "rank_one")
DTYPES = ("float32", "float64")
N, VOCABULARY, LENGTH, WIDTH, CLASSES = 40, 30, 10, 4, 8
#: Few tokens in short sequences: what Theorem K can do at all.
SMALL = {"n": 3, "vocabulary": 5, "sequences": 8}
#: Of the trained layer, which has more parameters than answers.
TRAINED_WIDTH = 32
#: Distances at which it is trained.
LEARNT = (1.0, 0.1, 0.01, 1e-4)
#: Steps of all its rates and optimisers together until one of them is left.
CHOOSING = 800
#: Curves that lie on each other are drawn beside each other: each mapping its mark, and so much to the right.
MARKS, ASIDE = "osD^vP", 0.012


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    size = {"n": LENGTH, "vocabulary": VOCABULARY, "sequences": N}
    repeats = [{"part": "repeats", "rate": rate / 100, "distance": 1.0, **size} for rate in range(0, 100, 10)]
    few = [{"part": "few", "rate": rate, "distance": 1.0, **SMALL} for rate in (0.0, 1 / 3)]
    similar = [{"part": "similar", "rate": 0.0, "distance": 10.0**-k, **size} for k in range(0, 13, 1 + quick)]
    built = [{"model": "constructed", "steps": 0, **case} for case in repeats + few + similar]
    trained = [*repeats[:: 9 if quick else 3], *(case for case in similar if case["distance"] in LEARNT)]
    return built + [{"model": "trained", "steps": 800 if quick else 3000, **case} for case in trained]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["model"] == "trained" else _construct


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _draw(case: Case, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, round(100 * case["rate"]), case["n"]])
    return _similar(case, rng) if case["part"] == "similar" else _repeat_tokens(case, rng)


def _construct(case: Case, seed: int) -> list[Row]:
    X, Y = _draw(case, seed)
    return [_build_row(X, Y, mapping, dtype, seed) for mapping in MAPPINGS for dtype in DTYPES]


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.trained import Budget, Shape, Task, train_tuned

    X, Y = _draw(case, seed)
    shape = Shape(TRAINED_WIDTH, hidden=4 * TRAINED_WIDTH, norm=True)
    budget = Budget(steps=case["steps"], choosing=min(case["steps"], CHOOSING))
    ended = train_tuned(shape, Task(X.astype(np.float32), Y), budget, seed)
    row: Row = {"mapping": "trained", "dtype": "float32", "recall": ended.accuracy, "refused": "", "why": ""}
    return [row | dict.fromkeys(("gap", "bits", "rank")) | ended.end]


def _build_row(X: Array, Y: Array, mapping: Any, dtype: str, seed: int) -> Row:
    """A model and what it recalls, or who refused."""
    row: Row = {"mapping": mapping, "dtype": dtype, "refused": "", "recall": 0.0}
    try:
        model = memorize(X, Y, mapping=mapping, dtype=dtype, seed=seed, certify=False)
    except HypothesisError as error:
        return row | {"refused": error.statement, "why": error.needs, "gap": None, "bits": None, "rank": None}
    found, ledger = recall_answers(model, X, Y), model.ledger
    return row | {
        "recall": found.right / found.total,
        "why": "",
        "gap": ledger.number("gap"),
        "bits": ledger.number("bits_needed"),
        "rank": int(ledger.number("rank")),
    }


def _repeat_tokens(case: Case, rng: np.random.Generator) -> tuple[Array, Array]:
    """Sequences in pairs of the same set of tokens, with other multiplicities where there are repetitions."""
    n, tokens = case["n"], rng.normal(size=(case["vocabulary"], WIDTH))
    different = max(1, round(n * (1 - case["rate"])))
    ids = []
    for _ in range(case["sequences"] // 2):
        chosen = rng.choice(case["vocabulary"], different, replace=False)
        ids += [np.concatenate([chosen, rng.choice(chosen, n - different)]) for _ in range(2)]
    return tokens[np.array(ids)], _answers(np.array(ids), rng)


def _answers(ids: Array, rng: np.random.Generator) -> Array:
    """A random class for each token in each multiset, multisets with proportional multiplicities being one."""
    seen: dict[Any, int] = {}
    answers = np.zeros(ids.shape, int)
    for i, row in enumerate(ids.tolist()):
        counts = Counter(row)
        divisor = math.gcd(*counts.values())
        company = frozenset((token, count // divisor) for token, count in counts.items())
        for k, token in enumerate(row):
            answers[i, k] = seen.setdefault((token, company), int(rng.integers(CLASSES)))
    return answers


def _similar(case: Case, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of sequences that differ in one token, by a given distance; their answers differ at every token."""
    half, n = case["sequences"] // 2, case["n"]
    first = rng.normal(size=(half, n, WIDTH))
    step = rng.normal(size=(half, WIDTH))
    second = first.copy()
    second[:, 0] += case["distance"] * step / np.linalg.norm(step, axis=1, keepdims=True)
    answers = rng.integers(0, CLASSES, (half, n))
    return np.concatenate([first, second]), np.concatenate([answers, (answers + 1) % CLASSES])


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right, last) = figure(columns=2, width=11, panels=4)
    repeats, similar = _part(rows, "repeats"), _part(rows, "similar")
    for axes, some, by in ((left, repeats, "rate"), (last, similar, "distance")):
        mine = [row for row in some if row["mapping"] == "trained"]
        line(axes, interval_by_group(mine, by, "recall"), "trained, float32", color="k", marker="*", markersize=9)
        axes.set_ylim(-0.05, 1.05)
    for mapping in MAPPINGS:
        _draw_repeats(left, "recall", repeats, mapping)
        if mapping not in STRICT:
            _draw_repeats(middle, "bits", repeats, mapping)
            _draw_similar(right, "bits", similar, mapping)
            _draw_similar(last, "recall", similar, mapping)
    left.set(xlabel="share of places that repeat a token", ylabel="share of answers recalled, float64")
    middle.set(xlabel="share of places that repeat a token", ylabel="bits needed, float64", ylim=(0, None))
    right.set(xscale="log", xlabel="distance of similar sequences", ylabel="bits needed, where not refused")
    last.set(xscale="log", xlabel="distance of similar sequences", ylabel="share of answers recalled")
    for axes in (left, middle, right, last):
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="x-small")
    return made


def _look(mapping: str) -> dict[str, Any]:
    place = MAPPINGS.index(mapping)
    return {"color": f"C{place}", "marker": MARKS[place], "fillstyle": "none", "markersize": 6}


def _draw_repeats(axes: Any, value: str, rows: list[Row], mapping: str) -> None:
    mine = [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, "float64")]
    moved = ASIDE * (MAPPINGS.index(mapping) - len(MAPPINGS) / 2)
    if points := {rate + moved: point for rate, point in interval_by_group(mine, "rate", value).items()}:
        line(axes, points, mapping, linestyle="--" if mapping in STRICT else "-", **_look(mapping))


def _draw_similar(axes: Any, value: str, rows: list[Row], mapping: str) -> None:
    moved = 1 + 8 * ASIDE * (2 * MAPPINGS.index(mapping) - len(MAPPINGS))
    for dtype, style in (("float32", ":"), ("float64", "-")):
        mine = [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, dtype)]
        if points := {t * moved: point for t, point in interval_by_group(mine, "distance", value).items()}:
            line(axes, points, f"{mapping}, {dtype}", linestyle=style, **_look(mapping))


def verdict(rows: list[Row]) -> Verdict:
    twins = [row for row in rows if row["mapping"] == "trained"]
    rows = [row for row in rows if row["mapping"] != "trained"]
    repeated = [row for row in _part(rows, "repeats") if row["rate"] > 0]
    strict = [row for row in repeated if row["mapping"] in STRICT]
    others = [row for row in repeated if row["mapping"] not in STRICT]
    plain = [row for row in _part(rows, "repeats") if row["rate"] == 0 and row["mapping"] in STRICT]
    double = [row for row in others if row["dtype"] == "float64"]
    whole = sum(row["recall"] == 1 for row in double)
    findings = [
        f"With repeated tokens {_refusals(strict)}.",
        f"Without repetitions the same sizes are too much for their constants: {_describe_recall(plain)}.",
        f"The others, at 10 to 90 percent repeated places: {_describe_recall(others)}.",
        *_bits_against_rate(repeated),
        *_few(_part(rows, "few")),
        *_distances(_part(rows, "similar")),
        *_twins(twins),
    ]
    says = (
        f"The assumption is the theorems', not the layer's: with repeated tokens {whole} of {len(double)} models "
        f"of the other mappings recall everything in float64, and {sum(row['recall'] == 1 for row in strict)} of "
        f"{len(strict)} by the constants of the two theorems."
    )
    return Verdict("no" if whole == len(double) else "partly", says, tuple(findings))


def _twins(rows: list[Row]) -> list[str]:
    """What a trained layer recalls, by rate and by distance."""
    said = []
    for part, by, what in (("repeats", "rate", "repeated places"), ("similar", "distance", "distance")):
        if found := interval_by_group(_part(rows, part), by, "recall"):
            some = _part(rows, part)
            shown = ", ".join(f"{share} at {value:g}" for value, share in found.items())
            who = f"A trained layer (width {TRAINED_WIDTH}, at most {rows[0]['steps']:,} steps)"
            ended = tally(row.get("ended_by") for row in some)
            said.append(f"{who} recalls, by {what}: {shown}; ended by: {ended}.{still_learning(some)}")
    return said


def _describe_recall(rows: list[Row]) -> str:
    """Per mapping and dtype, how many models recall everything, and who refused the rest."""
    said = []
    for mapping, dtype in product(MAPPINGS, DTYPES):
        if some := [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, dtype)]:
            whole = sum(row["recall"] == 1 for row in some)
            refused = Counter(row["refused"] for row in some if row["refused"])
            by = "" if not refused else " (refused by " + ", ".join(map(str, refused)) + ")"
            said.append(f"{mapping} {dtype} {whole} of {len(some)}{by}")
    return "; ".join(said)


def _refusals(rows: list[Row]) -> str:
    shown = Counter((row["mapping"], row["refused"], row["why"]) for row in rows if row["refused"])
    parts = (f"{mapping} refuses {many} times ([{key}] needs {why})" for (mapping, key, why), many in shown.items())
    return "; ".join(parts) or "no mapping refuses"


def _bits_against_rate(rows: list[Row]) -> list[str]:
    """What repetition costs: bits per ten percent."""
    said = []
    for mapping in MAPPINGS:
        some = [row for row in rows if row["mapping"] == mapping and row["dtype"] == "float64" and row["bits"]]
        if len(some) > 2:
            found = steepness((10 * row["rate"] for row in some), (row["bits"] for row in some))
            said.append(f"{mapping} {found}")
    return [f"Bits more for each ten percent of repeated places: {'; '.join(said)}."] if said else []


def _few(rows: list[Row]) -> list[str]:
    """Theorem K on data that is small enough for it."""
    some = [row for row in rows if row["mapping"] == "rank_one" and row["dtype"] == "float64"]
    plain, repeats = ([row for row in some if (row["rate"] > 0) == there] for there in (False, True))
    if not plain or not repeats:
        return []
    return [
        f"On {SMALL['vocabulary']} tokens in sequences of {SMALL['n']}, rank_one (Theorem K) recalls everything in "
        f"{sum(r['recall'] == 1 for r in plain)} of {len(plain)} data sets without repetitions and in "
        f"{sum(r['recall'] == 1 for r in repeats)} of {len(repeats)} with one repeated token."
    ]


def _distances(rows: list[Row]) -> list[str]:
    """Bits per halving of the distance, and the smallest distance at which all is recalled in every seed."""
    slopes, reach = [], []
    for mapping, dtype in product(MAPPINGS, DTYPES):
        some = [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, dtype)]
        reach += [f"{mapping} {dtype} {_reach(some)}"] if some else []
        fitted = [row for row in some if row["bits"] is not None and dtype == "float64"]
        if len({row["distance"] for row in fitted}) > 2:
            found = steepness((-math.log2(r["distance"]) for r in fitted), (r["bits"] for r in fitted))
            slopes.append(f"{mapping} {found} (mean {interval(r['bits'] for r in fitted)})")
    return [
        f"Bits for each halving of the distance between similar sequences, float64: {'; '.join(slopes)}.",
        f"The smallest distance at which everything is recalled: {'; '.join(reach)}.",
    ]


def _reach(some: list[Row]) -> str:
    """The smallest distance at which all is recalled in every seed; if none, in how many at the largest."""
    shares = interval_by_group(some, "distance", "recall")
    least, most = min((t for t, share in shares.items() if share.mean == 1), default=None), max(shares)
    refused = {row["refused"] for row in some if least is None or row["distance"] < least} - {""}
    by = f"refused by {', '.join(sorted(refused))}" if refused else ""
    if least is not None:
        return f"{least:g}{f' (below, {by})' if by else ''}"
    recalled = [row["recall"] == 1 for row in some if row["distance"] == most]
    return f"nowhere ({sum(recalled)} of {len(recalled)} at {most:g}{f'; else {by}' if by else ''})"


def _part(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
