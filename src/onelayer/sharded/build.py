"""A build in three passes over data that no memory holds: look, send every sequence to its shard, make the shards.

Everything is put together in a folder beside the target. What is finished there stays, with its digests, if the
build is interrupted, and the next one of the same data and options goes on with it. The target appears whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, FileError, HypothesisError, OptionError, files_in_words
from onelayer.problems.answers import AnswerForm
from onelayer.problems.conflicts import OnConflict
from onelayer.search.options import check_options
from onelayer.search.problem import Options, read_problem
from onelayer.sharded.model import ShardedModel, load_shards
from onelayer.sharded.router import Places, draw_router
from onelayer.sharded.source import Source, read_source
from onelayer.sharded.tasks import MOST_NAMES, Job, Made, look, make, spill
from onelayer.sharded.workers import Cluster, Workers, workers_of
from onelayer_checker import MANIFEST, ROUTER, SHARDS_FORMAT, folder_of

Array = NDArray[Any]
Step = Callable[[str], None]
#: Answers of a shard, about; and sequences by which steps and shards are chosen, and options tried.
SHARD_ANSWERS, SAMPLE, FEW = 1 << 21, 1 << 14, 16


class Sharding(TypedDict, total=False):
    """What `memorize` takes for data that no memory holds.

    X and Y are .npy files, patterns of their names, lists of them, or mapped arrays; or X is an iterator of pairs
    of blocks, and Y None. Sequences have one length; answers may be vectors of numbers. With certify=False a shard
    claims its answers, and `verify` decides; else its worker has them proved. What was finished when a build is
    interrupted, the same call takes up.

    cluster        a number of processes, the address of a Dask scheduler, or its client; its workers need this
                   package, and see the same files and folders
    folder         where the model is written
    shard_answers  answers of a shard, about
    overwrite      whether a model that is there may be replaced
    """

    cluster: Cluster | None
    folder: str | os.PathLike[str]
    shard_answers: int
    overwrite: bool


@dataclass(frozen=True)
class Asked:
    """What is asked for besides the data."""

    options: Options
    on_conflict: OnConflict
    prove: bool
    compile: Callable[..., Any]

    def digest(self, source: Source, size: int) -> str:
        chosen = sorted((name, str(value)) for name, value in self.options.items())
        said = [source.fingerprint(), chosen, self.on_conflict, self.prove, size]
        return hashlib.sha256(json.dumps([*said, version("onelayer"), WORKING_FORMAT]).encode()).hexdigest()


#: Of the files of a build that is going on; another number when they change.
WORKING_FORMAT = 1


def build_shards(X: Any, Y: Any, asked: Asked, sharding: Sharding, on_step: Step | None) -> ShardedModel:
    """The model in shards, in the folder that is asked for."""
    say, target, size = on_step or (lambda _: None), _target(sharding), sharding.get("shard_answers", SHARD_ANSWERS)
    cluster = sharding["cluster"]
    assert cluster is not None
    if asked.options.get("lengths") is not None:
        needs, found = "sequences of one length for a build in shards", "lengths were given"
        raise OptionError("memorize", needs, found, "Leave cluster out, or sort the sequences by length first.")
    if type(size) is not int or size < 1:
        needs, found = "at least one answer to a shard", f"shard_answers={size!r}"
        raise OptionError("memorize", needs, found, "Give a whole number, such as 2000000.")
    building = building_of(target)
    with (
        _clear_refused_build(building),
        files_in_words(building),
        _hold_alone(building),
        workers_of(cluster) as workers,
    ):
        source = read_source(X, Y, building / "given")
        _same_job(building, asked.digest(source, size))
        job = _job(building, source, asked, size, workers, say)
        blocks = source.blocks()
        for done, _ in enumerate(workers.run(partial(spill, job=job), blocks), 1):
            say(f"sending sequences to {job.router.count} shards: {done} of {len(blocks)} blocks")
        made = _make_shards(building, job, workers, say)
        _finish(building, target, job, made)
    return load_shards(target)


def building_of(target: Path) -> Path:
    """The hidden folder in which a model is put together."""
    return target.absolute().with_name(f".{target.name}.shards")


@contextmanager
def _clear_refused_build(building: Path) -> Iterator[None]:
    """A build that is refused would be refused again, so it leaves nothing; what an earlier one finished stays."""
    is_new = not building.exists()
    try:
        yield
    except (DataError, HypothesisError, OptionError):
        if is_new:
            shutil.rmtree(building, ignore_errors=True)
        raise


def _target(sharding: Sharding) -> Path:
    """The folder, which must not hold anything that nobody wants to be replaced."""
    folder = os.fspath(sharding.get("folder", ""))
    if not folder:
        needs, found = "a folder for a model in shards", "folder was left out"
        raise OptionError("memorize", needs, found, 'Pass folder="model".')
    target = Path(folder)
    if target.exists() and not (target / MANIFEST).is_file():
        found = f"{target} exists and is not a model in shards"
        raise FileError("file", "a new folder for the model", found, "Choose another folder.")
    if target.exists() and not sharding.get("overwrite"):
        raise FileError("file", "a new folder for the model", f"{target} exists", "Pass overwrite=True.")
    return target


@contextmanager
def _hold_alone(building: Path) -> Iterator[None]:
    """One build at a time."""
    building.mkdir(parents=True, exist_ok=True)
    lock = building / "process"
    try:
        import fcntl
    except ImportError:  # there are no such locks on this system
        yield
        return
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found = f"another process builds in {building}"
            raise FileError("file", "a folder in which nobody else builds", found, "Wait for it.") from None
        yield


def _same_job(building: Path, digest: str) -> None:
    """Keep what is there if it is of the same data and options, else clear it away."""
    said = building / "job"
    if said.is_file() and said.read_text() == digest:
        return
    for path in building.iterdir():
        if path.name not in ("given", "process"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    said.write_text(digest)


def _job(building: Path, source: Source, asked: Asked, size: int, workers: Workers, say: Step) -> Job:
    """Look at everything once, and choose the router."""
    dtype, seed, seen = _dtype(asked.options, source), asked.options.get("seed", 0), None
    sample, _ = source.sample(SAMPLE)
    places = Places.draw(sample.reshape(-1, sample.shape[-1]), seed) if source.is_real else None
    blocks = source.blocks()
    for done, (_, found) in enumerate(workers.run(partial(look, places=places), blocks), 1):
        seen = found if seen is None else seen.merged(found)
        say(f"looking at the data: {done} of {len(blocks)} blocks")
    assert seen is not None
    vocabulary = _names(seen.words, "tokens")
    classes = _names(seen.answers, "classes")
    form = AnswerForm("token" if source.per_token else "sequence", classes, source.width, False)
    width = sample.shape[2] if vocabulary is None else len(vocabulary)
    router = draw_router(seen.places, source.n, width, dtype, seed)
    shards = max(1, round(source.N * (source.n if source.per_token else 1) / size))
    options = Options(**{**asked.options, "dtype": str(dtype), "scope": form.scope})
    job = Job(str(building), router, vocabulary, form, options, asked.on_conflict, asked.prove, asked.compile)
    return replace(job, router=router.cut(router.sums(job.words(sample)), shards))


def _dtype(options: Options, source: Source) -> np.dtype[Any]:
    """As asked for, if these options can be met at all; else float32, if the files hold nothing longer."""
    problem = read_problem(*source.sample(FEW), options)
    if problem.logits:
        needs, found = "class numbers, in shards", "logits were asked for"
        raise OptionError("memorize", needs, found, "Leave logits out; with_logits adds them to a loaded shard.")
    check_options(problem)
    if not problem.dtype_is_free:
        return problem.dtype
    X, Y = source.mapped[0]
    longer = (source.is_real and X.dtype != np.float32) or (Y.dtype.kind == "f" and Y.dtype != np.float32)
    return np.dtype(np.float64 if longer else np.float32)


def _names(found: Array | None, what: str) -> tuple[Any, ...] | None:
    if found is not None and len(found) > MOST_NAMES:
        raise DataError(
            "data", f"at most {MOST_NAMES:,} {what}", f"there are {len(found):,}", "Merge some of them."
        )
    return None if found is None else tuple(found.tolist())


def _make_shards(building: Path, job: Job, workers: Workers, say: Step) -> list[Made]:
    """All shards; those that an interrupted build finished are compared with their digests and kept."""
    records = building / "records"
    records.mkdir(exist_ok=True)
    kept = {k: made for k in range(job.router.count) if (made := _read_finished(building, records, k)) is not None}
    left = [k for k in range(job.router.count) if k not in kept]
    if kept:
        say(f"{len(kept)} of {job.router.count} shards are there already")
    for _, made in workers.run(partial(make, job=job), left):
        part = records / f"{made.number}.part"
        part.write_text(json.dumps(asdict(made) | {"files": _digests(building / folder_of(made.number))}))
        part.rename(records / f"{made.number}.json")
        kept[made.number] = made
        say(f"making shards: {len(kept)} of {job.router.count}")
    return [kept[k] for k in range(job.router.count)]


def _read_finished(building: Path, records: Path, number: int) -> Made | None:
    try:
        said = json.loads((records / f"{number}.json").read_text())
        files = said.pop("files")
        return Made(**said) if _digests(building / folder_of(number)) == files else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digests(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _finish(building: Path, target: Path, job: Job, made: list[Made]) -> None:
    """Router and manifest; then everything else goes, and the folder takes its place."""
    router = job.router.model(job.vocabulary)
    shutil.rmtree(building / ROUTER, ignore_errors=True)
    router.save(building / ROUTER)
    weights = (building / ROUTER / "model.safetensors").read_bytes()
    listed = [
        {"sha256": one.sha256, "bytes": one.bytes, "sequences": one.sequences, "answers": one.answers}
        for one in made
    ]
    manifest = {
        "format": SHARDS_FORMAT,
        "router": hashlib.sha256(weights).hexdigest(),
        "names": made[0].names,
        "shards": listed,
        "sequences": sum(one.sequences for one in made),
        "answers": sum(one.answers for one in made),
    }
    (building / MANIFEST).write_text(json.dumps(manifest, indent=1))
    wanted = {MANIFEST, ROUTER, *(folder_of(one.number) for one in made)}
    for path in building.iterdir():
        if path.name not in wanted:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _take_place(building, target)


def _take_place(building: Path, target: Path) -> None:
    """The folder holds the old model or the new one, whatever happens."""
    if not target.exists():
        building.rename(target)
        return
    old = target.with_name(f".{target.name}.former")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    building.rename(target)
    shutil.rmtree(old, ignore_errors=True)
