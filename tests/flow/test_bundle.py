"""Bundles: what is saved is what is loaded, and anything else is refused by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from onelayer import HypothesisError, load, memorize, save

rng = np.random.default_rng(8)
X = rng.standard_normal((20, 5, 3))


def models():
    return {
        "classes": memorize(X, rng.integers(0, 9, (20, 5))),
        "vectors, float32": memorize(X, rng.standard_normal((20, 5, 2)), dtype="float32"),
        "per sequence, odd classes": memorize(X, [("a", i) if i % 2 else None for i in range(20)]),
        "words with positions": memorize([["a", "b"], ["b", "a"], ["c"]], [[1, 2], [3, 4], [5]], positions=True),
        "averages": memorize(X, rng.integers(0, 9, (20, 5)), mapping="averages"),
    }


@pytest.mark.parametrize("name", models())
def test_round_trip(tmp_path, name) -> None:
    model = models()[name]
    again = load(save(tmp_path / "m", model))
    assert {n: a.tobytes() for n, a in again.transformer.tensors()} == {
        n: a.tobytes() for n, a in model.transformer.tensors()
    }
    assert again.ledger == model.ledger
    assert (again.form, again.vocabulary, again.transformer.channels) == (
        model.form,
        model.vocabulary,
        model.transformer.channels,
    )
    question = [["a", "b"], ["c"]] if model.vocabulary else X
    np.testing.assert_equal(again.predict(question), model.predict(question))


@pytest.fixture
def bundle(tmp_path):
    return save(tmp_path / "m", memorize(X, rng.integers(0, 9, (20, 5))))


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
        (lambda b: edit(b, "format", "onelayer-bundle/0"), "it has the format 'onelayer-bundle/0'"),
        (lambda b: edit(b, "channels", ["x"]), "was edited after it was saved"),
    ],
)
def test_spoilt_bundles_are_refused(bundle, spoil, words) -> None:
    spoil(bundle)
    with pytest.raises(HypothesisError, match=words):
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
        with pytest.raises(HypothesisError, match="bundle at"):
            load(bundle)


def json_or_none(text: bytes):
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_a_mixture_of_two_bundles_is_refused(bundle, tmp_path) -> None:
    other = save(tmp_path / "other", memorize(X, rng.standard_normal((20, 5))))
    (bundle / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(HypothesisError, match="does not have the digest"):
        load(bundle)


def test_overwriting_is_a_choice(bundle, tmp_path) -> None:
    model = load(bundle)
    save(bundle, model)
    with pytest.raises(HypothesisError, match="exists already"):
        save(bundle, model, overwrite=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(HypothesisError, match="not a onelayer bundle"):
        save(tmp_path / "mine", model)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "mine"]


def test_classes_that_cannot_be_written_are_named_and_nothing_is_left(tmp_path) -> None:
    model = memorize(X[:2], np.array([frozenset({1}), frozenset({2})], dtype=object))
    with pytest.raises(HypothesisError, match="of type frozenset"):
        save(tmp_path / "m", model)
    assert not list(tmp_path.iterdir())


def test_a_process_killed_while_saving_leaves_the_old_bundle_or_none(tmp_path) -> None:
    program = textwrap.dedent("""
        import sys, numpy as np
        from onelayer import memorize, save
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 8, 8))
        models = [memorize(X, rng.integers(0, 99, (400, 8)), seed=s) for s in (0, 1)]
        save(sys.argv[1], models[0])
        print("saved", flush=True)
        while True:
            for model in models:
                save(sys.argv[1], model)
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
