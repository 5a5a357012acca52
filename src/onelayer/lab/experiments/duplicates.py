"""Repeated tokens, and sequences that are almost equal: what published assumptions forbid, and what they cost."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.errors import HypothesisError
from onelayer.lab.endings import still_learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group, steepness
from onelayer.measure.recall import recall_answers

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


def cases(preset: Preset) -> list[Case]:
    size = {"n": LENGTH, "vocabulary": VOCABULARY, "sequences": N if preset == "quick" else 10 * N}
    rates = range(0, 100, 10)
    exponents = range(0, 13, 2) if preset == "quick" else range(13)
    repeats = [{"part": "repeats", "rate": rate / 100, "distance": 1.0, **size} for rate in rates]
    few = [{"part": "few", "rate": rate, "distance": 1.0, **SMALL} for rate in (0.0, 1 / 3)]
    similar = [{"part": "similar", "rate": 0.0, "distance": 10.0**-k, **size} for k in exponents]
    quick, steps = preset == "quick", 800 if preset == "quick" else 5000
    built = [{"model": "constructed", "steps": 0, **case} for case in repeats + few + similar]
    trained = [*(repeats[::3] if quick else repeats), *(similar[:4] if quick else similar)]
    return built + [{"model": "trained", "steps": steps, **case} for case in trained]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, round(100 * case["rate"]), case["n"]])
    X, Y = _similar(case, rng) if case["part"] == "similar" else _repeat_tokens(case, rng)
    if case["model"] == "trained":
        return [_train_row(X, Y, case["steps"], seed)]
    return [_build_row(X, Y, mapping, dtype, seed) for mapping in MAPPINGS for dtype in DTYPES]


def _train_row(X: NDArray[Any], Y: NDArray[Any], steps: int, seed: int) -> Row:
    from onelayer.lab.trained import Budget, Shape, Task, train_tuned

    shape = Shape(TRAINED_WIDTH, hidden=4 * TRAINED_WIDTH, norm=True)
    ended = train_tuned(shape, Task(X.astype(np.float32), Y), Budget(steps=steps), seed)
    row: Row = {"mapping": "trained", "dtype": "float32", "refused": "", "recall": ended.accuracy, "why": ""}
    return row | {"gap": None, "bits": None, "rank": None} | ended.end


def _build_row(X: NDArray[Any], Y: NDArray[Any], mapping: Any, dtype: str, seed: int) -> Row:
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


def _repeat_tokens(case: Case, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sequences in pairs of the same set of tokens, with other multiplicities where there are repetitions."""
    n, tokens = case["n"], rng.normal(size=(case["vocabulary"], WIDTH))
    different = max(1, round(n * (1 - case["rate"])))
    ids = []
    for _ in range(case["sequences"] // 2):
        chosen = rng.choice(case["vocabulary"], different, replace=False)
        ids += [np.concatenate([chosen, rng.choice(chosen, n - different)]) for _ in range(2)]
    return tokens[np.array(ids)], _answers(np.array(ids), rng)


def _answers(ids: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
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


def _similar(case: Case, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pairs of sequences that differ in one token, by a given distance; their answers differ at every token."""
    half, n = case["sequences"] // 2, case["n"]
    first = rng.normal(size=(half, n, WIDTH))
    step = rng.normal(size=(half, WIDTH))
    second = first.copy()
    second[:, 0] += case["distance"] * step / np.linalg.norm(step, axis=1, keepdims=True)
    answers = rng.integers(0, CLASSES, (half, n))
    return np.concatenate([first, second]), np.concatenate([answers, (answers + 1) % CLASSES])


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right, last) = figure(columns=2, width=10, panels=4)
    repeats, similar = _part(rows, "repeats"), _part(rows, "similar")
    for axes, some, by in ((left, repeats, "rate"), (last, similar, "distance")):
        mine = [row for row in some if row["mapping"] == "trained"]
        line(axes, interval_by_group(mine, by, "recall"), "trained, float32", color="black")
    for dtype, look in (("float32", ":"), ("float64", "-")):
        some = [row for row in similar if row["mapping"] == "lattice" and row["dtype"] == dtype]
        line(last, interval_by_group(some, "distance", "recall"), f"lattice, {dtype}", linestyle=look, color="C5")
    for mapping in MAPPINGS:
        colour = {"color": f"C{MAPPINGS.index(mapping)}"}
        style = colour | ({"linestyle": "--", "alpha": 0.8} if mapping in STRICT else {})
        mine = [row for row in repeats if row["mapping"] == mapping]
        line(left, interval_by_group(mine, "rate", "recall"), mapping, **style)
        if mapping not in STRICT:
            line(
                middle,
                interval_by_group([r for r in mine if r["dtype"] == "float64"], "rate", "bits"),
                mapping,
                **colour,
            )
            for dtype, look in (("float32", ":"), ("float64", "-")):
                some = [row for row in similar if row["mapping"] == mapping and row["dtype"] == dtype]
                if points := interval_by_group(some, "distance", "bits"):
                    label = f"{mapping}, {dtype}"
                    line(right, points, label, linestyle=look, **colour)
    left.set(xlabel="share of places that repeat a token", ylabel="share of answers recalled", ylim=(-0.03, 1.03))
    middle.set(xlabel="share of places that repeat a token", ylabel="bits needed, float64", ylim=(0, None))
    right.set(xscale="log", xlabel="distance of similar sequences", ylabel="bits needed, where not refused")
    last.set(xscale="log", xlabel="distance of similar sequences", ylabel="share of answers recalled")
    last.set_ylim(-0.03, 1.03)
    for axes in (left, middle, right, last):
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    twins = [row for row in rows if row["mapping"] == "trained"]
    rows = [row for row in rows if row["mapping"] != "trained"]
    repeated = [row for row in _part(rows, "repeats") if row["rate"] > 0]
    strict = [row for row in repeated if row["mapping"] in STRICT]
    others = [row for row in repeated if row["mapping"] not in STRICT]
    double = [row for row in others if row["dtype"] == "float64"]
    whole = sum(row["recall"] == 1 for row in double)
    findings = [
        f"With repeated tokens {_refusals(strict)}.",
        f"Without repetitions the same sizes are too much for their constants: {_describe_recall(_plain(rows))}.",
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
            shown = ", ".join(f"{share} at {value:g}" for value, share in found.items())
            who = f"A trained layer (width {TRAINED_WIDTH}, {rows[0]['steps']:,} steps)"
            said.append(f"{who} recalls, by {what}: {shown}.{still_learning(_part(rows, part))}")
    return said


def _plain(rows: list[Row]) -> list[Row]:
    return [row for row in _part(rows, "repeats") if row["rate"] == 0 and row["mapping"] in STRICT]


def _describe_recall(rows: list[Row]) -> str:
    """Per mapping and dtype, how many models recall everything, and who refused the rest."""
    said = []
    for mapping in MAPPINGS:
        for dtype in DTYPES:
            some = [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, dtype)]
            if some:
                whole = sum(row["recall"] == 1 for row in some)
                refused = Counter(row["refused"] for row in some if row["refused"])
                by = "" if not refused else " (refused by " + ", ".join(map(str, refused)) + ")"
                said.append(f"{mapping} {dtype} {whole} of {len(some)}{by}")
    return "; ".join(said)


def _refusals(rows: list[Row]) -> str:
    shown = Counter((row["mapping"], row["refused"], row["why"]) for row in rows if row["refused"])
    parts = [
        f"{mapping} refuses {count} times ([{key}] needs {why})" for (mapping, key, why), count in shown.items()
    ]
    return "; ".join(parts) if parts else "no mapping refuses"


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
    for mapping in MAPPINGS:
        for dtype in DTYPES:
            some = [row for row in rows if (row["mapping"], row["dtype"]) == (mapping, dtype)]
            shares = interval_by_group(some, "distance", "recall")
            whole = [t for t, share in shares.items() if share.mean == 1]
            if whole:
                refused = {row["refused"] for row in some if row["distance"] < min(whole)} - {""}
                by = f" (below, refused by {', '.join(sorted(refused))})" if refused else ""
                reach.append(f"{mapping} {dtype} {min(whole):.0e}{by}")
            fitted = [row for row in some if row["bits"] is not None and row["dtype"] == "float64"]
            if len({row["distance"] for row in fitted}) > 2:
                found = steepness((-math.log2(r["distance"]) for r in fitted), (r["bits"] for r in fitted))
                slopes.append(f"{mapping} {found} (mean {interval(r['bits'] for r in fitted)})")
    return [
        f"Bits for each halving of the distance between similar sequences, float64: {'; '.join(slopes)}.",
        f"The smallest distance at which everything is recalled: {'; '.join(reach)}.",
    ]


def _part(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
