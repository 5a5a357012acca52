"""The command `inspect`: what a model is made of, down to what every unit means."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onelayer.cli import pictures
from onelayer.cli.console import AsJson, err, out, print_json
from onelayer.cli.console import Model as Folder
from onelayer.errors import OptionError
from onelayer.measure.gaps import NAMED, gaps_of, name_gaps
from onelayer.model import Model, load

FEW_UNITS = 4  # this many channels are shown with every name


def inspect(
    model: Folder,
    picture: Annotated[
        Path | None,
        typer.Option(help="Also draw the gaps and the readout into this .png or .svg file.", show_default=False),
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(help="Only the name of every channel of this value, such as readout.3.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model is made of: constants, gadgets, what every unit means, which contexts come closest."""
    if picture is not None:
        pictures.check_picture(picture)
    memory = load(model)
    if units is not None:
        print_json({"units": list(names_of(memory, units))}) if as_json else list_units(out, memory, units)
    elif as_json:
        shapes = {name: list(a.shape) for name, a in memory.transformer.tensors()}
        gadgets = [part.covered.to_json() for stack in memory.parts.values() for part in stack]
        said = {"parameters": memory.n_parameters, "shapes": shapes, "gadgets": gadgets}
        print_json({**said, "values": values(memory), "gaps": gaps(memory), "ledger": memory.ledger.to_json()})
    else:
        pictures.summary(out, memory)
        network(out, memory)
        pictures.show_gaps(out, memory)
    if picture is not None:
        memory.plot().savefig(picture, dpi=150)
        err.print(f"picture written to {picture}", markup=False)


def network(console: Console, model: Model) -> None:
    """Every value of the forward pass: which gadget makes it, of how many numbers, and what its channels mean."""
    table = Table(title="The network, from tokens to answers", title_justify="left", show_edge=False)
    for name, side in (("value", "left"), ("made by", "left"), ("numbers", "right"), ("channels", "right")):
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("which mean")
    for line in model.described():
        words = [name.removeprefix(f"{line.value.partition('.')[0]} / {line.made_by} / ") for name in line.units]
        said = ", ".join(words) if len(words) <= FEW_UNITS else f"{words[0]}, {words[1]}, ... {words[-1]}"
        row = (line.value, line.made_by, f"{line.numbers:,}" if line.numbers else "", f"{len(words):,}", said)
        table.add_row(*map(Text, row))  # as text, not as markup
    table.add_row("in all", "", f"{model.n_parameters:,}", "", "")
    console.print(table)


def values(model: Model) -> list[dict[str, Any]]:
    """The same for machines; `--units` lists the channels of one value."""
    return [
        {
            "value": line.value,
            "made_by": line.made_by,
            "numbers": line.numbers,
            "channels": len(line.units),
            "first": line.units[0],
            "last": line.units[-1],
        }
        for line in model.described()
    ]


def gaps(model: Model) -> list[dict[str, Any]]:
    """Every coordinate that is cut into cells, with its narrowest gaps."""
    return [
        {
            "between": some.name,
            "count": len(some.at),
            "measured": some.samples is not None,
            "narrowest": [asdict(gap) for gap in name_gaps(model, some, some.narrowest(NAMED))],
        }
        for some in gaps_of(model)
    ]


def list_units(console: Console, model: Model, value: str) -> None:
    """The name of every channel of one value, a line each."""
    for i, name in enumerate(names_of(model, value)):
        console.print(f"{i:>6}  {name}", highlight=False, markup=False, soft_wrap=True)


def names_of(model: Model, value: str) -> tuple[str, ...]:
    try:
        return model.unit_names(value)
    except KeyError:
        known = ", ".join(line.value for line in model.described())
        raise OptionError("inspect", f"a value among {known}", f"it is {value}", "Choose one of them.") from None
