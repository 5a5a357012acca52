"""Tools that ship, to compare others with: they look at streams and weights, never at the mechanism."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onelayer.errors import MissingExtraError, OptionError
from onelayer.ground_truth.mechanism import Edge
from onelayer.ground_truth.suite import Case
from onelayer.network.weights import Array, Linear

Directions = Callable[[Array, int], Array]


def axes(stream: Array, _seed: int) -> Array:
    """Every channel of the stream as it stands."""
    return np.eye(stream.shape[1])


def pca(stream: Array, _seed: int) -> Array:
    """Principal components."""
    return np.asarray(np.linalg.svd(stream - stream.mean(0), full_matrices=False)[2])


def ica(stream: Array, seed: int) -> Array:
    """Independent components (FastICA) of what varies."""
    try:
        from sklearn.decomposition import FastICA
    except ImportError:
        raise MissingExtraError("the baseline ica", "sklearn", "sklearn") from None
    import warnings

    spread = np.linalg.svd(stream - stream.mean(0), compute_uv=False)
    k = int((spread > 1e-9 * spread[0]).sum())
    with warnings.catch_warnings():  # it says so where it does not converge, which its score shows
        warnings.simplefilter("ignore")
        fitted = FastICA(k, random_state=seed, max_iter=400, whiten="unit-variance").fit(stream)
    return np.asarray(fitted.components_)


def sae(stream: Array, seed: int, steps: int = 800) -> Array:
    """A sparse autoencoder with twice as many latents as channels; its encoder's rows."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError("the baseline sae", "torch", "torch") from None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the matrices are small
    try:
        made = torch.Generator().manual_seed(seed)
        x = torch.tensor((stream - stream.mean(0)) / (stream.std(0).max() + 1e-12), dtype=torch.float32)
        encode = torch.randn(2 * x.shape[1], x.shape[1], generator=made).mul_(0.3).requires_grad_()
        decode, bias = encode.detach().T.clone().requires_grad_(), torch.zeros(2 * x.shape[1], requires_grad=True)
        by = torch.optim.Adam([encode, decode, bias], lr=1e-2)
        for _ in range(steps):
            latents = torch.relu(x @ encode.T + bias)
            unit = decode / decode.norm(dim=0, keepdim=True)
            loss = ((latents @ unit.T - x) ** 2).mean() + 1e-3 * latents.abs().mean()
            by.zero_grad()
            loss.backward()
            by.step()
        return np.asarray(encode.detach().double().numpy())
    finally:
        torch.set_num_threads(threads)


DIRECTIONS: dict[str, Directions] = {"axes": axes, "pca": pca, "ica": ica, "sae": sae}


def find(name: str, case: Case, seed: int = 0) -> Array:
    """Directions [k, width] that a baseline finds in the stream."""
    if name not in DIRECTIONS:
        needs = f"a baseline among {', '.join(DIRECTIONS)}"
        raise OptionError("data", needs, f"it is {name!r}", "Choose one of them.")
    return DIRECTIONS[name](case.stream(), seed)


def probe(case: Case, channel: str) -> Array:
    """A linear probe [width] for a channel, by least squares on every other stored token."""
    stream, c = case.stream()[::2], case.mechanism.channels.index(channel)
    wanted = case.features()[::2, c]
    centred = stream - stream.mean(0)
    return np.asarray(np.linalg.lstsq(centred, wanted - wanted.mean(), rcond=1e-9)[0])


def attribution(case: Case) -> dict[Edge, float]:
    """Direct attribution: the spread of a channel of the stream times the weight of who reads it, as they stand."""
    t = case.model.transformer
    before, after = case.model.trace(case.X)["embedded"], case.model.trace(case.X)["context"]
    if t.feedforward:
        before = case.model.trace(case.X)[f"feedforward.{len(t.feedforward) - 1}"]
    spread = [x.reshape(-1, x.shape[-1]).std(0) for x in (before, after)]
    first, a, names = t.readout[0], t.attention, case.mechanism.channels
    assert isinstance(first, Linear)
    found: dict[Edge, float] = {}
    for c, name in enumerate(names):
        found[name, "readout"] = float(spread[1][c] * np.abs(first.weight[c]).sum())
        for head in range(a.heads):
            for part, W in (("query", a.W_Q), ("key", a.W_K), ("value", a.W_V)):
                found[name, f"head {head} {part}"] = float(spread[0][c] * np.abs(W[head, c]).sum())
            found[f"head {head} output", name] = float(np.abs(a.W_O[head, :, c]).sum())
    return found


def patching(case: Case) -> dict[Edge, float]:
    """Activation patching. A channel's values after attention are shuffled over all tokens: the share of answers
    that change is the score of its edge to the readout. A head's output is shuffled: how far it moves a channel is
    the score of that edge. It says nothing about what a head reads."""
    t, rng, trace = case.model.transformer, np.random.default_rng(0), case.model.trace(case.X)
    stream = trace["context"]
    flat = stream.reshape(-1, stream.shape[-1])
    readout = _only_readout(case)
    answers = readout(flat).argmax(-1)
    found: dict[Edge, float] = {}
    for c, name in enumerate(case.mechanism.channels):
        patched = flat.copy()
        patched[:, c] = rng.permutation(flat[:, c])
        found[name, "readout"] = float((readout(patched).argmax(-1) != answers).mean())
    for head in range(t.attention.heads):
        written = (trace[f"head{head}.averages"] @ t.attention.W_O[head]).reshape(len(flat), -1)
        moved = np.abs(written - rng.permutation(written)).mean(0)
        found |= {(f"head {head} output", name): float(moved[c]) for c, name in enumerate(case.mechanism.channels)}
    return found


def _only_readout(case: Case) -> Callable[[Array], Array]:
    from onelayer.network.forward import run_stack

    layers = case.model.transformer.readout
    return lambda stream: run_stack(layers, stream)


EDGES: dict[str, Callable[[Case], dict[Edge, float]]] = {"attribution": attribution, "patching": patching}


def score_edges(name: str, case: Case) -> dict[Edge, float]:
    """Scores that a baseline gives edges, taking every axis of the stream for a channel."""
    if name not in EDGES:
        raise OptionError("data", f"a baseline among {', '.join(EDGES)}", f"it is {name!r}", "Choose one of them.")
    return EDGES[name](case)
