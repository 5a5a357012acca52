"""`check_construction` passes all of ours and what a third party wrote well, and refuses each that is broken."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from onelayer import memorize, plan
from onelayer.compile.construction import CONSTRUCTIONS
from onelayer.contexts.mapping import MAPPINGS
from onelayer.errors import HypothesisError, OnelayerError
from onelayer.gadgets import registry
from onelayer.readouts.method import READOUTS
from onelayer.search.options import mapping_names, readout_names
from onelayer.testing import ContractError, check_construction
from tests.testing import broken
from tests.testing.third_party import Finer, Lukewarm, OnStairs, Stairs

PROMISES = {
    "recall",
    "permutation",
    "translation",
    "rescaling",
    "hypotheses",
    "search",
    "recognition",
    "names",
    "ledger",
    "verified",
}
#: These take a minute, most of it for fits and for words.
SLOW = ("bits", "continuous")


def ours() -> list:
    classes = [*MAPPINGS.values(), *READOUTS.values(), *CONSTRUCTIONS.values()]
    return [
        pytest.param(
            cls, id=f"{cls.__module__.split('.')[-2]} {cls.name}", marks=[pytest.mark.slow] * (cls.name in SLOW)
        )
        for cls in classes
    ]


@pytest.fixture
def stairs(monkeypatch):
    """The gadget registered, and forgotten again."""

    def put(cls: type[Stairs] = Stairs) -> None:
        monkeypatch.setattr(registry, "GADGETS", registry.GADGETS)
        registry.gadget(cls)

    before = list(registry.GADGETS)
    yield put
    registry.GADGETS[:] = before


@pytest.mark.parametrize("cls", ours())
def test_all_of_ours_keep_the_contract(cls) -> None:
    kept = set(check_construction(cls))
    assert kept == ({"hypotheses"} if getattr(cls, "only_refuses", False) else PROMISES)


def test_a_third_party_keeps_it(stairs) -> None:
    stairs()
    for cls in (Lukewarm, OnStairs, Finer):
        assert set(check_construction(cls)) == PROMISES
    assert not {"lukewarm", "stairs", "finer"} & {*MAPPINGS, *READOUTS, *CONSTRUCTIONS}  # only for the check


@pytest.mark.parametrize("cls", broken.MAPPINGS, ids=lambda cls: cls.__name__)
def test_a_broken_mapping_is_refused(cls) -> None:
    with pytest.raises(ContractError) as refused:
        check_construction(cls)
    assert broken.MAPPINGS[cls] in refused.value.broken


@pytest.mark.parametrize("cls", broken.GADGETS, ids=lambda cls: cls.__name__)
def test_a_broken_gadget_is_refused(cls, stairs) -> None:
    stairs(cls)
    with pytest.raises(ContractError) as refused:
        check_construction(broken.with_gadget(cls))
    assert broken.GADGETS[cls] in refused.value.broken


@pytest.mark.parametrize("cls", broken.OTHERS, ids=lambda cls: cls.__name__)
def test_other_broken_ones_are_refused(cls, stairs) -> None:
    stairs()
    with pytest.raises(ContractError) as refused:
        check_construction(cls)
    assert broken.OTHERS[cls] in refused.value.broken


def test_a_gadget_that_is_not_registered_is_told_so() -> None:
    with pytest.raises(ContractError, match="register the gadget"):
        check_construction(OnStairs)


def test_what_is_no_construction_is_refused() -> None:
    with pytest.raises(TypeError, match="neither a mapping"):
        check_construction(dict)


def test_names_are_taken_once(stairs) -> None:
    with pytest.raises(ValueError, match="there is a mapping 'temperature' already"):
        MAPPINGS.register(type("Other", (Lukewarm,), {"name": "temperature"}))
    with pytest.raises(ValueError, match="there is a gadget 'plateaus' already"):
        registry.gadget(type("Other", (Stairs,), {"kind": "plateaus"}))
    with MAPPINGS.hold(Lukewarm):
        assert mapping_names()[-1] == "lukewarm"
    assert "lukewarm" not in mapping_names()
    stairs()


def test_what_is_registered_can_be_asked_for(stairs) -> None:
    stairs()
    X = np.random.default_rng(0).standard_normal((9, 3, 2))
    Y = np.arange(27).reshape(9, 3) % 4
    with pytest.raises(OnelayerError, match=r"a readout among auto, plateaus, .*, triangular, logits;"):
        memorize(X, Y, readout="stairs")
    with MAPPINGS.hold(Lukewarm), READOUTS.hold(OnStairs):
        assert readout_names()[-2:] == ["stairs", "logits"]
        model = memorize(X, Y, mapping="lukewarm", readout="stairs", certify=True)
        assert (model.predict(X) == Y).all()
        assert [c.kind for c in model.gadgets] == ["affine", "stairs"]
        assert (model.ledger["mapping"], model.ledger["readout"]) == ("lukewarm", "stairs")
        assert "readout / stairs / step 0" in model.unit_names("readout.2")
        with pytest.raises(OnelayerError, match="knows what is stored"):
            memorize(X, Y, readout="stairs", default=0)
        with pytest.raises(OnelayerError, match="needs classes"):
            memorize(X, Y + 0.5, readout="stairs")
        with pytest.raises(OnelayerError, match="one coordinate, that is rank 1"):
            memorize(X, Y, readout="stairs", rank=2)
        with pytest.raises(OnelayerError, match="a readout of several coordinates"):
            memorize(X, Y, readout="stairs", mapping="lattice")


def test_auto_goes_on_to_what_is_registered(monkeypatch) -> None:
    """Where nothing of ours applies."""

    def refuse(*_) -> None:
        raise HypothesisError("temperature", "another mapping", "this one", "Go on.")

    X, Y = np.random.default_rng(0).standard_normal((9, 3, 2)), np.arange(27).reshape(9, 3)
    for kind in MAPPINGS.values():
        monkeypatch.setattr(kind, "construct", classmethod(refuse))
    assert not plan(X, Y, dtype="float64").possible
    eager = type("Eager", (Lukewarm,), {"automatic": True})
    with MAPPINGS.hold(eager):
        assert memorize(X, Y, dtype="float64", certify=False).ledger["mapping"] == "lukewarm"


def test_it_needs_no_test_framework() -> None:
    program = "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None; import onelayer.testing"
    subprocess.run([sys.executable, "-c", program], check=True)
