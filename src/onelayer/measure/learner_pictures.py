"""Figures of a learner: answers loop by loop beside what is proved of them, along a line, or along a series."""

from __future__ import annotations

from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import MissingExtraError
from onelayer.interfaces import Examples
from onelayer.learners.bounds import factor
from onelayer.learners.built import Limit

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]
#: Examples and queries of the prompt that is drawn, values of a series, and loops at which the network is asked.
EXAMPLES, QUERIES, VALUES, LOOPS = 24, 5, 40, 60
BLUE, RED, GREY = "#4477aa", "#cc3311", "#999999"


def figure_of(model: Model) -> Any:
    """A prompt drawn at random from the box, with a fixed seed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "matplotlib", "plot") from None
    learner = model.interface_as(Examples, "a picture of its loops")
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    if learner.reads == "series":
        series(figure.add_subplot(), model, learner)
    elif learner.algorithm.steps == 1:
        line(figure.add_subplot(), model, learner)
    else:
        loops(figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2), model, learner)
    figure.suptitle(fill(f"{learner.describe()}, {model.n_parameters:,} parameters", 80))
    return figure


def prompt(learner: Examples) -> tuple[Array, Array, Array]:
    """Examples near a linear rule, or labels by its sign."""
    rng, a = np.random.default_rng(0), learner.algorithm
    X, queries = (rng.uniform(learner.low, learner.high, (n, a.x)) for n in (EXAMPLES, QUERIES))
    y = X @ rng.standard_normal((a.x, a.y)) + 0.1 * rng.standard_normal((EXAMPLES, a.y))
    y = (y > 0).astype(float) if learner.labels else y / np.abs(y).max() * learner.largest
    return X, y, queries


def answers_by_loop(model: Model, given: tuple[Array, Array, Array]) -> tuple[list[int], Array]:
    """Loops at which the network is asked, and its answers [loops, queries], first component."""
    steps = model.transformer.repeat
    at = sorted({round(float(k)) for k in np.geomspace(1, steps, LOOPS)})
    asked = [replace(model, transformer=replace(model.transformer, repeat=k), certificate=None) for k in at]
    return at, np.stack([np.reshape(one.predict(*given), (QUERIES, -1))[:, 0] for one in asked])


def loops(above: Any, below: Any, model: Model, learner: Examples) -> None:
    given = prompt(learner)
    at, answers = answers_by_loop(model, given)
    wanted = np.reshape(learner.follow(*given), (QUERIES, -1))[:, 0]
    above.plot(at, states_by_loop(learner, given)[at], color=GREY, linewidth=1.0)
    above.plot(at, answers, color=BLUE, linewidth=1.2)
    above.plot([at[-1]] * QUERIES, wanted, "o", color=BLUE, fillstyle="none")
    for colour, words in ((GREY, "the state s, component by component"), (BLUE, "answers at five queries")):
        above.plot([], [], color=colour, label=words)
    above.set(xscale="log", ylabel="state and answers")
    above.legend(frameon=False)
    apart = np.maximum(np.abs(answers - wanted).max(axis=1), np.finfo(model.transformer.dtype).eps)
    below.plot(at, apart, color=BLUE, label="distance to the algorithm's last answer")
    if (bound := bounds_by_loop(model, at)) is not None:
        below.plot(at, bound, color=RED, label="proved distance to the limit, for all examples of the box")
    if np.isfinite(learner.rounding_bound):
        words = f"proved for {model.transformer.dtype}: rounding, up to {learner.most_examples:,} examples"
        below.axhline(learner.rounding_bound, color=RED, linestyle=":", label=words)
    below.set(xscale="log", yscale="log", xlabel="loops", ylabel="distance")
    below.legend(frameon=False)


def states_by_loop(learner: Examples, given: tuple[Array, Array, Array]) -> Array:
    """[steps + 1, components] The state of the algorithm, which the tokens are proved to hold, before and after."""
    X, y, queries = (np.reshape(part, (len(part), -1)) for part in given)
    kept = len(X) - learner.judging(len(X))
    return np.array([np.ravel(s) for s in learner.algorithm.states(X[:kept], y[:kept], queries)])


def bounds_by_loop(model: Model, at: list[int]) -> Array | None:
    """What `within` proves after this many loops: the last is the claim itself."""
    claims = () if model.certificate is None else model.certificate.claims
    for claim in claims:
        if claim["type"] == "within":
            eta, a, b, late = (float.fromhex(claim[name]) for name in ("eta", "a", "b", "late"))
            shares = np.array([factor(Limit(eta, a, b, late != 0), k) for k in at])
            return np.asarray(shares / shares[-1] * model.error_bound)
    return None


def line(axes: Any, model: Model, learner: Examples) -> None:
    """Answers along the first component, the others in the middle of the box."""
    X, y, _ = prompt(learner)
    middle = (learner.low + learner.high) / 2
    queries = np.full((200, learner.algorithm.x), middle)
    queries[:, 0] = np.linspace(learner.low, learner.high, 200)
    axes.plot(X[:, 0], y[:, 0], "o", color=GREY, fillstyle="none", label="examples")
    axes.plot(queries[:, 0], np.reshape(model.predict(X, y, queries), (200, -1))[:, 0], color=BLUE, label="answers")
    axes.set(xlabel="first component of the query", ylabel="answer, first component")
    axes.legend(frameon=False)


def series(axes: Any, model: Model, learner: Examples) -> None:
    """A damped oscillation, and at each value the forecast of the next."""
    width, t = learner.algorithm.y, np.arange(VALUES)
    S = np.stack([np.cos(0.4 * t + c) * 0.97**t for c in range(width)], axis=1) * learner.high
    forecast = np.reshape(model.predict(S), (VALUES - learner.lags, -1))[:, 0]
    axes.plot(t, S[:, 0], "o", color=GREY, fillstyle="none", label="values")
    axes.plot(t[learner.lags :] + 1, forecast, color=BLUE, label="forecast from those before")
    axes.set(xlabel="time", ylabel="first component")
    axes.legend(frameon=False)
