"""What the units mean that take packed words apart, layer by layer as ``digits`` builds them."""

from __future__ import annotations

from collections.abc import Sequence

from onelayer.gadgets.digits import lane_boundaries
from onelayer.gadgets.gadget import Words
from onelayer.gadgets.layout import Layout

FIRST_TWO = ("word 1 less word 2", "word 2 less word 1")
COMPARED = (
    ("class", "stored fingerprint", "own fingerprint"),
    ("class", "what the stored fingerprint is above the own", "what the own fingerprint is above the stored"),
    ("class", "fingerprints are equal"),
    ("class, if fingerprints are equal", "fingerprints differ"),
    ("class or default",),
)
ALL_THREE = ("words less the third", "the third less the words")


def digit_names(layout: Layout, prints: Sequence[int] = ()) -> tuple[Words, ...]:
    """Of every layer of ``digit_layers``, and of ``compared_layers`` if fingerprints have digits of such sizes."""
    passed = [*FIRST_TWO, "word 3"]
    lanes, own = range(1, layout.lanes), ["own fingerprint"] * bool(prints)
    steps = [(f"value {j} of digit {i}", i) for i, size in enumerate(prints) for j in range(1, size)]
    carried = [f"coordinate of digit {i} of the own fingerprint" for i in range(len(prints))]
    lacking = [f"what lacks to lane {j}" for j in lanes] + [f"what lacks to {step}" for step, _ in steps]
    reached = [f"lane {j} is reached" for j in lanes] + [f"{step} is reached" for step, _ in steps]
    names = [
        _each(layout, [*passed, "lane coordinate", *carried]),
        _each(layout, [*passed, *lacking]),
        _each(layout, [*passed, *reached]),
        _each(layout, [*passed, "lane", *own]),
        _each(layout, [*passed, "lane", "nothing is borrowed", *own]),
        _each(layout, [FIRST_TWO[0], "words 1 and 2 with what is borrowed", "word 3", "lane", *own]),
        _each(layout, [*ALL_THREE, "lane", *own]),
        _each(layout, [*ALL_THREE, "lane", "nothing is borrowed", *own]),
        _each(layout, [ALL_THREE[0], "all words with what is borrowed", "lane", *own]),
        _each(layout, ["rest of the word", "lane", *own]),
    ]
    for at in range(len(layout.stages)):
        names += _stage(layout, at, own)
    classes = ("class",) if layout.parts == 1 else tuple(f"class {i}" for i in range(layout.parts))
    return (*names, *COMPARED) if prints else (*names, classes)


def _stage(layout: Layout, at: int, own: list[str]) -> list[Words]:
    start, count = layout.stages[at]
    values, found = layout.base**count, [f"digit {c} found so far" for c in range(layout.digits)]
    boundaries = [lane_boundaries(layout, u, start, count) for u in range(layout.words)]
    most = max(len(some) for some in boundaries)
    lacking, reached = [], []
    for u, lanes in enumerate(boundaries):
        spare = range(len(lanes), most)
        rest = ["rest of the word", "lane", *found, *own]
        lacking += _of(u, [f"what lacks to {v} steps of digit {start}" for v in range(1, values)])
        lacking += _of(u, [f"what lacks to lane {j}" for j in lanes])
        lacking += _of(u, [f"spare step {i}, always 0" for i in spare] + rest)
        reached += _of(u, [f"{v} steps of digit {start} are reached" for v in range(1, values)])
        reached += _of(u, [f"lane {j} is reached" for j in lanes])
        reached += _of(u, [f"spare step {i}, always 1" for i in spare] + rest)
    gates = [f"digit {start + i}, if it is of the lane" for i in range(count)]
    return [tuple(lacking), tuple(reached), _each(layout, [*gates, "rest of the word", "lane", *found, *own])]


def _each(layout: Layout, names: Sequence[str]) -> Words:
    """The same for every word."""
    return tuple(name for u in range(layout.words) for name in _of(u, names))


def _of(word: int, names: Sequence[str]) -> list[str]:
    return [f"word {word} / {name}" for name in names]
