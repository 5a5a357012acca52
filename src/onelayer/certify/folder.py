"""A certified folder as the library reads it, to say it in words or to run it. The checker says if it is true."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors

from onelayer.errors import HypothesisError
from onelayer_checker import Claim

Array = NDArray[Any]
CERTIFICATE, MODEL, DATA = "certificate.json", "model.safetensors", "data.safetensors"


@dataclass(frozen=True)
class CertifiedFolder:
    certificate: dict[str, Any]
    claims: tuple[Claim, ...]
    weights: dict[str, Array]
    data: dict[str, Array]


def read_certified(folder: str | Path) -> CertifiedFolder:
    """Read a certified folder; one that is broken or not certified is refused by name."""
    try:
        certificate = json.loads((Path(folder) / CERTIFICATE).read_bytes())
        claims = tuple(Claim.read(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"]))
        content = {name: (Path(folder) / name).read_bytes() for name in (MODEL, DATA)}
        for name, part in content.items():
            if hashlib.sha256(part).hexdigest() != certificate["files"][name]["sha256"]:
                raise ValueError(f"{name} is not the file that was certified")
        return CertifiedFolder(certificate, claims, *(load_tensors(part) for part in content.values()))
    except FileNotFoundError as error:
        found = f"there is no {error.filename}"
    except Exception as error:  # a broken file breaks its reader in many ways
        found = str(error)[:200]
    remedy = "Write it with `onelayer memorize` or `onelayer approximate`."
    raise HypothesisError("data", f"a certified bundle at {folder}", found, remedy)
