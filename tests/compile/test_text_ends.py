"""Texts end, and are left: a recital stops there, and the checker has seen where."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import HypothesisError, Model, OptionError, load
from onelayer.compile import next_token as construction
from onelayer.compile.text import python_reference
from onelayer.gadgets import windows as look_up
from onelayer.gadgets.window_sums import WindowSums
from onelayer.measure.recall import recall_text
from onelayer.network.blocks import evaluate
from onelayer.problems import unknown_windows
from onelayer.problems import windows as data_windows
from onelayer.readouts import packed_blocks

PASSAGE = python_reference().encode()[20_000:26_000]
memorize_text = partial(onelayer.memorize_text, certify=False)


@cache
def printed() -> Model:
    return memorize_text(PASSAGE, 32, false_hits=1 / 500)


def unknown(m: Model, count: int = 400) -> np.ndarray:
    text = data_windows.read_windows(m.interface.encode(PASSAGE), 32, 256)
    drawn = unknown_windows.draw(text, count, 5)
    assert list(drawn) == [unknown_windows.CHANGED, unknown_windows.MIXED]
    return np.concatenate(list(drawn.values())).astype(np.int64)


def test_a_recital_stops_where_the_text_ends() -> None:
    for m in (memorize_text(PASSAGE, 32), printed()):
        assert m.ledger["ends"] is True
        at = len(PASSAGE) - 200
        assert m.generate(PASSAGE[at - 32 : at], 10_000) == PASSAGE[at:]
        assert m.generate(PASSAGE, 5) == b""
        assert not m.next_distribution(PASSAGE).any()
        assert recall_text(m, PASSAGE).perfect


def test_a_text_whose_last_window_occurs_before_goes_on_there() -> None:
    m = memorize_text("abcabc", 2)
    assert m.ledger["ends"] is False
    assert m.generate("ab", 7) == b"cabcabc"


def test_nothing_follows_what_is_not_stored() -> None:
    m = printed()
    windows = unknown(m)
    answers = m.predict(windows)
    hits = answers.any(axis=1)
    assert hits.mean() < 0.02  # 1 of 576 by chance
    assert answers.tobytes() == evaluate(m.transformer, windows)[:, -1].tobytes()
    classes = m.windows.look_up(m.windows.sums.of_rows(windows))
    assert (classes[~hits] == m.windows.nothing).all()
    assert [m.windows.next_class(window) for window in windows] == classes.tolist()
    wrong = PASSAGE[100:131] + b"?"
    assert wrong not in PASSAGE
    assert m.generate(wrong, 10) == b""
    assert m.generate("a prompt that was never in this text at all", 10) == b""
    assert m.generate("\x00" * 32, 10) == b""  # no token of the text
    assert not m.next_distribution("\x00" * 32).any()
    assert b"\x00" not in PASSAGE
    assert m.predict([[0] * 32])[0].any() == m.next_distribution("\x00" * 32).any()


def test_the_share_is_chosen_bounded_and_measured() -> None:
    m = printed()
    assert m.ledger["false_hits"] == 1 / m.windows.fingerprints <= 1 / 500
    assert m.ledger["false_hits"] < m.ledger["false_hits_measured"] < 0.01
    assert "of the text with one token changed and" in m.ledger.meaning("false_hits_measured")
    few = memorize_text(PASSAGE, 32, false_hits=0.2)
    assert 1 / 200 < few.ledger["false_hits"] <= 0.2
    assert few.n_parameters < m.n_parameters
    assert 0.02 < few.predict(unknown(few)).any(axis=1).mean() < 0.3


@pytest.mark.parametrize("share", [0, 1, 1.5, -1, "0.1", float("nan")])
def test_shares_that_are_none(share) -> None:
    with pytest.raises(OptionError, match="false_hits between 0 and 1"):
        memorize_text(PASSAGE, 32, false_hits=share)


def test_too_few_windows_for_fingerprints() -> None:
    with pytest.raises(HypothesisError, match="Use larger false_hits, or leave it out"):
        memorize_text(PASSAGE[:100], 8, false_hits=1e-4)


def test_the_checker_has_seen_the_end_and_what_is_left(tmp_path) -> None:
    text = PASSAGE[:3000]
    for options, least in (({}, 1), ({"false_hits": 1 / 300}, 200)):
        m = onelayer.memorize_text(text, 12, certify=True, **options)
        m.save(tmp_path / "model", overwrite=True)
        again = load(tmp_path / "model")
        assert again == m
        listed = again.certificate.data["strangers"]
        assert listed[0].tolist() == list(text[-12:])
        assert len(listed) >= least
        report = again.verify(require=["rejects float32", "memorizes float32"])
        assert report.result == "VERIFIED"
        assert again.generate(text[-40:-10], 100) == text[-10:]


def test_a_listed_window_that_is_continued_is_refuted() -> None:
    from dataclasses import replace

    m = onelayer.memorize_text(PASSAGE[:500], 12, certify=True)
    data = dict(m.certificate.data)
    data["strangers"] = np.array([list(PASSAGE[100:112])])
    forged = replace(m, certificate=replace(m.certificate, data=data))
    assert forged.verify().result == "NOT VERIFIED"


@settings(max_examples=25)
@given(st.data())
def test_tokens_follow_as_if_each_window_were_asked(data) -> None:
    """Sums that are carried from window to window are those of the windows, stored or not."""
    size = data.draw(st.integers(2, 4))
    text = bytes(data.draw(st.lists(st.integers(97, 96 + size), min_size=4, max_size=80)))
    n, seed = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 3))
    m = memorize_text(text, n, seed)
    prompt = bytes(data.draw(st.lists(st.sampled_from(sorted(set(text))), max_size=12)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look_up, "AHEAD", data.draw(st.integers(1, 20)))
        found = m.generate(prompt, 40)
    stream = bytearray(prompt)
    for _ in range(40):
        window = data_windows.pad_start(np.frombuffer(bytes(stream), np.uint8)[-n:], n, 256)[-n:]
        shares = m.predict([window.tolist()])[0]
        assert shares.tobytes() == m.windows.distributions[m.windows.next_class(window)].tobytes()
        if not shares.any():
            break
        stream.append(int(shares.argmax()))
    assert found == bytes(stream[len(prompt) :])


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 5), st.integers(0, 70), st.integers(0, 99))
def test_sums_are_those_of_the_places(n, c, s, more, seed) -> None:
    rng = np.random.default_rng(seed)
    scale = 40 if seed % 2 else 1 << 20  # beyond float32
    sums = WindowSums(rng.integers(0, scale, (7, c)), rng.integers(-2, 3, (n, c, s)), rng.integers(-9, 9, s))
    stream = rng.integers(0, 7, n + more).astype(np.uint16)
    wanted = [
        sum(sums.table[t] @ sums.taps[k] for k, t in enumerate(stream[i : i + n])) + sums.constant
        for i in range(more + 1)
    ]
    assert sums.of(stream).tolist() == np.array(wanted).tolist()
    assert sums.of_rows(np.lib.stride_tricks.sliding_window_view(stream, n)).tolist() == np.array(wanted).tolist()


def test_large_texts_in_small(monkeypatch) -> None:
    """What is done with texts of many windows only: buckets, blocks, rows along the last token, small lanes."""
    plain = data_windows.read_windows(np.frombuffer(PASSAGE, np.uint8), 16, 256)
    monkeypatch.setattr(data_windows, "BUCKET", 500)
    monkeypatch.setattr(data_windows, "BLOCK", 64)
    again = data_windows.read_windows(np.frombuffer(PASSAGE, np.uint8), 16, 256)
    for name in ("stream", "new", "which", "distributions"):
        assert np.array_equal(getattr(plain, name), getattr(again, name)), name
    monkeypatch.setattr(construction, "BLOCK", 700)
    monkeypatch.setattr(construction, "MANY_WINDOWS", 1000)
    monkeypatch.setattr(packed_blocks, "MANY_KEYS", 1000)
    monkeypatch.setattr(packed_blocks, "LARGE_LANE", 900)
    monkeypatch.setattr(look_up, "BLOCK", 450)
    for share in (None, 1 / 50):
        m = memorize_text(PASSAGE, 16, false_hits=share)
        assert recall_text(m, PASSAGE).perfect
        last = np.ptp(m.windows.sums.codes[-1], axis=0)  # what the last token makes of each coordinate
        assert last[:3].min() > 1000
        assert not last[3:].any()
        assert {line.coordinate for line in m.windows.tables.lines[::2]} == {0, 1, 2}
        some = np.lib.stride_tricks.sliding_window_view(plain.stream, 16)[:-1:37].astype(np.int64)
        wanted = plain.distributions[plain.which[::37]]
        assert evaluate(m.transformer, some)[:, -1].tobytes() == wanted.tobytes()
        assert m.generate(PASSAGE[-50:-30], 99) == PASSAGE[-30:]


def test_lanes_are_few_but_not_too_large() -> None:
    shape = packed_blocks.best_shape(10**8, 8406, 5000.0, np.log2(1000))
    assert shape is not None
    assert 10**8 / shape.layout.lanes <= packed_blocks.LARGE_LANE
    assert shape.layout.lanes < 10
    assert shape.parameters < 1.6 * 10**8
    assert packed_blocks.best_shape(10**4, 300, 500.0).layout.words <= 6
    assert packed_blocks.best_shape(10**4, 10**6, 500.0, 20.0) is None


def test_what_occurs_in_a_text() -> None:
    stream = data_windows.pad_start(np.frombuffer(b"abcab", np.uint8), 2, 256)
    asked = np.array([[256, 256], [97, 98], [98, 97], [99, 97], [97, 97]], np.uint16)
    assert data_windows.occurs(stream, 2, asked).tolist() == [True, True, False, True, False]


def test_continuations_as_they_are_counted() -> None:
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 3, 400).astype(np.uint8)
    text = data_windows.read_windows(ids, 4, 5)
    seen: dict[bytes, Counter[int]] = {}
    for i in range(400):
        seen.setdefault(text.stream[i : i + 4].tobytes(), Counter())[int(ids[i])] += 1
    for i in range(400):
        counts = seen[text.stream[i : i + 4].tobytes()]
        wanted = np.array([counts[t] / counts.total() for t in range(5)], np.float32)
        assert text.distributions[text.which[i]].tobytes() == wanted.tobytes()
    assert text.distinct == len(seen)
    assert not text.distributions[text.nothing].any()
    assert text.ends == (text.last.tobytes() not in seen)
    assert text.occurring.tolist() == [0, 1, 2]


def test_a_file_is_read(tmp_path) -> None:
    (tmp_path / "text").write_bytes(PASSAGE[:700])
    a, b = (memorize_text(text, 9) for text in (tmp_path / "text", PASSAGE[:700]))
    assert a == b
    assert recall_text(a, tmp_path / "text").perfect
