"""From a function of two numbers to one attention layer, judged by the mean of its errors: `compile_in_mean`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.functions import as_entry, prove
from onelayer.compile.asked import request_for
from onelayer.errors import HypothesisError
from onelayer.functions.attention_first import Coded, construct
from onelayer.gadgets.ridges import Ridges
from onelayer.gadgets.stacks import cover
from onelayer.interfaces import Function
from onelayer.ledger import Constant, Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.problems.answers import AnswerForm
from onelayer.problems.targets import Kind, Target
from onelayer.problems.targets.box import Box

Array = NDArray[Any]
NAME = "attention_first"
#: Pairs on which the largest error is measured, and those of a finite tolerance that a bound is not compared with.
TRIED, ANY = 1 << 14, 2.0**100


def compile_in_mean(
    target: Any,
    *,
    cells: int = 2,
    steepness: float | None = None,
    kind: Kind | None = None,
    seed: int = 0,
    on_step: Callable[[str], None] | None = None,
) -> Model:
    """A model of a function of two numbers in [-1, 1], attention first, with a proof of its mean square error.

    target     as for `approximate`, of two tokens of one number: "x + 8*(x - mean(y))**3", for example
    cells      of [-1, 1] that the heads tell apart; steepness, of the steepest heads: 80 a cell
    kind       of a function: "equivariant" or "invariant"
    seed       of the pairs on which the largest error is measured
    on_step    called with a line of text at each stage

    What is proved is the claim lp_error with p = 2: the mean over the square of the squared error of the token that
    is worse. Of a function that no program writes nothing is proved.
    """
    say = on_step or (lambda _: None)
    box: dict[str, Any] = {"n": 2, "low": -1.0, "high": 1.0, "dtype": np.float64, "kind": kind}
    request = request_for(target, **box, tolerance=ANY, seed=seed, say=say)
    of = request.target
    _needs_equal_tokens(of)
    say(f"building {cells} cells")
    made = construct(lambda x, other: _at_first(of, x, other), cells, steepness)
    say("asking the checker")
    tensors = {"tokens": np.zeros((1, 2, 1)), "answers": of.evaluate(np.zeros((1, 2, 1))).reshape(-1, 1)}
    certificate = prove(made.transformer, tensors, _entries(of), ANY, lambda *_: None)
    found = np.inf if certificate is None else float.fromhex(str(certificate.claims[-1]["bound"]))
    square = Box.of_sides(2, request.sides, request.dtype)
    function = Function(
        form=AnswerForm(of.per, None, 1, False),
        target=of,
        construction=NAME,
        low=-1.0,
        high=1.0,
        tolerance=ANY,
        budget=Ledger((Constant("largest", np.inf, "measured, not proved: the bound is one of the mean"),)),
        error_bound=np.inf,
        left_out=0.0,
        measured_error=np.nan,
        samples=TRIED,
        box=square,
        mean_bound=found,
    )
    readout = Ridges.parse(made.transformer.readout)
    assert readout is not None
    model = Model(made.transformer, function, _ledger(of, made, cells), certificate, cover((), (readout,)))
    say("measuring the largest error")
    measured = largest_error(model.errors, square, TRIED, seed)[0]
    return replace(model, interface=replace(function, measured_error=measured))


def _at_first(of: Target, x: Array, other: Array) -> Array:
    """The answer at token x of the pairs (x, other)."""
    return np.asarray(of.evaluate(np.stack([x, other], 1)[:, :, None]).reshape(len(x), -1)[:, 0])


def _needs_equal_tokens(of: Target) -> None:
    if of.kind == "ordered" or of.components != 1:
        found = f"{of.name!r} is {of.kind} and has {of.components} components"
        needs = "one number as the answer, which moves with its token"
        raise HypothesisError(NAME, needs, found, "Use `approximate`, which puts layers before attention.")


def _entries(of: Target) -> tuple[dict[str, Any], ...]:
    """The mean square in real numbers and in float64. Cells of radius 0 leave no input out."""
    if of.program is None:
        return ()
    box = {"radius": (0.0).hex(), "low": (-1.0).hex(), "high": (1.0).hex(), "target": as_entry(of, 0.0)}
    common = {"type": "lp_error", "scope": of.per, **box, "p": (2.0).hex()}
    return tuple(common | {"arith": arith} for arith in ("real", "float64"))


def _ledger(of: Target, made: Coded, cells: int) -> Ledger:
    return Ledger(
        (
            Constant("target", of.name, of.says),
            Constant("construction", NAME, "no layer stands before attention"),
            Constant("cells", cells, "of [-1, 1], told apart but on a share of the square"),
            Constant("steepest", float(made.heads.slope.max()), "slope of the steepest heads"),
            Constant("heads", made.heads.count, "with query biases, on a stream of width 1"),
            Constant("knots", len(made.knots), "of the readout, fitted by least squares"),
        )
    )
