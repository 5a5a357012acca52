"""Bundles: what is saved is what is loaded, and anything else is refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from onelayer import DataError, FileError, Model, OptionError, approximate, load, memorize, memorize_text, save
from onelayer.measure.recall import recall
from onelayer.problems.tokens import ranges

rng = np.random.default_rng(8)
X = rng.standard_normal((20, 5, 3))


MODELS = {
    "classes": (X, rng.integers(0, 9, (20, 5)), {}),
    "vectors, float32": (X, rng.standard_normal((20, 5, 2)), {"dtype": "float32"}),
    "per sequence, odd classes": (X, [("a", i) if i % 2 else None for i in range(20)], {}),
    "words with positions": ([["a", "b"], ["b", "a"], ["c"]], [[1, 2], [3, 4], [5]], {"positions": True}),
    "averages": (X, rng.integers(0, 9, (20, 5)), {"mapping": "averages"}),
    "a default": (X, rng.integers(0, 9, (20, 5)), {"default": 7}),
    "interpolated": (X, rng.standard_normal((20, 5)), {"readout": "triangular", "dtype": "float64"}),
}


def built(name: str) -> Model:
    data, answers, options = MODELS[name]
    return memorize(data, answers, certify=False, **options)


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(tmp_path, name) -> None:
    model = built(name)
    again = load(save(tmp_path / "m", model))
    assert {n: a.tobytes() for n, a in again.transformer.tensors()} == {
        n: a.tobytes() for n, a in model.transformer.tensors()
    }
    assert again.ledger == model.ledger
    assert again.interface == model.interface
    assert again.transformer.channels == model.transformer.channels
    question = [["a", "b"], ["c"]] if model.interface.vocabulary else X
    np.testing.assert_equal(again.predict(question), model.predict(question))


@pytest.fixture
def bundle(tmp_path):
    return save(tmp_path / "m", memorize(X, rng.integers(0, 9, (20, 5)), certify=False))


def flip(path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda b: flip(b / "model.safetensors", -3), "does not have the digest"),
        (lambda b: flip(b / "model.safetensors", 20), "does not have the digest"),
        (lambda b: os.truncate(b / "model.safetensors", 100), "does not have the digest"),
        (lambda b: os.truncate(b / "model.json", 100), "truncated or edited"),
        (lambda b: (b / "model.json").write_text("[]"), "truncated or edited"),
        (lambda b: (b / "model.json").unlink(), "there is no"),
        (lambda b: (b / "model.safetensors").unlink(), "there is no"),
        (lambda b: (b / "names.json").unlink(), "there is no"),
        (lambda b: flip(b / "names.json", -3), "names.json does not have the digest"),
        (lambda b: (b / "names.json").write_text(""), "names.json does not have the digest"),
        (lambda b: edit(b, "format", "onelayer-bundle/0"), "it has the format 'onelayer-bundle/0'"),
        (lambda b: edit(b, "channels", ["x"]), "was edited after it was saved"),
    ],
)
def test_spoilt_bundles_are_refused(bundle, spoil, words) -> None:
    spoil(bundle)
    with pytest.raises(FileError, match=words):
        load(bundle)


def edit(bundle, field: str, value) -> None:
    path = bundle / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))


def test_every_flipped_byte_of_the_description_is_refused(bundle) -> None:
    path = bundle / "model.json"
    original = path.read_bytes()
    for position in range(0, len(original), 37):
        changed = bytearray(original)
        changed[position] ^= 1
        if json_or_none(bytes(changed)) == json.loads(original):
            continue  # white space: the same description
        path.write_bytes(changed)
        with pytest.raises(FileError, match="bundle at"):
            load(bundle)


def json_or_none(text: bytes):
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_a_mixture_of_two_bundles_is_refused(bundle, tmp_path) -> None:
    other = save(tmp_path / "other", memorize(X, rng.standard_normal((20, 5)), certify=False))
    (bundle / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(FileError, match="does not have the digest"):
        load(bundle)


def as_former(bundle, model, version: int, further: list[dict[str, object]]) -> None:
    """The folder as it was before there were interfaces, whose state was in the ledger. In version 1, names were
    part of the description."""
    form, description = model.form, json.loads((bundle / "model.json").read_text())
    for gone in ("weights_sha256", "interface", "verdicts"):
        del description[gone]
    description |= {
        "format": f"onelayer-bundle/{version}",
        "answers": {"components": form.components, "ragged": form.ragged},
        "ledger": description["ledger"] + further,
    }
    if version == 1:
        names = json.loads((bundle / "names.json").read_text())
        del description["names_sha256"]
        description["attention"] |= {"causal": names["causal"]}
        description["vocabulary"] = names["tokens"]
        description["answers"] |= {"scope": names["scope"], "classes": names["answers"]}
        (bundle / "names.json").unlink()
    put_together(bundle, model, description)


def put_together(bundle, model, description) -> None:
    """Weights and description with the digests of each other."""
    canonical = json.dumps(description, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    tensors = {name: np.ascontiguousarray(a) for name, a in model.transformer.tensors()}
    weights = save_tensors(tensors, metadata={"description_sha256": digest})
    (bundle / "model.safetensors").write_bytes(weights)
    whole = description | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
    (bundle / "model.json").write_text(json.dumps(whole))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_former_bundles_are_read(tmp_path, name, version) -> None:
    model = built(name)
    as_former(save(tmp_path / "m", model), model, version, [])
    assert load(tmp_path / "m") == model
    edit(tmp_path / "m", "channels", ["x"])
    with pytest.raises(FileError, match="was edited after it was saved"):
        load(tmp_path / "m")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tokenizer", [None, "bpe"])
def test_former_texts_are_read(tmp_path, tokenizer, version) -> None:
    """Their tokens were two lines of the ledger."""
    text = "to be, or not to be, that is the question"
    model = memorize_text(text, 6, tokenizer=tokenizer, certify=False)
    tokens = model.interface.tokens
    lines = [{"name": "alphabet", "value": ranges(model.interface.alphabet), "meaning": "ids"}]
    if tokenizer is not None:
        merges = [float(token) for pair in tokens.merges for token in pair]
        lines.append({"name": "merges", "value": merges, "meaning": "pairs of ids"})
    as_former(save(tmp_path / "m", model), model, version, lines)
    again = load(tmp_path / "m")
    assert again.interface == model.interface
    assert again.generate(text[:9], 5) == model.generate(text[:9], 5)
    assert load(again.save(tmp_path / "again")) == again


def test_former_functions_answer_within_their_tolerance(tmp_path) -> None:
    """What their ledger does not say of the target is gone; their answers and their proof are not."""
    model = approximate("x - mean(y)", n=2, tolerance=0.1, construction="quantise")
    plain = replace(model, certificate=None)
    as_former(save(tmp_path / "m", plain), plain, 2, [])
    again = load(tmp_path / "m")
    X = model.interface.box.draw(np.random.default_rng(0), 20)
    assert (again.predict(X) == model.predict(X)).all()
    assert again.interface.allowed_error == model.interface.allowed_error == 0.1
    assert recall(again, X, X - X.mean(axis=1, keepdims=True)).perfect
    with pytest.raises(OptionError, match=r"a model that computes a function, for target"):
        _ = again.target


def test_names_that_do_not_fit_the_weights_are_refused(tmp_path) -> None:
    """Even where every digest is right: positions, and the bytes of a text's tokens, are said in one place only."""
    text = memorize_text(b"to be, or not to be", context=4, certify=False)
    for model, field, value in (
        (built("classes"), "positions", True),
        (built("classes"), "pieces", [""]),
        (text, "pieces", [*(f"{i:02x}" for i in range(255, -1, -1)), ""]),
    ):
        folder = save(tmp_path / "m", model, overwrite=True)
        named = json.dumps(json.loads((folder / "names.json").read_text()) | {field: value}).encode()
        (folder / "names.json").write_bytes(named)
        description = json.loads((folder / "model.json").read_text())
        del description["weights_sha256"]
        put_together(folder, model, description | {"names_sha256": hashlib.sha256(named).hexdigest()})
        with pytest.raises(FileError, match=r"names\.json does not fit the weights"):
            load(folder)


