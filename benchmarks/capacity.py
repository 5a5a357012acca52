"""Bits a parameter against the number of classes: compiled, trained with as many parameters, and what floats hold.

The trained network is one layer of attention with a feed-forward part, of about as many parameters as the compiled
one, on the same data. Its answers are the bits of the class, so that many classes cost it few outputs. What it
stores is counted as in arXiv 2505.24832: the bits of all answers less the bits that its probabilities leave open,
and never less than 0. Rates are searched; each run has ONELAYER_BENCH_TRAINING CPU seconds of one core, over which
its rate falls to a fiftieth: none is ended before. The lines of large compiled models are read from density.json.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from onelayer import memorize

CLASSES = (2, 16, 256, 65_536)
SEQUENCES, PLACES, WIDTH = 256, 16, 16
RATES = (0.03, 0.01, 0.003)
SECONDS = float(os.environ.get("ONELAYER_BENCH_TRAINING", "60"))
BATCH, LOOKED_AT = 64, 50
#: A float32 has this many bits.
BOUND = 32
RESULTS = Path(__file__).parent / "results"


def train(X: Any, Y: Any, bits: int, parameters: int, rate: float) -> dict[str, object]:
    import torch

    from onelayer.lab.networks import Net, Shape, Task, count_parameters, fill

    torch.set_num_threads(1)
    wanted = torch.tensor((Y[..., None] >> np.arange(bits)) & 1, dtype=torch.float32)
    tokens, task = torch.tensor(X), Task(X, wanted.numpy(), "reals")
    shape = fill(Shape(width=8, norm=True), task, parameters)
    net = Net(shape, task, seed=0)
    optimiser = torch.optim.Adam(net.parameters(), lr=rate)
    loss_of, rng = torch.nn.BCEWithLogitsLoss(), np.random.default_rng(0)
    start, steps, history = time.process_time(), 0, []
    while (spent := time.process_time() - start) < SECONDS:
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - 0.98 * spent / SECONDS)
        some = torch.tensor(rng.permutation(len(X))[:BATCH])
        loss = loss_of(net(tokens[some]), wanted[some])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        steps += 1
        if steps % LOOKED_AT == 0:
            with torch.no_grad():
                history.append(float(loss_of(net(tokens), wanted)))
    with torch.no_grad():
        out = net(tokens)
    open_bits = min([*history, float(loss_of(out, wanted))]) / np.log(2)
    right = float(((out > 0) == (wanted > 0.5)).all(dim=-1).float().mean())
    own = count_parameters(shape, task)
    stored = max(0.0, 1 - open_bits) * wanted.numel()
    return {
        "model": f"trained, width {shape.width}, rate {rate}",
        "parameters": own,
        "answers right": right,
        "bits / parameter": stored / own,
        "CPU s": time.process_time() - start,
        "steps": steps,
    }


def rows() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for C in CLASSES:
        rng = np.random.default_rng(C)
        X = rng.standard_normal((SEQUENCES, PLACES, WIDTH), dtype=np.float32)
        Y, bits = rng.integers(0, C, (SEQUENCES, PLACES)), int(np.log2(C))
        start = time.process_time()
        model = memorize(X, Y, certify=False)
        spent = time.process_time() - start
        compiled = {
            "model": "compiled",
            "parameters": model.n_parameters,
            "answers right": float((model.predict(X) == Y).mean()),
            "bits / parameter": Y.size * bits / model.n_parameters,
            "CPU s": spent,
            "steps": 0,
        }
        for row in (compiled, *(train(X, Y, bits, model.n_parameters, rate) for rate in RATES)):
            found.append({"classes": C, "answers": Y.size, **row})
            print(found[-1], flush=True)
    return found


def figure(found: list[dict[str, Any]], path: Path) -> None:
    """One picture: classes along the axis, bits a parameter upwards, both logarithmic."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7, 4.4), layout="constrained")
    axes = picture.subplots()
    for name, kind in (("compiled", "o-"), ("trained", "s-")):
        best = [
            max(r["bits / parameter"] for r in found if r["classes"] == C and r["model"].startswith(name))
            for C in CLASSES
        ]
        axes.plot(CLASSES, best, kind, label=f"{name}, {found[0]['answers']:,} answers, equal parameters")
    recorded = RESULTS / "density.json"
    if recorded.exists():
        table = json.loads(recorded.read_text())["tables"]["bits for any number of classes"]
        for M in sorted({row["answers"] for row in table}):
            own = [(row["classes"], row["bits / parameter"]) for row in table if row["answers"] == M]
            if len(own) > 1:
                axes.plot(*zip(*own, strict=True), "o--", alpha=0.6, label=f"compiled, {M:,} answers")
    axes.axhline(BOUND, color="black", label="a float32 has 32 bits")
    axes.axhspan(2, 3.6, color="grey", alpha=0.2, label="language models, trained (2 to 3.6, published)")
    axes.set(xscale="log", yscale="log", xlabel="classes", ylabel="bits stored a parameter")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    picture.savefig(path, dpi=120)


def run() -> dict[str, list[dict[str, object]]]:
    found = rows()
    RESULTS.mkdir(exist_ok=True)
    figure(found, RESULTS / "capacity.png")
    return {f"bits a parameter, compiled and trained, at most {SECONDS:g} CPU s a run": found}
