"""Reading a certified folder: strict JSON, hexadecimal reals, safetensors. Anything unexpected is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.budget import allow_bytes

CERTIFICATE, MODEL, DATA, NAMES = "certificate.json", "model.safetensors", "data.safetensors", "names.json"
TOP = {"format", "graph", "profile", "files", "claims", "producer"}
#: The certified files of each version.
VERSIONS = {"onelayer-certificate/1": (MODEL, DATA), "onelayer-certificate/2": (MODEL, DATA, NAMES)}
MOST_TEXT, MOST_DEPTH, MOST_TENSORS = 1 << 20, 6, 1000
MOST_NAMES, MOST_NAME_DEPTH = 1 << 26, 64
NOT_WAITING = getattr(os, "O_NONBLOCK", 0)
DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
#: Numbers of 16 bits, which are read as F32: of BF16 these are the upper half.
DTYPES |= {"F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_HEX = re.compile(r"-?0x[01]\.[0-9a-f]{1,13}p[+-](0|[1-9][0-9]{0,3})")


class Malformed(Exception):
    """The folder is not what section 1 to 3 of the specification describe; ``gate`` says which rule refused it."""

    def __init__(self, gate: str, why: str) -> None:
        self.gate = gate
        super().__init__(f"{gate}: {why}")


Parsed = tuple[dict[str, Any], dict[str, Array], dict[str, Array], dict[str, Any] | None]


def read_folder(folder: Path | Mapping[str, bytes]) -> Parsed:
    """The certificate, the tensors of model and data, and the names, which version 1 does not have. Each file is
    read once and compared with its digest."""
    certificate = strict_json(read_bytes(folder, CERTIFICATE), "certificate")
    fields(certificate, TOP, "certificate")
    files, version = certificate["files"], certificate["format"]
    if not isinstance(version, str) or version not in VERSIONS:
        raise Malformed("format", f"unknown format {shown(version)}")
    fields(files, set(VERSIONS[version]), "files")
    parsed: list[Any] = []
    for name in VERSIONS[version]:
        fields(files[name], {"sha256", "bytes"}, f"files.{name}")
        size, digest = files[name]["bytes"], files[name]["sha256"]
        if type(size) is not int:
            raise Malformed("size", f"the size of {name} is no whole number")
        content = read_bytes(folder, name, size)
        if hashlib.sha256(content).hexdigest() != digest:
            raise Malformed("digest", f"{name} is not the file that was certified")
        names = name == NAMES
        parsed.append(strict_json(content, name, MOST_NAME_DEPTH) if names else parse_safetensors(content, name))
    return certificate, parsed[0], parsed[1], parsed[2] if len(parsed) > 2 else None


def read_bytes(folder: Path | Mapping[str, bytes], name: str, size: int | None = None) -> bytes:
    """The bytes of a file; its kind and size are looked at first."""
    if isinstance(folder, Mapping):
        _admit(name, len(folder[name]), size)
        return folder[name]
    try:
        # A pipe would be waited for; a device need not end.
        with open(folder / name, "rb", opener=lambda path, how: os.open(path, how | NOT_WAITING)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Malformed("kind", f"{name} is not a regular file")
            _admit(name, found.st_size, size)
            content = file.read(found.st_size + 1)
    except IsADirectoryError:
        raise Malformed("kind", f"{name} is a directory") from None
    except FileNotFoundError:
        nothing = ": nothing was proved of this folder" if name == CERTIFICATE else ""
        raise Malformed("missing", f"there is no {name}{nothing}") from None
    except OSError as error:
        raise Malformed("missing", f"{name} cannot be read ({error.strerror})") from None
    if len(content) != found.st_size:
        raise Malformed("size", f"{name} had {found.st_size} bytes when it was opened, and then another number")
    return content


def _admit(name: str, found: int, size: int | None) -> None:
    most = MOST_TEXT if name == CERTIFICATE else MOST_NAMES if name == NAMES else found
    if found > most:
        raise Malformed("size", f"{name} has {found} bytes, more than {most}")
    if size is not None and found != size:
        raise Malformed("size", f"{name} has {found} bytes, the certificate says {shown(size)}")
    allow_bytes(name, found, 3 if name == MODEL else 1)  # weights are kept as float64 numbers too


def shown(value: object, most: int = 80) -> str:
    """Whatever the folder says, fit for a terminal: ASCII without control characters, in quotes, and not long."""
    text = ascii(value)
    return text if len(text) <= most else f"{text[:most]}..."


def strict_json(content: bytes, what: str, deepest: int = MOST_DEPTH) -> dict[str, Any]:
    """An object without duplicate keys, fractions, NaN, deep nesting or anything after it."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) != len(items):
            raise Malformed("json", f"{what} has a field twice")
        return dict(items)

    def refuse(literal: str) -> Any:
        raise Malformed("json", f"{what} has the number {literal[:40]}; reals are hexadecimal strings")

    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=pairs, parse_float=refuse, parse_constant=refuse
        )
        nested = depth(value)
    except (ValueError, RecursionError) as error:
        raise Malformed("json", f"{what} is not JSON ({str(error)[:80]})") from None
    if not isinstance(value, dict) or nested > deepest:
        raise Malformed("json", f"{what} is not an object nested at most {deepest} deep")
    return value


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((depth(part) for part in inner if isinstance(part, dict | list)), default=0)


