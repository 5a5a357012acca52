"""The suite: families of data, each compiled into as many models as there are seeds, mixed and proved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onelayer.certificates.names import names_of
from onelayer.compile.memorize import memorize
from onelayer.errors import FileError, HypothesisError, OptionError, files_in_words
from onelayer.ground_truth.gauge import EXACT, draw, mix, split_heads
from onelayer.ground_truth.mechanism import Mechanism, mechanism_of
from onelayer.model import Model, load
from onelayer.network.weights import Array

FILE = "mechanism.json"
Data = tuple[Any, Any, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A model of the suite, what it stores, and its mechanism."""

    family: str
    seed: int
    gauge: str
    heads: int
    model: Model
    X: Array  # [N, n] ids of tokens
    Y: Array
    mechanism: Mechanism

    @property
    def proved(self) -> bool:
        """Whether the answers of these very weights are proved; else they are only measured."""
        return self.model.proved

    def stream(self) -> Array:
        """The residual stream after attention at every stored token, [tokens, width]: what a tool gets to see."""
        context = self.model.trace(self.X)["context"].astype(np.float64)
        return np.asarray(context.reshape(-1, context.shape[-1]))

    def features(self) -> Array:
        """What the channels carry there, [tokens, channels]: what it has to find."""
        return self.stream() @ self.mechanism.readers

    def wrong(self) -> int:
        return int((self.model.predict(self.X) != self.Y).sum())


def words(rng: np.random.Generator) -> Data:
    """Bags of words, where the answer to a word depends on the other words; contexts by a softmax of levels."""
    X = np.unique(np.sort(rng.permuted(np.tile(np.arange(12), (60, 1)), axis=1)[:, :4], axis=1), axis=0)
    return X, rng.integers(0, 8, X.shape), {"mapping": "temperature"}


def facts(rng: np.random.Generator) -> Data:
    """Triples in order (subject, relation, object), a class for each; contexts by sums of codes."""
    X = np.unique(rng.integers(0, 30, (120, 3)), axis=0)
    return X, rng.integers(0, 10, X.shape), {"positions": True, "mapping": "lattice"}


def parity(rng: np.random.Generator) -> Data:
    """An algorithm: the parity of eight bits, in order; every token answers."""
    every = (np.arange(256)[:, None] >> np.arange(8)) & 1
    X = every[np.sort(rng.permutation(256)[:64])]
    return X, np.repeat(X.sum(1, keepdims=True) % 2, 8, axis=1), {"positions": True, "mapping": "lattice"}


def sums(rng: np.random.Generator) -> Data:
    """A function: the sum of four digits modulo ten; every token answers."""
    X = np.unique(rng.integers(0, 10, (100, 4)), axis=0)
    return X, np.repeat(X.sum(1, keepdims=True) % 10, 4, axis=1), {"positions": True, "mapping": "lattice"}


FAMILIES: dict[str, Callable[[np.random.Generator], Data]] = {
    "words": words,
    "facts": facts,
    "parity": parity,
    "sums": sums,
}


def make(family: str, seed: int = 0, gauge: str = "none", heads: int = 1) -> Case:
    """A model of the suite. Same arguments, same weights. With an exact gauge it is proved in float32; with another
    in float64, where the checker can follow it, else ``proved`` says no."""
    if family not in FAMILIES:
        needs = f"a family among {', '.join(FAMILIES)}"
        raise OptionError("data", needs, f"family={family!r}", "Choose one of them.")
    rng = np.random.default_rng([seed, len(family)])
    X, Y, options = FAMILIES[family](rng)
    dtype = "float32" if gauge in EXACT else "float64"
    if options["mapping"] == "temperature" and heads > 1:
        options["rank"] = heads  # a value for each head
    plain = memorize(X, Y, dtype=dtype, seed=seed, logits=True, certify=False, **options)
    plain = replace(plain, transformer=split_heads(plain.transformer, heads))
    G = draw(gauge, int(plain.transformer.attention.W_Q.shape[1]), rng)
    mechanism = mechanism_of(plain, G)
    model = replace(plain, transformer=mix(plain.transformer, G)) if gauge != "none" else plain
    try:
        model = model.certify(X, Y)
    except HypothesisError:
        assert gauge not in EXACT  # rounded weights are not always proved; they are measured all the same
    return Case(family, seed, gauge, heads, model, X, Y, mechanism)


def save_case(case: Case, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """The bundle of the model, and beside it the mechanism and the data as JSON."""
    folder = case.model.save(path, overwrite=overwrite)
    said = {"family": case.family, "seed": case.seed, "gauge": case.gauge, "heads": case.heads}
    said |= {"proved": case.proved, "X": case.X.tolist(), "Y": case.Y.tolist()}
    (folder / FILE).write_text(json.dumps(said | {"mechanism": case.mechanism.to_json()}))
    return folder


def load_case(path: str | os.PathLike[str]) -> Case:
    with files_in_words(path):
        said = json.loads((Path(path) / FILE).read_text())
    model = load(path)
    if not isinstance(model, Model) or names_of(model)["tokens"] is None:
        raise FileError("file", f"a model of the suite at {path}", "it is another", "Make one.")
    family, seed, gauge, heads = (said[name] for name in ("family", "seed", "gauge", "heads"))
    mechanism = Mechanism.from_json(said["mechanism"])
    return Case(family, seed, gauge, heads, model, np.array(said["X"]), np.array(said["Y"]), mechanism)
