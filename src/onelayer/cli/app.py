"""Commands. They read files, call the library and show what it computed; no mathematics lives here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from onelayer import __version__
from onelayer.certify.certificate import certify
from onelayer.certify.explain import explain as explain_folder
from onelayer.cli import pictures, theorem_table
from onelayer.comparison import compare
from onelayer.constructions.memorization import memorize as memorize_data
from onelayer.constructions.search import Mapping, Readout
from onelayer.data.tables import Table, example, read_table, write_answers
from onelayer.errors import HypothesisError, MissingExtraError
from onelayer.export.bundle import load, save
from onelayer.memory import Memory
from onelayer.planning import plan as plan_data
from onelayer_checker.__main__ import EXITS, check

app = typer.Typer(
    name="onelayer",
    help="Compile data into the explicit weights of a Transformer with one attention layer. No training.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out, err = Console(), Console(stderr=True)


Data = Annotated[
    Path, typer.Argument(help="Sequences and answers: .jsonl, .csv, .npz or .parquet.", show_default=False)
]
Model = Annotated[Path, typer.Argument(help="A folder written by `onelayer memorize`.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Rank = Annotated[int | None, typer.Option(help="Head size; by default the smallest that separates safely.")]
DtypeOption = Annotated[Literal["float32", "float64"], typer.Option(help="Arithmetic in which the model runs.")]
MappingOption = Annotated[Mapping, typer.Option(help="How contexts are told apart.")]
ReadoutOption = Annotated[Readout, typer.Option(help="How answers are read off.")]
Positions = Annotated[bool, typer.Option("--positions", help="The order of the tokens matters.")]
Seed = Annotated[int, typer.Option(help="Same data and seed, same weights.")]


@app.command()
def memorize(
    data: Data,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    rank: Rank = None,
    dtype: DtypeOption = "float64",
    mapping: MappingOption = "auto",
    readout: ReadoutOption = "auto",
    positions: Positions = False,
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it holds a model.")] = False,
    certificate: Annotated[bool, typer.Option(help="Write a certificate beside the weights.")] = True,
    as_json: AsJson = False,
) -> None:
    """Compile sequences and answers into a one-layer model, and check every answer."""
    with progress() as step:
        step("reading")
        table = read_table(data)
        if out_dir.exists() and not overwrite:
            raise HypothesisError(
                "data",
                "a new folder for the model",
                f"{out_dir} exists",
                "Choose another --out, or pass --overwrite.",
            )
        model = memorize_data(
            table.X,
            answers_of(table, data),
            lengths=table.lengths,
            rank=rank,
            dtype=dtype,
            mapping=mapping,
            readout=readout,
            positions=positions,
            seed=seed,
            scope=table.scope,
            on_step=step,
        )
        step("checking every answer")
        right, total = recall(model, table)
        proof = None
        if certificate and right == total:
            step("certifying")
            proof = certify(model, table.X, answers_of(table, data), table.lengths)
        step("writing")
        save(out_dir, model, certificate=proof, overwrite=overwrite)
    claims = [] if proof is None else list(proof.verdicts)
    if as_json:
        said = {"model": str(out_dir), "right": right, "answers": total, "claims": claims}
        print_json({**said, "ledger": model.ledger.to_json()})
    else:
        out.print(f"{table.source}")
        pictures.summary(out, model)
        out.print(f"[bold]{right:,} of {total:,} answers reproduced[/bold] (measured). Written to {out_dir}")
        out.print(f"{len(claims)} claims certified; `onelayer verify {out_dir}` has them decided anew.")
    if right != total:
        raise typer.Exit(1)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Sequences; answers in it are ignored unless --check is given.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File for the answers.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with the answers in the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer for sequences, stored or not."""
    with progress() as step:
        step("reading")
        memory, table = load(model), read_table(data)
        step("answering")
        answers = memory.predict(table.X, table.lengths)
        if out_file is not None:
            step("writing")
            write_answers(out_file, table, answers, memory.form.scope)
    if check:
        right, total = recall(memory, table)
        if as_json:
            print_json({"right": right, "answers": total})
        else:
            out.print(f"{right:,} of {total:,} answers as in {data}")
        if right != total:
            raise typer.Exit(1)
    elif out_file is None:
        if as_json:
            print_json({"answers": listed(answers)})
        else:
            write_answers(None, table, answers, memory.form.scope)


