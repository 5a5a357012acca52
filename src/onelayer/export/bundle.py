"""A model as a folder: weights in safetensors, everything else in JSON, tied together by a digest. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Hashable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from onelayer.certify.certificate import Certificate, certify
from onelayer.data.answers import AnswerForm
from onelayer.errors import HypothesisError
from onelayer.ledger import Ledger
from onelayer.memory import Memory
from onelayer.model import Transformer

FORMAT = "onelayer-bundle/1"
VERSION = version("onelayer")
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


def save(
    path: str | os.PathLike[str],
    model: Memory,
    *,
    certificate: Certificate | None = None,
    data: tuple[Any, ...] | None = None,
    overwrite: bool = True,
) -> Path:
    """Write a bundle. Whatever happens, the folder holds the old bundle, the new one, or nothing at all.

    With a certificate, or with data (X, Y) or (X, Y, lengths) to certify, the folder is what `onelayer_checker`
    reads. A model of a function comes with its own.
    """
    if hasattr(model, "certificate"):  # of a function: what was proved when it was built
        if data is not None:
            needs, found = "no data for a model of a function", "data= was given"
            raise HypothesisError("data", needs, found, "Leave it out: what was proved of the model is saved.")
        certificate = certificate or model.certificate
    elif certificate is None and data is not None:
        certificate = certify(model, *data)
    target = check_target(path, overwrite=overwrite)
    description = _describe(model)
    tensors = {name: np.ascontiguousarray(a) for name, a in model.transformer.tensors()}
    weights = save_tensors(tensors, metadata={"description_sha256": _digest_of(description)})
    description["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(building / WEIGHTS, weights)
        for name, content in ({} if certificate is None else certificate.files(weights)).items():
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
    try:
        text, weights = (folder / DESCRIPTION).read_bytes(), (folder / WEIGHTS).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _refused(folder, f"there is no {error.filename}", "Give the folder that `save` wrote.") from None
    try:
        description = json.loads(text)
        expected = description["weights_sha256"]
        known = description["format"]
    except (ValueError, KeyError, TypeError):
        raise _refused(folder, f"{DESCRIPTION} is truncated or edited", "Save the model again.") from None
    if known != FORMAT:
        raise _refused(folder, f"it has the format {known!r}, not {FORMAT!r}", "Use the version that wrote it.")
    if hashlib.sha256(weights).hexdigest() != expected:
        raise _refused(folder, f"{WEIGHTS} does not have the digest in {DESCRIPTION}", "Save the model again.")
    try:
        del description["weights_sha256"]
        if _metadata(weights).get("description_sha256") != _digest_of(description):
            raise _refused(folder, f"{DESCRIPTION} was edited after it was saved", "Save the model again.")
        return _rebuild(description, load_tensors(weights))
    except HypothesisError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _refused(folder, f"its parts do not fit together ({error})", "Save the model again.") from None


def _digest_of(description: dict[str, Any]) -> str:
    """The weights carry the digest of the description, and the description that of the weights."""
    canonical = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _metadata(weights: bytes) -> dict[str, str]:
    size = int.from_bytes(weights[:8], "little")
    metadata: dict[str, str] = json.loads(weights[8 : 8 + size]).get("__metadata__", {})
    return metadata


def _describe(model: Memory) -> dict[str, Any]:
    form, attention = model.form, model.transformer.attention
    return {
        "format": FORMAT,
        "attention": {"kind": attention.kind, "causal": attention.causal},
        "channels": list(model.transformer.channels),
        "vocabulary": _names("vocabulary", model.vocabulary),
        "answers": {
            "scope": form.scope,
            "classes": _names("classes", form.classes),
            "components": form.components,
            "ragged": form.ragged,
        },
        "ledger": model.ledger.to_json(),
    }


def _rebuild(description: dict[str, Any], tensors: dict[str, Any]) -> Memory:
    answers, attention = description["answers"], description["attention"]
    transformer = Transformer.from_tensors(
        tensors, attention["kind"], attention["causal"], tuple(description["channels"])
    )
    if {name for name, _ in transformer.tensors()} != set(tensors):
        raise ValueError("the weights file holds tensors that the model does not use")
    vocabulary = _from_names(description["vocabulary"])
    if (0 if vocabulary is None else len(vocabulary)) != (transformer.vocabulary_size or 0):
        raise ValueError("the vocabulary and the token table differ in size")
    form = AnswerForm(
        answers["scope"], _from_names(answers["classes"]), answers["components"], bool(answers["ragged"])
    )
    return Memory(transformer, Ledger.from_json(description["ledger"]), form, vocabulary)


def _names(what: str, names: tuple[Hashable, ...] | None) -> list[Any] | None:
    """Hashables as JSON; a tuple becomes {"tuple": [...]}."""

    def encode(name: Any) -> Any:
        if isinstance(name, tuple):
            return {"tuple": [encode(part) for part in name]}
        if name is None or isinstance(name, str | bool | int) or (isinstance(name, float) and np.isfinite(name)):
            return name
        raise HypothesisError(
            "data",
            f"{what} made of words, numbers, None or tuples of them, to be saved",
            f"one is {name!r} of type {type(name).__name__}",
            "Rename it before memorising.",
        )

    return None if names is None else [encode(name) for name in names]


def _from_names(names: list[Any] | None) -> tuple[Hashable, ...] | None:
    def decode(name: Any) -> Any:
        return tuple(decode(part) for part in name["tuple"]) if isinstance(name, dict) else name

    return None if names is None else tuple(decode(name) for name in names)


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
