"""Answers changed in a model that is there: those, no others, few weights, proved, and undone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer import OptionError, edit, forget, load, memorize, memorize_text
from onelayer.errors import DataError, HypothesisError

RNG = np.random.default_rng(3)
X, Y = RNG.integers(0, 60, (80, 6)), RNG.integers(0, 9, (80, 6))
KINDS = {
    "packed": {"mapping": "lattice", "readout": "packed"},
    "retrieval": {"mapping": "lattice", "readout": "retrieval"},
    "fingerprints": {"mapping": "lattice", "readout": "packed", "default": 4, "false_hits": 1e-3},
    "table": {"default": 4},
    "plateaus": {"readout": "plateaus", "dtype": "float64"},
    "logits": {"mapping": "lattice", "readout": "packed", "logits": True},
}


@pytest.fixture(scope="module")
def models():
    return {name: memorize(X, Y, positions=True, certify=True, **options) for name, options in KINDS.items()}


@pytest.mark.parametrize(("kind", "count"), [*((kind, 20) for kind in KINDS), ("packed", 1), ("retrieval", 1)])
def test_these_answers_change_and_no_others(models, kind, count) -> None:
    model, at = models[kind], RNG.permutation(80)[:count]
    changed = Y[at].copy()
    changed[:, 2] = (changed[:, 2] + 1) % 9
    wanted = Y.copy()
    wanted[at] = changed
    made = edit(model, X[at], changed)
    np.testing.assert_array_equal(made.model.predict(X), wanted)
    np.testing.assert_array_equal(made.model.predict(X, path="dense"), wanted)
    assert sorted(made.answers.tolist()) == sorted((6 * at + 2).tolist())
    assert made.verify() == "VERIFIED"
    assert made.model.verify(data=(X, wanted)).result == "VERIFIED"
    assert made.model.verify(data=(X, Y)).result == "NOT VERIFIED"
    assert made.undo() == model
    np.testing.assert_array_equal(model.predict(X), Y)
    assert made.in_place == (kind != "plateaus")
    if made.in_place:
        assert 0 < made.n_weights < 0.3 * model.n_parameters
        assert "weights differ" in str(made)


@pytest.mark.parametrize("kind", ["packed", "retrieval", "fingerprints", "table"])
def test_the_weights_that_differ_are_listed_and_lead_back(models, kind) -> None:
    made = edit(models[kind], X[:3], (Y[:3] + 1) % 9)
    assert len({change.tensor for change in made.weights}) == 1  # that of the entries
    before = {name: a.copy() for name, a in models[kind].transformer.tensors()}
    for change in made.weights:
        np.testing.assert_array_equal(before[change.tensor].ravel()[change.at], change.before)
        before[change.tensor].reshape(-1)[change.at] = change.after
    for name, a in made.model.transformer.tensors():
        np.testing.assert_array_equal(a, before[name])


def test_the_same_answers_change_nothing(models) -> None:
    made = edit(models["packed"], X[:5], Y[:5])
    assert (made.n_weights, len(made.answers), made.verify()) == (0, 0, "VERIFIED")


def test_a_claim_about_other_answers_is_noticed(models) -> None:
    made = edit(models["packed"], X[:1], (Y[:1] + 1) % 9)
    assert replace(made, answers=made.answers[1:]).verify() == "UNKNOWN"
    assert replace(made, answers=np.append(made.answers, 400)).verify() == "UNKNOWN"


def test_edits_follow_each_other(models) -> None:
    first = edit(models["packed"], X[:1], (Y[:1] + 1) % 9)
    second = edit(first.model, X[1:2], (Y[1:2] + 1) % 9)
    wanted = Y.copy()
    wanted[:2] = (wanted[:2] + 1) % 9
    np.testing.assert_array_equal(second.model.predict(X), wanted)
    back = edit(edit(first.model, X[:1], Y[:1]).model, X[1:2], Y[1:2])
    np.testing.assert_array_equal(back.model.predict(X), Y)


def test_an_edited_model_is_saved_with_its_proof(models, tmp_path) -> None:
    made = edit(models["packed"], X[:1], (Y[:1] + 1) % 9)
    assert load(made.model.save(tmp_path / "m")) == made.model


def test_words_lengths_and_one_answer_per_sequence() -> None:
    words = [["a", "b"], ["b"], ["a", "c", "b"], ["c", "d"]]
    model = memorize(words, ["x", "y", "z", "x"], certify=True)
    made = edit(model, [["b"], ["c", "d"]], ["z", "y"])
    assert made.model.predict(words).tolist() == ["x", "z", "z", "y"]
    assert made.verify() == "VERIFIED"
    each = memorize(words, [[1, 2], [2], [1, 3, 2], [3, 4]], certify=True)
    made = edit(each, [["a", "c", "b"]], [[4, 4, 2]])
    assert made.model.predict(words) == [[1, 2], [2], [4, 4, 2], [3, 4]]
    assert made.verify() == "VERIFIED"


@pytest.mark.parametrize(("tokens", "answers"), [(["a", "e"], ["x", "y"]), (["b", "a"], ["x", "new"])])
def test_what_is_new_is_rebuilt(tokens, answers) -> None:
    words = [["a", "b"], ["b", "c"], ["c", "a"]]
    model = memorize(words, [["x", "y"], ["y", "x"], ["x", "x"]], positions=True, certify=True)
    made = edit(model, [tokens, ["b", "c"]], [answers, ["x", "x"]])
    assert not made.in_place
    assert "new to it" in made.model.ledger.meaning("rebuilt")
    assert made.model.predict([*words, tokens]).tolist() == [["x", "y"], ["x", "x"], ["x", "x"], answers]
    assert sorted(made.answers.tolist()) == [2, 6, 7]
    assert made.verify() == "VERIFIED"
    assert made.n_weights == made.model.n_parameters


def test_real_tokens() -> None:
    reals = RNG.standard_normal((30, 4, 2)).astype(np.float32)
    model = memorize(reals, Y[:30, :4], certify=True)
    made = edit(model, reals[:2], (Y[:2, :4] + 1) % 9)
    np.testing.assert_array_equal(made.model.predict(reals)[:2], (Y[:2, :4] + 1) % 9)
    np.testing.assert_array_equal(made.model.predict(reals)[2:], Y[2:30, :4])


@pytest.mark.parametrize("kind", ["table", "fingerprints"])
def test_what_is_forgotten_gets_the_default(models, kind) -> None:
    made = forget(models[kind], X[:2])
    np.testing.assert_array_equal(made.model.predict(X[:2]), np.full((2, 6), 4))
    np.testing.assert_array_equal(made.model.predict(X[2:]), Y[2:])
    assert made.verify() == "VERIFIED"


def test_what_cannot_be_edited_is_refused_by_name(models) -> None:
    with pytest.raises(OptionError, match="default"):
        forget(models["packed"], X[:1])
    with pytest.raises(OptionError, match="certificate"):
        edit(memorize(X[:2], Y[:2], positions=True, certify=False), X[:1], Y[:1])
    with pytest.raises(OptionError, match="continues a text"):
        edit(memorize_text("to be, or not to be", context=4), X[:1], Y[:1])
    unordered = memorize([["a", "b"], ["b", "a"]], [["x", "y"], ["y", "x"]], certify=True)
    with pytest.raises(HypothesisError):
        edit(unordered, [["a", "b"]], [["y", "y"]])  # the other order is the same context


def test_the_command_writes_the_new_model_and_says_what_changed(tmp_path, capsys) -> None:
    import json

    from onelayer.cli.editing import edit as command

    words = [["river", "bank"], ["bank", "robber"]]
    old = memorize(words, [["water", "shore"], ["money", "crime"]], mapping="lattice", certify=True)
    old.save(tmp_path / "old")
    changes = tmp_path / "changes.jsonl"
    changes.write_text('{"tokens": ["bank", "robber"], "answers": ["money", "water"]}\n')
    command(tmp_path / "old", changes, tmp_path / "new", diff=tmp_path / "diff.jsonl", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["result"], said["answers"], said["in_place"]) == ("VERIFIED", 1, True)
    new = load(tmp_path / "new")
    assert new.predict(words).tolist() == [["water", "shore"], ["money", "water"]]
    lines = [json.loads(line) for line in (tmp_path / "diff.jsonl").read_text().splitlines()]
    assert lines == said["changes"]
    weights = {name: a.copy() for name, a in old.transformer.tensors()}
    for tensor, at, before, after in lines:
        assert weights[tensor].flat[at] == before
        weights[tensor].flat[at] = after
    assert all((weights[name] == a).all() for name, a in new.transformer.tensors())
    command(tmp_path / "new", changes, tmp_path / "again")
    assert "0 answers changed" in capsys.readouterr().out
    command(tmp_path / "old", changes, tmp_path / "third")
    printed = capsys.readouterr().out
    assert printed.startswith("1 answer changed, ")
    assert "VERIFIED: this answer changed, and all others are as before." in printed


@pytest.mark.parametrize("kind", ["packed", "plateaus"])
def test_changes_that_contradict_each_other_are_refused(models, kind) -> None:
    """The last of them would have won without a word."""
    other = (Y[:1] + 1) % 9
    with pytest.raises(DataError, match="sequences 1 and 3 are equal, and their answers differ"):
        edit(models[kind], X[[5, 0, 7, 0]], np.concatenate([Y[[5, 0, 7]], other]))
    assert edit(models[kind], X[[0, 0]], np.concatenate([other, other])).verify() == "VERIFIED"
