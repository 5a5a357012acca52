"""Loops of the library's learners as functions of their own numbers, on tasks with second moments that differ.

A loop is one block with the same few numbers at every turn: step sizes, momentum, a preconditioner. Here it is
computed from w itself, so that torch can train those numbers; `settle` finds the best of those that a learner can
be compiled with, without Adam. Inputs are uniform, components of different sizes; answers are <w, x> with noise, or
labels that are 1 with the probability of <w, x>.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab import prompts
from onelayer.lab.networks import framework
from onelayer.lab.prompts import Weights

Array = NDArray[Any]
#: Components, examples, queries of a label; largest of each component; noise of y, and spread of a label's w.
d, N, QUERIES = 5, 20, 8
SCALES = np.geomspace(1.0, 0.3, d)
NOISE, STEEP = 0.3, 4.0
#: Variances of the components of x.
VARIANCES = SCALES**2 / 3
#: The interpolated sigmoid of `learner("logistic")`: as many knots between -END and END.
KNOTS, END = 33, 8.0
#: A learner's momentum is below 1.
FASTEST = 0.999


@dataclass(frozen=True)
class Loop:
    """What is trained, how an answer comes of it, and what of it a learner can be asked for."""

    first: dict[str, tuple[float, float, tuple[int, ...]]]  # of each: middle and spread of its first values, shape
    run: Callable[[Weights, Any, int], Any]  # numbers, tasks, loops: errors of the answers
    numbers: Callable[[Any], Weights]  # of free ones, such that a learner has them
    starts: tuple[tuple[float, ...], ...]  # free ones to settle from


def tasks(name: str, batch: int) -> Callable[[Any], Any]:
    """Examples x [B, N, d], y [B, N], true w [B, d], and queries [B, QUERIES, d]."""
    torch = framework()
    scales = torch.from_numpy(SCALES.astype(np.float32))

    def draw(generator: Any) -> Any:
        x = (2 * torch.rand((batch, N + QUERIES, d), generator=generator) - 1) * scales
        w = torch.randn((batch, d), generator=generator)
        chance = torch.randn((batch, N), generator=generator)
        if name == "logistic":
            w = STEEP * w
            p = torch.sigmoid((x[:, :N] @ w[..., None])[..., 0])
            y = (torch.special.ndtr(chance) < p).float()
        else:
            y = (x[:, :N] @ w[..., None])[..., 0] + NOISE * chance
        return x[:, :N], y, w, x[:, N:]

    return draw


def loss_of(name: str, loops: int) -> Callable[[Weights, Any], Any]:
    """Mean square of an answer's distance to <w, x>, or to the probability of a label."""

    def loss(t: Weights, given: Any) -> Any:
        return LOOPS[name].run(read(t), given, loops).square().mean()

    return loss


def start(name: str, seed: int) -> Weights:
    """First numbers: step sizes around 0.4, no momentum, nothing shrunk; for a preconditioner a small matrix."""
    first = LOOPS[name].first
    found = prompts.start({key: (shape, spread) for key, (_, spread, shape) in first.items()}, seed)
    for key, tensor in found.items():
        tensor.data += first[key][0]
    return found


def read(t: Weights) -> Weights:
    """The numbers of a loop; of those that may end at any size, the logarithm is trained."""
    return {key.removeprefix("log_"): part.exp() if key.startswith("log_") else part for key, part in t.items()}


def _answers(found: Any, given: Any) -> Any:
    return _times(given[3], found - given[2])


def _times(matrix: Any, vector: Any) -> Any:
    return (matrix @ vector[..., None])[..., 0]


def _moments(given: Any) -> tuple[Any, Any]:
    x, y = given[:2]
    return x.transpose(1, 2) @ x / N, _times(x.transpose(1, 2), y) / N


def _accelerate(t: Weights, given: Any, loops: int) -> Any:
    G, c = _moments(given)
    w = before = 0 * c
    for _ in range(loops):
        u = t["a"] * w - t["b"] * before
        w, before = u + t["eta"] * (c - _times(G, u)), w
    return _answers((t["a"] - t["b"]) * w, given)


def _precondition(t: Weights, given: Any, loops: int) -> Any:
    G, c = _moments(given)
    w = 0 * c
    for _ in range(loops):
        w = w + (c - _times(G, w)) @ t["A"].T
    return _answers(w, given)


