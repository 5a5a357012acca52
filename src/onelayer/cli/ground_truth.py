"""The command `ground-truth`: models whose mechanism is known, and scores for what tools find in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from onelayer import ground_truth
from onelayer.cli.console import AsJson, Overwrite, Seed, print_json, progress, say
from onelayer.errors import DataError, files_in_words

app = typer.Typer(name="ground-truth", help="Models whose mechanism is known, and scores for what tools find.")
Folder = Annotated[Path, typer.Argument(help="A folder that `ground-truth make` wrote.", show_default=False)]


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """Families of models, gauges that mix their channels, and baselines that ship."""
    families = {name: (family.__doc__ or "").strip() for name, family in ground_truth.FAMILIES.items()}
    others: dict[str, list[str]] = {
        "gauges": list(ground_truth.GAUGES),
        "baselines for directions": list(ground_truth.DIRECTIONS),
        "baselines for edges": list(ground_truth.EDGES),
    }
    if as_json:
        print_json({"families": families, **others})
        return
    for name, words in families.items():
        say(f"{name:8} {words}")
    for kind, names in others.items():
        say(f"{kind}: {', '.join(names)}")


@app.command()
def make(
    family: Annotated[str, typer.Argument(help="A family (`ground-truth list`).", show_default=False)],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    gauge: Annotated[str, typer.Option(help="How the channels are mixed.")] = "none",
    heads: Annotated[int, typer.Option(min=1, help="Heads that share the work.")] = 1,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make a model of the suite, have it proved, and write its mechanism beside it (mechanism.json)."""
    with progress() as step:
        step("compiling and proving")
        case = ground_truth.make(family, seed, gauge, heads)
        ground_truth.save_case(case, out_dir, overwrite=overwrite)
    said = {"written": str(out_dir), "channels": list(case.mechanism.channels), "proved": case.proved}
    words = "proved" if case.proved else f"not proved; {case.wrong()} of {case.Y.size} wrong (measured)"
    shown = f"{len(case.mechanism.channels)} channels, {len(case.mechanism.edges)} edges, answers {words}"
    print_json(said) if as_json else say(f"{shown}. Written to {out_dir}")


@app.command()
def score(
    folder: Folder,
    found: Annotated[
        Path | None,
        typer.Option(help="What your tool found: directions (k, width) in a .npy file.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score directions that a tool found in the stream after attention, beside the baselines."""
    case = ground_truth.load_case(folder)
    scores: dict[str, Any] = {}
    if found is not None:
        with files_in_words(found):
            given = np.load(found, allow_pickle=False)
        width = len(case.mechanism.channels)
        if given.ndim != 2 or given.shape[1] != width:
            needs, shape = f"directions of {width} numbers, [k, {width}]", f"{found} has shape {given.shape}"
            raise DataError("data", needs, shape, "Transpose it, or look at the stream after attention.")
        scores[found.name] = ground_truth.match_directions(given, case)
    with progress() as step:
        for name in ground_truth.DIRECTIONS:
            step(name)
            scores[name] = ground_truth.match_directions(ground_truth.find(name, case), case)
        ranked = {name: ground_truth.score_edges(name, case) for name in ground_truth.EDGES}
    edges = {name: ground_truth.edge_score(found_edges, case) for name, found_edges in ranked.items()}
    if as_json:
        print_json({"directions": scores, "edges": edges})
        return
    for name, value in scores.items():
        say(f"{name:12} {value:.2f}  channels found, 1 is all")
    for name, value in edges.items():
        say(f"{name:12} {value:.2f}  edges ranked, 0.5 is chance")
