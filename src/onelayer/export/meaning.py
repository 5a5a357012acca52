"""What an exported file says of itself, so that whoever has only the file can use it: names of tokens and classes,
how answers are read off, and the digests of the weights and of the certificate."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from onelayer.certificates.folder import CERTIFICATE
from onelayer.certificates.names import FILE as NAMES
from onelayer.certificates.names import names_of
from onelayer.export import bundle

if TYPE_CHECKING:
    from onelayer.model import Model

#: Every key of a file begins with it.
PREFIX = "onelayer."


def meaning_of(model: Model) -> dict[str, str]:
    """Keys and values for a file's metadata; lists are JSON, and a key that says nothing is left out."""
    names, files = names_of(model), bundle.files(model)
    found = {
        "version": version("onelayer"),
        "model": model.describe(),
        "reading": how_to_read(model),
        "scope": names["scope"],
        "vocabulary": _json(names["tokens"]),
        "pieces": _json(names["pieces"]),
        "classes": _json(names["answers"]),
        "default": _json(model.interface.default),
        "weights_sha256": _digest(files[bundle.WEIGHTS]),
        "names_sha256": _digest(files[NAMES]),
        "certificate_sha256": _digest(files[CERTIFICATE]) if CERTIFICATE in files else "",
        "claims": _json(None if model.certificate is None else list(model.certificate.claims)),
    }
    return {PREFIX + key: value for key, value in found.items() if value}


def how_to_read(model: Model) -> str:
    """One sentence each on what goes in and what comes out."""
    form, real = model.form, model.interface.vocabulary is None and model.transformer.vocabulary_size is None
    goes_in = f"Tokens are vectors of {model.transformer.token_width} numbers." if real else "Tokens are ids."
    if not real and model.interface.vocabulary is not None:
        goes_in = "Tokens are ids: the places of words in `vocabulary`, from 0 on."
    if form.classes is None:
        comes_out = "An output is the answer itself."
    elif model.transformer.output_width == len(form.classes) > 1:
        comes_out = "Outputs are logits: the place of the largest is that of the answer in `classes`."
    else:
        comes_out = "An output, rounded, is the place of the answer in `classes`, from 0 on."
    where = {"token": "There is one at every token.", "sequence": "Every token of a sequence has the same."}
    return f"{goes_in} {comes_out} {where.get(form.scope, 'Only that of the last token counts.')}"


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
