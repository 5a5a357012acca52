"""A bundle taken apart, so that one thing can be changed and everything else put together again honestly."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILES = ("certificate.json", "model.safetensors", "data.safetensors", "names.json")
NAMES = {"float32": "F32", "float64": "F64", "int64": "I64", "float16": "F16", "bool": "BOOL"}


@dataclass
class Bundle:
    """Parsed parts, and raw bytes that replace a file after everything was put together."""

    certificate: dict[str, Any]
    model: dict[str, np.ndarray]
    data: dict[str, np.ndarray]
    raw: dict[str, bytes | None]
    rehash: bool = True
    names: dict[str, Any] | None = None  # None: version 1, which has none

    def copy(self) -> Bundle:
        return copy.deepcopy(self)

    def files(self) -> dict[str, bytes]:
        content = {"model.safetensors": pack(self.model), "data.safetensors": pack(self.data)}
        content |= {} if self.names is None else {"names.json": json.dumps(self.names).encode()}
        content |= {name: raw for name, raw in self.raw.items() if raw is not None and name in content}
        if self.rehash:
            for name, c in content.items():
                self.certificate["files"][name] = {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)}
        content["certificate.json"] = json.dumps(self.certificate).encode()
        content |= {name: raw for name, raw in self.raw.items() if raw is not None}
        return {name: c for name, c in content.items() if self.raw.get(name, b"") is not None}

    def version_1(self) -> Bundle:
        """The same without names, as certificates were before they had any."""
        former = self.copy()
        former.names, former.certificate["format"] = None, "onelayer-certificate/1"
        former.certificate["files"].pop("names.json", None)
        return former

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files().items():
            (folder / name).write_bytes(content)
        return folder


def pack(tensors: dict[str, np.ndarray], header: Any = None) -> bytes:
    """safetensors, written out plainly; ``header`` may change the header before it is encoded."""
    entries, body = {}, b""
    for name, array in tensors.items():
        content = np.ascontiguousarray(array).tobytes()
        shape, offsets = list(array.shape), [len(body), len(body) + len(content)]
        entries[name] = {"dtype": NAMES[str(array.dtype)], "shape": shape, "data_offsets": offsets}
        body += content
    text = json.dumps(entries if header is None else header(entries)).encode()
    return len(text).to_bytes(8, "little") + text + body


def read(folder: Path) -> Bundle:
    certificate = json.loads((folder / "certificate.json").read_text())
    parts = [unpack((folder / name).read_bytes()) for name in FILES[1:3]]
    named = "names.json" in certificate["files"]
    names = json.loads((folder / "names.json").read_text()) if named else None
    return Bundle(certificate, parts[0], parts[1], {}, names=names)


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The tensors of a file; numbers of 16 bits as float32, which holds them all."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: read_numbers(content[8 + size :][slice(*entry["data_offsets"])], entry["dtype"]).reshape(
            entry["shape"]
        )
        for name, entry in header.items()
    }


def read_numbers(content: bytes, code: str) -> np.ndarray:
    if code == "BF16":  # NumPy has none: its bits are the upper half of a float32
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32)
    found = np.frombuffer(content, {code: name for name, code in NAMES.items()}[code])
    return found.astype(np.float32) if code == "F16" else found.copy()
