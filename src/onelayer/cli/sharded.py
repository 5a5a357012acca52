"""Models in shards: the same commands, where --workers or --cluster asks for them, or the folder is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from onelayer.cli.console import about, err, options_for, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.compile.memorize import memorize
from onelayer.errors import DataError, FileError, OptionError
from onelayer.problems.conflicts import OnConflict
from onelayer.problems.tables import Table, read_table, replace_answers, write_answers
from onelayer.sharded.build import Sharding, building_of
from onelayer.sharded.model import is_sharded, load_shards
from onelayer.sharded.verify import verify_shards
from onelayer.sharded.workers import Cluster
from onelayer_checker import Report, Shard, folder_of

Workers = Annotated[int | None, typer.Option(help="In shards: processes of this machine.", show_default=False)]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="In shards: a Dask scheduler, tcp://host:8786.", show_default=False)
]
ShardAnswers = Annotated[int, typer.Option("--shard-answers", help="In shards: answers of each, about.")]
ENDING = "X.npy"


def cluster_of(workers: int | None, cluster: str | None) -> Cluster | None:
    if workers is not None and cluster is not None:
        raise OptionError("memorize", "--workers or --cluster", "both are given", "Leave one of them out.")
    return workers if cluster is None else cluster


def memorize_in_shards(
    data: Path, chosen: tuple[Any, ...], sharding: Sharding, on_conflict: OnConflict, prove: bool, as_json: bool
) -> None:
    """Files X.npy and Y.npy, or a pattern of such names, into a folder of shards."""
    if not data.name.endswith(ENDING):
        needs, found = f"files that end in {ENDING}, answers in Y.npy beside them", f"it is {data.name}"
        raise FileError("data", needs, found, "Convert the data, or leave --workers and --cluster out.")
    answers = data.with_name(f"{data.name.removesuffix(ENDING)}Y.npy")
    out_dir, cluster = sharding["folder"], sharding["cluster"]
    assert cluster is not None
    first = next(iter(sorted(answers.parent.glob(answers.name))), None)
    with progress(lambda: _left(building_of(Path(out_dir)))) as step, about(data):
        known = np.zeros(1) if first is None else np.load(first, mmap_mode="r", allow_pickle=False)[:1]
        options = options_for(data, Table(data.name, known, known), *chosen)
        model = memorize(
            str(data),
            str(answers),
            cluster=cluster,
            folder=out_dir,
            shard_answers=sharding["shard_answers"],
            overwrite=sharding["overwrite"],
            on_conflict=on_conflict,
            certify=prove,
            on_step=step,
            **options,
        )
    if as_json:
        said = {
            "model": str(out_dir),
            "shards": model.count,
            "sequences": model.sequences,
            "answers": model.answers,
        }
        print_json(said | {"parameters": model.n_parameters, "proved": prove})
        return
    say(f"{model.sequences:,} sequences, {model.answers:,} answers from {data}")
    say(f"compiled into {model.describe()}")
    proved = "Proved, shard by shard" if prove else "Claimed, and not proved"
    how = f"--cluster {cluster}" if isinstance(cluster, str) else f"--workers {cluster}"
    say(f"{proved}. Written to {out_dir}. Check it: onelayer verify {out_dir} {how}")


def _left(building: Path) -> str:
    """What Ctrl-C leaves of a build."""
    if not building.exists():
        return "nothing was written"
    return f"there is no model yet. What is finished is kept in {building}. The same command goes on with it."


def refuse_shards(model: Path) -> None:
    """Commands about one certificate: a model in shards has one for each."""
    if is_sharded(model):
        remedy = f"Name one of its shards, such as {model / folder_of(0)}."
        raise FileError("file", "a folder with one certificate", f"{model} is a model in shards", remedy)


def verify_in_shards(
    model: Path, data: Path | None, require: list[str] | None, cluster: Cluster | None, other: bool, **options: Any
) -> tuple[Report, list[str]]:
    """The verdict on all shards, and a line about each; ``other``: options were given that shards do not have."""
    if other:
        needs, remedy = "a model that is not in shards for exports and engines", "Name one of its shards."
        raise OptionError("data", needs, f"{model} is in shards", remedy)
    lines: list[str] = []

    def seen(shard: Shard) -> None:
        lines.append(str(shard))
        step(f"checking: {len(lines):,} shards done")

    with progress() as step:
        parts = None
        if data is not None:
            step("reading")
            with about(data):
                parts = load_shards(model).by_shard(*_read(data))
        by = cluster or os.cpu_count() or 1
        return verify_shards(model, parts, require or [], cluster=by, show=seen, **options), lines


def _read(data: Path) -> tuple[Any, Any]:
    table = read_table(data)
    if table.Y is None:
        raise DataError("data", "answers beside the sequences", "there are none", "Add them.")
    return table.X, table.Y


def predict_in_shards(model: Path, data: Path, out_file: Path | None, check: bool, as_json: bool) -> None:
    """Answers of a model in shards; or how many of them are as in the file."""
    with progress() as step, about(data):
        step("reading")
        memory, table = load_shards(model), read_table(data)
        step("answering")
        answers = memory.predict(table.X, table.lengths)
        if out_file is not None:
            write_answers(out_file, table, answers, memory.form.scope)
        right = (answers == _read(data)[1]) if check else np.ones(1, bool)
    if check:
        counted = {"right": int(right.sum()), "answers": right.size}
        print_json(counted) if as_json else say(f"{right.sum():,} of {right.size:,} answers as in {data}")
        if not right.all():
            err.print(f"the first that is not: sequence {np.nonzero(~right)[0][0]}", markup=False)
            raise typer.Exit(ExitCode.NO)
    elif out_file is not None:
        said = {"written": str(out_file), "sequences": len(table.X)}
        print_json(said) if as_json else say(f"{len(table.X):,} sequences answered, written to {out_file}")
    else:
        _print(table, answers, memory.form.scope, as_json)


def _print(table: Table, answers: Any, scope: Any, as_json: bool) -> None:
    if as_json:
        print_json({"sequences": list(replace_answers(table, answers, scope).records())})
    else:
        write_answers(None, table, answers, scope)
