"""Forgeries of what a verdict means: bounds that say nothing, and names that say something else.

The arithmetic of each is true. Where names are changed consistently, no checker can know it from the folder; only a
person's own data tells, and ``with_data`` says what the checker must then answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attacks.bundle import Bundle

WORDS = ("bank", "river", "robber", "shore")
#: Any two of four words, and each alone: a word that is exchanged for another is found in the other's company.
SEQUENCES = [[a, b] for a in WORDS for b in WORDS if a != b] + [[a] for a in WORDS]
ANSWERS = [[f"{word} of {' and '.join(sorted(row))}" for word in row] for row in SEQUENCES]
HUGE = (2.0**1000).hex()


@dataclass(frozen=True)
class Misnomer:
    """A forgery: the result and gate without data, and the result beside the honest data."""

    name: str
    why: str
    result: str
    gate: str
    with_data: str
    change: Callable[[Bundle], None]


def misnomers(base: Bundle) -> Iterator[Misnomer]:
    """All of them, for a certified bundle of the words and classes above."""
    yield from _bounds()
    yield from _swaps()
    yield from _unfit(base)
    yield from _unlike_names()


def _malformed_misnomer(name: str, why: str, gate: str, change: Callable[[Bundle], None]) -> Misnomer:
    return Misnomer(name, why, "MALFORMED", gate, "MALFORMED", change)


def loosen(b: Bundle, eps: str) -> None:
    """Only claims about answers, within eps."""
    b.certificate["claims"] = [claim | {"eps": eps} for claim in b.certificate["claims"] if "eps" in claim]


def _bounds() -> Iterator[Misnomer]:
    def roll(b: Bundle) -> None:
        b.data["answers"] = np.roll(b.data["answers"], 1, axis=0)
        loosen(b, (1560.0).hex())

    def reverse(b: Bundle) -> None:
        last = max(name for name in b.model if name.startswith("readout.") and name.endswith("weight"))
        b.model[last] = b.model[last][::-1].copy()
        loosen(b, HUGE)

    def as_numbers(b: Bundle, eps: float) -> None:
        """Called reals, classes are spread over more than 1."""
        assert b.names is not None
        b.names["answers"] = None
        loosen(b, float(eps).hex())

    def pad(b: Bundle) -> None:
        """A row that no sample has spreads the answers out."""
        b.data["which"] = np.arange(len(b.data["answers"]))
        b.data["answers"] = np.concatenate([b.data["answers"], [[1e300]]])
        as_numbers(b, 1e200)

    yield _malformed_misnomer("rolled answers", "an eps that makes it true", "claim", roll)
    yield _malformed_misnomer("a reversed last layer", "an eps that makes it true", "claim", reverse)
    yield _malformed_misnomer("eps 1/2", "the next class is as near", "claim", lambda b: loosen(b, (0.5).hex()))
    yield _malformed_misnomer("classes called reals", "a constant would do", "claim", lambda b: as_numbers(b, 1e6))
    yield _malformed_misnomer("an answer that nobody has", "a constant would do", "claim", pad)
    yield Misnomer(
        "a bound on classes called reals",
        "shown beside the spread",
        "VERIFIED",
        "",
        "UNKNOWN",
        lambda b: as_numbers(b, 1),
    )


def _swaps() -> Iterator[Misnomer]:
    def swap(field: str) -> Callable[[Bundle], None]:
        def change(b: Bundle) -> None:
            assert b.names is not None
            first = b.names[field]
            first[0], first[1] = first[1], first[0]

        return change

    why = "consistent, and not what the person called them"
    yield Misnomer("two classes swapped", why, "VERIFIED", "", "NOT VERIFIED", swap("answers"))
    yield Misnomer("two words swapped", why, "VERIFIED", "", "NOT VERIFIED", swap("tokens"))


def _unfit(base: Bundle) -> Iterator[Misnomer]:
    def put(**fields: Any) -> Callable[[Bundle], None]:
        return lambda b: _names(b).update(fields)

    def edit(field: str, change: Callable[[list[Any]], object]) -> Callable[[Bundle], None]:
        return lambda b: put(**{field: change(list(_names(b)[field]))})(b)

    def without(field: str) -> Callable[[Bundle], None]:
        return lambda b: _names(b).pop(field)

    for field in ("tokens", "answers"):
        for same, why in ((0, "a name twice"), (1, "a name twice, later")):
            changed = edit(field, lambda names, i=same: [*names[:-1], names[i]])
            yield _malformed_misnomer(f"{field}: {why}", "two numbers, one name", "names", changed)
        for kind, make in (
            ("an object", dict.fromkeys),
            ("a string", lambda names: "".join(map(chr, range(len(names))))),
        ):
            yield _malformed_misnomer(f"{field} {kind}", "a list", "names", edit(field, make))
        yield _malformed_misnomer(f"{field} empty", "nothing is named", "names", put(**{field: []}))
    yield _malformed_misnomer(
        "a word missing", "as many as rows", "names", edit("tokens", lambda names: names[:-1])
    )
    yield _malformed_misnomer(
        "a word more", "as many as rows", "names", edit("tokens", lambda names: [*names, "more"])
    )
    yield _malformed_misnomer("words called reals", "the network has a table", "names", put(tokens=None))
    yield _malformed_misnomer(
        "a class missing", "an answer has no name", "names", edit("answers", lambda names: names[:-1])
    )
    yield _malformed_misnomer("scope sequence in the names", "claims are per token", "names", put(scope="sequence"))
    yield _malformed_misnomer("scope unknown in the names", "three are known", "names", put(scope="all"))
    yield _malformed_misnomer("causal in the names", "the graph is not", "names", put(causal=True))
    yield _malformed_misnomer("positions in the names", "the network has none", "names", put(positions=True))
    yield _malformed_misnomer("causal 0", "true or false", "names", put(causal=0))
    yield _malformed_misnomer("positions 0", "true or false", "names", put(positions=0))
    yield _malformed_misnomer("names of another version", "unknown", "names", put(format="onelayer-names/2"))
    yield _malformed_misnomer("a note in the names", "no field may be added", "fields", put(note="x"))
    assert base.names is not None
    for field in base.names:
        yield _malformed_misnomer(f"names without {field}", "no field may be missing", "fields", without(field))
    pieces = [f"{i:02x}" for i in range(len(base.names["tokens"]) - 1)] + [""]
    for name, changed in (
        ("too few pieces", pieces[1:]),
        ("a piece twice", [pieces[1], *pieces[1:]]),
        ("a piece for the start", [*pieces[:-1], "ff"]),
        ("an odd piece", ["abc", *pieces[1:]]),
        ("a piece in capitals", ["AB", *pieces[1:]]),
        ("a piece that is a number", [1, *pieces[1:]]),
        ("pieces a number", 0),
    ):
        yield _malformed_misnomer(name, "the bytes of each token, as one writes them", "names", put(pieces=changed))


def _unlike_names() -> Iterator[Misnomer]:
    """Names that are equal to Python, or no names at all."""

    def first(*names: Any) -> Callable[[Bundle], None]:
        return lambda b: _names(b).update(answers=[*names, *_names(b)["answers"][len(names) :]])

    one = {"real": (1.0).hex()}
    for name, pair in {
        "1 and true": (1, True),
        "1 and 1.0": (1, one),
        "0 and -0.0": ({"real": "0x0.0p+0"}, {"real": "-0x0.0p+0"}),
        "tuples of 1 and true": ({"tuple": [1]}, {"tuple": [True]}),
    }.items():
        yield _malformed_misnomer(name, "a look-up takes one for the other", "names", first(*pair))
    for name, other in {
        "a list": [1],
        "an object": {"word": "a"},
        "a real and a tuple": {"real": (1.0).hex(), "tuple": []},
        "a tuple of an object": {"tuple": [{"a": 1}]},
        "a tuple that is none": {"tuple": "ab"},
    }.items():
        yield _malformed_misnomer(f"{name} as a name", "no name", "names", first(other))
    yield _malformed_misnomer("a real in decimals", "reals are hexadecimal", "number", first({"real": "1.0"}))
    yield _malformed_misnomer("a fraction as a name", "reals are hexadecimal", "json", first(0.5))


def _names(b: Bundle) -> dict[str, Any]:
    assert b.names is not None
    return b.names
