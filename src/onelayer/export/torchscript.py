"""A model as a TorchScript file, which `torch.jit.load` opens without onelayer."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onelayer.export.meaning import meaning_of
from onelayer.export.torch import OneLayer, to_torch
from onelayer.export.whole_file import write_whole

if TYPE_CHECKING:
    from onelayer.model import Model

import torch

#: The extra file of a script: what the numbers mean.
MEANING = "onelayer.json"
#: What the modules of `export.torch` have: their code, and what it decides by.
METHODS = ("forward", "loop", "visible", "scores", "weights", "tied", "solved")
OPTIONS = ("kind", "causal", "context", "window", "mean", "repeat")


def to_torchscript(model: Model, path: str | os.PathLike[str]) -> Path:
    """Write `to_torch(model)` to one file; what its numbers mean is in the extra file `onelayer.json`."""
    return write_whole(path, script_bytes(to_torch(model), json.dumps(meaning_of(model)).encode()))


def script_bytes(module: OneLayer, meaning: bytes = b"") -> bytes:
    file = io.BytesIO()
    with _quietly():
        torch.jit.save(torch.jit.script(module), file, _extra_files={MEANING: meaning})
    return file.getvalue()


def load_script(file: str | os.PathLike[str] | io.BytesIO) -> Any:
    with _quietly():
        return torch.jit.load(file)  # type: ignore[no-untyped-call]


def is_script(path: str | os.PathLike[str]) -> bool:
    """Whether a file of torch holds code: state dicts are archives, too."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def does_as(loaded: Any, module: OneLayer) -> bool:
    """Whether a script does what the module does: the code of every part, and the options it holds. (Names in code
    are given again when it is loaded.)"""
    return _code(loaded) == _code(load_script(io.BytesIO(script_bytes(module))))


def _code(of: Any) -> list[Any]:
    found: list[Any] = []
    for name, part in of.named_modules():
        methods = [getattr(getattr(part, method, None), "code", "") for method in METHODS]
        options = [getattr(part, option, None) for option in OPTIONS]
        found.append((name, methods, [o for o in options if not isinstance(o, torch.nn.Module)]))
    return found


@contextmanager
def _quietly() -> Iterator[None]:
    """torch calls scripts deprecated, but has no other file that runs without code of its own and any length."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
