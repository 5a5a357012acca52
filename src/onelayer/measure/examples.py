"""A few answers of a model in words: of stored sequences, of a text, at points of a box, at queries of a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.interfaces import Examples, Function, NextToken
from onelayer.measure import learner_pictures
from onelayer.measure.gaps import cut, stored_samples
from onelayer.network.weights import Array
from onelayer.problems.sequences import Sequences

if TYPE_CHECKING:
    from onelayer.model import Model

#: Examples, characters of each side, tokens of a passage, and numbers of a vector that are written out.
COUNT, LONGEST, PASSAGE, NUMBERS = 5, 120, 32, 4


def examples_of(model: Model) -> list[tuple[str, str]]:
    """Pairs of what goes in and what comes out, as `predict` gives it now: measured, not proved."""
    if isinstance(model.interface, NextToken):
        found = _of_text(model, model.interface)
    elif isinstance(model.interface, Function):
        found = _of_function(model, model.interface)
    elif isinstance(model.interface, Examples):
        found = _of_learner(model, model.interface)
    else:
        found = _of_answers(model)
    return [(cut(given, LONGEST), cut(answer, LONGEST)) for given, answer in found]


def _of_answers(model: Model) -> list[tuple[str, str]]:
    samples, found = stored_samples(model), []
    for i in range(0 if samples is None else min(COUNT, samples.N)):
        assert samples is not None
        length = samples.n if samples.lengths is None else int(samples.lengths[i])
        one = Sequences(samples.tokens[i : i + 1, :length], None, samples.vocabulary)
        answers = model.form.decode(model.rows(one), None)[0]
        listed = answers if model.form.scope == "token" else [answers]
        words = [_token(model, token) for token in one.tokens[0]]
        found.append((" ".join(words), " ".join(map(_number, listed))))
    return found


def _of_text(model: Model, interface: NextToken) -> list[tuple[str, str]]:
    stream = None if model.certificate is None else model.certificate.data.get("stream")
    text = np.empty(0, np.int64) if stream is None else stream[stream < interface.tokens.size]
    found = []
    for start in np.linspace(0, max(0, len(text) - 2 * PASSAGE), COUNT, dtype=int) if len(text) > 1 else []:
        half = min(PASSAGE, len(text) // 2)
        prompt = text[start : start + half] if start + half >= interface.context else text[: start + half]
        answer = model.generate(prompt, length=half)
        shown = interface.decode(prompt[-half:])
        pair = [repr(part.decode(errors="replace")) for part in (shown, _as_bytes(answer))]
        found.append((pair[0], pair[1]))
    return list(dict.fromkeys(found))


def _as_bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def _of_function(model: Model, interface: Function) -> list[tuple[str, str]]:
    X = interface.box.admit(interface.box.draw(np.random.default_rng(0), COUNT))
    answers = model.predict(X, outside="answer")
    known = interface.target.program is not None or interface.target.pooled is not None
    wanted = interface.target.evaluate(X.astype(np.float64)) if known else None
    found = []
    for i in range(len(X)):
        target = "" if wanted is None else f", the target is {_numbers(wanted[i])}"
        found.append((" ".join(_numbers(token) for token in X[i]), _numbers(answers[i]) + target))
    return found


def _of_learner(model: Model, interface: Examples) -> list[tuple[str, str]]:
    if interface.reads == "series":
        return []
    X, y, queries = learner_pictures.prompt(interface)
    answers, wanted = model.predict(X, y, queries), interface.follow(X, y, queries)
    return [
        (f"query {_numbers(q)} after {len(X)} examples", f"{_numbers(a)}, the algorithm gives {_numbers(w)}")
        for q, a, w in zip(queries, answers, wanted, strict=True)
    ]


def _token(model: Model, token: Any) -> str:
    return _numbers(token) if model.interface.vocabulary is None else str(model.interface.vocabulary[int(token)])


def _number(value: Any) -> str:
    return _numbers(value) if isinstance(value, np.ndarray | float) else str(value)


def _numbers(values: Array | float) -> str:
    """One number, or a vector in parentheses."""
    flat = np.ravel(values).astype(float).tolist()
    shown = [f"{x:.5g}" for x in flat[:NUMBERS]] + ["…"] * (len(flat) > NUMBERS)
    return shown[0] if len(flat) == 1 else f"({', '.join(shown)})"
