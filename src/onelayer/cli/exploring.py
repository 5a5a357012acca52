"""`onelayer explore`: a model as a page to click through."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from onelayer.cli.console import AsJson, Model, Overwrite, about, print_json, progress, say
from onelayer.cli.sharded import refuse_shards
from onelayer.errors import FileError
from onelayer.explorer.page import Page
from onelayer.explorer.serve import Server
from onelayer.model import load
from onelayer.problems.tables import read_table


def explore(
    model: Model,
    data: Annotated[
        Path | None, typer.Option(help="Sequences to step through; by default those that are stored.")
    ] = None,
    race: Annotated[
        Path | None, typer.Option(help="What `onelayer race DATA --json` printed: shows the trained twin, too.")
    ] = None,
    out_file: Annotated[Path, typer.Option("--out", help="File for the page.")] = Path("page.html"),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Write no file: serve the page, and all of the data, to this machine only."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve; 0: any that is free.")] = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write one page that shows how a model answers: open it in a browser, offline."""
    refuse_shards(model)
    if not serve:
        _check_file(out_file, overwrite)
    with progress() as step:
        step("packing")
        page = _page(model, data, race)
        size = 0 if serve else page.save(out_file).stat().st_size
    if serve:
        _serve(page, port, as_json)
    elif as_json:
        print_json({"written": str(out_file), "bytes": size})
    else:
        say(f"{out_file} ({size:,} bytes). Open it in a browser; it needs no network.")


def _check_file(path: Path, overwrite: bool) -> None:
    if not path.absolute().parent.is_dir():
        raise FileError("file", "a folder that exists", f"there is no {path.parent}", "Create it.")
    if path.exists() and not overwrite:
        raise FileError("file", "a new file for the page", f"{path} exists", "Pass --overwrite.")


def _page(model: Path, data: Path | None, race: Path | None) -> Page:
    found = load(model)
    options: dict[str, Any] = {"title": model.resolve().name, "race": None if race is None else _read_race(race)}
    if data is None:
        return found.explore(**options)
    with about(data):
        table = read_table(data)
        return found.explore(table.X, table.lengths, **options)


def _read_race(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(
            "file", "JSON that `onelayer race DATA --json` printed", f"{path}: {error}", "Run it again."
        ) from None


def _serve(page: Page, port: int, as_json: bool) -> None:
    server = Server(page, port)
    print_json({"address": server.address}) if as_json else say(f"{server.address} (Ctrl-C ends it)")
    with server, suppress(KeyboardInterrupt):  # a person ends it
        server.serve_forever()
