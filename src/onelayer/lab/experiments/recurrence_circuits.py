"""Affine recurrences: a trained three-layer GPT against one built mesa layer, and what its first layer attends to.

Sequences follow s' = a s + b, each with its own a and b. Three values determine what comes next, exactly, and one
mesa layer computes it (`learner("recurrence")`). The twin sees one value a token and is asked for the next one at
every token from the third on. It is then asked about a beyond those it was trained on, and about recurrences of
order 2, for which the built layer takes `order=2`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.compile.learner import learner
from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure, line
from onelayer.lab.statistics import factors, geometric, interval, interval_by_group, over, share

QUESTION = "Does a trained Transformer of three layers find the recurrence that one mesa layer is built to find?"
HYPOTHESES = (
    "No: its error stays above 1e-3, where the built layer has only rounding and its ridge.",
    "Its first layer copies the last value, and later heads answer negatively to similar ones, as a study of such "
    "networks reports.",
)
EXTRAS = ("torch",)
LENGTH, SEEN, LAYERS, HEADS = 6, 3, 3, 2
MEASURED = 2**11
#: Beyond these a trained network was never asked: |a| up to 1 in training.
BEYOND = (1.0, 1.3)
#: A median error below this is what the twin is asked for.
FOUND = 1e-3


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    width, many, batch = (32, (800,), 64) if quick else (32, (800, 3000, 12000), 64)
    built: Case = {"model": "built", "width": 0, "steps": 0, "batch": 0}
    return [built, *({"model": "trained", "width": width, "steps": steps, "batch": batch} for steps in many)]


def series(rng: np.random.Generator, count: int, low: float = 0.5, high: float = 1.0, order: int = 1) -> Any:
    """[count, LENGTH + 1] Recurrences with low <= |a| <= high; of order 2, rotations by random angles."""
    s = rng.uniform(-1, 1, (count, LENGTH + 1))
    a, b = rng.uniform(low, high, count) * rng.choice([-1, 1], count), rng.uniform(-1, 1, count)
    turn = 2 * np.cos(rng.uniform(0, np.pi, count))
    for t in range(order, LENGTH + 1):
        s[:, t] = a * s[:, t - 1] + b if order == 1 else turn * s[:, t - 1] - s[:, t - 2]
    return s


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _build if case.get("model") == "built" else _train


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


#: What is asked after training: as in training, and what was never seen.
ASKED: dict[str, dict[str, Any]] = {
    "": {},
    "_beyond": {"low": BEYOND[0], "high": BEYOND[1]},
    "_order2": {"order": 2},
}


def _asked(seed: int) -> dict[str, Any]:
    """Series of each kind, the same for every model of a seed."""
    fresh = np.random.default_rng([seed, 2])
    return {name: series(fresh, MEASURED, **how) for name, how in ASKED.items()}


def _build(_: Case, seed: int) -> list[Row]:
    found: Row = dict.fromkeys(("first_copies", "similar"))
    for name, s in _asked(seed).items():
        found[f"error{name}"] = _off(_built(s, ASKED[name].get("order", 1)), s)
        found[f"copied{name}"] = _off(s[:, -2], s)
    return [found]


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts
    from onelayer.lab.decoders import Decoder
    from onelayer.lab.networks import framework

    twin = Decoder(1, 1, LENGTH, case["width"], LAYERS, HEADS)
    weights = prompts.start(twin.sizes(), seed)
    drawn = np.random.default_rng([seed, 1])

    def draw(_: Any) -> Any:
        return framework().from_numpy(series(drawn, case["batch"]).astype(np.float32))

    trained = prompts.search(weights, lambda t, s: _loss(twin, t, s), draw, case["steps"], seed)
    found: Row = {}
    for name, s in _asked(seed).items():
        answers, attention = _follow(twin, weights, s)
        found |= {f"error{name}": _off(answers[:, -1], s), f"copied{name}": _off(s[:, -2], s)}
        if not name:
            found |= {"first_copies": copying(attention[0]), "similar": similarity(attention[1:], s[:, :-1])}
    return [found | trained.row]


def _off(answers: Any, s: Any) -> float:
    """Median error of the last value, over the median of such values."""
    return float(np.median(np.abs(answers - s[:, -1])) / np.median(np.abs(s[:, -1])))


def _loss(twin: Any, t: Any, s: Any) -> Any:
    """Mean square from the third value on; before, nothing determines what comes next."""
    from onelayer.lab.decoders import past

    answers = twin.run(t, s[:, :-1, None], past(LENGTH))[0][..., 0]
    return ((answers - s[:, 1:])[:, SEEN - 1 :] ** 2).mean()


def _follow(twin: Any, weights: Any, s: Any) -> tuple[Any, list[Any]]:
    """What the twin expects after each value, and its attention."""
    from onelayer.lab.decoders import past
    from onelayer.lab.networks import framework, one_thread

    torch = framework()
    with torch.no_grad(), one_thread(torch):
        tokens = torch.from_numpy(s[:, :-1, None].astype(np.float32))
        answers, attention = twin.run(weights, tokens, past(LENGTH))
    return answers[..., 0].double().numpy(), [part.double().numpy() for part in attention]


def _built(s: Any, order: int) -> Any:
    """What the built layer expects after the last value."""
    reach = float(np.abs(s).max())
    model = learner("recurrence", order=order, low=-reach, high=reach, certify=False)
    return model.predict(s[:, :-1])[:, -1]


def copying(attention: Any) -> float:
    """Attention of the last token to itself, of the head that has most."""
    return float(attention[:, :, -1, -1].mean(axis=0).max())


def similarity(layers: list[Any], s: Any) -> float:
    """How the last token's attention to earlier ones goes with their nearness in value: the lowest correlation.

    Of logarithms of weights with -|s_i - s_t|, inside each sequence; the mean over sequences, of the head with the
    most negative one.
    """
    near = -np.abs(s[:, :-1] - s[:, -1:])
    found = []
    for attention in layers:
        logits = np.log(np.maximum(attention[:, :, -1, :-1], 1e-30))
        x, y = (part - part.mean(axis=-1, keepdims=True) for part in (logits, near[:, None]))
        size = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
        found += list(((x * y).sum(axis=-1) / np.where(size > 0, size, 1)).mean(axis=0))
    return float(min(found))


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    built, trained = _models(rows)
    if not trained:
        return made
    for at, (name, label) in enumerate((("", "as trained"), ("_beyond", "|a| beyond"), ("_order2", "order 2"))):
        # Each a little to the right of the one before: their bars would hide one another.
        some = [{**row, "steps": row["steps"] * 1.06**at} for row in trained]
        colour, marker = f"C{at}", "osD"[at]
        factor_line(left, factors(some, "steps", f"error{name}"), f"trained, {label}", color=colour, marker=marker)
        if built:
            level = geometric(row[f"error{name}"] for row in built).mean
            made_for = "built with order=2" if name == "_order2" else "built"
            left.axhline(level, color=colour, linestyle=(3 * at, (3, 6)), label=f"{made_for}, {label}")
    left.set(xscale="log", yscale="log", xlabel="steps of Adam at most", ylabel="median error, relative")
    left.axhline(FOUND, color="grey", linewidth=0.5)
    left.legend(fontsize="small", loc="center left")
    line(right, interval_by_group(trained, "steps", "first_copies"), "first layer: attention to itself")
    line(right, interval_by_group(trained, "steps", "similar"), "later heads: similarity, lowest")
    right.axhline(1 / LENGTH, color="grey", linestyle=":")
    right.set(xscale="log", xlabel="steps of Adam at most", ylabel="share, or correlation (dotted: uniform)")
    right.legend(fontsize="small")
    return made


def _models(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Built and trained ones."""
    built, trained = ([row for row in rows if row.get("model") == name] for name in ("built", "trained"))
    return built, trained


