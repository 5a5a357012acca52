"""Forged bundles are refused at the gate meant to refuse them; honest neighbours are accepted."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from attacks.bundle import pack, read
from attacks.forgeries import forgeries
from onelayer import save
from onelayer_checker.front import EXITS
from tests.checker.asked import check
from tests.processes import CHECKER, run_python

memorize = partial(onelayer.memorize, certify=False)

rng = np.random.default_rng(12)
X, Y = rng.standard_normal((12, 4, 3)), rng.integers(0, 7, (12, 4))


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest") / "bundle"
    save(folder, memorize(X, Y), data=(X, Y))
    return read(folder)


def all_forgeries():
    """Collected once on a bundle of the same kind, for their names."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        base = read(save(Path(folder) / "bundle", memorize(X, Y), data=(X, Y)))
        return list(forgeries(base))


FORGERIES = {forgery.name: forgery for forgery in all_forgeries()}


def test_there_are_enough_of_them() -> None:
    assert len(FORGERIES) >= 100
    assert len(FORGERIES) == len(all_forgeries())  # no two share a name


@pytest.mark.parametrize("name", FORGERIES)
def test_is_refused_at_its_gate(tmp_path, honest, name) -> None:
    forgery, forged = FORGERIES[name], honest.copy()
    forgery.change(forged)
    verdict = check(forged.write(tmp_path / "forged"))
    assert verdict["result"] != "VERIFIED"
    assert verdict["gate"] == forgery.gate, verdict["why"]
    if forgery.result:
        assert verdict["result"] == forgery.result, verdict


def neighbours(b):
    claims = b.certificate["claims"]
    index = {claim["type"]: i for i, claim in enumerate(claims)}
    separated, robust = claims[index["separated"]], claims[index["robust"]]

    def with_claim(i, **fields):
        changed = b.copy()
        changed.certificate["claims"][i].update(fields)
        return changed

    def halved(text):
        return (float.fromhex(text) / 2).hex()

    yield "as it is", b.copy()
    yield "a larger eps", with_claim(0, eps=(0.25).hex())
    yield "a smaller delta", with_claim(index["separated"], delta=halved(separated["delta"]))
    yield "a larger r", with_claim(index["separated"], r=(float.fromhex(separated["r"]) * 2).hex())
    yield "a smaller radius", with_claim(index["robust"], radius=halved(robust["radius"]))
    yield "real arithmetic twice", with_claim(1, arith="real")
    one = b.copy()
    one.certificate["claims"] = claims[:1]
    yield "one claim", one
    order = rng.permutation(len(b.data["tokens"]))
    permuted = b.copy()
    permuted.data["tokens"] = b.data["tokens"][order]
    permuted.data["answers"] = b.data["answers"].reshape(len(order), -1)[order].reshape(-1, 1)
    yield "sequences in another order", permuted
    resaved = b.copy()
    resaved.model = dict(reversed(b.model.items()))
    yield "tensors in another order", resaved
    annotated = b.copy()
    annotated.raw["model.safetensors"] = pack(b.model, lambda h: {"__metadata__": {"note": "x"}, **h})
    yield "metadata in the header", annotated
    flipped = b.copy()
    flipped.certificate["claims"] = claims[:2]
    weight = flipped.model["attention.W_K"]
    weight.flat[0] = np.nextafter(weight.flat[0], 0)
    yield "a last bit that does not matter", flipped
    explicit = b.copy()
    explicit.data["lengths"] = np.full(len(order), b.data["tokens"].shape[1], np.int64)
    yield "lengths written out", explicit


def test_honest_neighbours_are_accepted(tmp_path, honest) -> None:
    seen = 0
    for name, bundle in neighbours(honest):
        verdict = check(bundle.write(tmp_path / name))
        assert verdict["result"] == "VERIFIED", (name, verdict)
        seen += 1
    assert seen >= 12


@pytest.mark.parametrize(
    ("name", "result"),
    [("two answers exchanged", "NOT VERIFIED"), ("delta beyond r", "UNKNOWN"), ("cut", "MALFORMED")],
)
def test_exit_codes_and_last_lines(tmp_path, honest, name, result) -> None:
    forged = honest.copy()
    FORGERIES[name].change(forged)
    folder = forged.write(tmp_path / "forged")
    done = run_python(CHECKER, folder)
    assert done.returncode == EXITS[result]
    assert done.stdout.splitlines()[-1] == result
    assert "Traceback" not in done.stderr


def test_a_witness_names_the_token(tmp_path, honest) -> None:
    wrong = honest.copy()
    wrong.data["answers"][4 * 5 + 2] += 1
    verdict = check(wrong.write(tmp_path / "wrong"))
    assert verdict["claims"][0]["outcome"] == "refuted"
    assert verdict["claims"][0]["why"].startswith("sequence 5, token 2 answers")


def test_a_verdict_has_no_truth_value() -> None:
    from onelayer_checker.core.claims import Verdict

    with pytest.raises(TypeError, match="compare its outcome"):
        bool(Verdict("proved", "", 0.0))
