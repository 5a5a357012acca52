"""A compiled model with fewer weights, and a proof of what is left: `prune`.

Of stored answers three things can go, and the checker proves all claims again: units that nothing reads; plateaus
of the commonest class, which becomes the constant of the sum; and, of real answers, plateaus whose neighbours are
as good within a tolerance. Of a function kinks can go (`network/kinks.py`), as many as leave a bound within the
tolerance, which the checker finds anew; where the target can be asked again, `approximate` at that tolerance gives
fewer weights. Zeros of full matrices stay: they are part of a form that every library runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onelayer.certificates.certificate import Certificate, certify_data, judge_claims
from onelayer.certificates.functions import bound_of, prove
from onelayer.certificates.names import certifiable, names_of
from onelayer.errors import OptionError, PrecisionError
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.stacks import covered_by, layers_of, read_parts
from onelayer.interfaces import Answers, Function
from onelayer.ledger import Constant, Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.network import Layer, Transformer
from onelayer.network.blocks import evaluate
from onelayer.network.kinks import Kink, find_kinks, spare
from onelayer.network.unread import without_unread

#: Inputs on which it is measured how much a kink matters.
SAMPLES = 256
#: Merged answers are in the middle of what they replace; this share of the tolerance is left for rounding.
ROUNDING = 2.0**-10


@dataclass(frozen=True)
class Pruned:
    """A model with fewer weights than ``before``, whose certificate was made anew."""

    before: Model
    model: Model

    @property
    def n_removed(self) -> int:
        """How many weights and biases are gone."""
        return self.before.n_parameters - self.model.n_parameters

    @property
    def zeros(self) -> int:
        """Weights that are left and are 0: of full matrices, which a sparse format would not store."""
        return sum(int((tensor == 0).sum()) for _, tensor in self.model.transformer.tensors())

    def verify(self) -> str:
        """The verdict of the checker about what is left."""
        return self.model.verify().result

    def __str__(self) -> str:
        left, before = self.model.n_parameters, self.before.n_parameters
        said = (
            f"{self.n_removed:,} of {before:,} weights are gone, {left:,} are left ({self.zeros:,} of them zeros)"
        )
        if isinstance(self.model.interface, Function):
            said += f"; error at most {self.model.error_bound:.4g} (proved), {self.before.error_bound:.4g} before"
        return said


def prune(model: Model, tolerance: float | None = None, on_step: Callable[[str], None] | None = None) -> Pruned:
    """Remove weights that a certified model can do without; what is proved of the rest is what the checker proves.

    model      of stored answers, or of a function, with its certificate
    tolerance  of a function: how far it may be from its target (None: as far as was asked for when it was built);
               of real answers: how far each may be from the stored one (None: no further than they are). Classes
               stay as they are, so they take none
    on_step    called with a line of text at each stage

    Nothing to remove is an `OptionError`; a claim that held and could not be proved again is a `PrecisionError`.

    >>> from onelayer import memorize
    >>> model = memorize([[i, i + 1] for i in range(40)], [["x", "y" if i % 8 else "z"] for i in range(40)])
    >>> pruned = prune(model)
    >>> pruned.n_removed > 0, pruned.verify(), pruned.model.predict([[8, 9]]).tolist()
    (True, 'VERIFIED', [['x', 'z']])
    """
    say = on_step or (lambda _: None)
    if model.certificate is None:
        needs, found = "a model with its certificate, of which prune keeps what it can", "nothing was proved of it"
        raise OptionError("prune", needs, found, model.interface.proved_by)
    if tolerance is not None and not 0 < tolerance < np.inf:
        raise OptionError(
            "prune", "a tolerance above 0", f"tolerance={tolerance!r:.40}", "Give a number such as 0.01."
        )
    if isinstance(model.interface, Function):
        return _prune_function(model, model.interface, tolerance, say)
    if type(model.interface) is not Answers:
        needs, found = "a model of stored answers or of a function", f"this model {model.interface.says}"
        raise OptionError("prune", needs, found, "Every unit of such models is read.")
    return _prune_answers(model, tolerance, say)


def _prune_answers(model: Model, tolerance: float | None, say: Callable[[str], None]) -> Pruned:
    """All claims again, or those of real answers with the tolerance as their error."""
    assert model.certificate is not None
    if tolerance is not None and model.form.classes is not None:
        found = f"the answers are {len(model.form.classes)} classes, and tolerance={tolerance:g}"
        raise OptionError("prune", "real answers for a tolerance", found, "Leave it out.")
    network = without_unread(_without_spare_plateaus(model, (tolerance or 0.0) * (1 - ROUNDING)))
    if network.n_parameters == model.n_parameters:
        readout = model.ledger.get("readout", "readout")
        found = f"every unit of its {readout} is read, and no class has plateaus that a constant could replace"
        raise OptionError("prune", "weights that carry no answer", found, "Keep the model as it is.")
    say("asking the checker")
    made, old = _with_network(model, network), model.certificate
    if tolerance is not None:
        return Pruned(model, replace(made, certificate=certify_data(made, old.data, tolerance=tolerance)))
    names = certifiable(names_of(made))
    report = judge_claims(network, old.data, names, old.claims)
    if report.result != "VERIFIED":
        first = next(judged for judged in report.claims if judged.verdict.outcome != "proved")
        found = f"without them the checker says of {first.claim}: {first.verdict.outcome}, {first.verdict.why}"
        raise PrecisionError("plateaus", "claims that hold without the weights", found, "Keep the model as it is.")
    said = tuple(f"{found.claim}: {found.verdict.outcome}, {found.verdict.why}" for found in report.claims)
    return Pruned(model, replace(made, certificate=Certificate(old.claims, old.data, said, names)))


def _without_spare_plateaus(model: Model, tolerance: float) -> Transformer:
    """With the plateaus of its readout merged, and the commonest value as a constant."""
    layers: list[Layer] = []
    for part in model.parts["readout"]:
        gadget = part.gadget
        if isinstance(gadget, Plateaus):
            gadget = (gadget.merge(tolerance) if tolerance else gadget).without_commonest()
        layers += layers_of([gadget])
    return replace(model.transformer, readout=tuple(layers))


def _with_network(model: Model, network: Transformer) -> Model:
    """The model with another network, whose size its ledger states; its proof is not made yet."""
    size = {"parameters": network.n_parameters, "bytes": network.n_parameters * _bytes(model)}
    lines = [replace(line, value=size.get(line.name, line.value)) for line in model.ledger.lines]
    gone = model.n_parameters - network.n_parameters
    lines.append(Constant("pruned", gone, "weights and biases that were removed from the model as it was built"))
    parts = covered_by(read_parts(network))
    return replace(model, transformer=network, ledger=Ledger(tuple(lines)), certificate=None, gadgets=parts)


def _bytes(model: Model) -> int:
    return round(model.ledger.number("bytes") / model.n_parameters) if "bytes" in model.ledger else 0


def _prune_function(
    model: Model, function: Function, tolerance: float | None, say: Callable[[str], None]
) -> Pruned:
    """Rounds, in each of which those kinks go that matter least, as many as the checker lets go."""
    assert model.certificate is not None
    allowed = function.tolerance if tolerance is None else float(tolerance)
    if allowed < function.error_bound:
        found = f"its proved bound is {function.error_bound:.4g}, and tolerance={allowed:g}"
        raise OptionError("prune", "a tolerance of at least the proved bound", found, "Approximate it anew.")
    network, proof = model.transformer, model.certificate
    trial = without_unread(network)
    if trial.n_parameters < network.n_parameters and (found_proof := _prove(model, trial, allowed)) is not None:
        network, proof = trial, found_proof
    while (order := _least_first(network, function)) and (better := _spare_some(model, network, order, allowed)):
        network, proof = better
        say(f"{model.n_parameters - network.n_parameters:,} weights gone")
    if network is model.transformer:
        found = f"no kink can go with a bound of {function.error_bound:.4g} and a tolerance of {allowed:g}"
        raise OptionError("prune", "weights that the bound can do without", found, "Allow a larger tolerance.")
    made = replace(_with_network(model, network), certificate=proof)
    return Pruned(model, _restate(made, function, allowed))


def _prove(model: Model, network: Transformer, allowed: float) -> Certificate | None:
    """The claims of a model about another network, each with the bound that the checker finds; None if one of them
    is not proved, or the bound is above what is allowed."""
    assert model.certificate is not None
    entries = tuple({k: v for k, v in claim.items() if k != "bound"} for claim in model.certificate.claims)
    found = prove(network, model.certificate.data, entries, allowed, lambda *_: None)
    return found if found is not None and bound_of(found, str(network.dtype)) <= allowed else None


def _least_first(network: Transformer, function: Function) -> list[Kink]:
    """Kinks, no two of them neighbours, those first whose loss changes outputs least on inputs drawn at random."""
    X = function.box.draw(np.random.default_rng(0), SAMPLES)
    before = evaluate(network, X)
    kinks = find_kinks(network)
    change = [float(np.abs(evaluate(spare(network, [kink]), X) - before).max()) for kink in kinks]
    chosen: list[Kink] = []
    taken: set[tuple[str, int, int]] = set()
    for i in np.argsort(change, kind="stable").tolist():
        kink = kinks[i]
        units = {(kink.stack, kink.layer, unit) for unit in (kink.unit, kink.before, kink.after)}
        if not units & taken:
            chosen.append(kink)
            taken |= units
    return chosen


def _spare_some(
    model: Model, network: Transformer, order: list[Kink], allowed: float
) -> tuple[Transformer, Certificate] | None:
    """As many of the first as the checker lets go, halving what is tried; None if it does not let one go."""
    count = len(order)
    while count:
        trial = spare(network, order[:count])
        if (proof := _prove(model, trial, allowed)) is not None:
            return trial, proof
        count //= 2
    return None


def _restate(made: Model, function: Function, allowed: float) -> Model:
    """What the interface says of the error: the new bound, its parts, and what is measured."""
    assert made.certificate is not None
    bound = bound_of(made.certificate, str(made.transformer.dtype))
    rounding = max(bound - bound_of(made.certificate, "real"), 0.0)
    own, *rest = function.budget.lines
    rest = [replace(line, value=rounding) if line.name == "floating_point" else line for line in rest]
    own = replace(own, value=max(bound - sum(Ledger(tuple(rest)).number(line.name) for line in rest), 0.0))
    told = replace(function, tolerance=allowed, error_bound=bound, budget=Ledger((own, *rest)))
    measured, _ = largest_error(made.errors, function.box, function.samples)
    assert measured <= bound * (1 + 1e-9) or told.assumes, "an error above a proved bound"
    return replace(made, interface=replace(told, measured_error=measured))
