"""NumPy files: arrays X, and if wanted Y, lengths and sequence (names), as `memorize` takes them."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from onelayer.problems.files.table import Array, Table, refuse, refuse_file
from onelayer.problems.scopes import Scope

ARRAYS = ("X", "Y", "lengths", "sequence")


def read(path: Path) -> Table:
    """The arrays of a .npz file; arrays of Python objects (pickles) are refused."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not an archive, or it is truncated")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise refuse_file(
            "a whole .npz archive without Python objects",
            f"{path.name} cannot be read ({error})",
            "Write it again with numpy.savez(path, X=X, Y=Y).",
        ) from None
    return _table(path.name, arrays)


def read_mapped(path: Path) -> Table:
    """X.npy (or any name that ends so) with Y.npy, lengths.npy and sequence.npy beside it; X may exceed memory."""
    prefix = path.name.removesuffix("X.npy")
    if prefix == path.name:
        raise refuse_file("tokens in a file X.npy, answers in Y.npy beside it", f"it is {path.name}", "Rename it.")
    beside = {name: path.with_name(f"{prefix}{name}.npy") for name in ARRAYS}
    try:
        arrays = {
            name: np.load(file, mmap_mode="r" if name == "X" else None, allow_pickle=False)
            for name, file in beside.items()
            if file.is_file()
        }
    except (EOFError, OSError, ValueError) as error:
        raise refuse_file(
            "whole .npy files without Python objects",
            f"{path.name}, or one beside it, cannot be read ({error})",
            "Write it again with numpy.save.",
        ) from None
    return _table(path.name, arrays)


def _table(file: str, arrays: dict[str, Array]) -> Table:
    _check(file, arrays)
    X, Y, names = arrays["X"], arrays.get("Y"), arrays.get("sequence")
    scope: Scope | None = None
    if Y is not None:
        scope = "token" if Y.shape[1:2] == X.shape[1:2] else "sequence"
    return Table(file, X, Y, arrays.get("lengths"), scope, None if names is None else tuple(names.tolist()))


def write(table: Table, stream: IO[bytes]) -> None:
    arrays = {"X": table.X, "Y": table.Y, "lengths": table.lengths}
    if table.names is not None:
        arrays["sequence"] = np.array(table.names)
    kept: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
    np.savez(stream, **kept)


def _check(file: str, arrays: dict[str, Array]) -> None:
    """Shapes only: `memorize` looks into the arrays."""
    unknown = [name for name in arrays if name not in ARRAYS]
    if unknown or "X" not in arrays:
        raise refuse(
            "an array X, and Y, lengths and sequence if wanted",
            f"{file} has {', '.join(arrays) or 'no arrays'}",
            f"Rename or drop {unknown[0]}." if unknown else "Add X.",
        )
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise refuse("arrays only", f"{file} holds other files too", "Write it again with numpy.savez.")
    X = arrays["X"]
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise refuse("X of shape (N, n) or (N, n, d), not empty", f"{file} has X of shape {X.shape}", "Reshape it.")
    for name, array in arrays.items():
        if array.shape[:1] != X.shape[:1]:
            raise refuse(
                f"one row of {name} per sequence, {len(X)} in all",
                f"{file} has {name} of shape {array.shape}",
                "Match them up.",
            )
    lengths = arrays.get("lengths")
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        raise refuse(
            "whole numbers as lengths, one per sequence",
            f"{file} has lengths of shape {lengths.shape} and type {lengths.dtype}",
            "Convert them.",
        )
