"""From sequences and answers to the best layer of linear attention, and whether the sequences determine it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.algorithms import prove_of_data
from onelayer.errors import DataError, OptionError
from onelayer.interfaces.forms import Forms
from onelayer.learners.cubic import (
    coefficients_of,
    exact_coefficients,
    features,
    fewest_heads,
    heads_of,
    network,
)
from onelayer.ledger import Constant, Ledger
from onelayer.model import Model
from onelayer.network import Transformer
from onelayer.problems.answers import AnswerForm

Array = NDArray[Any]
#: Features, and bytes of them, beyond which nothing is begun.
MOST_FEATURES, MOST_BYTES = 4096, 2 << 30
#: Of the largest eigenvalue: what is less counts as 0.
NOTHING = 1e-11
#: Random inputs among which a second layer must differ.
TRIES = 256


@dataclass(frozen=True)
class Witness:
    """A second layer that fits as well: at most ``eps`` apart on the sequences, at least ``delta`` at ``at``."""

    transformer: Transformer
    eps: float
    delta: float
    at: Array


@dataclass(frozen=True)
class Identified:
    """Whether sequences determine a layer: the least eigenvalue of their features; a proved bound of it, or 0."""

    eigenvalue: float
    bound: float
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.bound > 0


def fit_attention(Z: Any, Y: Any, *, heads: Literal["svd", "fewest"] = "svd", certify: bool = True) -> Model:
    """The layer of linear attention that is nearest to answers Y [N, q], or [N], at the last tokens of Z [N, n, d].

    It is the global minimum over all such layers, with any number of heads. The ledger has the mean squared error,
    the number of heads and the least eigenvalue of the features; if that is above 0, the checker proves
    `identifies`: every layer that fits the sequences equally well is the same function. Otherwise it proves
    `ambiguous`, of a second layer that fits as well and differs elsewhere; `identify` gives that one.
    """
    if heads not in ("svd", "fewest"):
        raise OptionError("cubic", "heads among svd, fewest", f"heads={heads!r:.40}", "Choose one of them.")
    Z, Y, plain = _read(Z, Y)
    H = features(Z)
    p, A = solved(H, Y)
    d, q = Z.shape[2], Y.shape[1]
    p = p.reshape(-1, d, q)
    made = heads_of(p)
    made = made if heads == "svd" else fewest_heads(p, len(made)) or made
    error = float(np.mean((H @ coefficients_of(made).reshape(-1, q) - Y) ** 2))
    net = network(made)
    lowest = float(np.linalg.eigvalsh(A)[0])
    constants = (
        Constant("heads", len(made), "as many as the rank of the coefficients, or the fewest that were found"),
        Constant("error", error, "mean squared, of all layers of linear attention the least"),
        Constant("eigenvalue", lowest, "the least of the mean of H H^T, H the cubic features"),
    )
    proof = _proof(net, Z, q, A, lowest) if certify else None
    form = AnswerForm("last", None, None if plain else q, False)
    return Model(net, Forms(form=form, spare=q), Ledger(constants), proof)


def solved(H: Array, Y: Array) -> tuple[Array, Array]:
    """Coefficients by normal equations, and once more on what they leave; of least norm if others are as good. The
    mean of H H^T beside them."""
    A = H.T @ H
    scale = np.trace(A) / len(A)
    try:
        L = np.linalg.cholesky(A - NOTHING * scale * np.eye(len(A)))
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(H, Y, rcond=None)[0], A / len(H)
    p = np.linalg.solve(A, H.T @ Y)
    for _ in range(2):
        p = p + np.linalg.solve(A, H.T @ (Y - H @ p))
    del L
    return p, A / len(H)


def identify(Z: Any) -> Identified:
    """Whether sequences [N, n, d] determine every linear attention layer that is fitted to them."""
    Z, _, _ = _read(Z, None)
    H = features(Z)
    A = H.T @ H / len(H)
    lowest = float(np.linalg.eigvalsh(A)[0])
    zero = network([(np.zeros((Z.shape[2], 1)), np.eye(Z.shape[2]))])
    proof = _proof(zero, Z, 1, A, lowest)
    if proof is None:
        return Identified(lowest, 0.0)
    (claim,) = proof.claims
    if claim["type"] == "identifies":
        return Identified(lowest, float.fromhex(claim["mu"]))
    other = second(Z, 1, A, zero)
    eps, delta = (float.fromhex(claim[name]) for name in ("eps", "delta"))
    return Identified(lowest, 0.0, Witness(other[0], eps, delta, proof.data["at"][0, :, : Z.shape[2]]))


def _proof(net: Transformer, Z: Array, q: int, A: Array, lowest: float) -> Any:
    """What the checker proves of the sequences: that they determine the layer, or that they do not."""
    tokens = np.pad(Z, ((0, 0), (0, 0), (0, q)))
    if lowest > NOTHING * np.trace(A) / len(A):
        for share in (1e-6, 1e-3, 0.5):
            claim = {"type": "identifies", "mu": (lowest * (1 - share)).hex()}
            if proof := prove_of_data(net, claim, {"tokens": tokens}):
                return proof
        return None
    other, at, eps, delta = second(Z, q, A, net)
    data = {"tokens": tokens, "at": at} | {
        f"other.{n}": getattr(other.attention, n) for n in ("W_Q", "W_K", "W_V", "W_O")
    }
    claim = {"type": "ambiguous", "eps": (eps * 4 + 1e-12).hex(), "delta": (delta * 0.999).hex()}
    return prove_of_data(net, claim, data)


def second(Z: Array, q: int, A: Array, net: Transformer) -> tuple[Transformer, Array, float, float]:
    """Another layer that fits as well, an input at which it differs, and by how much it does on Z and there."""
    d, rng = Z.shape[2], np.random.default_rng(0)
    direction = np.linalg.eigh(A)[1][:, 0].reshape(-1, d)
    moved = np.zeros((len(direction), d, q))
    moved[..., 0] = direction
    extra = network(heads_of(moved))
    a, b = net.attention, extra.attention
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in ("W_Q", "W_K", "W_V", "W_O")
    }
    inputs = rng.standard_normal((TRIES, *Z.shape[1:])) * np.sqrt((Z**2).mean())
    apart = np.abs(features(inputs) @ direction.ravel())
    at, eps = int(apart.argmax()), float(np.abs(features(Z) @ direction.ravel()).max())
    layer = Transformer(type(a)(**joined, kind="linear"), None, (), net.readout, net.channels)
    return layer, np.pad(inputs[at : at + 1], ((0, 0), (0, 0), (0, q))), eps, float(apart[at])


@dataclass(frozen=True)
class Equivalence:
    """Whether two layers are the same function, exactly; if not, an input at which they differ, and by how much."""

    same: bool
    at: Array | None = None
    apart: Fraction | None = None

    def __bool__(self) -> bool:
        return self.same


def equivalent(layer: Model | Transformer, other: Model | Transformer) -> Equivalence:
    """Whether two layers of linear attention are the same function of all sequences, over the rationals."""
    first, second_ = (exact_coefficients(m.transformer if isinstance(m, Model) else m) for m in (layer, other))
    if [part.shape for part in first] != [part.shape for part in second_]:
        needs, found = "layers with tokens and answers of the same width", "they are different"
        raise OptionError("cubic", needs, found, "Compare such layers.")
    p, R, b = (x - y for x, y in zip(first, second_, strict=True))
    if not (p.any() or R.any() or b.any()):
        return Equivalence(True)
    d = p.shape[1]
    for last in range(-1, d):
        for scale in (1, -1, 2, 3):
            for j in range(d):
                for k in range(j, d):
                    Z = np.zeros((2, d), int)
                    Z[0, j], Z[0, k] = 1, 1
                    Z[1, max(last, 0)] = 0 if last < 0 else scale
                    G, (i, h) = Z.T @ Z, np.triu_indices(d)
                    value = np.einsum("p,l,pla->a", G[i, h].astype(object), Z[1].astype(object), p) + Z[1] @ R + b
                    if value.any():
                        return Equivalence(False, Z, max(value, key=abs))
    raise AssertionError("coefficients that differ give different values")


def _read(Z: Any, Y: Any) -> tuple[Array, Array, bool]:
    """Sequences [N, n, d] and answers [N, q], checked."""
    try:
        Z = np.asarray(Z, np.float64)
        Y = np.zeros((len(Z), 1)) if Y is None else np.asarray(Y, np.float64)
    except (TypeError, ValueError):
        raise DataError("data", "numbers", "Z or Y holds something else", "Give arrays of numbers.") from None
    plain = Y.ndim == 1
    Y = Y[:, None] if plain else Y
    if Z.ndim != 3 or 0 in Z.shape or Y.shape[:1] != Z.shape[:1] or Y.ndim != 2:
        found = f"Z has shape {Z.shape}, Y {Y.shape}"
        raise DataError("data", "sequences Z [N, n, d] and an answer Y [N, q] for each", found, "Give such arrays.")
    for name, part in (("sequence", Z.reshape(len(Z), -1)), ("answer", Y)):
        bad = ~np.isfinite(part).all(axis=1)
        if bad.any():
            found = f"{name} {int(bad.argmax())} has NaN or infinity"
            raise DataError("data", "finite numbers", found, "Leave it out, or mend it.")
    d = Z.shape[2]
    size = d * (d + 1) // 2 * d
    if size > MOST_FEATURES or len(Z) * size * 8 > MOST_BYTES:
        fits = max(k for k in range(1, 64) if k * (k + 1) // 2 * k <= MOST_FEATURES)
        found = f"d={d} has {size:,} of them, {len(Z) * size * 8 / 1e9:.3g} GB for {len(Z):,} sequences"
        raise DataError(
            "data", f"at most {MOST_FEATURES:,} cubic features", found, f"Use d <= {fits}, or fewer sequences."
        )
    if len(Z) < size:
        needs = f"at least {size} sequences for d={d}"
        found = f"there are {len(Z)}: the features cannot have full rank"
        raise DataError("cubic", needs, found, "Add sequences.")
    return Z, Y, plain
