"""`names.json`: which token an id is, which class a number is, and how the answers are to be read. Part of every
bundle, certified or not: what `load` gives back and what the checker reads are one file."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import DataError
from onelayer.interfaces import NextToken
from onelayer.network import Transformer

if TYPE_CHECKING:
    from onelayer.export.bundle import Parts
    from onelayer.model import Model

FILE, FORMAT = "names.json", "onelayer-names/1"
#: What a certificate may hold of names, in bytes.
MOST = 1 << 26
Names = dict[str, Any]


def names_of(model: Model | Parts) -> Names:
    """The names of a model."""
    interface = model.interface
    tokens = interface.tokens if isinstance(interface, NextToken) else None
    pieces = None if tokens is None else [*(tokens.piece(i).hex() for i in range(tokens.size)), ""]
    vocabulary, classes = (
        _list_names("vocabulary", interface.vocabulary),
        _list_names("classes", interface.form.classes),
    )
    return name_tensors(model.transformer, interface.form.scope, vocabulary, pieces, classes)


def name_tensors(
    transformer: Transformer,
    scope: str,
    tokens: list[Any] | None = None,
    pieces: list[str] | None = None,
    answers: list[Any] | None = None,
) -> Names:
    """Names as JSON holds them; without any, those of real tokens and real answers."""
    embedding = transformer.embedding
    return {
        "format": FORMAT,
        "scope": scope,
        "causal": transformer.attention.causal,
        "positions": embedding is not None and embedding.positions is not None,
        "tokens": tokens,
        "pieces": pieces,
        "answers": answers,
    }


def to_bytes(names: Names) -> bytes:
    return json.dumps(names, allow_nan=False).encode()


def certifiable(names: Names) -> Names:
    """The same names; an error if a certificate has no room for them."""
    if (size := len(to_bytes(names))) > MOST:
        needs, found = f"names of at most {MOST:,} bytes in a certificate", f"they take {size:,}"
        raise DataError("data", needs, found, "Use shorter names, or save without a certificate.")
    return names


def read(names: list[Any] | None) -> tuple[Hashable, ...] | None:
    """Names from JSON."""

    def decode(name: Any) -> Any:
        if isinstance(name, dict):
            return float.fromhex(name["real"]) if "real" in name else tuple(map(decode, name["tuple"]))
        return name

    return None if names is None else tuple(map(decode, names))


def _list_names(what: str, names: tuple[Hashable, ...] | None) -> list[Any] | None:
    """Hashables as JSON; a tuple becomes {"tuple": [...]}, a real {"real": its hexadecimal form}."""

    def encode(name: Any) -> Any:
        name = name.item() if isinstance(name, np.generic) else name
        if isinstance(name, tuple):
            return {"tuple": [encode(part) for part in name]}
        if isinstance(name, float) and np.isfinite(name):
            return {"real": float(name).hex()}
        if name is None or isinstance(name, str | bool | int):
            return name
        raise DataError(
            "data",
            f"{what} made of words, numbers, None or tuples of them, to be saved",
            f"one is {name!r} of type {type(name).__name__}",
            "Rename it before memorising.",
        )

    return None if names is None else [encode(name) for name in names]
