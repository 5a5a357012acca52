"""Commands about certificates: have them decided, say them in words, put them on a page."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from onelayer.certify.explain import explain as explain_folder
from onelayer.certify.exports import onnx_mismatch, replay, torch_mismatch
from onelayer.certify.folder import CERTIFICATE
from onelayer.certify.report import write_report
from onelayer.cli.console import AsJson, Model, print_json, progress, say
from onelayer.errors import HypothesisError
from onelayer.export.bundle import DESCRIPTION
from onelayer_checker import check


def verify(
    model: Model,
    onnx_file: Annotated[Path | None, typer.Option("--onnx", help="Also compare this export, bit for bit.")] = None,
    torch_file: Annotated[Path | None, typer.Option("--torch", help="Also compare this saved state dict.")] = None,
    runtimes: Annotated[
        str, typer.Option("--replay", help="Also run: numpy,torch,onnx (refutes, never proves).")
    ] = "",
    engine: Annotated[
        Literal["numpy", "arb", "both"], typer.Option(help="Who judges real arithmetic; both must agree.")
    ] = "numpy",
    as_json: AsJson = False,
) -> None:
    """Have the independent checker decide a bundle's certificate. Exit code 0 only for VERIFIED."""
    lines: list[str] = []
    with progress() as step:
        step("checking")
        verdict = check(
            model,
            engine=engine,
            jobs=os.cpu_count() or 1,
            show=lambda judged: lines.append(str(judged)),
            progress=lambda done, total: step(f"checking: {done:,} of {total:,} sequences"),
        )
        exports: dict[str, str] = {}
        if verdict.result == "VERIFIED":
            step("comparing exports")
            exports = exports_of(model, onnx_file, torch_file, runtimes)
            if any(exports.values()):
                verdict = replace(verdict, result="NOT VERIFIED")
    if as_json:
        print_json(verdict.to_json() | {"exports": exports})
    else:
        lines += [
            f"{'REFUSED' if why else 'same'}       {name}{': ' if why else ''}{why}"
            for name, why in exports.items()
        ]
        for line in [*lines, verdict.why] if verdict.why else lines:
            say(line)
        if (model / DESCRIPTION).exists() and not (model / CERTIFICATE).exists():
            say("The model was saved without a certificate: nothing was proved of it.")
        say(verdict.result)
    raise typer.Exit(verdict.exit_code)


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
) -> None:
    """Have a bundle's certificate decided, and write one page that a person can read."""
    if not out_file.absolute().parent.is_dir():
        raise HypothesisError("data", "a folder that exists", f"there is no {out_file.parent}", "Create it.")
    with progress() as step:
        step("checking")
        verdict = write_report(model, out_file)
    say(f"{verdict.result}. The page is {out_file}")
    raise typer.Exit(verdict.exit_code)


def explain(model: Model) -> None:
    """Say a bundle's certificate in words: what is claimed, what is assumed, what is not claimed."""
    say(explain_folder(model))
