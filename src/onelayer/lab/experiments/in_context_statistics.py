"""Ridge, lasso and a choice between penalties in the prompt: built blocks against trained Transformers.

Prompts are examples y = <w, x> + noise and queries x; the loss is the mean square of the distance to <w, x>. Dense:
w is normal, and ridge regression is the best estimate there is. Sparse: two components of w are not 0. Mixed: the
noise is small or large from prompt to prompt, and some examples judge which of two penalties is better. The paper
trains twelve layers for 300,000 steps and more; that is out of reach here, and nothing is said about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.compile.learner import learner
from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import interval, over, share

QUESTION = "Does a trained Transformer come to the ridge, the lasso and the choice that one block is built to be?"
HYPOTHESES = (
    "It comes near ridge regression (Bai et al. 2023 train such networks to the best risk).",
    "It does not come to the lasso's zeros: small weights stay small weights.",
)
EXTRAS = ("torch",)
d, N, QUERIES, LOOPS = 4, 8, 8, 300
MEASURED, TUNED = 512, 256
#: Beyond this no answer of a prompt is expected.
LARGEST = 16.0
NOISE = {"dense": (0.5, 0.5), "sparse": (0.3, 0.3), "mixed": (0.1, 1.0)}
#: As many components of a sparse w are not 0.
SPARSE = 1
SHARES = (0.25, 0.5, 1.0)
#: A loss within this share of the built one is as good; a weight below this is called 0.
NEAR, ZERO = 0.05, 0.01


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    layers, steps, batch = (3, 800, 128) if quick else (6, 30000, 256)
    return [
        {"task": task, "width": width, "layers": layers, "steps": steps, "batch": batch}
        for task in NOISE
        for width in ((2 * d + 3,) if quick else (2 * d + 3, 64))
    ]


def penalties(task: str) -> tuple[float, ...]:
    """Of the mean loss. For a normal w of variance 1 the best is known: sigma^2/N for each noise sigma.

    For a sparse one shares of sigma rms(x) sqrt(2 log d / N), which keeps all that is only noise at 0: often it is
    too much for the loss, and the best share is chosen on prompts of another seed.
    """
    if task == "sparse":
        return tuple(float(NOISE[task][0] * 3**-0.5 * np.sqrt(2 * np.log(d) / N)) * share for share in SHARES)
    return tuple(sorted({sigma**2 / N for sigma in NOISE[task]}))


def tasks(rng: np.random.Generator, task: str, count: int) -> tuple[Any, Any, Any]:
    """Examples x [count, N, d] in [-1, 1], their y [count, N], and w [count, d]."""
    x, w = rng.uniform(-1, 1, (count, N, d)), rng.standard_normal((count, d))
    if task == "sparse":
        order = rng.permuted(np.broadcast_to(np.arange(d), (count, d)), axis=1)
        w = np.where(order < SPARSE, np.where(w < 0, -1.0, 1.0), 0.0)
    sigma = rng.choice(NOISE[task], (count, 1))
    return x, np.einsum("bnd,bd->bn", x, w) + sigma * rng.standard_normal((count, N)), w


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts
    from onelayer.lab.decoders import Decoder

    twin = Decoder(d + 2, 1, N + QUERIES, case["width"], case["layers"])
    weights, drawn = prompts.start(twin.sizes(), seed), np.random.default_rng([seed, 1])

    def draw(_: Any) -> Any:
        x, y, w = tasks(drawn, case["task"], case["batch"])
        queries = drawn.uniform(-1, 1, (case["batch"], QUERIES, d))
        return _tokens(x, y, queries), _tensor(np.einsum("bqd,bd->bq", queries, w))

    def loss(t: Any, given: Any) -> Any:
        return (_answers(twin, t, given[0]) - given[1]).square().mean()

    trained = prompts.search(weights, loss, draw, case["steps"], seed)
    fresh = np.random.default_rng([seed, 2])
    x, y, w = tasks(fresh, case["task"], MEASURED)
    queries = fresh.uniform(-1, 1, (MEASURED, QUERIES, d))
    wanted = np.einsum("bqd,bd->bq", queries, w)

    def error(answers: Any) -> float:
        return float(((answers - wanted) ** 2).mean())

    model = build(case["task"], seed)
    least = np.einsum("bdn,bn->bd", np.linalg.pinv(x), y)
    found = {
        "loss": error(_ask(twin, weights, x, y, queries)),
        "built": error(model.predict(x, y, queries, outside="answer")),
        "least_squares": error(np.einsum("bqd,bd->bq", queries, least)),
        "nothing": error(0 * wanted),
    }
    return [found | _zeros(twin, weights, model, x, y, w) | trained.row]


def build(task: str, seed: int) -> Any:
    """The block for a task."""
    how: dict[str, Any] = {"d": d, "steps": LOOPS, "largest": LARGEST, "certify": False}
    given = penalties(task)
    if task != "sparse":
        kind: dict[str, Any] = {"penalties": given} if task == "mixed" else {"penalty": given[0]}
        return learner("selection" if task == "mixed" else "ridge", **kind, **how)
    x, y, w = tasks(np.random.default_rng([seed, 3]), task, TUNED)
    units = np.broadcast_to(np.eye(d), (TUNED, d, d))  # the answers there are the weights

    def off(model: Any) -> float:
        return float(((model.predict(x, y, units) - w) ** 2).mean())

    return min((learner("lasso", penalty=penalty, **how) for penalty in given), key=off)


def _zeros(twin: Any, weights: Any, model: Any, x: Any, y: Any, w: Any) -> Row:
    """How many weights of components that do not matter are 0: answers at unit vectors, beyond that at 0."""
    units = np.broadcast_to(np.vstack([np.eye(d), np.zeros((1, d))]), (len(x), d + 1, d))
    unused = w == 0
    if not unused.any():
        return {"zeros": None, "built_zeros": None, "unused": None, "built_unused": None}
    found: Row = {}
    for name, answers in (
        ("", _ask(twin, weights, x, y, units)),
        ("built_", model.predict(x, y, units, outside="answer")),
    ):
        seen = np.abs(answers[:, :d] - answers[:, d:])[unused]
        found |= {f"{name}zeros": float((seen < ZERO).mean()), f"{name}unused": float(np.sqrt((seen**2).mean()))}
    return found


def _tensor(values: Any) -> Any:
    from onelayer.lab.networks import framework

    return framework().from_numpy(np.asarray(values, np.float32))


def _tokens(x: Any, y: Any, queries: Any) -> Any:
    """[B, N + queries, d + 2] Components, answer, and whether there is one."""
    known = np.concatenate([x, y[..., None], np.ones_like(y)[..., None]], axis=2)
    return _tensor(np.concatenate([known, np.pad(queries, ((0, 0), (0, 0), (0, 2)))], axis=1))


def _answers(twin: Any, t: Any, tokens: Any) -> Any:
    from onelayer.lab.decoders import examples

    return twin.run(t, tokens, examples(N, tokens.shape[1] - N))[0][:, N:, 0]


def _ask(twin: Any, weights: Any, x: Any, y: Any, queries: Any) -> Any:
    from onelayer.lab.networks import framework, one_thread

    torch = framework()
    with torch.no_grad(), one_thread(torch):
        return _answers(twin, weights, _tokens(x, y, queries)).double().numpy()


def plot(rows: list[Row]) -> Any:
    found = [task for task in NOISE if any(row["task"] == task for row in rows)]
    made, all_axes = figure(columns=len(found), width=4.5 * len(found))
    for axes, task in zip(all_axes, found, strict=True):
        some = [row for row in rows if row["task"] == task]
        shown = {"built": [row["built"] for row in some], "least squares": [row["least_squares"] for row in some]}
        for width in sorted({row["width"] for row in some}, reverse=True):
            shown[f"trained, width {width}"] = [row["loss"] for row in some if row["width"] == width]
        points = [interval(values) for values in shown.values()]
        colours = ["C1", "grey", *["C0"] * (len(points) - 2)]
        axes.barh(list(shown), [one.mean for one in points], xerr=[one.half for one in points], color=colours)
        axes.set(xlabel="mean square of the distance to <w, x>", title=task)
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, reached, judged = [], [], list[Row]()
    for task in [name for name in NOISE if any(row["task"] == name for row in rows)]:
        mine = [row for row in rows if row["task"] == task]
        for width in sorted({row["width"] for row in mine}):
            some = [row for row in mine if row["width"] == width]
            ratio = over(some, "loss", "built")
            findings.append(
                f"{task}, {some[0]['layers']} layers of width {width}, {some[0]['steps']:,} steps: loss "
                f"{interval(r['loss'] for r in some)}, built {interval(r['built'] for r in some)} (ratio {ratio}), "
                f"least squares {interval(r['least_squares'] for r in some)}, always 0 "
                f"{interval(r['nothing'] for r in some)}."
            )
            if task == "sparse":
                findings.append(_said_of_zeros(some))
            reached += [(task, row["loss"] < (1 + NEAR) * row["built"]) for row in some]
            judged += some
    by_task = {task: share(good for name, good in reached if name == task) for task in dict(reached)}
    listed = ", ".join(f"{task} in {found} runs" for task, found in by_task.items())
    steps = max(row["steps"] for row in rows)
    says = (
        f"After at most {steps:,} steps Transformers are as good as what is built (loss within "
        f"{100 * NEAR:.0f}% or below): {listed}."
    )
    answer, reason = endings.answer(judged, [good for _, good in reached])
    findings.append(endings.said(rows))
    return Verdict(answer, says + reason, tuple(findings))


def _said_of_zeros(some: list[Row]) -> str:
    """Of components that do not matter."""
    return (
        f"Weights of components that do not matter, below {ZERO:g}: {interval(r['zeros'] for r in some)} of them "
        f"trained, {interval(r['built_zeros'] for r in some)} built; their root mean square is "
        f"{interval(r['unused'] for r in some)} and {interval(r['built_unused'] for r in some)}."
    )
