"""Data as people hold it in Python: frames, series, tensors, tuples, long words, and answers that are missing."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch

from onelayer import DataError, OptionError, memorize, plan
from onelayer.measure.recall import recall_answers
from onelayer.problems import sequences as reading
from onelayer.problems.answers import read_answers
from onelayer.problems.files.table import typed_array
from onelayer.problems.names import number_values
from onelayer.problems.scopes import answer_places, at_answers, in_places
from onelayer.problems.sequences import read_sequences

WORDS = [["river", "bank"], ["bank", "robber", "ran"], ["money", "bank"]]
LABELS = [["water", "shore"], ["money", "crime", "verb"], ["noun", "money"]]
IDS, CLASSES = [[1, 2, 3], [2, 3, 5]], [7, 8]
REALS = [[0.5, 1.25, -3.0], [2.0, 0.25, 1.5]]


SAME = {
    "a frame of words": (pd.DataFrame([[*row, None][:3] for row in WORDS]), pd.Series(LABELS), WORDS, LABELS),
    "a frame of ids": (pd.DataFrame(IDS), pd.Series(CLASSES), np.array(IDS), np.array(CLASSES)),
    "a frame of reals": (pd.DataFrame(REALS), pd.Series([0.5, 1.5]), np.array(REALS), np.array([0.5, 1.5])),
    "a frame of answers": (pd.DataFrame(REALS), pd.DataFrame(IDS), np.array(REALS), np.array(IDS)),
    "categories": (pd.DataFrame(IDS), pd.Series(["b", "a"], dtype="category"), np.array(IDS), ["b", "a"]),
    "numbers that may be missing": (
        pd.DataFrame(IDS, dtype="Int64"),
        pd.Series(CLASSES, dtype="Int64"),
        IDS,
        CLASSES,
    ),
    "series of lists": (pd.Series(WORDS), pd.Series(LABELS), WORDS, LABELS),
    "an index that does not count": (pd.Series(WORDS, index=[5, 3, 1]), pd.Series(LABELS), WORDS, LABELS),
    "tensors": (
        torch.tensor(REALS, requires_grad=True),
        torch.tensor(IDS),
        np.array(REALS, np.float32),
        np.array(IDS),
    ),
    "half precision": (
        torch.tensor(REALS, dtype=torch.bfloat16),
        torch.tensor([0.5, 2.0], dtype=torch.bfloat16),
        np.array(REALS, np.float32),
        np.array([0.5, 2.0], np.float32),
    ),
    "lists of tensors": (
        [torch.tensor([0.5, 1.0]), torch.tensor([2.0])],
        [torch.tensor([1, 2]), torch.tensor([3])],
        [[0.5, 1.0], [2.0]],
        [[1, 2], [3]],
    ),
    "words in objects": (
        np.array([["a", "b"], ["b", "c"]], object),
        ["y", "x"],
        [["a", "b"], ["b", "c"]],
        ["y", "x"],
    ),
}


def assert_same_data(X, Y, plain_X, plain_Y) -> None:
    built, same = memorize(X, Y), memorize(plain_X, plain_Y)
    assert built.interface.vocabulary == same.interface.vocabulary
    assert built.interface.form.classes == same.interface.form.classes
    assert {k: a.tobytes() for k, a in built.transformer.tensors()} == {
        k: a.tobytes() for k, a in same.transformer.tensors()
    }
    assert recall_answers(built, X, Y).perfect


@pytest.mark.parametrize("case", SAME)
def test_it_is_the_same_data(case: str) -> None:
    assert_same_data(*SAME[case])


@pytest.mark.parametrize(
    ("Y", "place"),
    [
        ([0.5, float("nan")], "sequence 1 is"),
        (np.array([0.5, np.nan], object), "sequence 1 is nan"),
        (["a", float("nan")], "sequence 1 is nan"),
        ([["a", "b", "c"], ["d", float("nan"), "e"]], r"sequence 1, token 1 \(3\) is nan"),
        (pd.Series([1, None], dtype="Int64"), "sequence 1 is <NA>"),
        (pd.Series(["a", np.nan]), "sequence 1 is nan"),
    ],
)
def test_an_answer_that_is_missing_is_no_class(Y, place: str) -> None:
    with pytest.raises(DataError, match=rf"finite answers; that of {place}"):
        memorize(IDS, Y)


def test_a_tuple_of_numbers_is_a_vector() -> None:
    vectors = [(0.5, 1.0, 2.0), (1.5, -1.0, 3.0)]  # as many components as a sequence has tokens
    model = memorize(IDS, vectors)
    assert (model.form.scope, model.form.components) == ("sequence", 3)
    np.testing.assert_array_equal(model.predict(IDS), vectors)
    per_token = [[(1, 0), (0, 1), (1, 1)], [(0, 1), (2, 1), (0, 0)]]
    model = memorize(IDS, per_token, positions=True)
    assert (model.form.scope, model.form.components) == ("token", 2)
    np.testing.assert_array_equal(model.predict(IDS), per_token)
    with pytest.raises(DataError, match="vectors of one length"):
        memorize(IDS, [(0.5, 1.0), (1.5,)])


def test_other_tuples_are_classes_and_so_are_those_of_an_array() -> None:
    assert memorize(IDS, [("a", 1), ("b", 2)]).form.classes == (("a", 1), ("b", 2))
    classes = np.empty(2, object)
    classes[:] = [(1, 2), (3, 4)]
    assert memorize(IDS, classes).form.classes == ((1, 2), (3, 4))


def test_a_long_word_does_not_widen_the_others() -> None:
    """20,000 words in an array as wide as one of 10,000 letters would be 800 MB."""
    long, N = "x" * 10_000, 10_000
    X = [[f"a{i}", f"b{i}"] for i in range(N - 1)] + [["a0", long]]
    Y = [["yes", "no"]] * (N - 1) + [["yes", long]]
    flat = [word for row in X for word in row]
    tracemalloc.start()
    sequences = read_sequences(X)
    answers = read_answers(Y, sequences)
    table = typed_array(flat, "tokens", str)
    again = read_sequences(table.reshape(N, 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert sequences.vocabulary == again.vocabulary == tuple(sorted(set(flat)))
    np.testing.assert_array_equal(sequences.tokens, again.tokens)
    assert answers.form.classes == ("no", long, "yes")


def test_names_are_numbered_in_their_order() -> None:
    names, codes = number_values(["b", "a", "c", "a"])
    assert names == ("a", "b", "c")
    assert codes.tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("lengths", [None, np.array([2, 3, 1])])
def test_from_places_to_rows_and_back(lengths) -> None:
    values = np.arange(18.0).reshape(3, 3, 2)
    rows = at_answers(values, "token", lengths)
    i, k = answer_places("token", np.arange(len(rows)), 3, lengths)
    np.testing.assert_array_equal(rows, values[i, k])
    np.testing.assert_array_equal(at_answers(in_places(rows, 3, 3, lengths), "token", lengths), rows)
    np.testing.assert_array_equal(at_answers(values, "sequence", lengths), values[:, 0])
    last = [2, 2, 2] if lengths is None else [1, 2, 0]
    np.testing.assert_array_equal(at_answers(values, "last", lengths), values[[0, 1, 2], last])


def test_data_that_was_read_is_not_read_again(monkeypatch) -> None:
    read = []
    real = reading._token_ids
    monkeypatch.setattr(reading, "_token_ids", lambda *given: read.append(1) or real(*given))
    sequences = read_sequences(WORDS)
    answers = read_answers(LABELS, sequences)
    model = memorize(sequences, answers)
    assert recall_answers(model, sequences, answers).perfect
    assert read == [1]
    assert model == memorize(WORDS, LABELS)
    other = memorize([["bank", "river"], ["z", "bank"]], [[1, 2], [3, 4]])
    with pytest.raises(DataError, match="which is not in it"):  # other names have other numbers
        other.predict(sequences)


def test_everything_can_be_imported_without_extras() -> None:
    program = (
        "import sys\n"
        "for name in ['sklearn', 'torch', 'onnx', 'matplotlib', 'pyarrow']: sys.modules[name] = None\n"
        "from onelayer import *\n"
        "assert memorize([['a', 'b']], [[1, 2]]).predict([['b', 'a']]).tolist() == [[2, 1]]\n"
        "assert 'to_torch' not in globals() and 'OneLayerMemorizer' not in globals()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with_extras = "from onelayer import *\nto_torch, to_onnx, OneLayerMemorizer, DataError\n"
    subprocess.run([sys.executable, "-c", with_extras], check=True)


@pytest.mark.parametrize("call", [memorize, plan])
def test_an_option_that_is_misspelt_is_refused(call) -> None:
    with pytest.raises(OptionError, match=r"an option that .* has; redout='table'\. Did you mean readout\?"):
        call(WORDS, LABELS, redout="table")
    with pytest.raises(OptionError, match=r"xyz=1\. Leave it out"):
        call(WORDS, LABELS, xyz=1)


@pytest.mark.parametrize("option", [{"folder": "model"}, {"shard_answers": 5}, {"overwrite": True}])
def test_an_option_of_shards_is_not_ignored_without_them(option) -> None:
    (name,) = option
    with pytest.raises(OptionError, match=rf"cluster=, to build in shards; {name}=.* came without.*model\.save"):
        memorize(WORDS, LABELS, **option)


@pytest.mark.parametrize(
    "X", ["abc", {"a": 1}, 7, iter(WORDS)], ids=["a text", "a dict", "a number", "an iterator"]
)
def test_what_is_no_list_of_sequences_is_called_by_its_type(X) -> None:
    with pytest.raises(DataError, match=rf"a list or an array of sequences; X is a {type(X).__name__}\. Give"):
        memorize(X, LABELS)