def fields(value: Any, names: set[str], where: str) -> None:
    if not isinstance(value, dict) or set(value) != names:
        found = shown(sorted(value), 200) if isinstance(value, dict) else type(value).__name__
        raise Malformed("fields", f"{where} must have exactly {sorted(names)}, has {found}")


def real(text: Any, where: str) -> float:
    """A finite hexadecimal float in the one form that `float.hex` writes."""
    if not isinstance(text, str) or not _HEX.fullmatch(text):
        raise Malformed("number", f"{where} is not a hexadecimal float: {shown(text)}")
    try:
        value = float.fromhex(text)
    except OverflowError:
        raise Malformed("number", f"{where} overflows: {text}") from None
    if value.hex() != text:
        raise Malformed("number", f"{where} is not in canonical form: {text}")
    return value


def parse_safetensors(content: bytes, name: str) -> dict[str, Array]:
    """Tensors that cover the file exactly, in order, finite, and nothing else."""
    size = int.from_bytes(content[:8], "little")
    if size > len(content) - 8 or size > MOST_TEXT:
        raise Malformed("safetensors", f"{name} is truncated, or its header has more than {MOST_TEXT} bytes")
    header = strict_json(content[8 : 8 + size], f"{name} header")
    header.pop("__metadata__", None)
    if len(header) > MOST_TENSORS:
        raise Malformed("safetensors", f"{name} has {len(header)} tensors, more than {MOST_TENSORS}")
    body, position, tensors = memoryview(content)[8 + size :], 0, {}
    for key, entry in sorted(header.items(), key=lambda item: _start(item[1], name)):
        where = f"{name} {shown(key)}"
        fields(entry, {"dtype", "shape", "data_offsets"}, where)
        code, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(code, str) or code not in DTYPES:
            raise Malformed("safetensors", f"{where} has the unknown dtype {shown(code)}")
        if not isinstance(shape, list) or len(shape) > 3 or any(type(k) is not int or k < 1 for k in shape):
            raise Malformed("safetensors", f"{where} has the shape {shown(shape)}")
        dtype, count = DTYPES[code], prod(shape)  # Python integers do not overflow
        if start != position or stop - start != count * dtype.itemsize or stop > len(body):
            raise Malformed("safetensors", f"{where} does not cover the file contiguously")
        stored = np.frombuffer(body, dtype, count, start).reshape(shape)
        if code == "BF16":
            stored = (stored.astype("<u4") << 16).view("<f4")
        tensors[key] = stored.astype("<f4") if code == "F16" else stored
        position = stop
        if not np.isfinite(tensors[key]).all():
            raise Malformed("finite", f"{where} holds NaN or infinity")
    if position != len(body):
        raise Malformed("safetensors", f"{name} has {len(body) - position} bytes that no tensor uses")
    return tensors


def _start(entry: Any, name: str) -> int:
    offsets: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or any(type(k) is not int or k < 0 for k in offsets):
        raise Malformed("safetensors", f"{name} has offsets {shown(offsets)}")
    return int(offsets[0])
