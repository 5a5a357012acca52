"""The models that every export is tested on, their stored data, and what NumPy's dense pass gives for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np

import onelayer
from onelayer import Model
from onelayer.network import Attention, Embedding, Grouped, Layer, Linear, Transformer
from onelayer.network.blocks import evaluate
from onelayer.problems.sequences import Sequences
from onelayer.readouts.plateaus import on_a_line

memorize = partial(onelayer.memorize, certify=False)

N, n, d = 40, 6, 5
Run = Callable[[Sequences], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model, what it stores, and inputs of the same kind that it does not store."""

    model: Model
    Y: Any
    stored: Sequences
    unknown: Sequences

    @property
    def transformer(self) -> Transformer:
        return self.model.transformer

    @property
    def outputs(self) -> np.ndarray:
        return self.model.outputs(self.stored, "dense")

    @property
    def inside(self) -> np.ndarray:
        return inside(self.stored)

    @property
    def saturates(self) -> bool:
        """Plateaus and boxes forget the rounding of a coordinate; the triangular readout does not."""
        return self.model.ledger["readout"] != "triangular"

    def assert_close(self, asked: Sequences, outputs: np.ndarray) -> None:
        """Outputs for inputs that are not stored, against NumPy's: they may lie on the ramps between plateaus.

        Each coordinate is off by at most radius, a ramp is at least guard/4 wide, and over a ramp an output changes
        by at most the range of the answers. In float32 that bound is loose: a fiftieth of the range is asked for.
        """
        wanted, mask = self.model.outputs(asked, "dense"), inside(asked)
        span = float(np.ptp(self.outputs[self.inside]))
        tolerance = min(8 / self.model.ledger["margin"], 1 / 50) * span if self.saturates else 1e-7
        np.testing.assert_allclose(outputs[mask], wanted[mask], rtol=0, atol=tolerance)

    def assert_recalled(self, outputs: np.ndarray) -> None:
        """Every stored answer, and for plateaus and boxes every bit of what NumPy's dense pass gives."""
        assert (outputs.dtype, outputs.shape) == (self.outputs.dtype, self.outputs.shape)
        answers = np.asarray(self.model.form.decode(outputs, self.stored.lengths))
        mask = self.inside if self.model.form.scope == "token" else slice(None)
        np.testing.assert_array_equal(answers[mask], np.asarray(self.Y)[mask])
        if self.saturates:
            np.testing.assert_array_equal(outputs[self.inside], self.outputs[self.inside])
        else:
            np.testing.assert_allclose(outputs, self.outputs, atol=1e-7)

    def one_shorter(self) -> Sequences:
        """A batch of one, all of its sequences but the last token: another batch size and another length."""
        first = int(np.argmax(self.stored.lengths)) if self.stored.lengths is not None else 0
        lengths = None if self.stored.lengths is None else self.stored.lengths[first : first + 1] - 1
        return replace(
            self.stored, tokens=self.stored.tokens[first : first + 1, : self.stored.n - 1], lengths=lengths
        )


def inside(sequences: Sequences) -> np.ndarray:
    valid = sequences.valid()
    return np.ones((sequences.N, sequences.n), bool) if valid is None else valid


