"""A verdict means what a person means: bounds say something, and names are held against the person's own data."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import onelayer
from attacks.bundle import read
from attacks.counterexamples import COPY, IDENTITY, bundle, claim
from attacks.meanings import ANSWERS, SEQUENCES, loosen, misnomers
from onelayer import DataError, HypothesisError, OptionError, load, save
from onelayer.certificates.names import names_of
from onelayer_checker import Claim, check
from onelayer_checker.core.meaning import beside, constant_error
from onelayer_checker.core.samples import Data
from tests.processes import CHECKER, run_python

memorize = partial(onelayer.memorize, certify=False)

DATA = (SEQUENCES, ANSWERS)
LINES = "".join(json.dumps({"tokens": x, "answers": y}) + "\n" for x, y in zip(*DATA, strict=True))


@pytest.fixture(scope="module")
def facts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "facts.jsonl"
    path.write_text(LINES)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save(tmp_path_factory.mktemp("names") / "bundle", memorize(*DATA), data=DATA)


@pytest.fixture(scope="module")
def honest(folder):
    return read(folder)


def all_misnomers():
    import tempfile

    with tempfile.TemporaryDirectory() as parent:
        return list(misnomers(read(save(Path(parent) / "bundle", memorize(*DATA), data=DATA))))


MISNOMERS = {forgery.name: forgery for forgery in all_misnomers()}


def test_no_two_share_a_name() -> None:
    assert len(MISNOMERS) == len(all_misnomers()) >= 45


@pytest.mark.parametrize("name", MISNOMERS)
def test_a_misnomer_is_told(tmp_path, facts, honest, name) -> None:
    forgery, forged = MISNOMERS[name], honest.copy()
    forgery.change(forged)
    forged.write(tmp_path)
    alone = check(tmp_path)
    assert (alone.result, alone.gate) == (forgery.result, forgery.gate), alone.why
    beside = check(tmp_path, data=facts)
    assert beside.result == forgery.with_data, beside.why


def test_the_honest_bundle_is_what_the_person_has(folder, facts) -> None:
    report = check(folder, data=facts, require=["memorizes float32 0", "memorizes real", "separated"])
    assert (report.result, report.gate, report.why) == ("VERIFIED", "", "")
    assert report.notes == (
        "about the 16 sequences stored in the folder, with 4 tokens and 16 classes",
        "the data given: all 16 sequences are certified with these answers",
    )
    assert report.to_json()["notes"] == list(report.notes)


def test_wrong_answers_are_named_and_nothing_is_written(tmp_path) -> None:
    model = memorize(*DATA)
    rolled = [np.roll(row, 1).tolist() for row in ANSWERS]
    with pytest.raises(HypothesisError) as caught:
        save(tmp_path / "m", model, data=(SEQUENCES, rolled))
    said = "sequence 0, token 0 ('bank') is answered 'bank of bank and river', not 'river of bank and river'"
    assert said in caught.value.found
    assert not list(tmp_path.iterdir())


def test_the_certified_names_are_those_that_answer(tmp_path, facts) -> None:
    """Swapped with every digest rewritten they are VERIFIED, and answer wrongly; only the data tells."""
    model, proof = memorize(*DATA), onelayer.certify(memorize(*DATA), *DATA)
    a, b, *others = model.form.classes
    form = replace(model.form, classes=(b, a, *others))
    swapped = replace(model, interface=replace(model.interface, form=form))
    with pytest.raises(OptionError, match="a certificate of this very model"):
        save(tmp_path / "m", swapped, certificate=proof)
    save(tmp_path / "m", swapped, certificate=replace(proof, names=names_of(swapped)))
    assert load(tmp_path / "m").predict(SEQUENCES) != ANSWERS
    assert check(tmp_path / "m").result == "VERIFIED"
    assert check(tmp_path / "m", data=facts).result == "NOT VERIFIED"
    in_description = json.loads((tmp_path / "m" / "model.json").read_text())
    interface = {"kind", "components", "ragged", "default", "stored_bits", "error_upper"}
    assert set(in_description["interface"]) == interface  # no names: they are said in one place only
    assert not {"vocabulary", "answers"} & set(in_description)


def test_requirements_that_are_not_met(folder) -> None:
    for wish, lack in {
        "robust": "robust (any arithmetic)",
        "memorizes float64": "memorizes (float64)",
        "separated float32": "separated (float32)",
        "sup_error_everywhere real 0.1": "sup_error_everywhere (real, bound 0.1)",
    }.items():
        report = check(folder, require=["memorizes", wish])
        assert (report.result, report.gate) == ("UNKNOWN", "require")
        assert report.why == f"required and not proved: {lack}"
    for text in ("", "memorises", "memorizes float8", "memorizes real 1 2"):
        with pytest.raises(ValueError, match=r"claim|float"):
            check(folder, require=[text])


def test_a_claim_that_is_there_but_not_proved_does_not_meet_a_requirement(tmp_path, honest) -> None:
    forged = honest.copy()
    claims = forged.certificate["claims"]
    separated = next(claim for claim in claims if claim["type"] == "separated")
    separated["delta"] = (1e6).hex()
    report = check(forged.write(tmp_path), require=["separated"])
    assert report.result == "UNKNOWN"
    assert report.why == "required and not proved: separated (any arithmetic)"


def test_data_needs_a_claim_that_the_answers_come_back(tmp_path, facts, honest) -> None:
    forged = honest.copy()
    forged.certificate["claims"] = [c for c in forged.certificate["claims"] if c["type"] == "separated"]
    forged.write(tmp_path)
    assert check(tmp_path).result == "VERIFIED"
    report = check(tmp_path, data=facts)
    assert (report.result, report.gate) == ("UNKNOWN", "data")
    assert "it is not proved that these answers come back" in report.why


def test_version_1_is_read_and_its_notes_say_what_it_lacks(tmp_path, facts, honest) -> None:
    former = honest.version_1()
    former.write(tmp_path / "former")
    report = check(tmp_path / "former")
    assert report.result == "VERIFIED"
    assert report.notes == ("names, scope and meaning of the answers are not certified: version 1",)
    beside = check(tmp_path / "former", data=facts)
    assert (beside.result, beside.gate) == ("UNKNOWN", "data")
    assert "version 1 certifies no names" in beside.why
    loosen(former, (0.5).hex())
    loose = check(former.write(tmp_path / "loose"))
    assert (loose.result, loose.gate) == ("MALFORMED", "claim")


def test_names_without_a_version_that_has_them_are_refused(tmp_path, honest) -> None:
    mixed = honest.copy()
    mixed.certificate["format"] = "onelayer-certificate/1"
    assert check(mixed.write(tmp_path / "a")).gate == "fields"
    former = honest.version_1()
    former.certificate["format"] = "onelayer-certificate/2"
    assert check(former.write(tmp_path / "b")).gate == "fields"


def test_reals_are_proved_to_their_rounding_or_to_what_was_asked_for(tmp_path) -> None:
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((12, 3, 2)).astype(np.float32), rng.standard_normal((12, 3))
    model = memorize(X, Y, dtype="float32")
    rounding = float(np.abs(Y - Y.astype(np.float32)).max())
    claims = {c["arith"]: c for c in onelayer.certify(model, X, Y).claims if c["type"] == "memorizes"}
    for found in claims.values():
        assert rounding <= float.fromhex(found["eps"]) <= rounding * 1.000001
    with pytest.raises(HypothesisError, match=r"it can prove .*\. Pass tolerance="):
        onelayer.certify(model, X, Y, tolerance=rounding / 2)
    with pytest.raises(OptionError, match="a constant would do"):
        onelayer.certify(model, X, Y, tolerance=100)
    with pytest.raises(OptionError, match="a number of at least 0"):
        onelayer.certify(model, X, Y, tolerance=-1.0)
    with pytest.raises(OptionError, match="real answers for a tolerance"):
        save(tmp_path / "m", memorize(*DATA), data=DATA, tolerance=0.1)
    assert not list(tmp_path.iterdir())
    report = check(save(tmp_path / "m", model, data=(X, Y), tolerance=1e-3), data=(X, Y))
    assert report.result == "VERIFIED"
    apart = Y.max() - Y.min()
    assert f"largest error {rounding:.6g}; the answers spread over {apart:.6g}" in report.claims[1].verdict.why


def test_an_interpolating_readout_is_certified_to_what_it_states_or_is_asked(tmp_path) -> None:
    rng = np.random.default_rng(6)
    X, Y = rng.standard_normal((12, 3, 2)), rng.standard_normal((12, 3))
    model = memorize(X, Y, readout="triangular", dtype="float64")
    with pytest.raises(HypothesisError) as caught:
        onelayer.certify(model, X, Y)
    enough = float(caught.value.remedy.split("tolerance=")[1].split()[0])
    report = check(
        save(tmp_path / "m", model, data=(X, Y), tolerance=enough), data=(X, Y), require=["memorizes real"]
    )
    assert report.result == "VERIFIED"


def test_a_bound_must_say_something_of_the_answers_that_were_given(tmp_path) -> None:
    """A sequence with a huge answer makes room for a bound that is nothing to the others."""
    rng = np.random.default_rng(7)
    X, Y = rng.standard_normal((8, 2, 2)), rng.standard_normal((8, 2))
    Y[-1] = 1e6
    b = read(save(tmp_path / "m", memorize(X, Y), data=(X, Y)))
    loosen(b, (1e4).hex())
    b.write(tmp_path / "m")
    assert check(tmp_path / "m", data=(X, Y)).result == "VERIFIED"
    report = check(tmp_path / "m", data=(X[:-1], Y[:-1]))
    assert (report.result, report.gate) == ("UNKNOWN", "data")
    assert check(tmp_path / "m", require=["memorizes real 1e-6"]).result == "UNKNOWN"


def test_answers_of_another_kind_are_not_certified() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((6, 2, 2))
    classes, reals = rng.integers(0, 5, (6, 2)), rng.standard_normal((6, 2))
    for first, second in ((classes, reals), (reals, classes)):
        with pytest.raises(DataError, match="answers of the kind that was memorised"):
            onelayer.certify(memorize(X, first), X, second)


def test_the_command_line_of_the_checker(tmp_path, facts, folder) -> None:
    def run(*arguments) -> tuple[int, list[str]]:
        done = run_python(CHECKER, folder, *arguments)
        return done.returncode, done.stdout.splitlines()

    wishes = ("--require", "memorizes float32", "--require", "separated")
    code, lines = run("--data", facts, *wishes)
    assert (code, lines[-1]) == (0, "VERIFIED")
    assert "note: the data given: all 16 sequences are certified with these answers" in lines
    code, lines = run()
    assert code == 0
    assert lines[-2].endswith("whether they are your data, --data FILE decides")
    changed = tmp_path / "changed.jsonl"
    changed.write_text(LINES.replace('"bank of bank and river"', '"sand"', 1))
    code, lines = run("--data", changed)
    assert (code, lines[-1]) == (1, "NOT VERIFIED")
    assert lines[-2].endswith(
        "has the answer one that is no certified class; 'bank of bank and river' is certified"
    )
    code, lines = run("--data", tmp_path / "nowhere.jsonl")
    assert (code, lines[-1]) == (2, "UNKNOWN")
    assert run("--require", "memorises") == (64, [])


def test_names_without_room_in_a_certificate_are_refused_before_it_is_written(
    tmp_path, monkeypatch, honest
) -> None:
    from onelayer_checker.core import files

    size = len(json.dumps(honest.names).encode())
    monkeypatch.setattr(files, "MOST_NAMES", size - 1)
    assert check(honest.copy().write(tmp_path / "large")).gate == "size"
    monkeypatch.setattr(sys.modules[names_of.__module__], "MOST", size - 1)
    with pytest.raises(DataError, match="names of at most"):
        save(tmp_path / "m", memorize(*DATA), data=DATA)
    assert save(tmp_path / "m", memorize(*DATA)).is_dir()


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([[0], [2], [1]], 1.0),
        ([[3], [3]], 3.0),
        ([[-3], [-3]], 3.0),
        ([[0], [0]], np.inf),
        ([[0, 5], [0.5, 5]], 5.0),
        ([[1, 5], [1.5, 7]], 1.0),
        ([[-1e308], [1e308]], np.inf),
    ],
)
def test_the_error_of_the_best_constant(answers, error) -> None:
    assert constant_error(np.array(answers, np.float64)) == error


def test_a_bound_is_less_than_the_error_of_the_best_constant(tmp_path) -> None:
    copy = COPY | IDENTITY
    for eps, result in ((0.5, "MALFORMED"), (np.nextafter(0.5, 0), "VERIFIED")):
        b = bundle("float64", copy, [[[1], [2]]], [1, 2], claim("memorizes", "real", eps=eps))
        assert check(b.write(tmp_path)).result == result


def test_the_spread_is_told_beside_a_bound() -> None:
    data = Data(
        np.zeros((3, 1, 1)), np.ones(3, int), np.array([[1.0, 5, 0], [3, 5, 8], [99, 99, 99]]), np.array([0, 1, 0])
    )
    loose, exact = (Claim("memorizes", "real", "token", {"eps": eps}) for eps in (0.25, 0.0))
    assert beside(loose, data) == "; the answers spread over 2 to 8"
    assert beside(exact, data) == ""
    one = replace(data, answers=data.answers[:, :1])
    assert beside(loose, one) == "; the answers spread over 2"
    assert beside(loose, replace(data, which=np.zeros(3, int))) == ""
