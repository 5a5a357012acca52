"""What all commands share: options, plain words on standard output, progress and errors on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from onelayer.cli.exit_codes import ExitCode
from onelayer.errors import DataError, HypothesisError, visible
from onelayer.problems.conflicts import OnConflict
from onelayer.problems.tables import Table, format_of, like_answers
from onelayer.search.options import mapping_names, readout_names
from onelayer.search.problem import Mapping, Options, Readout


def give_up_output() -> None:
    """What could not be written is given up, or it would be tried again at exit, with another code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class Screen(Console):
    def on_broken_pipe(self) -> NoReturn:
        give_up_output()
        raise SystemExit(ExitCode.BROKEN_PIPE)


out, err = Screen(), Screen(stderr=True)

#: Files whose tokens are in order by what they are: sentences.
IN_ORDER = (".conll",)
Data = Annotated[
    Path,
    typer.Argument(
        help="Sequences and answers: .jsonl, .csv, .tsv or .conll (also .conll.txt and .gz), .npz or .parquet.",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Argument(help="A folder that `onelayer` wrote with --out.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Rank = Annotated[
    int | None, typer.Option(help="Head size; by default the smallest that separates the contexts safely.")
]
Dtype = Annotated[
    Literal["auto", "float32", "float64", "float16", "bfloat16"],
    typer.Option(help="Arithmetic in which the model runs; auto: float32 where it holds the data, else float64."),
]
if TYPE_CHECKING:
    from onelayer.search.problem import Mapping as MappingName
    from onelayer.search.problem import Readout as ReadoutName
else:  # what is registered, so that help lists it
    MappingName, ReadoutName = Literal[tuple(mapping_names())], Literal[tuple(readout_names())]
MappingOption = Annotated[MappingName, typer.Option(help="How attention separates contexts.")]
ReadoutOption = Annotated[ReadoutName, typer.Option(help="How answers are read off.")]
Default = Annotated[
    str | None,
    typer.Option(help="Answer for inputs that are not stored: a class, or a number.", show_default=False),
]
FalseHits = Annotated[
    float | None,
    typer.Option(help="With --default: the share of unknown inputs that may get another answer (1e-4)."),
]
Positions = Annotated[
    bool | None,
    typer.Option("--positions/--no-positions", help="Whether the order of tokens matters; by default in .conll."),
]
OnConflictOption = Annotated[
    OnConflict,
    typer.Option(
        "--on-conflict", help="Which answer to keep if a context has several; drop: leave such sequences out."
    ),
]
LogitsOption = Annotated[bool, typer.Option("--logits", help="One logit per class, the largest is the answer.")]
Seed = Annotated[int, typer.Option(min=0, help="The same data and seed give the same weights.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file or folder.")]


def options_for(
    data: Path,
    table: Table,
    rank: int | None,
    dtype: str,
    mapping: Mapping,
    readout: Readout,
    positions: bool | None,
    default: str | None,
    false_hits: float | None,
    seed: int,
    logits: bool = False,
) -> Options:
    """The options of `memorize` and `plan` as the library takes them. Sentences are read in their order."""
    options = Options(
        rank=rank,
        dtype=None if dtype == "auto" else dtype,
        mapping=mapping,
        readout=readout,
        positions=format_of(data) in IN_ORDER if positions is None else positions,
        seed=seed,
        scope=table.scope,
    )
    if default is not None:
        options["default"] = like_answers(default, table.Y)
    if false_hits is not None:
        options["false_hits"] = false_hits
    if logits:
        options["logits"] = True
    return options


@contextmanager
def about(data: Path) -> Iterator[None]:
    """Say in which file something was found: data that is wrong, or that a theorem does not apply to."""
    try:
        yield
    except (DataError, HypothesisError) as error:
        found = error.found if data.name in error.found else f"in {data.name}, {error.found}"
        raise error.having_found(found) from None


def in_options(message: str) -> str:
    """Arguments of the library as options of the command line."""
    message = re.sub(r"\btolerance=([\d.e+-]+\d)", r"--tolerance \1", message)
    message = re.sub(r"\b(rank|seed|context)=(-?\d+)", r"--\1 \2", message)
    message = re.sub(r'\b(mapping|readout|dtype|scope|tokenizer|construction)="(\w+)"', r"--\1 \2", message)
    message = re.sub(r"\bdefault=(?=[ ,])", "--default", message)
    message = re.sub(r'\bon_conflict="(\w+)"', r"--on-conflict \1", message)
    return (
        message.replace("positions=True", "--positions")
        .replace("overwrite=True", "--overwrite")
        .replace("logits=True", "--logits")
        .replace("certify=True", "--certificate")
        .replace("`save` wrote", "`onelayer memorize` wrote")
        .replace("save without a certificate", "pass --no-certificate")
    )


def say(text: str) -> None:
    """Plain words: no markup and nothing invisible in names, no line breaks of our own."""
    out.print(visible(text), highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    with written_out():
        sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


@contextmanager
def written_out() -> Iterator[None]:
    """What is written to standard output is there when this ends, or its reader went away."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        out.on_broken_pipe()


@contextmanager
def progress(interrupted: Callable[[], str] = lambda: "nothing was written") -> Iterator[Any]:
    """A line on standard error that says what is going on; it is gone at the end.

    ``interrupted`` says what is there after Ctrl-C.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    try:
        with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda text: bar.update(task, description=text)
    except KeyboardInterrupt:
        err.print(f"interrupted; {interrupted()}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