@app.command()
def inspect(
    model: Model,
    picture: Annotated[
        Path | None,
        typer.Option(help="Also draw the gaps and the readout into this .png or .svg.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is in this model: shapes, parameters, constants, and how close its contexts come."""
    memory = load(model)
    if as_json:
        shapes = {name: list(a.shape) for name, a in memory.transformer.tensors()}
        print_json({"parameters": memory.n_parameters, "shapes": shapes, "ledger": memory.ledger.to_json()})
    else:
        pictures.summary(out, memory)
        pictures.shapes(out, memory)
        pictures.gap_histogram(out, memory)
    if picture is not None:
        pictures.draw(memory, picture)
        err.print(f"picture written to {picture}")


@app.command()
def verify(model: Model, as_json: AsJson = False) -> None:
    """Have the independent checker decide a bundle's certificate. Exit code 0 only for VERIFIED."""
    lines: list[str] = []
    with progress() as step:
        step("checking")
        verdict = check(model, lines.append, lambda done, total: step(f"checking: {done:,} of {total:,} sequences"))
    if as_json:
        print_json(verdict)
    else:
        for line in [*lines, verdict["why"]] if verdict["why"] else lines:
            out.print(line, highlight=False, markup=False, soft_wrap=True)
        out.print(verdict["result"])
    raise typer.Exit(EXITS[verdict["result"]])


@app.command()
def explain(model: Model) -> None:
    """Say a bundle's certificate in words: what is claimed, what is assumed, what is not claimed."""
    out.print(explain_folder(model), highlight=False, markup=False, soft_wrap=True)


@app.command()
def plan(
    data: Data,
    rank: Rank = None,
    dtype: DtypeOption = "float64",
    mapping: MappingOption = "auto",
    readout: ReadoutOption = "auto",
    positions: Positions = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Say before compiling what it will take, or why it is impossible (exit code 1)."""
    with progress() as step:
        step("reading")
        table = read_table(data)
        result = plan_data(
            table.X,
            answers_of(table, data),
            lengths=table.lengths,
            rank=rank,
            dtype=dtype,
            mapping=mapping,
            readout=readout,
            positions=positions,
            seed=seed,
            scope=table.scope,
            on_step=step,
        )
    if as_json:
        print_json(result.to_json())
    else:
        out.print(str(result), highlight=False, markup=False)
    if not result.possible:
        raise typer.Exit(1)


@app.command()
def theorem(data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """What the published theorem would need on this data, next to what the library uses."""
    with progress() as step:
        step("reading")
        table = read_table(data)
        comparison = compare(table.X, answers_of(table, data), table.lengths, seed, step)
    if as_json:
        print_json(comparison.to_json())
    else:
        theorem_table.show(out, comparison)


@app.command()
def demo() -> None:
    """Compile a small table in which the same word answers differently in different company, and look at it."""
    table = read_table(example("company"))
    assert table.Y is not None
    model = memorize_data(table.X, table.Y, lengths=table.lengths)
    pictures.demo(out, table, model)
    right, total = recall(model, table)
    out.print(f"\n[bold]{right} of {total} answers reproduced[/bold] (measured), without training.")
    if right != total:
        raise typer.Exit(1)


@app.callback(invoke_without_command=True)
def version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if show_version:
        out.print(__version__)
        raise typer.Exit


def recall(model: Memory, table: Table) -> tuple[int, int]:
    """How many answers come back as given."""
    given, wanted = (listed(a) for a in (model.predict(table.X, table.lengths), answers_of(table, None)))
    if model.form.scope == "sequence":
        pairs = list(zip(given, wanted, strict=True))
    else:
        lengths = [len(row) for row in wanted] if table.lengths is None else list(table.lengths)
        pairs = [
            pair for g, w, k in zip(given, wanted, lengths, strict=True) for pair in zip(g[:k], w[:k], strict=True)
        ]
    return sum(g == w for g, w in pairs), len(pairs)


def answers_of(table: Table, path: Path | None) -> Any:
    if table.Y is None:
        raise HypothesisError(
            "data", "answers beside the sequences", f"{path or table.source} has none", "Add a column of answers."
        )
    return table.Y


def listed(answers: Any) -> list[Any]:
    converted: list[Any] = answers.tolist() if hasattr(answers, "tolist") else list(answers)
    return converted


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


@contextmanager
def progress() -> Iterator[Any]:
    """A line on standard error that says what is going on; it leaves nothing behind."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.update(task, description=text)


def main() -> None:
    """Run the command line; what a person can mend is said in a line, without a traceback."""
    try:
        app()
    except (HypothesisError, MissingExtraError, OSError) as error:
        err.print(f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("interrupted; nothing was written")
        sys.exit(130)
