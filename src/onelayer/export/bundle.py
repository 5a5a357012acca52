"""A model as a folder: weights in safetensors, names and everything else in JSON, tied together by digests. No
pickle."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from onelayer.certificates import names as names_file
from onelayer.certificates.certificate import LOOPED, Certificate
from onelayer.certificates.folder import CERTIFICATE, DATA, read_files
from onelayer.certificates.names import FILE as NAMES
from onelayer.certificates.names import Names, names_of
from onelayer.certificates.tensors import load_tensors, save_tensors
from onelayer.errors import FileError, OptionError
from onelayer.export.former import FIRST, FORMER, former_interface, former_names
from onelayer.gadgets.stacks import Covered
from onelayer.interfaces import Answers, interface_from_json
from onelayer.ledger import Ledger
from onelayer.network import Transformer, structure
from onelayer.network.formats import FORMATS
from onelayer.problems.answers import AnswerForm
from onelayer_checker import MANIFEST, folder_of

if TYPE_CHECKING:
    from onelayer.model import Model

FORMAT = "onelayer-bundle/3"
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
#: Where a bundle is set aside while another takes its place.
OLD = "bundle"


@dataclass(frozen=True)
class Parts:
    """What a model is made of, as a folder holds it."""

    transformer: Transformer
    interface: Answers
    ledger: Ledger
    certificate: Certificate | None
    gadgets: tuple[Covered, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.transformer, self.interface, self.ledger, self.certificate, self.gadgets))


def files(model: Model) -> dict[str, bytes]:
    """The files of a bundle by name; with a certificate they are what `onelayer_checker` reads."""
    names, certificate = names_of(model), model.certificate
    if found := _of_another(model, certificate):
        raise OptionError("data", "a certificate of this very model", found, "Certify this model.")
    named = names_file.to_bytes(names)
    description = _describe(model) | {"names_sha256": hashlib.sha256(named).hexdigest()}
    tensors, half = dict(model.transformer.tensors()), FORMATS.get(model.arithmetic)  # type: ignore[call-overload]
    if half is not None and not all(half.holds(a).all() for a in tensors.values()):
        half = None  # other weights were put in since it was made
    name = None if half is None else half.name
    weights = save_tensors(tensors, {"description_sha256": _digest_of(description)}, name)
    description["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    proof = {} if certificate is None else certificate.files(weights)
    text = json.dumps(description, indent=1, allow_nan=False).encode()
    return {WEIGHTS: weights, **proof, NAMES: named, DESCRIPTION: text}


def write(path: str | os.PathLike[str], model: Model, *, overwrite: bool) -> Path:
    """Write a bundle. Whatever happens, the folder holds the old bundle, the new one, or nothing at all."""
    content = files(model)
    target = Path(path)
    _clear_up(target)
    if _holds(target, content):
        return target
    check_target(path, overwrite=overwrite)
    try:
        _write_folder(target, content)
    except OSError as error:  # it names a hidden folder that a person has not heard of
        raise FileError.of(OSError(error.errno, error.strerror), target) from error
    return target


def _holds(target: Path, content: dict[str, bytes]) -> bool:
    """Whether the folder holds these very files, and no others."""
    try:
        same = {path.name for path in target.iterdir()} == set(content)
        return same and all((target / name).read_bytes() == part for name, part in content.items())
    except OSError:
        return False


def _write_folder(target: Path, content: dict[str, bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=_hidden_name(target), dir=target.parent))
    try:
        for name, part in content.items():
            _write(building / name, part)
        building.chmod(0o755)
        _put_in_place(building, target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _hidden_name(target: Path) -> str:
    """How the folder is named in which a process builds a bundle."""
    return f".{target.name}.saving-{os.getpid()}-"


def _clear_up(target: Path) -> None:
    """Remove what saves of this bundle left behind that were killed; a bundle they had set aside is put back."""
    for left in sorted(target.parent.glob(f".{glob.escape(target.name)}.saving-*-*")):
        owner = left.name.removeprefix(f".{target.name}.saving-").split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            if (left / OLD).is_dir() and not target.exists():
                (left / OLD).rename(target)
            shutil.rmtree(left, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a folder that a model must not or cannot be written to, before any work is done.

    What a save that was killed left beside it is cleared up first: a bundle that is put back exists.
    """
    target = Path(path)
    _clear_up(target)
    if target.exists() and not (target / DESCRIPTION).is_file():
        raise _unfit(target, "it exists and is not a onelayer bundle", "Choose another folder.")
    if target.exists() and not overwrite:
        raise _unfit(target, "it exists already", "Choose another folder, or pass overwrite=True.")
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise _unfit(target, f"{parent} is not a folder that can be written to", "Choose another folder.")
    return target


