"""Gaps between neighbouring cells, compared with the stored coordinates, and the picture that shows them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import combinations, pairwise

import numpy as np
import pytest

from onelayer import Model, memorize, memorize_text
from onelayer.measure.gaps import gaps_of, name_gaps
from tests.model.models import made

WORDS = [["river", "bank"], ["bank", "robber"], ["robber", "river"]]
FACTS = [["water", "shore"], ["money", "crime"], ["crime", "flood"]]
TEXT = "to be, or not to be, that is the question"


@cache
def packed() -> Model:
    rng = np.random.default_rng(3)
    X = np.stack([rng.permutation(60)[:6] for _ in range(100)])
    return memorize(X, rng.integers(0, 12, X.shape), readout="packed")


@cache
def models() -> dict[str, Model]:
    rng = np.random.default_rng(1)
    return {
        "words": memorize(WORDS, FACTS),
        "words of different lengths": made("words").model,
        "reals": memorize(rng.standard_normal((30, 3, 2)), rng.standard_normal((30, 3))),
        "classes at sequences": made("one answer a sequence").model,
        "table": made("readout table").model,
        "text": memorize_text(TEXT, 6),
        "packed": packed(),
    }


@pytest.mark.parametrize("name", models())
def test_every_gap_lies_between_stored_coordinates(name: str) -> None:
    model = models()[name]
    found, bounds = gaps_of(model), gaps_of(replace(model, certificate=None))
    assert [gaps.name for gaps in found] == [gaps.name for gaps in bounds] != []
    for gaps, bound in zip(found, bounds, strict=True):
        assert np.isin(gaps.at, bound.at).all()
        lower = bound.width[np.isin(bound.at, gaps.at)]
        assert (gaps.width >= lower * (1 - 1e-6)).all()
        if len(found) == 1 and gaps.name == "plateaus":  # they are cut in the middle of each gap
            assert len(gaps.at) == len(bound.at)
            assert (gaps.width < lower * 2.001).all()


@pytest.mark.parametrize("name", ["words", "reals"])
def test_widths_are_those_between_traced_coordinates(name: str) -> None:
    model = models()[name]
    (gaps,) = gaps_of(model)
    z = np.sort(model.trace(model.certificate.data["tokens"] if name == "reals" else WORDS)["readout.0"].ravel())
    left = np.searchsorted(z, gaps.at) - 1
    assert len(z) - 1 - len(left) == (1 if name == "words" else 0)  # crime and crime share a plateau
    np.testing.assert_array_equal(gaps.width, np.diff(z.astype(np.float64))[left])


def test_both_sides_are_named_by_word_company_and_answer() -> None:
    model = models()["words"]
    (gaps,) = gaps_of(model)
    found = name_gaps(model, gaps, gaps.narrowest(3))
    known = {
        f"{word} ({' '.join(w for w in words if w != word)}) → {answer}"
        for words, answers in zip(WORDS, FACTS, strict=True)
        for word, answer in zip(words, answers, strict=True)
    }
    assert {name for gap in found for name in (gap.left, gap.right)} <= known
    assert all(gap.left != gap.right for gap in found)
    assert [gap.width for gap in found] == sorted(gaps.width)[:3]


def test_windows_of_a_text_are_named_by_their_bytes() -> None:
    model = models()["text"]
    named = [gap for gaps in gaps_of(model) for gap in name_gaps(model, gaps, range(len(gaps.at)))]
    sides = {name for gap in named for name in (gap.left, gap.right)}
    windows = {f"{TEXT[max(0, i - 6) : i]!r} → {TEXT[i]!r}" for i in range(len(TEXT))}
    assert len(sides) > 20
    assert sides <= windows


def test_without_stored_samples_answers_or_cells_are_named() -> None:
    model = memorize(WORDS, FACTS, certify=False)
    (gaps,) = gaps_of(model)
    (gap,) = name_gaps(model, gaps, gaps.narrowest(1))
    assert {gap.left, gap.right} < {"→ water", "→ shore", "→ money", "→ crime", "→ flood"}
    text = made("text, not proved").model
    (gap,) = name_gaps(text, gaps_of(text)[0], [0])
    assert (gap.left, gap.right) == ("table 0 / row 0", "table 0 / row 1")


def test_cells_without_a_sample_are_part_of_a_gap() -> None:
    model = models()["text"]
    *_, classes = gaps_of(model)
    held = sorted({TEXT[i] for i in range(len(TEXT))})
    assert classes.name == "plateaus"
    assert len(classes.at) >= len(held) - 1
    assert len(np.unique(classes.samples, axis=0)) == len(classes.at)


@pytest.mark.parametrize("word", ["\u6cb3", "a\nb", "$x_1$", "\u202e"])
def test_a_picture_shows_any_word(word: str) -> None:
    """A character that the font lacks would be a warning, and a line break would end a line of the list."""
    figure = memorize([[word, "bank"], ["bank", "x"]], [["water", word], ["money", "flood"]]).plot()
    figure.savefig(BytesIO(), format="png")
    shown = [text.get_text() for axis in figure.axes for text in axis.texts]
    escaped = word if word == "$x_1$" else ascii(word)[1:-1]
    assert any(escaped in text for text in shown)
    assert not any("\n" in text for text in shown)


def test_a_picture_names_the_narrowest_gaps() -> None:
    figure = models()["words"].plot()
    shown = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert {"1", "2", "bank (river) → shore", "bank (robber) → money", "0.3983"} <= set(shown)
    dots = figure.axes[0].lines[0].get_xydata()
    np.testing.assert_array_equal(dots[:, 1], gaps_of(models()["words"])[0].width)


def test_numbers_in_a_picture_do_not_overlap() -> None:
    rng = np.random.default_rng(1)
    figure = memorize(rng.standard_normal((60, 3, 2)), rng.standard_normal((60, 3))).plot()
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 7  # six numbers, and what the dashed line is
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    lines = [text for text in figure.axes[1].texts[1:] if text.get_position()[1] == 0.3]
    ends = [(text.get_window_extent().x0, text.get_window_extent().x1) for text in lines]
    assert len(ends) == 4
    assert all(end < start for (_, end), (start, _) in pairwise(sorted(ends)))


def test_a_readout_without_cells_has_no_gaps() -> None:
    assert gaps_of(made("readout triangular").model) == []
    assert gaps_of(made("readout boxes").model) == []
