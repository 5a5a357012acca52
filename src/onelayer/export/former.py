"""Bundles of versions 1 and 2: what an interface holds today was in their ledger, as text."""

from __future__ import annotations

from typing import Any

from onelayer.certificates.names import Names
from onelayer.ledger import Ledger
from onelayer.problems.tokens import from_ranges

#: Before names had a file of their own: they are in the description.
FIRST = "onelayer-bundle/1"
FORMER = (FIRST, "onelayer-bundle/2")


def former_names(description: dict[str, Any]) -> Names:
    """Names as bundles of version 1 have them, whose reals are plain numbers."""
    answers = description["answers"]
    return {
        "scope": answers["scope"],
        "causal": description["attention"]["causal"],
        "tokens": description["vocabulary"],
        "answers": answers["classes"],
    }


def former_interface(answers: dict[str, Any], names: Names, ledger: Ledger) -> dict[str, Any]:
    """The interface of such a bundle, as it is written today. A function becomes answers within its tolerance."""
    default = ledger.get("default")
    off = [ledger.number(name) for name in ("readout_error", "tolerance") if name in ledger]
    entry: dict[str, Any] = {
        "kind": "answers",
        "components": answers["components"],
        "ragged": answers["ragged"],
        "default": [float(x).hex() for x in default] if isinstance(default, tuple) else None,
        "stored_bits": ledger.get("stored_bits"),
        "error_upper": max(off, default=0.0).hex(),
    }
    if names["scope"] != "last" or not {"context", "alphabet", "start_token"} <= set(ledger):
        return entry
    flat = ledger.get("merges")
    pairs = [int(x) for x in flat] if isinstance(flat, tuple) else None
    merges = None if pairs is None else list(zip(pairs[::2], pairs[1::2], strict=True))
    known = from_ranges(str(ledger["alphabet"]), int(ledger.number("start_token")))
    alphabet = [i for i, occurs in enumerate(known) if occurs]
    own = {"kind": "next_token", "context": int(ledger.number("context")), "merges": merges, "alphabet": alphabet}
    return entry | own
