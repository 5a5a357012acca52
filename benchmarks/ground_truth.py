"""Models whose mechanism is known: how fast they are made and proved, and how baselines score with and without a
gauge. Directions: 1 if every channel of the stream was found. Edges: area under the curve, 0.5 is chance."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from onelayer import ground_truth as gt
from onelayer.ground_truth.baselines import probe

MODELS, SEEDS = 200, 2
RESULTS = Path(__file__).parent / "results"


def run() -> dict[str, list[dict[str, Any]]]:
    made = [make_all()]
    found = [score(gauge) for gauge in gt.GAUGES]
    figure(found, RESULTS / "ground_truth.png")
    return {"200 models, made and verified": made, "scores of the baselines, means over families and seeds": found}


def make_all() -> dict[str, Any]:
    """Families, gauges and numbers of heads in turn, a new seed for each round; every one judged by the checker."""
    kinds = list(product(gt.FAMILIES, gt.GAUGES, (1, 2)))
    start, wall, proved, wrong, answers = time.process_time(), time.perf_counter(), 0, 0, 0
    for i in range(MODELS):
        family, gauge, heads = kinds[i % len(kinds)]
        case = gt.make(family, i // len(kinds), gauge, heads)
        proved += case.proved and case.model.verify().result == "VERIFIED"
        wrong, answers = wrong + case.wrong(), answers + case.Y.size
    return {
        "models": MODELS,
        "VERIFIED": proved,
        "answers": answers,
        "wrong": wrong,
        "CPU s": time.process_time() - start,
        "s on a busy machine": time.perf_counter() - wall,
    }


def score(gauge: str) -> dict[str, Any]:
    cases = [gt.make(family, seed, gauge) for family in gt.FAMILIES for seed in range(SEEDS)]
    row: dict[str, Any] = {"gauge": gauge, "models": len(cases)}
    for name in gt.DIRECTIONS:
        row[f"{name}, directions"] = mean(gt.match_directions(gt.find(name, case), case) for case in cases)
    row["the truth, directions"] = mean(gt.match_directions(case.mechanism.readers.T, case) for case in cases)
    channel = [next(c for c in case.mechanism.channels if c.startswith("context")) for case in cases]
    probed = [gt.probe_scores(probe(case, c), case, c)[0] for case, c in zip(cases, channel, strict=True)]
    row["linear probe, correlation"] = mean(probed)
    for name in gt.EDGES:
        row[f"{name}, edges"] = mean(gt.edge_score(gt.score_edges(name, case), case) for case in cases)
    return row


def mean(values: Any) -> float:
    return float(np.nanmean(list(values)))


def figure(rows: list[dict[str, Any]], path: Path) -> None:
    """A group of bars for each baseline, a bar for each gauge."""
    from matplotlib.figure import Figure

    names = [name for name in rows[0] if name not in ("gauge", "models")]
    shown = Figure(figsize=(10, 4.2), layout="constrained")
    axes = shown.add_subplot()
    for i, row in enumerate(rows):
        axes.bar(np.arange(len(names)) + 0.2 * i - 0.3, [row[name] for name in names], 0.18, label=row["gauge"])
    axes.set_xticks(np.arange(len(names)), [name.replace(", ", "\n") for name in names])
    axes.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
    axes.set(ylim=(0, 1.05), ylabel="score", title="What the baselines find, by gauge (dotted: chance, for edges)")
    axes.legend(title="gauge", loc="upper left", bbox_to_anchor=(1, 1))
    shown.savefig(path, dpi=110)
