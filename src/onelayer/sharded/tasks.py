"""The pieces of work of a build, each done by any worker: a look at a block, its spill, and a shard.

A piece leaves a folder that appears whole or not at all, so one that was done need not be done again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.certificates.certificate import Certificate, judge_claims
from onelayer.certificates.data import of_answers
from onelayer.certificates.folder import CERTIFICATE
from onelayer.certificates.names import certifiable, names_of
from onelayer.certificates.tolerance import allowed_error, prove_claims
from onelayer.errors import DataError, HypothesisError
from onelayer.model import Model
from onelayer.problems.answers import AnswerForm, Answers
from onelayer.problems.conflicts import OnConflict, Settled, in_conflict, settle
from onelayer.problems.sequences import Sequences
from onelayer.search.problem import Options
from onelayer.sharded.router import Places, Router
from onelayer.sharded.source import Block, are_vectors
from onelayer_checker import Claim, folder_of

Array = NDArray[Any]
#: Different answers, or words, beyond which they are no names for classes, or for tokens.
MOST_NAMES = 1 << 24


@dataclass(frozen=True)
class Seen:
    """What a look at some of the data found: the nearest numbers to possible steps, words, answers."""

    places: Places | None
    words: Array | None
    answers: Array | None  # None: they are reals

    def merged(self, other: Seen) -> Seen:
        def union(a: Array | None, b: Array | None) -> Array | None:
            return None if a is None or b is None else np.union1d(a, b)

        places = None if self.places is None or other.places is None else self.places.merged(other.places)
        return Seen(places, union(self.words, other.words), union(self.answers, other.answers))


def look(block: Block, places: Places | None) -> Seen:
    """One pass over a block; ``places`` None for words."""
    X, Y = block.read()
    answers = None if Y.dtype.kind == "f" or are_vectors(X, Y) else np.unique(Y)
    if Y.dtype.kind == "f" and not np.isfinite(Y).all():
        raise _not_finite("an answer", block, np.isfinite(Y))
    if places is None:
        return Seen(None, np.unique(X), answers)
    if not (np.isfinite(X.min()) and np.isfinite(X.max())):
        raise _not_finite("a component", block, np.isfinite(X))
    return Seen(places.seen(X), None, answers)


def _not_finite(what: str, block: Block, finite: Array) -> DataError:
    i = block.first + int(np.nonzero(~finite)[0][0])
    return DataError("data", "finite numbers", f"{what} of sequence {i} is not", "Drop or impute it.")


@dataclass(frozen=True)
class Job:
    """What every worker must know to make a shard."""

    folder: str  # where the build is put together
    router: Router
    vocabulary: tuple[Any, ...] | None
    form: AnswerForm
    options: Options
    on_conflict: OnConflict
    prove: bool
    compile: Callable[[Settled, Options], Model]

    @property
    def spills(self) -> Path:
        return Path(self.folder) / "spill"

    def words(self, X: Array) -> Array:
        """Ids of words, or real tokens as they are."""
        if self.vocabulary is None:
            return X.astype(self.router.dtype, copy=False)
        return np.searchsorted(np.array(self.vocabulary), X)

    def rows(self, Y: Array) -> Array:
        """Numbers of classes, or real answers."""
        found = Y if self.form.classes is None else np.searchsorted(np.array(self.form.classes), Y)
        return np.asarray(found, np.float64).reshape(-1, self.form.width or 1)


def spill(block: Block, job: Job) -> int:
    """Write the sequences of a block sorted by shard, and where each shard begins."""
    target = job.spills / f"{block.number:06d}"
    if target.is_dir():
        return block.number
    X, Y = block.read()
    shard = job.router.shards(job.words(X))
    order = np.argsort(shard, kind="stable")
    ends = np.cumsum(np.bincount(shard, minlength=job.router.count))
    part = _fresh(target)
    np.save(part / "X.npy", X[order])
    np.save(part / "Y.npy", Y[order])
    np.save(part / "row.npy", order + block.first)
    np.save(part / "ends.npy", ends)
    _put_in_place(part, target)
    return block.number


@dataclass(frozen=True)
class Made:
    """A shard that is done."""

    number: int
    sha256: str  # of its certificate
    bytes: int
    names: str
    sequences: int
    answers: int
    parameters: int
    conflicts: int
    cpu: float
    process: int


def make(number: int, job: Job) -> Made:
    """Gather the sequences of a shard, compile them, claim that they come back, and write the folder."""
    start, target = time.process_time(), Path(job.folder) / folder_of(number)
    given, row = _gather_shard(number, job)
    settled = settle(given.sequences, given.answers, job.on_conflict, bool(job.options.get("positions")))
    try:
        model = job.compile(settled, job.options)
    except HypothesisError:
        _refuse_conflicts(given, row, bool(job.options.get("positions")))
        raise
    model = _claim_answers(model, settled, job.prove)
    part = _fresh(target)
    shutil.rmtree(part)
    model.save(part)
    _put_in_place(part, target)
    content = (target / CERTIFICATE).read_bytes()
    names = hashlib.sha256((target / "names.json").read_bytes()).hexdigest()
    return Made(
        number,
        hashlib.sha256(content).hexdigest(),
        len(content),
        names,
        settled.sequences.N,
        len(settled.answers.rows),
        model.n_parameters,
        len(settled.conflicts),
        time.process_time() - start,
        os.getpid(),
    )


def _gather_shard(number: int, job: Job) -> tuple[Settled, Array]:
    """The data of a shard in its first order, and the numbers of its sequences among all."""
    parts: list[tuple[Array, ...]] = []
    for folder in sorted(job.spills.iterdir()):
        if folder.suffix:
            continue
        ends = np.load(folder / "ends.npy")
        rows = slice(int(ends[number - 1]) if number else 0, int(ends[number]))
        parts.append(tuple(np.load(folder / f"{name}.npy", mmap_mode="r")[rows] for name in ("X", "Y", "row")))
    X, Y, row = (np.concatenate(some) for some in zip(*parts, strict=True))
    tokens, bounds = job.words(X), {}
    if job.vocabulary is None:
        bounds = {"low": tokens.min(axis=(0, 1)).astype(float), "high": tokens.max(axis=(0, 1)).astype(float)}
    sequences = Sequences(tokens, None, job.vocabulary, **bounds)
    return Settled(sequences, Answers(job.rows(Y), job.form), job.on_conflict), row


def _refuse_conflicts(given: Settled, row: Array, positions: bool) -> None:
    """Name the places of a conflict by their numbers among all of the data."""
    per_sequence = given.answers.form.scope != "token"
    groups = in_conflict(given.sequences, given.answers.rows, per_sequence, positions, np.dtype(np.float64))
    if groups:
        n, (a, b) = given.sequences.n, groups[0][[0, -1]]
        rows = given.answers.rows[groups[0]]
        b = groups[0][int(np.argmax((rows != rows[0]).any(axis=1)))]
        where = [
            f"sequence {row[i]}" if per_sequence else f"sequence {row[i // n]}, token {i % n}"
            for i in (int(a), int(b))
        ]
        raise HypothesisError(
            "memorize",
            "one answer for each context",
            f"{where[0]} and {where[1]} are one context with two answers",
            'Correct one of them, pass on_conflict="first", "vote" or "drop", or positions=True.',
        )


def _claim_answers(model: Model, given: Settled, prove: bool) -> Model:
    """With the claim that every answer comes back; proved here, or left to `verify`."""
    tensors = of_answers(model, given.sequences, given.answers)
    tensors = {name: a for name, a in tensors.items() if name not in ("strangers", "default")}
    names, scope = certifiable(names_of(model)), model.form.scope
    eps = 0.0 if model.form.classes is not None else allowed_error(model, tensors["answers"], None)
    claims = [Claim("memorizes", arith, scope, {"eps": eps}) for arith in ("real", str(model.transformer.dtype))]
    said: tuple[str, ...] = ()
    if prove:
        report = judge_claims(model.transformer, tensors, names, [claim.to_json() for claim in claims], claims=[])
        found = prove_claims(report, claims, lambda: "")
        said = tuple(f"{claim}: {verdict.outcome}, {verdict.why}" for claim, verdict in found)
    return replace(model, certificate=Certificate(tuple(claim.to_json() for claim in claims), tensors, said, names))


def _fresh(target: Path) -> Path:
    """A folder of this process beside the target; what one that died left there is its own."""
    part = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    return part


def _put_in_place(part: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    part.rename(target)
