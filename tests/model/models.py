"""A small model of every compiler, interface, mapping, readout and dtype, with inputs and what they must answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onelayer import Model, approximate, memorize, memorize_text

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 4, 3))
F = X.astype(np.float32)
Y, REALS = rng.integers(0, 5, (12, 4)), rng.standard_normal((12, 4))
VECTORS = rng.standard_normal((12, 4, 2))
IDS = rng.integers(0, 9, (12, 4))
LENGTHS = [4, 3, 2, 1] * 3
WORDS = [["river", "bank"], ["bank", "robber"], ["robber", "river", "bank"]]
FACTS = [["water", "shore"], ["money", "crime"], ["crime", "flood", "naïve \u202e\u2603"]]
TEXT = "to be, or not to be, that is the question"


@dataclass(frozen=True)
class Made:
    model: Model
    X: Any
    Y: Any
    lengths: Any = None


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(3 * X).mean(axis=1)


def stored(X: Any, Y: Any, lengths: Any = None, **options: Any) -> Callable[[], Made]:
    return lambda: Made(memorize(X, Y, lengths=lengths, **options), X, Y, lengths)


def text(words: str | bytes, context: int, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        model = memorize_text(words, context, **options)
        windows = np.concatenate([np.full(context, model.interface.tokens.size), model.interface.encode(words)])
        asked = np.unique(np.lib.stride_tricks.sliding_window_view(windows[:-1], context), axis=0)
        following = np.array([model.windows.distributions[model.windows.next_class(window)] for window in asked])
        return Made(model, asked, following.astype(np.float64))

    return make


def function(target: Any, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        model = approximate(target, **options)
        asked = model.interface.box.draw(np.random.default_rng(1), 40)
        asked = asked[model.interface.box.holds(asked)]
        return Made(model, asked, model.target.evaluate(asked.astype(np.float64)))

    return make


PLACED, EIGHTHS = np.arange(40).reshape(10, 4) % 13, np.arange(48).reshape(6, 4, 2) / 8


MAKERS: dict[str, Callable[[], Made]] = {
    "classes in float64": stored(X, Y),
    "classes in float32": stored(F, Y),
    "classes, not asked for a proof": stored(F, Y, certify=False),
    "classes, proved at length": stored(F, Y, certify=True),
    "reals in float64": stored(X, REALS),
    "reals rounded to float32": stored(F, REALS, dtype="float32"),
    "vectors": stored(X, VECTORS),
    "one answer a sequence": stored(X, list("abcdefghijkl")),
    "odd classes": stored(X, [("a", i, 0.1) if i % 2 else None for i in range(12)]),
    "real classes": stored(X, np.array([1.5, -0.1] * 6, dtype=object)),
    "truth values": stored(X, [True, False] * 6),
    "words": stored(WORDS, FACTS),
    "words with positions": stored(WORDS, FACTS, positions=True),
    "ids": stored(IDS, [int(row.sum()) for row in IDS]),
    "a default class": stored(F, Y, default=3),
    "a default class of its own, proved at length": stored(WORDS, FACTS, default="nobody", certify=True),
    "a default vector": stored(X, VECTORS, default=[0.1, -0.25]),
    "lengths": stored(X, Y, LENGTHS),
    "lists of different lengths": stored(
        [x[:k] for x, k in zip(X, LENGTHS, strict=True)], [y[:k] for y, k in zip(REALS, LENGTHS, strict=True)]
    ),
    **{
        f"mapping {mapping}": stored(X, list(range(12)), mapping=mapping, scope="sequence")
        for mapping in ("temperature", "shared_query", "lattice", "averages", "rank_one")
    },
    **{
        f"readout {readout}": stored(F, Y, readout=readout)
        for readout in ("plateaus", "boxes", "table", "retrieval", "bits", "triangular")
    },
    "readout packed": stored(np.arange(4000).reshape(-1, 4), np.arange(4000).reshape(-1, 4) % 7, readout="packed"),
    "mapping tallies": stored(EIGHTHS, np.arange(6) % 5, scope="sequence", mapping="tallies", readout="planes"),
    "readout planes": stored(PLACED, PLACED % 3, readout="planes", positions=True),
    "ids in bfloat16": stored(PLACED, PLACED[:, 0] % 4, dtype="bfloat16", positions=True),
    "reals in float16": stored(EIGHTHS, np.arange(24).reshape(6, 4) % 7, dtype="float16"),
    "interpolated reals": stored(X, REALS, readout="triangular", dtype="float64"),
    "text of bytes": text(b"\xff\x00\xff\x01 \xff", 2),
    "text": text(TEXT, 6),
    "text, not proved": text(TEXT, 6, certify=False),
    "text of byte pairs": text(TEXT, 4, tokenizer="bpe", vocabulary_size=262),
    "quantise": function("x - mean(y)", n=2, tolerance=0.2, construction="quantise"),
    "published": function("median", n=2, tolerance=0.3, construction="published", low=-0.5, high=0.7),
    "positional": function("reversal", n=2, tolerance=0.2, construction="positional"),
    "continuous": function("x*x", n=1, tolerance=0.3, construction="continuous"),
    "positional in float64": function("x1*x2 + x1", n=2, tolerance=0.1, construction="positional", dtype="float64"),
    "formula": function("x - mean(y)", n=3, tolerance=0.1),
    "formula in float64, two sides": function(
        "softmax(dot(x, y), y)", n=2, d=2, tolerance=0.1, low=[0.0, -1.0], high=[1.0, 0.5], dtype="float64"
    ),
    "three tokens": function("max", n=3, tolerance=0.2),
    "a Python function": function(wave, n=2, tolerance=0.3, kind="invariant", lipschitz=3.0),
    "a Python function of which nothing is known": function(
        wave, n=2, tolerance=0.3, kind="invariant", allow_unproved=True
    ),
}


@cache
def made(name: str) -> Made:
    return MAKERS[name]()
