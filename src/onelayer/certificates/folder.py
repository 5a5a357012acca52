"""A certified folder as the library reads it, to say it in words or to run it. The checker says if it is true."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from onelayer.certificates.names import FILE as NAMES
from onelayer.certificates.names import Names
from onelayer.certificates.tensors import load_tensors
from onelayer.errors import FileError
from onelayer_checker import Claim, check

Array = NDArray[Any]
CERTIFICATE, MODEL, DATA = "certificate.json", "model.safetensors", "data.safetensors"


@dataclass(frozen=True)
class CertifiedFolder:
    certificate: dict[str, Any]
    claims: tuple[Claim, ...]
    weights: dict[str, Array]
    data: dict[str, Array]
    names: Names | None  # None: a certificate of version 1


def read_certified(folder: str | Path) -> CertifiedFolder:
    """Read a certified folder; one that is broken or not certified is refused by name.

    The checker reads it first: it opens no pipe or device, and nothing that is larger than it says.
    """
    try:
        if (looked := check(folder, claims=[])).gate:
            raise ValueError(looked.why)
        listed = json.loads((Path(folder) / CERTIFICATE).read_bytes())["files"]
        return read_files({name: (Path(folder) / name).read_bytes() for name in (CERTIFICATE, *listed)})
    except Exception as error:  # a broken file breaks its reader in many ways
        found = str(error)[:200]
    remedy = "Write it with `onelayer memorize` or `onelayer approximate`."
    raise FileError("file", f"a certified bundle at {folder}", found, remedy)


def read_files(content: Mapping[str, bytes]) -> CertifiedFolder:
    """The same for files by name."""
    certificate = json.loads(content[CERTIFICATE])
    claims = tuple(Claim.read(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"]))
    for name, entry in certificate["files"].items():
        if hashlib.sha256(content[name]).hexdigest() != entry["sha256"]:
            raise ValueError(f"{name} is not the file that was certified")
    names = json.loads(content[NAMES]) if NAMES in certificate["files"] else None
    return CertifiedFolder(certificate, claims, load_tensors(content[MODEL]), load_tensors(content[DATA]), names)
