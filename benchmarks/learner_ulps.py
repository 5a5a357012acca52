"""Learners with one weight one unit in the last place off: every weight that is not 0, one after the other.

The checker refutes them with a prompt that tells them apart, or proves that the weight does not matter (it meets
only zeros). What it leaves undecided copies the flag of keys, which gets a little larger in every loop. That is the
same function, so that no prompt tells them apart: the flag is only looked at for being 0 or not. It is not proved,
but seen from the names of these weights, and by the same answers, to the last bit, on drawn prompts.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

import onelayer

#: d = 2, and 20 loops where there are any.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gd": ("gd", {}),
    "preconditioned": ("preconditioned", {"covariance": np.eye(2) + 0.5 * np.ones((2, 2))}),
    "whitening": ("whitening", {}),
    "nesterov": ("nesterov", {"penalty": 0.2}),
    "ridge, compact": ("ridge", {"penalty": 0.1}),
    "ridge, published": ("ridge", {"penalty": 0.1, "form": "published"}),
    "lasso, compact": ("lasso", {"penalty": 0.05, "form": "compact"}),
    "lasso, published": ("lasso", {"penalty": 0.05}),
    "logistic": ("logistic", {"penalty": 0.1, "knots": 5}),
    "causal_step": ("causal_step", {}),
    "mesa": ("mesa", {}),
    "recurrence": ("recurrence", {}),
}


def nudge(case: str) -> dict[str, Any]:
    """How many weights a learner has that are not 0, and what is said of it with each of them a unit larger."""
    name, options = CASES[case]
    model = onelayer.learner(name, d=2, **options)
    tensors = {key: a.copy() for key, a in model.transformer.tensors()}
    names = {i: "flag" for i, name in enumerate(model.transformer.channels or ()) if name == "flag"}
    said, same, left, asked, begun = Counter[str](), 0, [], answers(model), time.process_time()
    for key, a in tensors.items():
        for at in map(tuple, np.argwhere(a != 0)):
            other = tensors | {key: a.copy()}
            other[key][at] = np.nextafter(a[at], np.inf)
            wrong = replace(model, transformer=model.transformer.with_tensors(other))
            report = wrong.verify()
            verdict = report.claims[0].verdict
            told = report.result == "NOT VERIFIED" and "examples x = " in verdict.why
            said["refuted" if told else verdict.outcome if verdict.outcome != "refuted" else "no prompt"] += 1
            if verdict.outcome == "undecided":
                same += np.array_equal(answers(wrong), asked)
                left.append(f"{key}[{', '.join(names.get(int(i), str(i)) for i in at)}]")
    row: dict[str, Any] = {"learner": case, "tensors": len(tensors), "weights": sum(said.values())}
    row |= {"refuted by a prompt": said["refuted"], "refuted without": said["no prompt"]}
    row |= {"proved the same": said["proved"], "undecided": said["undecided"]}
    row |= {"of these same answers": same, "undecided weights": "; ".join(left)}
    return row | {"cpu each": (time.process_time() - begun) / sum(said.values())}


def answers(model: onelayer.Model) -> np.ndarray:
    """Of 100 drawn prompts of 8 examples."""
    rng = np.random.default_rng(0)
    X, y, queries = rng.uniform(-1, 1, (100, 8, 2)), rng.uniform(-1, 1, (100, 8)), rng.uniform(-1, 1, (100, 3, 2))
    if model.interface.reads == "series":
        return np.asarray(model.predict(X))
    return np.asarray(model.predict(X, (y > 0).astype(float) if model.interface.labels else y, queries))


def ulps() -> list[dict[str, Any]]:
    return [nudge(case) for case in CASES]


TABLES = {"one unit off": ulps}
