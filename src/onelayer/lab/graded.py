"""A trainer with grading: components of tokens are multiplied by numbers of their own before the projections.

The layer gives three signs of a sequence: softmax attention without residual, ReLU units and a linear map, averaged
over tokens. Grading by d is a plain layer with rows d W: under SGD on graded weights the rows of the plain layer
move with the rate d^2, under Adam (whose steps do not know the size of a gradient) with the rate d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError
from onelayer.lab.networks import framework, one_thread

Array = NDArray[Any]
Optimiser = Literal["sgd", "adam"]
#: Numbers that the projections give, ReLU units, and outputs.
SIZE, UNITS, SIGNS = 8, 16, 3
NAMES = ("W_Q", "W_K", "W_V")
#: Steps between two looks at the answers.
CHECK = 1


@dataclass(frozen=True)
class Grading:
    """Factors of the components; ``learned`` trains them, ``absorbed`` trains the plain layer with row rates."""

    factors: Array
    learned: bool = False
    absorbed: bool = False


@dataclass(frozen=True)
class Taken:
    """Steps to the accuracy that was asked for, None if it was not reached; and what tokens see at the end."""

    steps: int | None
    accuracy: float
    weights: dict[str, Array]


def train_graded(
    grading: Grading,
    data: tuple[Array, Array],
    test: tuple[Array, Array],
    optimiser: Optimiser,
    rate: float,
    steps: int,
    seed: int,
    wanted: float = 0.99,
) -> Taken:
    """Full batches of tokens [N, n, d] with signs [N, 3] that are 0 or 1, until test sequences are right."""
    if not np.isfinite(grading.factors).all() or (grading.factors <= 0).any():
        raise OptionError("grading", "factors above 0", f"{grading.factors.tolist()}", "Give one a component.")
    torch = framework()
    parameters, groups = _parameters(torch, grading, optimiser, rate, seed)
    stepper = torch.optim.SGD(groups) if optimiser == "sgd" else torch.optim.Adam(groups, eps=0.0)
    X, y, Z, right = (torch.from_numpy(a) for a in (*data, *test))
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    accuracy, reached = 0.0, None
    with one_thread(torch):
        for step in range(steps + 1):
            if step % CHECK == 0:
                with torch.no_grad():
                    accuracy = float(((forward(torch, parameters, Z) > 0) == (right > 0.5)).all(1).double().mean())
                if accuracy >= wanted:
                    reached = step
                    break
            if step < steps:
                stepper.zero_grad()
                loss_of(forward(torch, parameters, X), y).backward()
                stepper.step()
    return Taken(reached, accuracy, {name: _seen(parameters, name).detach().numpy() for name in NAMES})


def forward(torch: Any, p: dict[str, Any], X: Any) -> Any:
    """Logits [N, 3]."""
    q, k, v = (X @ _seen(p, name) for name in NAMES)
    weights = torch.softmax(q @ k.transpose(-1, -2) / SIZE**0.5, dim=-1)
    units = torch.relu(weights @ v @ p["W_1"] + p["b_1"])
    return (units @ p["W_2"] + p["b_2"]).mean(1)


def _seen(p: dict[str, Any], name: str) -> Any:
    """The projection of plain tokens: graded rows, or rows that have absorbed their grades."""
    if isinstance(p[name], list):
        return framework().stack(p[name])
    return p["grades"][:, None] * p[name]


def _parameters(
    torch: Any, grading: Grading, optimiser: Optimiser, rate: float, seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All tensors by name, and groups of those that are trained with their rates."""
    rng = np.random.default_rng([seed, 48])
    d, factors = len(grading.factors), grading.factors.astype(np.float64)
    first = {name: rng.normal(size=(d, SIZE)) / d**0.5 for name in NAMES}
    rest = {"W_1": rng.normal(size=(SIZE, UNITS)) * (2 / SIZE) ** 0.5, "b_1": np.zeros(UNITS)}
    rest |= {"W_2": rng.normal(size=(UNITS, SIGNS)) / UNITS**0.5, "b_2": np.zeros(SIGNS)}

    def trained(a: Array) -> Any:
        return torch.tensor(a, requires_grad=True)

    p = {name: trained(a) for name, a in rest.items()}
    shared = list(p.values())
    groups = [{"params": shared, "lr": rate}]
    if grading.absorbed:
        p |= {name: [trained(factors[i] * a[i]) for i in range(d)] for name, a in first.items()}
        faster = factors ** (2 if optimiser == "sgd" else 1)
        groups += [{"params": [p[name][i] for name in NAMES], "lr": rate * faster[i]} for i in range(d)]
        return p, groups
    p |= {name: trained(a) for name, a in first.items()}
    p["grades"] = torch.tensor(factors, requires_grad=grading.learned)
    shared += [p[name] for name in (*NAMES, *(("grades",) if grading.learned else ()))]
    return p, groups
