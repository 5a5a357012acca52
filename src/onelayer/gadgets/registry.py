"""Every kind of gadget, in the order in which layers are compared with them: the special before the general."""

from __future__ import annotations

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.choice import Choice
from onelayer.gadgets.clamp import Clamp
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.hats import Hats
from onelayer.gadgets.logits import Logits
from onelayer.gadgets.lookups import Lookups
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.place_gates import PlaceGates
from onelayer.gadgets.planes import Planes
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.ranks import Ranks
from onelayer.gadgets.retrieval import Retrieval
from onelayer.gadgets.ridges import Ridges
from onelayer.gadgets.steps import Steps
from onelayer.gadgets.table import Table
from onelayer.gadgets.words import WordReader
from onelayer.gadgets.zigzags import Zigzags

GADGETS: list[type[Gadget]] = [
    Packed,
    Retrieval,
    Planes,
    Table,
    Choice,
    PlaceGates,
    Zigzags,
    Ranks,
    WordReader,
    Plateaus,
    Lookups,
    Hats,
    Steps,
    Clamp,
    Ridges,
    Logits,
    Affine,
]


def gadget(cls: type[Gadget]) -> type[Gadget]:
    """Register a kind of gadget that others wrote; it is tried before ours."""
    if any(known.kind == cls.kind for known in GADGETS):
        raise ValueError(f"there is a gadget {cls.kind!r} already")
    GADGETS.insert(0, cls)
    return cls
