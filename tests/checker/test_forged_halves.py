"""Nothing false is verified in float16 or bfloat16: claims written by hand, and models that were changed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attacks.bundle import Bundle, pack, read, unpack
from attacks.sixteen_bits import FORMATS, sixteen_bit_claims
from onelayer import memorize
from onelayer.certificates.tensors import save_tensors
from onelayer.network.formats import nearest
from tests.checker.asked import assert_not_verified, check

CASES = {case.name: case for case in sixteen_bit_claims()}
RNG = np.random.default_rng(0)
X = np.array(list(itertools.product(range(3), repeat=4)))
Y = RNG.integers(0, 50, (len(X), 4))
halves = pytest.mark.parametrize("dtype", FORMATS)


@pytest.mark.parametrize("name", CASES)
def test_a_false_claim_is_not_verified(tmp_path, name) -> None:
    assert_not_verified(CASES[name].bundle.write(tmp_path))


def test_of_most_the_same_is_true_in_real_arithmetic(tmp_path) -> None:
    """To a millionth of the answer; so that it is the format which refuses them. One is false of all numbers."""
    found = set()
    for i, case in enumerate(CASES.values()):
        b = case.bundle.copy()
        eps = max(
            float.fromhex(b.certificate["claims"][0]["eps"]), 2.0**-20 * float(np.abs(b.data["answers"]).max())
        )
        b.certificate["claims"] = [b.certificate["claims"][0] | {"arith": "real", "eps": eps.hex()}]
        if check(b.write(tmp_path / str(i)))["result"] != "VERIFIED":
            found.add(case.name.partition(",")[0])
    assert found == {"an answer between two numbers"}


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("honest")
    made = {dtype: memorize(X, Y, positions=True, dtype=dtype) for dtype in (*FORMATS, "float32")}
    return {dtype: read(model.save(folder / dtype)) for dtype, model in made.items()}


def claimed(b: Bundle, arith: str) -> Bundle:
    b = b.copy()
    b.certificate["claims"] = [c | {"arith": arith} for c in b.certificate["claims"] if c["type"] == "memorizes"][
        :1
    ]
    return b


@halves
def test_a_bundle_that_was_read_is_still_verified(tmp_path, honest, dtype) -> None:
    assert check(honest[dtype].copy().write(tmp_path))["result"] == "VERIFIED"
    assert check(claimed(honest[dtype], dtype).write(tmp_path / "one"))["result"] == "VERIFIED"


@halves
def test_answers_and_weights_that_were_changed_are_not(tmp_path, honest, dtype) -> None:
    rolled = claimed(honest[dtype], dtype)
    rolled.data["answers"] = np.roll(rolled.data["answers"], 1, axis=0)
    changed = [rolled]
    names = [name for name in honest[dtype].model if name.startswith("readout")]
    for name in names:
        b = claimed(honest[dtype], dtype)
        flat = b.model[name].reshape(-1)
        at = np.flatnonzero(flat)
        if at.size:
            flat[at] = nearest(flat[at] * 1.5, dtype)
            changed.append(b)
    assert len(changed) > len(names) // 2
    results = [check(b.write(tmp_path / str(i)))["result"] for i, b in enumerate(changed)]
    assert set(results) <= {"UNKNOWN", "NOT VERIFIED"}


@halves
def test_a_model_of_float32_is_not_one_of_sixteen_bits(tmp_path, honest, dtype) -> None:
    other = claimed(honest["float32"], dtype)
    assert check(other.write(tmp_path / "as it is"))["result"] == "MALFORMED"
    for name, array in other.model.items():
        if array.dtype.kind == "f":
            other.model[name] = nearest(array, dtype)
    assert check(other.write(tmp_path / "rounded"))["result"] != "VERIFIED"


@halves
def test_unpacking_reads_what_was_saved(dtype) -> None:
    tensors = {"a": nearest(RNG.standard_normal((3, 2)), dtype), "b": np.zeros((1, 4), np.float32)}
    for content in (save_tensors(tensors, {}, dtype), pack(tensors)):
        found = unpack(content)
        assert all(found[name].dtype == np.float32 for name in tensors)
        assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
