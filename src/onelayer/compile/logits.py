"""Logits behind a class number: the same model; its answer is the class with the largest output."""

from __future__ import annotations

from dataclasses import replace

from onelayer.certificates.certificate import certify_data
from onelayer.errors import OptionError
from onelayer.gadgets.logits import MARGIN, Logits
from onelayer.gadgets.stacks import Covered
from onelayer.ledger import Constant, Ledger
from onelayer.model import Model
from onelayer.network.formats import FORMATS
from onelayer.search.problem import Problem


def with_logits(model: Model) -> Model:
    """The same model with one logit for each class, in the order of ``model.form.classes``, instead of its number.

    Two numbers a class are added (three, of more than 4,096 classes in float32), whatever the readout is. The logit
    of the answer exceeds every other by 32 at least. If the model was proved, the new one is, too: `argmax`.

    >>> from onelayer import memorize
    >>> model = with_logits(memorize([["river", "bank"], ["bank", "robber"]], [["b", "c"], ["d", "a"]]))
    >>> model.logits([["robber", "bank"]])[0].tolist()
    [[0.0, -32.0, -128.0, -288.0], [0.0, 160.0, 256.0, 288.0]]
    """
    if model.has_logits:
        return model
    if model.form.classes is None:
        needs, found = "answers that are classes, for logits", f"this model {model.interface.says}"
        remedy = "Its outputs are what they are; those of a text are probabilities already."
        raise OptionError("memorize", needs, found, remedy)
    if model.arithmetic in FORMATS:
        needs, found = "a model in float32 or float64, for logits", f"this one is made to run in {model.arithmetic}"
        remedy = (
            'Memorise the data with dtype="float32", or take the class numbers: to_torch and to_onnx give them.'
        )
        raise OptionError("memorize", needs, found, remedy)
    made = append_logits(model)
    if model.certificate is None:
        return made
    return replace(made, certificate=certify_data(made, model.certificate.data))


def append_logits(model: Model) -> Model:
    """Without a proof. One class alone is right whatever its logit is: its number, 0, is one."""
    classes, transformer = model.form.classes, model.transformer
    assert classes is not None
    if len(classes) < 2:
        return model
    gadget = Logits.of(len(classes), transformer.dtype)
    start = len(transformer.readout)
    covered = Covered("readout", start, start + len(gadget.dense), gadget.kind)
    larger = replace(transformer, readout=(*transformer.readout, *gadget.dense))
    sizes = {"parameters": larger.n_parameters, "bytes": larger.n_parameters * larger.dtype.itemsize}
    lines = [replace(line, value=sizes.get(line.name, line.value)) for line in model.ledger.lines]
    said = Constant(
        "logit_margin", MARGIN, f"{gadget.numbers:,} numbers turn the class number into logits this far apart"
    )
    return replace(
        model,
        transformer=larger,
        gadgets=(*model.gadgets, covered),
        ledger=Ledger((*lines, said)),
        certificate=None,
    )


def count_logits(problem: Problem) -> int:
    """Numbers that logits add to a model of this problem."""
    classes = problem.answers.form.classes
    if not problem.logits or classes is None or len(classes) < 2:
        return 0
    return Logits.of(len(classes), problem.dtype).numbers
