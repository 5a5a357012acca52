"""Learners in PyTorch and ONNX Runtime answer as the network does in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from onelayer import OptionError, cast, learner, to_onnx, to_torch
from tests.learners.test_learners import CASES, made, task


@pytest.mark.parametrize("case", CASES)
def test_exports_of_learners(case: str, tmp_path: Path) -> None:
    model = made(case)
    tasks = model.interface.tasks(*(*task(case), None, None)[:3])
    tokens, lengths = model.interface.prompts(tasks, model.transformer.dtype)
    with torch.no_grad():
        outputs = to_torch(model)(torch.from_numpy(tokens)).numpy()
    asked = outputs[0, len(tasks.listed[0].X) :] if model.interface.algorithm.query else outputs[0]
    wanted = np.reshape(model.predict(*task(case)), asked.shape)
    np.testing.assert_allclose(asked, wanted, rtol=1e-9, atol=1e-9)
    session = onnxruntime.InferenceSession(to_onnx(model, tmp_path / "learner.onnx").read_bytes())
    found = session.run(["outputs"], {"tokens": tokens, "lengths": lengths})[0]
    np.testing.assert_allclose(found, outputs, rtol=1e-9, atol=1e-9)


def test_a_solve_of_many_keys_is_not_written_out(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\[mesa\] needs keys of at most 128 numbers.*they have 200"):
        to_onnx(learner("mesa", d=200, certify=False), tmp_path / "large.onnx")


def test_a_learner_stores_no_answers_that_could_survive() -> None:
    with pytest.raises(OptionError, match=r"stored answers to cast.*learns from the examples"):
        cast(made("gd"), "float16", [[[1.0, 2, 3, 0, 1]]], [[1.0]])
