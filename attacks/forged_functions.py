"""Forgeries of bundles that claim something about a function: of cells, and of hats with and without gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attacks.bundle import Bundle
from attacks.forgeries import Forgery

Change = Callable[[Bundle], None]


def causal(b: Bundle) -> None:
    """Every token sees only those before it; the names say so, too."""
    b.certificate["graph"]["causal"] = b.names["causal"] = True


def claims(edit: Callable[[dict[str, Any]], None], *kinds: str) -> Change:
    """Edits all claims, or those of some kinds."""

    def change(b: Bundle) -> None:
        for claim in b.certificate["claims"]:
            if not kinds or claim["type"] in kinds:
                edit(claim)

    return change


def put(*kinds: str, **values: object) -> Change:
    written = {k: v.hex() if isinstance(v, float) else v for k, v in values.items()}
    return claims(lambda claim: claim.update(written), *kinds)


def times(name: str, factor: float, *kinds: str) -> Change:
    def edit(claim: dict[str, Any]) -> None:
        if name in claim:
            claim[name] = (float.fromhex(claim[name]) * factor).hex()

    return claims(edit, *kinds)


def target(**values: object) -> Change:
    return claims(lambda claim: claim["target"].update(values))


def weight(name: str, edit: Callable[[np.ndarray], object]) -> Change:
    """Edits a tensor in place, or replaces it by what is returned."""

    def change(b: Bundle) -> None:
        edited = edit(b.model[name])
        if isinstance(edited, np.ndarray):
            b.model[name] = edited.astype(b.model[name].dtype)

    return change


def entry(name: str, at: Any, value: float) -> Change:
    return weight(name, lambda a: a.__setitem__(at, value))


def _malformed_forgery(name: str, why: str, change: Change, gate: str = "claim") -> Forgery:
    return Forgery(name, why, "MALFORMED", gate, change)


def _unknown_forgery(name: str, why: str, change: Change) -> Forgery:
    return Forgery(name, why, "UNKNOWN", "", change)


def _wrong(name: str, why: str, change: Change) -> Forgery:
    return Forgery(name, why, "NOT VERIFIED", "", change)


ASSUMED = {"lipschitz": (1.0).hex(), "error": (0.0).hex(), "symmetric": True}


def of_cells(base: Bundle) -> Iterator[Forgery]:
    """Of sup_error and lp_error for x - mean(y), two tokens without positions."""
    yield from _claims_of_cells()
    tokens, answers = base.data["tokens"], base.data["answers"]
    pair = int(np.flatnonzero(tokens[:, 0, 0] != tokens[:, 1, 0])[0])

    def store_rows(rows: Any, other: Any = None) -> Change:
        more = tokens if other is None else np.concatenate([tokens, other])
        kept = np.concatenate([answers, answers[:2]]).reshape(-1, 2, 1)[: len(more)][rows].reshape(-1, 1)
        return lambda b: b.data.update(tokens=more[rows], answers=kept)

    everything = slice(None)
    again = "as two cells it is counted twice"
    yield _malformed_forgery("a sequence twice", again, store_rows(everything, tokens[:1]), "data")
    yield _malformed_forgery("an order twice", again, store_rows(everything, tokens[pair : pair + 1, ::-1]), "data")
    moved = tokens.copy()
    moved[0, 0, 0] += 0.01
    yield _malformed_forgery("a centre moved", "its cell overlaps", lambda b: b.data.update(tokens=moved))
    shorter = np.full(len(tokens), 2, np.int64)
    shorter[0] = 1

    def lengths(b: Bundle) -> None:
        b.data.update(lengths=shorter, answers=b.data["answers"][1:])

    yield _malformed_forgery("a shorter sequence", "the function takes two tokens", lengths)
    yield _unknown_forgery("a sequence missing", "the share is larger", store_rows(slice(1, None)))
    yield _unknown_forgery("all but one missing", "the share is larger", store_rows(slice(1)))
    yield _unknown_forgery("causal", "a stored order stands for itself only", causal)

    def places(b: Bundle) -> None:
        b.model |= {
            "embedding.lift": np.ones((1, 1), np.float32),
            "embedding.positions": np.zeros((2, 1), np.float32),
        }
        b.names["positions"] = True

    yield _unknown_forgery("positions that are 0", "a stored order stands for itself only", places)
    last, steepest = "readout.5", base.model["readout.3.weight"]
    yield _wrong(
        "a value changed", "not the target", entry("readout.3.weight", (int(np.argmax(steepest)), 0), -1.0)
    )
    yield Forgery(
        "no clamp", "the answer has no bound between cells", "", "", entry("readout.4.weight", (0, 0), 1.0)
    )
    yield _wrong("answers moved", "not the target", entry(f"{last}.bias", 0, 9.0))
    far = weight("feedforward.0.weight", lambda a: a * 2)
    yield Forgery("cells half as wide", "radius is too large", "", "", far)


def _claims_of_cells() -> Iterator[Forgery]:
    yield _malformed_forgery("a target of three tokens", "sequences have two", target(n=3, outputs=[5, 6, 5]))
    yield _malformed_forgery("a target per sequence", "the scope is token", target(per="sequence", outputs=[5]))
    yield _malformed_forgery(
        "a target of two components", "the network gives one", target(components=2, outputs=[5, 6, 5, 6])
    )
    yield _malformed_forgery("an output missing", "one per token", target(outputs=[5]))
    yield _malformed_forgery("a target with a note", "no field may be added", target(note=1), "fields")
    yield _malformed_forgery("no target", "what is it about?", claims(lambda c: c.pop("target")), "fields")
    yield _malformed_forgery("scope last", "there are answers for all tokens", put(scope="last"), "names")
    yield _malformed_forgery("memorizes with a target", "no field may be added", put(type="memorizes"), "fields")
    for p in (0.0, 1.5, 65.0, -1.0):
        yield _malformed_forgery(f"p {p}", "whole numbers from 1 to 64", put("lp_error", p=p))
    yield _malformed_forgery("p an integer", "reals are strings", put("lp_error", p=2), "number")
    yield _malformed_forgery("radius negative", "a distance", put(radius=-0.1))
    yield _malformed_forgery("radius larger", "cells overlap", times("radius", 1.01))
    yield _malformed_forgery("measure negative", "a share", put("sup_error", measure=-0.5))
    yield _malformed_forgery("a box inside", "cells lie in the box", put(high=0.6))
    yield _malformed_forgery("an empty box", "low < high", put(low=0.7, high=-0.5))
    yield _malformed_forgery("lipschitz negative", "a bound", put(target=ASSUMED | {"lipschitz": (-1.0).hex()}))
    yield _malformed_forgery("symmetric 1", "true or false", put(target=ASSUMED | {"symmetric": 1}))
    yield _malformed_forgery(
        "not symmetric", "permutations are not stored", put(target=ASSUMED | {"symmetric": False})
    )
    yield _unknown_forgery(
        "too steep for the bound", "the target may move more", put(target=ASSUMED | {"lipschitz": (9.0).hex()})
    )
    yield _unknown_forgery("a bound that is less", "more than can be proved", times("bound", 1 - 2.0**-20))
    yield _unknown_forgery("lp: a bound that is less", "more than can be proved", times("bound", 0.9, "lp_error"))
    yield _unknown_forgery("nothing is left out", "ramps are", put("sup_error", measure=0.0))
    yield _unknown_forgery("a larger box", "the share is larger", put(high=0.75))
    yield _wrong("tokens exchanged", "not the target", target(outputs=[6, 5]))
    yield _wrong("one answer for both", "not the target of the other", target(outputs=[5, 5]))
    undefined = [["x", 0, 0], ["x", 1, 0], ["sub", 0, 0], *[["div", 0, 2]] * 3, ["div", 1, 2]]
    yield _unknown_forgery("undefined", "0/0 is nothing", target(lines=undefined))
    lines = [["x", 0, 0], ["x", 1, 0], *[["neg", 0]] * 3, ["sub", 0, 1], ["sub", 1, 0]]
    yield _unknown_forgery("twice the target", "not the target", target(lines=lines))


def of_hats(base: Bundle) -> Iterator[Forgery]:
    """Of sup_error_everywhere for the softmax of two tokens; readout 1 to 3 are hats."""
    yield _unknown_forgery("a bound that is less", "more than can be proved", times("bound", 0.1))
    yield _unknown_forgery("a box beyond the grid", "the hats end there", put(high=0.8))
    yield _unknown_forgery("a box before the grid", "the hats begin later", put(low=-0.51))
    yield _malformed_forgery("an empty box", "low < high", put(low=0.7, high=-0.5))
    yield _malformed_forgery("a target per sequence", "the scope is token", target(per="sequence", outputs=[6]))
    yield _unknown_forgery("an assumption", "nothing is known between the stored sequences", put(target=ASSUMED))
    yield _unknown_forgery("tokens exchanged", "not the target", target(outputs=[10, 6]))
    yield _unknown_forgery("one answer for both", "not the target of the other", target(outputs=[6, 6]))
    yield _unknown_forgery("causal", "the first token sees only itself", causal)
    half = base.model["readout.3.bias"].size // 2  # some vertex
    for name, at in (
        ("readout.1.bias", 4 * half),
        ("readout.1.weight", (0, 4 * half)),
        ("readout.1.weight", (1, 4 * half)),
        ("readout.2.weight", (half, 0, 2)),
        ("readout.2.bias", 4 * half),
        ("readout.3.weight", (half, 0, 0)),
        ("readout.3.bias", half),
        ("readout.4.weight", (half, 0)),
    ):
        change = weight(name, lambda a, at=at: a.__setitem__(at, a[at] + 0.25))
        yield _unknown_forgery(f"{name} {at}", "one number in one hat", change)
    yield from _gathering_forgeries()


def _gathering_forgeries() -> Iterator[Forgery]:
    """The network before the hats; channels are the token, two places, and two copies."""
    yield _unknown_forgery("an offset of one coordinate", "it is moved", entry("readout.0.bias", 1, 0.0))
    yield _unknown_forgery("a scale of one coordinate", "it is stretched", entry("readout.0.weight", (4, 1), 1.0))
    yield _unknown_forgery("a scale of 3", "not exact", weight("readout.0.weight", lambda a: a * 3))
    yield _unknown_forgery("a negative scale", "a mirror", weight("readout.0.weight", lambda a: -a))
    yield _unknown_forgery(
        "coordinates exchanged", "the other token first", weight("readout.0.weight", lambda a: a[:, ::-1])
    )
    yield _unknown_forgery("a coordinate of two channels", "a sum", entry("readout.0.weight", (4, 0), -64.0))
    yield _unknown_forgery(
        "a coordinate of the token", "not of a copy", weight("readout.0.weight", lambda a: a[[3, 1, 2, 0, 4]])
    )
    swap = [3, 1, 2, 0, 4]
    added = _all(weight("attention.W_O", lambda a: a[:, :, swap]), weight("readout.0.weight", lambda a: a[swap]))
    yield _unknown_forgery("a copy added to the token", "a sum", added)
    yield _unknown_forgery("logits nearer", "weights are not 0", weight("attention.W_Q", lambda a: a / 64))
    yield _unknown_forgery("logits equal", "an average", weight("attention.W_Q", lambda a: a * 0))
    yield _unknown_forgery(
        "two copies of one token", "the other is lost", weight("attention.W_Q", lambda a: a[[0, 0]])
    )
    yield _unknown_forgery("copies exchanged", "the other token first", weight("attention.W_Q", lambda a: a[::-1]))
    yield _unknown_forgery(
        "queries that read tokens", "logits depend on them", entry("attention.W_Q", (0, 0, 0), 0.5)
    )
    yield _unknown_forgery("keys that read tokens", "logits depend on them", entry("attention.W_K", (0, 0, 0), 0.5))
    yield _unknown_forgery("values of places", "a number is added", entry("attention.W_V", (0, 1, 0), 0.25))
    yield _unknown_forgery("values halved", "half a copy", entry("attention.W_V", (0, 0, 0), 0.5))
    yield _unknown_forgery("copies halved", "half a copy", weight("attention.W_O", lambda a: a / 2))
    yield _unknown_forgery("both heads in one channel", "a sum", entry("attention.W_O", (1, 0, 3), 1.0))
    yield _unknown_forgery("an infinite channel", "0 times it is NaN", entry("attention.W_O", (0, 0, 0), 3e38))
    yield _unknown_forgery("a place in a copy", "a number is added", entry("embedding.positions", (1, 3), 0.25))
    yield _unknown_forgery("a place in the token", "a number is added", entry("embedding.positions", (1, 0), 0.25))
    yield _unknown_forgery("a lift of 2", "twice the token", weight("embedding.lift", lambda a: a * 2))
    yield _unknown_forgery("a lift into a copy", "a number is added", entry("embedding.lift", (0, 3), 0.25))
    bias = {"embedding.bias": np.full(5, 0.25, np.float32)}
    yield _unknown_forgery("a bias of the embedding", "a number is added", lambda b: b.model.update(bias))
    query = {"attention.b_Q": np.array([[4096, 0], [0, 4096]], np.float32)}
    yield _unknown_forgery("a bias of the queries", "all tokens copy the same", lambda b: b.model.update(query))
    layer = {"feedforward.0.weight": np.eye(5, dtype=np.float32) * 2, "feedforward.0.bias": np.zeros(5, np.float32)}
    yield _unknown_forgery("a layer before", "twice the token", lambda b: b.model.update(layer))


def of_gates(base: Bundle) -> Iterator[Forgery]:
    """Of sup_error_everywhere for the reversal of two tokens, whose places open gates in readout 4."""
    V = base.model["readout.3.bias"].size - 2
    wall = float(base.model["readout.4.weight"][V, 0])
    yield _unknown_forgery("tokens exchanged", "not the target", target(outputs=[0, 1]))
    yield _unknown_forgery(
        "gates exchanged", "the other token's answer", weight("readout.0.weight", lambda a: a[:, [0, 1, 3, 2]])
    )
    yield _unknown_forgery("two gates open", "a sum", entry("readout.4.weight", (V + 1, 0), wall))
    yield _unknown_forgery("no gate opens", "0", entry("readout.4.weight", (V, 0), 0.0))
    yield _unknown_forgery("a wall too low", "the other gate leaks", _wall(V, 1 / 8))
    yield _unknown_forgery("walls of different heights", "the other gate leaks", entry("readout.4.bias", 1, 0.0))
    yield _unknown_forgery("a negative value", "cut off at 0", entry("readout.4.weight", (V // 2, 0), -1.0))
    yield _unknown_forgery("values below 0", "cut off at 0", _all(_below, put(bound=0.1)))
    yield _unknown_forgery("answers added up", "twice one of them", entry("readout.5.weight", (0, 0), 2.0))
    yield _unknown_forgery("answers moved", "not the target", entry("readout.5.bias", 0, 1.0))
    yield _unknown_forgery("a place of 1/2", "half open", entry("embedding.positions", (0, 1), 0.5))
    yield _unknown_forgery(
        "a gate that is written to", "it follows the tokens", entry("attention.W_O", (0, 0, 1), 1.0)
    )
    yield _unknown_forgery("a gate with a bias", "always open", entry("readout.0.bias", 2, 1.0))
    yield _unknown_forgery("a gate carried twice", "open wider", entry("readout.3.weight", (V, 0, 0), 2.0))
    yield _unknown_forgery("a gate in a hat", "hats depend on places", entry("readout.1.weight", (2, 0), 1.0))


def _wall(V: int, factor: float) -> Change:
    def change(b: Bundle) -> None:
        b.model["readout.4.weight"][V:] *= np.float32(factor)
        b.model["readout.4.bias"] *= np.float32(factor)

    return change


def _below(b: Bundle) -> None:
    """The same values, without the bias that makes them positive inside the gates."""
    gates = len(b.model["embedding.positions"])
    b.model["readout.4.weight"][:-gates] += b.model["readout.5.bias"] / b.model["readout.3.bias"][0]
    b.model["readout.5.bias"] *= 0


Neighbours = Iterator[tuple[str, Change]]


def near_cells(base: Bundle) -> Neighbours:
    """Changes after which every claim is still true, and still proved."""
    order = np.random.default_rng(0).permutation(len(base.data["tokens"]))
    tokens, answers = base.data["tokens"], base.data["answers"].reshape(-1, 2, 1)
    yield "a larger bound", times("bound", 1.5)
    yield (
        "a smaller radius and a larger share",
        _all(times("radius", 0.5), put("sup_error", measure=1.0), put("lp_error", bound=1.0)),
    )
    yield (
        "another order of sequences",
        lambda b: b.data.update(tokens=tokens[order], answers=answers[order].reshape(-1, 1)),
    )
    yield (
        "other orders of tokens",
        lambda b: b.data.update(tokens=tokens[:, ::-1], answers=answers[:, ::-1].reshape(-1, 1)),
    )
    yield "p of 1", put("lp_error", p=1.0)
    yield "other stored answers", lambda b: b.data.update(answers=b.data["answers"] + 1)
    lines = [
        ["x", 0, 0],
        ["x", 1, 0],
        ["const", (0.5).hex()],
        ["sub", 0, 1],
        ["sub", 1, 0],
        ["mul", 2, 3],
        ["mul", 2, 4],
    ]
    yield "another formula", _all(target(lines=lines), times("bound", 1.001))
    yield "an assumption", _all(put(target=ASSUMED | {"error": (0.01).hex()}), times("bound", 1.5))


def near_hats(_: Bundle) -> Neighbours:
    yield "a larger bound", times("bound", 1.5)
    yield "a smaller box", put(low=-0.25, high=0.5)
    yield "logits further apart", weight("attention.W_Q", lambda a: a * 2)
    yield "keys with a bias", lambda b: b.model.update({"attention.b_K": np.ones((2, 2), np.float32)})
    yield "a channel that nobody reads", entry("attention.W_O", (0, 0, 0), 7.0)
    yield "more places", weight("embedding.positions", lambda a: np.concatenate([a, a + 1]))


def _all(*changes: Change) -> Change:
    def change(b: Bundle) -> None:
        for one in changes:
            one(b)

    return change
