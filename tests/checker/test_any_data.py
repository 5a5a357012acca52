"""Any data, any text: what was certified is VERIFIED, and what differs from it in one place is not."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import OnelayerError, memorize, save
from onelayer_checker import check

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3)
WHOLE = st.integers(-(2**40), 2**40)
EIGHTHS = st.integers(-40, 40).map(lambda k: k / 8)
TOKENS = {
    "words": WORDS,
    "whole numbers": WHOLE,
    "truth values": st.booleans(),
    "reals": EIGHTHS,
    "vectors": st.lists(EIGHTHS, min_size=2, max_size=2),
}
NAMES = st.one_of(WORDS, WHOLE, st.none(), EIGHTHS.filter(lambda x: x % 1), st.tuples(WORDS, st.booleans()))
ANSWER = {
    "words": WORDS,
    "whole numbers": WHOLE,
    "truth values": st.booleans(),
    "reals": st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-9),
    "vectors": st.lists(st.floats(-1e3, 1e3, width=32).filter(lambda x: abs(x) > 1e-9), min_size=3, max_size=3),
    "mixed": NAMES,
}


@st.composite
def datasets(draw):
    """Sequences that differ as multisets, equal tokens in one of them with equal answers; ragged or not."""
    kind, token = draw(st.sampled_from(sorted(TOKENS.items())))
    least = draw(st.integers(1, 3))
    most = least if draw(st.booleans()) else least + 2
    sequence = st.lists(token, min_size=least, max_size=most)
    unlike = st.lists(sequence, min_size=1, max_size=6, unique_by=lambda row: json.dumps(sorted(row)))
    X = draw(unlike)
    answer = draw(st.sampled_from(sorted(ANSWER.items())))[1]
    if draw(st.booleans()):
        return kind, X, [draw(answer) for _ in X], "sequence"
    said = [{json.dumps(x): draw(answer) for x in row} for row in X]
    return kind, X, [[known[json.dumps(x)] for x in row] for known, row in zip(said, X, strict=True)], "token"


def certified(folder: str, X, Y, scope) -> Path:
    """The bundle; data that nobody can memorise, or that Python cannot tell apart, is not looked at."""
    try:
        model = memorize(X, Y, scope=scope)
    except OnelayerError:
        assume(False)
    return save(Path(folder) / "m", model, data=(X, Y))


def written(folder: str, X, Y, scope) -> Path:
    path = Path(folder) / "data.jsonl"
    field = "answers" if scope == "token" else "answer"
    lines = [json.dumps({"tokens": x, field: y}, ensure_ascii=False) for x, y in zip(X, Y, strict=True)]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return path


@settings(max_examples=40, deadline=None)
@given(datasets(), st.data())
def test_its_own_data_is_verified_and_other_data_is_not(dataset, data) -> None:
    kind, X, Y, scope = dataset
    with tempfile.TemporaryDirectory() as folder:
        bundle = certified(folder, X, Y, scope)
        assert check(bundle, data=(X, Y)).result == "VERIFIED"
        assert check(bundle, data=written(folder, X, Y, scope)).result == "VERIFIED"
        order = data.draw(st.permutations(range(len(X))))[: data.draw(st.integers(1, len(X)))]
        some = ([X[i] for i in order], [Y[i] for i in order])
        assert check(bundle, data=some).result == "VERIFIED"
        # One answer, or one token, becomes another.
        i = data.draw(st.integers(0, len(X) - 1))
        k = data.draw(st.integers(0, len(X[i]) - 1))
        if data.draw(st.booleans()):
            row = Y[i] if scope == "token" else [Y[i]]
            k = min(k, len(row) - 1)
            other = [*row[:k], unlike(row[k]), *row[k + 1 :]]
            changed = X, [*Y[:i], other if scope == "token" else other[0], *Y[i + 1 :]]
            wanted = {"NOT VERIFIED"} if comparable(row[k], other[k]) else {"UNKNOWN", "NOT VERIFIED"}
        else:
            x = unlike(X[i][k]) if data.draw(st.booleans()) else data.draw(TOKENS[kind])
            rounded = kind in ("reals", "vectors") and np.array_equal(np.float32(x), np.float32(X[i][k]))
            assume(repr(x) != repr(X[i][k]) and not rounded)  # the network reads numbers of float32
            other = [*X[i][:k], x, *X[i][k + 1 :]]
            changed, wanted = ([*X[:i], other, *X[i + 1 :]], Y), {"UNKNOWN", "NOT VERIFIED"}
            assume((repr(other), repr(Y[i])) not in {(repr(a), repr(b)) for a, b in zip(X, Y, strict=True)})
        assert check(bundle, data=changed).result in wanted


def unlike(value):
    """Something else, near: of another type and equal, or one more."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return float(value) if value % 2 else value + 1
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf)) if value % 2 else value + 1
    if isinstance(value, list):
        return [*value[:-1], unlike(value[-1])]
    return (*value[:-1], int(value[-1])) if isinstance(value, tuple) else f"{value} "


def comparable(one, other) -> bool:
    """Reals are compared with reals; a number among words is a class that is not certified."""
    return not isinstance(one, list) or all(type(a) is type(b) for a, b in zip(one, other, strict=True))


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=2, max_size=60) | st.text("ab \n", min_size=2, max_size=60).map(str.encode), st.data())
def test_a_text_is_verified_and_another_is_not(text, data) -> None:
    model = onelayer.memorize_text(text, context=data.draw(st.integers(1, 9)))
    with tempfile.TemporaryDirectory() as folder:
        bundle = save(Path(folder) / "m", model.certify(text))
        path = Path(folder) / "text.csv"  # its ending says nothing
        path.write_bytes(text)
        report = check(bundle, data=path, require=["memorizes float32 0"])
        assert report.result == "VERIFIED", report.why
        at, byte = data.draw(st.integers(0, len(text) - 1)), data.draw(st.integers(0, 255))
        for other in (text[:at] + bytes([byte]) + text[at + 1 :], text[:at], text + bytes([byte])):
            path.write_bytes(other)
            assert check(bundle, data=path).result in (
                {"VERIFIED"} if other == text else {"UNKNOWN", "NOT VERIFIED"}
            )
