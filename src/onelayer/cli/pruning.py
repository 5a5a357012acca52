"""The command that removes weights: `prune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onelayer.cli.console import AsJson, Model, Overwrite, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.compile.prune import prune as prune_model
from onelayer.export.bundle import check_target
from onelayer.interfaces import Function
from onelayer.model import load


def prune(
    model: Model,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the smaller model.", show_default=False)],
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="How far it may be off: from the function (default: as was asked for), or from real answers.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Remove weights that a certified model can do without; the checker proves what is left."""
    check_target(out_dir, overwrite=overwrite)
    with progress() as step:
        step("reading")
        made = prune_model(load(model), tolerance, step)
        step("asking the checker again")
        result = made.verify()
        if result == "VERIFIED":
            made.model.save(out_dir, overwrite=overwrite)
    if as_json:
        said = {"model": str(out_dir), "result": result, "parameters": made.model.n_parameters}
        said |= {"removed": made.n_removed, "zeros": made.zeros}
        bound = made.model.error_bound if isinstance(made.model.interface, Function) else None
        print_json(said | {"error_bound": bound})
    else:
        say(f"{made}. {result}.")
        say(f"Written to {out_dir}." if result == "VERIFIED" else "Nothing was written.")
    if result != "VERIFIED":
        raise typer.Exit(ExitCode.NO)
