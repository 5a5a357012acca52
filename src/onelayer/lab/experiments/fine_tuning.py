"""Training from constructed weights: does it keep them, come back to them after noise, change one answer?

The loss is the squared difference between the model's number and the class. At a stored token the readout is flat,
so that what lies before it gets no gradient at all; `onelayer edit` changes answers by compiling them.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group, share

QUESTION = "Does Adam keep, repair and change what was compiled into the weights?"
HYPOTHESES = (
    "All answers are right, and all gradients before the readout are exactly 0: nothing moves by itself.",
    "After noise that merges plateaus Adam does not come back, since flat units have no gradient.",
    "One changed answer costs others, where a compiled edit changes exactly one.",
)
EXTRAS = ("torch",)
N, VOCABULARY, n, CLASSES = 16, 12, 3, 4
RATE = 1e-3


def cases(preset: Preset) -> list[Case]:
    sizes = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1) if preset == "quick" else (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    steps = 200 if preset == "quick" else 5000
    parts = [("keep", 0.0), ("change", 0.0), *(("return", size) for size in sizes)]
    return [{"part": part, "noise": noise, "steps": steps} for part, noise in parts]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.export.torch import to_torch
    from onelayer.lab.trained import Budget, Task, framework, train

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
    before = train(net, task, Budget(steps=0), RATE)
    ended = train(net, task, Budget(steps=case["steps"], decay="none", check=case["steps"] + 1), RATE, seed)
    with torch.no_grad():
        said = net(torch.from_numpy(task.tokens))[..., 0].numpy()
    right = np.abs(said - wanted) <= 0.5
    others = right.ravel()[1:] if case["part"] == "change" else right.ravel()
    about = {"tensors": tensors, "without_gradient": still, "right_before": before.right, "right": ended.right}
    return [{**about, "answers": ended.answers, "first": int(right[0, 0]), "others_lost": int((~others).sum())}]


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
    line(axes, interval_by_group(noisy, "noise", "before"), "with noise, before training")
    line(axes, interval_by_group(noisy, "noise", "after"), "after training")
    axes.set(xlabel="noise, relative to the mean weight of each tensor", ylabel="share of right answers")
    if noisy:
        axes.set_xscale("log")
        axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, parts = [], {part: [r for r in rows if r["part"] == part] for part in ("keep", "change", "return")}
    if keep := parts["keep"]:
        findings.append(
            f"Keep: all answers stay in {share(row['right'] == row['answers'] for row in keep)} runs; "
            f"{interval(row['without_gradient'] for row in keep)} of {keep[0]['tensors']} tensors have no gradient."
        )
    if change := parts["change"]:
        findings.append(
            f"Change one answer: done in {share(row['first'] for row in change)} runs, "
            f"{interval(row['others_lost'] for row in change)} others lost; before it "
            f"{interval(row['without_gradient'] for row in change)} of {change[0]['tensors']} tensors have no "
            "gradient. A compiled edit changes exactly that answer."
        )
    back: dict[float, Any] = {}
    for noise in sorted({row["noise"] for row in parts["return"]}):
        some = [row for row in parts["return"] if row["noise"] == noise]
        hurt = [row for row in some if row["right_before"] < row["answers"]]
        back[noise] = share(row["right"] == row["answers"] for row in hurt)
        findings.append(
            f"Noise {noise:g}: {interval(row['right_before'] for row in some)} of {some[0]['answers']} right "
            f"before, {interval(row['right'] for row in some)} after; {len(hurt)} runs had lost some"
            f"{f', {back[noise]} of them came back whole' if hurt else ''}."
        )
    if not all(parts.values()):
        return Verdict("open", "Not every part was run.", tuple(findings))
    kept, changed = (share(r["right"] == r["answers"] for r in parts[part]) for part in ("keep", "change"))
    hurt, whole = sum(one.trials for one in back.values()), sum(one.successes for one in back.values())
    says = (
        f"Kept in {kept} runs; one answer changed without losing another in {changed}; {whole} of {hurt} runs that "
        "noise had hurt came back."
    )
    still = all(row["without_gradient"] == row["tensors"] for row in parts["keep"])
    lost = sum(row["others_lost"] for row in parts["change"])
    borne = (kept.successes == kept.trials and still, hurt > 0 and whole == 0, lost > 0)
    for number, (held, why) in enumerate(
        zip(
            borne,
            (
                f"{kept} runs keep all answers, and {'no' if still else 'some'} tensor has a gradient",
                f"{whole} of {hurt} runs that noise had hurt came back",
                f"{lost} other answers were lost, and the change was made in "
                f"{share(row['first'] for row in parts['change'])} runs",
            ),
            strict=True,
        ),
        start=1,
    ):
        findings.append(f"Hypothesis {number} is {'borne out' if held else 'not borne out'}: {why}.")
    good = [kept.successes == kept.trials, changed.successes == changed.trials, whole == hurt]
    return Verdict("yes" if all(good) else "partly" if any(good) else "no", says, tuple(findings))
