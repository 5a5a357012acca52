"""Bundles of version 1: what an interface holds today was in their ledger, as text."""

from __future__ import annotations

from typing import Any

from onelayer.ledger import Ledger
from onelayer.problems.tokens import from_ranges


def former_interface(answers: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    """The interface of a bundle of version 1, as version 2 writes it. A function is read as stored answers."""
    default = ledger.get("default")
    entry: dict[str, Any] = {
        "kind": "answers",
        "components": answers["components"],
        "ragged": answers["ragged"],
        "default": [float(x).hex() for x in default] if isinstance(default, tuple) else None,
        "stored_bits": ledger.get("stored_bits"),
        "error_upper": ledger.number("readout_error").hex() if "readout_error" in ledger else (0.0).hex(),
    }
    if answers["scope"] != "last" or not {"context", "alphabet", "start_token"} <= set(ledger):
        return entry
    flat = ledger.get("merges")
    pairs = [int(x) for x in flat] if isinstance(flat, tuple) else None
    merges = None if pairs is None else list(zip(pairs[::2], pairs[1::2], strict=True))
    known = from_ranges(str(ledger["alphabet"]), int(ledger.number("start_token")))
    alphabet = [i for i, occurs in enumerate(known) if occurs]
    own = {"kind": "next_token", "context": int(ledger.number("context")), "merges": merges, "alphabet": alphabet}
    return entry | own
