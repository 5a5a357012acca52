"""A model in shards, as a folder holds it: a router, and models that are read when they are asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from onelayer.errors import DataError, FileError
from onelayer.export import bundle
from onelayer.model import Model
from onelayer.model import load as load_folder
from onelayer.problems.answers import AnswerForm
from onelayer.sharded.verify import Parts, verify_shards
from onelayer.sharded.workers import Cluster
from onelayer_checker import MANIFEST, ROUTER, Report, Shard, folder_of, read_manifest

Array = NDArray[Any]
#: Shards that are kept when they have been read.
KEPT = 4


@dataclass(frozen=True, eq=False, repr=False)
class ShardedModel:
    """What `memorize` returns for data in shards. It is one attention layer with a head for the router and one for
    each shard, whose feed-forward blocks stand side by side; of these only the one is run that the router opens."""

    folder: Path
    router: Model
    sequences: int
    answers: int
    _read: dict[int, Model] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many shards there are."""
        assert self.router.form.classes is not None
        return len(self.router.form.classes)

    @property
    def form(self) -> AnswerForm:
        return self.shard(0).form

    @cached_property
    def n_parameters(self) -> int:
        """Of the router and of all shards."""
        return self.router.n_parameters + sum(
            _numbers(self.folder / folder_of(k) / bundle.WEIGHTS) for k in range(self.count)
        )

    def __repr__(self) -> str:
        return f"<ShardedModel: {self.describe()}>"

    def describe(self) -> str:
        return (
            f"{self.count:,} shards, {self.answers:,} answers, {self.n_parameters:,} parameters in "
            f"{self.router.transformer.dtype}"
        )

    def shard(self, number: int) -> Model:
        """One of the models; the few that were asked for last are kept."""
        if number not in self._read:
            while len(self._read) >= KEPT:
                del self._read[next(iter(self._read))]
            self._read[number] = Model(*bundle.read(self.folder / folder_of(number), proof=False))
        return self._read[number]

    def route(self, X: Any) -> Array:
        """[N] The number of the shard that each sequence is sent to, by the router's network."""
        return np.asarray(self.router.predict(X))

    def predict(self, X: Any, lengths: Any = None, **options: Any) -> Any:
        """Answers for sequences, stored or not, in the form of Y, as `Model.predict`. Each shard that has some of
        them is read, and asked once."""
        if lengths is not None:
            needs, found = "sequences of one length, as memorised in shards", "lengths were given"
            raise DataError("data", needs, found, "Give X as it was given to memorize.")
        X = np.asarray(X)
        out: Any = None
        for number, rows in self._groups(self.route(X)):
            answers = np.asarray(self.shard(number).predict(X[rows], **options))
            if out is None:
                out = np.empty((len(X), *answers.shape[1:]), answers.dtype)
            out[rows] = answers
        return out

    @staticmethod
    def _groups(shards: Array) -> Iterator[tuple[int, Array]]:
        order = np.argsort(shards, kind="stable")
        numbers, starts = np.unique(shards[order], return_index=True)
        yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)

    def verify(
        self,
        data: tuple[Any, Any] | None = None,
        require: Iterable[str] = (),
        *,
        cluster: Cluster = 1,
        show: Callable[[Shard], object] = lambda _: None,
        **options: Any,
    ) -> Report:
        """Have the checker decide every shard, by as many processes, or by a cluster; as `onelayer_checker`."""
        parts = None if data is None else self.by_shard(*data)
        return verify_shards(self.folder, parts, require, cluster=cluster, show=show, **options)

    def by_shard(self, X: Any, Y: Any) -> Parts:
        """A person's own data in parts, none left out: each is looked for in its shard, by the checker."""
        X, Y = np.asarray(X), np.asarray(Y)
        return {number: (X[rows], Y[rows]) for number, rows in self._groups(self.route(X))}


def is_sharded(folder: str | os.PathLike[str]) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def load_shards(folder: str | os.PathLike[str]) -> ShardedModel:
    try:
        manifest = read_manifest(folder)
    except Exception as error:
        raise FileError("file", f"a onelayer model in shards at {folder}", str(error), "Build it again.") from None
    router = Model(*bundle.read(Path(folder) / ROUTER, proof=False))
    if router.form.classes != tuple(range(len(manifest.shards))):
        found = f"the router knows another number of shards than {MANIFEST}"
        raise FileError("file", f"a onelayer model in shards at {folder}", found, "Build it again.")
    sequences, answers = (
        sum(getattr(entry, name) for entry in manifest.shards) for name in ("sequences", "answers")
    )
    return ShardedModel(Path(folder), router, sequences, answers)


def load(folder: str | os.PathLike[str]) -> Model | ShardedModel:
    """Read a model, in shards or not; a truncated, edited or mismatched folder is refused by name."""
    return load_shards(folder) if is_sharded(folder) else load_folder(folder)


def _numbers(weights: Path) -> int:
    """How many numbers a file holds, by its header."""
    with safe_open(weights, "numpy") as file:
        return sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118
