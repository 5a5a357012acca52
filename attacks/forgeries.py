"""Each forgery changes one thing. It says why it must be refused, with which result, and at which gate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from attacks.bundle import Bundle, pack

M, D, C, N = "model.safetensors", "data.safetensors", "certificate.json", "names.json"


@dataclass(frozen=True)
class Forgery:
    name: str
    why: str
    result: str
    gate: str
    change: Callable[[Bundle], None]


def forgeries(base: Bundle) -> Iterator[Forgery]:
    """All forgeries of a bundle with real float64 tokens and claims memorizes x2, separated, robust."""
    yield from _files(base)
    yield from _text(base)
    yield from _claims(base)
    yield from _tensors(base)
    yield from _weights(base)
    yield from _data(base)


def _malformed_forgery(name: str, why: str, gate: str, change: Callable[[Bundle], None]) -> Forgery:
    return Forgery(name, why, "MALFORMED", gate, change)


def _files(base: Bundle) -> Iterator[Forgery]:
    files = base.copy().files()
    for name in (M, D, N, C):
        yield _malformed_forgery(
            f"{name} missing", "nothing to check", "missing", lambda b, n=name: b.raw.update({n: None})
        )
    for name in (M, D, N):
        content = files[name]
        for at in (9, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[at] ^= 1
            yield _malformed_forgery(
                f"{name} bit {at}", "not the file certified", "digest", _stale(name, bytes(changed))
            )
        yield _malformed_forgery(f"{name} cut", "not the size certified", "size", _stale(name, content[:-8]))
        yield _malformed_forgery(f"{name} longer", "not the size certified", "size", _stale(name, content + b"\0"))
        yield _malformed_forgery(
            f"{name} digest upper", "one way to write a digest", "digest", _digest(name, str.upper)
        )
        yield _malformed_forgery(
            f"{name} digest cut", "a prefix is not a digest", "digest", _digest(name, lambda d: d[:32])
        )
    yield _malformed_forgery("digests swapped", "each file has its own", "size", _swap)


def _stale(name: str, content: bytes) -> Callable[[Bundle], None]:
    def change(b: Bundle) -> None:
        b.files()  # write the honest digests into the certificate
        b.rehash = False
        b.raw[name] = content

    return change


def _digest(name: str, edit: Callable[[str], str]) -> Callable[[Bundle], None]:
    def change(b: Bundle) -> None:
        b.files()
        b.rehash = False
        entry = b.certificate["files"][name]
        entry["sha256"] = edit(entry["sha256"])

    return change


def _swap(b: Bundle) -> None:
    b.files()
    b.rehash = False
    files = b.certificate["files"]
    files[M], files[D] = files[D], files[M]


def _text(base: Bundle) -> Iterator[Forgery]:
    text = base.copy().files()[C].decode()

    def raw(content: str | bytes) -> Callable[[Bundle], None]:
        return lambda b: b.raw.update({C: content.encode() if isinstance(content, str) else content})

    yield _malformed_forgery(
        "duplicate field", "two values, two readings", "json", raw(text[:-1] + ', "format": "x"}')
    )
    yield _malformed_forgery("trailing text", "one object and nothing else", "json", raw(text + " {}"))
    yield _malformed_forgery("byte order mark", "plain UTF-8", "json", raw(b"\xef\xbb\xbf" + text.encode()))
    yield _malformed_forgery(
        "not UTF-8", "plain UTF-8", "json", raw(text.replace("onelayer", "\xff", 1).encode("latin-1"))
    )
    yield _malformed_forgery("cut", "half a certificate", "json", raw(text[: len(text) // 2]))
    yield _malformed_forgery("empty", "no certificate", "json", raw(""))
    yield _malformed_forgery("a list", "an object is expected", "json", raw("[]"))
    yield _malformed_forgery("NaN literal", "reals are strings", "json", raw(text[:-1] + ', "x": NaN}'))
    yield _malformed_forgery("float literal", "reals are strings", "json", raw(text[:-1] + ', "x": 1.5}'))
    yield _malformed_forgery("exponent literal", "reals are strings", "json", raw(text[:-1] + ', "x": 1e3}'))
    yield _malformed_forgery(
        "deep nesting", "bounded depth", "json", raw(text[:-1] + ', "x": ' + "[" * 9 + "]" * 9 + "}")
    )
    deep = '{"a":' * 600 + "1" + "}" * 600
    yield _malformed_forgery("deeper than the stack", "bounded depth", "json", raw(deep))
    yield _malformed_forgery("very deep nesting", "bounded depth", "json", raw("[" * 100_000))
    yield _malformed_forgery("two megabytes", "bounded size", "size", raw(text + " " * (2 << 20)))
    for field in base.certificate:
        gate = "fields"
        yield _malformed_forgery(
            f"field {field} missing", "no field may be missing", gate, lambda b, f=field: _drop(b, f)
        )
    yield _malformed_forgery(
        "unknown field", "no field may be added", "fields", lambda b: b.certificate.update(note="x")
    )
    for field, value in (
        ("format", "onelayer-certificate/3"),
        ("format", 1),
        ("profile", "tf32"),
        ("profile", None),
    ):
        gate = field
        yield _malformed_forgery(
            f"{field} {value}", "unknown version", gate, lambda b, f=field, v=value: b.certificate.update({f: v})
        )
    for field, value in (("causal", "true"), ("causal", 0), ("attention", "hardmax"), ("template", "two-layer/1")):
        yield _malformed_forgery(
            f"graph {field} {value}",
            "another graph",
            "graph",
            lambda b, f=field, v=value: b.certificate["graph"].update({f: v}),
        )
    yield _malformed_forgery(
        "graph unknown field", "no field may be added", "fields", lambda b: b.certificate["graph"].update(x=1)
    )
    yield _malformed_forgery(
        "producer unknown field", "no field may be added", "fields", lambda b: b.certificate["producer"].update(x=1)
    )
    for value in (True, "1", -1, None, [1]):
        yield _malformed_forgery(f"bytes {value!r}", "a whole number", "size", lambda b, v=value: _bytes(b, v))
    yield _malformed_forgery("a path as file name", "names are fixed", "fields", lambda b: _rename(b, "../" + M))


def _drop(b: Bundle, field: str) -> None:
    b.raw[C] = json.dumps({k: v for k, v in (b.files() and b.certificate).items() if k != field}).encode()


def _bytes(b: Bundle, value: object) -> None:
    b.files()
    b.rehash = False
    b.certificate["files"][M]["bytes"] = value


def _rename(b: Bundle, name: str) -> None:
    b.files()
    b.rehash = False
    b.certificate["files"][name] = b.certificate["files"].pop(M)


def _claims(base: Bundle) -> Iterator[Forgery]:
    kinds = {claim["type"]: i for i, claim in enumerate(base.certificate["claims"])}

    def edit(i: int, **fields: object) -> Callable[[Bundle], None]:
        return lambda b: b.certificate["claims"][i].update(fields)

    yield _malformed_forgery(
        "claims empty", "nothing is claimed", "claim", lambda b: b.certificate.update(claims=[])
    )
    yield _malformed_forgery(
        "65 claims", "bounded", "claim", lambda b: b.certificate.update(claims=b.certificate["claims"][:1] * 65)
    )
    yield _malformed_forgery("claims an object", "a list", "claim", lambda b: b.certificate.update(claims={}))
    yield _malformed_forgery(
        "claim a string", "an object", "claim", lambda b: b.certificate.update(claims=["memorizes"])
    )
    for kind in ("rejects", "inf_error", "MEMORIZES", None, ["memorizes"]):
        yield _malformed_forgery(f"claim type {kind}", "unknown type", "claim", edit(0, type=kind))
    yield _malformed_forgery("claim extra field", "no field may be added", "fields", edit(0, delta="0x1.0p+0"))
    yield _malformed_forgery(
        "claim without eps", "no field may be missing", "fields", lambda b: b.certificate["claims"][0].pop("eps")
    )
    for arith in ("float16", "Real", None, 64):
        yield _malformed_forgery(f"arith {arith}", "unknown arithmetic", "claim", edit(0, arith=arith))
    for scope in ("all", "Token", None):
        yield _malformed_forgery(f"scope {scope}", "unknown scope", "claim", edit(0, scope=scope))
    for eps in (
        "nan",
        "inf",
        "-inf",
        "1e-3",
        "",
        "0x1p-3",
        "0x1.0p+9999",
        "0x1.0P+0",
        " 0x1.0p+0",
        "0x1.00p+0",
        0,
        None,
        True,
    ):
        yield _malformed_forgery(f"eps {eps!r}", "not a canonical hexadecimal float", "number", edit(0, eps=eps))
    yield _malformed_forgery("eps negative", "a bound", "claim", edit(0, eps="-0x1.0000000000000p-3"))
    yield _malformed_forgery(
        "delta zero", "nothing is separated", "claim", edit(kinds["separated"], delta="0x0.0p+0")
    )
    yield _malformed_forgery(
        "float32 claim on float64 weights", "another arithmetic", "claim", edit(0, arith="float32")
    )
    yield _malformed_forgery("scope sequence", "answers are per token", "names", edit(0, scope="sequence"))
    r, radius = (
        float.fromhex(base.certificate["claims"][kinds[k]][f])
        for k, f in (("separated", "r"), ("robust", "radius"))
    )
    more = (2 * r).hex()  # no two coordinates are so far apart
    yield Forgery("delta beyond r", "more than can be proved", "UNKNOWN", "", edit(kinds["separated"], delta=more))
    yield Forgery("r half", "a coordinate exceeds it", "UNKNOWN", "", edit(kinds["separated"], r=(r / 2).hex()))
    yield Forgery(
        "radius a million times",
        "answers change",
        "UNKNOWN",
        "",
        edit(kinds["robust"], radius=(radius * 1e6).hex()),
    )
    yield Forgery("radius 1e300", "overflow", "UNKNOWN", "", edit(kinds["robust"], radius=(1e300).hex()))


def _tensors(base: Bundle) -> Iterator[Forgery]:
    def header(edit: Callable[[dict], object]) -> Callable[[Bundle], None]:
        return lambda b: b.raw.update({M: pack(b.model, edit)})

    def entry(**fields: object) -> Callable[[Bundle], None]:
        return header(lambda h: {**h, "attention.W_Q": {**h["attention.W_Q"], **fields}})

    start, stop = 0, base.model["attention.W_Q"].nbytes
    yield _malformed_forgery("unknown dtype", "F32, F64, I64 only", "safetensors", entry(dtype="F16"))
    yield _malformed_forgery("dtype a list", "a name", "safetensors", entry(dtype=["F64"]))
    yield _malformed_forgery("empty and huge", "no allocation by request", "safetensors", entry(shape=[0, 10**30]))
    yield _malformed_forgery("seventy axes", "at most three", "safetensors", entry(shape=[1] * 70))
    yield _malformed_forgery("shape a number", "a list", "safetensors", entry(shape=7))
    yield _malformed_forgery("negative shape", "a shape", "safetensors", entry(shape=[1, -1, 1]))
    yield _malformed_forgery(
        "huge shape", "no allocation by request", "safetensors", entry(shape=[1 << 40, 1 << 40])
    )
    yield _malformed_forgery("boolean shape", "true is not 1", "safetensors", entry(shape=[True, 7, 1]))
    yield _malformed_forgery("negative offset", "no wrap-around", "safetensors", entry(data_offsets=[-8, stop]))
    yield _malformed_forgery("offset not a list", "two numbers", "safetensors", entry(data_offsets="0"))
    yield _malformed_forgery("three offsets", "two numbers", "safetensors", entry(data_offsets=[start, stop, stop]))
    yield _malformed_forgery("overlap", "each byte once", "safetensors", entry(data_offsets=[0, 8]))
    yield _malformed_forgery("tensor extra field", "no field may be added", "fields", entry(note=1))
    yield _malformed_forgery(
        "header cut", "truncated", "json", lambda b: b.raw.update({M: _recut(pack(b.model), -3)})
    )
    yield _malformed_forgery(
        "header too long",
        "truncated",
        "safetensors",
        lambda b: b.raw.update({M: (1 << 60).to_bytes(8, "little") + b"{}"}),
    )
    yield _malformed_forgery("four bytes", "truncated", "safetensors", lambda b: b.raw.update({M: b"1234"}))
    yield _malformed_forgery(
        "unused bytes", "each byte once", "safetensors", lambda b: b.raw.update({M: pack(b.model) + bytes(8)})
    )
    yield _malformed_forgery(
        "extra tensor", "unknown tensor", "graph", lambda b: b.model.update(backdoor=np.ones(3))
    )
    yield _malformed_forgery("second query", "as many as keys", "graph", lambda b: _double(b, "W_Q"))
    yield _malformed_forgery(
        "gap in the layers",
        "layers are numbered",
        "graph",
        lambda b: b.model.update({"readout.9.weight": np.ones((1, 1)), "readout.9.bias": np.ones(1)}),
    )
    yield _malformed_forgery(
        "lift and table", "one embedding", "graph", lambda b: b.model.update({"embedding.table": np.ones((3, 4))})
    )
    for name in ("attention.W_Q", "attention.W_O", "readout.1.bias", "readout.3.weight"):
        yield _malformed_forgery(f"{name} missing", "part of the graph", "graph", lambda b, n=name: b.model.pop(n))
    for name in base.model:
        yield _malformed_forgery(
            f"{name} NaN", "NaN never passes", "finite", lambda b, n=name: _first(b.model, n, np.nan)
        )
        yield _malformed_forgery(
            f"{name} infinite", "infinity never passes", "finite", lambda b, n=name: _first(b.model, n, np.inf)
        )
        yield _malformed_forgery(
            f"{name} reshaped",
            "shapes must fit",
            "graph",
            lambda b, n=name: b.model.update({n: b.model[n].reshape(-1, 1, 1)}),
        )
        yield _malformed_forgery(
            f"{name} float32",
            "one dtype",
            "graph",
            lambda b, n=name: b.model.update({n: b.model[n].astype(np.float32)}),
        )


def _recut(content: bytes, by: int) -> bytes:
    size = int.from_bytes(content[:8], "little") + by
    return size.to_bytes(8, "little") + content[8:]


def _double(b: Bundle, *names: str) -> None:
    """A second head, or part of one."""
    for name in names:
        b.model[f"attention.{name}"] = np.repeat(b.model[f"attention.{name}"], 2, axis=0)


def _first(tensors: dict[str, np.ndarray], name: str, value: float) -> None:
    tensors[name].flat[0] = value


def _weights(base: Bundle) -> Iterator[Forgery]:
    """Weights changed and hashed again: the claims are false now, or can no longer be proved."""

    def times(name: str, factor: float, at: int = 0) -> Callable[[Bundle], None]:
        def change(b: Bundle) -> None:
            b.model[name].flat[at] *= factor

        return change

    last = base.model["readout.3.weight"].size - 1
    yield Forgery(
        "an answer one ulp off",
        "not the stored answer",
        "NOT VERIFIED",
        "",
        lambda b: _ulp(b, "readout.3.weight", last),
    )
    yield Forgery(
        "an answer changed", "not the stored answer", "NOT VERIFIED", "", times("readout.3.weight", 3.0, last)
    )
    for name in ("attention.W_V", "readout.0.weight"):
        nonzero = int(np.flatnonzero(base.model[name])[0])
        yield Forgery(f"{name} exponent", "other coordinates", "", "", times(name, 2.0**20, nonzero))
    yield Forgery("second head", "adds to the context", "", "", lambda b: _double(b, "W_Q", "W_K", "W_V", "W_O"))
    yield Forgery("slope negative", "not a trapezoid", "", "", times("readout.1.weight", -1.0))
    yield Forgery("group weight", "not a trapezoid", "", "", times("readout.2.weight", 0.5))
    yield Forgery("group bias", "not a trapezoid", "", "", times("readout.2.bias", 0.5))
    yield Forgery("bottleneck offset", "coordinates move", "", "", lambda b: _first(b.model, "readout.0.bias", 1e6))
    yield Forgery(
        "scores 1e150",
        "overflow",
        "UNKNOWN",
        "",
        lambda b: b.model.update({"attention.W_Q": b.model["attention.W_Q"] * 1e300}),
    )
    yield Forgery(
        "scores 1e6",
        "softmax saturates",
        "",
        "",
        lambda b: b.model.update({"attention.W_Q": b.model["attention.W_Q"] * 1e6}),
    )


def _ulp(b: Bundle, name: str, at: int) -> None:
    b.model[name].flat[at] = np.nextafter(b.model[name].flat[at], np.inf)


def _data(base: Bundle) -> Iterator[Forgery]:
    answers, tokens = base.data["answers"], base.data["tokens"]
    yield _malformed_forgery("a stored answer one ulp off", "not the number of a class", "names", _ulp_data)
    yield Forgery(
        "two answers exchanged",
        "not what the network answers",
        "NOT VERIFIED",
        "",
        lambda b: b.data.update(answers=_exchange_answers(answers)),
    )
    yield Forgery("a sequence replaced", "another context", "NOT VERIFIED", "", _replace)
    yield Forgery("a contradiction added", "two answers for one context", "NOT VERIFIED", "", _contradict)
    yield _malformed_forgery(
        "a token NaN", "NaN never passes", "finite", lambda b: _first(b.data, "tokens", np.nan)
    )
    yield _malformed_forgery(
        "an answer NaN", "NaN never passes", "finite", lambda b: _first(b.data, "answers", np.nan)
    )
    yield _malformed_forgery(
        "no sequences", "nothing is checked", "safetensors", lambda b: b.data.update(tokens=tokens[:0])
    )
    yield _malformed_forgery(
        "no tokens", "nothing is checked", "safetensors", lambda b: b.data.update(tokens=tokens[:, :0])
    )
    yield _malformed_forgery(
        "an answer missing", "every token has one", "data", lambda b: b.data.update(answers=answers[:-1])
    )
    yield _malformed_forgery(
        "answers broadcast", "one row per token", "data", lambda b: b.data.update(answers=answers[:1])
    )
    yield _malformed_forgery(
        "answers of two components",
        "the network gives one",
        "data",
        lambda b: b.data.update(answers=np.repeat(answers, 2, 1)),
    )
    yield _malformed_forgery(
        "answers float32", "F64", "data", lambda b: b.data.update(answers=answers.astype(np.float32))
    )
    yield _malformed_forgery(
        "tokens too narrow", "the network takes more", "data", lambda b: b.data.update(tokens=tokens[:, :, :-1])
    )
    yield _malformed_forgery(
        "token ids",
        "the network has no table",
        "data",
        lambda b: b.data.update(tokens=np.zeros(tokens.shape[:2], np.int64)),
    )
    yield _malformed_forgery("hints", "unknown tensor", "data", lambda b: b.data.update(hints=np.zeros(3)))
    for value in (0, -1, tokens.shape[1] + 1, 1 << 62):
        lengths = np.full(len(tokens), tokens.shape[1], np.int64)
        lengths[0] = value
        yield _malformed_forgery(
            f"length {value}", "between 1 and n", "data", lambda b, x=lengths: b.data.update(lengths=x)
        )
    yield _malformed_forgery(
        "lengths of another shape",
        "one per sequence",
        "data",
        lambda b: b.data.update(lengths=np.ones(1, np.int64)),
    )


def _ulp_data(b: Bundle) -> None:
    at = b.data["answers"].size - 1
    b.data["answers"].flat[at] = np.nextafter(b.data["answers"].flat[at], np.inf)


def _exchange_answers(answers: np.ndarray) -> np.ndarray:
    other = int(np.flatnonzero(answers[:, 0] != answers[0, 0])[0])
    changed = answers.copy()
    changed[[0, other]] = changed[[other, 0]]
    return changed


def _replace(b: Bundle) -> None:
    """Sequence 0 becomes a copy of one whose answers differ, and keeps its own answers."""
    n = b.data["tokens"].shape[1]
    answers = b.data["answers"].reshape(-1, n)
    other = int(np.flatnonzero((answers != answers[0]).any(axis=1))[0])
    b.data["tokens"][0] = b.data["tokens"][other]


def _contradict(b: Bundle) -> None:
    n = b.data["tokens"].shape[1]
    b.data["tokens"] = np.concatenate([b.data["tokens"], b.data["tokens"][:1]])
    b.data["answers"] = np.concatenate([b.data["answers"], 1 - b.data["answers"][:n].clip(0, 1)])
