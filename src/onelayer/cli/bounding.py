"""The command about other people's networks: how far one is from a formula."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from onelayer.cli.console import AsJson, err, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.compile.bound import bound_error


def bound(
    network: Annotated[
        Path, typer.Argument(help="An .onnx file, or a folder that `onelayer` wrote.", show_default=False)
    ],
    formula: Annotated[str, typer.Argument(help='What it should compute, "x - mean(y)".', show_default=False)],
    n: Annotated[int, typer.Option("--n", min=1, help="Tokens of a sequence.", show_default=False)],
    d: Annotated[int, typer.Option("--d", min=1, help="Components of a token.")] = 1,
    low: Annotated[float, typer.Option(help="Every component is at least this.")] = 0.0,
    high: Annotated[float, typer.Option(help="Every component is at most this.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="CPU time; more of it brings the bounds closer.")] = 10.0,
    close: Annotated[float, typer.Option(help="How close to each other the bounds may stay.")] = 0.05,
    tolerance: Annotated[
        float | None, typer.Option(help="Exit code 1 unless the error is proved to be within.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bound how far a network is from a formula on a box: proved from above, attained from below."""
    with progress() as step:
        step("halving boxes")
        found = bound_error(network, formula, n=n, d=d, low=low, high=high, seconds=seconds, close=close)
    if as_json:
        print_json(found.to_json())
    else:
        say(f"proved     the error is at most {found.upper:.6g} on the whole box, in real arithmetic")
        say(f"attained   it is at least {found.lower:.6g}, at {np.round(found.where, 6).tolist()}")
        say(f"{found.boxes:,} boxes, {found.seconds:.1f} CPU s; more --seconds bring the two closer")
    if tolerance is not None and not found.upper <= tolerance:
        err.print(f"no bound within {tolerance:g} was proved", highlight=False)
        raise typer.Exit(ExitCode.NO)
