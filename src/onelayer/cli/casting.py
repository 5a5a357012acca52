"""The command about fewer bits: which answers survive there."""

from __future__ import annotations

from typing import Annotated

import typer

from onelayer.cli.console import AsJson, Data, Model, about, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.measure.survival import ANSWERS, Cast
from onelayer.measure.survival import cast as cast_model
from onelayer.model import load
from onelayer.problems.tables import read_table


def cast(
    model: Model,
    data: Data,
    dtype: Annotated[Cast, typer.Option(help="The arithmetic that the model would run in.", show_default=False)],
    ask_all: Annotated[
        bool,
        typer.Option("--all", help="Check every answer, however long it takes; by default long lists are sampled."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which answers survive in float16, bfloat16 or int8 (measured). Exit code 1: not all that were asked."""
    with progress() as step:
        step("reading")
        memory = load(model)
        with about(data):
            table = read_table(data)
            memory.read(table.X, table.lengths)  # what is wrong with the data is said with the name of its file
        step("answering")
        answers = None if ask_all else ANSWERS
        report = cast_model(memory, dtype, table.X, table.Y, table.lengths, answers=answers)
    if as_json:
        print_json(report.to_json())
    else:
        say(str(report))
    if not report.perfect:
        raise typer.Exit(ExitCode.NO)
