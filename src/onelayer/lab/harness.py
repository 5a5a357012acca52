"""Running an experiment: every case and seed once, on all cores or on a cluster, resumed where it stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onelayer.errors import DataError, HypothesisError, MissingExtraError, OnelayerError, OptionError
from onelayer.lab.experiment import Case, Preset, Row, choose_cases, narrow_cases
from onelayer.lab.registry import find
from onelayer.lab.store import Store
from onelayer.sharded.workers import RETRIES, client_of

#: Called with how many pieces of work are done, and of how many.
Progress = Callable[[int, int], None]
DEFAULT_SEEDS = {"quick": 5, "full": 10}
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
    experiment, count = find(name), DEFAULT_SEEDS[preset] if seeds is None else seeds
    if count < 1:
        raise OptionError("lab", "at least one seed", f"seeds={seeds}", "Give 1 or more.")
    if jobs == 0:
        raise OptionError("lab", "at least one process", "jobs=0", "Give 1 or more, or -1 for one per core.")
    cases = narrow_cases(choose_cases(name, experiment, preset, corpus), only)
    store = Store(results, name, preset)
    if fresh:
        store.put_aside()
    store.tidy()
    pending = [(case, seed) for case in cases for seed in range(count) if not store.has(case, seed)]
    total = len(cases) * count
    done = total - len(pending)
    progress(done, total)
    failed: list[tuple[Case, int, OnelayerError]] = []
    for case, seed, rows, seconds in _compute(name, pending, jobs, cluster):
        if isinstance(rows, OnelayerError):
            failed.append((case, seed, rows))
            continue
        store.write(case, seed, rows, seconds)
        done += 1
        progress(done, total)
    if failed:
        raise PieceError.of(name, failed, total)
    return store.rows(cases, count)


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
    joblib = _joblib()
    work = (joblib.delayed(compute)(name, case, seed) for case, seed in pending)
    if cluster is None:
        yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(work)
        return
    # One piece at a time: a batch would be lost as a whole with its worker.
    how = {"n_jobs": -1, "batch_size": 1, "pre_dispatch": "all", "return_as": "generator_unordered"}
    with (
        client_of(cluster, "lab") as client,
        joblib.parallel_config(backend="dask", client=client, retries=RETRIES),
    ):
        yield from joblib.Parallel(**how)(work)


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("The lab", "joblib", "lab") from None
    return joblib