def read(path: str | os.PathLike[str], *, proof: bool = True) -> Parts:
    """Read a bundle; a truncated, edited or mismatched one is refused by name. Without ``proof``, neither the
    certificate nor the data it is about is read."""
    folder = Path(path)
    text, weights = _content(folder, DESCRIPTION), _content(folder, WEIGHTS)
    try:
        description = json.loads(text)
        known = description["format"]
        digests = [(WEIGHTS, weights, description.pop("weights_sha256"))]
        named = _content(folder, NAMES) if "names_sha256" in description else b""
        digests += [(NAMES, named, description["names_sha256"])] if known != FIRST else []
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError):
        raise _refusal(folder, f"{DESCRIPTION} is truncated or edited", "Save the model again.") from None
    if known not in (FORMAT, *FORMER):
        raise _refusal(folder, f"it has the format {known!r}, not {FORMAT!r}", "Use the version that wrote it.")
    for name, content, expected in digests:
        if hashlib.sha256(content).hexdigest() != expected:
            raise _refusal(folder, f"{name} does not have the digest in {DESCRIPTION}", "Save the model again.")
    try:
        if _metadata(weights).get("description_sha256") != _digest_of(description):
            raise _refusal(folder, f"{DESCRIPTION} was edited after it was saved", "Save the model again.")
        names = former_names(description) if known == FIRST else json.loads(named)
        parts = _rebuild(description, load_tensors(weights), names)
        if known != FIRST and names_of(parts) != names:
            raise _refusal(folder, f"{NAMES} does not fit the weights", "Save the model again.")
        certificate = _certificate(folder, weights, description, parts) if proof else None
        if known == FORMAT and (found := _of_another(parts, certificate)):
            raise _refusal(folder, f"its certificate is of another model: {found}", "Save the model again.")
        return replace(parts, certificate=certificate)
    except FileError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refusal(folder, f"its parts do not fit together ({error})", "Save the model again.") from None


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        if (folder / MANIFEST).is_file():
            remedy = f"Name one of its shards, such as {folder / folder_of(0)}."
            raise _refusal(folder, "it is a model in shards", remedy) from None
        raise _refusal(folder, f"there is no {error.filename}", "Give the folder that `save` wrote.") from None
    except OSError as error:
        raise FileError.of(error, folder) from error


def _digest_of(description: dict[str, Any]) -> str:
    """The weights carry the digest of the description, and the description that of the weights."""
    canonical = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _metadata(weights: bytes) -> dict[str, str]:
    size = int.from_bytes(weights[:8], "little")
    metadata: dict[str, str] = json.loads(weights[8 : 8 + size]).get("__metadata__", {})
    return metadata


def _certificate(folder: Path, weights: bytes, description: dict[str, Any], parts: Parts) -> Certificate | None:
    """The certificate beside the weights; one that is not of these weights is refused, not dropped."""
    if not (folder / CERTIFICATE).is_file():
        return None
    found = read_files(
        {WEIGHTS: weights} | {n: _content(folder, n) for n in (CERTIFICATE, DATA, NAMES) if (folder / n).is_file()}
    )
    verdicts = tuple(description.get("verdicts", ()))
    graph = found.certificate["graph"] if found.certificate["graph"]["template"] == LOOPED else None
    names = found.names or names_of(parts)
    return Certificate(tuple(found.certificate["claims"]), found.data, verdicts, names, graph)


def _of_another(model: Model | Parts, certificate: Certificate | None) -> str:
    """What makes a certificate one of another model. The weights are compared by their digest; but they do not say
    how often a layer is run, who is seen, or what a person reads about it."""
    if certificate is None:
        return ""
    if certificate.names != names_of(model):
        return "its names are not those of the model"
    graph = structure.plain_graph(certificate.names["causal"]) if certificate.graph is None else certificate.graph
    if graph != structure.graph(model.transformer):
        return "it is about another kind of attention, or another number of loops"
    return model.interface.unclaimed(certificate.claims)


def _describe(model: Model) -> dict[str, Any]:
    """What is neither a weight nor a name."""
    return {
        "format": FORMAT,
        **structure.describe_structure(model.transformer),
        "interface": model.interface.to_json(),
        "ledger": model.ledger.to_json(),
        "gadgets": [covered.to_json() for covered in model.gadgets],
        "verdicts": [] if model.certificate is None else list(model.certificate.verdicts),
    }


def _rebuild(description: dict[str, Any], tensors: dict[str, Any], names: Names) -> Parts:
    transformer = structure.rebuild_network(description, tensors, names["causal"])
    if {name for name, _ in transformer.tensors()} != set(tensors):
        raise ValueError("the weights file holds tensors that the model does not use")
    vocabulary, classes = names_file.read(names["tokens"]), names_file.read(names["answers"])
    if (0 if vocabulary is None else len(vocabulary)) != (transformer.vocabulary_size or 0):
        raise ValueError("the vocabulary and the token table differ in size")
    ledger = Ledger.from_json(description["ledger"])
    former = description["format"] in FORMER
    entry = former_interface(description["answers"], names, ledger) if former else description["interface"]
    form = AnswerForm(names["scope"], classes, entry["components"], bool(entry["ragged"]))
    hints = tuple(map(Covered.from_json, description.get("gadgets", ())))
    return Parts(transformer, interface_from_json(entry, form, vocabulary), ledger, None, hints)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(building: Path, target: Path) -> None:
    if not target.exists():
        building.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=_hidden_name(target), dir=target.parent))
    target.rename(old / OLD)
    building.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _unfit(target: Path, found: str, remedy: str) -> FileError:
    return FileError("file", f"a folder for the model at {target}", found, remedy)


def _refusal(folder: Path, found: str, remedy: str) -> FileError:
    return FileError("file", f"a onelayer bundle at {folder}", found, remedy)
