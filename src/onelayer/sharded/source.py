"""Data that stays on disk: pairs of .npy files, read by blocks, by whichever process needs them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, files_in_words

Array = NDArray[Any]
#: Bytes of tokens of a block.
BLOCK_BYTES = 1 << 26
#: Kinds of numbers that tokens and answers may be.
TOKENS, ANSWERS = "fiu", "fiubU"


@dataclass(frozen=True)
class Block:
    """Some sequences of one pair of files, by their place."""

    number: int
    X: str
    Y: str
    start: int
    stop: int
    first: int  # number of its first sequence among all

    def read(self) -> tuple[Array, Array]:
        X, Y = (
            np.load(path, mmap_mode="r", allow_pickle=False)[self.start : self.stop] for path in (self.X, self.Y)
        )
        return _tokens(X), Y


@dataclass(frozen=True)
class Source:
    """Pairs of files; sequences are numbered through all of them."""

    files: tuple[tuple[str, str], ...]

    @cached_property
    def mapped(self) -> list[tuple[Array, Array]]:
        with files_in_words():
            try:
                return [
                    tuple(np.load(path, mmap_mode="r", allow_pickle=False) for path in pair) for pair in self.files
                ]
            except (EOFError, ValueError) as error:
                raise _wrong_data("whole .npy files without Python objects", str(error)) from None

    @property
    def N(self) -> int:
        return sum(len(X) for X, _ in self.mapped)

    @property
    def n(self) -> int:
        return int(self.mapped[0][0].shape[1])

    @property
    def is_real(self) -> bool:
        return self.mapped[0][0].dtype.kind == "f" or self.mapped[0][0].ndim == 3

    @property
    def per_token(self) -> bool:
        X, Y = self.mapped[0]
        return Y.shape[:2] == X.shape[:2]

    @property
    def width(self) -> int | None:
        """Components of an answer, if answers are vectors."""
        X, Y = self.mapped[0]
        return int(Y.shape[-1]) if are_vectors(X, Y) else None

    def check(self) -> None:
        """Refuse what cannot be read as sequences of one length, with an answer per token or per sequence."""
        (X, Y), *_ = self.mapped
        if X.ndim not in (2, 3) or X.dtype.kind not in TOKENS or 0 in X.shape:
            raise _wrong_data(
                "X of shape (N, n, d) or (N, n), of numbers", f"X has shape {X.shape} and type {X.dtype}"
            )
        vectors = Y.ndim > 1 and are_vectors(X, Y)
        fits = Y.shape[: 1 if vectors and Y.ndim == 2 else 2] in ((len(X),), X.shape[:2])
        if not fits or Y.ndim > 3 or 0 in Y.shape or Y.dtype.kind not in (TOKENS if vectors else ANSWERS):
            raise _wrong_data(
                "an answer per token or per sequence, in an array of numbers, words or vectors of numbers",
                f"Y has shape {Y.shape} and type {Y.dtype}, X has shape {X.shape}",
            )
        for (a, b), names in zip(self.mapped, self.files, strict=True):
            if a.shape[1:] != X.shape[1:] or a.dtype != X.dtype or b.shape[1:] != Y.shape[1:] or len(a) != len(b):
                raise _wrong_data(
                    "files of the same shapes and types", f"{names[0]} has {a.shape}, {names[1]} {b.shape}"
                )

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> list[Block]:
        found: list[Block] = []
        first = 0
        for (X, _), names in zip(self.mapped, self.files, strict=True):
            step = max(1, block_bytes // max(1, X[:1].nbytes))
            for start in range(0, len(X), step):
                stop = min(start + step, len(X))
                found.append(Block(len(found), *names, start, stop, first + start))
            first += len(X)
        return found

    def sample(self, count: int) -> tuple[Array, Array]:
        """About this many sequences, evenly spaced."""
        step, parts = max(1, self.N // count), []
        for X, Y in self.mapped:
            parts.append((np.array(X[::step]), np.array(Y[::step])))
        X, Y = (np.concatenate(some) for some in zip(*parts, strict=True))
        return _tokens(X), Y

    def fingerprint(self) -> str:
        """Of names, sizes and times of the files, and of a sample: other data is not taken for the same."""
        digest = hashlib.sha256()
        for pair in self.files:
            for path in pair:
                state = os.stat(path)
                digest.update(f"{os.path.abspath(path)} {state.st_size} {state.st_mtime_ns}".encode())
        for part in self.sample(256):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def are_vectors(X: Array, Y: Array) -> bool:
    """Whether an answer has several components: (N, n, q), or real (N, q) with q != n."""
    return Y.ndim == 3 or (Y.ndim == 2 and Y.shape[1] != X.shape[1] and Y.dtype.kind == "f")


def _tokens(X: Array) -> Array:
    """Words [N, n] or real tokens [N, n, d], as `memorize` reads arrays."""
    if X.ndim == 2 and X.dtype.kind == "f":
        return X[:, :, None]
    return X.astype(np.float64) if X.ndim == 3 and X.dtype.kind != "f" else X


def read_source(X: Any, Y: Any, spool: Path) -> Source:
    """Files as they are: names, patterns of names (``part-*X.npy``) or lists of them, and mapped arrays. Arrays in
    memory, and pairs of blocks that an iterator gives (Y is None then), are written to ``spool`` first."""
    if Y is None and not isinstance(X, str | os.PathLike):
        made = Source(tuple(_spool_block(block, spool, k) for k, block in enumerate(X)))
    else:
        xs, ys = _paths(X, spool, "X"), _paths(Y, spool, "Y")
        if len(xs) != len(ys) or not xs:
            raise _wrong_data("as many files of answers as of tokens", f"there are {len(xs)} and {len(ys)}")
        made = Source(tuple(zip(xs, ys, strict=True)))
    made.check()
    return made


def _spool_block(block: Any, spool: Path, number: int) -> tuple[str, str]:
    try:
        X, Y = block
    except (TypeError, ValueError):
        raise _wrong_data("pairs (X, Y) of blocks", f"block {number} is {block!r:.40}") from None
    return _write_array(X, spool, f"{number:06d}X"), _write_array(Y, spool, f"{number:06d}Y")


def _paths(given: Any, spool: Path, name: str) -> list[str]:
    if isinstance(given, str | os.PathLike):
        found = sorted(glob(os.fspath(given)))
        if not found:
            raise _wrong_data("files that exist", f"there is no {given}")
        return [os.path.abspath(path) for path in found]
    if isinstance(given, list | tuple) and given and all(isinstance(path, str | os.PathLike) for path in given):
        return [os.path.abspath(path) for path in given]
    if isinstance(given, np.memmap) and (whole := _is_whole(given)):
        return [whole]
    return [_write_array(given, spool, name)]


def _is_whole(mapped: Any) -> str:
    """The .npy file that an array maps all of; empty if there is none."""
    path = str(mapped.filename)
    try:
        other = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return ""
    same = other.shape == mapped.shape and other.dtype == mapped.dtype and other.offset == mapped.offset
    return os.path.abspath(path) if same and other.strides == mapped.strides else ""


def _write_array(array: Any, spool: Path, name: str) -> str:
    array, path = np.asarray(array), spool / f"{name}.npy"
    if array.dtype == object:
        raise _wrong_data("arrays of numbers or words", "one holds Python objects")
    if not _holds(path, array):
        spool.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        part.replace(path)
    return os.path.abspath(path)


def _holds(path: Path, array: Array) -> bool:
    """Whether an interrupted build wrote this very array, which then keeps its time."""
    try:
        before = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return before.shape == array.shape and before.dtype == array.dtype and bool(np.array_equal(before, array))


def _wrong_data(needs: str, found: str) -> DataError:
    return DataError("data", needs, found, "Give X and Y as .npy files, arrays, or pairs of blocks.")
