"""What a certificate may claim, and what may be said of a claim: proved, refuted or undecided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NoReturn

from onelayer_checker.core.balls import ARITHMETICS, Arithmetic
from onelayer_checker.core.files import Malformed, fields, real, shown

Outcome = Literal["proved", "refuted", "undecided"]
SCOPES = ("token", "sequence", "last")
#: Arithmetics of 16 bits, and the types of claims that are judged in them.
SMALL, IN_SMALL = ("float16", "bfloat16"), ("memorizes", "argmax", "rejects")


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    why: str  # for proved: the certified value; otherwise the first offending sample
    value: float  # smallest error bound, separation, ... that was certain
    size: float = 0.0  # of separated: no coordinate is larger

    def __bool__(self) -> NoReturn:
        raise TypeError("a verdict is proved, refuted or undecided; compare its outcome")


@dataclass(frozen=True)
class Claim:
    type: str
    arith: str  # the name of an arithmetic
    scope: str
    numbers: dict[str, float]
    target: Any = None  # of claims about functions

    @property
    def A(self) -> Arithmetic:
        return ARITHMETICS[self.arith]

    @property
    def about_function(self) -> bool:
        return kind_of(self.type).read_target is not None

    def implies(self, other: Claim) -> bool:
        """Whether the other claim is this one in real arithmetic: every arithmetic may round nothing at all.

        Theorem: proofs/Layers.v real_is_allowed, real_stack_is_allowed.
        """
        return other == replace(self, arith="real")

    def __str__(self) -> str:
        shown = "".join(f", {name}={value:.6g}" for name, value in self.numbers.items())
        return f"{self.type} ({self.arith}, per {self.scope}{shown})"

    def to_json(self) -> dict[str, str]:
        """The claim as a certificate writes it, but for its target."""
        numbers = {name: float(value).hex() for name, value in self.numbers.items()}
        return {"type": self.type, "arith": self.arith, "scope": self.scope, **numbers}

    @staticmethod
    def read(entry: Any, where: str = "claim") -> Claim:
        """The claim of an entry of a certificate; anything that section 5 does not describe is refused."""
        type_ = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(type_, str) or not is_kind(type_):
            raise Malformed("claim", f"{where} has the unknown type {shown(type_)}")
        kind = kind_of(type_)
        extra = set() if kind.read_target is None else {"target"}
        fields(entry, {"type", "arith", "scope"} | kind.numbers | extra, where)
        known = isinstance(entry["arith"], str) and entry["arith"] in ARITHMETICS
        if not known or entry["scope"] not in SCOPES:
            raise Malformed("claim", f"{where} has arith {shown(entry['arith'])}, scope {shown(entry['scope'])}")
        if entry["arith"] in SMALL and type_ not in IN_SMALL:
            raise Malformed("claim", f"{where}: in {entry['arith']}, only {', '.join(IN_SMALL)} may be claimed")
        numbers = {name: real(entry[name], f"{where}.{name}") for name in sorted(kind.numbers)}
        if any(value < 0 for name, value in numbers.items() if name not in ("low", "high")):
            raise Malformed("claim", f"{where} has a negative bound")
        if numbers.get("delta", 1.0) == 0 or numbers.get("p", 1.0) not in range(1, 65):
            raise Malformed("claim", f"{where} has delta = 0, or p that is no whole number from 1 to 64")
        if numbers.get("margin") == 0:
            raise Malformed("claim", f"{where} has margin = 0")
        target = None if kind.read_target is None else kind.read_target(entry["target"], f"{where}.target")
        return Claim(type_, entry["arith"], entry["scope"], numbers, target)


@dataclass(frozen=True)
class Kind:
    """A type of claim: the numbers it has, who judges it, and, if it is about a function, who reads its target."""

    numbers: frozenset[str]
    judge: Callable[[Any, Claim], Verdict]  # given a Judge
    read_target: Callable[[Any, str], Any] | None = None
    #: About the smallest bound that might be proved; one that is enough is not made smaller.
    least_bound: Callable[[Any, Claim, float], float] | None = None


#: Types of claims by name. A module adds those it judges when it is imported.
KINDS: dict[str, Kind] = {}
#: For types that few folders have, and for those of further rings, the module to import when one is met.
RINGS: dict[str, str] = {}


def is_kind(type_: str) -> bool:
    return type_ in KINDS or type_ in RINGS


def kind_of(type_: str) -> Kind:
    if type_ not in KINDS:
        import_module(RINGS[type_])
    return KINDS[type_]