def _whiten(t: Weights, given: Any, loops: int) -> Any:
    """Inputs are M x, and a second head takes part of their second moments off them."""
    torch = framework()
    G, c = _moments(given)
    w, M = 0 * c, torch.eye(d, dtype=c.dtype).expand(len(c), d, d)
    for _ in range(loops):
        back = M.transpose(1, 2) @ M
        w, M = w + t["eta"] * _times(back, c - _times(G, w)), M - t["gamma"] * (M @ G @ back)
    return _answers(w, given)


def _classify(t: Weights, given: Any, loops: int) -> Any:
    torch, (x, y, true, queries) = framework(), given
    w = 0 * true
    for _ in range(loops):
        w = (1 - t["shrink"]) * w - t["eta"] * _times(x.transpose(1, 2), _sigmoid(_times(x, w)) - y) / N
    return _sigmoid(_times(queries, w)) - torch.sigmoid(_times(queries, true))


def _sigmoid(u: Any) -> Any:
    """Linear between its knots, as the learner has it."""
    torch = framework()
    places = torch.linspace(-END, END, KNOTS, dtype=u.dtype)
    values = torch.sigmoid(places)
    at = ((u.detach() + END) * (KNOTS - 1) / (2 * END)).floor().clamp(0, KNOTS - 2).long()
    share = ((u.clamp(-END, END) - places[at]) / (places[1] - places[0])).clamp(0, 1)
    return values[at] + share * (values[at + 1] - values[at])


def _nesterov_numbers(free: Any) -> Weights:
    eta, penalty, momentum = free[0].exp(), free[1].exp(), FASTEST * free[2].sigmoid()
    keep = 1 / (1 + eta * penalty)
    return {"eta": eta, "a": keep * (1 + momentum), "b": keep * momentum}


def _logistic_numbers(free: Any) -> Weights:
    return {"eta": free[0].exp(), "shrink": (free[0] + free[1]).exp()}


def _symmetric(free: Any) -> Weights:
    root = free.reshape(d, d)
    return {"A": root @ root.T}


def _number(*names: str) -> dict[str, tuple[float, float, tuple[int, ...]]]:
    return {name: (-1.0, 0.5, (1,)) if name.startswith("log_") else (0.0, 0.05, (1,)) for name in names}


LOOPS = {
    "nesterov": Loop(
        _number("log_eta", "b") | {"a": (1.0, 0.05, (1,))},
        _accelerate,
        _nesterov_numbers,
        tuple((math.log(2.0), math.log(0.03), m) for m in (-1.0, 1.0)),
    ),
    "preconditioned": Loop(
        {"A": (0.0, 0.1, (d, d))},
        _precondition,
        _symmetric,
        (tuple(np.diag(VARIANCES**-0.5).ravel() / 2), tuple(np.eye(d).ravel())),
    ),
    "whitening": Loop(
        _number("log_eta", "log_gamma"),
        _whiten,
        lambda free: {"eta": free[0].exp(), "gamma": free[1].exp()},
        tuple((math.log(eta), math.log(eta / 10)) for eta in (1.0, 8.0)),
    ),
    "logistic": Loop(
        _number("log_eta", "shrink"),
        _classify,
        _logistic_numbers,
        tuple((math.log(eta), math.log(0.01)) for eta in (4.0, 16.0)),
    ),
}


def settle(name: str, loops: int, given: Any, turns: int = 40) -> dict[str, Array]:
    """The numbers with the least loss on these tasks among those that the learner can be compiled with.

    By quasi-Newton steps from each start; what ends not finite is left out.
    """
    torch, loss = framework(), loss_of(name, loops)
    given = tuple(part.double() for part in given)
    best, kept = math.inf, None
    for start in LOOPS[name].starts:
        free = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        how = torch.optim.LBFGS([free], max_iter=turns, line_search_fn="strong_wolfe")

        def ask(free: Any = free, how: Any = how) -> Any:
            how.zero_grad()
            found = loss(LOOPS[name].numbers(free), given)
            found.backward()
            return found

        how.step(ask)
        with torch.no_grad():
            numbers = LOOPS[name].numbers(free)
            found = float(loss(numbers, given))
        if found < best:
            best, kept = found, {key: value.double().numpy() for key, value in numbers.items()}
    assert kept is not None
    return kept
