"""Texts by heart: every window, every distribution, every byte, by the network and by look-up alike."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, partial
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import DataError, HypothesisError, Model, OnelayerError, OptionError, load, memorize
from onelayer.compile import next_token as construction
from onelayer.compile.text import python_reference
from onelayer.gadgets.windows import find_windows
from onelayer.interfaces import NextToken
from onelayer.measure import survival
from onelayer.measure.recall import recall, recall_text
from onelayer.network.blocks import evaluate
from onelayer.problems import windows as data_windows
from onelayer.problems.answers import AnswerForm, read_answers
from onelayer.problems.sequences import read_sequences
from onelayer.problems.tokens import LETTERS, PairTokens, from_ranges, ranges

PASSAGE = python_reference().encode()[20_000:26_000]
CONTEXTS = (3, 11, 32)
#: What is tested here is the model; proofs have tests of their own.
memorize_text = partial(onelayer.memorize_text, certify=False)


@cache
def model(context: int) -> Model:
    return memorize_text(PASSAGE, context)


@cache
def pairs() -> Model:
    return memorize_text(PASSAGE, 8, tokenizer="bpe", vocabulary_size=300)


def counted(tokens, context: int, start: int) -> dict[tuple[int, ...], Counter[int]]:
    """What follows each window, counted the plain way."""
    full, found = [start] * context + [int(token) for token in tokens], defaultdict(Counter)
    for i in range(len(full) - context):
        found[tuple(full[i : i + context])][full[i + context]] += 1
    return found


def expected(counts: Counter[int], size: int) -> np.ndarray:
    row = np.zeros(size)
    for token, times in counts.items():
        row[token] = times / counts.total()
    return row.astype(np.float32)


def arrays(found: dict[tuple[int, ...], Counter[int]], size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(found)), np.stack([expected(counts, size) for counts in found.values()])


def look_up(m: Model, windows: np.ndarray) -> np.ndarray:
    return m.windows.distributions[[m.windows.next_class(window) for window in windows]]


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_window_gives_what_follows_it(context) -> None:
    found = counted(PASSAGE, context, 256)
    several = sum(len(counts) > 1 for counts in found.values())
    m = model(context)
    windows, wanted = arrays(found, 256)
    assert (look_up(m, windows) == wanted).all()
    stored = np.concatenate([windows, [list(PASSAGE[-context:])]])
    assert (_coordinates(m, stored).min(axis=0) == 1).all()  # the ReLU after the bottleneck cuts nothing off
    right = recall_text(m, PASSAGE)
    assert right.perfect
    assert (right.certain, right.ambiguous) == (len(found) - several, several)
    ledger = m.ledger
    assert ledger["windows"] == len(PASSAGE)
    assert (ledger["distinct"], ledger["ambiguous_windows"]) == (len(found), several)
    mixed = {_reduced(counts) for counts in found.values() if len(counts) > 1}
    assert ledger["distributions"] == 256 + len(mixed)
    places = sum(counts.total() for counts in found.values() if len(counts) > 1)
    assert ledger["ambiguous_places"] == places
    assert ledger["parameters"] == m.n_parameters
    assert ledger["margin"] > 1


def _reduced(counts: Counter[int]) -> tuple[tuple[int, int], ...]:
    shared = gcd(*counts.values())
    return tuple(sorted((token, times // shared) for token, times in counts.items()))


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_dense_network_says_the_same_to_the_bit(context) -> None:
    found = counted(PASSAGE, context, 256)
    windows, wanted = arrays(found, 256)
    several = np.flatnonzero([len(counts) > 1 for counts in found.values()])[:40]
    some = np.unique(np.concatenate([np.arange(0, len(windows), 97), several]))
    m = model(context)
    dense = evaluate(m.transformer, windows[some])[:, -1]
    assert dense.dtype == np.float32
    assert dense.tobytes() == wanted[some].tobytes() == look_up(m, windows[some]).tobytes()
    assert (m.predict(windows[some]) == wanted[some]).all()
    assert recall(m, windows[some], wanted[some].astype(np.float64)).perfect


@pytest.mark.parametrize(("length", "context"), [(200, 16), (200, 7), (6000, 32)])
def test_unknown_windows_are_answered_as_the_dense_network_does(length, context) -> None:
    """They mean nothing, but they are lattice points too, and none of those is on a ramp."""
    m = model(context) if length == len(PASSAGE) else memorize_text(PASSAGE[:length], context)
    windows = np.random.default_rng(0).integers(0, 257, (150, context))
    given = look_up(m, windows)
    assert given.tobytes() == evaluate(m.transformer, windows)[:, -1].tobytes()
    classes = m.windows.look_up(_coordinates(m, windows))
    assert (m.windows.distributions[classes] == given).all()
    assert len(np.unique(classes)) > 10


def _coordinates(m: Model, windows: np.ndarray) -> np.ndarray:
    return m.windows.sums.of_rows(windows)


def test_wrong_windows_are_seen() -> None:
    m = model(32)
    changed = bytearray(PASSAGE)
    changed[3000] = ord("~")
    right = recall_text(m, bytes(changed))
    assert not right.perfect
    assert 0 < right.certain - right.certain_right <= 34  # the change, and the windows that hold it
    assert right.first_wrong == "the window before token 3000"
    broken = replace(m)
    broken.__dict__["windows"] = replace(m.windows, distributions=np.roll(m.windows.distributions, 1, axis=0))
    assert recall_text(broken, PASSAGE).certain_right == 0


def _certain_stretch(tokens, context: int) -> tuple[int, int]:
    """The longest stretch of the text in which every window has one continuation: start and length."""
    found, full = counted(tokens, context, -1), [-1] * context + [int(token) for token in tokens]
    best, run = (0, 0), 0
    for i in range(len(tokens)):
        run = run + 1 if len(found[tuple(full[i : i + context])]) == 1 else 0
        best = max(best, (run, i))
    return best[1] - best[0] + 1, best[0]


def test_a_passage_is_recited() -> None:
    m = model(32)
    start, length = _certain_stretch(PASSAGE, 32)
    assert length > 500
    begin = max(start, 32)
    prompt, wanted = PASSAGE[:begin], PASSAGE[begin : start + length]
    assert m.generate(prompt, len(wanted)) == wanted
    assert m.generate(prompt[-32:], len(wanted)) == wanted  # only a window of it is looked at
    assert m.generate(prompt.decode(), len(wanted)) == wanted
    assert b"".join(m.stream(prompt, 9)) == wanted[:9]
    assert next(m.stream(prompt, 9)) == wanted[:1]
    assert m.generate(prompt, len(wanted), sampled=True, seed=3) == wanted  # nothing to choose from
    assert m.generate(b"", 20) == PASSAGE[:20]
    assert m.generate(PASSAGE[:5], 20) == PASSAGE[5:25]
    assert m.generate(prompt, 0) == b""


def test_the_likeliest_is_taken_or_tokens_are_drawn() -> None:
    m = memorize_text("xa xb xa xa xc ", 1)
    probabilities = m.next_distribution("x")
    assert {chr(i): float(probabilities[i]) for i in np.flatnonzero(probabilities)} == {
        "a": float(np.float32(0.6)),
        "b": float(np.float32(0.2)),
        "c": float(np.float32(0.2)),
    }
    assert m.generate("x", 4) == b"a xa"
    drawn = Counter(m.generate("x", 1, sampled=True, seed=seed) for seed in range(500))
    assert set(drawn) == {b"a", b"b", b"c"}
    assert abs(drawn[b"a"] - 300) < 50
    assert m.generate("x", 40, sampled=True, seed=5) == m.generate("x", 40, sampled=True, seed=5)
    assert m.generate("x", 40, sampled=True, seed=5) != m.generate("x", 40, sampled=True, seed=6)
    assert memorize_text("ba bc ", 1).generate("b", 1) == b"a"  # of equals the smallest


@settings(max_examples=40)
@given(
    st.integers(1, 4).flatmap(lambda size: st.lists(st.integers(0, size - 1), min_size=2, max_size=60)),
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(0, 252),
)
def test_any_small_text(tokens, context, seed, lowest) -> None:
    text = bytes(lowest + token for token in tokens)
    m = memorize_text(text, context, seed)
    windows, wanted = arrays(counted(text, context, 256), 256)
    assert (look_up(m, windows) == wanted).all()
    assert evaluate(m.transformer, windows)[:, -1].tobytes() == wanted.tobytes()
    assert recall_text(m, text).perfect


def test_exports_give_the_same_probabilities(tmp_path) -> None:
    import onnxruntime
    import torch

    windows, wanted = arrays(counted(PASSAGE, 3, 256), 256)
    some = np.arange(0, len(windows), 23)
    memory = model(3)
    with torch.inference_mode():
        given = onelayer.to_torch(memory)(torch.from_numpy(windows[some])).numpy()[:, -1]
    assert given.tobytes() == wanted[some].tobytes()
    session = onnxruntime.InferenceSession(onelayer.to_onnx(memory, tmp_path / "text.onnx"))
    asked = {"tokens": windows[some], "lengths": np.full(len(some), 3)}
    assert session.run(["outputs"], asked)[0][:, -1].tobytes() == wanted[some].tobytes()


def test_saved_and_read_again(tmp_path) -> None:
    for m in (model(32), pairs()):
        m.save(tmp_path / "model", overwrite=True)
        again = load(tmp_path / "model")
        assert again == m
        assert again.interface.tokens == m.interface.tokens
        assert again.interface.alphabet == m.interface.alphabet == tuple(np.unique(m.interface.encode(PASSAGE)))
        assert again.transformer.attention.causal
        assert recall_text(again, PASSAGE) == recall_text(m, PASSAGE)
        assert again.generate(PASSAGE[:100], 50) == m.generate(PASSAGE[:100], 50)
        assert repr(again) == repr(m)
    assert "next token, context 8" in repr(load(tmp_path / "model"))


def test_same_seed_same_weights() -> None:
    def weights(seed: int) -> bytes:
        tensors = memorize_text(PASSAGE[:700], 9, seed).transformer.tensors()
        return b"".join(array.tobytes() for _, array in tensors)

    assert weights(1) == weights(1) != weights(2)


def test_byte_pairs() -> None:
    m = pairs()
    text = m.interface
    ids = text.encode(PASSAGE)
    assert text.decode(ids) == PASSAGE
    assert len(ids) < 0.8 * len(PASSAGE)
    assert text.tokens.size == 300 == m.form.width
    assert len(text.tokens.words) == len(set(text.tokens.words))
    assert text.decode(text.encode("naïve ☃\x00")) == "naïve ☃\x00".encode()
    found = counted(ids, 8, 300)
    windows, wanted = arrays(found, 300)
    assert (look_up(m, windows) == wanted).all()
    assert recall_text(m, PASSAGE).perfect
    start, length = _certain_stretch(ids, 8)
    begin = max(start, 8)
    wanted_ids = ids[begin : start + length]
    assert len(wanted_ids) > 50
    assert list(text.follow(m.windows, ids[:begin], len(wanted_ids), False, 0)) == wanted_ids.tolist()
    assert m.generate(ids[begin - 8 : begin], len(wanted_ids)) == text.decode(wanted_ids)
    assert (
        memorize_text("abc abd abe", 2, tokenizer="bpe").interface.tokens.size < 270
    )  # no more pairs than there are


def test_a_word_merged_in_two_ways_is_one_token() -> None:
    letters = PairTokens(()).words
    a, b, c = (letters.index(letter) for letter in "abc")
    tokens = PairTokens(((a, b), (256, c), (b, c), (a, 258)))
    assert tokens.words[256:] == ("ab", "abc", "bc")
    assert [tokens.piece(i) for i in range(256, tokens.size)] == [b"ab", b"abc", b"bc"]


def test_letters_are_those_of_byte_level_tokenizers() -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    assert set(LETTERS.values()) == set(ByteLevel.alphabet())
    assert len(LETTERS) == len(set(LETTERS.values())) == 256
    for text in ("é", " ", "\n", "\x7f", "\xad"):
        ((letters, _),) = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        assert letters == "".join(LETTERS[b] for b in text.encode())


def test_without_the_extra_bytes_still_work() -> None:
    program = (
        "import sys; sys.modules['tokenizers'] = None\n"
        "import onelayer\n"
        "assert onelayer.memorize_text('abcd', 2).generate('ab', 2) == b'cd'\n"
        "try: onelayer.memorize_text('abcd', 2, tokenizer='bpe')\n"
        "except ImportError as error: assert '[text]' in str(error)\n"
        "else: raise AssertionError('no error')\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((b"",), "the text is empty"),
        (("x",), "the text has 1"),
        ((["x", "y"],), "it is list"),
        (("xyz", 0), "context=0"),
        (("xyz", True), "context=True"),
        (("xyz", 391), "Use a context of at most 390"),
        (("xyz", 1 << 20), "Use a context of at most 390"),
        (("xyz", 4, -1), "seed=-1"),
        (("xyz", 4, 0, {"tokenizer": "words"}), "tokenizer='words'"),
        (("xyz", 4, 0, {"vocabulary_size": 300}), 'Use tokenizer="bpe"'),
        (("xyz", 4, 0, {"tokenizer": "bpe", "vocabulary_size": 256}), "vocabulary_size=256"),
        ((b"\xff\xfe", 4, 0, {"tokenizer": "bpe"}), "byte 0 is not"),
    ],
)
def test_refusals(arguments, said) -> None:
    keywords = arguments[3] if len(arguments) > 3 else {}
    with pytest.raises(OnelayerError, match=said):
        memorize_text(*arguments[:3], **keywords)


def test_the_longest_context_works() -> None:
    assert recall_text(memorize_text(PASSAGE[:500], 390), PASSAGE[:500]).perfect


def test_prompts_are_refused_for_tokens_that_the_text_has_not() -> None:
    m = memorize_text("abcd abd", 2)
    with pytest.raises(DataError, match=r"token 1 of the prompt has the id 122 \(b'z'\)"):
        m.generate("az", 1)
    with pytest.raises(DataError, match="has the id 256, which does not"):
        m.generate([97, 256], 1)
    assert m.generate("zzab", 1) == m.generate("ab", 1)  # out of reach
    with pytest.raises(OptionError, match="length=-1"):
        m.generate("ab", -1)
    with pytest.raises(OptionError, match="seed=-1"):
        m.generate("ab", 1, sampled=True, seed=-1)


def test_too_many_distributions_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(data_windows, "MOST_NUMBERS", 256 * 257)
    memorize_text("ab ab ac", 1)
    with pytest.raises(HypothesisError, match="3 mixed distributions and 256 tokens take 66,304"):
        memorize_text("ab ab ac xa xb", 1)


def test_codes_that_collide_are_drawn_again(monkeypatch) -> None:
    plain, asked = construction.draw_codes, []

    def draw(windows, seed, attempt, s):
        asked.append(attempt)
        found = plain(windows, seed, attempt, s)
        if attempt >= colliding:
            return found
        blocks = [(np.ones_like(keys), answers) for keys, answers in found.keys.blocks()]
        return replace(found, keys=replace(found.keys, blocks=lambda: iter(blocks)))

    monkeypatch.setattr(construction, "draw_codes", draw)
    colliding = 1
    assert memorize_text("abcd abd", 2).ledger["attempts"] == 2
    colliding = 12
    with pytest.raises(HypothesisError, match="none of 12 draws"):
        memorize_text("abcd abd", 2)
    assert asked == [0, 1, *range(12)]


def test_hashes_that_collide_are_drawn_again(monkeypatch) -> None:
    """Windows of equal hashes are compared, so a bad hash costs time and no more."""

    class Constant:
        def integers(self, low, high, size, dtype):  # noqa: ARG002
            return np.zeros(size, dtype)

    plain = np.random.default_rng
    stream = data_windows.pad_start(np.frombuffer(b"abcab", np.uint8), 2, 256)
    wanted = data_windows.repeated_windows(stream, 2)
    monkeypatch.setattr(np.random, "default_rng", lambda seed: plain(seed) if seed else Constant())
    for a, b in zip(data_windows.repeated_windows(stream, 2), wanted, strict=True):
        assert (a == b).all()
    assert (wanted[0].tolist(), wanted[1].tolist()) == ([2, 5], [2, 2])


def test_other_models_are_no_texts() -> None:
    answers = memorize([["a", "b"]], [[1, 2]], certify=False)
    for ask in (
        lambda: answers.generate("a", 1),
        lambda: answers.stream("a", 1),
        lambda: answers.next_distribution("a"),
        lambda: answers.windows,
        lambda: recall_text(answers, "a"),
    ):
        with pytest.raises(OptionError, match=r"a model that continues a text.*this model answers from stored"):
            ask()
    text = model(3)
    entry, narrow = text.interface.to_json(), replace(text.form, components=3)
    with pytest.raises(ValueError, match="the model has 3 tokens and its tokenizer 256"):
        NextToken.from_json(entry, narrow, text.interface.vocabulary)
    uncausal = replace(text.transformer, attention=replace(text.transformer.attention, causal=False))
    assert find_windows(uncausal) is None
    for other in (replace(text, transformer=uncausal), replace(text, interface=replace(text.interface, context=4))):
        with pytest.raises(OptionError, match="its layers"):
            _ = other.windows


def test_answers_at_the_last_token(monkeypatch) -> None:
    form = AnswerForm("last", None, None, ragged=False)
    outputs = np.arange(6.0).reshape(2, 3, 1)
    assert form.decode(outputs, None).tolist() == [2.0, 5.0]
    assert form.decode(outputs, np.array([1, 2])).tolist() == [0.0, 4.0]
    sequences = read_sequences([["a", "b"], ["b", "a"]])
    answers = read_answers([[0.0, 1.0], [1.0, 0.0]], sequences, "last")  # vectors, although as many as tokens
    assert (answers.form.scope, answers.form.components) == ("last", 2)
    memory = model(3)
    windows, wanted = arrays(counted(PASSAGE, 3, 256), 256)
    asked = []
    monkeypatch.setattr(survival, "half_outputs", lambda *given: asked.append(given[4:]) or wanted[:50])
    assert survival.cast(memory, "bfloat16", windows[:50], wanted[:50].astype(np.float64)).asked == 50
    (at,) = asked
    assert at[0].tolist() == list(range(50))
    assert (at[1] == 2).all()
    wrong = wanted[:50].astype(np.float64)
    wrong[7] = np.roll(wrong[7], 1)
    first = recall(memory, windows[:50], wrong).first_wrong
    assert re.fullmatch(r"sequence 7, component \d+ is answered \S+, not \S+", first), first


def test_ranges_of_ids() -> None:
    assert ranges([5, 3, 4, 9, 0]) == "0,3-5,9"
    assert np.flatnonzero(from_ranges("0,3-5,9", 12)).tolist() == [0, 3, 4, 5, 9]


@pytest.mark.slow
def test_the_language_reference_by_heart() -> None:
    text = python_reference().encode()
    m = memorize_text(text)
    assert m.ledger["context"] == 128
    right = recall_text(m, text)
    assert right.perfect
    assert right.certain > 300_000
    certain = np.ones(len(text), bool)
    windows = data_windows.read_windows(m.interface.encode(text), 128, 256)
    certain[windows.which >= windows.size] = False
    edges = np.flatnonzero(~certain)
    start = int(edges[np.argmax(np.diff(edges))]) + 200  # inside the longest stretch without a choice
    assert certain[start : start + 2128].all()
    assert m.generate(text[start : start + 128], 2000) == text[start + 128 : start + 2128]
    some = np.unique(np.linspace(0, len(text) - 1, 40).astype(int))
    rows = np.lib.stride_tricks.sliding_window_view(windows.stream, 128)[some]
    dense = evaluate(m.transformer, rows.astype(np.int64))[:, -1]
    assert dense.tobytes() == windows.distributions[windows.which[some]].tobytes()


def test_a_long_text_is_packed_and_a_short_one_is_not() -> None:
    """Both search and layers give every byte back; packing pays where the text outweighs one more coordinate."""
    long, short = python_reference()[:60_000], python_reference()[:300]
    assert memorize_text(short, context=16, certify=False).ledger["readout"] == "retrieval"
    model = memorize_text(long, context=16, certify=False)
    assert model.ledger["readout"] == "packed"
    assert not recall(model, long).first_wrong
    text = long.encode()
    pieces = [text[i : i + 16] for i in range(0, 50_000, 97)]
    windows = np.stack([np.frombuffer(piece, np.uint8).astype(int) for piece in pieces])
    dense = evaluate(model.transformer, windows)[:, -1]
    np.testing.assert_array_equal(np.stack([model.next_distribution(piece) for piece in pieces]), dense)
