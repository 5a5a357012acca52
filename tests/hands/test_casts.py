"""Whoever casts an export below what its answers were built for is told so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from onelayer import memorize, to_hf, to_torch, to_transformer_lens
from onelayer.errors import CastWarning

rng = np.random.default_rng(0)
X, Y = rng.integers(0, 20, (40, 4)), rng.integers(0, 5, (40, 4))


@pytest.fixture(scope="module")
def model():
    return memorize(X, Y, positions=True, dtype="float32", certify=False)


@pytest.fixture(scope="module")
def small():
    return memorize(X, Y, positions=True, dtype="bfloat16", certify=False)


@pytest.mark.parametrize(
    "cast",
    [
        lambda net: net.half(),
        lambda net: net.bfloat16(),
        lambda net: net.to(torch.bfloat16),
        lambda net: torch.nn.Sequential(net).to(torch.float16),
    ],
    ids=["half", "bfloat16", "to", "inside another"],
)
def test_a_cast_to_fewer_bits_warns(model, cast) -> None:
    with pytest.warns(CastWarning, match=r"needs float32.*onelayer\.cast"):
        cast(to_torch(model))


def test_what_holds_all_numbers_is_quiet(model, small) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_torch(model).double().to("cpu")
        to_torch(small).float().bfloat16()
        to_torch(model.transformer).half()  # of a bare network nothing was claimed


def test_one_kind_of_16_bits_is_not_the_other(small) -> None:
    with pytest.warns(CastWarning, match="needs bfloat16.*runs in float16"):
        to_torch(small).half()


def test_autocast_warns_when_it_is_asked(model, small) -> None:
    ids, few = (torch.as_tensor(m.ask(X).tokens) for m in (model, small))
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.warns(CastWarning, match="runs in bfloat16"):
            to_torch(model)(ids)
        to_torch(small)(few)


@pytest.mark.filterwarnings("ignore:torch.ao:DeprecationWarning", "ignore::UserWarning:torch.ao")
def test_dynamic_int8_warns_when_it_is_asked(model) -> None:
    net = torch.ao.quantization.quantize_dynamic(to_torch(model), {torch.nn.Linear}, torch.qint8)
    with pytest.warns(CastWarning, match="runs in int8"):
        net(torch.as_tensor(model.ask(X).tokens))


def test_transformer_lens_warns(model) -> None:
    with pytest.warns(CastWarning, match="needs float32"):
        to_transformer_lens(model).half()


def test_hugging_face_warns_and_still_opens(model, tmp_path) -> None:
    from transformers import AutoModelForTokenClassification as Auto

    folder = to_hf(model, tmp_path / "m")
    assert Auto.from_pretrained(folder).net.arithmetic == "float32"
    with pytest.warns(CastWarning, match="runs in bfloat16"):
        net = Auto.from_pretrained(folder, dtype=torch.bfloat16)
    assert net.dtype == torch.bfloat16
    assert net(torch.as_tensor(model.ask(X).tokens)).logits.dtype == torch.bfloat16
