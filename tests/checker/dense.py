"""The network of section 3 and its targets, written out plainly, and a search for inputs where they differ most."""

from __future__ import annotations

import numpy as np

UNARY = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "sin": np.sin, "cos": np.cos}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum}
BINARY |= {"max": np.maximum, "hypot": np.hypot}


def evaluate(tensors, X, dtype, causal: bool = False):
    """Answers [N, n, q] for tokens [N, n, d], every operation in ``dtype``."""
    T = {name: np.asarray(a).astype(dtype) for name, a in tensors.items()}
    h = np.asarray(X).astype(dtype)
    if "embedding.lift" in T:
        h = h @ T["embedding.lift"] + T.get("embedding.bias", dtype(0))
    if "embedding.positions" in T:
        h = h + T["embedding.positions"][: h.shape[1]]
    h = _stack(T, "feedforward", 0, h)
    z = h
    for r in range(len(T["attention.W_Q"])):
        q, k = (
            h @ T[f"attention.W_{s}"][r] + T.get(f"attention.b_{s}", np.zeros((r + 1, 1), dtype))[r] for s in "QK"
        )
        logits = q @ k.swapaxes(1, 2)
        if causal:
            logits = np.where(np.tri(h.shape[1], dtype=bool), logits, dtype(-np.inf))
        e = np.exp(logits - logits.max(axis=2, keepdims=True))
        z = z + (e / e.sum(axis=2, keepdims=True)) @ (h @ T["attention.W_V"][r]) @ T["attention.W_O"][r]
    t = np.maximum(z @ T["readout.0.weight"] + T["readout.0.bias"], 0)
    return _stack(T, "readout", 1, t)


def _stack(T, name: str, first: int, x):
    i = first
    while f"{name}.{i}.weight" in T:
        W, b = T[f"{name}.{i}.weight"], T[f"{name}.{i}.bias"]
        x = np.maximum(x, 0) if i > first else x
        if W.ndim == 2:
            x = x @ W + b
        else:
            x = (
                np.einsum("...ga,gab->...gb", x.reshape(*x.shape[:-1], *W.shape[:2]), W).reshape(*x.shape[:-1], -1)
                + b
            )
        i += 1
    return x


def target(program, X):
    """Outputs [N, n, q], or [N, 1, q], of a program as a certificate names it."""
    values = []
    for op, *given in program["lines"]:
        if op == "x":
            values.append(np.asarray(X, np.float64)[:, given[0], given[1]])
        elif op == "const":
            values.append(np.full(len(X), float.fromhex(given[0])))
        else:
            values.append((UNARY | BINARY)[op](*(values[i] for i in given)))
    return np.stack([values[k] for k in program["outputs"]], axis=1).reshape(len(X), -1, program["components"])


def largest(error, low, high, shape, dtype, seed: int = 0, inside=None, samples: int = 4000, rounds: int = 40):
    """The largest error that is found on random points of the box and by climbing from the worst of them.

    ``inside`` says which points count; the others are not looked at.
    """
    rng = np.random.default_rng(seed)
    ends = np.array([low, high])

    def rounded(X):
        X = np.clip(X, low, high).astype(dtype)
        X = np.where(low > X, np.nextafter(X, dtype(np.inf)), X)
        return np.where(high < X, np.nextafter(X, dtype(-np.inf)), X)

    def errors(X):
        found = error(X)
        found = np.where(np.isnan(found), np.inf, found)
        return found if inside is None else np.where(inside(X), found, -1.0)

    X = rng.uniform(low, high, (samples, *shape))
    some = rng.random(X.shape) < 0.1
    X[some] = rng.choice(ends, int(some.sum()))
    X = rounded(X)
    best = errors(X)
    keep = np.argsort(-best)[:64]
    X, best, reach = X[keep], best[keep], np.full((len(keep), 1, 1), (high - low) / 8)
    for _ in range(rounds):
        tried = rounded(X + reach * rng.uniform(-1, 1, X.shape))
        found = errors(tried)
        better = found > best
        X, best = np.where(better[:, None, None], tried, X), np.where(better, found, best)
        reach = np.where(better[:, None, None], reach * 1.5, reach * 0.7)
    return float(best.max())
