"""Blocks and threads change nothing: compiled models give the bits of the plain pass, in blocks of any size."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.network import Transformer, blocks
from onelayer.network.forward import forward
from tests.model.models import MAKERS, made
from tests.network.test_forward import random_model


@pytest.fixture(params=[None, 1, 1 << 9], ids=["as it is", "one row at a time", "small blocks"])
def _sizes(request, monkeypatch) -> None:
    if request.param is not None:
        monkeypatch.setattr(blocks, "ATTENTION_BYTES", request.param)
        monkeypatch.setattr(blocks, "STACK_BYTES", request.param)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("name", MAKERS)
def test_compiled_models_give_the_bits_of_the_plain_pass(name: str) -> None:
    one = made(name)
    asked = one.model.ask(one.X, one.lengths)
    transformer, valid = one.model.transformer, asked.valid()
    plain = forward(transformer, asked.tokens, asked.lengths)
    found = blocks.evaluate(transformer, asked.tokens, asked.lengths)
    some = np.ones(plain.shape[:2], bool) if valid is None else valid
    if one.model.interface.stored_bits is None or one.model.form.classes is None or "triangular" in name:
        # What is continuous keeps the last bit of a sum, which depends on how BLAS brackets it.
        np.testing.assert_allclose(found[some], plain[some], atol=0.01)
    else:
        assert found[some].tobytes() == plain[some].tobytes()


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_any_weights_agree_up_to_the_order_of_sums(dtype, causal, ragged) -> None:
    rng = np.random.default_rng(2)
    tensors = {name: a.astype(dtype) for name, a in random_model(rng).tensors()}
    model = Transformer.from_tensors(tensors, causal=causal)
    X = rng.standard_normal((23, 7, 3)).astype(dtype)
    lengths = rng.integers(1, 8, 23) if ragged else None
    some = np.arange(7) < (np.full(23, 7) if lengths is None else lengths)[:, None]
    plain, found = forward(model, X, lengths), blocks.evaluate(model, X, lengths)
    close = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found[some], plain[some], rtol=close, atol=close)
