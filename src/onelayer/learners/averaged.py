"""One softmax head that averages the answers of its prompt: what all kernel smoothers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.learners.built import Setting, layer, unit
from onelayer.network import Transformer
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Array, Script, write


def width_of(setting: Setting, held: int, blank: int = 0) -> int:
    """Of tokens [held, y, o, blank, flag]."""
    return held + 2 * setting.outputs + blank + 1


def average(
    setting: Setting,
    names: tuple[str, ...],
    held: Callable[[list[Any]], list[Any]],
    heads: tuple[Array, Array],
    logit: Script,
    blank: tuple[str, ...] = (),
    feedforward: list[tuple[Array, Array]] | None = None,
) -> tuple[Transformer, Algorithm]:
    """The head and its algorithm: y is averaged into o, with the weights of queries and keys ``heads``. ``held``
    is what a token has of x, under ``names``; what the feed-forward part writes is blank at the start."""
    d, q, width = setting.d, setting.outputs, width_of(setting, len(names), len(blank))
    y, o = (list(range(len(names) + at * q, len(names) + (at + 1) * q)) for at in (0, 1))
    net = layer(
        setting,
        [(*heads, unit(width, *y), unit(width, *o).T)],
        "softmax",
        feedforward=feedforward or [],
        readout=[(unit(width, *o), np.zeros(q))],
        channels=(*names, *(f"{c}{i}" for c in "yo" for i in range(q)), *blank, "flag"),
        context=width - 1,
    )
    nothing = [0.0] * len(blank)
    algorithm = Algorithm(
        d,
        q,
        q,
        1,
        (0.0,) * q,
        "softmax",
        term=write(lambda y: y, y=q),
        step=write(lambda m: m, m=q),
        answer=write(lambda s: s, s=q),
        example=write(lambda s, x, y: [*held(x), *y, *s, *nothing, 1.0], s=q, x=d, y=q),
        query=write(lambda s, x: [*held(x), *([0.0] * q), *s, *nothing, 0.0], s=q, x=d),
        logit=logit,
    )
    return net, algorithm
