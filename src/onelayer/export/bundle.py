"""A model as a folder: weights in safetensors, names and everything else in JSON, tied together by digests. No
pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from onelayer.certify import names as names_file
from onelayer.certify.certificate import Certificate, certify
from onelayer.certify.names import FILE as NAMES
from onelayer.certify.names import Names, names_of
from onelayer.data.answers import AnswerForm
from onelayer.errors import HypothesisError
from onelayer.ledger import Ledger
from onelayer.memory import Memory
from onelayer.model import Transformer

FORMAT = "onelayer-bundle/2"
#: As written before names had a file of their own: they are in the description.
FORMER = "onelayer-bundle/1"
VERSION = version("onelayer")
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


def save(
    path: str | os.PathLike[str],
    model: Memory,
    *,
    certificate: Certificate | None = None,
    data: tuple[Any, ...] | None = None,
    tolerance: float | None = None,
    overwrite: bool = True,
) -> Path:
    """Write a bundle. Whatever happens, the folder holds the old bundle, the new one, or nothing at all.

    With a certificate, or with data (X, Y) or (X, Y, lengths) to certify, the folder is what `onelayer_checker`
    reads; ``tolerance`` is how far real answers may then be off, as `certify` takes it. A model of a function comes
    with its own.
    """
    if hasattr(model, "certificate"):  # of a function: what was proved when it was built
        if data is not None:
            needs, found = "no data for a model of a function", "data= was given"
            raise HypothesisError("data", needs, found, "Leave it out: what was proved of the model is saved.")
        certificate = certificate or model.certificate
    elif certificate is None and data is not None:
        certificate = certify(model, *data, tolerance=tolerance)
    names = names_of(model)
    if certificate is not None and certificate.names != names:
        needs, found = "a certificate of this very model", "its names are not those of the model"
        raise HypothesisError("data", needs, found, "Certify this model.")
    target = check_target(path, overwrite=overwrite)
    named = names_file.to_bytes(names)
    description = _describe(model) | {"names_sha256": hashlib.sha256(named).hexdigest()}
    tensors = {name: np.ascontiguousarray(a) for name, a in model.transformer.tensors()}
    weights = save_tensors(tensors, metadata={"description_sha256": _digest_of(description)})
    description["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(building / WEIGHTS, weights)
        files = {} if certificate is None else certificate.files(weights)
        for name, content in (files | {NAMES: named}).items():
            _write(building / name, content)
        _write(building / DESCRIPTION, json.dumps(description, indent=1, allow_nan=False).encode())
        building.chmod(0o755)
        _put_in_place(building, target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return target


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a folder that a model must not or cannot be written to, before any work is done."""
    target = Path(path)
    if target.exists() and not (target / DESCRIPTION).is_file():
        raise _unfit(target, "it exists and is not a onelayer bundle", "Choose another folder.")
    if target.exists() and not overwrite:
        raise _unfit(target, "it exists already", "Choose another folder, or allow overwriting.")
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise _unfit(target, f"{parent} is not a folder that can be written to", "Choose another folder.")
    return target


def load(path: str | os.PathLike[str]) -> Memory:
    """Read a bundle; a truncated, edited or mismatched one is refused by name."""
    folder = Path(path)
    text, weights = _content(folder, DESCRIPTION), _content(folder, WEIGHTS)
    try:
        description = json.loads(text)
        known = description["format"]
        digests = [(WEIGHTS, weights, description.pop("weights_sha256"))]
        named = b"" if known != FORMAT else _content(folder, NAMES)
        digests += [(NAMES, named, description["names_sha256"])] if known == FORMAT else []
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError):
        raise _refused(folder, f"{DESCRIPTION} is truncated or edited", "Save the model again.") from None
    if known not in (FORMAT, FORMER):
        raise _refused(folder, f"it has the format {known!r}, not {FORMAT!r}", "Use the version that wrote it.")
    for name, content, expected in digests:
        if hashlib.sha256(content).hexdigest() != expected:
            raise _refused(folder, f"{name} does not have the digest in {DESCRIPTION}", "Save the model again.")
    try:
        if _metadata(weights).get("description_sha256") != _digest_of(description):
            raise _refused(folder, f"{DESCRIPTION} was edited after it was saved", "Save the model again.")
        names = _former_names(description) if known == FORMER else json.loads(named)
        model = _rebuild(description, load_tensors(weights), names)
        if known == FORMAT and names_of(model) != names:
            raise _refused(folder, f"{NAMES} does not fit the weights", "Save the model again.")
        return model
    except HypothesisError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refused(folder, f"its parts do not fit together ({error})", "Save the model again.") from None


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _refused(folder, f"there is no {error.filename}", "Give the folder that `save` wrote.") from None


def _digest_of(description: dict[str, Any]) -> str:
    """The weights carry the digest of the description, and the description that of the weights."""
    canonical = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _metadata(weights: bytes) -> dict[str, str]:
    size = int.from_bytes(weights[:8], "little")
    metadata: dict[str, str] = json.loads(weights[8 : 8 + size]).get("__metadata__", {})
    return metadata


def _describe(model: Memory) -> dict[str, Any]:
    """What is neither a weight nor a name."""
    return {
        "format": FORMAT,
        "attention": {"kind": model.transformer.attention.kind},
        "channels": list(model.transformer.channels),
        "answers": {"components": model.form.components, "ragged": model.form.ragged},
        "ledger": model.ledger.to_json(),
    }


def _former_names(description: dict[str, Any]) -> Names:
    """Names as bundles of version 1 have them, whose reals are plain numbers."""
    answers = description["answers"]
    return {
        "scope": answers["scope"],
        "causal": description["attention"]["causal"],
        "tokens": description["vocabulary"],
        "answers": answers["classes"],
    }


def _rebuild(description: dict[str, Any], tensors: dict[str, Any], names: Names) -> Memory:
    answers, channels = description["answers"], tuple(description["channels"])
    transformer = Transformer.from_tensors(tensors, description["attention"]["kind"], names["causal"], channels)
    if {name for name, _ in transformer.tensors()} != set(tensors):
        raise ValueError("the weights file holds tensors that the model does not use")
    vocabulary, classes = names_file.read(names["tokens"]), names_file.read(names["answers"])
    if (0 if vocabulary is None else len(vocabulary)) != (transformer.vocabulary_size or 0):
        raise ValueError("the vocabulary and the token table differ in size")
    form = AnswerForm(names["scope"], classes, answers["components"], bool(answers["ragged"]))
    return Memory(transformer, Ledger.from_json(description["ledger"]), form, vocabulary)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(building: Path, target: Path) -> None:
    if not target.exists():
        building.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    target.rename(old / "bundle")
    building.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _unfit(target: Path, found: str, remedy: str) -> HypothesisError:
    return HypothesisError("data", f"a folder for the model at {target}", found, remedy)


def _refused(folder: Path, found: str, remedy: str) -> HypothesisError:
    return HypothesisError("data", f"a onelayer bundle at {folder}", found, remedy)