def _data(rng: np.random.Generator) -> dict[str, tuple[Any, Any, Any, dict[str, Any]]]:
    """X, Y, lengths and options by name; the last quarter of the sequences is kept from the model."""
    # Distinct sets of few distinct tokens: every token is met in many contexts, so the answers hang on attention.
    sets = np.array(list(combinations(range(12), n)))[rng.permutation(924)[:N]]
    vectors, Y = rng.standard_normal((12, d)), rng.integers(0, 100, (N, n))
    rows = np.unique(rng.integers(0, 5, (3 * N, n)), axis=0)[:N]
    lengths = rng.integers(1, n + 1, N)
    visible = np.arange(n) < lengths[:, None]
    X = vectors[sets]
    padded = np.where(visible[..., None], X, np.nan)
    # With lengths two sequences may look the same, so there the answers are functions of what is visible.
    of_sets = (7 * np.where(visible, 2**sets, 0).sum(1, keepdims=True) + 3 * sets) % 100
    of_rows = (7 * (np.where(visible, rows, 0) @ np.arange(1, n + 1))[:, None] + 3 * rows) % 100
    narrow = {"dtype": "float32"}
    return {
        "real tokens": (X, Y, None, {}),
        "real tokens, float32": (X, Y, None, narrow),
        "far from the origin": (X + 1e6, Y, None, {}),
        "far from the origin, float32": (X + 100, Y, None, narrow),
        "ids": (sets, Y, None, {}),
        "ids, float32": (sets, Y, None, narrow),
        "ids and positions": (rows, Y, None, {"positions": True}),
        "real tokens and positions, float32": (X, Y, None, {"positions": True, **narrow}),
        "lengths": (padded, of_sets, lengths, {}),
        "lengths, float32": (padded, of_sets, lengths, narrow),
        "ids, positions and lengths": (rows, of_rows, lengths, {"positions": True}),
        "per sequence": (X, np.array([f"class {i % 7}" for i in range(N)]), None, {}),
        "vectors per sequence, float32": (X, rng.standard_normal((N, 3)).astype("f"), None, narrow),
        "vectors": (X, rng.standard_normal((N, n, 3)), None, {}),
        "reals": (X, rng.standard_normal((N, n)), None, {}),
        "a shared query": (X, Y, None, {"mapping": "shared_query"}),
        "boxes of rank 2": (X, Y, None, {"rank": 2}),
        "boxes of rank 3, float32": (X, Y, None, {"rank": 3, **narrow}),
        "averages": (X, Y, None, {"mapping": "averages"}),
        "averages, float32": (X[:12], Y[:12], None, {"mapping": "averages", **narrow}),
        "averages of ids": (sets, Y, None, {"mapping": "averages"}),
        "triangular": (X[:16], Y[:16], None, {"readout": "triangular"}),
    }


NAMES = tuple(_data(np.random.default_rng(0)))


