"""`onelayer race`: the same data compiled and trained, side by side."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table as Grid

from onelayer.cli.console import AsJson, Data, Positions, Seed, about, err, out, print_json, say
from onelayer.errors import DataError
from onelayer.lab.race import Outcome, Runner
from onelayer.lab.race import race as run_race
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.problems.tables import Table, read_table

SHOWN = 5  # merged contexts that are named


def race(
    data: Data,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of the training.")] = 10.0,
    width: Annotated[
        int | None,
        typer.Option(min=1, help="Width of the twin; by default it has as many parameters, and width 32 at least."),
    ] = None,
    scaled: Annotated[bool, typer.Option(help="Divide the logits of the twin by sqrt(s), as usual.")] = True,
    positions: Positions = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compile the data, and train a twin (one layer, one head, Adam) on it; where it stalls, say what it merged."""
    table = read_table(data)
    if table.Y is None:
        raise DataError("data", "answers beside the sequences", "there are none", "Add a column of answers.")
    watched = err.is_terminal and not as_json
    with about(data), Live(console=err, transient=True, refresh_per_second=8) if watched else nullcontext() as live:

        def show(*runners: Runner) -> None:
            if live is not None:
                live.update(_grid(*runners))

        options: dict[str, Any] = {"positions": positions, "scope": table.scope, "seed": seed, "seconds": seconds}
        options |= {"width": width, "scaled": scaled}
        outcome = run_race(table.X, table.Y, table.lengths, show=show, **options)
    if as_json:
        print_json(_as_json(outcome))
        return
    out.print(_grid(outcome.compiled, outcome.trained))
    say(_says(outcome, table))


def _grid(*runners: Runner) -> Grid:
    grid = Grid(box=None, header_style="bold")
    for name in ("", "seconds", "right answers", "parameters", ""):
        grid.add_column(name, justify="right" if name else "left")
    for runner in runners:
        right = f"{runner.right:,} of {runner.answers:,}"
        grid.add_row(runner.name, f"{runner.seconds:.3f}", right, f"{runner.parameters:,}", runner.note)
    return grid


def _says(outcome: Outcome, table: Table) -> str:
    twin, compiled = outcome.trained, outcome.compiled
    how = f"Adam, rate {outcome.rate:g}, {outcome.steps:,} steps after trying rates"
    if twin.done:
        time, size = twin.seconds / compiled.seconds, twin.parameters / compiled.parameters
        cost = f"after {time:,.3g} times the time and with {size:,.3g} times the parameters (measured)"
        return f"\nThe twin ({how}) knows every answer too, {cost}."
    if not outcome.steps:
        return "\nThe twin had no time to train after rates were tried: give it more --seconds."
    lines = [f"\nThe twin ({how}) is wrong at {len(outcome.wrong):,} of {twin.answers:,} places (measured)."]
    if not outcome.merged:
        return "\n".join([*lines, "Its attention keeps their contexts apart: more steps or units may help."])
    lines.append(
        "Its attention has merged contexts whose answers differ; what comes after it sees (nearly) one point:"
    )
    sequences = read_sequences(table.X, table.lengths)
    for merge in outcome.merged[:SHOWN]:
        apart = "equal bit for bit" if merge.distance == 0 else f"{merge.distance:.2g} apart"
        lines.append(f"  {_place(sequences, merge.a)}  and  {_place(sequences, merge.b)}: {apart}")
    if len(outcome.merged) > SHOWN:
        lines.append(f"  and {len(outcome.merged) - SHOWN:,} more pairs")
    return "\n".join(lines)


def _place(sequences: Sequences, place: Any) -> str:
    """A token in its company."""
    count = sequences.n if sequences.lengths is None else int(sequences.lengths[place.i])
    tokens = ", ".join(sequences.show(place.i, k) for k in range(min(count, 8)))
    return f"{sequences.show(place.i, place.k)} in [{tokens}{', ...' if count > 8 else ''}] (sequence {place.i})"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    def side(runner: Runner) -> dict[str, Any]:
        names = ("seconds", "right", "answers", "parameters")
        return {name: getattr(runner, name) for name in names}

    merged = [
        {"a": [m.a.i, m.a.k], "b": [m.b.i, m.b.k], "distance": m.distance, "bit_equal": m.distance == 0}
        for m in outcome.merged
    ]
    trained = {**side(outcome.trained), "rate": outcome.rate, "steps": outcome.steps}
    found = {"compiled": side(outcome.compiled), "trained": trained, "wrong": outcome.wrong, "merged": merged}
    return {**found, "contexts": outcome.contexts.tolist()}
