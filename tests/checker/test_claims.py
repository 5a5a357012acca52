"""Claims are read as section 5 describes them and in no other way."""

from __future__ import annotations

import numpy as np
import pytest

import onelayer_checker.front  # noqa: F401  (adds the claims about functions)
from onelayer_checker.core.claims import KINDS, RINGS, Claim, Verdict, is_kind, kind_of
from onelayer_checker.core.files import Malformed
from tests.checker.large import ARITHMETICS
from tests.checker.looped import descent

ONE, ZERO = (1.0).hex(), (0.0).hex()
ASSUMED = {"lipschitz": ONE, "error": ZERO, "symmetric": True}
#: x, the token itself.
FORMULA = {"d": 1, "tokens": 2, "per": "token", "box": [[ZERO, ONE]], "lines": [["x", 0]]}
FORMULA |= {"outputs": [0], "meant": [0], "planned": [0], "stages": [[0], [0], [0]]}
#: What the specification demands of each type, beside arith and scope.
NUMBERS = {
    "memorizes": {"eps"},
    "argmax": {"margin"},
    "separated": {"r", "delta"},
    "robust": {"radius", "eps"},
    "rejects": {"eps"},
    "sup_error": {"bound", "radius", "low", "high", "measure"},
    "lp_error": {"bound", "radius", "low", "high", "p"},
    "sup_error_everywhere": {"bound", "low", "high"},
    "formula_error": {"bound"},
    "equals": set(),
    "within": {"bound", "x", "y", "eta", "a", "b", "late"},
    "minimises": {"examples", "half", "weight", "noise", "value", "gap"},
    "selects": {"delta", "reach"},
    "attends": {"bound", "low", "high", "y"},
    "rounds": {"bound", "x", "y", "examples"},
    "identifies": {"mu"},
    "ambiguous": {"eps", "delta"},
}
TARGETS = {"sup_error": ASSUMED, "lp_error": ASSUMED, "sup_error_everywhere": ASSUMED, "formula_error": FORMULA}
TARGETS |= dict.fromkeys(("equals", "within", "minimises", "selects", "rounds", "attends"), descent())
ABOUT_FUNCTIONS = set(TARGETS)


def entry(kind: str, **other):
    target = {"target": TARGETS[kind]} if kind in TARGETS else {}
    return {"type": kind, "arith": "real", "scope": "token", **dict.fromkeys(NUMBERS[kind], ONE), **target} | other


def refused(given, gate: str = "claim") -> None:
    with pytest.raises(Malformed) as error:
        Claim.read(given, "claims[3]")
    assert error.value.gate == gate
    assert "claims[3]" in str(error.value)


def test_every_type_has_its_numbers() -> None:
    assert {kind: set(kind_of(kind).numbers) for kind in {*KINDS, *RINGS}} == NUMBERS
    assert all(map(is_kind, NUMBERS))
    assert not is_kind("promises")
    for kind in NUMBERS:
        claim = Claim.read(entry(kind))
        assert (claim.type, claim.arith, claim.scope) == (kind, "real", "token")
        assert claim.numbers == dict.fromkeys(NUMBERS[kind], 1.0)
        assert claim.about_function == (kind in ABOUT_FUNCTIONS)
        assert (claim.target is not None) == (kind in ABOUT_FUNCTIONS)


@pytest.mark.parametrize("kind", NUMBERS)
def test_no_field_is_missing_unknown_or_of_another_type(kind: str) -> None:
    whole = entry(kind)
    for name in whole:
        refused({k: v for k, v in whole.items() if k != name}, "claim" if name == "type" else "fields")
    refused(whole | {"note": ONE}, "fields")
    if kind not in ABOUT_FUNCTIONS:
        refused(whole | {"target": ASSUMED}, "fields")
    for name in NUMBERS[kind]:
        for wrong in (1.0, 1, True, None, "1.0", "0x1p+0", "inf", "nan", [ONE]):
            refused(whole | {name: wrong}, "number")


