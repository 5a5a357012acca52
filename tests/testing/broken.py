"""The constructions of third_party.py, each broken in one way, by the promise that it breaks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onelayer.ledger import Constant
from onelayer.network import Embedding
from tests.testing.third_party import Finer, Lukewarm, OnStairs, Stairs


class SeesTheOrder(Lukewarm):
    """Adds places to tokens that nobody ordered."""

    @classmethod
    def construct(cls, wanted):
        made = super().construct(wanted)
        places = np.zeros((wanted.sequences.n, made.embedding.lift.shape[1]), wanted.stream.dtype)
        places[1:, :2] = 2.0**-3
        moved = made.embedding.lift, None, made.embedding.bias, places
        return replace(made, embedding=Embedding(*moved))


class StandsStill(Lukewarm):
    """Takes it that data lies around 0."""

    @classmethod
    def construct(cls, wanted):
        if abs(float(wanted.sequences.tokens.mean())) > 16:
            raise RuntimeError("not centred")
        return super().construct(wanted)


def _without_readout(made):
    return replace(made, bottleneck=replace(made.bottleneck, weight=0 * made.bottleneck.weight))


class OneSize(Lukewarm):
    """Loses numbers of another size."""

    @classmethod
    def construct(cls, wanted):
        made = super().construct(wanted)
        return _without_readout(made) if float(np.abs(wanted.sequences.tokens).max()) > 1000 else made


class RaisesAnything(Lukewarm):
    """Meets what it cannot do with an error of Python's."""

    @classmethod
    def construct(cls, wanted):
        if len(np.unique(wanted.sequences.tokens[:, 0], axis=0)) < wanted.sequences.N:
            raise IndexError("the same sequence again")
        return super().construct(wanted)


class KeepsAList(Lukewarm):
    @classmethod
    def construct(cls, wanted):
        made = super().construct(wanted)
        return replace(made, constants=(*made.constants, Constant("tried", [1, 2], "temperatures")))


class SaysNothing(Lukewarm):
    @classmethod
    def construct(cls, wanted):
        made = super().construct(wanted)
        return replace(made, constants=(*made.constants, Constant("beta_again", 1.0, "")))


class TooFewChannels(Lukewarm):
    @classmethod
    def construct(cls, wanted):
        made = super().construct(wanted)
        return replace(made, channels=tuple("x" for _ in made.channels))


class ForgetsAnAnswer(Lukewarm):
    """The network is not that of its coordinates."""

    @classmethod
    def construct(cls, wanted):
        return _without_readout(super().construct(wanted))


@dataclass(frozen=True, eq=False)
class SearchesElsewhere(Stairs):
    def find(self, t):
        out, sure = super().find(t)
        return out + np.spacing(out.dtype.type(1)), sure


@dataclass(frozen=True, eq=False)
class NotRecognised(Stairs):
    @classmethod
    def parse(cls, layers):  # noqa: ARG003
        return None


@dataclass(frozen=True, eq=False)
class RecognisedAsAnother(Stairs):
    @classmethod
    def parse(cls, layers):
        found = super().parse(layers)
        return None if found is None else replace(found, rise=found.rise + 1)


@dataclass(frozen=True, eq=False)
class NamedOnce(Stairs):
    def names(self):
        return tuple(tuple("unit" for _ in names) for names in super().names())


@dataclass(frozen=True, eq=False)
class NamedTooRarely(Stairs):
    def names(self):
        return tuple(names[1:] for names in super().names())


class NotProved(OnStairs):
    """Gives one answer everywhere."""

    @classmethod
    def on_line(cls, t, answers, task):
        made = super().on_line(t, answers, task)
        (gadget,) = made.gadgets
        return replace(made, gadgets=(replace(gadget, slope=gadget.slope / 2**30, bias=gadget.bias * 0 - 1),))


class OnlyWholeNumbers(OnStairs):
    """Does not say that it takes classes only."""

    only_classes = False

    @classmethod
    def on_line(cls, t, answers, task):
        if (answers != np.rint(answers)).any():
            raise ZeroDivisionError
        return super().on_line(t, answers, task)


class Shifted(Finer):
    """Its model is not that of the function."""

    @classmethod
    def build(cls, request, levels):
        built = super().build(request, levels)
        *before, last = built.transformer.readout
        moved = replace(last, bias=last.bias + last.bias.dtype.type(8))
        return replace(built, transformer=replace(built.transformer, readout=(*before, moved)))


class ClaimsNothing(Finer):
    @classmethod
    def build(cls, request, levels):
        return replace(super().build(request, levels), entries=())


def with_gadget(broken: type[Stairs]):
    return type("OnStairs", (OnStairs,), {"gadget": broken})


MAPPINGS = {
    SeesTheOrder: "permutation",
    StandsStill: "translation",
    OneSize: "rescaling",
    RaisesAnything: "hypotheses",
    KeepsAList: "ledger",
    SaysNothing: "ledger",
    TooFewChannels: "names",
    ForgetsAnAnswer: "recall",
}
GADGETS = {
    SearchesElsewhere: "search",
    NotRecognised: "recognition",
    RecognisedAsAnother: "recognition",
    NamedOnce: "names",
    NamedTooRarely: "names",
}
OTHERS = {NotProved: "verified", OnlyWholeNumbers: "recall", Shifted: "recall", ClaimsNothing: "verified"}
