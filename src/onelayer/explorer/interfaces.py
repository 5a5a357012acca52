"""What a page must know of each kind of model beyond its weights: names, pieces of text, a target, an algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import visible
from onelayer.interfaces import Examples, Function, NextToken
from onelayer.problems.targets.pooled import Pooled
from onelayer.problems.targets.program import Program
from onelayer.problems.tokens import PairTokens

if TYPE_CHECKING:
    from onelayer.model import Model


def describe_interface(model: Model) -> dict[str, Any]:
    interface, form = model.interface, model.form
    names = {
        "vocabulary": None if interface.vocabulary is None else [visible(str(t)) for t in interface.vocabulary],
        "classes": None if form.classes is None else [visible(str(c)) for c in form.classes],
        "scope": form.scope,
        "components": form.width,
        "logits": model.has_logits,
        "default": None if interface.default is None else list(interface.default),
        "width": model.transformer.token_width,
    }
    if isinstance(interface, NextToken):
        return {"kind": "text", **names, "vocabulary": None, "text": _text(model, interface)}
    if isinstance(interface, Function):
        return {"kind": "function", **names, "function": _function(interface)}
    if isinstance(interface, Examples):
        return {"kind": "learner", **names, "learner": _learner(interface)}
    return {"kind": "reals" if interface.vocabulary is None else "words", **names}


def _text(model: Model, interface: NextToken) -> dict[str, Any]:
    """Tokens as bytes, and the beginning of the text to start from."""
    tokens, size = interface.tokens, interface.tokens.size
    stream = None if model.certificate is None else model.certificate.data.get("stream")
    text = [] if stream is None else stream[stream < size].tolist()
    return {
        "context": interface.context,
        "start": size,
        "pieces": [list(tokens.piece(token)) for token in range(size)],
        "merges": [list(pair) for pair in tokens.merges] if isinstance(tokens, PairTokens) else None,
        "alphabet": list(interface.alphabet),
        "stream": text[:MOST_TOKENS],
        "length": len(text),
    }


def _function(interface: Function) -> dict[str, Any]:
    target = interface.target
    written: Program | Pooled | None = target.program or target.pooled
    finite = np.isfinite(interface.error_bound)
    return {
        "name": visible(target.name),
        "n": target.n,
        "d": target.d,
        "per": target.per,
        "sides": [list(side) for side in interface.box.sides],
        "bound": interface.error_bound if finite else None,
        "measured": interface.measured_error,
        "left_out": interface.left_out,
        "program": None if written is None else _lines(written),
        "pooled": isinstance(written, Pooled),
    }


def _lines(written: Program | Pooled) -> dict[str, Any]:
    return {"lines": [list(line) for line in written.lines], "outputs": list(written.outputs)}


def _learner(interface: Examples) -> dict[str, Any]:
    a = interface.algorithm
    scripts = {
        name: None if script is None else {"lines": list(script.lines), "outputs": list(script.outputs)}
        for name, script in (("example", a.example), ("query", a.query), ("judge", a.judge))
    }
    return {
        "words": visible(interface.words),
        "reads": interface.reads,
        "lags": interface.lags,
        "labels": interface.labels,
        "judges": interface.judges,
        "low": interface.low,
        "high": interface.high,
        "largest": interface.largest,
        "bound": interface.error_bound if np.isfinite(interface.error_bound) else None,
        "x": a.x,
        "y": a.y,
        "steps": a.steps,
        "start": list(a.start),
        **scripts,
    }


#: Tokens of a text that a page carries.
MOST_TOKENS = 20_000
