"""From a kernel to a softmax head that smooths with it, and a proved bound of how far it is from the smoother."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

from onelayer.certificates.algorithms import prove_near
from onelayer.compile.learner import as_interface, as_ledger, read_setting
from onelayer.errors import OptionError
from onelayer.learners.kernel_head import build
from onelayer.model import Model
from onelayer.problems.scripts import OPERATIONS, Script
from onelayer.problems.targets.expression import read_expression

#: Each query and key is a row of this many numbers; each knot is a neuron.
MOST_RANK, MOST_KNOTS = 64, 512


def attend(
    kernel: str,
    *,
    rank: int = 16,
    low: float = 0.0,
    high: float = 1.0,
    largest: float = 1.0,
    outputs: int = 1,
    knots: int = 65,
    dtype: Literal["float32", "float64"] = "float64",
    certify: bool = True,
) -> Model:
    """A softmax head of this rank that averages the answers of its prompt with weights exp(kernel).

    ``kernel`` is a formula of the query u and an example v, both one number in [low, high], made of + - * and
    integer powers, abs, min, max and exp; answers have ``outputs`` components up to ``largest`` in magnitude.

        smoother = onelayer.attend("-4*abs(u - v)", rank=16)
        smoother.predict(X, y, queries)

    `error_bound` is how far an answer may be from the smoother's, in real arithmetic, for every number of
    examples of the box: the claim `attends`, which the checker proves; it is infinite without ``certify``. Rank
    and knots make it smaller. `smoother.algorithm(X, y, queries)` is the smoother itself.
    """
    logit = _read_kernel(kernel)
    for name, value, least, most in (("rank", rank, 1, MOST_RANK), ("knots", knots, 2, MOST_KNOTS)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            needs = f"{name} from {least} to {most:,}"
            raise OptionError("kernel_head", needs, f"{name}={value!r:.40}", "Give such a number.")
    if rank > knots:
        needs, found = "at least as many knots as the rank", f"rank={rank}, knots={knots}"
        raise OptionError("kernel_head", needs, found, "Give more knots.")
    setting = read_setting(1, outputs, low, high, None, None, dtype, largest)
    built = build(setting, logit, int(rank), int(knots), f"a smoother with weights exp({kernel}), of rank {rank}")
    box = {"low": setting.low, "high": setting.high, "y": setting.largest}
    proof, near = prove_near(built.transformer, built.algorithm, box) if certify else (None, float("inf"))
    return Model(built.transformer, as_interface("attend", built, setting, near), as_ledger(built, proof), proof)


def _read_kernel(kernel: Any) -> Script:
    """The formula as a script that reads a query, the group q, and an example, the group x."""
    if not isinstance(kernel, str):
        raise OptionError("kernel_head", "a formula of u and v", f"{kernel!r:.40}", 'Give "-4*abs(u - v)".')
    named = re.sub(r"\bu\b", "x1", re.sub(r"\bv\b", "x2", kernel))
    _, program = read_expression(named, 2, 1)
    if len(program.outputs) != 1 or program.per != "sequence":
        needs = "one number for each pair of a query u and an example v"
        raise OptionError("kernel_head", needs, f"{kernel!r:.80}", 'Give a formula like "-4*abs(u - v)".')
    lines = []
    for word, *arguments in program.lines:
        if word == "const":
            lines.append(f"const {float(arguments[0]).hex()}")
        elif word == "x":
            lines.append("q 0" if arguments[0] == 0 else "x 0")
        elif word in OPERATIONS:
            lines.append(" ".join(map(str, (word, *arguments))))
        else:
            needs, remedy = (
                f"a kernel of {', '.join(OPERATIONS)}",
                "Write it with these; numbers may be multiplied.",
            )
            raise OptionError("kernel_head", needs, f"{word} in {kernel!r:.80}", remedy)
    return Script(tuple(lines), program.outputs)
