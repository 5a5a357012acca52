"""The certified names: which token an id is, which class a number is, and how the answers are to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed, fields, real
from onelayer_checker.core.graph import Network
from onelayer_checker.core.samples import Data

#: Whole numbers below it are told apart by a table of Python as they are.
SMALL = 1 << 60


@dataclass(frozen=True)
class Names:
    scope: str
    causal: bool
    positions: bool
    tokens: tuple[Any, ...] | None  # None: tokens are vectors of reals
    pieces: (
        tuple[bytes, ...] | None
    )  # of a text: the bytes of each token, and none of the last, which stands before it
    answers: tuple[Any, ...] | None  # None: answers are reals; else the classes

    def __str__(self) -> str:
        tokens = "real tokens" if self.tokens is None else f"{len(self.tokens):,} tokens"
        answers = "real answers" if self.answers is None else f"{len(self.answers):,} classes"
        return f"{tokens} and {answers}"


def read_names(content: Any) -> Names:
    """What `names.json` says; names that Python takes for equal are refused, since no look-up tells them apart."""
    fields(content, {"format", "scope", "causal", "positions", "tokens", "pieces", "answers"}, "names")
    if content["format"] != "onelayer-names/1":
        raise Malformed("names", f"unknown format {content['format']!r:.40}")
    causal, positions = content["causal"], content["positions"]
    if type(causal) is not bool or type(positions) is not bool:
        raise Malformed("names", "causal and positions are true or false")
    tokens, answers = (_names(content[field], field) for field in ("tokens", "answers"))
    return Names(content["scope"], causal, positions, tokens, _pieces(content["pieces"], tokens), answers)


def fit(names: Names, network: Network, data: Data, claims: Iterable[Claim]) -> None:
    """Refuse names that do not belong to this network, this data and these claims."""
    table = network.tensors.get("embedding.table")
    if (None if table is None else len(table)) != (None if names.tokens is None else len(names.tokens)):
        raise Malformed("names", "there must be a name for each row of the token table, and none without one")
    if names.causal != network.causal or names.positions != ("embedding.positions" in network.tensors):
        raise Malformed("names", "causal or positions are not those of the network")
    for claim in claims:
        if claim.scope != names.scope:
            raise Malformed("names", f"a claim is per {claim.scope}, the names say per {names.scope!r:.20}")
        if claim.type == "argmax" and (names.answers is None or len(names.answers) != network.readout.outputs):
            raise Malformed("names", "argmax needs a class for each output")
    if names.answers is not None:
        default = [] if data.strangers is None else [data.strangers.answers]
        numbers = np.concatenate([data.answers, *default])
        whole = (numbers >= 0) & (numbers < len(names.answers)) & (numbers == np.floor(numbers))
        if numbers.shape[1] != 1 or not whole.all():
            raise Malformed("names", f"an answer is not the number of one of {len(names.answers)} classes")


def encode(values: Sequence[Any], names: Sequence[Any]) -> Array:
    """The number of each value among the names, of equal type and equal; -1 where it is none of them."""
    kinds = set(map(type, values))
    small = all(type(name) is not int or abs(name) < SMALL for name in names)
    if len(kinds) == 1 and kinds <= {str, int, bool} and small:  # the same, without a key for each value
        index = {name: i for i, name in enumerate(names) if type(name) in kinds}
        return np.fromiter(map(index.get, values, repeat(-1)), np.int64, len(values))
    index = {_key(name): i for i, name in enumerate(names)}
    return np.fromiter((index.get(_key(value), -1) for value in values), np.int64, len(values))


def _key(value: Any, kind: bool = True) -> str:
    """Equal for values of equal type and equal: true is not 1, and 1 is not 1.0; or, without ``kind``, for those
    that Python takes for equal. A list is read as a tuple. A text is put into a table by a secret of the process;
    numbers can be chosen so that all have the same place, where a look-up takes as long as there are names.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple | list):
        return f"({','.join(_key(part, kind) for part in value)})"
    if isinstance(value, float | int):
        number = int(value) if value == value // 1 else value
        return f"{type(value).__name__ if kind else ''} {number!r}"
    return repr(value) if isinstance(value, str | None) else type(value).__name__


def _names(listed: Any, field: str) -> tuple[Any, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise Malformed("names", f"{field} must be null or a list of names")
    plain = _alike(listed)
    names = tuple(listed) if plain else tuple(_name(entry, field) for entry in listed)
    if len(set(names) if plain else {_key(name, kind=False) for name in names}) != len(names):
        raise Malformed("names", f"two names in {field} are equal")
    return names


def _alike(listed: list[Any]) -> bool:
    """Whether all are words, or small whole numbers: these can be put into a table as they are."""
    kinds = set(map(type, listed))
    return kinds == {str} or (kinds == {int} and min(listed) > -SMALL and max(listed) < SMALL)


def _name(entry: Any, field: str) -> Any:
    """A word, a whole number, true, false, null, a real or a tuple of names."""
    if isinstance(entry, dict) and set(entry) == {"real"}:
        return real(entry["real"], f"a name in {field}")
    if isinstance(entry, dict) and set(entry) == {"tuple"} and isinstance(entry["tuple"], list):
        return tuple(_name(part, field) for part in entry["tuple"])
    if isinstance(entry, dict | list):
        raise Malformed("names", f"{field} has {entry!r:.60}, which is no name")
    return entry


def _pieces(listed: Any, tokens: tuple[Any, ...] | None) -> tuple[bytes, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(isinstance(piece, str) for piece in listed):
        raise Malformed("names", "pieces must be null or a list of hexadecimal strings")
    try:
        pieces = tuple(map(bytes.fromhex, listed))
    except ValueError:
        raise Malformed("names", "a piece is not hexadecimal") from None
    if [piece.hex() for piece in pieces] != listed or len(set(pieces)) != len(pieces):
        raise Malformed("names", "two pieces are equal, or one is not written as `bytes.hex` writes it")
    if tokens is None or len(pieces) != len(tokens) or pieces[-1] != b"":
        raise Malformed("names", "there must be a piece for each token, and none for the last")
    return pieces