@pytest.mark.parametrize("kind", NUMBERS)
def test_arithmetics_and_scopes_are_listed(kind: str) -> None:
    for arith in ARITHMETICS:
        assert Claim.read(entry(kind, arith=arith)).A is ARITHMETICS[arith]
    for scope in ("token", "sequence", "last"):
        assert Claim.read(entry(kind, scope=scope)).scope == scope
    for wrong in ("float8", "Real", "", None, 1, ["real"], {}):
        refused(entry(kind, arith=wrong))
    for wrong in ("tokens", "all", "", None, 1):
        refused(entry(kind, scope=wrong))


@pytest.mark.parametrize("kind", NUMBERS)
def test_bounds_are_not_negative(kind: str) -> None:
    for name in NUMBERS[kind]:
        given = entry(kind, **{name: (-1.0).hex()})
        if name in ("low", "high"):
            assert Claim.read(given).numbers[name] == -1.0
        else:
            refused(given)
            if name not in ("delta", "margin", "p"):
                assert Claim.read(entry(kind, **{name: ZERO})).numbers[name] == 0.0
                assert Claim.read(entry(kind, **{name: (-0.0).hex()})).numbers[name] == 0.0


def test_samples_apart_by_nothing_are_not_separated() -> None:
    for zero in (0.0, -0.0):
        refused(entry("separated", delta=zero.hex()))
        refused(entry("argmax", margin=zero.hex()))
    least = 2.0**-1074
    assert Claim.read(entry("separated", delta=least.hex())).numbers["delta"] == least


def test_the_power_of_a_mean_is_a_whole_number() -> None:
    for p in (1, 2, 64):
        assert Claim.read(entry("lp_error", p=float(p).hex())).numbers["p"] == p
    for p in (0, 65, 1.5, 2**30):
        refused(entry("lp_error", p=float(p).hex()))


@pytest.mark.parametrize(
    "given", [None, [], "memorizes", 1, {}, {"type": None}, {"type": "believes"}, {"type": []}]
)
def test_what_is_no_claim_is_refused(given) -> None:
    refused(given)


@pytest.mark.parametrize("kind", NUMBERS)
def test_it_is_written_as_it_was_read(kind: str) -> None:
    given = entry(kind, arith="float32", scope="sequence")
    written = Claim.read(given).to_json()
    assert written == {name: value for name, value in given.items() if name != "target"}
    assert Claim.read(entry(kind) | written) == Claim.read(given)


def test_a_claim_is_shown_in_full() -> None:
    shown = str(Claim.read(entry("separated", r=(2.0).hex(), delta=(0.125).hex())))
    assert shown == "separated (real, per token, delta=0.125, r=2)"


def test_numbers_keep_all_their_bits() -> None:
    value = float(np.nextafter(0.1, 1))
    assert Claim.read(entry("memorizes", eps=value.hex())).numbers["eps"] == value


def test_a_verdict_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="compare its outcome"):
        bool(Verdict("refuted", "", 0.0))


def test_a_claim_implies_the_same_in_real_arithmetic_and_nothing_else() -> None:
    claim = Claim("memorizes", "float32", "token", {"eps": 1.0})
    assert claim.implies(Claim("memorizes", "real", "token", {"eps": 1.0})) is True
    for other in (
        claim,
        Claim("memorizes", "float64", "token", {"eps": 1.0}),
        Claim("memorizes", "real", "sequence", {"eps": 1.0}),
        Claim("memorizes", "real", "token", {"eps": 2.0}),
        Claim("memorizes", "real", "token", {"eps": 0.5}),
        Claim("rejects", "real", "token", {"eps": 1.0}),
        Claim("memorizes", "real", "token", {"eps": 1.0}, "a target"),
    ):
        assert claim.implies(other) is False


def test_a_verdict_has_no_size_unless_one_is_given() -> None:
    assert Verdict("proved", "", 1.0).size == 0
