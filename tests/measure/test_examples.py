"""Examples of answers, the report that shows them, and figures that notebooks show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onelayer
from onelayer.measure.examples import examples_of
from onelayer.measure.report import write_report
from onelayer.model import Model, load

FACTS = [["river", "bank"], ["bank", "<b>robber</b>"]]
ANSWERS = [["water", "shore"], ["money", "crime"]]
TEXT = "the quick brown fox jumps over the lazy dog. the slow brown cow jumps over the moon."


@pytest.fixture(scope="module")
def words() -> Model:
    return onelayer.memorize(FACTS, ANSWERS)


def test_stored_sequences_with_their_answers(words: Model) -> None:
    expected = [(" ".join(x), " ".join(y)) for x, y in zip(FACTS, ANSWERS, strict=True)]
    assert examples_of(words) == expected


def test_reals_and_one_answer_a_sequence() -> None:
    X = np.arange(6.0).reshape(3, 2, 1) ** 1.5
    model = onelayer.memorize(X, [0.5, 0.25, 0.125])
    assert examples_of(model)[1] == ("2.8284 5.1962", "0.25")


def test_passages_of_a_text_go_on_as_it_does() -> None:
    found = examples_of(onelayer.memorize_text(TEXT, context=20))
    assert found
    assert all(given[1:-1] + answer[1:-1] in TEXT for given, answer in found)


def test_points_of_a_box_and_queries_of_a_prompt() -> None:
    function = onelayer.approximate("x - mean(y)", n=2, low=0, high=1, tolerance=0.1)
    assert all("the target is" in answer for _, answer in examples_of(function))
    learner = onelayer.learner("gd", d=2, steps=3)
    assert all("the algorithm gives" in answer for _, answer in examples_of(learner))


def test_a_report_has_a_picture_and_answers_in_plain_text(words: Model, tmp_path: Path) -> None:
    folder = words.save(tmp_path / "model")
    assert write_report(folder, tmp_path / "page.html", load=load).result == "VERIFIED"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>bank &lt;b&gt;robber&lt;/b&gt;<td>money crime" in page
    assert "<b>robber" not in page
    assert "src='data:image/png;base64,iVBOR" in page


def test_a_notebook_shows_a_figure(words: Model) -> None:
    assert words.plot()._repr_png_().startswith(b"\x89PNG")
