"""The commands that compile data: `memorize`, and `plan`, which says before what that will take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onelayer.cli.console import (
    AsJson,
    Data,
    Default,
    Dtype,
    FalseHits,
    LogitsOption,
    MappingOption,
    OnConflictOption,
    Overwrite,
    Positions,
    Rank,
    ReadoutOption,
    Seed,
    about,
    err,
    in_options,
    options_for,
    print_json,
    progress,
    say,
)
from onelayer.cli.exit_codes import ExitCode
from onelayer.cli.sharded import ClusterOption, ShardAnswers, Workers, cluster_of, memorize_in_shards
from onelayer.compile.memorize import memorize as memorize_data
from onelayer.compile.memorize import settle_conflicts
from onelayer.compile.planning import plan as plan_data
from onelayer.errors import DataError, FileError, files_in_words
from onelayer.export.bundle import check_target
from onelayer.measure.recall import Recall, recall_answers
from onelayer.model import Model
from onelayer.problems.answers import Answers, read_answers
from onelayer.problems.conflicts import Settled
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.problems.tables import Table, read_table
from onelayer.sharded.build import SHARD_ANSWERS, Sharding


def memorize(
    data: Data,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    rank: Rank = None,
    dtype: Dtype = "auto",
    mapping: MappingOption = "auto",
    readout: ReadoutOption = "auto",
    positions: Positions = None,
    default: Default = None,
    false_hits: FalseHits = None,
    logits: LogitsOption = False,
    on_conflict: OnConflictOption = "refuse",
    conflicts_file: Annotated[
        Path | None,
        typer.Option("--conflicts", help="File for the list of conflicts, JSON lines.", show_default=False),
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    certificate: Annotated[
        bool | None, typer.Option(help="Write a certificate beside the weights; by default if it can be proved.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="How far certified real answers may be off; by default by rounding only."),
    ] = None,
    workers: Workers = None,
    cluster: ClusterOption = None,
    shard_answers: ShardAnswers = SHARD_ANSWERS,
    as_json: AsJson = False,
) -> None:
    """Compile sequences and answers into a one-layer model, check every answer, and certify it."""
    chosen = (rank, dtype, mapping, readout, positions, default, false_hits, seed, logits)
    if (by := cluster_of(workers, cluster)) is not None:
        sharding = Sharding(cluster=by, folder=out_dir, shard_answers=shard_answers, overwrite=overwrite)
        memorize_in_shards(data, chosen, sharding, on_conflict, certificate is not False, as_json)
        return
    check_target(out_dir, overwrite=overwrite)
    check_conflicts_file(conflicts_file, overwrite)
    with progress() as step, about(data):
        step("reading")
        table = read_table(data)
        options = options_for(data, table, *chosen)
        read = data_of(table)
        if conflicts_file is not None:
            write_conflicts(
                conflicts_file,
                settle_conflicts(*read, "first" if on_conflict == "refuse" else on_conflict, options),
            )
        given = settle_conflicts(*read, on_conflict, options)
        model = memorize_data(
            *read, on_conflict=on_conflict, certify=certificate, tolerance=tolerance, on_step=step, **options
        )
        step("asking for every answer")
        measured = recall_answers(model, given.sequences, given.answers)
        step("writing")
        model.save(out_dir, overwrite=overwrite)
    show_memorized(model, table, data, out_dir, given, measured, certificate is None, as_json)
    if not measured.perfect:
        err.print(f"the first wrong answer: {measured.first_wrong}", markup=False)
        raise typer.Exit(ExitCode.NO)


def check_conflicts_file(path: Path | None, overwrite: bool) -> None:
    if path is not None and path.exists() and not overwrite:
        raise FileError("file", "a new file for the conflicts", f"{path} exists", "Pass --overwrite.")


def show_memorized(
    model: Model,
    table: Table,
    data: Path,
    out_dir: Path,
    given: Settled,
    measured: Recall,
    by_itself: bool,
    as_json: bool,
) -> None:
    """What was made of the data: four lines, and one about conflicts if there were any."""
    claims = [] if model.certificate is None else list(model.certificate.verdicts)
    unproved = f"Not certified: {model.ledger.meaning('certified')}" if not claims and by_itself else ""
    if as_json:
        said = {"model": str(out_dir), "right": measured.right, "answers": measured.total, "claims": claims}
        said |= {"conflicts": len(given.conflicts)} if given.how != "refuse" else {}
        said |= {"not_certified": unproved} if unproved else {}
        print_json({**said, "ledger": model.ledger.to_json()})
        return
    say(table.source)
    if given.conflicts:
        say(f"{len(given.conflicts):,} {in_options(model.ledger.meaning('conflicts'))}")
    say(f"compiled into {model.describe()}")
    say(f"{measured} (measured). Written to {out_dir}; `onelayer inspect {out_dir}` lists every constant.")
    if claims:
        about_file = "" if given.conflicts else f" --data {data}"  # what is proved is not all that the file says
        say(f"{len(claims)} claims proved. Check them again: onelayer verify {out_dir}{about_file}")
    elif unproved:
        say(in_options(unproved))


def plan(
    data: Data,
    rank: Rank = None,
    dtype: Dtype = "auto",
    mapping: MappingOption = "auto",
    readout: ReadoutOption = "auto",
    positions: Positions = None,
    default: Default = None,
    false_hits: FalseHits = None,
    logits: LogitsOption = False,
    on_conflict: OnConflictOption = "refuse",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Say before compiling what it will take. Exit code 1: no such model can satisfy the data, and why."""
    with progress() as step, about(data):
        step("reading")
        table = read_table(data)
        chosen = (rank, dtype, mapping, readout, positions, default, false_hits, seed, logits)
        options = options_for(data, table, *chosen)
        result = plan_data(*data_of(table), on_conflict=on_conflict, on_step=step, **options)
    if as_json:
        print_json(result.to_json())
    else:
        say(in_options(str(result)))
    if not result.possible:
        raise typer.Exit(ExitCode.NO)


def write_conflicts(path: Path, given: Settled) -> None:
    """All conflicts, one a line; an empty file where there are none."""
    with files_in_words(path):
        path.write_text("".join(given.lines()), encoding="utf-8")


def answers_of(table: Table) -> Any:
    if table.Y is None:
        raise DataError("data", "answers beside the sequences", "there are none", "Add a column of answers.")
    return table.Y


def data_of(table: Table) -> tuple[Sequences, Answers]:
    """What is in the file, read once for all that follows."""
    sequences = read_sequences(table.X, table.lengths)
    return sequences, read_answers(answers_of(table), sequences, table.scope)
