"""Running an experiment: every case and seed once, on all cores or on a cluster, resumed where it stopped."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onelayer.errors import (
    DataError,
    HypothesisError,
    MissingExtraError,
    OnelayerError,
    OptionError,
    files_in_words,
)
from onelayer.lab.experiment import Case, Preset, Row, choose_cases, narrow_cases
from onelayer.lab.registry import find
from onelayer.lab.store import Piece, Store
from onelayer.problems.tables import read_table
from onelayer.sharded.workers import workers_of

#: Called with how many pieces of work are done, and of how many.
Progress = Callable[[int, int], None]
DEFAULT_SEEDS = {"quick": 5, "full": 10}
#: What is imported of an extra.
MODULES = {
    "lab": ("joblib", "pyarrow", "matplotlib"),
    "torch": ("torch",),
    "sklearn": ("sklearn", "scipy"),
    "exact": ("flint",),
}
#: What a piece gave: its case and seed, its rows or why there are none, and its CPU seconds.
Computed = tuple[Case, int, list[Row] | OnelayerError, float]


class PieceError(OnelayerError):
    """Some pieces of an experiment could not be computed; the others are kept."""

    @classmethod
    def of(cls, name: str, failed: list[tuple[Case, int, OnelayerError]], total: int) -> PieceError:
        case, seed, error = failed[0]
        where = ", ".join(f"{key}={value}" for key, value in case.items())
        found = f"{len(failed)} of {total} did not, the first with {where}, seed {seed}: {str(error).rstrip('.')}"
        return cls(f"lab: {name}", "all of its pieces to end", found, "The others are kept.")


@dataclass(frozen=True)
class Plan:
    """What is to be computed of an experiment, and where its rows are kept."""

    cases: list[Case]
    seeds: int
    store: Store

    @property
    def wanted(self) -> list[tuple[Case, int]]:
        return [(case, seed) for case in self.cases for seed in range(self.seeds)]

    def pending(self) -> list[tuple[Case, int]]:
        return [(case, seed) for case, seed in self.wanted if not self.store.has(case, seed)]

    def pieces(self) -> list[Piece]:
        return self.store.pieces_of(self.cases, self.seeds)

    def make_room(self, fresh: bool = False) -> None:
        """A folder that can be written, without what a killed run has left, and with whole files only."""
        if fresh:
            self.store.put_aside()
        with files_in_words(self.store.folder):
            self.store.make()
        self.store.tidy()
        self.pieces()


def plan_of(
    name: str,
    preset: Preset = "quick",
    *,
    seeds: int | None = None,
    results: Path = Path("lab-results"),
    corpus: Path | None = None,
    only: Sequence[str] = (),
) -> Plan:
    """What there is to do for these options, whether or not it can be done here."""
    experiment, count = find(name), DEFAULT_SEEDS[preset] if seeds is None else seeds
    if count < 1:
        raise OptionError("lab", "at least one seed", f"seeds={seeds}", "Give 1 or more.")
    if corpus is not None and hasattr(experiment, "of_corpus"):
        require_labels(corpus)
    cases = narrow_cases(choose_cases(name, experiment, preset, corpus), only)
    return Plan(cases, count, Store(results, name, preset))


def prepare(
    name: str, preset: Preset = "quick", *, jobs: int = -1, cluster: str | None = None, **options: Any
) -> Plan:
    """What `run` will do; whatever can be wrong with its options is an error here, before any work."""
    plan = plan_of(name, preset, **options)
    if jobs == 0:
        raise OptionError("lab", "at least one process", "jobs=0", "Give 1 or more, or -1 for one per core.")
    require_extras(name, ("lab",) if cluster else ("lab", *find(name).EXTRAS))
    return plan


def require_labels(corpus: Path) -> None:
    """A file that is no corpus is an error once, not in every piece of work."""
    with files_in_words(corpus):
        records = list(read_table(corpus).records())
    bare = next((i for i, record in enumerate(records, 1) if "answers" not in record), None)
    if bare is not None or not records:
        found = f"sentence {bare} of {corpus} has none" if bare else f"{corpus} holds none"
        remedy = "Give a file in CoNLL's form: a word and its label on a line, an empty line after a sentence."
        raise DataError("lab", "sentences with a label a word", found, remedy)


def require_extras(name: str, extras: Sequence[str]) -> None:
    """A package that is missing is named before hours of work, not after."""
    for extra in extras:
        for module in MODULES.get(extra, ()):
            if (module in sys.modules and sys.modules[module] is None) or not importlib.util.find_spec(module):
                raise MissingExtraError(f"The experiment {name} of the lab", module, extra)


def run(
    name: str,
    preset: Preset = "quick",
    *,
    seeds: int | None = None,
    results: Path = Path("lab-results"),
    jobs: int = -1,
    cluster: str | None = None,
    fresh: bool = False,
    corpus: Path | None = None,
    only: Sequence[str] = (),
    progress: Progress = lambda *_: None,
) -> list[Row]:
    """The rows of an experiment; those that lie in ``results`` already are not computed again.

    ``cluster`` is the address of a Dask scheduler, whose workers need this package installed. A worker that dies
    loses nothing but time: its pieces go to the others. ``corpus`` is for experiments that read one; ``only``
    leaves the settings that have such values ("size=2000"), to run a long preset in parts. A piece that cannot be
    computed is an error when all others have been.
    """
    plan = prepare(name, preset, seeds=seeds, results=results, jobs=jobs, cluster=cluster, corpus=corpus, only=only)
    plan.make_room(fresh)
    pending, total = plan.pending(), len(plan.wanted)
    done = total - len(pending)
    progress(done, total)
    failed: list[tuple[Case, int, OnelayerError]] = []
    for case, seed, rows, seconds in _compute(name, pending, jobs, cluster):
        if isinstance(rows, OnelayerError):
            failed.append((case, seed, rows))
            continue
        plan.store.write(case, seed, rows, seconds)
        done += 1
        progress(done, total)
    if failed:
        raise PieceError.of(name, failed, total)
    return [row for piece in plan.pieces() for row in piece.rows]


def compute(name: str, case: Case, seed: int) -> Computed:
    """One piece of work, perhaps on another machine."""
    with contextlib.suppress(ImportError):  # one thread each: the pieces are what runs side by side
        import torch

        torch.set_num_threads(1)
    start = time.process_time()  # what it costs, whatever else the machine does
    try:
        rows: list[Row] | OnelayerError = find(name).run(case, seed)
    except (HypothesisError, DataError) as error:  # of this piece alone; others may have none
        rows = error
    return case, seed, rows, time.process_time() - start


def _compute(name: str, pending: list[tuple[Case, int]], jobs: int, cluster: str | None) -> Iterator[Computed]:
    """Results as they come, in any order."""
    if not pending:
        return
    if cluster is None:
        joblib = _joblib()
        work = (joblib.delayed(compute)(name, case, seed) for case, seed in pending)
        yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(work)
        return
    with workers_of(cluster, "lab") as workers:
        for _, found in workers.run(partial(_compute_piece, name), pending):
            yield found


def _compute_piece(name: str, piece: tuple[Case, int]) -> Computed:
    return compute(name, *piece)


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("The lab", "joblib", "lab") from None
    return joblib
