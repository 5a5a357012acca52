"""Commands. They read files, call the library and show what it computed; no mathematics lives here."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer

from onelayer import __version__
from onelayer.certificates.explain import explain as explain_folder
from onelayer.cli import (
    approximation,
    bounding,
    casting,
    certificates,
    editing,
    exit_codes,
    exploring,
    exporting,
    ground_truth,
    inspection,
    lab,
    memorizing,
    pictures,
    pruning,
    race,
    text,
    theorem_table,
)
from onelayer.cli.console import (
    AsJson,
    Data,
    Model,
    Overwrite,
    Seed,
    about,
    err,
    give_up_output,
    in_options,
    out,
    print_json,
    progress,
    say,
    written_out,
)
from onelayer.cli.exit_codes import ExitCode, of_error
from onelayer.cli.learning import identify, learn, learner, learners
from onelayer.cli.sharded import predict_in_shards
from onelayer.compile.memorize import memorize as memorize_data
from onelayer.errors import FileError, MissingExtraError, OnelayerError, visible
from onelayer.measure.price import compare
from onelayer.measure.recall import outside_box, recall_answers
from onelayer.model import load
from onelayer.problems.tables import example, read_table, replace_answers, write_answers
from onelayer.sharded.model import is_sharded

app = typer.Typer(
    name="onelayer",
    help="Compile data, or a function, into the weights of a Transformer with one attention layer. No training.",
    no_args_is_help=True,
    epilog=exit_codes.TABLE,
    pretty_exceptions_enable=False,
)


NEXT = """Look next:
  onelayer memorize DATA --out model   your own data: .jsonl, .csv, .conll, .npz or .parquet
  onelayer explore model               one page that shows how it answers, to click through in a browser
  onelayer theorem DATA                what the published theorem would need on it
  onelayer --help                      texts, formulas, learning algorithms, exports"""

app.command()(memorizing.memorize)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Sequences; answers in it are ignored unless --check is given.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File for the answers.", show_default=False)
    ] = None,
    check_answers: Annotated[bool, typer.Option("--check", help="Compare with the answers in the file.")] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Answer for sequences, stored or not."""
    if out_file is not None and out_file.exists() and not overwrite:
        raise FileError("file", "a new file for the answers", f"{out_file} exists", "Pass --overwrite.")
    if is_sharded(model):
        predict_in_shards(model, data, out_file, check_answers, as_json)
        return
    with progress() as step, about(data):
        step("reading")
        memory, table = load(model), read_table(data)
        step("answering")
        measured = (
            recall_answers(memory, table.X, memorizing.answers_of(table), table.lengths) if check_answers else None
        )
        answers = memory.predict(table.X, table.lengths, outside="answer")
        if out_file is not None:
            step("writing")
            write_answers(out_file, table, answers, memory.form.scope)
    if outside := outside_box(memory, table.X, table.lengths):
        said = f"{outside:,} of {len(table.X):,} sequences leave the box of the function, where nothing is promised"
        err.print(said, markup=False, highlight=False)
    if measured is not None:
        if as_json:
            print_json({"right": measured.right, "answers": measured.total, "first_wrong": measured.first_wrong})
        else:
            say(f"{measured.right:,} of {measured.total:,} answers as in {data}")
        if not measured.perfect:
            err.print(f"the first that is not: {measured.first_wrong}", markup=False)
            raise typer.Exit(ExitCode.NO)
    elif out_file is not None:
        written = {"written": str(out_file), "sequences": len(table.X)}
        print_json(written) if as_json else say(f"{len(table.X):,} sequences answered, written to {out_file}")
    elif as_json:
        print_json({"sequences": list(replace_answers(table, answers, memory.form.scope).records())})
    else:
        with written_out():
            write_answers(None, table, answers, memory.form.scope)


proofs = (
    exploring.explore,
    inspection.inspect,
    certificates.verify,
    certificates.explain,
    certificates.report,
    casting.cast,
)
others = (
    exporting.export,
    editing.edit,
    pruning.prune,
    race.race,
    memorizing.plan,
    text.memorize_text,
    text.recite,
    approximation.approximate,
    approximation.targets,
    bounding.bound,
)
for command in (*proofs, *others, learners, learner, learn, identify):
    app.command()(command)
app.add_typer(lab.app)
app.add_typer(ground_truth.app)


@app.command()
def theorem(data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """What the published theorem would need on this data, next to what the library uses."""
    with progress() as step, about(data):
        step("reading")
        table = read_table(data)
        comparison = compare(table.X, table.Y, table.lengths, seed, step)
    if as_json:
        print_json(comparison.to_json())
    else:
        theorem_table.show(out, comparison)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Compile a small table where the same word has different answers in different contexts, and verify it."""
    table = read_table(example("company"))
    model = memorize_data(table.X, table.Y, lengths=table.lengths, certify=True)
    measured = recall_answers(model, table.X, table.Y, table.lengths)
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "model")
        words = explain_folder(path).split("Assumed:")[0].split("\n\n")[1].rstrip()
        checker = subprocess.run(
            [sys.executable, "-I", "-m", "onelayer_checker", path], capture_output=True, text=True
        )
    if as_json:
        lines = checker.stdout.splitlines()
        said = {"right": measured.right, "answers": measured.total, "claimed": words, "checker": lines}
        print_json({**said, "result": lines[-1], "ledger": model.ledger.to_json()})
    else:
        pictures.demo(out, table, model)
        say(f"\n{measured} (measured). What an independent checker proves:\n\n{words}")
        say(f"\n$ python -m onelayer_checker model\n{checker.stdout.rstrip()}")
        say(f"\n{NEXT}")
    raise typer.Exit(checker.returncode)


@app.callback(invoke_without_command=True)
def version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if show_version:
        say(__version__)
        raise typer.Exit


def run() -> None:
    """What a person can mend is said in a line, without a traceback."""
    # typer's own 2 would be UNKNOWN. The class has no public name: it is the base of one that has.
    setattr(typer.BadParameter.__base__, "exit_code", ExitCode.OPTION)  # noqa: B010
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # what cannot be written is said in a line too
    except BrokenPipeError:
        give_up_output()
        sys.exit(ExitCode.BROKEN_PIPE)
    except (OnelayerError, MissingExtraError, OSError) as error:
        if isinstance(error, OSError):
            give_up_output()
        said = FileError.of(error) if isinstance(error, OSError) else error
        err.print(
            f"error: {visible(in_options(str(said)))}", style="red", highlight=False, markup=False, soft_wrap=True
        )
        sys.exit(of_error(error))
    except MemoryError as error:
        err.print(f"error: out of memory ({error}). Use fewer sequences, or a smaller --rank.", markup=False)
        sys.exit(ExitCode.MEMORY)
    except Exception:  # a bug; Python's own exit code, 1, would be NOT VERIFIED or another answer of a command
        sys.stderr.write(visible(traceback.format_exc()))
        sys.exit(ExitCode.BUG)
