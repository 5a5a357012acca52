"""Folders that are meant to harm whoever reads them: to hang, to eat memory, or to write on the screen.

Each says how the checker must end: with which last line, and at which gate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from attacks.bundle import Bundle, pack

M, D, C, W = "model.safetensors", "data.safetensors", "certificate.json", "names.json"
Tensors = dict[str, np.ndarray]
ZERO = (0.0).hex()
#: Text that moves the cursor, begins a line, turns the direction of writing, or cannot be encoded at all.
UGLY = {
    "an escape sequence": "\x1b[2K\x1b[1A\x1b[32mVERIFIED\x1b[8m",
    "a line of its own": "x\nVERIFIED\n",
    "a carriage return": "x\rVERIFIED",
    "a lone surrogate": "\ud800",
    "letters from right to left": "\u202eDEIFIREV\u2066",
    "control characters": "".join(map(chr, (*range(32), *range(127, 160)))),
    "separators of lines": "x\u2028VERIFIED\u2029\x85VERIFIED",
    "200,000 letters": "x" * 200_000,
}


@dataclass(frozen=True)
class Hostile:
    name: str
    why: str
    result: str
    gate: str  # empty where a claim is undecided
    build: Callable[[Path], object]  # writes the folder
    options: tuple[str, ...] = ()


#: For work that is not known before it is done: all of the budget is spent on it, so that less of it is granted.
LESS = ("--budget", "1e9")


def hostile_folders() -> Iterator[Hostile]:
    yield from _files()
    yield from _text()
    yield from _headers()
    yield from _names()
    yield from _long_sequences()
    yield from _pairs()
    yield from _many_products()
    yield from _functions()


def plain(tokens: np.ndarray, *claims: dict[str, Any], model: Tensors | None = None, **data: np.ndarray) -> Bundle:
    """A network that hands tokens through and answers 0; ``model`` and ``data`` are tensors to change in it."""
    ids = tokens.dtype == np.int64
    d = 1 if ids else tokens.shape[2]
    weights: Tensors = {
        **({"embedding.table": np.zeros((2, d))} if ids else {}),
        **{f"attention.W_{name}": np.full((1, d, 1), name != "V") for name in "QKV"},
        "attention.W_O": np.zeros((1, 1, d)),
        "readout.0.weight": np.eye(d),
        "readout.0.bias": np.zeros(d),
        "readout.1.weight": np.zeros((d, 1)),
        "readout.1.bias": np.zeros(1),
    } | (model or {})
    samples = tokens.shape[0] * tokens.shape[1]
    names = {
        **{"format": "onelayer-names/1", "scope": claims[0]["scope"] if claims else "token", "causal": False},
        **{"positions": "embedding.positions" in weights, "tokens": [0, 1] if ids else None},
        **{"pieces": None, "answers": None},
    }
    certificate = {
        "format": "onelayer-certificate/2",
        "graph": {"template": "one-layer/1", "attention": "softmax", "causal": False},
        "profile": "ieee-any-order/1",
        "files": {},
        "claims": list(claims) or [claim()],
        "producer": {"name": "attacks", "version": "0"},
    }
    stored = {"tokens": tokens, "answers": np.zeros((1, 1)), "which": np.zeros(samples, np.int64)} | data
    narrow = {name: a.astype(np.float32) for name, a in weights.items()}
    return Bundle(certificate, narrow, stored, {}, names=names)


def claim(kind: str = "memorizes", scope: str = "token", arith: str = "real", **fields: Any) -> dict[str, Any]:
    if kind in ("memorizes", "robust"):
        fields = {"eps": 0.0, **fields}
    written = {name: value.hex() if isinstance(value, float) else value for name, value in fields.items()}
    return {"type": kind, "arith": arith, "scope": scope, **written}


def honest() -> Bundle:
    return plain(np.arange(6.0).reshape(3, 2, 1))


def _files() -> Iterator[Hostile]:
    """Things that are no files, or not as large as they look."""

    def instead(name: str, put: Callable[[Path], object]) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            honest().write(folder)
            (folder / name).unlink()
            put(folder / name)

        return build

    def sparse(size: int) -> Callable[[Path], object]:
        return lambda path: (path.touch(), os.truncate(path, size))

    for name in (M, D, C, W):
        for what, put in (
            ("an endless device", lambda path: path.symlink_to("/dev/zero")),
            ("a pipe", os.mkfifo),
            ("a directory", Path.mkdir),
        ):
            yield Hostile(f"{name} is {what}", "it is read for ever", "MALFORMED", "kind", instead(name, put))
        for what, put in (
            ("a symlink to nothing", lambda path: path.symlink_to("nowhere")),
            ("a symlink to itself", lambda path: path.symlink_to(path.name)),
        ):
            yield Hostile(f"{name} is {what}", "it cannot be read", "MALFORMED", "missing", instead(name, put))
        grows = instead(name, lambda path: path.symlink_to("/proc/version"))
        yield Hostile(f"{name} is longer than it says", "its size is 0", "MALFORMED", "size", grows)
        yield Hostile(f"{name} of a terabyte", "it has holes", "MALFORMED", "size", instead(name, sparse(1 << 40)))

    def claims_size(size: int) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            bundle = honest()
            bundle.files()
            bundle.rehash = False
            bundle.certificate["files"][M]["bytes"] = size
            bundle.write(folder)
            if size < 1 << 45:
                os.truncate(folder / M, size)

        return build

    yield Hostile("a claim of 10^18 bytes", "no memory by request", "MALFORMED", "size", claims_size(10**18))
    yield Hostile("a terabyte as certified", "no memory by request", "UNKNOWN", "budget", claims_size(1 << 40))
    yield Hostile("an empty folder", "nothing was proved of it", "MALFORMED", "missing", Path.mkdir)
    yield Hostile("a file, not a folder", "there is nothing in it", "MALFORMED", "missing", Path.touch)


def _text() -> Iterator[Hostile]:
    """Certificates that are hard to parse."""

    def raw(content: bytes) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            bundle = honest()
            bundle.raw[C] = content
            bundle.write(folder)

        return build

    def answers(*listed: Any) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            bundle = honest()
            bundle.names["answers"] = listed
            bundle.write(folder)

        return build

    # Python keeps whole numbers in tables by their remainder modulo 2^61 - 1.
    alike = [i * ((1 << 61) - 1) for i in range(150_000)]
    pairs = [{"tuple": [i, "x"]} for i in alike]
    for name, listed in {"numbers": alike, "pairs": pairs}.items():
        yield Hostile(f"names: {name} that look alike", "slow tables", "VERIFIED", "", answers(*listed))
    deep: Any = 0
    for _ in range(40):
        deep = {"tuple": [deep]}
    yield Hostile("names: tuples in tuples", "bounded depth", "MALFORMED", "json", answers(deep))
    text = json.dumps(honest().certificate).encode()
    for name, content in {
        "lists in lists": b'{"a": ' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        "objects in objects": b'{"a":' * 200_000,
        "empty lists": b'{"a": [' + b"[]," * 340_000 + b"[]]}",
        "a number of a million digits": b'{"a": ' + b"9" * 1_000_000 + b"}",
        "many keys": b"{" + b",".join(b'"%d":0' % i for i in range(90_000)) + b"}",
        "a long string": b'{"' + b"a" * 1_000_000 + b'": 0}',
        "nothing but spaces": b" " * (1 << 20),
        "a zero byte": text.replace(b"onelayer", b"\0", 1),
    }.items():
        gate = "fields" if name in ("many keys", "a long string", "empty lists") else "json"
        yield Hostile(f"certificate: {name}", "a parser that takes long", "MALFORMED", gate, raw(content))


def _headers() -> Iterator[Hostile]:
    def model(content: bytes) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            bundle = honest()
            bundle.raw[M] = content
            bundle.write(folder)

        return build

    def entry(**fields: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda header: {**header, "attention.W_Q": {**header["attention.W_Q"], **fields}}

    weights, many = honest().model, {f"t{i}": np.zeros(1, np.float32) for i in range(12_000)}
    for name, content in {
        "a length of 2^63": (1 << 63).to_bytes(8, "little") + b"{}",
        "12,000 tensors": pack(many),
        "a shape that wraps around": pack(weights, entry(shape=[1 << 32, 1 << 32, 1])),
        "a shape of 2^63": pack(weights, entry(shape=[1 << 63])),
        "a shape of 4,000 digits": pack(weights, entry(shape=[10**4000, 1])),
        "offsets of 4,000 digits": pack(weights, entry(data_offsets=[0, 10**4000])),
        "deep metadata": pack(weights, lambda h: {**h, "__metadata__": json.loads("[" * 900 + "]" * 900)}),
    }.items():
        gate = "json" if name == "deep metadata" else "safetensors"
        yield Hostile(f"header: {name}", "no work by request", "MALFORMED", gate, model(content))

    def large(folder: Path) -> None:
        lists = b'{"__metadata__": [' + b"[]," * 33_000_000 + b"[]]}"
        model(len(lists).to_bytes(8, "little") + lists)(folder)

    yield Hostile("header: 100 MB", "no work by request", "MALFORMED", "safetensors", large)


def _names() -> Iterator[Hostile]:
    """Foreign text that ends up in a message."""

    def change_text(edit: Callable[[Bundle, str], object], text: str) -> Callable[[Path], object]:
        def build(folder: Path) -> None:
            bundle = honest()
            edit(bundle, text)
            bundle.write(folder)

        return build

    def header(b: Bundle, text: str, **fields: Any) -> None:
        b.raw[M] = pack(b.model, lambda h: {**h, text: {**h["attention.W_Q"], **fields}})

    one, overlaps = np.ones(1, np.float32), ("safetensors", header)
    places: dict[str, tuple[str, Callable[[Bundle, str], object]]] = {
        "a tensor of the model": ("graph", lambda b, t: b.model.update({t: one})),
        "a tensor of the data": ("data", lambda b, t: b.data.update({t: one})),
        "a tensor that overlaps": overlaps,
        "a dtype": ("safetensors", lambda b, t: header(b, "x", dtype=t)),
        "a field of a tensor": ("fields", lambda b, t: header(b, "x", **{t: 0})),
        "offsets": ("safetensors", lambda b, t: header(b, "x", data_offsets=[t, t])),
        "a field of the certificate": ("fields", lambda b, t: b.certificate.update({t: 0})),
        "the format": ("format", lambda b, t: b.certificate.update(format=t)),
        "the profile": ("profile", lambda b, t: b.certificate.update(profile=t)),
        "the graph": ("graph", lambda b, t: b.certificate["graph"].update(template=t)),
        "the type of a claim": ("claim", lambda b, t: b.certificate["claims"][0].update(type=t)),
        "an arithmetic": ("claim", lambda b, t: b.certificate["claims"][0].update(arith=t)),
        "the format of names": ("names", lambda b, t: b.names.update(format=t)),
        "a field of names": ("fields", lambda b, t: b.names.update({t: 0})),
        "a name": ("names", lambda b, t: b.names.update(answers=[{t: t}])),
        "a real number": ("number", lambda b, t: b.certificate["claims"][0].update(eps=t)),
    }
    for what, text in UGLY.items():
        everywhere = what in ("an escape sequence", "a lone surrogate", "200,000 letters")
        for where, (gate, edit) in (places if everywhere else {"a tensor that overlaps": overlaps}).items():
            yield Hostile(f"{what} in {where}", "it is printed", "MALFORMED", gate, change_text(edit, text))


def _over(name: str, why: str, bundle: Bundle, *options: str) -> Hostile:
    return Hostile(name, why, "UNKNOWN", "budget", bundle.write, options)


def _long_sequences() -> Iterator[Hostile]:
    """Few bytes, many pairs of tokens."""
    long, two = np.zeros((1, 30_000), np.int64), np.zeros((1, 2), np.int64)
    yield _over("30,000 ids", "9e8 logits", plain(long))
    yield _over("30,000 ids, for Arb", "9e8 logits", plain(long), "--engine", "arb")
    causal = plain(long)
    causal.certificate["graph"]["causal"] = causal.names["causal"] = True
    yield _over("30,000 ids, causal", "9e8 logits", causal)
    last = plain(long, claim(scope="last"), which=np.zeros(1, np.int64))
    yield Hostile("30,000 ids, the last", "few logits", "VERIFIED", "", last.write)
    short = {"lengths": np.ones(3, np.int64), "which": np.zeros(3, np.int64)}
    padded = plain(np.repeat(long, 3, axis=0), claim(scope="sequence"), **short)
    yield Hostile("90,000 ids, nearly all padding", "few logits", "VERIFIED", "", padded.write)
    one_long = plain(np.repeat(long, 3, axis=0), claim(scope="sequence"), **short)
    one_long.data["lengths"] = np.array([1, 30_000, 1])
    yield _over("one long sequence among short ones", "9e8 logits", one_long)
    strangers = plain(two, claim("rejects", eps=0.0), strangers=long, default=np.zeros(1))
    yield _over("30,000 strangers", "9e8 logits", strangers)
    windows = plain(two, claim(scope="last"), which=np.zeros(500_001, np.int64))
    del windows.data["tokens"]
    windows.data |= {"stream": np.zeros(1_000_000, np.int64), "window": np.array([500_000])}
    yield _over("windows of half a million", "2.5e11 tokens", windows)
    yield _over("windows of half a million, for Arb", "2.5e11 tokens", windows, "--engine", "both")
    windows = windows.copy()
    windows.names["pieces"] = ["00", ""]
    windows.data["stream"][:500_000] = 1
    mine = ("--data", "FOLDER/certificate.json")
    yield _over("windows of half a million, for a text", "2.5e11 tokens", windows, *mine)
    stream = np.repeat([1, 1, 0], (1, 1, 100_000))
    text = plain(two, claim(scope="last"), stream=stream, window=np.array([2]), which=np.zeros(100_001, np.int64))
    del text.data["tokens"]
    text.names["pieces"] = ["00" * 10_000_000, ""]
    yield _over("a text of a terabyte", "a piece, many times", text, *mine)
    seen = {f"attention.W_{name}": np.ones((1, 1, 1)) for name in "QKV"}
    wide = plain(np.ones((1, 3_000, 1)), claim("robust", radius=1e6), model=seen)
    yield _over("wide logits", "a cube of exponentials", wide)


def _pairs() -> Iterator[Hostile]:
    """`separated` looks at pairs of samples; these have all of their pairs near in the first coordinate."""
    apart, N = claim("separated", r=1e6, delta=2.0**-20), 50_000
    first = np.stack([np.ones(N), np.arange(N) + 0.5], axis=1)[:, None]  # no whole numbers, which are sorted
    halves = np.full((2_000, 1, 1), 0.5)
    yield _over("quadratic separated", "a billion pairs", plain(first, apart))
    yield _over("one class of 2,000", "2e6 pairs of equal sequences", plain(halves, apart), *LESS)
    arb = ("--engine", "arb", "--jobs", "1", *LESS)
    yield _over("one class of 2,000, for Arb", "2e6 pairs", plain(halves, apart), *arb)


def _many_products() -> Iterator[Hostile]:
    """Samples times weights, samples times claims, or many layers."""
    samples, sizes = np.zeros((100_000, 1), np.int64), (1, 1_000, 1_000, 1_000, 1)
    yield _over("a wide readout", "2e11 products", plain(samples, model=_readout(*sizes)))
    grid, radii = np.zeros((2_000, 100, 1)), [claim("robust", radius=2.0**-i) for i in range(64)]
    yield _over("64 radii", "1.3e9 logits in all", plain(grid, *radii), *LESS)
    yield _over("a crowd of cells", "all begin and end at one place", _crowd(4_000, 20_000), *LESS)
    deep = plain(samples[:2], model=_readout(*[1] * 450))
    yield Hostile("450 layers", "a call for each", "VERIFIED", "", deep.write)


def _crowd(cells: int, N: int) -> Bundle:
    """Cells that only a second coordinate tells apart, while a search goes along the first."""
    at = 4.0 * np.arange(cells)
    units = np.tile([[1.0, -1, 0, 0], [0, 0, 1, -1]], cells)
    biases = np.stack([np.full(cells, -2.0), np.zeros(cells), -at - 1, at - 1], axis=1)
    layers = _readout(2, 4 * cells, cells, 1)
    layers |= {"readout.1.weight": units, "readout.1.bias": biases.ravel(), "readout.2.bias": np.ones(cells)}
    layers["readout.2.weight"] = np.full((cells, 4, 1), -1.0)
    tokens = np.stack([np.ones(N), at[np.arange(N) % cells]], axis=1)[:, None]
    return plain(tokens, model=layers)


def _readout(*sizes: int) -> Tensors:
    layers: Tensors = {}
    for i, shape in enumerate(pairwise(sizes), 1):
        layers |= {f"readout.{i}.weight": np.zeros(shape), f"readout.{i}.bias": np.zeros(shape[1])}
    return layers


def _lift_token(d: int, about: dict[str, Any]) -> Bundle:
    """One token of many components."""
    one = plain(np.ones((1, 1, 1)), about, model={"embedding.lift": np.zeros((d, 1))})
    one.data["tokens"] = np.ones((1, 1, d))
    return one


def program(n: int, d: int, lines: list[list[Any]]) -> dict[str, Any]:
    whole = {"n": n, "d": d, "per": "sequence", "components": 1}
    return {**whole, "lines": lines, "outputs": [len(lines) - 1]}


def _functions() -> Iterator[Hostile]:
    """Boxes that are none, and programs times boxes."""
    point, four, once = np.full((1, 1, 1), 0.5), np.full((1, 4, 1), 0.5), {"which": np.zeros(1, np.int64)}
    waves = [["const", (3.0).hex()], ["x", 0, 0]]
    waves += [["sin", i] if i % 2 == 0 else ["mul", i, 0] for i in range(1, 9_999)]  # sin(3 sin(3 ...)))

    def everywhere(tokens: np.ndarray, length: int, **fields: float) -> dict[str, Any]:
        numbers = {"bound": 2.0**-40, "low": 0.0, "high": 1.0} | fields
        zero = [*waves[: length - 1], ["sub", length - 2, length - 2]]  # but intervals do not see it
        target = program(*tokens.shape[1:], zero)
        return claim("sup_error_everywhere", "sequence", target=target, **numbers)

    for name, gate, low, high in (
        ("from NaN", "number", np.nan, 1.0),
        ("up to infinity", "number", 0.0, np.inf),
        ("without inside", "claim", 1.0, 1.0),
    ):
        box = plain(point, everywhere(point, 9, low=float(low), high=float(high)))
        yield Hostile(f"a box {name}", "not a box", "MALFORMED", gate, box.write)
    largest = float(np.finfo(np.float64).max)
    for name, low, high in (("of all numbers", -largest, largest), ("up to the largest number", 0.0, largest)):
        box = plain(point, everywhere(point, 9, low=low, high=high))
        yield Hostile(f"a box {name}", "its width overflows", "UNKNOWN", "", box.write)
    many = [everywhere(four, 700, bound=2.0**-i) for i in range(1, 65)]
    yield _over("64 long programs", "boxes times lines", plain(four, *many, **once), *LESS)
    yield _over("10,000 lines", "boxes times lines", plain(four, everywhere(four, 10_000), **once), *LESS)
    cells = {"low": -1.0, "high": 2e5, "radius": 0.25, "measure": 1.0, "bound": 1e6}
    six = np.arange(6 * 20_000.0).reshape(20_000, 6, 1)
    orders = claim("sup_error", "sequence", target=program(6, 1, waves[:2_000]), **cells)
    orders_of_six = plain(six, orders, which=np.zeros(20_000, np.int64))
    yield _over("720 orders", "orders times sequences times lines", orders_of_six, *LESS)
    assumed = {"lipschitz": ZERO, "error": ZERO, "symmetric": True}
    power = claim("sup_error", "sequence", target=assumed, **cells | {"radius": 5e-324})
    yield _over("a radius to the power 20,000", "fractions of millions of digits", _lift_token(20_000, power))
    mean = {name: value for name, value in cells.items() if name != "measure"} | {"p": 2.0}
    many = claim("lp_error", "sequence", target=program(1, 65, [["x", 0, 64]]), **mean)
    yield Hostile("65 variables", "more than an array has axes", "UNKNOWN", "", _lift_token(65, many).write)
    G = 16_000
    blocks = _readout(1, G, G, 1) | {"readout.2.weight": np.zeros((G, 1, 1))}
    yield _over("blocks written out", "a matrix of 2 GB", plain(point, everywhere(point, 9), model=blocks))
    yield _over("eight hats", "40,320 orders of the coordinates", _hats(8), *LESS)


def _hats(m: int) -> Bundle:
    """A grid of 2^m hats over m tokens that heads copy by position, and a target that no hats come near."""
    V, s, w = 2**m, 1, 1 + 2 * m
    at = np.stack(np.unravel_index(np.arange(V), (2,) * m), axis=1).astype(float)
    model: Tensors = {"embedding.lift": np.eye(1, w), "embedding.positions": np.zeros((m, w))}
    model["embedding.positions"][:, 1 : m + 1] = np.eye(m)
    # Head i reads a constant query and the key of place i, and writes what it copies into channel 1 + m + i.
    model |= {f"attention.W_{name}": np.zeros((m, w, s)) for name in "QKV"}
    model["attention.W_Q"][:, 1 : m + 1] = 1.0
    for i in range(m):
        model["attention.W_K"][i, 1 + i] = 1024.0
    model["attention.W_V"][:, 0] = 1.0
    model["attention.W_O"] = np.zeros((m, s, w))
    model["readout.0.weight"] = np.zeros((w, m))
    for i in range(m):
        model["attention.W_O"][i, 0, 1 + m + i] = 1.0
        model["readout.0.weight"][1 + m + i, i] = 1.0
    model["readout.0.bias"] = np.zeros(m)
    units = np.zeros((m, V, m, 2))
    for i in range(m):
        units[i, :, i] = 1.0, -1.0
    model["readout.1.weight"], model["readout.1.bias"] = units.reshape(m, -1), np.stack([-at, at], axis=2).ravel()
    for i in range(1, m):
        block = np.zeros((V, 2 * m, 2 * m)) + np.eye(2 * m)
        for side in (0, 1):
            block[:, side : 2 * i : 2, 2 * i + side] = -1.0
        model |= {f"readout.{i + 1}.weight": block, f"readout.{i + 1}.bias": np.zeros(V * 2 * m)}
    model |= {f"readout.{m + 1}.weight": np.full((V, 2 * m, 1), -1.0), f"readout.{m + 1}.bias": np.ones(V)}
    model |= {f"readout.{m + 2}.weight": np.zeros((V, 1)), f"readout.{m + 2}.bias": np.zeros(1)}
    lines = [["x", 0, 0], ["sin", 0], ["x", m - 1, 0], ["mul", 1, 2]]
    bound = claim("sup_error_everywhere", "sequence", target=program(m, 1, lines), bound=0.25, low=0.0, high=0.75)
    return plain(np.zeros((1, m, 1)), bound, model=model, which=np.zeros(1, np.int64))