def verdict(rows: list[Row]) -> Verdict:
    findings = []
    built, trained = _models(rows)
    if not built or not trained:
        return Verdict("open", "There are not both built and trained models.", (endings.said(trained),))
    for steps in (every := sorted({row["steps"] for row in trained})):
        some = [row for row in trained if row["steps"] == steps]
        ratio = over(some, "error", "copied")
        findings.append(
            f"{steps:,} steps: median error after {LENGTH} values {geometric(r['error'] for r in some)} of their "
            f"median, {ratio} of that of repeating the last value; built {geometric(r['error'] for r in built)}. "
            f"Attention of the first layer to the last value {interval(r['first_copies'] for r in some)} (uniform "
            f"{1 / LENGTH:.3g}); lowest correlation of a later head with similarity "
            f"{interval(r['similar'] for r in some)}."
        )
    longest = [row for row in trained if row["steps"] == every[-1]]
    other = "built (another layer, compiled with order=2 for such series)"
    unseen = (("_beyond", f"|a| from {BEYOND[0]} to {BEYOND[1]}", "built"), ("_order2", "order 2", other))
    for name, label, layer in unseen:
        findings.append(
            f"Never seen in training, {label}: trained {geometric(r['error' + name] for r in longest)}, {layer} "
            f"{geometric(r['error' + name] for r in built)}, repeating the last value "
            f"{geometric(r['copied' + name] for r in longest)}."
        )
    reached = share(row["error"] < FOUND for row in longest)
    says = (
        f"After the longest training the median error is below {FOUND:g} in {reached} runs: "
        f"{geometric(r['error'] for r in longest)}, and that of the built layer "
        f"{geometric(r['error'] for r in built)}."
    )
    answer, reason = endings.answer(longest, [row["error"] < FOUND for row in longest])
    findings.append(endings.said(trained))
    return Verdict(answer, says + reason, tuple(findings))
