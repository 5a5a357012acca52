"""The command that changes stored answers: `edit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onelayer.cli.console import AsJson, Model, Overwrite, about, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.cli.memorizing import answers_of
from onelayer.compile.edit import Edit
from onelayer.compile.edit import edit as edit_model
from onelayer.compile.edit import forget as forget_sequences
from onelayer.errors import files_in_words
from onelayer.export.bundle import check_target
from onelayer.model import load
from onelayer.problems.tables import read_table

#: Weights that JSON lists one by one.
LISTED = 1000


def edit(
    model: Model,
    changes: Annotated[Path, typer.Argument(help="Sequences with their new answers.", show_default=False)],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the new model.", show_default=False)],
    forget: Annotated[bool, typer.Option("--forget", help="Give these sequences the default instead.")] = False,
    diff: Annotated[
        Path | None,
        typer.Option(help="File for all weights that differ, JSON lines.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Change stored answers: these and, proved, no others. Exit code 1: that was not proved, nothing is written."""
    check_target(out_dir, overwrite=overwrite)
    with progress() as step, about(changes):
        step("reading")
        before, table = load(model), read_table(changes)
        step("changing answers, and asking the checker")
        if forget:
            made = forget_sequences(before, table.X, table.lengths)
        else:
            made = edit_model(before, table.X, answers_of(table), table.lengths)
        result = made.verify()
        if result == "VERIFIED":
            step("writing")
            made.model.save(out_dir, overwrite=overwrite)
            if diff is not None:
                with files_in_words(diff):
                    diff.write_text(
                        "".join(json.dumps(line) + "\n" for line in list_changes(made)), encoding="utf-8"
                    )
    if as_json:
        said = {"model": str(out_dir), "result": result, "answers": len(made.answers), "in_place": made.in_place}
        said |= {"weights": made.n_weights, "parameters": made.model.n_parameters}
        print_json(said | {"changes": list_changes(made) if made.n_weights <= LISTED else []})
    else:
        these = "this answer" if len(made.answers) == 1 else "these answers"
        say(f"{made}. {result}: {these} changed, and all others are as before.")
        say(f"Written to {out_dir}." if result == "VERIFIED" else "Nothing was written.")
    if result != "VERIFIED":
        raise typer.Exit(ExitCode.NO)


def list_changes(made: Edit) -> list[list[object]]:
    """Each weight that differs: its tensor, its place counted over all of it, what it was and what it is."""
    return [
        [change.tensor, *numbers]
        for change in made.weights
        for numbers in zip(*(a.tolist() for a in change[1:]), strict=True)
    ]
