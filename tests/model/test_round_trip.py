"""What is loaded is what was saved, proof and all; and saving it again writes the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onelayer import FileError, Model, OnelayerError, OptionError, load, memorize, memorize_text
from onelayer.compile.construction import CONSTRUCTIONS
from onelayer.contexts.mapping import MAPPINGS
from onelayer.interfaces import Function
from onelayer.ledger import Constant, Ledger
from onelayer.problems.tokens import learn_pairs
from onelayer.readouts.method import READOUTS
from onelayer_checker import check
from tests.learners.test_learners import CASES as LEARNERS
from tests.learners.test_learners import made as learner
from tests.model.models import MAKERS, made

UNPROVED = {
    "classes, not asked for a proof",
    "interpolated reals",
    "text, not proved",
    "a Python function of which nothing is known",
}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_kept(model: Model, folder: Path) -> Model:
    """Loading gives the model, and saving what was loaded gives the files."""
    again = load(model.save(folder / "first"))
    assert again == model
    assert repr(again) == repr(model)
    again.save(folder / "second")
    assert files(folder / "first") == files(folder / "second")
    return again


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, name: str) -> None:
    one = made(name)
    again = assert_kept(one.model, tmp_path)
    np.testing.assert_equal(again.predict(one.X, one.lengths), one.model.predict(one.X, one.lengths))
    assert again.ledger == one.model.ledger
    assert again.interface.to_json() == one.model.interface.to_json()
    assert again.proved == one.model.proved == (name not in UNPROVED)
    assert ("certificate.json" in files(tmp_path / "second")) == again.proved
    if again.proved:
        assert again.certificate.verdicts == one.model.certificate.verdicts
        assert check(tmp_path / "second").result == again.verify().result == "VERIFIED"


def test_every_mapping_readout_and_construction_is_kept_by_a_test() -> None:
    """All but the published mapping, whose weights are beyond float64 on any data."""
    ledgers = [one.model.ledger for one in map(made, MAKERS) if "mapping" in one.model.ledger]
    assert {ledger["mapping"] for ledger in ledgers} >= set(MAPPINGS) - {"published"}
    assert {f"readout {name}" for name in READOUTS} <= set(MAKERS)
    functions = [made(name).model.interface for name in MAKERS if isinstance(made(name).model.interface, Function)]
    assert {function.construction for function in functions} == set(CONSTRUCTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", LEARNERS)
def test_learners_are_kept(tmp_path: Path, case: str, dtype: str) -> None:
    model = learner(case, dtype)
    again = assert_kept(model, tmp_path)
    assert again.certificate == model.certificate
    assert ("certificate.json" in files(tmp_path / "second")) == model.proved


def reals() -> st.SearchStrategy[float]:
    return st.floats(-1e6, 1e6, allow_subnormal=False)


NAMES = st.one_of(
    st.text(max_size=3),
    st.integers(-(10**20), 10**20),
    reals(),
    st.none(),
    st.tuples(st.text(max_size=2), st.none()),
)


@st.composite
def data(draw) -> tuple[object, object, dict[str, object]]:
    """Sequences, answers and options that some model satisfies."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    N, n, d = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    options: dict[str, object] = {"seed": seed % 5, "certify": draw(st.sampled_from([None, False]))}
    per_sequence = draw(st.booleans())
    shape = (N,) if per_sequence else (N, n)
    options["scope"] = "sequence" if per_sequence else "token"
    if draw(st.booleans()):  # tokens by their names, told apart by position
        names = draw(st.lists(NAMES, min_size=2, max_size=6, unique_by=repr))
        X: object = np.array([*names, None], object)[:-1][
            rng.permuted(np.tile(np.arange(len(names)), (N, 1)), axis=1)
        ]
        X = [list(row) for row in X]
        options["positions"] = True
        shape = (len(X),) if per_sequence else (len(X), len(names))
    else:
        X = rng.standard_normal((N, n, d)).astype(draw(st.sampled_from([np.float32, np.float64])))
    kind = draw(st.sampled_from(["classes", "names", "reals", "vectors"]))
    if kind == "classes":
        Y: object = rng.integers(0, 4, shape)
    elif kind == "names":
        classes = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=repr))
        table = np.empty(len(classes), object)
        table[:] = classes
        Y = table[rng.integers(0, len(classes), shape)]
    else:
        Y = rng.standard_normal(shape if kind == "reals" else (*shape, 2))
    return X, Y, options


@settings(max_examples=60)
@given(case=data(), dtype=st.sampled_from([None, "float32", "float64"]))
def test_any_data_that_is_memorised_is_kept(tmp_path_factory, case, dtype) -> None:
    X, Y, options = case
    try:
        model = memorize(X, Y, dtype=dtype, **options)
    except OnelayerError:
        return  # equal contexts with different answers, numbers that the dtype does not tell apart, mixed names
    assert_kept(model, tmp_path_factory.mktemp("any"))


@settings(max_examples=15)
@given(text=st.text(min_size=2, max_size=30), context=st.integers(1, 6), pairs=st.booleans())
def test_any_text_is_kept(tmp_path_factory, text, context, pairs) -> None:
    assume(not pairs or len(learn_pairs(text, 512).encode(text)) > 1)
    model = memorize_text(text, context, tokenizer="bpe" if pairs else None)
    again = assert_kept(model, tmp_path_factory.mktemp("any"))
    assert again.generate("", 3) == model.generate("", 3)


def test_equality_sees_every_part() -> None:
    model = made("a default class").model
    assert model == replace(model)
    bias = model.transformer.readout[-1].bias.copy()
    bias[0] = np.nextafter(bias[0], np.float32(np.inf))
    layers = (*model.transformer.readout[:-1], replace(model.transformer.readout[-1], bias=bias))
    lines = model.ledger.lines
    assert model.certificate is not None
    for other in (
        replace(model, transformer=replace(model.transformer, readout=layers)),
        replace(model, interface=replace(model.interface, default=(4.0,))),
        replace(model, interface=replace(model.interface, stored_bits=None)),
        replace(model, ledger=Ledger((*lines[:-1], Constant("certified", True, "")))),
        replace(model, certificate=None),
        replace(model, certificate=replace(model.certificate, claims=model.certificate.claims[1:])),
        model.transformer,
    ):
        assert model != other
    assert made("text").model != made("text, not proved").model
    with pytest.raises(TypeError, match="unhashable"):
        hash(model)


def test_a_certificate_of_another_model_is_not_written(tmp_path: Path) -> None:
    words, classes = made("words").model, made("classes in float32").model
    with pytest.raises(OptionError, match="its names are not those of the model"):
        replace(classes, certificate=words.certificate).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_certificate_that_does_not_fit_its_weights_is_refused_not_dropped(tmp_path: Path) -> None:
    for name in ("classes in float32", "classes in float64"):
        made(name).model.save(tmp_path / name)
    for part in ("certificate.json", "data.safetensors"):
        folder = made("classes in float32").model.save(tmp_path / "m", overwrite=True)
        (folder / part).write_bytes((tmp_path / "classes in float64" / part).read_bytes())
        with pytest.raises(FileError, match="is not the file that was certified"):
            load(folder)
