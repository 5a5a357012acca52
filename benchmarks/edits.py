"""Changing stored answers: time beside a new build, weights that differ, and what Adam loses on the same data.

Seconds are of CPU, of all threads. An edit is in place, with the proof of every answer after it; a new build is
of all the data, proved. Adam fine-tunes a perceptron that knows the same sequences by heart, on the changed answers
alone until they are right, and counts which of the others it still gives.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from onelayer import edit, memorize
from onelayer.compile.edit import fill_in

#: Sequences, places, classes; and how many answers are changed at once.
SIZES = ((40_000, 8, 256),)
CHANGED = (1, 100, 10_000)
FACTS, PLACES, TOKENS, CLASSES = 2_000, 4, 64, 50
STEPS = 3_000


def timed(call: Any) -> tuple[Any, float]:
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def rows_of(N: int, n: int, C: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 50_000, (N, n)), rng.integers(0, C, (N, n))
    model, built = timed(lambda: memorize(X, Y, positions=True, certify=False))
    model, proved = timed(lambda: model.certify(X, Y))
    found = []
    for count in (count for count in CHANGED if count <= N):
        at = rng.permutation(N)[:count]
        Z, wanted = Y[at].copy(), Y.copy()
        Z[:, n // 2] = (Z[:, n // 2] + 1) % C
        wanted[at] = Z
        made, seconds = timed(lambda at=at, Z=Z: edit(model, X[at], Z))
        _, filling = timed(lambda at=at, Z=Z: fill_in(model, X[at], Z))
        found.append(
            {
                "answers": N * n,
                "changed": len(made.answers),
                "in place": made.in_place,
                "weights that differ": made.n_weights,
                "of": model.n_parameters,
                "wrong": int((made.model.predict(X) != wanted).sum()),
                "proved: exactly these": made.verify(),
                "filling in, s": filling,
                "with its proof, s": seconds,
                "new build, s": built,
                "with its proof, s ": built + proved,
            }
        )
    return found


def adam() -> list[dict[str, object]]:
    """One answer per sequence; the perceptron reads the embeddings of all places."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(0, TOKENS, (2 * FACTS, PLACES)), axis=0)
    X = X[rng.permutation(len(X))[:FACTS]]
    Y = rng.integers(0, CLASSES, FACTS)
    tokens, labels = torch.tensor(X), torch.tensor(Y)
    network = nn.Sequential(
        nn.Embedding(TOKENS, 32), nn.Flatten(), nn.Linear(32 * PLACES, 512), nn.ReLU(), nn.Linear(512, CLASSES)
    )

    def train(chosen: Any, wanted: Any, rate: float) -> int:
        optimiser = torch.optim.Adam(network.parameters(), lr=rate)
        for step in range(STEPS):
            logits = network(tokens[chosen])
            if (logits.argmax(dim=1) == wanted).all():
                return step
            optimiser.zero_grad()
            nn.functional.cross_entropy(logits, wanted).backward()
            optimiser.step()
        return STEPS

    _, learned = timed(lambda: train(slice(None), labels, 3e-3))
    right = int((network(tokens).argmax(dim=1) == labels).sum())
    before = {name: a.clone() for name, a in network.state_dict().items()}
    model = memorize(X, Y, positions=True, certify=True)
    found: list[dict[str, object]] = []
    for count in (1, 10, 100):
        at = rng.permutation(FACTS)[:count]
        others = np.setdiff1d(np.arange(FACTS), at)
        changed = (Y[at] + 1) % CLASSES
        for rate in (1e-3, 1e-4):
            network.load_state_dict(before)
            steps, seconds = timed(lambda at=at, c=changed, r=rate: train(at, torch.tensor(c), r))
            said = network(tokens).argmax(dim=1).numpy()
            weights = sum(int((a != before[name]).sum()) for name, a in network.state_dict().items())
            found.append(
                {
                    "by": f"Adam, rate {rate:g}, {steps} steps",
                    "facts": FACTS,
                    "right before": right,
                    "changed": count,
                    "of these right": int((said[at] == changed).sum()),
                    "others lost": int((said[others] != Y[others]).sum()),
                    "weights that differ": weights,
                    "seconds": seconds,
                    "seconds to learn": learned,
                }
            )
        made, seconds = timed(lambda at=at, c=changed: edit(model, X[at], c))
        said = made.model.predict(X)
        found.append(
            {
                "by": f"edit, proof included: {made.verify()}",
                "facts": FACTS,
                "right before": int((model.predict(X) == Y).sum()),
                "changed": count,
                "of these right": int((said[at] == changed).sum()),
                "others lost": int((said[others] != Y[others]).sum()),
                "weights that differ": made.n_weights,
                "seconds": seconds,
                "seconds to learn": "",
            }
        )
    return found


def run() -> dict[str, list[dict[str, object]]]:
    return {"edits": [one for size in SIZES for one in rows_of(*size)], "against fine-tuning": adam()}
