"""Commands about certificates: have them decided, say them in words, put them on a page."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from onelayer.certificates.explain import explain as explain_folder
from onelayer.certificates.folder import CERTIFICATE
from onelayer.certificates.names import FILE as NAMES
from onelayer.cli.console import AsJson, Model, about, print_json, progress, say
from onelayer.cli.sharded import ClusterOption, Workers, cluster_of, refuse_shards, verify_in_shards
from onelayer.errors import DataError, FileError, MissingExtraError, OptionError
from onelayer.export.bundle import DESCRIPTION
from onelayer.measure.exports import onnx_mismatch, replay, torch_mismatch
from onelayer.measure.report import write_report
from onelayer.model import load
from onelayer.problems.tables import READERS, format_of, read_table
from onelayer.sharded.model import is_sharded
from onelayer_checker import Report, check

#: Files that the checker reads itself; it takes files that are no tables for texts.
READ_THERE = ".jsonl"
CLAIMS = "claims such as 'memorizes', 'memorizes float32' or 'memorizes float32 1e-6'"
Engine = Annotated[
    Literal["numpy", "arb", "both"],
    typer.Option(help="Which engine judges real arithmetic; with both, the two must agree."),
]


def verify(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Option(help="Your own data or text: check that it is what was proved.", show_default=False),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(help='A claim that must be proved: "memorizes float32". May be repeated.', show_default=False),
    ] = None,
    onnx_file: Annotated[Path | None, typer.Option("--onnx", help="Also compare this export, bit for bit.")] = None,
    torch_file: Annotated[Path | None, typer.Option("--torch", help="Also compare this saved state dict.")] = None,
    runtimes: Annotated[
        str,
        typer.Option("--replay", help="Also run the model in: numpy,torch,onnx (this can refute, never prove)."),
    ] = "",
    engine: Engine = "numpy",
    budget: Annotated[float | None, typer.Option(help="Operations that the checker may spend.")] = None,
    memory: Annotated[float | None, typer.Option(help="Bytes of memory that the checker may use.")] = None,
    workers: Workers = None,
    cluster: ClusterOption = None,
    as_json: AsJson = False,
) -> None:
    """Have the independent checker decide a bundle's certificate. Exit code 0 only for VERIFIED."""
    _check_folder(model)
    lines: list[str] = []
    if is_sharded(model):
        other, by = bool(onnx_file or torch_file or runtimes or engine != "numpy"), cluster_of(workers, cluster)
        verdict, lines = verify_in_shards(model, data, require, by, other, budget=budget, memory=memory)
        print_json(verdict.to_json()) if as_json else show_verdict(model, verdict, lines, {})
        raise typer.Exit(verdict.exit_code)
    with progress() as step:
        step("reading")
        given, read_here = given_data(model, data)
        step("checking")
        try:
            verdict = check(
                model,
                data=given,
                require=require or (),
                engine=engine,
                jobs=os.cpu_count() or 1,
                budget=budget,
                memory=memory,
                show=lambda judged: lines.append(str(judged)),
                progress=lambda done, total: step(f"checking: {done:,} of {total:,} sequences"),
            )
        except ValueError as error:
            raise OptionError("data", CLAIMS, str(error), "Correct --require.") from None
        verdict, exports = replace(verdict, notes=(*verdict.notes, *read_here)), {}
        if verdict.gate == "flint":
            raise MissingExtraError(f"--engine {engine}", "python-flint", "exact")
        if verdict.result == "VERIFIED":
            step("comparing exports")
            exports = exports_of(model, onnx_file, torch_file, runtimes)
            verdict = replace(verdict, result="NOT VERIFIED") if any(exports.values()) else verdict
    said = verdict.to_json() | {"exports": exports}
    print_json(said) if as_json else show_verdict(model, verdict, lines, exports)
    raise typer.Exit(verdict.exit_code)


def show_verdict(model: Path, verdict: Report, lines: list[str], exports: dict[str, str]) -> None:
    """A line per claim and export, what the verdict is about, why it is not better, and last the verdict."""
    lines = lines + [
        f"{'REFUSED' if why else 'same'}       {name}{': ' if why else ''}{why}" for name, why in exports.items()
    ]
    for line in [*lines, *(f"note: {note}" for note in verdict.notes), *([verdict.why] if verdict.why else [])]:
        say(line)
    if (model / DESCRIPTION).exists() and not (model / CERTIFICATE).exists():
        say("The model was saved without a certificate: nothing was proved about it.")
    say(verdict.result)


def given_data(model: Path, file: Path | None) -> tuple[Any, list[str]]:
    """What the checker is to compare: it reads JSON lines and texts itself, and gets the arrays of other files."""
    if file is None or file.suffix.lower() == READ_THERE or format_of(file) not in READERS or _has_text(model):
        return file, []
    with about(file):
        table = read_table(file)
        if table.Y is None:
            raise DataError("data", "answers beside the sequences", "there are none", "Add them.")
    said = f"{file.name} was read by onelayer, and its arrays were handed to the checker"
    return (table.X, table.Y, table.lengths), [said]


def _check_folder(model: Path) -> None:
    """A folder that is not there is a mistake and no verdict."""
    if not model.is_dir():
        found = "it is a file" if model.exists() else "there is none"
        raise FileError("file", f"a folder with a model at {model}", found, "Check the name.")


def _has_text(model: Path) -> bool:
    try:
        return json.loads((model / NAMES).read_bytes())["pieces"] is not None
    except (OSError, ValueError, KeyError, TypeError):
        return False  # the checker says what is wrong with it


def exports_of(model: Path, onnx_file: Path | None, torch_file: Path | None, runtimes: str) -> dict[str, str]:
    """What is wrong with each export or runtime; empty where nothing is."""
    found = {}
    if onnx_file is not None:
        found[str(onnx_file)] = onnx_mismatch(model, onnx_file)
    if torch_file is not None:
        found[str(torch_file)] = torch_mismatch(model, torch_file)
    names = [name.strip() for name in runtimes.split(",") if name.strip()]
    found |= {f"replay in {name}": why for name, why in replay(model, names).items()} if names else {}
    return found


def report(
    model: Model,
    out_file: Annotated[Path, typer.Option("--out", help="File for the page.")] = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Have a bundle's certificate decided, and write one page that a person can read."""
    _check_folder(model)
    refuse_shards(model)
    if not out_file.absolute().parent.is_dir():
        raise FileError("file", "a folder that exists", f"there is no {out_file.parent}", "Create it.")
    with progress() as step:
        step("checking")
        verdict = write_report(model, out_file, load=load)
    if as_json:
        print_json(verdict.to_json() | {"written": str(out_file)})
    else:
        say(f"{verdict.result}. The page is {out_file}")
    raise typer.Exit(verdict.exit_code)


def explain(model: Model, as_json: AsJson = False) -> None:
    """Say a bundle's certificate in words: what is claimed, what is assumed, what is not claimed."""
    refuse_shards(model)
    words = explain_folder(model)
    print_json({"model": str(model), "words": words}) if as_json else say(words)
