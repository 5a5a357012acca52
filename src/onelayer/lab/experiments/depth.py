"""Depth: one constructed layer against several trained ones with as many parameters.

Of a function there is one constructed model, with the compiler's usual seed, the same for all seeds of training; so
intervals are over training alone. Its number of parameters stands here, so that training does not compile; what was
compiled is compared with it. Functions of four tokens are left out: two of three cannot be compiled to this
tolerance on a machine of 8 GiB, and the third has 164,728 parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.approximate import approximate
from onelayer.compile.memorize import memorize
from onelayer.lab.endings import learning, said
from onelayer.lab.experiment import FEWEST_SEEDS, Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure, line
from onelayer.lab.statistics import Paired, factors, geometric, interval, interval_by_group, paired, share, short
from onelayer.problems.targets import resolve

QUESTION = "At equal numbers of parameters, is one constructed layer as good as several trained ones?"
HYPOTHESES = (
    "One layer is enough (Corollary 1): a constructed one memorises everything, trained ones of any depth may not.",
    "For a smooth function trained layers have the smaller error: a construction pays for its proof.",
)
EARLIER = Earlier(
    "yes, from a single seed",
    "Clearly better, 4 of 4.",
    "the constructed function is the best that the compiler has (it was eight times larger), twins are trained "
    "until their loss stops falling or their steps are spent, which is said, and have as many parameters; errors "
    "are compared pair by pair, the mean one as well as the largest. Functions of four tokens were asked for that "
    "cannot be compiled.",
)
EXTRAS = ("torch",)
n, VOCABULARY, CLASSES = 4, 32, 16
#: For functions: the bound that is proved of the constructed layer, which decides how many parameters all have.
TOLERANCE = 0.1
#: Steps of all rates and optimisers together until one of them is left, on answers.
CHOOSING = 1500
#: By name, tokens and components, how many parameters the constructed layer of that bound has.
FUNCTIONS = {("polynomial:3", 2, 1): 767, ("standardise", 2, 1): 335, ("max", 2, 2): 58}
#: By which share the parameters of a twin may be off.
EQUAL = 0.02
#: What is compared, of answers and of functions; the answer takes all of it.
NAMES = {"accuracy": "accuracy", "error": "largest error", "mean_error": "mean error"}
BUILT: dict[str, Any] = {"color": "grey", "linestyle": "--", "label": "constructed, one layer"}


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    depths = {"memory": (1, 4) if quick else (1, 2, 4)}  # of functions 1 and 4: their loss falls for very long
    tasks = [("memory", 96 if quick else 192, 1, 600 if quick else 6000)]
    tasks += [(*one, 600 if quick else 10000) for one in list(FUNCTIONS)[: 1 if quick else None]]
    return [
        {"task": task, "model": model, "layers": layers, "size": size, "d": d}
        | {"steps": steps if model == "trained" else 0}
        for task, size, d, steps in tasks
        for model, layers in (("constructed", 1), *(("trained", L) for L in depths.get(task, (1, 4))))
    ]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    """What trains on answers compiles them first: how many parameters they take depends on the answers."""
    if case["task"] == "memory":
        return _memorise if case["model"] == "constructed" else _train_on_answers
    return _construct if case["model"] == "constructed" else _train_on_function


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _compile(case: Case, seed: int) -> tuple[Any, Any, Any]:
    """Sets of 4 of 32 tokens, an answer of 16 at each; ``size`` is their number."""
    rng = np.random.default_rng([seed, case["size"], 8])
    sets = np.array(list(combinations(range(VOCABULARY), n)))
    X = sets[rng.permutation(len(sets))[: case["size"]]]
    Y = rng.integers(0, CLASSES, X.shape)
    return X, Y, memorize(X, Y, seed=seed, certify=False)


def _memorise(case: Case, seed: int) -> list[Row]:
    X, Y, model = _compile(case, seed)
    return [_row(model.n_parameters, None, float((model.predict(X, path="dense") == Y).mean()), None)]


def _train_on_answers(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.functions import fill_closely
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, train_tuned

    X, Y, model = _compile(case, seed)
    task = Task(X, Y)
    shape = fill_closely(Shape(1, layers=case["layers"], norm=True), task, model.n_parameters)
    budget = Budget(steps=case["steps"], choosing=min(case["steps"], CHOOSING), check=20)
    ended = train_tuned(shape, task, budget, seed)
    return [_row(count_parameters(shape, task), shape.width, ended.accuracy, None) | ended.end]


def _construct(case: Case, _: int) -> list[Row]:
    return [dict(_construct_once(case["task"], case["size"], case["d"]))]


@cache
def _construct_once(name: str, tokens: int, d: int) -> Row:
    """Of a named function of so many tokens in [0, 1]^d; the error is the largest that search finds."""
    model = approximate(name, n=tokens, d=d, tolerance=TOLERANCE, dtype="float32")
    X = np.random.default_rng(10).random((4096, tokens, d))
    found = np.asarray(model.predict(X), np.float64).reshape(len(X), -1)
    mean = float(np.abs(found - model.target.evaluate(X).reshape(len(X), -1)).mean())
    return _row(model.n_parameters, None, None, model.measured_error, model.error_bound, mean)


def _train_on_function(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.functions import fit_transformer

    target = resolve(case["task"], n=case["size"], d=case["d"], low=0.0, high=1.0)
    parameters = FUNCTIONS[case["task"], case["size"], case["d"]]
    twin = fit_transformer(target, parameters, case["layers"], case["steps"], seed)
    return [_row(twin.parameters, twin.width, None, twin.error, None, twin.mean_error) | twin.end]


def _row(
    parameters: int,
    width: int | None,
    accuracy: float | None,
    error: float | None,
    proved: float | None = None,
    mean_error: float | None = None,
) -> Row:
    said = {"parameters": parameters, "width": width, "accuracy": accuracy, "error": error, "proved": proved}
    return {**said, "mean_error": mean_error}


def plot(rows: list[Row]) -> Any:
    tasks = list(dict.fromkeys((row["task"], row["size"], row["d"]) for row in rows))
    made, all_axes = figure(columns=2, width=10, panels=len(tasks))
    for axes, task in zip(all_axes, tasks, strict=True):
        some = [row for row in rows if (row["task"], row["size"], row["d"]) == task]
        trained = [row for row in some if row["model"] == "trained"]
        built = [row for row in some if row["model"] == "constructed"]
        if task[0] == "memory":
            line(axes, interval_by_group(trained, "layers", "accuracy"), "trained")
            axes.axhline(np.mean([r["accuracy"] for r in built]) if built else np.nan, **BUILT)
            axes.set(ylabel="share of answers memorised")
        else:
            for value, colour, name in (("error", "C0", "largest found"), ("mean_error", "C1", "mean")):
                factor_line(axes, factors(trained, "layers", value), f"trained, {name}", color=colour)
                level = geometric(r[value] for r in built).mean
                axes.axhline(level, **{**BUILT, "color": colour, "label": f"constructed, {name}"})
            axes.set(yscale="log", ylabel="error")
        axes.set(xscale="log", xlabel="trained layers", title=_name(task))
        depths = sorted({row["layers"] for row in some})
        axes.set_xticks(depths, list(map(str, depths)), minor=False)
        axes.minorticks_off()
        axes.legend(fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    """Seed by seed: differences of accuracy, ratios of errors."""
    findings, decided = [], list[tuple[str, str]]()
    for task in dict.fromkeys((row["task"], row["size"], row["d"]) for row in rows):
        some = [row for row in rows if (row["task"], row["size"], row["d"]) == task]
        built = [row for row in some if row["model"] == "constructed"]
        for value in ("accuracy",) if task[0] == "memory" else ("error", "mean_error"):
            listed = (
                [f"constructed {_spread(built, value)} ({_spread(built, 'parameters')} parameters)"]
                if built
                else []
            )
            for layers in sorted({row["layers"] for row in some if row["model"] == "trained"}):
                twins = [row for row in some if row["model"] == "trained" and row["layers"] == layers]
                words, comparison = _compare(built, twins, value)
                listed.append(f"{layers} trained {words}")
                decided += [(value, comparison)] if built else []
            findings.append(f"{_name(task)}, {NAMES[value]}: {'; '.join(listed)}.")
    trained = [row for row in rows if row["model"] == "trained"]
    findings += [*_sizes(rows), *([said(trained)] if trained else [])]
    if not decided:
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    better, worse, equal, cut = (_counted(decided, word) for word in ("better", "worse", "equal", "cut"))
    says = (
        f"Against trained depths, pair by pair, one constructed layer is clearly better {better} and clearly worse "
        f"{worse}."
    )
    all_words = {word for _, word in decided}
    if "equal" in all_words:
        says += f" It is exactly as good, seed by seed, {equal}."
    if "cut" in all_words:
        says += f" It is better than twins of which some still learned {cut}: those are not decided."
    return Verdict(_answer(all_words), says, tuple(findings))


def _answer(words: set[str]) -> Any:
    """Where nothing speaks for the constructed layer, it is worse only if it is in all comparisons."""
    good = words & {"better", "equal"}
    if good:
        return "yes" if good == words else "partly"
    return "no" if words == {"worse"} else "open"


def _counted(decided: list[tuple[str, str]], word: str) -> str:
    """In how many comparisons, by what was compared: the largest error may fall where the mean one rises."""
    told = []
    for value, name in NAMES.items():
        words = [found for each, found in decided if each == value]
        told += [f"{words.count(word)} of {len(words)} by {name}"] if words else []
    return f"in {', '.join(told)}"


def _name(task: tuple[str, int, int]) -> str:
    return f"{task[1]} sequences" if task[0] == "memory" else f"{task[0]}, n = {task[1]}, d = {task[2]}"


def _spread(built: list[Row], value: str) -> str:
    """Of constructed models: an interval over seeds is empty where they are one model."""
    values = [row[value] for row in built]
    if len(values) > 1 and len(set(values)) == 1:
        return f"{short(values[0], 4)} (the same for all seeds)"
    return str(interval(values) if value in ("accuracy", "parameters") else geometric(values))


def _compare(built: list[Row], twins: list[Row], value: str) -> tuple[str, str]:
    """In words, and what it says of the constructed layer: better, worse, equal, neither, or better than a cut one.

    Equal is the same value in every pair: an interval around no difference tells neither. More steps could make a
    twin better only: that the constructed layer is worse does not wait for them.
    """
    first, second = ({row["seed"]: row[value] for row in some} for some in (built, twins))
    ratio = value != "accuracy"
    cut = share(map(learning, twins))
    words = f"{geometric(second.values()) if ratio else interval(second.values())}"
    words += f" (still learning in {cut})" if cut.successes else ""
    if not built:
        return words, "neither"
    found: Paired = paired(second, first, ratio=True) if ratio else paired(first, second)
    words += f", {'trained over constructed' if ratio else 'constructed minus trained'} {found}"
    if found.above:
        return words, "cut" if cut.successes else "better"
    both = [first[seed] == second[seed] for seed in first if seed in second]
    same = len(both) >= FEWEST_SEEDS and all(both) and not cut.successes
    return words, "worse" if found.below else "equal" if same else "neither"


def _sizes(rows: list[Row]) -> list[str]:
    """How many parameters twins have for each of the constructed layer's, pair by pair."""

    def key(row: Row) -> tuple[Any, ...]:
        return row["task"], row["size"], row["d"], row["seed"]

    built = {key(row): row["parameters"] for row in rows if row["model"] == "constructed"}
    shares = [
        row["parameters"] / built[key(row)] for row in rows if row["model"] == "trained" and key(row) in built
    ]
    if not shares:
        return []
    off = sum(abs(one - 1) > EQUAL for one in shares)
    return [
        f"Twins have {min(shares):.3f} to {max(shares):.3f} times the parameters of the constructed layer; {off} "
        f"of {len(shares)} are off by more than {EQUAL:.0%}."
    ]
