"""What survives in fewer bits: the model is run as a plain runtime would run it, and its answers counted.

How it is run, and what is rounded when, is said in measure/half.py and, of 8 bits, in measure/int8.py. It is
measured, in ONE order of evaluation, and not proved: another runtime, or another order, may lose an answer that
survives here, or keep one that does not. Nothing of a certificate for float32 or float64 carries over.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from onelayer.errors import OptionError, PrecisionError
from onelayer.interfaces import Examples
from onelayer.measure.half import half_outputs
from onelayer.measure.int8 import int8_outputs, quantise_weights
from onelayer.network.formats import LIMITS, Half, nearest
from onelayer.network.weights import Array, Transformer
from onelayer.problems.answers import Answers, in_classes_of, read_answers
from onelayer.problems.scopes import answer_places

if TYPE_CHECKING:
    from onelayer.model import Model

#: What a model can be cast to.
Cast = Literal["float16", "bfloat16", "int8"]
#: Above this many products of a weight with an answer a sample is asked: some fifteen seconds on two cores.
WORK = 1 << 31
#: The sample has this many.
ANSWERS = 4096


@dataclass(frozen=True)
class CastReport:
    """How many answers come back when weights and every result are rounded to the dtype, of int8 weights and inputs
    of full layers; measured, not proved.

    Classes must come back equal; reals equal to the answer as the dtype holds it, up to the error of a readout that
    interpolates, or the tolerance of a function. A class is a whole number inside the model: float16 holds all of
    them up to 2048, bfloat16 up to 256, so not all of more classes can survive.
    """

    dtype: Cast
    right: int
    asked: int  # how many answers were asked for: all, or evenly spaced ones with the first and the last
    total: int
    first_wrong: str  # the first wrong answer among those asked for, as `recall` names it
    largest_weight: float  # in magnitude, before rounding
    weights_changed: int  # by rounding
    weights: int

    @property
    def perfect(self) -> bool:
        return self.right == self.asked

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        asked = f"{self.asked:,}" if self.asked == self.total else f"{self.asked:,} asked of {self.total:,}"
        first = f"\nthe first that does not: {self.first_wrong}" if self.first_wrong else ""
        limit = "" if self.dtype == "int8" else f" of at most {LIMITS[self.dtype]:g}"
        return (
            f"{self.dtype}: {self.right:,} of {asked} answers survive (measured); {self.weights_changed:,} of "
            f"{self.weights:,} weights rounded, the largest {self.largest_weight:g}{limit}{first}"
        )


def cast(
    model: Model, dtype: Cast, X: Any, Y: Any, lengths: Any = None, *, answers: int | None = ANSWERS
) -> CastReport:
    """Round the model to float16, bfloat16 or int8 (its full layers, as dynamic quantisation does), ask it for the
    answers Y at X, and name the first that is lost.

    Where asking for all of them would take long (the network is evaluated densely: answers times weights), only
    ``answers`` evenly spaced ones are asked for, the first and the last among them; None asks for all.
    A weight beyond the range of the dtype is refused.
    """
    if not isinstance(dtype, str) or dtype not in get_args(Cast):
        raise OptionError(
            "memorize",
            f"a dtype to cast to among {get_args(Cast)}",
            f"dtype={dtype!r}",
            "Choose one of them; for float32, memorise in it.",
        )
    if answers is not None and answers < 2:
        raise OptionError(
            "memorize", "at least 2 answers to ask for", f"answers={answers!r}", "Ask for more, or None for all."
        )
    if isinstance(model.interface, Examples):
        needs, found = "stored answers to cast", f"this model {model.interface.says}"
        raise OptionError("data", needs, found, "Build it with dtype='float32', or export it to PyTorch.")
    sequences = model.read(X, lengths)
    wanted = read_answers(Y, sequences, model.form.scope)
    in_classes_of(model.form, wanted)  # refuses answers of another kind
    network = model.transformer
    rounded, changed, largest = _quantised(network) if dtype == "int8" else round_weights(network, dtype)
    total = len(wanted.rows)
    dense = sum(layer.weight.size for layer in (*rounded.feedforward, *rounded.readout))
    at = np.arange(total)
    if answers is not None and total > answers and total * dense > WORK:
        at = np.unique(np.rint(np.linspace(0, total - 1, answers)).astype(np.int64))
    i, k = answer_places(model.form.scope, at, sequences.n, sequences.lengths)
    asked = sequences.tokens, sequences.lengths, i, k
    given = int8_outputs(rounded, *asked) if dtype == "int8" else half_outputs(rounded, dtype, *asked)
    right = _compare(model, dtype, wanted, at, given)
    first = ""
    if not right.all():
        lost = int(np.argmin(right))
        first = f"sequence {i[lost]}"
        if model.form.scope == "token":
            first += f", token {k[lost]} ({sequences.show(int(i[lost]), int(k[lost]))})"
    return CastReport(
        dtype, int(right.sum()), len(at), total, first, largest, changed, model.transformer.n_parameters
    )


def _quantised(model: Transformer) -> tuple[Transformer, int, float]:
    largest = max((float(np.abs(array).max(initial=0)) for _, array in model.tensors()), default=0.0)
    return *quantise_weights(model), largest


def round_weights(model: Transformer, dtype: Half) -> tuple[Transformer, int, float]:
    """The model with every weight rounded, held in float32; how many changed; the largest magnitude before."""
    tensors, changed, largest = {}, 0, 0.0
    limit = LIMITS[dtype]
    for name, array in model.tensors():
        top = float(max(array.max(initial=0), -array.min(initial=0)))
        largest = max(largest, top)
        if top > limit:
            at = np.unravel_index(np.argmax(np.abs(array)), array.shape)
            wider = 'Use dtype="bfloat16", which reaches 3.4e+38, or keep' if dtype == "float16" else "Keep"
            raise PrecisionError(
                "memorize",
                f"weights of magnitude at most {limit:g}, the largest number of {dtype}",
                f"the tensor {name} holds {array[at]:.10g} at {tuple(map(int, at))}",
                f"{wider} the model in {model.dtype}.",
            )
        tensors[name] = nearest(array, dtype)
        changed += int(np.count_nonzero(tensors[name] != array))
    return model.with_tensors(tensors), changed, largest


def _compare(model: Model, dtype: Cast, wanted: Answers, at: Array, given: Array) -> Array:
    """Which answers are right, as `recall` judges it, the dtype being this one."""
    rows = in_classes_of(model.form, wanted)[at]
    if model.has_logits:
        return np.asarray(np.isfinite(given).all(axis=1) & (given.argmax(axis=1) == rows[:, 0]))
    if model.form.classes is not None:
        return np.asarray((np.rint(given) == rows).all(axis=1))
    allowed = model.interface.allowed_error
    held = rows.astype(given.dtype) if dtype == "int8" else nearest(rows, dtype)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(given - held) <= allowed).all(axis=1))