def test_overwriting_is_a_choice(bundle, tmp_path) -> None:
    """For `save`, `Model.save` and the command line alike; what is there already may be saved again."""
    model, other = load(bundle), memorize(X[:, :, 0], X[:, :, 0], certify=False)
    before = {path.name: path.stat().st_mtime_ns for path in bundle.iterdir()}
    assert save(bundle, model) == bundle
    assert {path.name: path.stat().st_mtime_ns for path in bundle.iterdir()} == before
    for refused in (lambda: save(bundle, other), lambda: other.save(bundle)):
        with pytest.raises(FileError, match=r"exists already\. Choose another folder, or pass overwrite=True\."):
            refused()
    assert load(bundle) == model
    assert load(other.save(bundle, overwrite=True)) == other
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(FileError, match="not a onelayer bundle"):
        save(tmp_path / "mine", model)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "mine"]


def test_classes_that_cannot_be_written_are_named_and_nothing_is_left(tmp_path) -> None:
    model = memorize(X[:2], np.array([frozenset({1}), frozenset({2})], dtype=object))
    assert model.certificate is None
    assert "of type frozenset" in model.ledger.meaning("certified")
    with pytest.raises(DataError, match="of type frozenset"):
        save(tmp_path / "m", model)
    assert not list(tmp_path.iterdir())


def test_a_process_killed_while_saving_leaves_the_old_bundle_or_none(tmp_path) -> None:
    program = textwrap.dedent("""
        import sys, numpy as np
        from onelayer import memorize, save
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 8, 8))
        models = [memorize(X, rng.integers(0, 99, (400, 8)), seed=s, certify=False) for s in (0, 1)]
        save(sys.argv[1], models[0])
        print("saved", flush=True)
        while True:
            for model in models:
                save(sys.argv[1], model, overwrite=True)
    """)
    for delay in (0.05, 0.11, 0.17):
        path = tmp_path / f"m{delay}"
        process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(delay)
        process.kill()
        process.communicate()
        if path.exists():
            load(path)
