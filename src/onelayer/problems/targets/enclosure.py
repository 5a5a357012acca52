"""A program as the checker reads it: what is planned with its enclosures is what it will prove."""

from __future__ import annotations

from typing import Any

from onelayer.problems.targets.program import Program
from onelayer_checker import Claim


def as_checked(program: Program) -> Any:
    """The checker's own target, with ``enclose`` and ``bounds``."""
    numbers = {"low": (0.0).hex(), "high": (1.0).hex(), "bound": (0.0).hex()}
    head = {"type": "sup_error_everywhere", "arith": "real", "scope": program.per}
    return Claim.read({**head, **numbers, "target": program.to_json()}).target