@cache
def case(name: str) -> Case:
    X, Y, lengths, options = _data(np.random.default_rng(17))[name]
    stored = slice(0, len(X) * 3 // 4)
    model = memorize(X[stored], Y[stored], lengths=None if lengths is None else lengths[stored], **options)

    def read(part: slice) -> Sequences:
        return model.read(X[part], None if lengths is None else lengths[part])

    return Case(model, Y[stored], read(stored), read(slice(stored.stop, None)))


def random_transformer(rng: np.random.Generator, dtype: str = "float64", **attention: Any) -> Transformer:
    """Every part a model may have, two heads and blocks of 2 x 3 among them, and no structure in the weights."""
    width, s, heads = 4, 2, 2

    def draw(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / 2).astype(dtype)

    return Transformer(
        Attention(
            *(draw(heads, width, s) for _ in range(3)),
            draw(heads, s, width),
            draw(heads, s),
            draw(heads, s),
            **attention,
        ),
        Embedding(lift=draw(d, width), bias=draw(width), positions=draw(n, width)),
        (Linear(draw(width, 6), draw(6)), Grouped(draw(3, 2, 2), draw(6)), Linear(draw(6, width), draw(width))),
        (Linear(draw(width, 8), draw(8)), Grouped(draw(4, 2, 3), draw(12)), Linear(draw(12, 3), draw(3))),
    )


def permuted(model: Transformer, rng: np.random.Generator) -> tuple[Transformer, np.ndarray]:
    """The same model with every sum in another order: channels, head, hidden units, plateaus, token components.

    Also gives the order in which components of real tokens must be fed to it.
    """
    a, e = model.attention, model.embedding
    channels, inner, outer = (rng.permutation(size) for size in (a.W_Q.shape[1], a.head_size, a.head_size))
    fed = rng.permutation(model.token_width)
    if e is None and not model.feedforward:
        channels = fed  # the tokens are the residual stream
    first = channels if e is None and not model.feedforward else fed
    if e is not None:
        lifted = (
            rng.permutation((e.table if e.lift is None else e.lift).shape[1]) if model.feedforward else channels
        )
        first = lifted
        e = Embedding(
            None if e.lift is None else e.lift[fed][:, lifted],
            None if e.table is None else e.table[:, lifted],
            None if e.bias is None else e.bias[lifted],
            None if e.positions is None else e.positions[:, lifted],
        )
    attention = Attention(
        a.W_Q[:, channels][:, :, inner],
        a.W_K[:, channels][:, :, inner],
        a.W_V[:, channels][:, :, outer],
        a.W_O[:, outer][:, :, channels],
        None if a.b_Q is None else a.b_Q[:, inner],
        None if a.b_K is None else a.b_K[:, inner],
    )
    answers = np.arange(model.readout[-1].width)
    feedforward = permuted_stack(model.feedforward, first, channels, rng)
    return Transformer(attention, e, feedforward, permuted_stack(model.readout, channels, answers, rng)), fed


def permuted_stack(
    layers: tuple[Layer, ...], order: np.ndarray, last: np.ndarray, rng: np.random.Generator
) -> tuple[Layer, ...]:
    """Inputs in ``order`` and outputs in the order ``last``; the hidden units in between are shuffled."""
    result: list[Layer] = []
    for i, layer in enumerate(layers):
        following = layers[i + 1] if i + 1 < len(layers) else None
        if isinstance(layer, Grouped):  # the order of its inputs keeps each group together
            groups, inputs, outputs = layer.weight.shape
            which = order.reshape(groups, inputs)
            members = which[:, 0] // inputs
            weight = layer.weight[members[:, None], which % inputs]
            order = (members[:, None] * outputs + np.arange(outputs)).ravel()
            result.append(Grouped(weight, layer.bias[order]))
            continue
        weight = layer.weight[order]
        if following is None:
            order = last
        elif isinstance(following, Grouped):
            blocks = np.arange(layer.width).reshape(following.weight.shape[:2])
            groups = rng.permutation(len(blocks))
            after = layers[i + 2] if i + 2 < len(layers) else None
            if isinstance(after, Grouped):  # its groups stay together too
                nested = np.arange(len(blocks)).reshape(after.weight.shape[:2])
                groups = rng.permuted(nested[rng.permutation(len(nested))], axis=1).ravel()
            order = rng.permuted(blocks[groups], axis=1).ravel()
        else:
            order = rng.permutation(layer.width)
        result.append(Linear(weight[:, order], layer.bias[order]))
    return tuple(result)


def assert_follows_numpy(dtype: str, exported: Callable[[Transformer], Run], **attention: Any) -> None:
    """A random model, exported and asked with and without lengths, answers about as NumPy does."""
    rng = np.random.default_rng(3)
    model = random_transformer(rng, dtype, **attention)
    X, lengths, run = rng.standard_normal((7, n, d)), rng.integers(1, n + 1, 7), exported(model)
    for asked in (Sequences(X, None), Sequences(X, lengths), Sequences(X[:1, :3], None)):
        outputs, wanted = run(asked), evaluate(model, asked.tokens, asked.lengths)
        valid = ... if asked.lengths is None else asked.valid()
        tolerance = 1e-12 if dtype == "float64" else 1e-4
        np.testing.assert_allclose(outputs[valid], wanted[valid], rtol=tolerance, atol=tolerance)


def staircase(K: int, dtype: str) -> Transformer:
    """A token is a number from 0 to K-1, and plateau number t holds the answer (7 t) mod 1000."""
    t = np.arange(K, dtype=np.float64)
    head = np.zeros((1, 1, 1), dtype)
    readout = on_a_line(t, (7 * t % 1000)[:, None], dtype).layers
    return Transformer(
        Attention(head, head, head, head), readout=(Linear(np.ones((1, 1), dtype), np.zeros(1, dtype)), *readout)
    )


def far_below_zero() -> Transformer:
    """A token x sees logits -x^2: any mask but -inf loses against a large x."""
    one = np.ones((1, 1, 1))
    return Transformer(Attention(-one, one, one.copy(), one.copy()))
