"""Training from constructed weights: does it keep them, come back to them after noise, change one answer?

The loss is the squared difference between the model's number and the class. At a stored token the readout is flat,
so that what lies before it gets no gradient at all; `onelayer edit` changes answers by compiling them. Nothing is
chosen where answers are to be kept: every rate is run. To change or repair, Adam has the best of all rates for each
seed, and goes on until all answers are right or its loss has stopped falling.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.endings import answer, learning, said
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Share, interval, interval_by_group, interval_of, share, tally

QUESTION = "Does Adam keep, repair and change what was compiled into the weights?"
HYPOTHESES = (
    "All answers are right, and all gradients before the readout are exactly 0: nothing moves by itself.",
    "After noise that merges plateaus Adam does not come back, since flat units have no gradient.",
    "One changed answer costs others, where a compiled edit changes exactly one.",
)
EARLIER = Earlier(
    "partly, and one answer is never changed",
    "Within 50 steps of Adam no answer was changed; within 200 at a rate of 0.001 no run that noise had hurt "
    "came back.",
    "runs had a fixed number of steps at one rate, which says what so many steps do, not what Adam does. The rate "
    "is chosen for each seed, and runs go on until all answers are right or the loss has stopped falling.",
)
EXTRAS = ("torch",)
N, VOCABULARY, n, CLASSES = 16, 12, 3, 4
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
#: Steps between two counts, and the least counts without a fall after which the rate is halved.
CHECK, PATIENCE = 10, 8
#: Steps of runs that nothing should move: without a gradient one is as good as a thousand.
KEPT = 100


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes = (1e-4, 1e-2, 1e-1) if quick else (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    parts = [("keep", 0.0), ("change", 0.0), *(("return", size) for size in sizes)]
    steps = 1000 if quick else 5000
    return [{"part": part, "noise": noise, "steps": KEPT if part == "keep" else steps} for part, noise in parts]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.export.torch import to_torch
    from onelayer.lab.trained import Task, framework

    torch, rng = framework(), np.random.default_rng([seed, 17])
    sets = np.array(list(combinations(range(VOCABULARY), n)))
    X, Y = sets[rng.permutation(len(sets))[:N]], rng.integers(0, CLASSES, (N, n))
    model = memorize(X, Y, readout="plateaus", mapping="temperature", dtype="float64", seed=seed, certify=False)
    net = to_torch(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in net.parameters():
            size = case["noise"] * tensor.abs().mean()
            tensor.add_(size * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))
    wanted = Y.copy()
    if case["part"] == "change":
        wanted[0, 0] = (wanted[0, 0] + 1) % CLASSES
    # Numbers within 1/2, so that training goes on when all are right.
    task = Task(model.read(X).tokens, wanted[..., None].astype(float), "reals", tolerance=0.5)
    still, tensors = _gradients(torch, net, task)
    before = int(_right(torch, net, task).sum())
    rows = []
    for ended in _train(net, task, case, seed):
        right = _right(torch, ended.net, task)
        others = right.ravel()[1:] if case["part"] == "change" else right.ravel()
        about = {"tensors": tensors, "without_gradient": still, "right_before": before, "right": int(right.sum())}
        about |= {"answers": ended.answers, "first": int(right[0, 0]), "others_lost": int((~others).sum())}
        rows.append(about | {"rate": ended.rate} | ended.end)
    return rows


def _train(net: Any, task: Any, case: Case, seed: int) -> list[Any]:
    """Runs from the weights that the net has: at each rate where they are to be kept, else at the best one."""
    from copy import deepcopy
    from dataclasses import replace

    from onelayer.lab.trained import Budget, Shape, train, train_tuned

    budget = Budget(case["steps"], RATES, ("adam",), check=CHECK, patience=PATIENCE)
    if case["part"] == "keep":
        plain = replace(budget, decay="none")  # else a run would go back to the compiled weights
        return [train(deepcopy(net), task, plain, rate, seed) for rate in RATES]
    # The shape is that of the constructed net, which is given.
    return [train_tuned(Shape(1), task, budget, seed, watch=lambda found: bool(found.exact), net=net)]


def _right(torch: Any, net: Any, task: Any) -> Any:
    """[N, n] which answers are right."""
    with torch.no_grad():
        said = net(torch.from_numpy(task.tokens)).numpy()
    return (np.abs(said - task.answers) <= task.tolerance)[..., 0]


def _gradients(torch: Any, net: Any, task: Any) -> tuple[int, int]:
    """Tensors whose gradient is exactly 0, of all."""
    loss = ((net(torch.from_numpy(task.tokens)) - torch.from_numpy(task.answers)) ** 2).sum()
    loss.backward()
    given = [tensor.grad for tensor in net.parameters()]
    zero = sum(grad is None or not grad.abs().max() > 0 for grad in given)
    for tensor in net.parameters():
        tensor.grad = None
    return int(zero), len(given)


def plot(rows: list[Row]) -> Any:
    made, (axes,) = figure()
    noisy = [{**r, "before": r["right_before"] / r["answers"], "after": r["right"] / r["answers"]} for r in rows]
    noisy = [row for row in noisy if row["part"] == "return"]
    for value, label, aside in (("before", "with noise, before training", 1.0), ("after", "after training", 1.1)):
        points = interval_by_group(noisy, "noise", value)  # bars beside, not on, each other
        line(axes, {noise * aside: point for noise, point in points.items()}, label)
    axes.set(xlabel="noise, relative to the mean weight of each tensor", ylabel="share of right answers")
    axes.set_ylim(top=1.03)
    if noisy:
        axes.set_xscale("log")
        axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    parts = {part: [r for r in rows if r["part"] == part] for part in ("keep", "change", "return")}
    hurt = [row for row in parts["return"] if row["right_before"] < row["answers"]]
    findings = [*_kept(parts["keep"]), *_changed(parts["change"]), *_returned(parts["return"])]
    trained = parts["change"] + hurt
    if trained:
        findings.append(said(trained))
    if not all(parts.values()):
        return Verdict("open", "Not every part was run.", tuple(findings))
    findings += _judge_hypotheses(parts["keep"], parts["change"], hurt)
    judged = parts["keep"] + trained
    decided, _ = answer(judged, [_whole(row) for row in judged])
    says = (
        f"Kept in {_kept_by(parts['keep'])}; one answer changed without losing another in "
        f"{share(map(_whole, parts['change']))} runs; {sum(map(_whole, hurt))} of {len(hurt)} runs that noise had "
        "hurt came back."
    )
    return Verdict(decided, says + _still(parts["keep"], parts["change"], hurt), tuple(findings))


def _still(keep: list[Row], change: list[Row], hurt: list[Row]) -> str:
    """Of the runs that failed at each task, how many were still learning: they are no evidence that Adam cannot."""
    told = []
    for rows, did in ((keep, "keep all answers"), (change, "change one answer alone"), (hurt, "come back")):
        failed = [row for row in rows if not _whole(row)]
        cut = sum(map(learning, failed))
        told += [f"{cut} of the {len(failed)} that did not {did}"] * bool(cut)
    return f" Still learning when their budget of steps ended: {', '.join(told)}." if told else ""


def _seeds(rows: list[Row]) -> Share:
    """Of seeds, those all of whose runs are whole: runs of one seed are no trials of their own."""
    every = sorted({row["seed"] for row in rows})
    return share(all(_whole(row) for row in rows if row["seed"] == seed) for seed in every)


def _kept_by(rows: list[Row]) -> str:
    return f"{sum(map(_whole, rows))} of {len(rows)} runs, at every rate by {_seeds(rows)} seeds"


def _whole(row: Row) -> bool:
    return bool(row["right"] == row["answers"])


def _rates(rows: list[Row]) -> str:
    """How many runs there are of each."""
    return tally(f"{row['rate']:g}" if "rate" in row else None for row in rows)


def _kept(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        f"Keep: all answers stay in {_kept_by(rows)}; runs of {rows[0]['steps']} steps at each rate: "
        f"{_rates(rows)}; {interval_of(rows, 'without_gradient')} of {rows[0]['tensors']} tensors have no gradient."
    ]


def _changed(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        f"Change one answer: done in {share(row['first'] for row in rows)} runs, "
        f"{interval(row['others_lost'] for row in rows)} others lost; before it "
        f"{interval(row['without_gradient'] for row in rows)} of {rows[0]['tensors']} tensors have no gradient. "
        f"Best rates: {_rates(rows)}; ended by: {tally(row.get('ended_by') for row in rows)}. A compiled edit "
        "changes exactly that answer."
    ]


def _returned(rows: list[Row]) -> list[str]:
    findings = []
    for noise in sorted({row["noise"] for row in rows}):
        some = [row for row in rows if row["noise"] == noise]
        hurt = [row for row in some if row["right_before"] < row["answers"]]
        came = f", {share(map(_whole, hurt))} of them came back whole" if hurt else ""
        ended = f"; ended by: {tally(row.get('ended_by') for row in hurt)}" if hurt else ""
        findings.append(
            f"Noise {noise:g}: {interval(row['right_before'] for row in some)} of {some[0]['answers']} right "
            f"before, {interval(row['right'] for row in some)} after; {len(hurt)} runs had lost some{came}{ended}."
        )
    return findings


def _judge_hypotheses(keep: list[Row], change: list[Row], hurt: list[Row]) -> list[str]:
    """A run that the budget ended is no evidence that Adam cannot."""
    still = all(row["without_gradient"] == row["tensors"] for row in keep)
    whole = sum(map(_whole, hurt))
    failed = [row for row in hurt if not _whole(row)]
    costly = [row for row in change if row["others_lost"]]
    judged: tuple[tuple[bool, list[Row], str], ...] = (
        (
            all(map(_whole, keep)) and still,
            [],
            f"all answers are kept in {_kept_by(keep)}, and {'no' if still else 'some'} tensor has a gradient",
        ),
        (bool(hurt) and not whole, failed, f"{whole} of {len(hurt)} runs that noise had hurt came back"),
        (
            len(costly) == len(change),
            costly,
            f"the change cost other answers in {share(row['others_lost'] for row in change)} runs "
            f"({sum(row['others_lost'] for row in change)} in all), and was made in "
            f"{share(row['first'] for row in change)}",
        ),
    )
    findings = []
    for number, (held, rests_on, why) in enumerate(judged, start=1):
        cut = sum(map(learning, rests_on))
        word = "not borne out" if not held else "open" if cut else "borne out"
        more = f", {cut} of those that this rests on still learning" if held and cut else ""
        findings.append(f"Hypothesis {number} is {word}: {why}{more}.")
    return findings
